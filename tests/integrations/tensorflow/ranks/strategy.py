"""The same training loop by TensorFlow's own MultiWorkerMirroredStrategy, on its RING of the CPU, and by tutti.
Usage: strategy.py own|tutti"""
import os
import sys

import digits
import keras
import tensorflow as tf

import tutti.tf

EPOCHS = 3


def whole():
    return tf.data.Dataset.from_tensor_slices(digits.data())


def own():
    kind = tf.distribute.experimental.CommunicationImplementation.RING
    options = tf.distribute.experimental.CommunicationOptions(implementation=kind)
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    sharding = tf.data.Options()
    sharding.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    with strategy.scope():
        model, optimizer = digits.network(0), keras.optimizers.SGD(0.1)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum")

    def step(data):
        with tf.GradientTape() as tape:
            value = loss(data[1], model(data[0], training=True)) / digits.BATCH
        optimizer.apply_gradients(zip(tape.gradient(value, model.trainable_variables), model.trainable_variables))
        return value

    @tf.function
    def together(data):
        return strategy.reduce("SUM", strategy.run(step, args=(data,)), axis=None)

    batches = strategy.experimental_distribute_dataset(whole().batch(digits.BATCH).with_options(sharding))
    return [[float(together(data)) for data in batches] for _ in range(EPOCHS)], strategy.num_replicas_in_sync


def by_tutti():
    with tutti.init() as comm:
        model, optimizer, loss = digits.network(0), keras.optimizers.SGD(0.1), digits.loss()

        @tf.function
        def step(x, y):
            with tf.GradientTape() as tape:
                value = loss(y, model(x, training=True))
            grads = tutti.tf.allreduce_grads([*tape.gradient(value, model.trainable_variables), value])
            optimizer.apply_gradients(zip(grads[:-1], model.trainable_variables))
            return grads[-1]

        batches = tutti.tf.shard(whole()).batch(digits.BATCH // comm.size)
        return [[float(step(*data)) for data in batches] for _ in range(EPOCHS)], comm.size


def main():
    losses, ranks = own() if sys.argv[1] == "own" else by_tutti()
    os.write(1, f"losses of {ranks}: {' '.join(f'{sum(each) / len(each):.7f}' for each in losses)}\nwell\n".encode())


main()
