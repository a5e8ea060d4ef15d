"""Optimizers whose steps are taken with the gradients of all ranks."""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Callable, Optional, Union

import torch
from torch import Tensor

from tutti._errors import InvalidArgument, InvalidUsage
from tutti.hvd._arguments import factor, whole
from tutti.hvd._compressors import Compression, Compressor
from tutti.hvd._handles import AnyHandle
from tutti.hvd._operations import Average, ReduceOp, allreduce_async_, operator, synchronize
from tutti.hvd._optimizer_names import Group, groups_of, names_of
from tutti.hvd._process_sets import ProcessSet, global_process_set


class Reducer:
    """The gradients of one optimizer: begins to reduce each when the backward pass has made it, and waits for all."""

    def __init__(
        self,
        names: dict[Tensor, str],
        groups: dict[Tensor, Group],
        compression: type[Compressor],
        backward_passes: int,
        sparse_as_dense: bool,
        wish: dict[str, Any],
    ) -> None:
        self.backward_passes = backward_passes
        self._names, self._groups = names, groups
        self._compression, self._sparse_as_dense, self._wish = compression, sparse_as_dense, wish
        self._passes: Counter[Tensor] = Counter()
        self._under_way: dict[Tensor, tuple[AnyHandle, Tensor, Any]] = {}
        self._hooks = [parameter.register_post_accumulate_grad_hook(self._made) for parameter in names]

    @property
    def is_under_way(self) -> bool:
        """Whether there are gradients for which nobody has waited."""
        return bool(self._under_way)

    def _made(self, parameter: Tensor) -> None:
        """A backward pass has added to the gradient."""
        if parameter in self._under_way:
            raise InvalidUsage(
                f"the gradient of {self._names[parameter]} was made once more while it is reduced: after"
                f" {self.backward_passes} backward pass(es) call step() or synchronize() first, or give"
                " DistributedOptimizer a larger backward_passes_per_step"
            )
        self._passes[parameter] += 1
        if self._passes[parameter] == self.backward_passes:
            self._begin(parameter)

    def _gradient(self, parameter: Tensor) -> Tensor:
        """Zeros where this rank has made none: others may have."""
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        if parameter.grad.is_sparse:
            if not self._sparse_as_dense:
                raise InvalidUsage(
                    f"the gradient of {self._names[parameter]} is sparse: give DistributedOptimizer "
                    "sparse_as_dense=True, or make it dense (torch.nn.Embedding has sparse=False)"
                )
            parameter.grad = parameter.grad.to_dense()
        return parameter.grad

    def _begin(self, parameter: Tensor) -> None:
        sent, context = self._compression.compress(self._gradient(parameter).detach())
        group = self._groups.get(parameter)
        name = f"gradient.{self._names[parameter]}"
        handle = (
            allreduce_async_(sent, name=name, **self._wish) if group is None else group.begin(sent, name, self._wish)
        )
        self._under_way[parameter] = handle, sent, context

    def finish(self) -> None:
        """Until the gradients of all parameters, made here or not, are everybody's."""
        for parameter in self._names:
            if parameter not in self._under_way:
                self._begin(parameter)
        under_way, self._under_way = self._under_way, {}
        self._passes.clear()
        for parameter, (handle, sent, context) in under_way.items():
            synchronize(handle)
            result = self._compression.decompress(sent, context)
            gradient = parameter.grad
            if gradient is not None and result.data_ptr() != gradient.data_ptr():
                gradient.copy_(result)


class _Distributed(torch.optim.Optimizer):
    """What an optimizer becomes, beside what it is."""

    _reducer: Reducer
    _synchronizes: bool
    _synchronized: bool

    def synchronize(self) -> None:
        """Waits for the gradients of all ranks, for who wants to see or clip them before step(), which then takes them
        as they are."""
        self._reducer.finish()
        self._synchronized = True

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """In this block step() takes the gradients as they are, also without synchronize()."""
        self._synchronizes = False
        try:
            yield
        finally:
            self._synchronizes = True

    def set_backward_passes_per_step(self, passes: int) -> None:
        """From now on so many."""
        self._reducer.backward_passes = _at_least_one(passes)

    def zero_grad(self, *arguments: Any, **keywords: Any) -> None:
        """As ever; refuses while gradients are on their way."""
        if self._reducer.is_under_way:
            raise InvalidUsage(
                "zero_grad() was called after backward() and before step() or synchronize(): gradients that are "
                "on their way to other ranks would be lost"
            )
        super().zero_grad(*arguments, **keywords)

    def _before_step(
        self, arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Optional[tuple[Any, dict[str, Any]]]:
        closure = keywords.get("closure", arguments[1] if len(arguments) > 1 else None)
        done, self._synchronized = self._synchronized and not self._reducer.is_under_way, False
        if not self._synchronizes:
            return None
        if closure is None:
            if not done:
                self._reducer.finish()
            return None
        return (arguments[0],), {**keywords, "closure": self._synchronizing(closure)}

    def _synchronizing(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        def with_everybody() -> Any:
            loss = closure()
            self._reducer.finish()
            return loss

        return with_everybody


def _at_least_one(passes: int) -> int:
    if whole(passes, "backward_passes_per_step") < 1:
        raise InvalidArgument(f"backward_passes_per_step is {passes}: it is 1 or more")
    return passes


def _factors(op: Optional[ReduceOp], predivide: float) -> dict[str, Any]:
    chosen = operator(None, op)
    if not factor(predivide, "gradient_predivide_factor") > 0:
        raise InvalidArgument(f"gradient_predivide_factor is {predivide}: it is a number above 0")
    if predivide != 1 and chosen is not Average:
        raise InvalidArgument(
            f"gradient_predivide_factor is {predivide}: it splits the division of an Average; leave it away with "
            f"{chosen.name}"
        )
    return {"op": chosen, "prescale_factor": 1 / predivide, "postscale_factor": predivide}


def DistributedOptimizer(  # pylint: disable=invalid-name
    optimizer: torch.optim.Optimizer,
    named_parameters: Optional[Iterable[tuple[str, Tensor]]] = None,
    compression: type[Compressor] = Compression.none,
    backward_passes_per_step: int = 1,
    op: ReduceOp = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Optional[Union[int, Sequence[Sequence[Tensor]]]] = None,
    sparse_as_dense: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Makes the optimizer one whose step() is taken with the gradients of all ranks, reduced by `op` while the backward
    pass goes on. Returns the same object, whose class is now a subclass of its own.

    named_parameters: model.named_parameters(); the names are the same on all ranks. backward_passes_per_step: gradients
    are reduced after so many backward passes, whose sum they are. gradient_predivide_factor: an average is divided by
    it before the sum, and by size / it after that. groups: lists of parameters whose gradients go in one piece, or how
    many such lists to make (num_groups is the older way to say so). sparse_as_dense: sparse gradients are made dense;
    else they are refused. Raises InvalidArgument where the arguments are wrong, and in backward() and step() what
    synchronize() of this module does."""
    if isinstance(optimizer, _Distributed):
        raise InvalidUsage("the optimizer is a DistributedOptimizer already: its gradients would be reduced twice")
    names = names_of(optimizer, named_parameters)
    wish = {**_factors(op, gradient_predivide_factor), "process_set": process_set}
    reducer = Reducer(
        names,
        groups_of(groups or num_groups or None, names),
        compression,
        _at_least_one(backward_passes_per_step),
        sparse_as_dense,
        wish,
    )
    kind = type(optimizer)
    optimizer.__class__ = type(kind.__name__, (_Distributed, kind), {})
    distributed: Any = optimizer
    distributed._reducer, distributed._synchronizes, distributed._synchronized = reducer, True, False
    # A hook, rather than a step() of its own: a scheduler may have wrapped that of the class that it was.
    optimizer.register_step_pre_hook(
        lambda _optimizer, arguments, keywords: distributed._before_step(arguments, keywords)
    )
    return distributed
