"""tutti as a backend of torch.distributed.

    torch.distributed.init_process_group(backend="tutti")

is all that a program needs: where this package is installed, `import torch` registers the backend by itself (PyTorch's
entry point `torch.backends`). With TORCH_DEVICE_BACKEND_AUTOLOAD=0 in the environment, `import tutti_torch` does it.
"""
from __future__ import annotations

import atexit
import sys
from datetime import timedelta
from typing import Any, Optional

from tutti_torch._metrics import groups, stats

__all__ = ["groups", "monitored_barrier", "register", "stats", "version"]


def version() -> str:
    """The version of the library of tutti inside this package, as "0.2.0"."""
    from . import _C

    code = _C.version()
    return f"{code // 10000}.{code // 100 % 100}.{code % 100}"


def _create(options: Any, backend_options: Any) -> Any:
    """Called by torch.distributed for each process group. The extension is loaded here, and not before."""
    from . import _C

    return _C.create(options, backend_options)


def _end() -> None:
    """Groups that nobody has destroyed leave while their callbacks can still run: the interpreter ends after this."""
    extension = sys.modules.get(f"{__name__}._C")
    if extension is not None:
        extension.end()


def register() -> None:
    """Makes "tutti" known to torch.distributed. More than once does no harm."""
    import torch.distributed as dist

    if not dist.is_available() or hasattr(dist.Backend, "TUTTI"):
        return
    dist.Backend.register_backend("tutti", _create, extended_api=True, devices=["cpu", "cuda"])


def _autoload() -> None:
    """What `import torch` calls (entry point `torch.backends`). The import of this module has registered already."""


def monitored_barrier(
    group: Optional[Any] = None, timeout: Optional[timedelta] = None, wait_all_ranks: bool = False
) -> None:
    """A barrier that says who has not come: torch.distributed.monitored_barrier, which is for Gloo alone, for tutti.

    Args:
        group: a process group of tutti; the default group where it is None.
        timeout: how long rank 0 waits for the others; the group's timeout where it is None.
        wait_all_ranks: name all ranks that are missing, not only the first.

    Raises:
        torch.distributed.DistBackendError: on every rank that has come, naming who has not.
    """
    import torch
    import torch.distributed as dist

    chosen = dist.group.WORLD if group is None else group
    if chosen is None:
        raise ValueError("monitored_barrier: there is no process group: call init_process_group first")
    backend: Any = chosen._get_backend(torch.device("cpu"))  # pylint: disable=protected-access
    backend.monitored_barrier(timeout or timedelta(milliseconds=-1), wait_all_ranks=wait_all_ranks)


register()
atexit.register(_end)
