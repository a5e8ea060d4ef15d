"""One rank has a setting that no rank can have: it says so, and all others hear of it. Usage: unable.py WHICH"""
import os
import sys

import torch.distributed as dist

from case import TIMEOUT, say

wrong, rank, size = int(sys.argv[1]), int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
store = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), size, rank == 0, timeout=TIMEOUT)
if rank == wrong:
    os.environ["TUTTI_ALGO"] = "spiral"
try:
    dist.init_process_group("tutti", store=store, rank=rank, world_size=size, timeout=TIMEOUT)
except dist.DistBackendError as error:
    text = str(error)
    assert "spiral" in text and "timeout" not in text and text.count("tutti: ") == 1, text
    assert rank == wrong or f"rank {wrong} could not join" in text or wrong == 0, text
    say("well")
    others = [f"heard by {other}" for other in range(1, size) if other != wrong]
    if rank == 0 and wrong:  # what it hears it hears last, but waits for a second at most: too short for a busy machine
        store.wait(others)
    elif wrong and rank != wrong:
        store.set(f"heard by {rank}", "1")
    os._exit(0)  # rank 0 at once, with the store: all have heard it
