"""How ranks that submit operations in different orders agree on what runs next.

They meet in rounds. In each, one bit a remembered operation is combined by "and" over all ranks: what is submitted
everywhere has its bit left. Only where a rank has something that is not remembered do all tell each other theirs in
full. What follows from these words is worked out by every rank for itself, alike: there is no coordinator.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional, Protocol

from tutti.hvd._cache import Cache
from tutti.hvd._request import Key, Request, difference, named


class Exchange(Protocol):
    """The way to the other ranks."""

    def all_and(self, words: int, size: int) -> int:
        """A number of so many bytes, its bits combined by "and" over all ranks."""

    def all_gather(self, words: bytes) -> list[bytes]:
        """What each rank says, in the order of ranks."""


@dataclass(frozen=True)
class Ready:
    """An operation that every rank of its process set has submitted, or will have no tensor for as it has joined."""

    requests: tuple[Optional[Request], ...]
    error: Optional[str] = None

    @property
    def request(self) -> Request:
        """That of the first rank that has one: in what ranks have to agree on, everybody's."""
        return next(request for request in self.requests if request is not None)

    @property
    def differs_in_group(self) -> bool:
        """Whether the ranks do not agree on what it belongs to: it is wrong, and no group waits for it."""
        return len({(request.group, request.group_size) for request in self.requests if request is not None}) > 1


@dataclass(frozen=True)
class End:
    """Why there are no more rounds: a rank has left, or it has stopped all others."""

    rank: int
    text: str
    is_stall: bool = False


@dataclass
class Entry:
    """What ranks have said in full of an operation that not all have submitted yet."""

    since: float
    requests: dict[int, Request] = field(default_factory=dict)


@dataclass
class _News:
    """What this rank has to say in full in the next round."""

    requests: dict[Key, tuple[Request, float]] = field(default_factory=dict)  # and since when they wait
    joins: bool = False
    end: Optional[End] = None

    def __bool__(self) -> bool:
        return bool(self.requests or self.joins or self.end)

    def packed(self, now: float) -> bytes:
        waiting = [[*request.packed(), now - since] for request, since in self.requests.values()]
        end = [self.end.text, self.end.is_stall] if self.end else None
        return json.dumps([waiting, self.joins, end]).encode()


_BUSY, _NEWS, _FLAG_BITS = 1, 2, 8  # said by a bit that is not set, so that one rank is enough


class Negotiation:
    """One rank's part. Used by one thread."""

    def __init__(self, rank: int, size: int, exchange: Exchange, capacity: int) -> None:
        self.rank, self.size = rank, size
        self.sets: dict[int, tuple[int, ...]] = {0: tuple(range(size))}  # the process sets' ranks
        self.joined: list[int] = []  # in this order
        self.end: Optional[End] = None
        self.others_busy = False
        self.counts = {"rounds": 0.0, "exchanges_in_full": 0.0, "cache_hits": 0.0}
        self._exchange = exchange
        self._cache = Cache(capacity)
        self._table: dict[Key, Entry] = {}  # in the order in which they were heard of
        self._own: dict[Key, tuple[Request, float]] = {}  # submitted here, and not ready yet
        self._remembered: dict[int, Key] = {}  # of these those that a bit says, by their slots
        self._news = _News()

    @property
    def is_busy(self) -> bool:
        """Whether this rank waits for something."""
        return bool(self._own or self._news or self.rank in self.joined)

    def has(self, key: Key) -> bool:
        """Whether this rank has submitted it and waits for others."""
        return key in self._own

    def submit(self, request: Request) -> None:
        """This rank is ready for it. Its key is of none that it waits for."""
        self._own[request.key] = request, time.monotonic()
        slot = self._cache.slot(request.key)
        if slot is not None and self._cache[slot][self.rank] == request:
            self._remembered[slot] = request.key
        else:
            self._news.requests[request.key] = self._own[request.key]

    def join(self) -> None:
        """This rank has no more tensors; it gives neutral ones until all have joined."""
        self._news.joins = True

    def leave(self, text: str, is_stall: bool = False) -> None:
        """This rank ends it for all."""
        self._news.end = End(self.rank, text, is_stall)

    def round(self) -> list[Ready]:
        """Meets the other ranks, and returns what is ready on all, in an order that all have. Raises what the exchange
        does."""
        self.counts["rounds"] += 1
        flags = ~((_BUSY if self.is_busy else 0) | (_NEWS if self._news else 0)) & 0xFF
        size = 1 + (len(self._cache) + 7) // 8
        words = self._exchange.all_and(flags | self._bits() << _FLAG_BITS, size)
        self.others_busy = not words & _BUSY
        if words & _NEWS:  # nobody has any
            return self._ready(words >> _FLAG_BITS)
        self.counts["exchanges_in_full"] += 1
        said, self._news = self._news.packed(time.monotonic()), _News()
        for rank, heard in enumerate(self._exchange.all_gather(said)):
            self._hear(rank, json.loads(heard))
        return self._ready(words >> _FLAG_BITS)

    def say_again(self, longer_than: float) -> None:
        """What has waited for so many seconds is said in full: a bit does not tell who lacks it."""
        now = time.monotonic()
        for slot, key in list(self._remembered.items()):
            if now - self._own[key][1] > longer_than:
                self._news.requests[key] = self._own[key]
                del self._remembered[slot]

    def waiting(self, longer_than: float) -> list[tuple[Request, list[int]]]:
        """What some ranks have said in full so many seconds ago, and the ranks that have not submitted it."""
        now = time.monotonic()
        return [
            (request := next(iter(entry.requests.values())), self._missing(request, entry))
            for entry in self._table.values()
            if now - entry.since > longer_than
        ]

    def forget_set(self, number: int) -> list[Key]:
        """A process set is gone: what was agreed for it, and what ranks still wait for. Returns what this rank waited
        for."""
        del self.sets[number]
        for key in [key for key in self._cache.keys() if key[0] == number]:
            self._drop(key)
        for keyed in (self._table, self._news.requests):
            for key in [key for key in keyed if key[0] == number]:
                del keyed[key]
        lost = [key for key in self._own if key[0] == number]
        for key in lost:
            del self._own[key]
        return lost

    # --- what this rank says ---

    def _bits(self) -> int:
        """Of each slot a bit: this rank has it, or is not needed for it."""
        bits = 0
        if len(self.sets) > 1 or self.joined:
            for slot, agreed in self._cache:
                if agreed[self.rank] is None or self.rank in self.joined:
                    bits |= 1 << slot
        for slot in self._remembered:
            bits |= 1 << slot
        return bits

    # --- what it hears ---

    def _hear(self, rank: int, news: Sequence[Any]) -> None:
        requests, joins, end = news
        now = time.monotonic()
        for *packed, waited in requests:
            request = Request.of(packed)
            self._drop(request.key)
            entry = self._table.setdefault(request.key, Entry(now))
            entry.since = min(entry.since, now - waited)
            entry.requests[rank] = request
        if joins and rank not in self.joined:
            self.joined.append(rank)
        if end is not None and self.end is None:
            self.end = End(rank, *end)

    def _drop(self, key: Key) -> None:
        """Forgets what was agreed; if this rank has it waiting, it has to say so in full."""
        slot = self._cache.drop(key)
        if slot is not None and self._remembered.pop(slot, None) is not None:
            self._news.requests[key] = self._own[key]

    # --- what follows ---

    def _members(self, request: Request) -> tuple[int, ...]:
        return self.sets.get(request.process_set, ())

    def _missing(self, request: Request, entry: Entry) -> list[int]:
        return [rank for rank in self._members(request) if rank not in entry.requests and rank not in self.joined]

    def _ready(self, bits: int) -> list[Ready]:
        found = [*self._ready_again(bits), *self._ready_anew()]
        whole = _whole_groups(found)
        for ready in whole:
            self._settle(ready)
        return whole + self._left_behind(whole)

    def _ready_again(self, bits: int) -> Iterable[Ready]:
        for slot, agreed in self._cache:
            if bits >> slot & 1:
                requests = tuple(None if rank in self.joined else request for rank, request in enumerate(agreed))
                first = next(filter(None, requests), None)
                if first is not None:  # else nobody has submitted it: all of its ranks have joined
                    yield Ready(requests, self._without_joined(first, requests))

    def _ready_anew(self) -> Iterable[Ready]:
        for entry in self._table.values():
            first = next(iter(entry.requests.values()))
            if not self._missing(first, entry):
                requests = tuple(entry.requests.get(rank) for rank in range(self.size))
                wrong = difference(requests) or self._without_set(first) or self._without_joined(first, requests)
                yield Ready(requests, wrong)

    def _without_set(self, first: Request) -> Optional[str]:
        """What is wrong with one that was submitted while another thread removed its process set."""
        return None if first.process_set in self.sets else "its process set has been removed"

    def _without_joined(self, first: Request, requests: Sequence[Optional[Request]]) -> Optional[str]:
        """What is wrong with an operation because ranks have joined."""
        gone = [rank for rank in self._members(first) if requests[rank] is None]
        if gone and first.kind in ("alltoall", "reducescatter"):
            return f"{named(gone)} joined, and has no part in it: there is no {first.kind} until all have joined"
        if first.kind == "broadcast" and first.root in gone:
            return f"the root, rank {first.root}, joined, and has nothing to send"
        return None

    def _left_behind(self, ended: Sequence[Ready]) -> list[Ready]:
        """Of groups on which the ranks do not agree what would wait for the rest for ever: what was said of them, and
        what this rank has not said yet."""
        wrong = {
            (request.process_set, request.group): f"of its group, {ready.request}: {ready.error}"
            for ready in ended
            if ready.differs_in_group
            for request in ready.requests
            if request is not None and request.group
        }
        left = []
        for key, requests in self._waiting_requests().items() if wrong else ():
            groups = [(request.process_set, request.group) for request in requests if request is not None]
            reason = next((wrong[group] for group in groups if group in wrong), None)
            if reason:
                left.append(Ready(requests, reason))
                self._forget(key)
        return left

    def _waiting_requests(self) -> dict[Key, tuple[Optional[Request], ...]]:
        """Of each rank's what this one knows."""
        known = {key: dict(entry.requests) for key, entry in self._table.items()}
        for key, (request, _) in self._own.items():
            known.setdefault(key, {})[self.rank] = request
        return {key: tuple(requests.get(rank) for rank in range(self.size)) for key, requests in known.items()}

    def _forget(self, key: Key) -> None:
        for keyed in (self._own, self._table, self._news.requests):
            keyed.pop(key, None)
        slot = self._cache.slot(key)
        if slot is not None:
            self._remembered.pop(slot, None)

    def _settle(self, ready: Ready) -> None:
        """Takes it off the tables, and remembers it."""
        key, request = ready.request.key, ready.request
        self._own.pop(key, None)
        heard = self._table.pop(key, None)
        if heard is None:
            self._hit(key)
        elif not ready.error and request.is_repeated and not set(self.joined) & set(self._members(request)):
            self._remember(key, ready.requests)

    def _hit(self, key: Key) -> None:
        self.counts["cache_hits"] += 1
        slot = self._cache.slot(key)
        assert slot is not None
        self._remembered.pop(slot, None)
        self._cache.use(key)

    def _remember(self, key: Key, requests: Sequence[Optional[Request]]) -> None:
        oldest = self._cache.oldest()
        if oldest is not None:
            self._drop(oldest)
        self._cache.add(key, requests)


def _whole_groups(found: Sequence[Ready]) -> list[Ready]:
    """Without those of groups that are not ready as a whole; where one of a group is wrong, all of it are."""
    groups: dict[Key, list[Ready]] = {}
    for ready in found:
        groups.setdefault((ready.request.process_set, ready.request.group), []).append(ready)

    def judged(ready: Ready) -> Optional[Ready]:
        request = ready.request
        group = groups[request.process_set, request.group]
        if not request.group or ready.differs_in_group:
            return ready
        if len(group) < request.group_size:
            return None
        wrong = next((other for other in group if other.error), ready)
        return (
            ready
            if ready.error or not wrong.error
            else Ready(ready.requests, f"of its group, {wrong.request}: {wrong.error}")
        )

    return [answer for answer in map(judged, found) if answer is not None]
