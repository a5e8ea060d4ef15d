"""What was done, as flat numbers: for loggers that take a dict of floats, and as text for Prometheus."""
from __future__ import annotations

import os
import re
import tempfile
import weakref

from tutti._core import Communicator

_known: weakref.WeakKeyDictionary[Communicator, str] = weakref.WeakKeyDictionary()


def known() -> dict[str, Communicator]:
    """The communicators that are open, by the names under which they are counted."""
    return {name: comm for comm, name in sorted(_known.items(), key=lambda item: item[1]) if comm.is_open}


def track(comm: Communicator, name: str) -> Communicator:
    """Has stats() count this communicator, under a name that no other open one has (a number is added where it is
    taken). Returns it."""
    taken = set(known())
    unique, number = name, 2
    while unique in taken:
        unique, number = f"{name}{number}", number + 1
    _known[comm] = unique
    return comm


def stats() -> dict[str, float]:
    """Of all communicators of tutti.init() and tutti.track(): "world_all_reduce_bytes" and so on, and the sums "bytes",
    "operations" and "wait_seconds". Bytes are those of this rank's buffers; seconds are what calls have waited.
    mlflow.log_metrics(tutti.stats(), step=n) is one line."""
    all_of_them: dict[str, float] = {"bytes": 0.0, "operations": 0.0, "wait_seconds": 0.0}
    for name, comm in known().items():
        for key, value in comm.stats().items():
            all_of_them[f"{name}_{key}"] = value
            if key in ("bytes", "operations", "wait_seconds"):
                all_of_them[key] += value
    return all_of_them


_OF_AN_OPERATION = re.compile(r"(.+)_(operations|bytes|wait_seconds)")
_HELP = {
    "operations_total": ("counter", "Operations that were called."),
    "bytes_total": ("counter", "Bytes of this rank's buffers in them."),
    "wait_seconds_total": ("counter", "Seconds that calls have waited."),
    "memory_bytes": ("gauge", "Memory of links, schedules and scratch."),
    "connected_peers": ("gauge", "Ranks to which links stand."),
}


def _sample(comm_name: str, rank: int, key: str, value: float) -> tuple[str, str] | None:
    labels = f'communicator="{comm_name}",rank="{rank}"'
    if key in _HELP:
        return key, f"tutti_{key}{{{labels}}} {value:.17g}"
    match = _OF_AN_OPERATION.fullmatch(key)
    if match is None or match[1] == "library":
        return None
    name = f"{match[2]}_total"
    return name, f'tutti_{name}{{{labels},operation="{match[1]}"}} {value:.17g}'


def prometheus() -> str:
    """The same in Prometheus' text format, with the labels communicator, rank and operation."""
    rows: dict[str, list[str]] = {name: [] for name in _HELP}
    for comm_name, comm in known().items():
        quoted = comm_name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        samples = (_sample(quoted, comm.rank, key, value) for key, value in comm.stats().items())
        for name, line in filter(None, samples):
            rows[name].append(line)
    parts = [f"# HELP tutti_{name} {text}\n# TYPE tutti_{name} {kind}\n" + "".join(f"{line}\n" for line in rows[name])
             for name, (kind, text) in _HELP.items() if rows[name]]
    return "".join(parts)


def write_prometheus(path: str | os.PathLike[str]) -> None:
    """Writes that to a file, for the node exporter's textfile collector: a reader sees the old text or the new one."""
    folder, name = os.path.split(os.path.abspath(path))
    handle, draft = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(prometheus())
    os.chmod(draft, 0o644)
    os.replace(draft, path)
