"""The gradients of all ranks, added up."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy
import tensorflow as tf

import tutti
from tutti import Communicator
from tutti.tf._communicator import communicator
from tutti.tf._fusion import BUCKET_BYTES, buckets

Op = Literal["avg", "sum"]
Tensor = Any  # TensorFlow has no types for a checker
Array = Any
_ALIGNMENT = 64  # bytes, from which on TensorFlow takes an array as it is instead of copying it


def _empty(shape: Sequence[int], dtype: Any) -> Array:
    """An array for a result, which TensorFlow takes without a copy."""
    wanted = int(numpy.prod(shape, dtype=numpy.int64)) * numpy.dtype(dtype).itemsize
    memory = numpy.empty(wanted + _ALIGNMENT, numpy.uint8)
    first = -memory.ctypes.data % _ALIGNMENT
    return memory[first:first + wanted].view(dtype).reshape(shape)


def _call(function: Callable[..., Any], inputs: Sequence[Tensor], types: Any, after: Sequence[Any]) -> Any:
    """Runs `function`, of numpy arrays, as a step of the graph, or at once where there is none. The graph must not run
    it before `after`: the calls of a communicator have an order. The arrays are the tensors' own memory, and only to be
    read."""
    with tf.control_dependencies(after):
        return tf.numpy_function(tf.autograph.experimental.do_not_convert(function), inputs, types)


def _reduce_dense(grads: Sequence[Tensor], comm: Communicator, op: Op, after: Sequence[Any]) -> list[Tensor]:
    """Gradients of one data type, by one call."""
    def all_reduce(mine: Array) -> Array:
        everybodys = _empty(mine.shape, mine.dtype)
        comm.all_reduce(mine, everybodys, op)
        return everybodys

    flat = [tf.reshape(grad, [-1]) for grad in grads]
    total = _call(all_reduce, [tf.concat(flat, 0) if len(flat) > 1 else flat[0]], grads[0].dtype, after)
    parts = tf.split(total, [tf.size(grad) for grad in grads]) if len(grads) > 1 else [total]
    shaped = [tf.reshape(part, tf.shape(grad)) for part, grad in zip(parts, grads)]
    for result, grad in zip(shaped, grads):
        result.set_shape(grad.shape)
    return shaped


def _gather_rows(comm: Communicator, op: Op, indices: Array, values: Array) -> tuple[Array, Array]:
    """The rows of all ranks, of which each may have another number."""
    rows = numpy.empty(comm.size, numpy.int64)
    comm.all_gather(numpy.array([len(indices)]), rows)
    all_indices = _empty([rows.sum()], indices.dtype)
    all_values = _empty([rows.sum(), *values.shape[1:]], values.dtype)
    width = int(numpy.prod(values.shape[1:], dtype=numpy.int64))
    comm.all_gather(indices, all_indices, recv_counts=rows.tolist())
    comm.all_gather(values, all_values, recv_counts=(rows * width).tolist())
    if op == "avg":
        all_values /= values.dtype.type(comm.size)  # of floats: _refuse_mean() has seen to it
    return all_indices, all_values


def _refuse_mean(grad: Tensor) -> None:
    """Each rank's rows are divided before they are added, and of whole numbers nothing might be left."""
    if not grad.dtype.is_floating:
        raise tutti.InvalidArgument(
            f"op is 'avg', and a gradient is tf.IndexedSlices of {grad.dtype.name}, whose rows have no mean: choose 'sum', "
            "cast the values to a floating point type, or make it dense (tf.convert_to_tensor)")


def _reduce_slices(grad: Tensor, comm: Communicator, op: Op, after: Sequence[Any]) -> Tensor:
    """Rows that several ranks have stay side by side, as those that one batch has twice: whoever applies them adds
    them."""
    def all_gather(indices: Array, values: Array) -> tuple[Array, Array]:
        return _gather_rows(comm, op, indices, values)

    if op == "avg":
        _refuse_mean(grad)
    indices, values = _call(all_gather, [grad.indices, grad.values], [grad.indices.dtype, grad.values.dtype], after)
    indices.set_shape([None])
    if grad.values.shape.rank is not None:
        values.set_shape([None, *grad.values.shape[1:]])
    return tf.IndexedSlices(values, indices, grad.dense_shape)


def _taken(grad: Any, place: int) -> Tensor:
    """What is no tensor of TensorFlow's yet, as an array of numpy's or a variable, as one."""
    if grad is None or isinstance(grad, tf.IndexedSlices):
        return grad
    try:
        return tf.convert_to_tensor(grad)
    except (TypeError, ValueError) as error:
        raise tutti.InvalidArgument(f"the gradient at place {place} is a {type(grad).__name__}, and no tensor comes of it: "
                                    "allreduce_grads() takes tensors, tf.IndexedSlices and None") from error


def check_op(op: str) -> None:
    """Raises for what is no way to make one gradient of all."""
    if op not in ("avg", "sum"):
        raise tutti.InvalidArgument(f"op is {op!r}: gradients are added up, so choose one of avg, sum")


def _bytes(grad: Tensor) -> int:
    return int(grad.shape.num_elements() or 0) * int(grad.dtype.size)


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def allreduce_grads(grads: Sequence[Tensor], comm: Communicator | None = None, *, op: Op = "avg",
                    bucket_bytes: int = BUCKET_BYTES) -> list[Tensor]:
    """The mean ("avg") or the sum of every rank's gradients, for a training loop of one's own:

        grads = tutti.tf.allreduce_grads(tape.gradient(loss, model.trainable_variables))
        optimizer.apply_gradients(zip(grads, model.trainable_variables))

    `grads` holds tensors, tf.IndexedSlices and None, at the same places on every rank; the result has the same at each
    place. It leaves `grads` as they are. Tensors of one data type go out together, up to `bucket_bytes` (of all ranks
    alike) in a call, the last first: backpropagation has those earliest. Rows of IndexedSlices are gathered, not added:
    there may be another number of them on each rank. Works in a tf.function, but not in one of XLA (jit_compile=True),
    and outside.

    Raises errors of tutti; within a tf.function they arrive as tf.errors.OpError when it runs. Not to be called by two
    threads at a time, nor in a branch of tf.cond that some ranks may not take."""
    check_op(op)
    chosen = communicator(comm)
    reduced = [_taken(grad, place) for place, grad in enumerate(grads)]
    if chosen.size == 1:
        return reduced
    last: list[Any] = []
    slices = [place for place, grad in enumerate(reduced) if isinstance(grad, tf.IndexedSlices)]
    dense = [place for place, grad in enumerate(reduced) if grad is not None and place not in slices][::-1]
    for bucket in buckets([(reduced[place].dtype.name, _bytes(reduced[place])) for place in dense], bucket_bytes):
        places = [dense[position] for position in bucket]
        for place, result in zip(places, _reduce_dense([reduced[place] for place in places], chosen, op, last)):
            reduced[place], last = result, [result]
    for place in slices:
        reduced[place] = _reduce_slices(reduced[place], chosen, op, last)
        last = [reduced[place].values]
    return reduced
