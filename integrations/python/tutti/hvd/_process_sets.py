"""Some of the ranks, which do operations among themselves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Optional

from tutti._errors import InvalidUsage
from tutti.hvd._arguments import whole_numbers


class ProcessSet:
    """Ranks, in ascending order; usable from when init(process_sets=...) or add_process_set() has heard of it."""

    def __init__(self, ranks: Iterable[int]) -> None:
        self.ranks: tuple[int, ...] = tuple(sorted(set(whole_numbers(ranks, "the ranks of a ProcessSet"))))
        self.process_set_id: Optional[int] = None
        self._own_rank = -1

    def size(self) -> int:
        """How many ranks it has."""
        return len(self.ranks)

    def rank(self) -> int:
        """The number of this process among them; raises where it is not one of them."""
        if not self.included():
            raise InvalidUsage(f"rank {self._own_rank} is not in {self}: only those that are have a rank in it")
        return self.ranks.index(self._own_rank)

    def included(self) -> bool:
        """Whether this process is one of them."""
        return self._own_rank in self.ranks

    def __str__(self) -> str:
        return f"the process set of ranks {', '.join(map(str, self.ranks))}"

    def enter(self, number: Optional[int], own_rank: int, ranks: Iterable[int]) -> None:
        """The library's: it is known under this number now, or, with None, no more."""
        self.process_set_id, self._own_rank, self.ranks = number, own_rank, tuple(ranks)


global_process_set = ProcessSet(())
"""All ranks: what operations are for unless told otherwise."""
