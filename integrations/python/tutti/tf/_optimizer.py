"""Keras optimizers that apply what all ranks together have computed."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

import tutti
from tutti import Communicator
from tutti.tf._communicator import communicator
from tutti.tf._fusion import BUCKET_BYTES
from tutti.tf._gradients import Op, allreduce_grads, check_op

_LossScaleOptimizer: Any = keras.mixed_precision.LossScaleOptimizer


class _Distributed:
    """Mixed into an optimizer's class. Everything behind apply(), clipping and the check for overflow included, sees
    the gradients of the whole batch: so all ranks decide and compute the same."""

    _reduce: Callable[[Sequence[Any]], list[Any]]

    def apply(self, grads: Sequence[Any], trainable_variables: Any = None) -> Any:
        """As the optimizer's own."""
        return super().apply(self._reduce(list(grads)), trainable_variables)  # type: ignore[misc]

    def __setattr__(self, name: str, value: Any) -> None:
        # That is how a LossScaleOptimizer takes an optimizer over (so does compile() with mixed_float16). It applies
        # nothing where this rank's gradients overflow: then the others would wait for ours.
        if name == "loss_scale_factor" and value is None:
            raise tutti.InvalidUsage(
                "an optimizer of tutti.tf.distribute_optimizer() is put into a LossScaleOptimizer, whose ranks would then "
                "go separate ways at an overflow: distribute that one instead, "
                "tutti.tf.distribute_optimizer(keras.mixed_precision.LossScaleOptimizer(optimizer)), or set the policy "
                "mixed_float16 before distribute_optimizer(), which then does so itself")
        super().__setattr__(name, value)


def is_distributed(optimizer: Any) -> bool:
    """Whether it comes from distribute_optimizer()."""
    return isinstance(optimizer, _Distributed)


def _refuse(optimizer: Any) -> None:
    if is_distributed(optimizer):
        raise tutti.InvalidUsage(f"the optimizer {optimizer.name} is distributed already: its gradients would be added up "
                                 "twice")
    if tf.distribute.has_strategy():
        raise tutti.InvalidUsage(
            f"this runs in the scope of a {type(tf.distribute.get_strategy()).__name__}, which adds gradients up by itself: "
            "leave the strategy and its scope out, tutti takes their place (docs/tensorflow.md)")


def _scaled(optimizer: Any) -> Any:
    """As compile() would do it, were the result no LossScaleOptimizer."""
    if keras.mixed_precision.dtype_policy().name != "mixed_float16" or isinstance(optimizer, _LossScaleOptimizer):
        return optimizer
    return _LossScaleOptimizer(optimizer)


def distribute_optimizer(optimizer: Any, comm: Communicator | None = None, *, op: Op = "avg",
                         bucket_bytes: int = BUCKET_BYTES) -> Any:
    """Has a Keras optimizer (or its name, such as "adam") apply the mean ("avg") or the sum of all ranks' gradients;
    for `op` and `bucket_bytes` see allreduce_grads(). Call it before compile(), on every rank. Losses are means over a
    rank's batch, so with batches of equal size "avg" is what one process would have computed on all of them together.

    Returns the optimizer, which stays what it was otherwise: of its class, with its state, and saved as such, so that
    models are loaded without tutti; compile those anew with distribute_optimizer(model.optimizer) to train them
    further. Where the policy is mixed_float16 it is put into a LossScaleOptimizer first, as compile() does.

    Raises tutti.InvalidUsage for an optimizer that is distributed already, and in the scope of a tf.distribute
    strategy."""
    check_op(op)
    chosen = communicator(comm)
    scaled = _scaled(keras.optimizers.get(optimizer))
    _refuse(scaled)

    def reduce(grads: Sequence[Any]) -> list[Any]:
        reduced: list[Any] = allreduce_grads(grads, chosen, op=op, bucket_bytes=bucket_bytes)
        return reduced

    own = type(scaled)
    # The same name in the same module: what Keras writes into a file is the class that everybody has.
    own_names = {"__module__": own.__module__, "_reduce": staticmethod(reduce)}
    scaled.__class__ = type(own.__name__, (_Distributed, own), own_names)
    return scaled
