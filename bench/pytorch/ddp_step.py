"""How long a step of DistributedDataParallel takes on tutti and on other backends, in one run.

    torchrun --standalone --nproc-per-node 2 bench/pytorch/ddp_step.py
    torchrun --standalone --nproc-per-node 2 bench/pytorch/ddp_step.py --backends gloo tutti --rounds 9 --trace steps.json

Each backend has a process group and a copy of one model (25 million parameters unless told), and one more copy does all that
DistributedDataParallel does but the all-reduces, which a hook of its leaves out. Rounds of steps go through them in turn, so
that what else the machine does meets all of them. A line for each, of the slowest rank, medians of all rounds, in milliseconds:

    step            forward, and backward with its all-reduces
    communication   what a step takes longer than one without all-reduces of the same round: those that backward did not
                    hide, and what they cost backward
    buckets         the all-reduces of one step by themselves, begun at once, waited for at the end

With --trace rank 0 writes a step of each backend for Perfetto, where all-reduces lie beside the backward that they overlap.
"""

import argparse
import copy
import json
import statistics
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

NOBODY = "nobody"
BUCKET_BYTES = 25 << 20  # DistributedDataParallel's


def model_of(parameters: int) -> nn.Module:
    """Square layers, so that the sizes of buckets are those of large models: 8 layers of the width that it takes."""
    width = int((parameters / 8) ** 0.5)
    return nn.Sequential(*[layer for _ in range(8) for layer in (nn.Linear(width, width), nn.ReLU())])


def leave_out(_: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """A communication hook that averages as DistributedDataParallel does, over this rank alone."""
    done: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    done.set_result(bucket.buffer().div_(dist.get_world_size()))
    return done


class Contender:
    """One backend, or NOBODY: its group, and a copy of the model wrapped with it."""

    def __init__(self, name: str, group: dist.ProcessGroup, model: nn.Module, data: torch.Tensor) -> None:
        self.name = name
        self.group = group
        self.model = DistributedDataParallel(copy.deepcopy(model), process_group=group, gradient_as_bucket_view=True)
        if name == NOBODY:
            self.model.register_comm_hook(None, leave_out)
        self.data = data
        elements = sum(p.numel() for p in model.parameters())
        per_bucket = BUCKET_BYTES // 4
        sizes = [per_bucket] * (elements // per_bucket) + [elements % per_bucket]
        self.buckets = [torch.ones(size) for size in sizes if size > 0]

    def step(self) -> None:
        self.model(self.data).sum().backward()

    def reduce_buckets(self) -> None:
        for work in [dist.all_reduce(bucket, group=self.group, async_op=True) for bucket in self.buckets]:
            work.wait()


def milliseconds(action: Callable[[], None], steps: int, group: dist.ProcessGroup) -> float:
    """Of one of `steps`, on the rank that took longest."""
    dist.barrier(group)
    begun = time.perf_counter()
    for _ in range(steps):
        action()
    mine = torch.tensor([(time.perf_counter() - begun) * 1000 / steps])
    dist.all_reduce(mine, dist.ReduceOp.MAX, group=group)
    return float(mine)


Times = dict[str, dict[str, list[float]]]


def measure(contenders: list[Contender], rounds: int, steps: int) -> Times:
    found: Times = {one.name: {"step": [], "buckets": []} for one in contenders}
    for _ in range(rounds):
        for one in contenders:
            found[one.name]["step"].append(milliseconds(one.step, steps, one.group))
        for one in contenders:
            if one.name != NOBODY:
                found[one.name]["buckets"].append(milliseconds(one.reduce_buckets, steps, one.group))
    return found


def write_trace(contenders: list[Contender], file: str) -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        for one in contenders:
            with torch.profiler.record_function(f"a step on {one.name}"):
                one.step()
            dist.barrier(one.group)
    if dist.get_rank() == 0:
        profile.export_chrome_trace(file)


def show(found: Times, parameters: int) -> None:
    print(f"{dist.get_world_size()} processes, {parameters / 1e6:.1f} million parameters, torch {torch.__version__}, "
          f"{torch.get_num_threads()} threads each; milliseconds")
    print(f"{'backend':<10}{'step':>15}{'communication':>15}{'buckets':>15}")
    without = found[NOBODY]["step"]
    for name, times in found.items():
        line = f"{name:<10}{statistics.median(times['step']):>15.1f}"
        if name != NOBODY:
            communication = statistics.median(step - least for step, least in zip(times["step"], without))
            line += f"{communication:>15.1f}{statistics.median(times['buckets']):>15.1f}"
        print(line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backends", nargs="+", default=["gloo", "tutti"])
    parser.add_argument("--parameters", type=int, default=25_000_000)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=3, help="steps in a round of each backend")
    parser.add_argument("--trace", metavar="FILE")
    parser.add_argument("--json", metavar="FILE", help="all figures, of each round")
    told = parser.parse_args()

    dist.init_process_group(told.backends[0])
    torch.manual_seed(1)
    model = model_of(told.parameters)
    data = torch.randn(told.batch, model[0].in_features)
    groups = {backend: dist.new_group(backend=backend) for backend in told.backends}
    groups[NOBODY] = groups[told.backends[0]]
    contenders = [Contender(name, group, model, data) for name, group in groups.items()]
    measure(contenders, 1, 1)  # links, buckets' order, memory
    found = measure(contenders, told.rounds, told.steps)
    if told.trace:
        write_trace(contenders, told.trace)
    if dist.get_rank() == 0:
        show(found, sum(p.numel() for p in model.parameters()))
        if told.json:
            with open(told.json, "w", encoding="utf-8") as file:
                json.dump(found, file, indent=1)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
