"""What a job is tuned by: keyword arguments of init(), and Horovod's own variables, which win."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Optional

from tutti._errors import InvalidArgument


@dataclass(frozen=True)
class Settings:
    """The same on every rank: rank 0's count. Bytes and seconds; stall_shutdown and fusion_threshold 0: never."""

    fusion_threshold: float = 128 * 1024 * 1024
    cycle_time: float = 0.001
    cache_capacity: float = 1024
    stall_warning: float = 60
    stall_shutdown: float = 0

    def numbers(self) -> list[float]:
        """In an order, for the way from rank 0 to the others."""
        return [float(value) for value in astuple(self)]

    @staticmethod
    def of(numbers: Sequence[float]) -> Settings:
        """What numbers() gave."""
        return Settings(*numbers)


def _variable(name: str, least: float = 0) -> Optional[float]:
    text = os.environ.get(name)
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not least <= value < 2**53:
        raise InvalidArgument(f"{name} is {text!r}: it is a number from {least:g} on; set it right, or unset it")
    return value


def _chosen(variable: str, told: Optional[float], default: float, unit: float = 1) -> float:
    found = _variable(variable)
    if found is not None:
        return found * unit
    if told is not None and not told >= 0:
        raise InvalidArgument(f"{told:g} is given for what {variable} also sets: it is a number from 0 on")
    return default if told is None else told


def settings(
    fusion_threshold: Optional[float],
    cycle_time: Optional[float],
    cache_capacity: Optional[float],
    stall_warning: Optional[float],
    stall_shutdown: Optional[float],
) -> Settings:
    """What the environment says; else what init() was told; else the defaults."""
    usual = Settings()
    never = float("inf")
    warned = _chosen("HOROVOD_STALL_CHECK_TIME_SECONDS", stall_warning, usual.stall_warning)
    return Settings(
        fusion_threshold=_chosen("HOROVOD_FUSION_THRESHOLD", fusion_threshold, usual.fusion_threshold),
        cycle_time=_chosen("HOROVOD_CYCLE_TIME", cycle_time, usual.cycle_time, unit=0.001),
        cache_capacity=_chosen("HOROVOD_CACHE_CAPACITY", cache_capacity, usual.cache_capacity),
        stall_warning=never if _variable("HOROVOD_STALL_CHECK_DISABLE") else warned,
        stall_shutdown=_chosen("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", stall_shutdown, usual.stall_shutdown),
    )
