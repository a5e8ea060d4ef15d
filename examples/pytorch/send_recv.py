"""Pipeline parallelism by hand: each rank has a layer, sends what comes out of it on, and gradients back.

    torchrun --nproc-per-node 2 examples/pytorch/send_recv.py
"""
import argparse

import digits
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

WIDTH = 128


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="tutti")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--checkpoint", metavar="FILE", help="rank 0's layer, written at the end")
    return parser.parse_args()


class Stage:
    """This rank's layer, and the ranks before and behind it."""

    def __init__(self, rank, size):
        self.first, self.last = rank == 0, rank == size - 1
        self.before, self.behind = rank - 1, rank + 1
        self.layers = digits.stage(rank, size, WIDTH)
        self.optimizer = torch.optim.SGD(self.layers.parameters(), lr=0.1, momentum=0.9)

    def take_input(self, images):
        if self.first:
            return images
        activations = torch.empty(len(images), WIDTH)
        dist.recv(activations, self.before)
        return activations.requires_grad_()

    def step(self, images, labels):
        """The loss, on the last rank."""
        given = self.take_input(images)
        made = self.layers(given)
        loss = cross_entropy(made, labels) if self.last else torch.zeros(())
        if self.last:
            loss.backward()
        else:
            dist.send(made.detach(), self.behind)
            gradient = torch.empty_like(made)
            dist.recv(gradient, self.behind)
            made.backward(gradient)
        if not self.first:
            dist.send(given.grad, self.before)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()


def main():
    told = arguments()
    stage = Stage(*digits.join(told.backend))
    losses = []
    for number in range(told.epochs):
        # Every rank draws the same batches.
        order = torch.Generator().manual_seed(number)
        batches = DataLoader(digits.dataset("to learn"), 64, shuffle=True, generator=order)
        total = sum(stage.step(images, labels) for images, labels in batches)
        losses.append(digits.mean(total / len(batches)) * dist.get_world_size())
    if told.checkpoint and stage.first:
        torch.save({"model": stage.layers.state_dict(), "losses": losses}, told.checkpoint)
    if stage.first:
        print("loss by epoch:", *(f"{loss:.4f}" for loss in losses))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
