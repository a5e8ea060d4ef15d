"""Training with Lightning Fabric.

    torchrun --nproc-per-node 2 examples/pytorch/fabric.py
"""
import argparse
import os

import digits
import torch
import torch.distributed as dist
import tutti
from lightning_fabric import Fabric
from lightning_fabric.strategies import DDPStrategy
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="tutti")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--precision", default="32-true", help="as Fabric names them: 32-true, bf16-mixed, bf16-true")
    parser.add_argument("--checkpoint", metavar="FILE", help="written at the end")
    return parser.parse_args()


def launched(told):
    """The ranks are there already: whoever has started them says how many there are, here and in all."""
    if "WORLD_SIZE" not in os.environ or "LOCAL_WORLD_SIZE" not in os.environ:
        tutti.export_env()  # mpirun, Slurm and others say it in words of their own
    ranks, here = int(os.environ["WORLD_SIZE"]), int(os.environ["LOCAL_WORLD_SIZE"])
    fabric = Fabric(accelerator="cpu", devices=here, num_nodes=ranks // here, precision=told.precision,
                    strategy=DDPStrategy(process_group_backend=told.backend))
    fabric.launch()
    return fabric


def epoch(number, fabric, model, optimizer, batches):
    batches.sampler.set_epoch(number)
    total = torch.zeros(())
    for images, labels in batches:
        loss = cross_entropy(model(images), labels)
        fabric.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        total += loss.detach()
    return fabric.all_reduce(total / len(batches)).item()


def main():
    told = arguments()
    fabric = launched(told)
    module = digits.network()
    model, optimizer = fabric.setup(module, torch.optim.AdamW(module.parameters(), lr=0.003))
    batches = fabric.setup_dataloaders(DataLoader(digits.dataset("to learn"), 32, shuffle=True))
    losses = [epoch(number, fabric, model, optimizer, batches) for number in range(told.epochs)]
    if told.checkpoint:
        fabric.save(told.checkpoint, {"model": model, "losses": losses})
    digits.report(losses, digits.accuracy(model))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
