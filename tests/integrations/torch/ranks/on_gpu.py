"""CUDA tensors, of which each rank has its own on a GPU that may be shared: what comes out, and in which order things happen.

Usage: on_gpu.py [--emulated] [CASE...]. Emulated: the module emulated_gpu has given this PyTorch an emulated GPU.
"""
import gc
import os
import sys
import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from case import main, raises, say

EMULATED = "--emulated" in sys.argv
if EMULATED:
    sys.argv.remove("--emulated")
    import emulated_gpu

    torch.cuda.get_device_capability = lambda device=None: (9, 0)  # which broadcast() asks for, before it looks at the type


def on_gpu(tensor):
    return emulated_gpu.on_gpu(tensor) if EMULATED else tensor.to("cuda:0")


def on_host(tensor):
    return emulated_gpu.on_host(tensor) if EMULATED else tensor.cpu()


def own(*values, dtype=torch.float32):
    """Values that differ by rank."""
    return torch.tensor(values, dtype=dtype) + dist.get_rank()


def gives(found, expected):
    found = on_host(found)
    assert torch.equal(found, expected), f"\n{found}\nis not\n{expected}"


def sum_of(*values):
    ranks = dist.get_world_size()
    return torch.tensor(values) * ranks + ranks * (ranks - 1) / 2


def reductions():
    ranks = dist.get_world_size()
    for dtype in (torch.float32, torch.float64, torch.int64, torch.bfloat16):
        tensor = on_gpu(own(1, 2, 3, dtype=dtype))
        dist.all_reduce(tensor)
        gives(tensor, sum_of(1, 2, 3).to(dtype))
    tensor = on_gpu(own(5.0))
    dist.all_reduce(tensor, op=dist.ReduceOp.MAX)
    gives(tensor, torch.tensor([5.0 + ranks - 1]))
    tensor = on_gpu(own(5.0))
    dist.all_reduce(tensor, op=dist.ReduceOp.AVG)
    gives(tensor, sum_of(5.0) / ranks)
    tensor = on_gpu(torch.ones(4))
    dist.all_reduce(tensor, op=dist._make_nccl_premul_sum(0.5))
    gives(tensor, torch.full((4,), 0.5 * ranks))
    tensor = on_gpu(own(1.0, 2.0))
    dist.reduce(tensor, 1)
    if dist.get_rank() == 1:
        gives(tensor, sum_of(1.0, 2.0))


def everything_that_moves():
    rank, ranks = dist.get_rank(), dist.get_world_size()
    tensor = on_gpu(own(7.0))
    dist.broadcast(tensor, 1)
    gives(tensor, torch.tensor([8.0]))
    outs = [on_gpu(torch.zeros(2)) for _ in range(ranks)]
    dist.all_gather(outs, on_gpu(own(1.0, 2.0)))
    for other, out in enumerate(outs):
        gives(out, torch.tensor([1.0, 2.0]) + other)
    out = on_gpu(torch.zeros(2 * ranks))
    dist.all_gather_into_tensor(out, on_gpu(own(1.0, 2.0)))
    gives(out, torch.cat([torch.tensor([1.0, 2.0]) + other for other in range(ranks)]))
    out = on_gpu(torch.zeros(2))
    dist.reduce_scatter_tensor(out, on_gpu(torch.arange(2.0 * ranks)))
    gives(out, torch.tensor([2.0 * rank, 2.0 * rank + 1]) * ranks)
    out = on_gpu(torch.zeros(ranks))
    dist.all_to_all_single(out, on_gpu(torch.arange(float(ranks)) + 10 * rank))
    gives(out, torch.arange(float(ranks)) * 10 + rank)
    out = on_gpu(torch.zeros(1))
    dist.scatter(out, [on_gpu(torch.tensor([float(other)])) for other in range(ranks)] if rank == 0 else None, src=0)
    gives(out, torch.tensor([float(rank)]))
    outs = [on_gpu(torch.zeros(1)) for _ in range(ranks)]
    dist.gather(on_gpu(own(3.0)), outs if rank == 0 else None, dst=0)
    for other, out in enumerate(outs if rank == 0 else []):
        gives(out, torch.tensor([3.0 + other]))


def gaps():
    """What has gaps goes by way of a copy, which is filled and read at the right time."""
    expected = sum_of(*range(6)).view(2, 3).t()
    tensor = on_gpu(own(*range(6)).view(2, 3)).t()
    dist.all_reduce(tensor)
    gives(tensor, expected)
    first, second = on_gpu(own(*range(6)).view(2, 3)).t(), on_gpu(own(*range(6)).view(2, 3)).t()
    with dist._coalescing_manager(device=torch.device("cuda:0"), async_ops=True) as manager:
        dist.broadcast(first, 0)
        dist.broadcast(second, 1)
    manager.wait()
    gives(first, torch.arange(6.0).view(2, 3).t())
    gives(second, torch.arange(6.0).view(2, 3).t() + 1)


def coalesced():
    tensors = [on_gpu(own(float(i))) for i in range(3)]
    with dist._coalescing_manager(async_ops=True) as manager:
        for tensor in tensors:
            dist.all_reduce(tensor)
    manager.wait()
    for i, tensor in enumerate(tensors):
        gives(tensor, sum_of(float(i)))
    others = [on_gpu(own(float(i))) for i in range(3)]
    with dist._coalescing_manager(device=torch.device("cuda:0"), async_ops=True) as manager:
        for i, tensor in enumerate(others):
            dist.broadcast(tensor, i % 2)
        raises(RuntimeError, "endCoalescing", dist.broadcast(others[0], 0, async_op=True).wait)
    assert len(manager.works) == 1
    manager.wait()
    for i, tensor in enumerate(others):
        gives(tensor, torch.tensor([float(i) + i % 2]))

    def mixed():
        with dist._coalescing_manager(device=torch.device("cuda:0"), async_ops=True):
            dist.broadcast(others[0], 0)
            dist.broadcast(torch.zeros(1), 0, async_op=True)

    raises(ValueError, "cannot be coalesced", mixed)


def messages():
    """Both send first: in a batch that is well."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    after, before = (rank + 1) % ranks, (rank - 1) % ranks
    out = on_gpu(torch.zeros(3))
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, on_gpu(own(1.0, 2.0, 3.0)), after),
                                        dist.P2POp(dist.irecv, out, before)]):
        work.wait()
    gives(out, torch.tensor([1.0, 2.0, 3.0]) + before)
    if rank == 0:
        dist.send(on_gpu(torch.tensor([4.0, 5.0])), 1)
        gaping = on_gpu(torch.zeros(2, 2)).t()
        dist.recv(gaping, 1)
        gives(gaping, torch.tensor([[0.0, 1.0], [2.0, 3.0]]))
    elif rank == 1:
        out = on_gpu(torch.zeros(2))
        dist.recv(out, 0)
        gives(out, torch.tensor([4.0, 5.0]))
        dist.send(on_gpu(torch.arange(4.0).view(2, 2)), 0)
    if rank == 0:
        raises(ValueError, "names the rank", dist.recv, on_gpu(torch.zeros(1)))


def order():
    """The operation waits for what the current stream has to do, and what that is given later for the operation; nobody else does."""
    if not EMULATED:
        return
    emulated_gpu.use_new_stream()
    tensor = on_gpu(torch.zeros(2))
    gate = emulated_gpu.close_gate()
    tensor.copy_(own(1.0, 2.0))
    work = dist.all_reduce(tensor, async_op=True)
    future = work.get_future().then(lambda done: done.value()[0])
    assert not work.is_completed()
    raises(dist.DistBackendError, "has not ended within the 50 ms of wait()", work.wait, timedelta(milliseconds=50))
    work.wait()  # is no wait of the host
    result = on_gpu(torch.zeros(2))
    result.copy_(tensor)
    assert not work.is_completed()
    assert emulated_gpu.is_kept(tensor)
    gate.open()
    gives(result, sum_of(1.0, 2.0))
    gives(future.wait(), sum_of(1.0, 2.0))
    assert work.is_completed() and work.is_success() and work.exception() is None


def barriers():
    """One on the GPU is over when all have come; one without a GPU is on the host."""
    dist.barrier(device_ids=[0])
    if not EMULATED:
        return
    gate = emulated_gpu.close_gate()
    timer = threading.Timer(0.3, gate.open)
    if dist.get_rank() == 0:
        timer.start()
    else:
        gate.open()
    work = dist.barrier(device_ids=[0], async_op=True)
    work.wait()
    assert work.is_completed()
    gate.open()
    dist.barrier()


def futures():
    tensor = on_gpu(own(1.0))
    future = dist.all_reduce(tensor, async_op=True).get_future()
    gives(future.wait()[0], sum_of(1.0))


def temporaries():
    """Nobody keeps the tensors but the backend."""
    works = []
    for _ in range(10):
        works.append(dist.all_reduce(on_gpu(own(1.0, 2.0)), async_op=True))
        gc.collect()
    for work in works:
        work.wait()
        gives(work.result()[0], sum_of(1.0, 2.0))


def both_devices():
    """One object serves both."""
    on_cpu, there = own(1.0), on_gpu(own(2.0))
    works = [dist.all_reduce(tensor, async_op=True) for tensor in (on_cpu, there, on_cpu)]
    for work in works:
        work.wait()
    ranks = dist.get_world_size()
    gives(there, sum_of(2.0))
    assert torch.equal(on_cpu, sum_of(1.0) * ranks)
    group = dist.group.WORLD
    assert group._get_backend(torch.device("cpu")) is group._get_backend(torch.device("cuda"))
    text = raises(ValueError, "on one device", dist.all_gather_into_tensor, torch.zeros(ranks), there) if EMULATED else "on one device"
    assert "on one device" in text


def groups():
    group = dist.new_group([0, 1])
    if dist.get_rank() < 2:
        tensor = on_gpu(own(1.0))
        dist.all_reduce(tensor, group=group)
        gives(tensor, torch.tensor([3.0]))
        dist.destroy_process_group(group)


def aborted_while_the_others_do_not_come():
    group = dist.new_group()
    if dist.get_rank() == 0:
        threading.Timer(0.3, group._get_backend(torch.device("cpu")).abort).start()
        since = time.monotonic()
        raises(dist.DistBackendError, "aborted", dist.all_reduce, on_gpu(own(1.0)), group=group)
        say(f"an all-reduce that was aborted before the others had come ended after {time.monotonic() - since:.1f} s")
    dist.barrier()


def mismatches():
    """The last case: the communicator is of no use afterwards, and says why."""
    rank = dist.get_rank()
    group = dist.new_group()
    tensor = on_gpu(own(1.0))
    dist.all_reduce(tensor, group=group)
    op = dist.ReduceOp.MAX if rank == 0 else dist.ReduceOp.SUM

    work = dist.all_reduce(tensor, op=op, group=group, async_op=True)
    raises(dist.DistBackendError, "operator", work.wait, timedelta(seconds=60))
    assert work.is_completed() and not work.is_success()
    raises(dist.DistBackendError, "operator", dist.all_reduce, tensor, group=group)


if __name__ == "__main__":
    if not EMULATED:
        torch.cuda.set_device(0)
    say(f"rank {os.environ['RANK']} runs")
    main(reductions, everything_that_moves, gaps, coalesced, messages, order, barriers, futures, temporaries, both_devices, groups,
         aborted_while_the_others_do_not_come, mismatches)
