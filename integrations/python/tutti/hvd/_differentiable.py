"""The operations that wait for their result, through which gradients flow back."""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional, Union

import torch
from torch import Tensor
from torch.autograd import Function

from tutti._errors import InvalidUsage
from tutti.hvd._compressors import Compression, Compressor
from tutti.hvd._operations import (
    Average,
    ReduceOp,
    Sum,
    allreduce_async,
    broadcast_async,
    exchange_rows,
    gather_rows,
    group_of,
    grouped_allreduce_async,
    operator,
    reducescatter_async,
    synchronize,
    tensor_of,
)
from tutti.hvd._process_sets import ProcessSet, global_process_set

# The gradient of a reduction is the reduction of the gradients, and so on: what one rank's input has done to the
# outputs of all.


def _backward_name(name: Optional[str]) -> Optional[str]:
    return None if name is None else f"{name}.backward"


def _linear(op: ReduceOp) -> ReduceOp:
    if op not in (Average, Sum):
        raise InvalidUsage(f"there is no gradient of a reduction by {op.name}: only Average and Sum have one")
    return op


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, name: Optional[str], op: ReduceOp, *rest: Any) -> Tensor:
        ctx.call = (_backward_name(name), op, *rest)
        return tensor_of(synchronize(allreduce_async(tensor, None, name, op, *rest)))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        name, op, *rest = ctx.call
        return (tensor_of(synchronize(allreduce_async(grads[0], None, name, _linear(op), *rest))), *[None] * 5)


class _GroupedAllReduce(Function):
    @staticmethod
    def forward(
        ctx: Any,
        name: Optional[str],
        op: ReduceOp,
        prescale: float,
        postscale: float,
        process_set: ProcessSet,
        *tensors: Tensor,
    ) -> tuple[Tensor, ...]:
        ctx.call = (_backward_name(name), op, prescale, postscale, process_set)
        return tuple(synchronize(grouped_allreduce_async(tensors, None, name, op, prescale, postscale, process_set)))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        name, op, *rest = ctx.call
        return (*[None] * 5, *synchronize(grouped_allreduce_async(grads, None, name, _linear(op), *rest)))


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, name: Optional[str], process_set: ProcessSet) -> Tensor:
        gathered, rows = gather_rows(tensor, name, process_set).wait()
        ctx.call = (_backward_name(name), process_set, rows)
        return tensor_of(gathered)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        name, process_set, rows = ctx.call
        everybody = tensor_of(synchronize(allreduce_async(grads[0], None, name, Sum, process_set=process_set)))
        return everybody.split(rows)[process_set.rank()], None, None


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, root_rank: int, name: Optional[str], process_set: ProcessSet) -> Tensor:
        ctx.call = (_backward_name(name), root_rank, process_set)
        return tensor_of(synchronize(broadcast_async(tensor, root_rank, name, process_set)))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        name, root_rank, process_set = ctx.call
        everybody = tensor_of(synchronize(allreduce_async(grads[0], None, name, Sum, process_set=process_set)))
        is_root = process_set.ranks[process_set.rank()] == root_rank
        return everybody if is_root else torch.zeros_like(everybody), None, None, None


class _AllToAll(Function):
    @staticmethod
    def forward(
        ctx: Any, tensor: Tensor, splits: Any, name: Optional[str], process_set: ProcessSet
    ) -> tuple[Tensor, Tensor]:
        received, rows = exchange_rows(tensor, splits, name, process_set).wait()
        counts = torch.tensor(rows, dtype=torch.int32)
        ctx.mark_non_differentiable(counts)
        ctx.call = (_backward_name(name), process_set, rows)
        return received, counts

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        name, process_set, rows = ctx.call
        return exchange_rows(grads[0], rows, name, process_set).wait()[0], None, None, None


class _ReduceScatter(Function):
    @staticmethod
    def forward(
        ctx: Any,
        tensor: Tensor,
        name: Optional[str],
        op: ReduceOp,
        process_set: ProcessSet,
        prescale: float,
        postscale: float,
    ) -> Tensor:
        reduced = synchronize(reducescatter_async(tensor, name, op, process_set, prescale, postscale))
        ctx.call = (_backward_name(name), op, process_set, prescale * postscale)
        return tensor_of(reduced)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        name, op, process_set, factor = ctx.call
        everybody, _ = gather_rows(grads[0], name, process_set).wait()
        divisor = process_set.size() if _linear(op) is Average else 1
        return (everybody * (factor / divisor), *[None] * 5)


def allreduce(
    tensor: Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    compression: type[Compressor] = Compression.none,
    op: Optional[ReduceOp] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Tensor:
    """The tensors of all ranks as one, on all ranks: op(prescale_factor * tensor) * postscale_factor. The average,
    unless told otherwise. A new tensor; gradients flow through Average and Sum. Raises as synchronize() does."""
    sent, context = compression.compress(tensor)
    reduced = _AllReduce.apply(sent, name, operator(average, op), prescale_factor, postscale_factor, process_set)
    return compression.decompress(tensor_of(reduced), context)


def grouped_allreduce(
    tensors: Sequence[Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    compression: type[Compressor] = Compression.none,
    op: Optional[ReduceOp] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> list[Tensor]:
    """The same of each tensor; all run in one piece when all are ready on all ranks."""
    sent = [compression.compress(tensor) for tensor in group_of(tensors)]
    chosen = operator(average, op)
    reduced = _GroupedAllReduce.apply(
        name, chosen, prescale_factor, postscale_factor, process_set, *[each for each, _ in sent]
    )
    return [compression.decompress(each, context) for each, (_, context) in zip(reduced, sent)]


def allgather(tensor: Tensor, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> Tensor:
    """The tensors of all ranks one behind the other, in the order of ranks. The first dimension may differ."""
    return tensor_of(_AllGather.apply(tensor, name, process_set))


def broadcast(
    tensor: Tensor, root_rank: int, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> Tensor:
    """The tensor of rank root_rank (a number among all ranks), on all ranks."""
    return tensor_of(_Broadcast.apply(tensor, root_rank, name, process_set))


def alltoall(
    tensor: Tensor,
    splits: Optional[Union[Tensor, Sequence[int]]] = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Union[Tensor, tuple[Tensor, Tensor]]:
    """Sends each rank its rows, splits[r] to the r-th (without splits as many to each), and returns those that came, in
    the order of ranks; with splits also a tensor of how many came from each."""
    received, counts = _AllToAll.apply(tensor, splits, name, process_set)
    return received if splits is None else (received, counts)


def reducescatter(
    tensor: Tensor,
    name: Optional[str] = None,
    compression: type[Compressor] = Compression.none,
    op: ReduceOp = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Tensor:
    """As allreduce, but each rank gets its rows only: as many each, and the first ranks one more where they do not come
    out even."""
    sent, context = compression.compress(tensor)
    reduced = _ReduceScatter.apply(sent, name, operator(None, op), process_set, prescale_factor, postscale_factor)
    return compression.decompress(tensor_of(reduced), context)
