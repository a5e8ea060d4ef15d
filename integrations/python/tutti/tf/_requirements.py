"""What tutti.tf needs beside tutti, and what it says where that is missing."""
from __future__ import annotations

import sys

try:
    import tensorflow as tf  # isort: skip  (Keras without it says so in other words)
    import keras
except ModuleNotFoundError as missing:
    if missing.name not in ("keras", "tensorflow"):
        raise  # it is installed, and lacks something of its own
    raise ImportError(f"tutti.tf needs TensorFlow, and {sys.executable} has no module {missing.name}: pip install "
                      "tensorflow-cpu (or tensorflow)", name=missing.name) from missing


def _check() -> None:
    """Raises ImportError where TensorFlow or Keras is there, but not as tutti.tf needs it."""
    if not keras.__version__.startswith("3."):
        raise ImportError(f"tutti.tf needs Keras 3, and this is Keras {keras.__version__} (TensorFlow {tf.__version__}): "
                          "install TensorFlow 2.16 or newer")
    if keras.backend.backend() != "tensorflow":
        raise ImportError(f"tutti.tf needs Keras on TensorFlow, and this Keras runs on {keras.backend.backend()}: set "
                          "KERAS_BACKEND=tensorflow, or the key backend in ~/.keras/keras.json")


_check()
