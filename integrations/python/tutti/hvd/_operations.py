"""The operations on tensors, by which name ranks find each other's, and what their handles give."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from typing import Any, Optional, Union

import torch
from torch import Tensor

from tutti._errors import InvalidArgument, InvalidUsage
from tutti.hvd._arguments import factor, text, whole, whole_numbers
from tutti.hvd._execution import Task
from tutti.hvd._fusion import ITEM_BYTES
from tutti.hvd._handles import AnyHandle, Chained, Handle, checked
from tutti.hvd._process_sets import ProcessSet, global_process_set
from tutti.hvd._request import UNNAMED, Request
from tutti.hvd._world import engine


class ReduceOp(enum.Enum):
    """How tensors of all ranks become one. The value is the communicator's name for it."""

    Average = "avg"
    Sum = "sum"
    Adasum = "adasum"
    Min = "min"
    Max = "max"
    Product = "prod"


Average, Sum, Adasum = ReduceOp.Average, ReduceOp.Sum, ReduceOp.Adasum
Min, Max, Product = ReduceOp.Min, ReduceOp.Max, ReduceOp.Product


def name_of(kind: str, name: Optional[str], process_set: ProcessSet) -> str:
    """A name for the ranks to find each other by; without one the number of the call, which is then the same on all."""
    if name is not None:
        return text(name, "name")
    return f"{kind}{UNNAMED}{engine().next_number(kind, _number_of(process_set))}"


def operator(average: Optional[bool], op: Optional[ReduceOp]) -> ReduceOp:
    """What is meant by Horovod's older argument and its newer one."""
    if average is not None and op is not None:
        raise InvalidArgument("average and op are both given: give op alone")
    chosen = op if op is not None else Average if average is None or average else Sum
    if not isinstance(chosen, ReduceOp):
        raise InvalidArgument(f"op is {op!r}: choose one of Average, Sum, Min, Max, Product of tutti.hvd")
    if chosen is Adasum:
        raise NotImplementedError(
            "tutti.hvd has no Adasum: choose Average or Sum, and a learning rate for the whole batch"
        )
    return chosen


def _number_of(process_set: ProcessSet) -> int:
    if process_set is global_process_set:
        return 0
    if not isinstance(process_set, ProcessSet):
        raise InvalidArgument(f"process_set is {process_set!r}: it is a ProcessSet, as add_process_set() returns it")
    if process_set.process_set_id is None:
        raise InvalidUsage(f"{process_set} is not known: give it to init() or add_process_set() first, on all ranks")
    if not process_set.included():
        raise InvalidUsage(f"rank {engine().rank} is not in {process_set}: only its ranks call operations of it")
    return process_set.process_set_id


def _type_of(tensor: Tensor, call: str) -> str:
    if not isinstance(tensor, Tensor):
        raise InvalidArgument(f"{call} got a {type(tensor).__name__}: it takes tensors of PyTorch (torch.as_tensor())")
    if tensor.device.type != "cpu" or tensor.layout is not torch.strided or tensor.is_nested:
        raise InvalidArgument(
            f"{call} got a tensor on {tensor.device} with the layout {'nested' if tensor.is_nested else tensor.layout}:"
            " it takes dense ones in host memory (tensor.cpu(), tensor.to_dense())"
        )
    name = str(tensor.dtype).rpartition(".")[2]
    if name not in ITEM_BYTES:
        raise InvalidArgument(f"{call} got a tensor of {name}: it takes {', '.join(ITEM_BYTES)}")
    if tensor.numel() and not tensor.data_ptr():
        raise InvalidArgument(f"{call} got a tensor whose memory has been freed (its storage has no bytes)")
    return name


def _check(tensor: Tensor, call: str, **wish: Any) -> None:
    """What a rank can see by itself, before the call is counted."""
    if _type_of(tensor, call) != "bool":
        return
    if wish.get("op") == Average.value:
        raise InvalidArgument(f"{call} got a tensor of bool, which has no average: choose Max for 'or', Min for 'and'")
    if (wish.get("prescale", 1), wish.get("postscale", 1)) != (1, 1):
        raise InvalidArgument(f"{call} got a tensor of bool, which no factor can scale: leave the factors away")


def _dense(tensor: Tensor, call: str) -> Tensor:
    """The tensor as memory without gaps, which holds its numbers as they are: itself, or a copy."""
    _type_of(tensor, call)
    return tensor.detach().resolve_neg().contiguous()


def _task(
    kind: str,
    tensor: Tensor,
    name: Optional[str],
    process_set: ProcessSet,
    output: Optional[Tensor] = None,
    **wish: Any,
) -> Task:
    _check(tensor, kind, **wish)
    dtype, number = _type_of(tensor, kind), _number_of(process_set)
    request = Request(name_of(kind, name, process_set), kind, dtype, tuple(tensor.shape), process_set=number, **wish)
    return Task(request, Handle(str(request)), tensor, output)


def _submit(kind: str, tensor: Tensor, name: Optional[str], process_set: ProcessSet, **wish: Any) -> Handle:
    task = _task(kind, tensor, name, process_set, **wish)
    engine().submit(task)
    return task.handle


def _begun(task: Task, handle: AnyHandle) -> AnyHandle:
    engine().submit(task)
    return handle


def _refuse_shared(tensor: Tensor, call: str) -> None:
    """Raises for what is to be written to and has elements in one place, as expand() makes them."""
    if any(stride == 0 and extent > 1 for stride, extent in zip(tensor.stride(), tensor.shape)):
        raise InvalidArgument(f"{call} is to write to a tensor whose elements share memory: give it tensor.clone()")


def _in_place(
    tensor: Tensor, kind: str, name: Optional[str], process_set: ProcessSet, **wish: Any
) -> tuple[Task, AnyHandle]:
    """The handle's result is the tensor itself, which need not be contiguous."""
    dense, plain = _dense(tensor, kind), tensor.detach()
    _refuse_shared(plain, kind)
    task = _task(kind, dense, name, process_set, dense, **wish)

    def finish(_results: list[Any]) -> Tensor:
        if dense.data_ptr() != plain.data_ptr():
            plain.copy_(dense)
        return tensor

    return task, Chained([task.handle], finish)


def _out_of_place(
    tensor: Tensor, kind: str, name: Optional[str], process_set: ProcessSet, **wish: Any
) -> tuple[Task, AnyHandle]:
    dense = _dense(tensor, kind)
    task = _task(kind, dense, name, process_set, torch.empty_like(dense), **wish)
    return task, task.handle


def _reduction(
    average: Optional[bool], op: Optional[ReduceOp], prescale_factor: float, postscale_factor: float
) -> dict[str, Any]:
    return {
        "op": operator(average, op).value,
        "prescale": factor(prescale_factor, "prescale_factor"),
        "postscale": factor(postscale_factor, "postscale_factor"),
    }


def tensor_of(result: Any) -> Tensor:
    """For the type checker: what the handle of an operation with one tensor gives."""
    assert isinstance(result, Tensor)
    return result


# --- all-reduce ---


def allreduce_async(
    tensor: Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[ReduceOp] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> AnyHandle:
    """Begins to reduce the tensors of all ranks, op(prescale_factor * tensor) * postscale_factor; returns a handle for
    synchronize() and poll(), whose result is a new tensor. The tensor is not to be changed until then."""
    wish = _reduction(average, op, prescale_factor, postscale_factor)
    return _begun(*_out_of_place(tensor, "allreduce", name, process_set, **wish))


def allreduce_async_(
    tensor: Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[ReduceOp] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> AnyHandle:
    """As allreduce_async; the result is in the tensor itself."""
    wish = _reduction(average, op, prescale_factor, postscale_factor)
    return _begun(*_in_place(tensor, "allreduce", name, process_set, **wish))


def allreduce_(
    tensor: Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[ReduceOp] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Tensor:
    """As allreduce, into the tensor itself, which it returns."""
    return tensor_of(
        synchronize(allreduce_async_(tensor, average, name, op, prescale_factor, postscale_factor, process_set))
    )


def group_of(tensors: Iterable[Tensor]) -> list[Tensor]:
    """Them. Raises where they are no list, or nothing."""
    members = list(tensors) if isinstance(tensors, Iterable) and not isinstance(tensors, Tensor) else []
    if not members:
        raise InvalidArgument(
            f"grouped_allreduce got a {type(tensors).__name__}: it takes a list of tensors, one at least"
        )
    return members


def _grouped(
    tensors: Sequence[Tensor], name: Optional[str], process_set: ProcessSet, in_place: bool, **wish: Any
) -> AnyHandle:
    """All-reduces that run when all of them are ready, and in one piece."""
    members = group_of(tensors)
    for tensor in members:
        _check(tensor, "grouped_allreduce", **wish)
        if in_place:
            _refuse_shared(tensor, "grouped_allreduce")
    group = name_of("grouped_allreduce", name, process_set)
    begin = _in_place if in_place else _out_of_place
    wish = {**wish, "group": group, "group_size": len(members)}
    return _begun_together(
        [begin(tensor, "allreduce", f"{group}.{number}", process_set, **wish) for number, tensor in enumerate(members)]
    )


def _begun_together(pairs: Sequence[tuple[Task, AnyHandle]]) -> AnyHandle:
    """All or none."""
    engine().submit(*(task for task, _ in pairs))
    return Chained([handle for _, handle in pairs])


def begin_in_group(
    tensor: Tensor,
    name: str,
    group: str,
    group_size: int,
    op: ReduceOp,
    prescale_factor: float,
    postscale_factor: float,
    process_set: ProcessSet,
) -> AnyHandle:
    """The library's: one of a group in place, handed over by itself; it runs when so many of the group are ready."""
    wish = _reduction(None, op, prescale_factor, postscale_factor)
    return _begun(*_in_place(tensor, "allreduce", name, process_set, group=group, group_size=group_size, **wish))


def grouped_allreduce_async(
    tensors: Sequence[Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[ReduceOp] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> AnyHandle:
    """As allreduce_async of each, but none runs before all are ready on all ranks, and then together. The result is a
    list."""
    return _grouped(tensors, name, process_set, False, **_reduction(average, op, prescale_factor, postscale_factor))


def grouped_allreduce_async_(
    tensors: Sequence[Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[ReduceOp] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> AnyHandle:
    """The same, into the tensors themselves."""
    return _grouped(tensors, name, process_set, True, **_reduction(average, op, prescale_factor, postscale_factor))


def grouped_allreduce_(
    tensors: Sequence[Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[ReduceOp] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> list[Tensor]:
    """The same, and waits."""
    return list(
        synchronize(
            grouped_allreduce_async_(tensors, average, name, op, prescale_factor, postscale_factor, process_set)
        )
    )


# --- the others ---


def _need_rows(tensor: Tensor, call: str) -> None:
    if tensor.dim() == 0:
        raise InvalidArgument(
            f"{call} got a tensor without dimensions: it takes rows, the first dimension (tensor.unsqueeze(0))"
        )


def gather_rows(tensor: Tensor, name: Optional[str], process_set: ProcessSet) -> Handle:
    """The result is the tensor of all, and how many rows are each rank's."""
    dense = _dense(tensor, "allgather")
    _need_rows(dense, "allgather")
    return _submit("allgather", dense, name, process_set)


def allgather_async(
    tensor: Tensor, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> AnyHandle:
    """Begins to put the tensors of all ranks one behind the other, in the order of ranks. The first dimension may
    differ, the others and the type are the same."""
    return Chained([gather_rows(tensor, name, process_set)], lambda results: results[0][0])


def root_of(root_rank: int, process_set: ProcessSet) -> int:
    """The rank that is meant, which is in the process set."""
    _number_of(process_set)
    ranks: Sequence[int] = range(engine().size) if process_set is global_process_set else process_set.ranks
    if whole(root_rank, "root_rank") not in ranks:
        raise InvalidArgument(f"root_rank is {root_rank}: it is one of the ranks {', '.join(map(str, ranks))}")
    return whole(root_rank, "root_rank")


def broadcast_async(
    tensor: Tensor, root_rank: int, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> AnyHandle:
    """Begins to bring the tensor of rank root_rank (a number among all ranks) to all; the result is a new tensor."""
    root = root_of(root_rank, process_set)
    return _begun(*_out_of_place(tensor, "broadcast", name, process_set, root=root))


def broadcast_async_(
    tensor: Tensor, root_rank: int, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> AnyHandle:
    """The same, into the tensor itself."""
    root = root_of(root_rank, process_set)
    return _begun(*_in_place(tensor, "broadcast", name, process_set, root=root))


def broadcast_together_(named: Sequence[tuple[str, Tensor]], root_rank: int, process_set: ProcessSet) -> AnyHandle:
    """The library's: begins to broadcast all of them into themselves, or, where one cannot be, none."""
    root = root_of(root_rank, process_set)
    return _begun_together([_in_place(tensor, "broadcast", name, process_set, root=root) for name, tensor in named])


def broadcast_(
    tensor: Tensor, root_rank: int, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> Tensor:
    """The same, and waits; returns the tensor."""
    return tensor_of(synchronize(broadcast_async_(tensor, root_rank, name, process_set)))


def _splits_of(
    tensor: Tensor, splits: Optional[Union[Tensor, Sequence[int]]], process_set: ProcessSet
) -> tuple[int, ...]:
    _number_of(process_set)
    ranks = engine().size if process_set is global_process_set else process_set.size()
    rows = tensor.shape[0]
    if splits is None:
        if rows % ranks:
            raise InvalidArgument(
                f"alltoall got {rows} rows for {ranks} ranks, which do not come out even: give splits"
            )
        return (rows // ranks,) * ranks
    counts = whole_numbers(splits, "splits")
    if len(counts) != ranks or sum(counts) != rows or min(counts) < 0:
        raise InvalidArgument(
            f"splits are {counts}: they are {ranks} numbers from 0 on, {rows} in all, as there are rows"
        )
    return counts


def exchange_rows(
    tensor: Tensor, splits: Optional[Union[Tensor, Sequence[int]]], name: Optional[str], process_set: ProcessSet
) -> Handle:
    """The result is the tensor, and how many rows of it came from each rank."""
    dense = _dense(tensor, "alltoall")
    _need_rows(dense, "alltoall")
    counts = _splits_of(dense, splits, process_set)
    return _submit("alltoall", dense, name, process_set, splits=counts)


def alltoall_async(
    tensor: Tensor,
    splits: Optional[Union[Tensor, Sequence[int]]] = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> AnyHandle:
    """Begins to send each rank its rows, splits[r] to the r-th (without splits as many to each), and to receive theirs.
    The result is a tensor; with splits also a tensor of how many rows came from each rank."""

    def finish(results: list[Any]) -> Union[Tensor, tuple[Tensor, Tensor]]:
        received, counts = results[0]
        return received if splits is None else (received, torch.tensor(counts, dtype=torch.int32))

    return Chained([exchange_rows(tensor, splits, name, process_set)], finish)


def reducescatter_async(
    tensor: Tensor,
    name: Optional[str] = None,
    op: ReduceOp = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> AnyHandle:
    """Begins to reduce as allreduce_async, but each rank gets its rows only: as many each, and the first ranks one more
    where they do not come out even."""
    dense = _dense(tensor, "reducescatter")
    _need_rows(dense, "reducescatter")
    wish = _reduction(None, op, prescale_factor, postscale_factor)
    return _submit("reducescatter", dense, name, process_set, **wish)


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Ends when all ranks have called it, and all that they had submitted before has been agreed on."""
    _submit("barrier", torch.empty(0), "barrier", process_set).wait()


def join() -> int:
    """This rank has no more data: until all ranks have called it, it takes part in the others' operations with tensors
    that change nothing (zeros in a sum; an average still divides by all ranks). Waits first for what it has under way.
    Returns the rank that came last."""
    return int(engine().join().wait())


def poll(handle: AnyHandle) -> bool:
    """Whether the operation has ended, so that synchronize() does not wait."""
    return checked(handle).done()


def synchronize(handle: AnyHandle) -> Any:
    """Waits for the operation, and returns its result or raises its error: tutti.InvalidUsage where ranks' calls do not
    fit each other, tutti.RemoteError where a rank has died or left, tutti.Timeout after stall_shutdown."""
    return checked(handle).wait()
