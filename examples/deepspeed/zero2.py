"""Training with DeepSpeed, ZeRO stage 2: each rank keeps a part of the gradients and of the optimizer's state. zero2.json, which
lies beside this file, says how.

    DS_ACCELERATOR=cpu torchrun --nproc-per-node 2 examples/deepspeed/zero2.py
    DS_ACCELERATOR=cpu mpirun -np 2 python examples/deepspeed/zero2.py
    DS_ACCELERATOR=cpu torchrun --nproc-per-node 2 examples/deepspeed/zero2.py --precision fp32 --checkpoint digits-zero2
"""
import argparse
import json
import os
import sys
from datetime import timedelta
from pathlib import Path

import deepspeed
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "pytorch"))
import digits  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="tutti")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--precision", choices=["bf16", "fp16", "fp32"], default="bf16")
    parser.add_argument("--checkpoint", metavar="FOLDER", help="written by all ranks after each epoch")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint, if there is one")
    return parser.parse_args()


def join(backend):
    if "RANK" not in os.environ:  # mpirun, srun and others tell it in variables of their own
        import tutti
        tutti.export_env()
    # On CPU, for inference alone, and it takes a minute to compile: not needed here.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    deepspeed.init_distributed(dist_backend=backend, timeout=timedelta(minutes=30))


def engine_of(precision):
    """The network with its optimizer, as zero2.json wants it, in the precision that is told."""
    config = json.loads((HERE / "zero2.json").read_text(encoding="utf-8"))
    config["bf16"] = {"enabled": precision == "bf16"}
    config["fp16"] = {"enabled": precision == "fp16"}
    model = digits.network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    return engine


def epoch(engine, number, batches):
    dtype = next(engine.parameters()).dtype
    batches.sampler.set_epoch(number)
    total = torch.zeros(())
    for images, labels in batches:
        images, labels = images.to(engine.device, dtype), labels.to(engine.device)
        loss = cross_entropy(engine(images).float(), labels)
        engine.backward(loss)
        engine.step()
        total += loss.detach().cpu()
    return digits.mean(total / len(batches))


def main():
    told = arguments()
    join(told.backend)
    engine, batches = engine_of(told.precision), digits.share()
    losses = []
    if told.resume and os.path.exists(told.checkpoint):
        losses = engine.load_checkpoint(told.checkpoint)[1]["losses"]
    while len(losses) < told.epochs:
        losses.append(epoch(engine, len(losses), batches))
        if told.checkpoint:
            engine.save_checkpoint(told.checkpoint, client_state={"losses": losses})
    digits.report(losses, digits.accuracy(engine.module, next(engine.parameters()).dtype))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
