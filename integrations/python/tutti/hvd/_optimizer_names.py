"""By which names ranks know an optimizer's parameters, and which of these go together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

import torch
from torch import Tensor

from tutti._errors import InvalidArgument
from tutti.hvd._handles import AnyHandle
from tutti.hvd._operations import begin_in_group


@dataclass(frozen=True)
class Group:
    """Gradients that are reduced in one piece."""

    name: str
    size: int

    def begin(self, tensor: Tensor, name: str, wish: dict[str, Any]) -> AnyHandle:
        """Begins to reduce one of them, which waits for the others."""
        return begin_in_group(tensor, name, self.name, self.size, **wish)


def _parameters(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"] if parameter.requires_grad]


def names_of(optimizer: torch.optim.Optimizer, named: Optional[Iterable[tuple[str, Tensor]]]) -> dict[Tensor, str]:
    """The name of each parameter that has a gradient, in the optimizer's order; numbers where none are given."""
    parameters = _parameters(optimizer)
    if named is None:
        return {parameter: f"parameter.{number}" for number, parameter in enumerate(parameters)}
    pairs = list(named)
    twice = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
    if twice:
        raise InvalidArgument(
            f"named_parameters has several parameters of one name: {', '.join(twice)}; give each its own"
        )
    names = {parameter: name for name, parameter in pairs}
    lacking = sum(parameter not in names for parameter in parameters)
    if lacking:
        raise InvalidArgument(
            f"named_parameters lacks {lacking} of the {len(parameters)} parameters of the optimizer: give all, "
            "as model.named_parameters() does, or none"
        )
    return {parameter: names[parameter] for parameter in parameters}


def groups_of(told: Optional[Union[int, Sequence[Sequence[Tensor]]]], names: dict[Tensor, str]) -> dict[Tensor, Group]:
    """The group of each parameter that has one."""
    if told is None:
        return {}
    lists = _cut(list(names), told) if isinstance(told, int) else told
    groups: dict[Tensor, Group] = {}
    for number, members in enumerate(lists):
        for parameter in members:
            if parameter not in names or parameter in groups:
                raise InvalidArgument(
                    f"groups: the parameter {names.get(parameter, 'without a name')} of group {number} is not one "
                    "of the optimizer's, or in two groups"
                )
            groups[parameter] = Group(f"gradients.{number}", len(members))
    return groups


def _cut(parameters: Sequence[Tensor], count: int) -> list[Sequence[Tensor]]:
    if count < 1:
        raise InvalidArgument(f"groups is {count}: it is a number of groups from 1 on, or lists of parameters")
    length = -(-len(parameters) // count)
    return [parameters[at : at + length] for at in range(0, len(parameters), length)]
