"""The extension module: the library of tutti, and what makes a backend of it."""
from typing import Any

def create(options: Any, backend_options: Any) -> Any:
    """Joins the group that `options` (c10d's DistributedBackendOptions) describe, and blocks until all ranks have come.

    Raises torch.distributed.DistBackendError naming those who have not within the group's timeout.
    """

def end() -> None:
    """Has all groups leave, before the interpreter ends. What of a group does not end within ten seconds is aborted."""

def groups() -> list[tuple[str, str, dict[str, float]]]:
    """Of each process group of tutti that this process is in: its name and description, and what it has done."""

def version() -> int:
    """The library's version: 200 is 0.2.0."""
