"""One rank is killed while all train; the others raise an exception that names it."""
import os
import signal
import time

import torch
import torch.distributed as dist

from case import TIMEOUT, say

dist.init_process_group("tutti", timeout=TIMEOUT)
rank, size = dist.get_rank(), dist.get_world_size()
store = dist.distributed_c10d._get_default_store()
tensor = torch.ones(100_000)
last = size - 1
try:
    for step in range(100_000):
        if step == 20 and rank == last:
            store.set("killed", str(time.time()))
            os.kill(os.getpid(), signal.SIGKILL)
        dist.all_reduce(tensor, op=dist.ReduceOp.AVG)
except dist.DistBackendError as error:
    heard = time.time()
    assert f"rank {last}" in str(error) and f"of {size}" not in str(error), error
    say(f"rank {rank} raised {heard - float(store.get('killed')):.2f} s after the end of rank {last}: {str(error).splitlines()[0]}")
    store.add("heard", 1)
    while rank == 0 and store.add("heard", 0) < last:  # it has the store
        time.sleep(0.01)
    say("well")
