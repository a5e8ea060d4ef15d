"""What allreduce_grads() and its neighbours take, give and refuse."""
import os

import digits
import keras
import numpy
import tensorflow as tf

import tutti
import tutti.tf

TYPES = ("float16", "bfloat16", "float32", "float64")


def refused(text, call, *arguments, kind=tutti.InvalidUsage, **keywords):
    try:
        call(*arguments, **keywords)
    except kind as error:
        assert text in str(error), f"{text!r} is not in {error}"
    else:
        raise AssertionError(f"no {kind.__name__} with {text!r}")


def given(comm):
    """Of every type one, of odd shapes; nothing; and rows, of which each rank has another number, and the first none."""
    dense = [tf.cast(tf.reshape(tf.range(6), [2, 3]) + 2 * comm.rank, dtype) for dtype in TYPES]
    values = tf.fill([comm.rank, 2], float(2 * comm.rank))
    slices = tf.IndexedSlices(values, tf.range(comm.rank, dtype=tf.int64), tf.constant([9, 2], tf.int64))
    return [dense[0], None, slices, *dense[1:], tf.constant(float(comm.rank))]


def check(comm, reduced, factor):
    """Small whole numbers, which all types add without rounding; `factor` is what a mean has to become a sum."""
    assert reduced[1] is None
    slices = reduced[2]
    offset = sum(range(comm.size)) * 2
    for tensor, dtype in zip([reduced[0], *reduced[3:6]], TYPES):
        assert tensor.dtype == dtype and tensor.shape == [2, 3], tensor
        whole = numpy.arange(6).reshape(2, 3) * comm.size + offset
        assert (tf.cast(tensor, "float64").numpy() * factor == whole).all(), (tensor, whole)
    assert float(reduced[6]) * factor == offset / 2
    assert isinstance(slices, tf.IndexedSlices)
    assert slices.indices.numpy().tolist() == [row for rank in range(comm.size) for row in range(rank)]
    rows = [[2.0 * rank] * 2 for rank in range(comm.size) for _ in range(rank)]
    assert (slices.values.numpy() * factor == rows).all(), slices


def gradients(comm):
    for reduce in (tutti.tf.allreduce_grads, tf.function(tutti.tf.allreduce_grads)):
        check(comm, reduce(given(comm)), comm.size)
        check(comm, reduce(given(comm), op="sum"), 1)
        check(comm, reduce(given(comm), op="sum", bucket_bytes=1), 1)
    mine = given(comm)
    kept = tf.identity(mine[0])
    tutti.tf.allreduce_grads(mine)
    assert (mine[0].numpy() == kept.numpy()).all()


def whole_numbers(comm):
    """Rows of them are gathered, but have no mean; what is not a tensor yet becomes one."""
    def rows(dtype):
        return tf.IndexedSlices(tf.constant([[3, comm.rank]], dtype), tf.constant([comm.rank], tf.int16), None)
    for reduce in (tutti.tf.allreduce_grads, tf.function(tutti.tf.allreduce_grads)):
        added, = reduce([rows("int32")], op="sum")
        assert added.values.numpy().tolist() == [[3, rank] for rank in range(comm.size)], added
        assert added.indices.dtype == "int16" and added.indices.numpy().tolist() == list(range(comm.size)), added
        refused("tf.IndexedSlices of int32, whose rows have no mean", reduce, [rows("int32")], kind=tutti.InvalidArgument)
    total, also = tutti.tf.allreduce_grads([numpy.full(3, comm.rank), tf.Variable([1.0])], op="sum")
    assert total.numpy().tolist() == [sum(range(comm.size))] * 3 and also.numpy().tolist() == [comm.size], (total, also)
    refused("the gradient at place 1 is a RaggedTensor", tutti.tf.allreduce_grads, [None, tf.ragged.constant([[1.0], []])],
            kind=tutti.InvalidArgument)


def metrics(comm):
    """Those that are arrays, as a score of each class, come back as such."""
    logs = {"loss": float(comm.rank), "score": tf.constant([1.0, 2.0 * comm.rank])}
    tutti.tf.AverageMetrics().on_epoch_end(0, logs)
    mean = sum(range(comm.size)) / comm.size
    assert logs["loss"] == mean and logs["score"].tolist() == [1, 2 * mean], logs


def buffers(comm):
    """A tensor of TensorFlow's never changes, so it is no target; to be sent it will do."""
    target = numpy.zeros(2, "float32")
    comm.all_reduce(tf.ones([2]), target)
    assert target.tolist() == [comm.size] * 2
    refused("is read-only", comm.all_reduce, tf.ones([2]), kind=tutti.InvalidArgument)


def fusion(comm):
    """One call a step, unless told otherwise."""
    grads = [tf.ones([100, 10]) for _ in range(12)]
    for limit, calls in (({}, 1), ({"bucket_bytes": 4 * 4000}, 3), ({"bucket_bytes": 1}, 12)):
        before = comm.stats().get("all_reduce_operations", 0)
        tutti.tf.allreduce_grads(grads, **limit)
        assert comm.stats()["all_reduce_operations"] - before == calls, (limit, comm.stats())


def statistics(comm):
    """What this module sends is among the numbers of tutti.init()'s communicator."""
    before = tutti.stats().get("world_all_reduce_bytes", 0.0)
    tutti.tf.allreduce_grads([tf.ones([100])])
    assert tutti.stats()["world_all_reduce_bytes"] - before == 400, tutti.stats()
    assert f'rank="{comm.rank}",operation="all_reduce"' in tutti.prometheus()


def data(comm):
    numbers = tf.data.Dataset.range(4 * comm.size + 1)
    mine = [int(each) for each in tutti.tf.shard(numbers)]
    assert mine == list(range(comm.rank, 4 * comm.size, comm.size)), mine
    x, more = tutti.tf.shard((numpy.arange(4 * comm.size + 1), {"y": tf.range(4 * comm.size + 1)}))
    assert x.tolist() == more["y"].numpy().tolist() == mine
    assert int(next(iter(tutti.tf.shard(numbers.repeat())))) == comm.rank
    ragged = tf.ragged.range(tf.range(4 * comm.size + 1))  # rows of 0, 1, 2, ... elements
    structure = {"text": (tf.strings.as_string(tf.range(4 * comm.size + 1)), ragged), "weights": None}
    cut = tutti.tf.shard(structure)
    assert [int(each) for each in cut["text"][0]] == mine == cut["text"][1].row_lengths().numpy().tolist(), cut
    assert cut["weights"] is None
    for wrong, text in (("abc", "found a str"), ([1, 2, 3], "found a int where it takes arrays"), (["ab", "cd"], "found a str"),
                        (tf.sparse.eye(4), "found a SparseTensor"), (tf.constant(1), "of the shape ()"), ((), "no arrays at all"),
                        ({"x": numpy.ones(4), "y": None, "z": numpy.float32(1)}, "of the shape ()")):
        refused(text, tutti.tf.shard, wrong, kind=tutti.InvalidArgument)
    refused("nobody knows how many elements", tutti.tf.shard, numbers.filter(lambda each: each > 3))
    refused(f"1 elements for {comm.size} ranks", tutti.tf.shard, numpy.ones(1))
    refused("the arrays have 8 and 9 elements", tutti.tf.shard, (numpy.ones(8), numpy.ones(9)),
            kind=tutti.InvalidArgument)


def refusals(_comm):
    distribute, scaled = tutti.tf.distribute_optimizer, keras.mixed_precision.LossScaleOptimizer
    refused("is distributed already", distribute, distribute("sgd"))
    refused("distribute that one instead", scaled, distribute("sgd"))
    with tf.distribute.OneDeviceStrategy("cpu:0").scope():
        refused("scope of a OneDeviceStrategy", distribute, "sgd")
    refused("choose one of avg, sum", distribute, "sgd", op="max", kind=tutti.InvalidArgument)
    refused("choose one of avg, sum", tutti.tf.allreduce_grads, [tf.ones(1)], op="max", kind=tutti.InvalidArgument)
    refused("outside of tf.function", tf.function(lambda: tutti.tf.broadcast_variables([]), autograph=False))
    x, y = digits.data()
    for model, options, text in ((digits.network(0), {"jit_compile": True}, "compile(jit_compile=False)"),
                                 (keras.Sequential([keras.layers.Dense(10)]), {}, "has no weights yet")):
        digits.compiled(model, distribute("sgd"), **options)
        refused(text, model.fit, x, y, verbose=0, callbacks=[tutti.tf.Broadcast()])
    plain = digits.compiled(digits.network(0), "sgd")
    refused("this rank's gradients alone", plain.fit, x, y, verbose=0, callbacks=[tutti.tf.Broadcast()])


def saving(comm):
    """What is saved names Keras' own optimizer, whose state comes back, and which goes on being distributed."""
    path = f"{os.environ['FOLDER']}/{comm.rank}.keras"
    model = digits.compiled(digits.network(0), tutti.tf.distribute_optimizer("adam"))
    x, y = tutti.tf.shard(digits.data())
    model.fit(x, y, verbose=0, callbacks=[tutti.tf.Broadcast()])
    model.save(path)
    again = keras.models.load_model(path)
    assert type(again.optimizer) is keras.optimizers.Adam and isinstance(model.optimizer, keras.optimizers.Adam)
    assert int(again.optimizer.iterations) == int(model.optimizer.iterations) > 0
    digits.compiled(again, tutti.tf.distribute_optimizer(again.optimizer)).fit(x, y, verbose=0)
    gathered = numpy.empty((comm.size, 10), "float32")
    comm.all_gather(again.get_weights()[-1], gathered)
    assert (gathered == gathered[0]).all()


def main():
    with tutti.init() as comm:
        for case in (gradients, whole_numbers, metrics, buffers, fusion, statistics, data, refusals, saving):
            case(comm)
            comm.barrier()
    refused("there is no communicator of tutti.init()", tutti.tf.allreduce_grads, [tf.ones(1)])
    os.write(1, b"well\n")


main()
