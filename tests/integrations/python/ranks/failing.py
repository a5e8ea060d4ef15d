"""Ranks that fail, each in its way. Usage: failing.py CASE"""
import os
import signal
import sys
import threading
import time

import numpy

import jobs
import tutti


def killed(comm):
    """The survivors hear who it was, and go on without."""
    ended = jobs.put_off_the_end()
    try:
        comm.barrier()  # all have joined
        if comm.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        while True:
            comm.all_reduce(numpy.ones(1000))
    except tutti.RemoteError as error:
        assert "rank 1" in str(error) and "left" in str(error), error
        assert comm.error is not None and "rank 1" in comm.error
    with comm.shrink() as fewer:
        data = numpy.ones(3)
        fewer.all_reduce(data)
        assert (data == comm.size - 1).all()
    print("survived", flush=True)
    ended()


def mismatch(comm):
    try:
        comm.all_reduce(numpy.ones(8 if comm.rank else 9))
    except tutti.InvalidUsage as error:
        assert "calls do not match" in str(error), error
    else:
        raise AssertionError("no error")


def late(comm):
    with comm.duplicate(operation_timeout=0.3) as hasty:
        if comm.rank == 0:
            try:
                hasty.all_reduce(numpy.ones(1))
            except tutti.Timeout as error:
                assert isinstance(error, TimeoutError) and "rank 1" in str(error), error
            else:
                raise AssertionError("no error")
        comm.barrier()


def interrupted(comm):
    """Ctrl-C while a rank waits for one that does not come; the block then aborts, and the other hears of it."""
    if comm.rank == 0:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        comm.all_reduce(numpy.ones(1))
        raise AssertionError("no interrupt")
    while comm.error is None:
        time.sleep(0.01)
    assert "rank 0" in comm.error, comm.error


def handled(comm):
    """A handler that raises nothing does not end the wait."""
    seen = []
    signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
    if comm.rank == 0:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1)).start()
    else:
        time.sleep(0.6)
    comm.barrier()
    assert len(seen) == (comm.rank == 0)


def raising(_comm):
    raise RuntimeError("on purpose")


def deserted():
    """A script that ends with an operation under way, and no block around it, does not wait for the others."""
    comm = tutti.init()
    if comm.rank == 0:
        globals().update(kept=comm, under_way=comm.all_reduce(numpy.ones(1), async_op=True))
        return
    while comm.error is None:
        time.sleep(0.01)
    assert "rank 0" in comm.error, comm.error


def main():
    if sys.argv[1] == "deserted":
        deserted()
    else:
        in_a_block()
    print("well")


def in_a_block():
    try:
        with tutti.init() as comm:
            globals()[sys.argv[1]](comm)
    except KeyboardInterrupt:
        assert sys.argv[1] == "interrupted" and not comm.is_open


main()
