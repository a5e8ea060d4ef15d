"""One rank is killed while all train; the others raise an exception that names it, from then on also where they would send it their
first message, or wait for one. Usage: killed.py [message], which has had one before."""
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

from case import TIMEOUT, say

dist.init_process_group("tutti", timeout=TIMEOUT)
rank, size = dist.get_rank(), dist.get_world_size()
store = dist.distributed_c10d._get_default_store()
tensor = torch.ones(100_000)
last = size - 1
def raised(call, *arguments):
    try:
        call(*arguments)
    except dist.DistBackendError as error:
        return str(error)
    raise AssertionError(f"{call.__name__}{arguments} raised nothing")


def exchange():
    """A message each way between rank 0 and the last."""
    if rank == last:
        dist.recv(torch.empty(2), 0)
        dist.send(torch.ones(2), 0)
    elif rank == 0:
        dist.send(torch.ones(2), last)
        dist.recv(torch.empty(2), last)


if sys.argv[1:] == ["message"]:
    exchange()
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
    told = {"send": raised(dist.send, torch.ones(2), last), "recv": raised(dist.recv, torch.ones(2), last),
            "from any": raised(dist.recv, torch.ones(2))}
    for name, text in told.items():
        assert f"rank {last}" in text and "timeout" not in text, (name, text)
    if sys.argv[1:] == ["message"] and rank == 0:
        assert f"a message from rank {last} to rank 0 failed. In what follows they are 0 and 1: rank 0 (" in told["recv"], told
        assert f"a message from rank 0 to rank {last} failed" in told["send"], told
    store.add("heard", 1)
    while rank == 0 and store.add("heard", 0) < last:  # it has the store
        time.sleep(0.01)
    say("well")
