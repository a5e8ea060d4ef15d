"""The last rank never comes: the others say so. Usage: absent.py"""
import os
import sys
from datetime import timedelta

import torch.distributed as dist

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
store = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), size, rank == 0, timeout=timedelta(seconds=60))
if rank == size - 1:
    store.wait(["told/0", "told/1"])
    sys.exit(0)
try:
    dist.init_process_group("tutti", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=2))
except dist.DistBackendError as error:
    assert f"did not come to make the group within 2000 ms: {size - 1} (of {size})" in str(error), error
    store.set(f"told/{rank}", "1")
    if rank == 0:
        store.wait(["told/1"])  # it has the store
    os.write(1, b"well\n")
