"""What becomes of gradients on their way to the other ranks."""

from __future__ import annotations

from typing import Optional

import torch
from torch import Tensor


class Compressor:
    """Both ways. Subclasses may be given wherever `compression` is asked for."""

    @staticmethod
    def compress(tensor: Tensor) -> tuple[Tensor, Optional[torch.dtype]]:
        """What is sent, and what decompress() needs to know."""
        raise NotImplementedError

    @staticmethod
    def decompress(tensor: Tensor, context: Optional[torch.dtype]) -> Tensor:
        """What has come, as it was before compress()."""
        raise NotImplementedError


class NoneCompressor(Compressor):
    """Leaves everything as it is."""

    @staticmethod
    def compress(tensor: Tensor) -> tuple[Tensor, Optional[torch.dtype]]:
        """The tensor itself."""
        return tensor, None

    @staticmethod
    def decompress(tensor: Tensor, context: Optional[torch.dtype]) -> Tensor:
        """The tensor itself."""
        return tensor


class _Narrow(Compressor):
    @staticmethod
    def decompress(tensor: Tensor, context: Optional[torch.dtype]) -> Tensor:
        """In the type that it had."""
        return tensor if context is None else tensor.to(context)


def _narrow(tensor: Tensor, dtype: torch.dtype) -> tuple[Tensor, Optional[torch.dtype]]:
    wide = tensor.is_floating_point() and tensor.element_size() > dtype.itemsize
    return (tensor.to(dtype), tensor.dtype) if wide else (tensor, None)


class FP16Compressor(_Narrow):
    """Sends wider floats as half: what is beyond 65504, a sum included, becomes infinite."""

    @staticmethod
    def compress(tensor: Tensor) -> tuple[Tensor, Optional[torch.dtype]]:
        """As half."""
        return _narrow(tensor, torch.float16)


class BF16Compressor(_Narrow):
    """Sends wider floats as bfloat16: the range of float, with 8 bits of precision."""

    @staticmethod
    def compress(tensor: Tensor) -> tuple[Tensor, Optional[torch.dtype]]:
        """As bfloat16."""
        return _narrow(tensor, torch.bfloat16)


class Compression:
    """The compressors that are there."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor
