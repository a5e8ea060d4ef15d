"""Each rank's part of the data."""
from __future__ import annotations

from typing import Any

import tensorflow as tf

import tutti
from tutti import Communicator
from tutti.tf._communicator import communicator


def _whole(count: int, size: int) -> int:
    if count < size:
        raise tutti.InvalidUsage(f"there are {count} elements for {size} ranks: each needs one at least")
    return count // size * size


def _shard_dataset(data: Any, rank: int, size: int) -> Any:
    count = int(data.cardinality())
    if count == tf.data.UNKNOWN_CARDINALITY:
        raise tutti.InvalidUsage(
            "nobody knows how many elements this dataset has, so ranks could come to have different numbers of steps: "
            "say it, dataset.apply(tf.data.experimental.assert_cardinality(n)), or shard what it is made of")
    return (data if count == tf.data.INFINITE_CARDINALITY else data.take(_whole(count, size))).shard(size, rank)


def _length(array: Any) -> int:
    """How many elements an array has along its first dimension."""
    if isinstance(array, tf.RaggedTensor):
        return int(array.nrows())
    shape = getattr(array, "shape", None)
    if isinstance(array, tf.SparseTensor) or shape is None or isinstance(array, (str, bytes)):
        raise tutti.InvalidArgument(
            f"shard() found a {type(array).__name__} where it takes arrays, tensors and ragged tensors: tuples, lists and "
            "dicts are of several of them, so make an array of a list of values (numpy.array), and a tf.data.Dataset of "
            "what is sparse")
    if len(shape) == 0 or shape[0] is None:
        raise tutti.InvalidArgument(f"shard() found an array of the shape {tuple(shape)}, which has no elements to share out: "
                                    "it takes those whose first dimension counts the samples")
    return int(shape[0])


def _shard_arrays(data: Any, rank: int, size: int) -> Any:
    lengths = sorted({_length(each) for each in tf.nest.flatten(data) if each is not None})
    if not lengths:
        raise tutti.InvalidArgument("shard() found no arrays at all: give it one, or a tuple, list or dict of them")
    if len(lengths) != 1:
        raise tutti.InvalidArgument(f"the arrays have {' and '.join(map(str, lengths))} elements: they must have equally many")
    end = _whole(lengths[0], size)
    return tf.nest.map_structure(lambda each: None if each is None else each[rank:end:size], data)


def shard(data: Any, comm: Communicator | None = None) -> Any:
    """This rank's part: each size-th element, from the rank-th on; the same number on every rank, for which up to size
    - 1 of the last elements are left out. So batches of B / size elements on each rank are together the batches of B
    elements of one process.

    `data` is a tf.data.Dataset, before batch() and after a shuffle() whose seed all ranks share; or an array, or a
    tuple, list or dict of arrays (numpy's or tensors, also ragged ones), which may be nested, and of which parts are
    returned; None in it stays. Raises tutti.InvalidUsage where there are fewer elements than ranks, or the dataset does
    not know how many it has, and tutti.InvalidArgument for what is no array, as a list of plain values."""
    chosen = communicator(comm)
    cut = _shard_dataset if isinstance(data, tf.data.Dataset) else _shard_arrays
    return cut(data, chosen.rank, chosen.size)
