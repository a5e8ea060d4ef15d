"""The last rank does not come to an all-reduce: it waits for something of its own. Usage: hung.py SECONDS, of the group's time-out."""
import sys
from datetime import timedelta

import torch
import torch.distributed as dist

from case import TIMEOUT, say

dist.init_process_group("tutti", timeout=timedelta(seconds=float(sys.argv[1])))
rank, last = dist.get_rank(), dist.get_world_size() - 1
store = dist.distributed_c10d._get_default_store()
store.set_timeout(TIMEOUT)
for step in range(6):
    dist.all_reduce(torch.ones(100))
say("stands")
if rank == last:
    store.wait([f"heard/{other}" for other in range(last)])
    say("well")
    sys.exit(0)
try:
    dist.all_reduce(torch.ones(200))
except dist.DistBackendError as error:
    assert f"rank {last}" in str(error), error
store.set(f"heard/{rank}", "1")
if rank == 0:
    store.wait([f"heard/{other}" for other in range(last)])  # it has the store
say("well")
