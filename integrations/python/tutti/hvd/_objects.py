"""Python objects on all ranks, and the parameters and optimizers that training begins with."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from typing import Any, Optional, Union

import torch
from torch import Tensor

from tutti.hvd._operations import broadcast_together_, gather_rows, root_of, synchronize
from tutti.hvd._process_sets import ProcessSet, global_process_set
from tutti.hvd._world import rank


def _bytes_of(value: Any) -> Tensor:
    return torch.frombuffer(bytearray(pickle.dumps(value)), dtype=torch.uint8)


def allgather_object(obj: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> list[Any]:
    """The object of each rank, in the order of ranks. Objects are pickled: the ranks have to trust each other."""
    gathered, rows = gather_rows(_bytes_of(obj), f"object.{name}" if name else None, process_set).wait()
    return [pickle.loads(part.numpy().tobytes()) for part in gathered.split(rows)]


def broadcast_object(
    obj: Any, root_rank: int = 0, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> Any:
    """The object of rank root_rank, on all ranks; the root gets its own, the others a copy that was pickled."""
    root = root_of(root_rank, process_set)
    own = rank() == root
    sent = _bytes_of(obj) if own else torch.empty(0, dtype=torch.uint8)  # how much it is, all hear while they agree
    gathered, _ = gather_rows(sent, f"object.{name}.from.{root}" if name else None, process_set).wait()
    return obj if own else pickle.loads(gathered.numpy().tobytes())


def broadcast_parameters(
    params: Union[Mapping[str, Any], Iterable[tuple[str, Any]]],
    root_rank: int,
    process_set: ProcessSet = global_process_set,
) -> None:
    """Brings rank root_rank's tensors into those of all ranks, in place: of model.state_dict(), or of
    model.named_parameters(). What is no tensor stays as it is."""
    named = params.items() if isinstance(params, Mapping) else params
    tensors = [(f"parameter.{name}", tensor) for name, tensor in named if isinstance(tensor, Tensor)]
    synchronize(broadcast_together_(tensors, root_rank, process_set))


class _Placeholder:
    """Of a tensor in a state that is sent without its tensors: the number that it has among them."""

    def __init__(self, number: int, tensor: Tensor) -> None:
        self.number, self.shape, self.dtype = number, tensor.shape, tensor.dtype


def _map_leaves(state: Any, change: Any) -> Any:
    if isinstance(state, dict):
        return {key: _map_leaves(value, change) for key, value in state.items()}
    if isinstance(state, (list, tuple)):
        return type(state)(_map_leaves(value, change) for value in state)
    return change(state)


def broadcast_optimizer_state(
    optimizer: torch.optim.Optimizer, root_rank: int, process_set: ProcessSet = global_process_set
) -> None:
    """Brings rank root_rank's state of the optimizer, options such as lr included, to all ranks. Before the first step
    there is no state, and only the options are sent."""
    own = rank() == root_rank
    tensors: list[Tensor] = []

    def taken_out(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        tensors.append(leaf)
        return _Placeholder(len(tensors) - 1, leaf)

    def made(leaf: Any) -> Any:
        if not isinstance(leaf, _Placeholder):
            return leaf
        tensors.append(torch.empty(leaf.shape, dtype=leaf.dtype))
        return tensors[-1]

    state = broadcast_object(
        _map_leaves(optimizer.state_dict(), taken_out) if own else None, root_rank, "optimizer", process_set
    )
    filled = None if own else _map_leaves(state, made)
    broadcast_parameters(
        ((f"optimizer.{number}", tensor) for number, tensor in enumerate(tensors)), root_rank, process_set
    )
    if filled is not None:
        optimizer.load_state_dict(filled)
