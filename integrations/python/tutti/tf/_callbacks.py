"""What the ranks do together around training: callbacks for model.fit, the same on every rank."""
from __future__ import annotations

from typing import Any

import keras
import numpy

import tutti
from tutti import Communicator
from tutti.tf._communicator import communicator
from tutti.tf._optimizer import is_distributed
from tutti.tf._variables import average_variables, broadcast_variables


class _Callback(keras.callbacks.Callback):  # type: ignore[misc]
    def __init__(self, comm: Communicator | None = None) -> None:
        super().__init__()
        self._comm = communicator(comm)


class Broadcast(_Callback):
    """Before training, gives every rank the weights of the model and the state of the optimizer that rank `root` has:
    those it has drawn, or loaded from a checkpoint that only it can see. What layers draw later (dropout) stays each
    rank's own.

    Raises tutti.InvalidUsage where that would be of no use: for a model that has no weights yet, for one whose step XLA
    is to compile, which has no way out to other ranks, and for one whose optimizer is not of distribute_optimizer(),
    unless it has a train_step() of its own."""

    def __init__(self, root: int = 0, comm: Communicator | None = None) -> None:
        super().__init__(comm)
        self._root = root

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Called by Keras."""
        del logs
        self._refuse()
        if not self.model.optimizer.built:
            self.model.optimizer.build(self.model.trainable_variables)
        broadcast_variables([*self.model.weights, *self.model.optimizer.variables], self._root, self._comm)

    def _refuse(self) -> None:
        model, name = self.model, self.model.name
        if not model.built:
            raise tutti.InvalidUsage(f"the model {name} has no weights yet that all ranks could share: begin it with a "
                                     "keras.Input, or call its build() with the shape of a batch before fit()")
        if model.jit_compile:
            raise tutti.InvalidUsage(f"the model {name} is to be compiled by XLA, which cannot call tutti in the middle "
                                     "of a step: compile(jit_compile=False)")
        if type(model).train_step is keras.Model.train_step and not is_distributed(model.optimizer):
            raise tutti.InvalidUsage(f"the optimizer of the model {name} applies this rank's gradients alone: compile it "
                                     "with tutti.tf.distribute_optimizer(optimizer); a model that was loaded, too")


class AverageMetrics(_Callback):
    """At the end of an epoch, has the mean over all ranks of each value in `logs`. Stands before callbacks that look at
    them (ModelCheckpoint, EarlyStopping, ReduceLROnPlateau), which then decide the same on every rank. For means over
    samples (losses, accuracies), and as many samples on each rank, that is the value of all samples together; for
    others (AUC) it is the mean of the ranks' values."""

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Called by Keras."""
        del epoch
        if logs:
            values = {name: numpy.asarray(logs[name], "float64") for name in sorted(logs)}  # some metrics give arrays
            flat = numpy.concatenate([value.reshape(-1) for value in values.values()])
            self._comm.all_reduce(flat, op="avg")
            parts = numpy.split(flat, numpy.cumsum([value.size for value in values.values()])[:-1])
            for (name, value), part in zip(values.items(), parts):
                logs[name] = part.reshape(value.shape) if value.ndim else float(part[0])


class AverageStatistics(_Callback):
    """Before validation and at the end of an epoch, gives the weights that are not trained and hold statistics of the
    data (means and variances of BatchNormalization) the mean over all ranks, of which each has seen its own part.
    Stands before the callback that saves the model. With validation, all ranks validate."""

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Called by Keras."""
        del logs
        self._average()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Called by Keras."""
        del epoch, logs
        self._average()

    def _average(self) -> None:
        floating = [weight for weight in self.model.non_trainable_weights if "float" in str(weight.dtype)]
        average_variables(floating, self._comm)
