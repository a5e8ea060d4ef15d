"""Collective communication between processes and machines, on numpy arrays and whatever speaks DLPack.

    import numpy, tutti
    with tutti.init() as comm:                  # who this process is, its launcher says
        x = numpy.full(1000, comm.rank, "float32")
        comm.all_reduce(x)                      # in place; ends when it is done
        request = comm.all_reduce(x, async_op=True)
        request.wait()

Buffers are handed over as they are, and nothing is copied: they must be C-contiguous, in host memory, and writable where an
operation writes. The rules of order, threads and fork are the library's: all ranks make the same calls in the same order; a
communicator is used by one thread at a time; a child made by fork makes communicators of its own. While a call waits, other
threads run, and in the main thread a signal's handler may end the wait by an exception: the operation then goes on, and the
communicator is to be aborted.
"""
from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Iterator
from typing import Any

from tutti import _core
from tutti._core import Communicator, Operator, Request, unique_id
from tutti._endpoint import Endpoint, serve_prometheus
from tutti._environment import Launch, export_env, launch
from tutti._errors import Error, InternalError, InvalidArgument, InvalidUsage, RemoteError, SystemFailure, Timeout
from tutti._metrics import known, prometheus, stats, track, write_prometheus

__all__ = [
    "Communicator", "Endpoint", "Error", "InternalError", "InvalidArgument", "InvalidUsage", "Launch", "Operator", "RemoteError",
    "Request", "SystemFailure", "Timeout", "dump", "explain", "export_env", "group", "init", "launch", "prometheus", "serve_prometheus",
    "stats", "track", "unique_id", "version", "write_prometheus",
]

__version__ = _core.version()
_default: weakref.ref[Communicator] | None = None


def version() -> str:
    """The version of the library, such as "0.2.0"."""
    return _core.version()


def init(**settings: Any) -> Communicator:
    """Joins as what the launcher's environment says; the same as Communicator.from_environment, and from then on what
    stats(), dump() and explain() of this module speak of. For the keyword arguments see that."""
    global _default
    comm = track(Communicator.from_environment(**settings), str(settings.get("name") or "world"))
    _default = weakref.ref(comm)
    return comm


def _default_communicator() -> Communicator:
    comm = _default() if _default is not None else None
    if comm is None or not comm.is_open:
        raise InvalidUsage("there is no communicator of tutti.init(): call it first, or the method of a communicator")
    return comm


@contextlib.contextmanager
def group() -> Iterator[None]:
    """Calls inside go out together, and run side by side: what a rank sends to several, or sends and receives. They end
    at the end of the block, but for requests, which are waited for by themselves, outside of it. Where the block ends by
    an exception, none of them is made. Communicators are made, split and destroyed outside of it."""
    _core.start_group()
    try:
        yield
    except BaseException:
        _core.abandon_group()
        raise
    _core.end_group()


def explain(collective: str, count: int, dtype: Any = "float32", comm: Communicator | None = None) -> str:
    """How a collective ("all-reduce", "all-gather", ...) of `count` elements would run on the communicator (tutti.init()'s
    unless told), and why: a line each for what was chosen, what comes next, and what was left out. Needs no other rank."""
    return (comm or _default_communicator()).explain(collective, count, dtype)


def dump(folder: str | os.PathLike[str], comm: Communicator | None = None) -> str:
    """Writes this rank's record for tutti-doctor into the folder, and returns its path. Without `comm` of tutti.init()'s
    communicator."""
    chosen = comm or _default_communicator()
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"tutti-rank{chosen.rank}-{os.getpid()}.json")
    chosen.dump(path)
    return path
