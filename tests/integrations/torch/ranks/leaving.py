"""Ends as scripts end that wait for nothing: callbacks in Python are under way, or have yet to come. Usage: leaving.py HOW

HOW: well, all ranks take part; alone, the other never comes; failed, the other dies, which ends the
operations; received, those are messages, of which one is still wanted when all ends.
"""
import os
import sys
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


def receive(count):
    for _ in range(count):
        dist.irecv(torch.empty(10), 0).get_future().then(hear).then(hear)


if how == "well":
    begin(20)
elif how == "received":
    if rank == 0:
        for _ in range(5):
            dist.send(torch.ones(10), 1)
    else:
        receive(6)
        while not heard:
            time.sleep(0.001)
elif rank == 0:
    begin(5)
    if how == "failed":
        while not heard:
            time.sleep(0.001)
say("well")
if how == "failed" and rank == 1:
    os._exit(0)
