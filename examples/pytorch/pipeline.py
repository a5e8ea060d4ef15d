"""Pipeline parallelism by torch.distributed.pipelining: each rank has a layer, and a batch goes through them in small
pieces.

    torchrun --nproc-per-node 2 examples/pytorch/pipeline.py
    torchrun --nproc-per-node 2 examples/pytorch/pipeline.py --schedule 1f1b
"""
import argparse

import digits
import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

SCHEDULES = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="tutti")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--schedule", choices=SCHEDULES, default="gpipe")
    parser.add_argument("--checkpoint", metavar="FILE", help="rank 0's layer, written at the end")
    return parser.parse_args()


class Pipeline:
    def __init__(self, rank, size, schedule):
        self.first, self.last = rank == 0, rank == size - 1
        self.layer = digits.stage(rank, size)
        stage = PipelineStage(self.layer, rank, size, torch.device("cpu"))
        self.schedule = SCHEDULES[schedule](stage, n_microbatches=4, loss_fn=cross_entropy)
        self.optimizer = torch.optim.SGD(self.layer.parameters(), lr=0.1, momentum=0.9)

    def step(self, images, labels):
        """The loss, on the last rank."""
        losses = []
        given = (images,) if self.first else ()
        self.schedule.step(*given, **({"target": labels, "losses": losses} if self.last else {}))
        self.optimizer.step()
        self.optimizer.zero_grad()
        return torch.stack(losses).mean().detach() if losses else torch.zeros(())


def main():
    told = arguments()
    pipeline = Pipeline(*digits.join(told.backend), told.schedule)
    losses = []
    for number in range(told.epochs):
        # Every rank draws the same batches, all of one size, which the stages rely on.
        order = torch.Generator().manual_seed(number)
        batches = DataLoader(digits.dataset("to learn"), 64, shuffle=True, generator=order, drop_last=True)
        total = sum(pipeline.step(images, labels) for images, labels in batches)
        losses.append(digits.mean(total / len(batches)) * dist.get_world_size())
    if pipeline.first:
        print("loss by epoch:", *(f"{loss:.4f}" for loss in losses))
        if told.checkpoint:
            torch.save({"model": pipeline.layer.state_dict(), "losses": losses}, told.checkpoint)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
