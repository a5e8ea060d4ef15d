"""How operations that all ranks have agreed on run: on a communicator, with tensors as its buffers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

import torch
from torch import Tensor

from tutti._core import Communicator
from tutti._metrics import track
from tutti.hvd._fusion import Batch
from tutti.hvd._handles import Handle
from tutti.hvd._negotiation import Ready
from tutti.hvd._request import Request
from tutti.hvd._scaling import scale


@dataclass(frozen=True)
class Task:
    """An operation that this rank has submitted. Tensors are contiguous, and its own until it has ended."""

    request: Request
    handle: Handle
    input: Tensor
    output: Optional[Tensor] = None  # where the result has the shape of the input; may be the input


def _op(request: Request) -> Any:
    return request.op  # one of the communicator's names: operator() has seen to it


def rows_of(whole: int, ranks: int) -> list[int]:
    """Of so many rows a share for each rank; the first ones get one more where they do not come out even."""
    return [whole // ranks + (rank < whole % ranks) for rank in range(ranks)]


def _neutral(request: Request) -> Tensor:
    """What changes nothing in the reduction, and is not scaled: the part of a rank that has joined."""
    dtype = getattr(torch, request.dtype)
    if request.op in ("sum", "avg"):
        return torch.zeros(request.shape, dtype=dtype)
    if request.op == "prod":
        return torch.ones(request.shape, dtype=dtype)
    is_min = request.op == "min"
    if dtype.is_floating_point:
        most = torch.finfo(dtype).max if dtype == torch.float8_e4m3fn else float("inf")  # that type has no infinity
        return torch.full(request.shape, most if is_min else -most).to(dtype)
    if dtype == torch.bool:
        return torch.full(request.shape, is_min, dtype=dtype)
    limits = torch.iinfo(dtype)
    return torch.full(request.shape, limits.max if is_min else limits.min, dtype=dtype)


class Execution:
    """The communicator of each process set, and what runs on it. Used by one thread."""

    def __init__(self, comm: Communicator) -> None:
        self.comms: dict[int, Communicator] = {0: comm}
        self.sets: dict[int, tuple[int, ...]] = {0: tuple(range(comm.size))}
        self._rank = comm.rank
        self._buffers: dict[torch.dtype, Tensor] = {}

    def add_set(self, number: int, ranks: Sequence[int]) -> None:
        """All ranks call it."""
        child = self.comms[0].split(0 if self._rank in ranks else None, self._rank, name=f"hvd process set {number}")
        self.sets[number] = tuple(ranks)
        if child is not None:
            self.comms[number] = track(child, f"hvd_process_set_{number}")

    def remove_set(self, number: int) -> None:
        """All ranks call it."""
        del self.sets[number]
        if number in self.comms:
            self.comms.pop(number).destroy()

    def run(self, batch: Batch, tasks: Sequence[Optional[Task]]) -> list[Any]:
        """The result for each task; those of None, of a rank that has joined, are nobody's."""
        request = batch.ready[0].request
        comm = self.comms[request.process_set]
        if request.kind == "allreduce":
            return self._allreduce(comm, batch, tasks)
        return [getattr(self, "_" + request.kind)(comm, batch.ready[0], tasks[0])]

    def stats(self) -> dict[str, float]:
        """Of all process sets' communicators together. Whom they waited for is left to tutti.stats(): a rank has another
        number in each."""
        total: dict[str, float] = {}
        for comm in self.comms.values():
            for key, value in comm.stats().items():
                if key not in ("rank", "size") and not key.startswith("wait_for_rank_"):
                    total[key] = total.get(key, 0.0) + value
        total["bus_bandwidth"] = total["bus_bytes"] / total["seconds"] if total["seconds"] else 0.0
        return total

    def abort(self) -> None:
        """At once, for all ranks."""
        for comm in self.comms.values():
            comm.abort()

    def destroy(self) -> None:
        """In good order."""
        for comm in self.comms.values():
            comm.destroy()

    # --- one kind each ---

    def _allreduce(self, comm: Communicator, batch: Batch, tasks: Sequence[Optional[Task]]) -> list[Any]:
        if len(tasks) == 1:
            return [self._allreduce_alone(comm, batch.ready[0].request, tasks[0])]
        request = batch.ready[0].request
        fused = self._buffer(getattr(torch, request.dtype), sum(ready.request.elements for ready in batch.ready))
        parts = torch.split(fused, [ready.request.elements for ready in batch.ready])
        for part, ready, task in zip(parts, batch.ready, tasks):
            part.copy_((task.input if task else _neutral(ready.request)).reshape(-1))
            if task:
                scale(part, ready.request.prescale)
        comm.all_reduce(fused, op=_op(request))
        return [self._taken_out(part, task) for part, task in zip(parts, tasks)]

    def _taken_out(self, part: Tensor, task: Optional[Task]) -> Optional[Tensor]:
        if task is None or task.output is None:
            return None
        task.output.reshape(-1).copy_(part)
        scale(task.output, task.request.postscale)
        return task.output

    def _allreduce_alone(self, comm: Communicator, request: Request, task: Optional[Task]) -> Tensor:
        send = task.input if task else _neutral(request)
        recv = send if task is None or task.output is None else task.output
        if task and request.prescale != 1:
            send = recv.copy_(send)
            scale(send, request.prescale)
        if send.data_ptr() == recv.data_ptr():
            comm.all_reduce(recv, op=_op(request))
        else:
            comm.all_reduce(send, recv, _op(request))
        scale(recv, request.postscale)
        return recv

    def _buffer(self, dtype: torch.dtype, elements: int) -> Tensor:
        """One for each type, kept: memory that is new costs as much as the copy into it."""
        kept = self._buffers.get(dtype)
        if kept is None or kept.numel() < elements:
            kept = self._buffers[dtype] = torch.empty(elements, dtype=dtype)
        return kept[:elements]

    def _allgather(self, comm: Communicator, ready: Ready, task: Optional[Task]) -> tuple[Tensor, list[int]]:
        """The result, and how many rows of it are each rank's."""
        request = ready.request
        told = [ready.requests[rank] for rank in self.sets[request.process_set]]
        rows = [each.shape[0] if each else 0 for each in told]
        send = task.input if task else torch.empty((0, *request.shape[1:]), dtype=getattr(torch, request.dtype))
        recv = torch.empty((sum(rows), *request.shape[1:]), dtype=send.dtype)
        width = recv[:1].numel()
        comm.all_gather(send, recv, [width * each for each in rows])
        return recv, rows

    def _broadcast(self, comm: Communicator, ready: Ready, task: Optional[Task]) -> Tensor:
        request = ready.request
        if task is None or task.output is None:
            buffer = torch.empty(request.shape, dtype=getattr(torch, request.dtype))
        else:
            buffer = task.output
            if self._rank == request.root and buffer is not task.input:
                buffer.copy_(task.input)
        comm.broadcast(buffer, self.sets[request.process_set].index(request.root))
        return buffer

    def _alltoall(self, comm: Communicator, ready: Ready, task: Task) -> tuple[Tensor, list[int]]:
        """The result, and how many rows of it came from each rank."""
        told = [request for request in ready.requests if request is not None]
        rows = [request.splits[comm.rank] for request in told]
        recv = torch.empty((sum(rows), *task.input.shape[1:]), dtype=task.input.dtype)
        width = recv[:1].numel() if sum(rows) else task.input[:1].numel()
        comm.all_to_all(
            task.input, recv, [width * each for each in task.request.splits], [width * each for each in rows]
        )
        return recv, rows

    def _reducescatter(self, comm: Communicator, ready: Ready, task: Task) -> Tensor:
        request = ready.request
        rows = rows_of(request.shape[0], comm.size)
        send = task.input
        if request.prescale != 1:
            send = send.clone()
            scale(send, request.prescale)
        recv = torch.empty((rows[comm.rank], *request.shape[1:]), dtype=send.dtype)
        width = send[:1].numel()
        comm.reduce_scatter(send, recv, _op(request), [width * each for each in rows])
        scale(recv, request.postscale)
        return recv

    def _barrier(self, _comm: Communicator, _ready: Ready, _task: Optional[Task]) -> None:
        """That all ranks have agreed on it is all there is to a barrier."""
