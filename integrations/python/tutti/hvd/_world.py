"""The job: joining and leaving it, and who this process is in it."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional, Union

import numpy
import torch

from tutti._core import Communicator
from tutti._environment import launch
from tutti._errors import InvalidArgument, InvalidUsage
from tutti._metrics import track
from tutti.hvd._engine import Engine, settings_of_all
from tutti.hvd._execution import Task
from tutti.hvd._handles import Handle
from tutti.hvd._process_sets import ProcessSet, global_process_set
from tutti.hvd._request import Request
from tutti.hvd._settings import settings


@dataclass(frozen=True)
class _World:
    engine: Engine
    local_ranks: Sequence[int]  # of each rank, as the next
    local_sizes: Sequence[int]
    process_sets: list[ProcessSet] = field(default_factory=list)  # of the program's, those that are in use


_world: Optional[_World] = None  # of this process; init() and shutdown() are one thread's


def _locals(comm: Communicator, launched: bool) -> tuple[list[int], list[int]]:
    """The number of each rank on its host, and how many are there: as the launcher says, or as is found."""
    told = launch() if launched else None
    own = (told.local_rank, told.local_size) if told else (-1, -1)
    everybody = numpy.zeros((comm.size, 2), "int64")
    comm.all_gather(numpy.array(own, "int64"), everybody)
    if (everybody < 0).any():  # of one rank it is not told: then all look
        with comm.split_by_host() as here:
            comm.all_gather(numpy.array([here.rank, here.size], "int64"), everybody)
    return everybody[:, 0].tolist(), everybody[:, 1].tolist()


def init(
    comm: Optional[Communicator] = None,
    process_sets: Optional[Iterable[Union[ProcessSet, Sequence[int]]]] = None,
    *,
    fusion_threshold: Optional[float] = None,
    cycle_time: Optional[float] = None,
    cache_capacity: Optional[float] = None,
    stall_warning: Optional[float] = None,
    stall_shutdown: Optional[float] = None,
    **communicator: Any,
) -> None:
    """Joins the job, as what the launcher's environment says, and starts the thread that runs operations. All ranks
    call it; once more does nothing.

    `comm`: the ranks of this communicator, which stays the caller's, instead of those of the environment.
    `process_sets`: sets of ranks that will be used, the same in the same order on all ranks. fusion_threshold (bytes;
    128 MiB), cycle_time (seconds that submitted operations wait for others to go with; 0.001), cache_capacity (names;
    1024), stall_warning and stall_shutdown (seconds; 60, and 0: never): rank 0's count, and the variables of Horovod
    win (docs/horovod.md). Other keyword arguments are those of tutti.Communicator.from_environment. Raises what joining
    does."""
    global _world
    if _world is not None:
        return
    own = settings(fusion_threshold, cycle_time, cache_capacity, stall_warning, stall_shutdown)
    sets = [each if isinstance(each, ProcessSet) else ProcessSet(each) for each in process_sets or ()]
    if comm is not None and not isinstance(comm, Communicator):
        raise InvalidArgument(f"comm is {comm!r}: it is a tutti.Communicator, and some of the ranks are a ProcessSet")
    if comm is None:
        control = Communicator.from_environment(**{"name": "hvd", **communicator})
    else:
        control = comm.duplicate(**{"name": "hvd", **communicator})
    data = control.duplicate(name="hvd data")
    track(data, "hvd")
    track(control, "hvd_control")
    local_ranks, local_sizes = _locals(data, comm is None)
    _world = _World(Engine(control, data, settings_of_all(data, own)), local_ranks, local_sizes)
    global_process_set.enter(0, data.rank, range(data.size))
    atexit.register(_leave_at_exit)
    try:
        for each in sets:
            add_process_set(each)
    except Exception as error:  # not to be half of what was asked for
        _leave(f"init() failed: {error}")
        raise


def _leave_at_exit() -> None:
    failed = getattr(sys, "last_value", None)
    _leave(f"its process ends with {type(failed).__name__}: {failed}" if failed is not None else "its process ends")


def _leave(reason: str) -> None:
    global _world
    world, _world = _world, None
    if world is not None:
        atexit.unregister(_leave_at_exit)
        global_process_set.enter(None, -1, ())
        for each in world.process_sets:  # in another job their numbers may be others' numbers
            each.enter(None, -1, each.ranks)
        world.engine.stop(reason)


def shutdown() -> None:
    """Leaves the job. What is under way, here and on other ranks, ends with an error, as does what they call later.
    Without init() it does nothing; and a process that ends does it by itself."""
    _leave("shutdown() was called")


def is_initialized() -> bool:
    """Whether init() has been called, and shutdown() not since."""
    return _world is not None


def _joined_world() -> _World:
    if _world is None:
        raise InvalidUsage("tutti.hvd is not initialized: call tutti.hvd.init() first")
    return _world


def engine() -> Engine:
    """The library's: what runs operations."""
    return _joined_world().engine


def rank() -> int:
    """The number of this process, from 0 on."""
    return engine().rank


def size() -> int:
    """How many processes there are."""
    return engine().size


def local_rank() -> int:
    """The number of this process among those of its host."""
    return _joined_world().local_ranks[rank()]


def local_size() -> int:
    """How many processes there are on this host."""
    return _joined_world().local_sizes[rank()]


def cross_rank() -> int:
    """The number of this process among those that have its local_rank(), on their hosts."""
    return _joined_world().local_ranks[: rank()].count(local_rank())


def cross_size() -> int:
    """How many processes have this one's local_rank()."""
    return _joined_world().local_ranks.count(local_rank())


def is_homogeneous() -> bool:
    """Whether there are as many processes on each host."""
    return len(set(_joined_world().local_sizes)) == 1


def stats() -> dict[str, float]:
    """What this rank has done since init(), as flat numbers: operations and bytes of the communicators
    ("all_reduce_operations" and so on, as Communicator.stats() has them, of all process sets together); "rounds" of
    negotiation, of these "exchanges_in_full", and "cache_hits". tutti.stats() has the communicators one by one: "hvd", of
    all ranks, "hvd_control", of the negotiation, and "hvd_process_set_1" and so on."""
    return engine().stats()


def _change(request: Request) -> int:
    task = Task(request, Handle(str(request)), torch.empty(0))
    engine().submit(task)
    return int(task.handle.wait())


def add_process_set(process_set: Union[ProcessSet, Sequence[int]]) -> ProcessSet:
    """Makes a set of ranks usable. All ranks call it, those outside too. Returns the set."""
    added = process_set if isinstance(process_set, ProcessSet) else ProcessSet(process_set)
    if not added.ranks or not 0 <= added.ranks[0] <= added.ranks[-1] < size():
        raise InvalidArgument(f"{added} is not one of ranks from 0 to {size() - 1}")
    name = "add_process_set " + ", ".join(map(str, added.ranks))
    added.enter(_change(Request(name, "add_process_set", shape=added.ranks)), rank(), added.ranks)
    _joined_world().process_sets.append(added)
    return added


def remove_process_set(process_set: ProcessSet) -> bool:
    """Frees a set of ranks; all ranks call it. False where it is not in use, or that of all ranks."""
    if not isinstance(process_set, ProcessSet):
        raise InvalidArgument(f"process_set is {process_set!r}: it is what add_process_set() has returned")
    number = process_set.process_set_id
    if not number:
        return False
    _change(Request(f"remove_process_set {number}", "remove_process_set", root=number))
    process_set.enter(None, rank(), process_set.ranks)
    return True
