"""A worker that dies in the middle of training, and what the others see."""
import os
import signal

import digits
import keras
import tensorflow as tf

import tutti
import tutti.tf


class Die(keras.callbacks.Callback):
    """Without a word, after some steps."""

    def on_train_batch_end(self, batch, logs=None):
        if batch == 3:
            os.kill(os.getpid(), signal.SIGKILL)


def main():
    with tutti.init() as comm:
        model = digits.compiled(digits.network(comm.rank), tutti.tf.distribute_optimizer("sgd"))
        calls = [tutti.tf.Broadcast(), *([Die()] if comm.rank == 1 else [])]
        try:
            model.fit(*tutti.tf.shard(digits.data()), batch_size=8, epochs=1000, verbose=0, callbacks=calls)
        except tf.errors.OpError as error:
            assert "rank 1" in str(error) and "left" in str(error) and "RemoteError" in str(error), error
            assert "rank 1" in comm.error, comm.error
            os.write(1, b"well\n")


main()
