"""What was agreed before: a number for each operation that all ranks know alike, so that a bit says that one has come
again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Optional

from tutti.hvd._request import Key, Request

Agreed = tuple[Optional[Request], ...]
"""Of each rank its request; None where a rank is not of the process set."""


class Cache:
    """Changes in the same way on every rank, as all of it follows from what the ranks have told each other. Least
    recently used goes first."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._slots: OrderedDict[Key, int] = OrderedDict()  # the least recently used first
        self._agreed: list[Optional[Agreed]] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        """Slots, the empty ones included: so many bits are exchanged."""
        return len(self._agreed)

    def __iter__(self) -> Iterator[tuple[int, Agreed]]:
        return ((slot, agreed) for slot, agreed in enumerate(self._agreed) if agreed is not None)

    def keys(self) -> list[Key]:
        """Of all that is there."""
        return list(self._slots)

    def slot(self, key: Key) -> Optional[int]:
        """Where it is, if it is there."""
        return self._slots.get(key)

    def __getitem__(self, slot: int) -> Agreed:
        agreed = self._agreed[slot]
        assert agreed is not None
        return agreed

    def use(self, key: Key) -> None:
        """It was wanted just now."""
        self._slots.move_to_end(key)

    def drop(self, key: Key) -> Optional[int]:
        """Forgets it, and returns the slot that it had."""
        slot = self._slots.pop(key, None)
        if slot is not None:
            self._agreed[slot] = None
            self._free.append(slot)
        return slot

    def oldest(self) -> Optional[Key]:
        """Who has to go before another one comes; None: there is room."""
        return next(iter(self._slots), None) if len(self._slots) >= self._capacity else None

    def add(self, key: Key, requests: Sequence[Optional[Request]]) -> None:
        """Remembers what was agreed, in a slot that is free."""
        if self._capacity == 0:
            return
        slot = self._free.pop() if self._free else len(self._agreed)
        if slot == len(self._agreed):
            self._agreed.append(None)
        self._agreed[slot] = tuple(requests)
        self._slots[key] = slot
