"""A small classifier of handwritten digits (scikit-learn's bundled data), trained the same way on two process groups."""
from contextlib import nullcontext

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

EPOCHS = 4


def data():
    digits = load_digits()
    return TensorDataset(torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target))


def batches(size=64):
    dataset = data()
    sampler = DistributedSampler(dataset, dist.get_world_size(), dist.get_rank(), seed=3)
    return DataLoader(dataset, batch_size=size, sampler=sampler), sampler


class Net(nn.Module):
    def __init__(self, unused=False):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 10))
        self.extra = nn.Linear(4, 4) if unused else None

    def forward(self, images):
        return self.layers(images)


def fresh(unused=False):
    torch.manual_seed(11)
    return Net(unused)


def train(model, epochs=EPOCHS, amp=None, scaler=None, rate=0.1, dtype=torch.float32):
    """The mean loss of the last epoch, over all ranks' batches."""
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    loader, sampler = batches()
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        losses = []
        for images, labels in loader:
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=amp) if amp else nullcontext():
                loss = nn.functional.cross_entropy(model(images.to(dtype)).float(), labels)
            (scaler.scale(loss) if scaler else loss).backward()
            if scaler:
                scaler.step(optimizer)
                scaler.update()
            else:
                optimizer.step()
            losses.append(loss.item())
    mean = torch.tensor([sum(losses) / len(losses)])
    dist.all_reduce(mean)
    return mean.item() / dist.get_world_size()
