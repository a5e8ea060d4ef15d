"""Tensor parallelism by DTensor: each rank has a part of every matrix, and all ranks learn from the same batches.

    torchrun --nproc-per-node 2 examples/pytorch/tensor_parallel.py
"""
import argparse

import digits
import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.utils.data import DataLoader


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="tutti")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--checkpoint", metavar="FILE", help="written by rank 0 at the end")
    return parser.parse_args()


def parallel():
    """Columns, then rows: between the two nothing is exchanged."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    return parallelize_module(digits.network(layers=2), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})


def drawn(number):
    """The batches of an epoch, the same on every rank."""
    order = torch.Generator().manual_seed(number)
    return DataLoader(digits.dataset("to learn"), 64, shuffle=True, generator=order)


def main():
    told = arguments()
    digits.join(told.backend)
    model = parallel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
    losses = [digits.epoch(model, optimizer, drawn(number)) for number in range(told.epochs)]
    whole = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
    if told.checkpoint and dist.get_rank() == 0:
        torch.save({"model": whole, "losses": losses}, told.checkpoint)
    digits.report(losses, digits.accuracy(model))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
