"""The thread in which operations are agreed on and run, and what other threads hand to it."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Callable, Optional

import numpy

from tutti._core import Communicator
from tutti._errors import Error, InternalError, InvalidUsage, RemoteError, Timeout, error_of
from tutti.hvd._execution import Execution, Task
from tutti.hvd._fusion import Batch, batches
from tutti.hvd._handles import Handle
from tutti.hvd._negotiation import End, Negotiation, Ready
from tutti.hvd._request import Key, Request, named
from tutti.hvd._settings import Settings

_LOG = logging.getLogger("tutti.hvd")
_IDLE_SECONDS = 0.05  # how often a rank that wants nothing looks after those that do
_LEAVING_SECONDS = 10.0  # how long one that leaves waits for the others to hear of it


class OnCommunicator:
    """The exchange of a negotiation, on a communicator of its own."""

    def __init__(self, comm: Communicator) -> None:
        self._comm = comm

    def all_and(self, words: int, size: int) -> int:
        """As Exchange says."""
        buffer = numpy.frombuffer(bytearray(words.to_bytes(size, "little")), "uint8")
        self._comm.all_reduce(buffer, op="band")
        return int.from_bytes(buffer.tobytes(), "little")

    def all_gather(self, words: bytes) -> list[bytes]:
        """As Exchange says."""
        sizes = numpy.zeros(self._comm.size, "int64")
        self._comm.all_gather(numpy.array([len(words)]), sizes)
        all_words = numpy.zeros(int(sizes.sum()), "uint8")
        self._comm.all_gather(numpy.frombuffer(words, "uint8"), all_words, sizes.tolist())
        text, ends = all_words.tobytes(), numpy.cumsum(sizes).tolist()
        return [text[end - size : end] for end, size in zip(ends, sizes.tolist())]


class Engine:
    """One rank's. submit() and what is below it: any thread."""

    def __init__(self, control: Communicator, data: Communicator, settings: Settings) -> None:
        self.rank, self.size = control.rank, control.size
        self.settings = settings
        self._control = control
        self._execution = Execution(data)
        self._negotiation = Negotiation(
            control.rank, control.size, OnCommunicator(control), int(settings.cache_capacity)
        )
        self._tasks: dict[Key, Task] = {}  # submitted and not ended
        self._submitted: list[Request] = []  # of these those of which the thread has not heard
        self._questions: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._joining: list[Handle] = []
        self._joins = False  # which the thread has not heard of
        self._leaving: Optional[str] = None
        self._failure: Optional[tuple[int, str]] = None
        self._wake = threading.Condition()  # guards all of these
        self._unnamed: Counter[tuple[str, int]] = Counter()
        self._process = os.getpid()
        self._warned = time.monotonic()
        self._sets_made = 0
        self._thread = threading.Thread(target=self._run, name="tutti.hvd", daemon=True)
        self._thread.start()

    # --- of other threads ---

    def submit(self, *tasks: Task) -> None:
        """Hands operations over, which are heard of together. Raises where one of the name of any is under way, or
        nothing goes any more: then none is."""
        with self._usable():
            new = {task.request.key: task for task in tasks}
            for task in tasks:
                if task.request.key in self._tasks or new[task.request.key] is not task:
                    raise InvalidUsage(
                        f"{task.request} is under way already: wait for it first, or give this one another name"
                    )
            self._tasks.update(new)
            self._submitted += [task.request for task in tasks]
            self._wake.notify()

    def next_number(self, kind: str, process_set: int) -> int:
        """Counts calls without a name."""
        with self._usable():
            self._unnamed[kind, process_set] += 1
            return self._unnamed[kind, process_set]

    def join(self) -> Handle:
        """This rank has no more tensors. Its handle's result is the rank that joined last."""
        with self._usable():
            under_way = list(self._tasks.values())
        for task in under_way:
            task.handle.settle()
        handle = Handle("join")
        with self._usable():
            self._joining.append(handle)
            self._joins = True
            self._wake.notify()
        return handle

    def ask(self, question: Callable[[], Any]) -> Any:
        """What the thread answers between two rounds: communicators are used by one thread."""
        handle = Handle("a question")

        def answer() -> None:
            try:
                handle.succeed(question())
            except Error as error:
                handle.fail(error.code, str(error))

        with self._usable():
            self._questions.put(answer)
            self._wake.notify()
        return handle.wait()

    def stats(self) -> dict[str, float]:
        """What was done: the communicators' numbers, and the negotiation's."""
        return dict(self.ask(lambda: {**self._execution.stats(), **self._negotiation.counts}))

    def stop(self, reason: str) -> None:
        """Tells the others that this rank leaves, and ends the thread; what is under way ends with an error,
        everywhere."""
        if self._process != os.getpid():
            return
        with self._wake:
            self._leaving = reason
            self._wake.notify()
        self._thread.join(_LEAVING_SECONDS)
        if self._thread.is_alive():
            self._execution.abort()
            self._control.abort()
            self._thread.join(_LEAVING_SECONDS)

    @contextlib.contextmanager
    def _usable(self) -> Iterator[None]:
        """With the lock, where something still goes. A child of a fork must not touch it: somebody may hold it for
        ever."""
        if self._process != os.getpid():
            raise InvalidUsage(
                "this process was forked from one that called tutti.hvd.init(), and has no part in the job"
            )
        with self._wake:
            if self._failure is not None:
                raise error_of(*self._failure)
            yield

    # --- of the thread ---

    def _run(self) -> None:
        try:
            while self._negotiation.end is None:
                self._rest()
                self._take()
                self._round()
                self._look_for_stalls()
            self._finish(*_outcome(self._negotiation.end, self.rank))
            self._execution.destroy()
            self._control.destroy()
        except Error as error:
            self._give_up(error.code, str(error))
        except Exception as error:  # whatever it is, nobody may wait for ever
            self._give_up(
                InternalError.code, f"rank {self.rank}'s thread of tutti.hvd failed: {type(error).__name__}: {error}"
            )
            _LOG.exception("tutti.hvd: rank %d", self.rank)

    def _rest(self) -> None:
        """Until there is something to do; what other threads hand over in a cycle's time goes together."""
        if not self._wanted():
            others = self._negotiation.others_busy and len(self._execution.sets) > 1
            pause = self.settings.cycle_time if self._negotiation.is_busy or others else _IDLE_SECONDS
            with self._wake:
                self._wake.wait_for(self._wanted, pause)
        if self._submitted:
            time.sleep(self.settings.cycle_time)

    def _wanted(self) -> bool:
        return bool(self._submitted or self._joins or self._leaving or not self._questions.empty())

    def _take(self) -> None:
        with self._wake:
            submitted, self._submitted = self._submitted, []
            joins, self._joins = self._joins, False
        for request in submitted:
            self._negotiation.submit(request)
        if joins:
            self._negotiation.join()
        if self._leaving is not None:
            self._negotiation.leave(self._leaving)
        while not self._questions.empty():
            self._questions.get()()

    def _round(self) -> None:
        for batch in batches(self._negotiation.round(), self.settings.fusion_threshold):
            self._carry_out(batch)
        joined = self._negotiation.joined
        if len(joined) == self.size:
            with self._wake:
                joining, self._joining = self._joining, []
            for handle in joining:
                handle.succeed(joined[-1])
            joined.clear()

    def _carry_out(self, batch: Batch) -> None:
        tasks = [self._task(ready) for ready in batch.ready]
        error = batch.ready[0].error or self._gone(batch.ready[0].request)
        if error:
            self._fail(tasks, InvalidUsage.code, error)
            return
        try:
            results = self._results(batch, tasks)
        except Exception as error:
            self._fail(tasks, error.code if isinstance(error, Error) else InternalError.code, str(error))
            raise
        for task, result in zip(tasks, results):
            if task is not None:
                task.handle.succeed(result)

    def _gone(self, request: Request) -> Optional[str]:
        """What is wrong with one that was agreed on together with the end of its process set."""
        return None if request.process_set in self._execution.sets else "its process set has been removed"

    def _results(self, batch: Batch, tasks: Sequence[Optional[Task]]) -> Sequence[Any]:
        request = batch.ready[0].request
        if request.kind == "add_process_set":
            return [self._add_set(request)]
        if request.kind == "remove_process_set":
            return [self._remove_set(request.root)]
        if self.rank not in self._execution.sets[request.process_set]:
            return []
        return self._execution.run(batch, tasks)

    def _task(self, ready: Ready) -> Optional[Task]:
        """This rank's. Where it has not submitted what ends, one of that name is another, which was handed over as soon
        as its caller had heard of an error in the same round."""
        if ready.requests[self.rank] is None:
            return None
        with self._wake:
            return self._tasks.pop(ready.request.key, None)

    def _fail(self, tasks: Sequence[Optional[Task]], code: int, text: str) -> None:
        for task in tasks:
            if task is not None:
                task.handle.fail(code, text)

    def _add_set(self, request: Request) -> int:
        self._sets_made += 1
        self._execution.add_set(self._sets_made, request.shape)
        self._negotiation.sets[self._sets_made] = request.shape
        return self._sets_made

    def _remove_set(self, number: int) -> int:
        lost = self._negotiation.forget_set(number)
        self._execution.remove_set(number)
        with self._wake:
            tasks = [self._tasks.pop(key) for key in lost]
        self._fail(tasks, InvalidUsage.code, "its process set has been removed")
        return number

    # --- stalls ---

    def _look_for_stalls(self) -> None:
        warning, end = self.settings.stall_warning, self.settings.stall_shutdown
        self._negotiation.say_again(min(warning, end or warning))
        if self.rank != 0:
            return
        now = time.monotonic()
        if now - self._warned > warning and (waiting := self._negotiation.waiting(warning)):
            _LOG.warning("tutti.hvd: %s", _told_late(warning, waiting))
            self._warned = now
        if end and (late := self._negotiation.waiting(end)):
            self._negotiation.leave(_told_late(end, late), is_stall=True)

    # --- the end ---

    def _finish(self, code: int, text: str) -> None:
        """Nothing goes any more: all that wait hear why."""
        with self._wake:
            self._failure = code, text
            tasks, self._tasks = list(self._tasks.values()), {}
            joining, self._joining = self._joining, []
        self._fail(tasks, code, text)
        for handle in joining:
            handle.fail(code, text)
        while not self._questions.empty():
            self._questions.get()()

    def _give_up(self, code: int, text: str) -> None:
        self._finish(code, text)
        self._execution.abort()
        self._control.abort()


def _told_late(seconds: float, waiting: Sequence[tuple[Request, list[int]]]) -> str:
    lines = (
        f"\n  {request}: waits for {named(missing) if missing else 'the rest of its group'}"
        for request, missing in waiting
    )
    return (
        f"for more than {seconds:g} s operations have waited for ranks that have not submitted them, as where ranks"
        f" take different branches:{''.join(lines)}"
    )


def _outcome(end: End, rank: int) -> tuple[int, str]:
    """What those are told that wait, or come later."""
    if end.is_stall:
        return Timeout.code, end.text
    if end.rank == rank:
        return InvalidUsage.code, f"tutti.hvd was shut down on this rank: {end.text}; call tutti.hvd.init() first"
    return (
        RemoteError.code,
        (
            f"rank {end.rank} has left: {end.text}; tutti.hvd has ended on all ranks. Call shutdown(), then "
            "init(), to begin again"
        ),
    )


def settings_of_all(comm: Communicator, own: Settings) -> Settings:
    """Rank 0's, on every rank."""
    numbers = numpy.array(own.numbers())
    comm.broadcast(numbers)
    return Settings.of(numbers.tolist())
