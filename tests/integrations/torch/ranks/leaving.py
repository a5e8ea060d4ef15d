"""Ends as scripts end that wait for nothing: callbacks in Python are under way, or have yet to come. Usage: leaving.py HOW

HOW: well, all ranks take part; alone, the other never comes; failed, the other dies, which ends the
operations; received, they are of messages, of which another is still wanted when all ends.
"""
import atexit
import os
import sys
import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from case import say

how = sys.argv[1]
dist.init_process_group("tutti", timeout=timedelta(seconds=60))
dist.barrier()
rank = dist.get_rank()
heard = []


def hear(done):
    """Takes Python's lock again and again, so that it is under way for long."""
    for _ in range(20):
        time.sleep(0.001)
    heard.append(done)


def begin(count):
    works = [dist.all_reduce(torch.ones(1000), async_op=True) for _ in range(count)]
    for work in works:
        work.get_future().then(hear).then(hear)


ending = threading.Event()


def hear_to_the_end(done):
    """Under way when the process begins to end, and for a while from then on."""
    heard.append(done)
    ending.wait()
    for _ in range(400):
        time.sleep(0.001)


def receive():
    atexit.register(ending.set)  # before the groups are told to leave: what was registered last is called first
    dist.irecv(torch.empty(10), 0).get_future().then(hear_to_the_end)
    dist.irecv(torch.empty(10), 0).get_future().then(hear)
    while not heard:
        time.sleep(0.001)


if how == "well":
    begin(20)
elif how == "received":
    receive() if rank == 1 else dist.send(torch.ones(10), 1)
elif rank == 0:
    begin(5)
    if how == "failed":
        while not heard:
            time.sleep(0.001)
say("well")
if how == "failed" and rank == 1:
    os._exit(0)
