"""Starts a program once for each rank, with the environment that a launcher would give it."""
import os
import secrets
import socket
import subprocess
import time


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def launch(command, ranks, extra=None, timeout=120):
    """Runs `command` on `ranks` local ranks. Returns the (status, output) of each, in rank order.

    Ranks that outlive `timeout` seconds, all together, are ended and have the status None.
    """
    common = {"TUTTI_SIZE": str(ranks), "TUTTI_ROOT": f"127.0.0.1:{free_port()}", "TUTTI_SECRET": secrets.token_hex(16)}
    processes = [
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         env={**os.environ, **common, "TUTTI_RANK": str(rank), **(extra or {})})
        for rank in range(ranks)]
    deadline = time.monotonic() + timeout
    return [finish(process, deadline) for process in processes]


def finish(process, deadline):
    try:
        output, _ = process.communicate(timeout=max(0.0, deadline - time.monotonic()))
        return process.returncode, output
    except subprocess.TimeoutExpired:
        process.kill()
        return None, process.communicate()[0]
