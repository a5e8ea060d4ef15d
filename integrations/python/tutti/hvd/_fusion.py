"""Which of the operations that are ready run as one: all-reduces of one type and operator, up to so many bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tutti.hvd._negotiation import Ready

ITEM_BYTES = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "float16": 2,
    "bfloat16": 2,
    "int32": 4,
    "uint32": 4,
    "float32": 4,
    "int64": 8,
    "uint64": 8,
    "float64": 8,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
}
"""The types that operations take, by PyTorch's names."""

LARGE_BYTES = 1024 * 1024
"""From here on a tensor runs by itself, in its own memory: to copy it there and back costs more than another operation."""


@dataclass
class Batch:
    """What runs as one collective, in this order."""

    ready: list[Ready] = field(default_factory=list)
    bytes: int = 0


def _bytes_of(unit: Sequence[Ready]) -> int:
    return sum(ready.request.elements * ITEM_BYTES.get(ready.request.dtype, 0) for ready in unit)


def _kind(ready: Ready) -> tuple[object, ...]:
    request = ready.request
    return request.process_set, request.dtype, request.op


def _units(all_ready: Iterable[Ready]) -> Iterable[list[Ready]]:
    """Single tensors, and of each group those of one kind, which are never taken apart."""
    groups: dict[tuple[object, ...], list[Ready]] = {}
    for ready in all_ready:
        alone = ready.request.name if not ready.request.group else ""
        groups.setdefault((ready.request.group, alone, *_kind(ready)), []).append(ready)
    return groups.values()


def _goes_alone(ready: Ready) -> bool:
    request = ready.request
    large = not request.group and _bytes_of([ready]) >= LARGE_BYTES
    return bool(large or ready.error or request.kind != "allreduce")


def batches(all_ready: Sequence[Ready], threshold: float) -> list[Batch]:
    """The same on every rank that has found the same ready. A group that is larger than the threshold is a batch."""
    open_batches: dict[tuple[object, ...], Batch] = {}
    made: list[Batch] = []
    made += [Batch([ready]) for ready in all_ready if _goes_alone(ready)]
    for unit in _units(ready for ready in all_ready if not _goes_alone(ready)):
        kind, size = _kind(unit[0]), _bytes_of(unit)
        batch = open_batches.get(kind)
        if batch is None or batch.bytes + size > threshold:
            batch = open_batches[kind] = Batch()
            made.append(batch)
        batch.ready += unit
        batch.bytes += size
    return made
