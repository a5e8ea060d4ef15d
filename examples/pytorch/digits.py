"""What the examples share: the handwritten digits of examples/data (those that scikit-learn brings), a network that learns
them, how a process joins its job, a plain epoch, and what rank 0 says at the end."""
from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import numpy
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

DATA = Path(__file__).resolve().parent.parent / "data/digits.csv.gz"


def dataset(part: str) -> TensorDataset:
    """8 x 8 pixels from 0 to 1, and which digit they show: every fifth image is there "to test", the others "to learn"."""
    table = torch.from_numpy(numpy.loadtxt(DATA, delimiter=",", dtype="float32"))
    images, labels = table[:, :64] / 16, table[:, 64].long()
    chosen = (torch.arange(len(labels)) % 5 == 0) == (part == "to test")
    return TensorDataset(images[chosen], labels[chosen])


def share(batch_size: int = 32, whole_batches: bool = False) -> DataLoader:
    """Batches of this rank's share of the digits to learn from; the last may be smaller, or be left out. Each epoch wants its
    sampler.set_epoch()."""
    learned = dataset("to learn")
    return DataLoader(learned, batch_size, sampler=DistributedSampler(learned), drop_last=whole_batches)


def network(layers: int = 3, width: int = 128) -> nn.Sequential:
    """Linear layers, and ReLU between them. The parameters are the same on every rank, and in every run."""
    torch.manual_seed(0)
    between = [module for _ in range(layers - 2) for module in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), *between, nn.Linear(width, 10))


def stage(rank: int, size: int, width: int = 128) -> nn.Sequential:
    """Of a network with a linear layer for each rank the one of this rank."""
    return network(size, width)[2 * rank:2 * rank + 2]


def join(backend: str, init_method: str = "env://") -> tuple[int, int]:
    """Makes the default process group; the rank of this process, and how many there are."""
    if "RANK" not in os.environ:  # mpirun, srun and others tell it in variables of their own
        import tutti
        tutti.export_env()
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group(backend, init_method=init_method, timeout=timedelta(minutes=30), rank=rank, world_size=size)
    return rank, size


def mean(value: float | torch.Tensor) -> float:
    """The mean over all ranks, on every rank."""
    total = torch.as_tensor(value, dtype=torch.float64).detach().clone()
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()


def epoch(model: nn.Module, optimizer: torch.optim.Optimizer, batches: DataLoader) -> float:
    """A step with each batch, where a step is no more than that; the mean loss over batches and ranks."""
    total = torch.zeros(())
    for images, labels in batches:
        loss = cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        total += loss.detach()
    return mean(total / len(batches))


@torch.no_grad()
def accuracy(model: nn.Module, dtype: torch.dtype = torch.float32) -> float:
    """The part of the test images that the model names rightly, from 0 to 1."""
    images, labels = dataset("to test").tensors
    return (model(images.to(dtype)).argmax(1) == labels).float().mean().item()


def report(losses: list[float], right: float) -> None:
    """Rank 0 prints how training went: the mean loss of each epoch, and the accuracy."""
    if dist.get_rank() == 0:
        shown = " ".join(f"{loss:.4f}" for loss in losses)
        print(f"loss by epoch: {shown}; {100 * right:.1f} % of the test images are named rightly", flush=True)
