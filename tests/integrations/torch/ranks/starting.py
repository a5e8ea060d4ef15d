"""A user's script with no word of tutti but the backend's name. Usage: starting.py [BACKEND [INIT_METHOD]]"""
import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist

backend, method = [*sys.argv[1:], *["tutti", "env://"][len(sys.argv) - 1:]]
told = {} if method == "env://" else {"rank": int(os.environ["RANK"]), "world_size": int(os.environ["WORLD_SIZE"])}
dist.init_process_group(backend=backend, init_method=method, timeout=timedelta(minutes=30), **told)
tensor = torch.full((3,), dist.get_rank() + 1.0)
dist.all_reduce(tensor)
assert tensor.tolist() == [dist.get_world_size() * (dist.get_world_size() + 1) / 2] * 3
assert dist.group.WORLD._get_backend(torch.device("cpu")).name() == "tutti"
dist.destroy_process_group()
os.write(1, b"well\n")
