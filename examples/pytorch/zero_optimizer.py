"""DistributedDataParallel with ZeroRedundancyOptimizer: each rank keeps the optimizer's state of a part of the parameters.

    torchrun --nproc-per-node 2 examples/pytorch/zero_optimizer.py
"""
import argparse

import digits
import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="tutti")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--checkpoint", metavar="FILE", help="written by rank 0 at the end")
    return parser.parse_args()


def main():
    told = arguments()
    digits.join(told.backend)
    model, batches = DistributedDataParallel(digits.network()), digits.share()
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=0.003)
    losses = []
    for number in range(told.epochs):
        batches.sampler.set_epoch(number)
        losses.append(digits.epoch(model, optimizer, batches))
    optimizer.consolidate_state_dict(to=0)
    if told.checkpoint and dist.get_rank() == 0:
        torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "losses": losses}, told.checkpoint)
    digits.report(losses, digits.accuracy(model.module))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
