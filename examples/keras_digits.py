"""Trains a small Keras network on handwritten digits, with as many workers as TF_CONFIG names.

    TF_CONFIG='{"cluster": {"worker": ["localhost:4711", "localhost:4712"]}, "task": {"type": "worker", "index": 0}}' \\
        python examples/keras_digits.py &
    TF_CONFIG='{"cluster": {"worker": ["localhost:4711", "localhost:4712"]}, "task": {"type": "worker", "index": 1}}' \\
        python examples/keras_digits.py

Without TF_CONFIG, and under any other launcher that tutti knows, it runs as well. Needs tensorflow-cpu and scikit-learn.
"""
import argparse
import os

import keras
from sklearn.datasets import load_digits

os.environ.setdefault("TUTTI_LAUNCHER", "auto-or-none")  # nobody has started this with others: then it is alone

import tutti  # noqa: E402
import tutti.tf  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(description="Trains a small Keras network on handwritten digits.")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=64, help="samples of all workers together (default: 64)")
    parser.add_argument("--checkpoint", default="digits.keras", help="where the first worker saves the best model")
    return parser.parse_args()


def digits(train):
    """Four fifths to learn, and every fifth to test."""
    x, y = load_digits(return_X_y=True)
    chosen = [index for index in range(len(y)) if (index % 5 != 0) == train]
    return x[chosen].astype("float32") / 16, y[chosen]


def network():
    return keras.Sequential([keras.Input((64,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(10)])


def callbacks(comm, told):
    """The first two come first: what others see is then that of all workers."""
    common = [tutti.tf.Broadcast(), tutti.tf.AverageMetrics(), keras.callbacks.EarlyStopping("val_loss", patience=3)]
    if comm.rank == 0:  # one file, one writer
        common.append(keras.callbacks.ModelCheckpoint(told.checkpoint, monitor="val_loss", save_best_only=True))
    return common


def main():
    told = arguments()
    with tutti.init() as comm:
        keras.utils.set_random_seed(1)
        model = network()
        model.compile(tutti.tf.distribute_optimizer(keras.optimizers.Adam(0.003)),
                      keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
        x, y = tutti.tf.shard(digits(train=True))
        history = model.fit(x, y, batch_size=told.batch // comm.size, epochs=told.epochs, shuffle=False, verbose=0,
                            validation_data=tutti.tf.shard(digits(train=False)), callbacks=callbacks(comm, told)).history
        if comm.rank == 0:
            print(f"{comm.size} workers: loss {history['loss'][-1]:.5f}, validation loss {history['val_loss'][-1]:.5f}, "
                  f"accuracy {history['val_accuracy'][-1]:.4f}")


if __name__ == "__main__":
    main()
