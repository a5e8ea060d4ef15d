"""What callers give, as the other ranks can be told of it: a rank refuses by itself what is wrong in itself."""

from __future__ import annotations

import math
from collections.abc import Iterable
from operator import index
from typing import Any, Optional

from tutti._errors import InvalidArgument


def whole(value: Any, what: str) -> int:
    """A whole number of Python's: one of numpy's or PyTorch's has no way into a message."""
    try:
        return int(index(value))
    except TypeError:
        raise InvalidArgument(f"{what} is {value!r}: it is a whole number") from None


def whole_numbers(values: Iterable[Any], what: str) -> tuple[int, ...]:
    """Some of them."""
    try:
        return tuple(int(index(value)) for value in values)
    except TypeError:
        raise InvalidArgument(f"{what} are {values!r}: they are whole numbers") from None


def text(value: Any, what: str) -> str:
    """By which ranks find each other."""
    if not isinstance(value, str):
        raise InvalidArgument(f"{what} is {value!r}: it is text (a str), the same on all ranks")
    return value


def factor(value: Any, what: str) -> float:
    """A finite number, which a double holds."""
    number = _double(value)
    if number is None or not math.isfinite(number):
        raise InvalidArgument(f"{what} is {value!r}: it is one finite number")
    if isinstance(value, int) and number != value:
        raise InvalidArgument(f"{what} is {value}, which no double holds: choose one of fewer digits")
    return number


def _double(value: Any) -> Optional[float]:
    if isinstance(value, (str, bytes)):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return None
