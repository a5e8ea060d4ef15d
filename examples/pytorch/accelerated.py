"""Training with Hugging Face Accelerate, whose Accelerator takes up the process group that is there.

    accelerate launch --cpu --num_processes 2 examples/pytorch/accelerated.py       # or torchrun --nproc-per-node 2 ...
"""
import argparse

import digits
import torch
import torch.distributed as dist
from accelerate import Accelerator
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="tutti")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--accumulate", type=int, default=1, metavar="N", help="one step of the optimizer for N batches")
    parser.add_argument("--checkpoint", metavar="FILE", help="written by the main process at the end")
    return parser.parse_args()


def epoch(accelerator, model, optimizer, batches):
    total = torch.zeros(())
    for images, labels in batches:
        with accelerator.accumulate(model):
            loss = cross_entropy(model(images), labels)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        total += loss.detach()
    return accelerator.reduce(total / len(batches), "mean").item()


def main():
    told = arguments()
    digits.join(told.backend)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=told.accumulate)
    torch.manual_seed(0)  # the order of the batches
    model = digits.network()
    model, optimizer, batches = accelerator.prepare(
        model, torch.optim.AdamW(model.parameters(), lr=0.003), DataLoader(digits.dataset("to learn"), 32, shuffle=True))
    losses = [epoch(accelerator, model, optimizer, batches) for _ in range(told.epochs)]
    accelerator.wait_for_everyone()
    if told.checkpoint:
        accelerator.save({"model": accelerator.unwrap_model(model).state_dict(), "losses": losses}, told.checkpoint)
    digits.report(losses, digits.accuracy(model))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
