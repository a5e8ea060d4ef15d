"""What a rank says about an operation that it has submitted, and how the ranks' words are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from typing import Any, Optional

Key = tuple[int, str]
"""The process set and the name: by these the ranks' requests find each other."""

UNNAMED = ".noname."


@dataclass(frozen=True)
class Request:
    """One operation on one tensor, as one rank wants it."""

    name: str
    kind: str
    dtype: str = ""
    shape: tuple[int, ...] = ()
    op: str = ""
    root: int = -1
    prescale: float = 1.0
    postscale: float = 1.0
    splits: tuple[int, ...] = ()
    process_set: int = 0
    group: str = ""
    group_size: int = 1

    @property
    def key(self) -> Key:
        """What tells it from all others that are under way."""
        return self.process_set, self.name

    @property
    def elements(self) -> int:
        """How many there are in the tensor."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def is_repeated(self) -> bool:
        """Whether it may come again under the same name, so that it is worth remembering."""
        return UNNAMED not in self.name and not self.kind.endswith("process_set")

    def __str__(self) -> str:
        return f"{self.kind} of {self.name!r}"

    def packed(self) -> list[Any]:
        """As JSON can carry it."""
        return list(astuple(self))

    @staticmethod
    def of(packed: Sequence[Any]) -> Request:
        """What packed() gave."""
        values: list[Any] = [tuple(value) if isinstance(value, list) else value for value in packed]
        return Request(*values)


_RAGGED = ("allgather", "alltoall")  # each rank has a first dimension, and splits, of its own
_WORDS = {
    "kind": "the operation",
    "dtype": "the type",
    "shape": "the shape",
    "op": "the operator",
    "root": "the root rank",
    "prescale": "prescale_factor",
    "postscale": "postscale_factor",
    "group": "the group",
    "group_size": "the group's size",
}


def _of(request: Request, field: str) -> Any:
    ragged = request.kind in _RAGGED
    if field == "shape" and ragged:
        return ("*", *request.shape[1:])
    return () if field == "splits" and ragged else getattr(request, field)


def named(ranks: Sequence[int]) -> str:
    """Ranks in words."""
    return f"rank {ranks[0]}" if len(ranks) == 1 else "ranks " + ", ".join(map(str, ranks))


def _shown(value: Any) -> str:
    return "(" + ", ".join(map(str, value)) + ")" if isinstance(value, tuple) else str(value) or "none"


def difference(requests: Sequence[Optional[Request]]) -> Optional[str]:
    """In what the requests of the ranks (None: has none) do not fit each other, and who wants what; None: they fit."""
    told = [(rank, request) for rank, request in enumerate(requests) if request is not None]
    for field in (field.name for field in fields(Request)):
        sides: dict[Any, list[int]] = {}
        for rank, request in told:
            sides.setdefault(_of(request, field), []).append(rank)
        if len(sides) > 1:
            each = ", ".join(
                f"{named(ranks)} {'has' if len(ranks) == 1 else 'have'} {_shown(value)}"
                for value, ranks in sides.items()
            )
            return f"the ranks differ in {_WORDS.get(field, field)}: {each}"
    return None
