"""Data-parallel training by DistributedDataParallel: each rank learns from its share of the digits, rank 0 keeps checkpoints.

    torchrun --nproc-per-node 2 examples/pytorch/ddp.py                      # or python -m tutti.run -n 2, mpirun -np 2, srun
    torchrun --nproc-per-node 2 examples/pytorch/ddp.py --backend gloo       # the same on PyTorch's own backend
    torchrun --nproc-per-node 2 examples/pytorch/ddp.py --precision bf16 --hook bf16 --accumulate 4
    torchrun --nproc-per-node 2 examples/pytorch/ddp.py --checkpoint digits.pt --resume
"""
import argparse
import contextlib
import os

import digits
import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

HOOKS = {"fp16": default_hooks.fp16_compress_hook,
         # By its name DDP would refuse it where there is no GPU.
         "bf16": lambda group, bucket: default_hooks.bf16_compress_hook(group, bucket)}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="tutti")
    parser.add_argument("--init-method", default="env://", help="or tcp://HOST:PORT, file:///PATH")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--precision", choices=["fp32", "autocast-bf16", "autocast-fp16", "bf16"], default="fp32",
                        help="autocast: parameters stay in fp32, and fp16 has a GradScaler; bf16: the whole model is")
    parser.add_argument("--hook", choices=HOOKS, help="gradients travel in this type")
    parser.add_argument("--accumulate", type=int, default=1, metavar="N", help="one step of the optimizer for N batches")
    parser.add_argument("--checkpoint", metavar="FILE", help="written by rank 0 after each epoch")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint, if there is one")
    return parser.parse_args()


class Training:
    def __init__(self, told):
        self.told = told
        self.dtype = torch.bfloat16 if told.precision == "bf16" else torch.float32
        self.model = DistributedDataParallel(digits.network().to(self.dtype))
        if told.hook:
            self.model.register_comm_hook(None, HOOKS[told.hook])
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.scaler = torch.amp.GradScaler("cpu", enabled=told.precision == "autocast-fp16")
        self.losses = []  # one an epoch: the mean over batches and ranks
        self.batches = digits.share()

    def parts(self):
        """Everything that a checkpoint holds, beside the losses."""
        return {"model": self.model.module, "optimizer": self.optimizer, "scaler": self.scaler}

    def save(self):
        if dist.get_rank() == 0:
            state = {name: part.state_dict() for name, part in self.parts().items()}
            torch.save({**state, "losses": self.losses}, self.told.checkpoint + ".new")
            os.replace(self.told.checkpoint + ".new", self.told.checkpoint)

    def load(self):
        dist.barrier()  # nobody writes while others read
        if os.path.exists(self.told.checkpoint):
            state = torch.load(self.told.checkpoint, weights_only=True)
            for name, part in self.parts().items():
                part.load_state_dict(state[name])
            self.losses = state["losses"]

    def loss_of(self, images, labels):
        dtype = torch.float16 if self.told.precision == "autocast-fp16" else torch.bfloat16
        with torch.autocast("cpu", dtype, enabled=self.told.precision.startswith("autocast")):
            return cross_entropy(self.model(images.to(self.dtype)).float(), labels)

    def epoch(self):
        self.batches.sampler.set_epoch(len(self.losses))
        total = torch.zeros(())
        for number, (images, labels) in enumerate(self.batches, 1):
            # The gradients of all but the last batch of a step stay on this rank, and add up.
            complete = number % self.told.accumulate == 0 or number == len(self.batches)
            with contextlib.nullcontext() if complete else self.model.no_sync():
                loss = self.loss_of(images, labels)
                self.scaler.scale(loss / self.told.accumulate).backward()
            total += loss.detach()
            if complete:
                self.scaler.step(self.optimizer)
                self.scaler.update()
                self.optimizer.zero_grad()
        self.losses.append(digits.mean(total / len(self.batches)))

    def run(self):
        if self.told.resume:
            self.load()
        while len(self.losses) < self.told.epochs:
            self.epoch()
            if self.told.checkpoint:
                self.save()


def main():
    told = arguments()
    digits.join(told.backend, told.init_method)
    training = Training(told)
    training.run()
    digits.report(training.losses, digits.accuracy(training.model.module, training.dtype))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
