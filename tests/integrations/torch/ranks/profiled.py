"""A step of DistributedDataParallel under PyTorch's profiler: its trace, as export_chrome_trace writes it, has our all-reduces."""
import json
import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from case import main

WIDTH, LAYERS = 512, 6


def trace_of(step):
    """The events of this rank."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profile:
        step()
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "trace.json")
        profile.export_chrome_trace(file)
        with open(file, encoding="utf-8") as text:
            return json.load(text)["traceEvents"]


def model():
    layers = [layer for _ in range(LAYERS) for layer in (nn.Linear(WIDTH, WIDTH, bias=False), nn.ReLU())]
    wrapped = DistributedDataParallel(nn.Sequential(*layers), bucket_cap_mb=WIDTH * WIDTH * 4 / 2**20, gradient_as_bucket_view=True)
    for _ in range(2):  # then the buckets have their final order
        wrapped(torch.randn(64, WIDTH)).sum().backward()
    return wrapped


def spans(events, word):
    return [event for event in events if event.get("ph") == "X" and word in event["name"]]


def a_step_has_its_all_reduces():
    wrapped = model()
    calls = spans(trace_of(lambda: wrapped(torch.randn(64, WIDTH)).sum().backward()), "record_param_comms")
    told = [event["args"] for event in calls]
    assert len(told) > 1 and all(args["Collective name"] == "all_reduce" for args in told), told
    assert sum(args["In msg nelems"] for args in told) == LAYERS * WIDTH * WIDTH, told
    for args in told:
        assert args["Out msg nelems"] == args["In msg nelems"] and args["dtype"] == "Float", args
        assert args["Group size"] == dist.get_world_size() and args["Rank"] == dist.get_rank(), args
        assert args["Process Group Name"] == dist.group.WORLD.group_name, args
        assert args["Process Group Description"] == "default_pg", args
    numbers = [args["Seq"] for args in told if "Seq" in args]
    assert numbers == sorted(set(numbers)), numbers


def all_reduces_overlap_backward():
    """Until it shows: how much of one goes on while backward computes depends on the machine."""
    wrapped = model()
    for _ in range(50):
        events = trace_of(lambda: wrapped(torch.randn(64, WIDTH)).sum().backward())
        reduces, backward = spans(events, "tutti:all_reduce"), spans(events, "MmBackward0")
        assert len(reduces) > 1 and len(backward) >= LAYERS, [event["name"] for event in events]
        shown = any(one["ts"] < other["ts"] < one["ts"] + one["dur"] for one in reduces for other in backward)
        everywhere = torch.tensor([float(shown)])
        dist.all_reduce(everywhere)
        if everywhere.item() == dist.get_world_size():
            return
    raise AssertionError("no all-reduce is under way when an operator of backward begins")


def every_call_has_its_name():
    tensor, whole = torch.ones(6), torch.ones(6 * dist.get_world_size())

    def step():
        dist.broadcast(tensor, 0)
        dist.all_gather_into_tensor(whole, tensor)
        dist.reduce_scatter_tensor(tensor, whole)
        dist.barrier()
        if dist.get_rank() == 0:
            dist.send(tensor, 1)
        elif dist.get_rank() == 1:
            dist.recv(tensor, 0)

    told = [event["args"] for event in spans(trace_of(step), "record_param_comms")]
    names = [args["Collective name"] for args in told]
    last = {0: ["send"], 1: ["recv"]}.get(dist.get_rank(), [])
    assert names == ["broadcast", "_all_gather_base", "_reduce_scatter_base", "barrier", *last], told
    sizes = [(args["In msg nelems"], args["Out msg nelems"]) for args in told[:3]]
    assert sizes == [(6, 6), (6, whole.numel()), (whole.numel(), 6)], told


if __name__ == "__main__":
    main(a_step_has_its_all_reduces, all_reduces_overlap_backward, every_call_has_its_name)
