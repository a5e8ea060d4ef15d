"""Functional collectives inside torch.compile: a training step, sharded by hand, that is compiled as a whole. Each rank keeps a
part of all parameters; a step gathers them, and scatters the sum of the gradients. It needs a C++ compiler at run time.

    torchrun --nproc-per-node 2 examples/pytorch/compiled.py
"""
import argparse

import digits
import torch
import torch.distributed as dist
from torch.distributed import _functional_collectives as collectives
from torch.nn.functional import cross_entropy, linear, pad, relu

# The names since torch 2.13, and those before.
all_gather = getattr(collectives, "all_gather_single", None) or collectives.all_gather_tensor
reduce_scatter = getattr(collectives, "reduce_scatter_single", None) or collectives.reduce_scatter_tensor

SHAPES = [(128, 64), (128,), (10, 128), (10,)]
COUNTS = [torch.Size(shape).numel() for shape in SHAPES]
LEARNING_RATE = 0.1


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="tutti")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--eager", action="store_true", help="without torch.compile")
    parser.add_argument("--checkpoint", metavar="FILE", help="written by rank 0 at the end")
    return parser.parse_args()


def outputs(parameters, images):
    pieces = parameters[:sum(COUNTS)].split(COUNTS)
    first, first_bias, second, second_bias = (piece.view(shape) for piece, shape in zip(pieces, SHAPES))
    return linear(relu(linear(images, first, first_bias)), second, second_bias)


def step(part, images, labels):
    """This rank's part after one step of gradient descent, and the mean loss of all ranks."""
    def loss_of(parameters):
        return cross_entropy(outputs(parameters, images), labels)
    size = dist.get_world_size()
    parameters = all_gather(part, 0, dist.group.WORLD)
    gradient, loss = torch.func.grad_and_value(loss_of)(parameters)
    mine = reduce_scatter(gradient / size, "sum", 0, dist.group.WORLD)
    return part - LEARNING_RATE * mine, collectives.all_reduce(loss, "sum", dist.group.WORLD) / size


def first_part(rank, size):
    whole = torch.cat([each.detach().flatten() for each in digits.network(layers=2).parameters()])
    return pad(whole, (0, -len(whole) % size)).chunk(size)[rank].clone()


def main():
    told = arguments()
    rank, size = digits.join(told.backend)
    part, batches = first_part(rank, size), digits.share(whole_batches=True)
    run = step if told.eager else torch.compile(step, fullgraph=True)
    losses = []
    for number in range(told.epochs):
        batches.sampler.set_epoch(number)
        total = torch.zeros(())
        for images, labels in batches:
            part, loss = run(part, images, labels)
            total += loss
        losses.append((total / len(batches)).item())
    parameters = all_gather(part, 0, dist.group.WORLD)
    if told.checkpoint and rank == 0:
        torch.save({"model": {"parameters": parameters + 0}, "losses": losses}, told.checkpoint)
    digits.report(losses, digits.accuracy(lambda images: outputs(parameters, images)))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
