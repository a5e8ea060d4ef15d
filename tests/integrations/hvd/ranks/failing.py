"""Ranks that stall, leave, die or fork. Usage: failing.py CASE..."""

import os
import signal
import sys
import time

import jobs
import torch

import tutti
import tutti.hvd as hvd
from tutti.hvd._world import engine


def say(text):
    """A line in one piece: ranks share the output."""
    os.write(1, f"{text}\n".encode())


def failure(kind, call, *arguments, **keywords):
    try:
        while True:
            call(*arguments, **keywords)
    except kind as error:
        return str(error)


def reduce(name):
    return hvd.allreduce(torch.ones(2), name=name)


def stalled():
    """Rank 0 tells of what one rank alone waits for, new or known, and nothing is lost."""
    hvd.init(stall_warning=0.2)
    reduce("known")
    late = hvd.rank() == 1
    early = [hvd.allreduce_async(torch.ones(2), name=name, op=hvd.Sum) for name in ("known", "new")] if not late else []
    if late:
        hvd.synchronize(hvd.allreduce_async(torch.ones(1), name="first"))
        time.sleep(1)
        early = [hvd.allreduce_async(torch.ones(2), name=name, op=hvd.Sum) for name in ("new", "known")]
    else:
        hvd.allreduce(torch.ones(1), name="first")
    for handle in early:
        assert hvd.synchronize(handle).tolist() == [hvd.size()] * 2
    hvd.barrier()
    hvd.shutdown()


def given_up():
    """An error on all ranks, whether they wait or come later."""
    hvd.init(stall_warning=0.3, stall_shutdown=0.5)
    if hvd.rank() != 1:
        text = failure(tutti.Timeout, reduce, "missing")
    else:
        text = failure(tutti.Timeout, lambda: time.sleep(0.05) or hvd.broadcast_async(torch.ones(1), 0))
    assert (
        "have waited for ranks that have not submitted them" in text
        and "allreduce of 'missing': waits for rank 1" in text
    ), text
    hvd.shutdown()


def silent():
    """Nothing is reported, but given up it is."""
    hvd.init()
    reduce("known")
    if hvd.rank() == 0:
        text = failure(tutti.Timeout, reduce, "known")
        assert "allreduce of 'known': waits for rank 1" in text, text
    else:
        failure(tutti.Timeout, lambda: time.sleep(0.05) or hvd.broadcast_async(torch.ones(1), 0))


def killed():
    """The others hear who it was: those that wait, and those that come later."""
    hvd.init()
    ended = jobs.put_off_the_end()
    reduce("a")
    if hvd.rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    waiting = hvd.allreduce_async(torch.ones(2), name="waiting")
    for call in (lambda: hvd.synchronize(waiting), lambda: reduce("later"), hvd.join, hvd.stats, hvd.barrier):
        text = failure(tutti.RemoteError, call)
        assert "rank 1" in text and "left" in text, text
    hvd.shutdown()
    say("survived")
    ended()


def killed_within():
    """In the middle of what all have agreed on."""
    hvd.init()
    ended = jobs.put_off_the_end()
    if hvd.rank() == 1:
        execution = engine()._execution  # pylint: disable=protected-access
        execution.run = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    handles = [hvd.allreduce_async(torch.ones(size), name=f"{size}") for size in (1, 100_000)]
    handles.append(hvd.broadcast_async(torch.ones(3), 1))
    for handle in handles:
        text = failure(tutti.RemoteError, hvd.synchronize, handle)
        assert "rank 1" in text and "left" in text, text
    say("survived")
    ended()


def left():
    """One that calls shutdown() while others wait."""
    hvd.init()
    reduce("a")
    if hvd.rank() == 1:
        hvd.shutdown()
    else:
        text = failure(tutti.RemoteError, reduce, "b")
        assert "rank 1 has left: shutdown() was called" in text, text
        hvd.shutdown()
    hvd.init()  # all once more
    reduce("c")
    hvd.shutdown()


def ended():
    """One whose process ends, by an exception of its own, while others wait: these hear of it, and why."""
    hvd.init()
    reduce("a")
    if hvd.rank() == 1:
        raise ValueError("on purpose")
    text = failure(tutti.RemoteError, reduce, "b")
    assert "rank 1 has left: its process ends with ValueError: on purpose" in text, text
    say("survived")
    ended()


def ends_without_a_word():
    """All ranks return from their scripts with nothing under way, and do not call shutdown()."""
    hvd.init()
    reduce("a")


def forked():
    """A child, as of a DataLoader, has no part in the job, and its end means nothing."""
    hvd.init()
    reduce("a")
    child = os.fork()
    if child == 0:
        try:
            reduce("b")
        except tutti.InvalidUsage as error:
            os._exit(7 if "this process was forked" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    reduce("b")
    hvd.shutdown()


for case in sys.argv[1:]:
    globals()[case]()
say("well")
