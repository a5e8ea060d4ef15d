"""Ranks that train together, beside what one process trains on the whole batch. Usage: training.py CASE..."""
import os
import sys

import digits
import keras
import numpy
import tensorflow as tf

import tutti
import tutti.tf

# Sums of a batch's gradients are rounded in another order: by a last digit (2^-24) of numbers below 1, for each of some
# 30 steps.
ROUNDING = 2e-6
# Adam divides a gradient by its size: where parts of it nearly cancel, their last digits are many of what is left, and
# so a hundredth of a step, here at most 0.01. Who adds up wrongly is a step away.
ROUNDING_OF_ADAM = 1e-4


def say(text):
    """A line in one piece: ranks share the output."""
    os.write(1, f"{text}\n".encode())


def together(comm, optimizer, epochs=2, callbacks=(), model=None, **options):
    """Trains on this rank's part. The weights begin as another draw on each rank: only the broadcast makes them the
    same."""
    model = model or digits.network(comm.rank)
    digits.compiled(model, tutti.tf.distribute_optimizer(optimizer), **options)
    x, y = tutti.tf.shard(digits.data())
    calls = [tutti.tf.Broadcast(), tutti.tf.AverageMetrics(), *callbacks]
    told = model.fit(x, y, batch_size=digits.BATCH // comm.size, epochs=epochs, shuffle=False, verbose=0,
                     callbacks=calls)
    return model, told.history


def by_one(optimizer, epochs=2, model=None, **options):
    """Trains on all of it."""
    model = digits.compiled(model or digits.network(0), optimizer, **options)
    told = model.fit(*digits.data(), batch_size=digits.BATCH, epochs=epochs, shuffle=False, verbose=0)
    return model, told.history


def everybodys(comm, values):
    """The values of each rank, on every one."""
    values = numpy.asarray(values, "float64").reshape(-1)
    gathered = numpy.empty((comm.size, values.size))
    comm.all_gather(values, gathered)
    return gathered


def same_everywhere(comm, model):
    gathered = everybodys(comm, numpy.concatenate([weight.reshape(-1) for weight in model.get_weights()]))
    assert (gathered == gathered[0]).all(), "the ranks' weights differ"


def last(history):
    return f"loss {history['loss'][-1]:.7f}, accuracy {history['accuracy'][-1]:.5f}"


def compare(comm, name, ours, reference, tolerance=ROUNDING):
    (model, history), (by_itself, told) = ours, reference
    same_everywhere(comm, model)
    difference = digits.apart(model, by_itself)
    if comm.rank == 0:
        say(f"figures: {name}, {comm.size} ranks: {last(history)}; one process: {last(told)}; weights apart by "
            f"{difference:.1e}")
    assert difference <= tolerance, f"{name}: weights are {difference} from those of one process"
    assert numpy.allclose(history["loss"], told["loss"], rtol=0, atol=10 * tolerance), (history, told)
    assert numpy.allclose(history["accuracy"], told["accuracy"], rtol=0, atol=1e-6 if tolerance <= ROUNDING_OF_ADAM else 0.02)


def fit(comm):
    """And as a measure of what the comparison can tell: how far the weights get when nobody adds gradients up."""
    compare(comm, "SGD", together(comm, keras.optimizers.SGD(0.1, momentum=0.9)),
            by_one(keras.optimizers.SGD(0.1, momentum=0.9)))
    compare(comm, "Adam, clipped", together(comm, keras.optimizers.Adam(0.003, global_clipnorm=0.5)),
            by_one(keras.optimizers.Adam(0.003, global_clipnorm=0.5)), ROUNDING_OF_ADAM)
    single = digits.compiled(digits.network(0), keras.optimizers.SGD(0.1, momentum=0.9))
    single.fit(*tutti.tf.shard(digits.data()), batch_size=digits.BATCH // comm.size, epochs=2, shuffle=False, verbose=0)
    reference, _ = by_one(keras.optimizers.SGD(0.1, momentum=0.9))
    assert digits.apart(single, reference) > 1000 * ROUNDING


def ways(comm):
    """Other ways to run a step."""
    for name, ours, theirs in (("several steps an execution", {"steps_per_execution": 3}, {}),
                               ("without a graph", {"run_eagerly": True}, {})):
        compare(comm, name, together(comm, "sgd", **ours), by_one("sgd", **theirs))
    compare(comm, "accumulated", together(comm, keras.optimizers.SGD(0.1, gradient_accumulation_steps=2)),
            by_one(keras.optimizers.SGD(0.1, gradient_accumulation_steps=2)))


def loop(comm):
    """A training loop of one's own, on a dataset that is shuffled the same way everywhere."""
    def steps(model, dataset, reduce):
        optimizer, loss = keras.optimizers.SGD(0.1), digits.loss()

        @tf.function
        def step(x, y):
            with tf.GradientTape() as tape:
                value = loss(y, model(x, training=True))
            grads = reduce(tape.gradient(value, model.trainable_variables))
            optimizer.apply_gradients(zip(grads, model.trainable_variables))

        for x, y in dataset:
            step(x, y)
        return model

    whole = tf.data.Dataset.from_tensor_slices(digits.data())
    whole = whole.shuffle(digits.COUNT, seed=5, reshuffle_each_iteration=False)
    ours = digits.network(comm.rank)
    tutti.tf.broadcast_variables(ours.weights)
    steps(ours, tutti.tf.shard(whole).batch(digits.BATCH // comm.size), tutti.tf.allreduce_grads)
    same_everywhere(comm, ours)
    difference = digits.apart(ours, steps(digits.network(0), whole.batch(digits.BATCH), lambda grads: grads))
    assert difference <= ROUNDING, difference


def words(seed):
    keras.utils.set_random_seed(seed)
    return keras.Sequential([keras.Input((64,), dtype="int32"), keras.layers.Embedding(17, 8),
                             keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(10)])


def embedding(comm):
    """Gradients that are rows of a table: the shades of grey as words."""
    x, y = digits.data()
    x = (16 * x).astype("int32")
    for name, optimizer, tolerance in (("SGD", keras.optimizers.SGD, ROUNDING),
                                       ("Adam", keras.optimizers.Adam, ROUNDING_OF_ADAM)):
        ours = digits.compiled(words(comm.rank), tutti.tf.distribute_optimizer(optimizer(0.01)))
        ours.fit(*tutti.tf.shard((x, y)), batch_size=digits.BATCH // comm.size, shuffle=False, verbose=0,
                 callbacks=[tutti.tf.Broadcast()])
        same_everywhere(comm, ours)
        one = digits.compiled(words(0), optimizer(0.01))
        one.fit(x, y, batch_size=digits.BATCH, shuffle=False, verbose=0)
        difference = digits.apart(ours, one)
        assert difference <= tolerance, f"{name}: {difference}"


def mixed(comm):
    """A float16 has 11 bits of a number, a bfloat16 8, and products of another batch are rounded otherwise."""
    for policy, tolerance in (("mixed_float16", 2e-3), ("mixed_bfloat16", 2e-2)):
        keras.mixed_precision.set_global_policy(policy)
        compare(comm, policy, together(comm, keras.optimizers.SGD(0.1)), by_one(keras.optimizers.SGD(0.1)), tolerance)
    keras.mixed_precision.set_global_policy("float32")


def overflow(comm):
    """One rank's gradients overflow: all ranks leave the step out, and halve the scale."""
    keras.mixed_precision.set_global_policy("mixed_float16")
    model = digits.compiled(digits.network(0), tutti.tf.distribute_optimizer(keras.optimizers.SGD(0.1)))
    x, y = tutti.tf.shard(digits.data())
    batch, step = (x[:8].copy(), y[:8]), model.train_on_batch
    step(*batch)
    before = model.get_weights()
    scale = float(model.optimizer.dynamic_scale)
    batch[0][0, 0] = numpy.inf if comm.rank == comm.size - 1 else 0
    step(*batch)
    assert isinstance(model.optimizer, keras.mixed_precision.LossScaleOptimizer)
    assert float(model.optimizer.dynamic_scale) == scale / 2, (float(model.optimizer.dynamic_scale), scale)
    assert all((a == b).all() for a, b in zip(before, model.get_weights()))
    batch[0][0, 0] = 0
    step(*batch)
    assert any((a != b).any() for a, b in zip(before, model.get_weights()))
    same_everywhere(comm, model)
    keras.mixed_precision.set_global_policy("float32")


def statistics(comm):
    """Those of BatchNormalization, each rank's of its own batches, become their mean."""
    seen = {}
    model = digits.network(comm.rank, keras.layers.BatchNormalization())
    moving_mean = model.layers[1].moving_mean
    watch = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.update(mean=moving_mean.numpy()))
    together(comm, "sgd", 1, [watch, tutti.tf.AverageStatistics()], model)
    before = everybodys(comm, seen["mean"])
    assert (before[0] != before[-1]).any()
    assert numpy.allclose(moving_mean.numpy(), before.mean(axis=0), rtol=1e-6)
    same_everywhere(comm, model)


def state(comm):
    """Rank 0 goes on where it had got to, and the others with it: weights, momenta, and the number of steps."""
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    model = digits.compiled(digits.network(comm.rank), optimizer)
    if comm.rank == 0:
        model.fit(*digits.data(), batch_size=digits.BATCH, shuffle=False, verbose=0)
    model, _ = together(comm, model.optimizer, 1, model=model)
    assert int(model.optimizer.iterations) == 2 * digits.COUNT // digits.BATCH
    same_everywhere(comm, model)
    if comm.rank == 0:
        difference = digits.apart(model, by_one(keras.optimizers.SGD(0.1, momentum=0.9))[0])
        assert difference <= ROUNDING, difference


def main():
    with tutti.init() as comm:
        for case in sys.argv[1:]:
            globals()[case](comm)
            comm.barrier()
    say("well")


main()
