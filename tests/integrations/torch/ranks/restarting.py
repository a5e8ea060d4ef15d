"""Trains with a checkpoint an epoch; in the first attempt rank 1 is killed in the middle of one. Usage: restarting.py FOLDER [KILL]"""
import os
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from case import TIMEOUT, say
from digits import batches, fresh

EPOCHS = 5

folder, kills = Path(sys.argv[1]), len(sys.argv) > 2
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
dist.init_process_group("tutti", timeout=TIMEOUT)
model = DDP(fresh())
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
checkpoint = folder / "checkpoint.pt"
first = 0
if checkpoint.exists():
    saved = torch.load(checkpoint)
    model.module.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    first = saved["epoch"] + 1
loader, sampler = batches()
for epoch in range(first, EPOCHS):
    sampler.set_epoch(epoch)
    for step, (images, labels) in enumerate(loader):
        if kills and attempt == 0 and (epoch, step, dist.get_rank()) == (2, 5, 1):
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
    if dist.get_rank() == 0:
        torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, folder / "new.pt")
        os.replace(folder / "new.pt", checkpoint)
    dist.barrier()
if dist.get_rank() == 0:
    torch.save([parameter.detach() for parameter in model.parameters()], folder / "trained.pt")
    say(f"attempt {attempt} began with epoch {first}, last loss {loss.item():.6f}")
dist.destroy_process_group()
say("well")
