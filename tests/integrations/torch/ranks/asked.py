"""A job that is well, of every operation, in two groups, whose ranks then ask themselves for their records."""
import os
import signal
import time
from pathlib import Path

import torch
import torch.distributed as dist

from case import main


def operations(group=None):
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    part, whole = torch.ones(6), torch.ones(6 * size)
    parts = list(whole.chunk(size))
    dist.all_reduce(whole, group=group)
    dist.broadcast(whole, group_src=0, group=group)
    dist.reduce(whole, group_dst=0, group=group)
    dist.all_gather_into_tensor(whole, part, group=group)
    dist.reduce_scatter_tensor(part, whole, group=group)
    dist.all_to_all_single(torch.empty_like(whole), whole, group=group)
    dist.all_gather([torch.empty(number + 1) for number in range(size)], torch.ones(rank + 1), group=group)
    dist.gather(part, parts if rank == 0 else None, group_dst=0, group=group)
    dist.scatter(part, parts if rank == 0 else None, group_src=0, group=group)
    dist.barrier(group)


def messages():
    rank, size = dist.get_rank(), dist.get_world_size()
    after, before = (rank + 1) % size, (rank - 1) % size
    for there, back in ((after, before), (before, after)):
        works = dist.batch_isend_irecv([dist.P2POp(dist.isend, torch.ones(5), there), dist.P2POp(dist.irecv, torch.empty(5), back)])
        for work in works:
            work.wait()


def everything():
    operations()
    pair = dist.new_group([1, 2])
    if dist.get_rank() in (1, 2):
        operations(pair)
    messages()
    dist.barrier()
    os.kill(os.getpid(), signal.SIGUSR2)
    folder = Path(os.environ["TUTTI_DUMP_DIR"])
    while len(list(folder.glob("tutti-*.json"))) < dist.get_world_size() + 2 + 4 * dist.get_world_size():
        time.sleep(0.05)  # the world, the pair, and six directions with two ends each


if __name__ == "__main__":
    main(everything)
