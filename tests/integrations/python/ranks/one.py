"""A rank for the tests of python -m tutti.run. Usage: one.py CASE"""
import os
import signal
import sys
import time
from pathlib import Path


def say(text):
    """A line in one piece: ranks share the output."""
    os.write(1, f"{text}\n".encode())


def show(_folder):
    names = ("TUTTI_RANK", "TUTTI_SIZE", "TUTTI_LOCAL_RANK", "RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR")
    port = "port" if int(os.environ["MASTER_PORT"]) > 0 else ""
    say(" ".join(os.environ[name] for name in names) + f" {port}")


def three(_folder):
    """The last rank fails; the others would stay for ever."""
    if os.environ["RANK"] == "1":
        sys.exit(3)
    time.sleep(600)


def signalled(folder):
    """Says that a signal has come, and ends well."""
    def end(number, _frame):
        Path(folder, f"got{os.environ['RANK']}").write_text(signal.Signals(number).name, encoding="utf-8")
        sys.exit(0)
    signal.signal(signal.SIGTERM, end)
    Path(folder, f"ready{os.environ['RANK']}").touch()
    time.sleep(600)


def torch(_folder):
    import torch.distributed as dist
    dist.init_process_group("gloo", init_method="env://")
    data = __import__("torch").ones(2)
    dist.all_reduce(data)
    say(f"sum {data[0].item()}")
    dist.destroy_process_group()


def exported(_folder):
    """PyTorch's env:// with nothing but what export_env() has set."""
    import tutti
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        del os.environ[name]
    with tutti.init() as comm:
        tutti.export_env(comm)
        torch(_folder)


globals()[sys.argv[1]](sys.argv[2] if len(sys.argv) > 2 else None)
