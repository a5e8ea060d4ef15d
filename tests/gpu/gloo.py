"""All-reduce by torch's Gloo between processes that share GPU 0: for comparison. Prints microseconds.

usage: gloo.py RANKS BYTES ITERATIONS"""
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as processes


def work(rank, ranks, size, iterations, meeting):
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=ranks)
    data = torch.zeros(max(1, size // 4), dtype=torch.float32, device="cuda:0")
    for _ in range(2):
        dist.all_reduce(data)
    torch.cuda.synchronize()
    dist.barrier()
    start = time.perf_counter()
    for _ in range(iterations):
        dist.all_reduce(data)
    torch.cuda.synchronize()
    if rank == 0:
        print(f"{(time.perf_counter() - start) / iterations * 1e6:.1f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    ranks, size, iterations = (int(word) for word in sys.argv[1:4])
    if not torch.cuda.is_available():
        sys.exit("torch was built without CUDA, or sees no GPU")
    with tempfile.TemporaryDirectory() as folder:
        meeting = os.path.join(folder, "meeting")
        processes.spawn(work, (ranks, size, iterations, meeting), nprocs=ranks)
