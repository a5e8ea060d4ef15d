"""Trains a small network on handwritten digits, data-parallel, in the way of scripts that were written for Horovod.

    python -m tutti.run -n 4 examples/horovod_digits.py       # or torchrun, mpirun, srun

The one line that differs from a script for Horovod is the import of hvd. Every process works on its share of each
batch; the gradients are averaged over all while the backward pass goes on. So the curve is that of one process with the
whole batch, to rounding, however many there are. It needs torch and scikit-learn, which brings the digits.
"""

import argparse
import sys

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import tutti.hvd as hvd  # was: import horovod.torch as hvd


class Net(nn.Module):
    """Two convolutions and two layers, for images of 8 x 8."""

    def __init__(self):
        super().__init__()
        self.near = nn.Conv2d(1, 16, 3, padding=1)
        self.far = nn.Conv2d(16, 32, 3, padding=1)
        self.hidden = nn.Linear(32 * 2 * 2, 64)
        self.out = nn.Linear(64, 10)

    def forward(self, images):
        images = functional.max_pool2d(functional.relu(self.near(images)), 2)
        images = functional.max_pool2d(functional.relu(self.far(images)), 2)
        return self.out(functional.relu(self.hidden(images.flatten(1))))


def digits():
    """1,792 of the 1,797, so that batches come out even: what is learnt from, and every eighth to test."""
    bunch = load_digits()
    images = torch.tensor(bunch.images[:1792], dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(bunch.target[:1792])
    tested = torch.arange(1792) % 8 == 0
    return TensorDataset(images[~tested], labels[~tested]), TensorDataset(images[tested], labels[tested])


def parse():
    parser = argparse.ArgumentParser(description="Trains a network on handwritten digits, data-parallel.")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=56, help="images in the batch of all processes together")
    parser.add_argument("--lr", type=float, default=0.05, help="learning rate of that batch")
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--fp16", action="store_true", help="send gradients as half")
    parser.add_argument(
        "--predivide", type=float, default=1.0, help="what gradients are divided by before they are added up"
    )
    parser.add_argument("--save", metavar="FILE", help="where process 0 writes the parameters in the end")
    return parser.parse_args()


def train(epoch, model, optimizer, loader, sampler):
    """The mean loss over the batches, as this process's shares have it."""
    model.train()
    sampler.set_epoch(epoch)  # every epoch has another order, the same in all processes
    total = 0.0
    for images, labels in loader:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


@torch.no_grad()
def test(model, loader):
    """The share of this process's digits that are recognised."""
    model.eval()
    right = sum((model(images).argmax(1) == labels).sum().item() for images, labels in loader)
    return right / len(loader.sampler)


def average(value, name):
    """Over all processes."""
    return hvd.allreduce(torch.tensor(value, dtype=torch.float64), name=name).item()


def main():
    told = parse()
    hvd.init()
    if told.batch % hvd.size():
        sys.exit(f"--batch {told.batch} does not come out even for {hvd.size()} processes")
    torch.manual_seed(told.seed + hvd.rank())  # what differs here, broadcast_parameters makes equal

    learnt, tested = digits()
    sampler = DistributedSampler(learnt, hvd.size(), hvd.rank(), seed=told.seed)
    loader = DataLoader(learnt, told.batch // hvd.size(), sampler=sampler)
    test_loader = DataLoader(tested, 64, sampler=DistributedSampler(tested, hvd.size(), hvd.rank(), shuffle=False))

    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=told.lr, momentum=told.momentum)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    optimizer = hvd.DistributedOptimizer(
        optimizer,
        named_parameters=model.named_parameters(),
        op=hvd.Average,
        gradient_predivide_factor=told.predivide,
        compression=hvd.Compression.fp16 if told.fp16 else hvd.Compression.none,
    )

    for epoch in range(1, told.epochs + 1):
        loss = average(train(epoch, model, optimizer, loader, sampler), "loss")
        accuracy = average(test(model, test_loader), "accuracy")
        if hvd.rank() == 0:
            print(f"epoch {epoch}  loss {loss:.6f}  test accuracy {100 * accuracy:.2f} %", flush=True)
    if told.save and hvd.rank() == 0:
        torch.save(model.state_dict(), told.save)
    hvd.shutdown()


if __name__ == "__main__":
    main()
