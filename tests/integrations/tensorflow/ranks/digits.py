"""What the cases train: the handwritten digits, and networks that fit them."""
import keras
import numpy
from sklearn.datasets import load_digits

BATCH, COUNT = 64, 512  # samples of all ranks together: whole batches, for up to 4 ranks


def data():
    x, y = load_digits(return_X_y=True)
    return (x[:COUNT] / 16).astype("float32"), y[:COUNT]


def network(seed, *more):
    """With the weights that the seed draws."""
    keras.utils.set_random_seed(seed)
    hidden = keras.layers.Dense(32, activation="relu")
    return keras.Sequential([keras.Input((64,)), hidden, *more, keras.layers.Dense(10)])


def loss():
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def compiled(model, optimizer, **options):
    model.compile(optimizer, loss(), metrics=["accuracy"], **options)
    return model


def apart(first, second):
    """How far the furthest weights of two models are apart."""
    pairs = zip(first.get_weights(), second.get_weights())
    return max(float(numpy.abs(one.astype("float64") - other).max()) for one, other in pairs)
