"""Variables made the same on all ranks."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy
import tensorflow as tf

import tutti
from tutti import Communicator
from tutti.tf._communicator import communicator
from tutti.tf._fusion import BUCKET_BYTES, buckets


def _size(variable: Any) -> tuple[str, int]:
    dtype = tf.as_dtype(variable.dtype)
    return str(dtype.name), int(numpy.prod(variable.shape)) * int(dtype.size)


def _update(variables: Sequence[Any], change: Callable[[Any], None]) -> None:
    """Hands the values of each bucket as one array to `change`, and writes back what that has made of them."""
    if not tf.executing_eagerly():
        raise tutti.InvalidUsage("variables are read and written here at once, which the step of a graph cannot do: call "
                                 "this outside of tf.function")
    for bucket in buckets([_size(variable) for variable in variables], BUCKET_BYTES):
        values = [numpy.asarray(variables[place].numpy()) for place in bucket]
        flat = numpy.concatenate([value.reshape(-1) for value in values])
        change(flat)
        parts = numpy.split(flat, numpy.cumsum([value.size for value in values])[:-1])
        for place, value, part in zip(bucket, values, parts):
            variables[place].assign(part.reshape(value.shape))


def broadcast_variables(variables: Sequence[Any], root: int = 0, comm: Communicator | None = None) -> None:
    """Gives the variables (TensorFlow's or Keras') the values that they have on rank `root`. All ranks call it, outside
    of tf.function, with the same variables in the same order. Those of one data type share a call, up to 16 MiB."""
    chosen = communicator(comm)
    _update(variables, lambda flat: chosen.broadcast(flat, root))


def average_variables(variables: Sequence[Any], comm: Communicator | None = None) -> None:
    """Gives the variables the mean of what they have on all ranks; otherwise as broadcast_variables()."""
    chosen = communicator(comm)
    _update(variables, lambda flat: chosen.all_reduce(flat, op="avg"))
