"""A job for TUTTI_TRACE: all-reduces, of which rank 1 is late to one."""
import time

import torch
import torch.distributed as dist

from case import main


def reduces():
    for step in range(10):
        if step == 5 and dist.get_rank() == 1:
            time.sleep(0.2)
        dist.all_reduce(torch.ones(25_000))


if __name__ == "__main__":
    main(reduces)
