"""Which arrays share a call: few calls, and the same ones in the same order on every rank."""
from __future__ import annotations

from collections.abc import Sequence

BUCKET_BYTES = 16 << 20
"""How much shares a call unless told otherwise. One call costs about as much as sending a few ten kilobytes, so this is
far beyond where that matters; and buffers of this size the allocator hands out again and again, without new pages for
each."""


def buckets(sizes: Sequence[tuple[str, int]], limit: int) -> list[list[int]]:
    """Positions that share a call, of arrays given as (data type, bytes): one data type a bucket, and no more bytes
    than `limit` unless it is a single array. Every rank has the same arrays, so every rank comes to the same
    buckets."""
    done: list[list[int]] = []
    filling: dict[str, tuple[list[int], int]] = {}
    for position, (dtype, size) in enumerate(sizes):
        bucket, filled = filling.get(dtype, ([], 0))
        if not bucket or filled + size > limit:
            bucket, filled = [], 0
            done.append(bucket)
        bucket.append(position)
        filling[dtype] = bucket, filled + size
    return done
