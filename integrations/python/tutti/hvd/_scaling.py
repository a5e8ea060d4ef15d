"""What prescale_factor and postscale_factor do to a tensor."""

from __future__ import annotations

from typing import Any

import numpy
from torch import Tensor


def scale(tensor: Tensor, factor: float) -> None:
    """Multiplies it in place. Whole numbers: without any rounding by a factor that is whole, or one divided by a whole
    number, which divides towards zero; by another in double, towards zero."""
    if factor == 1:
        return
    if not tensor.is_floating_point():
        _scale_integers(tensor.numpy(), factor)
    elif tensor.element_size() == 1:  # float8, with which PyTorch does not reckon
        tensor.copy_(tensor.float().mul_(factor))
    else:
        tensor.mul_(factor)


def _scale_integers(values: Any, factor: float) -> None:
    divisor = _divisor(factor)
    if factor.is_integer():
        numpy.multiply(values, _wrapped(int(factor), values.dtype), out=values)
    elif divisor and (divisor > 0 or values.dtype.kind == "i"):
        _divide(values, divisor)
    else:
        with numpy.errstate(invalid="ignore"):  # beyond the type's range: as the sum may be
            values[...] = numpy.trunc(values.astype("float64") * factor)


def _divisor(factor: float) -> int:
    """n, where the factor is 1 / n as a double has it; else 0."""
    inverse = 1 / factor if factor else 0.0
    near = round(inverse) if abs(inverse) < 2**63 else 0
    return near if near and 1 / near == factor else 0


def _wrapped(factor: int, dtype: Any) -> Any:
    """As a value of the type: products wrap around as sums do."""
    return numpy.array(factor % 2 ** (8 * dtype.itemsize), "uint64").astype(dtype)


def _divide(values: Any, divisor: int) -> None:
    wide = values.astype("int64" if values.dtype.kind == "i" else "uint64")  # the divisor may be too large for the type
    by = wide.dtype.type(divisor)
    values[...] = (wide - numpy.fmod(wide, by)) // by
