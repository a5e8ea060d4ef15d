"""What was done, as flat numbers: for loggers that take a dict of floats, and as text for Prometheus."""
from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
import threading
import weakref

from tutti._core import Communicator
from tutti._errors import InvalidUsage

_lock = threading.Lock()  # guards the next: exporters have threads of their own
_known: weakref.WeakKeyDictionary[Communicator, str] = weakref.WeakKeyDictionary()
_SUMS = ("bytes", "operations", "wait_seconds", "seconds", "bus_bytes")


def known() -> dict[str, Communicator]:
    """The communicators that are open, by the names under which they are counted."""
    with _lock:
        found = sorted(_known.items(), key=lambda item: item[1])
    return {name: comm for comm, name in found if comm.is_open}


def _unique(name: str, taken: dict[str, object]) -> str:
    unique, number = name, 2
    while unique in taken:
        unique, number = f"{name}{number}", number + 1
    return unique


def track(comm: Communicator, name: str) -> Communicator:
    """Has stats() count this communicator, under a name that no other open one has (a number is added where it is
    taken). Returns it."""
    unique = _unique(name, dict(known()))
    with _lock:
        _known[comm] = unique
    return comm


def tables() -> dict[str, dict[str, float]]:
    """What each communicator of this process has counted, by its name; process groups of PyTorch on tutti (tutti_torch)
    are among them. Any thread."""
    found: dict[str, dict[str, float]] = {}
    for name, comm in known().items():
        with contextlib.suppress(InvalidUsage):  # another thread has just destroyed it
            found[name] = comm.stats()
    torch = sys.modules.get("tutti_torch")
    for name, numbers in (torch.groups() if torch else {}).items():
        found[_unique(name, dict(found))] = numbers
    return found


def stats() -> dict[str, float]:
    """Of all communicators of tutti.init(), tutti.track() and tutti.hvd, and of PyTorch's process groups on tutti:
    "world_all_reduce_bytes" and so on, as Communicator.stats() has them, and the sums "bytes", "operations",
    "wait_seconds", "seconds", "bus_bytes" and "bus_bandwidth" (bytes a second). mlflow.log_metrics(tutti.stats(),
    step=n) is one line. Any thread, also while calls run."""
    flat = dict.fromkeys(_SUMS, 0.0)
    for name, numbers in tables().items():
        for key, value in numbers.items():
            flat[f"{name}_{key}"] = value
        for key in _SUMS:
            flat[key] += numbers[key]
    flat["bus_bandwidth"] = flat["bus_bytes"] / flat["seconds"] if flat["seconds"] else 0.0
    return flat


# A key of a communicator, the metric that it is a sample of, and the label whose value is the rest of the key.
_SAMPLES = (
    (re.compile("seconds"), "call_seconds_total", ""),
    (re.compile("bus_bytes"), "bus_bytes_total", ""),
    (re.compile("bus_bandwidth"), "bus_bandwidth_bytes_per_second", ""),
    (re.compile("memory_bytes"), "memory_bytes", ""),
    (re.compile("connected_peers"), "connected_peers", ""),
    (re.compile("wait_for_rank_(.+)_seconds"), "peer_wait_seconds_total", "peer"),
    (re.compile("(?!library)(.+)_operations"), "operations_total", "operation"),
    (re.compile("(.+)_bytes"), "bytes_total", "operation"),
    (re.compile("(.+)_wait_seconds"), "wait_seconds_total", "operation"),
)
_HELP = {
    "operations_total": ("counter", "Operations that were called."),
    "bytes_total": ("counter", "Bytes of this rank's buffers in them."),
    "wait_seconds_total": ("counter", "Seconds that callers have waited in them."),
    "peer_wait_seconds_total": ("counter", "Seconds that calls have waited for another rank."),
    "call_seconds_total": ("counter", "Seconds from the turn of each call to its end."),
    "bus_bytes_total": ("counter", "Bytes that had to cross the slowest link."),
    "bus_bandwidth_bytes_per_second": ("gauge", "The last two's ratio, since the beginning."),
    "memory_bytes": ("gauge", "Memory of links, schedules and scratch."),
    "connected_peers": ("gauge", "Ranks to which links stand."),
}


def _sample(labels: str, key: str, value: float) -> tuple[str, str] | None:
    for pattern, metric, label in _SAMPLES:
        match = pattern.fullmatch(key)
        if match is not None:
            more = f',{label}="{match[1]}"' if label else ""
            return metric, f"tutti_{metric}{{{labels}{more}}} {value:.17g}"
    return None


def prometheus() -> str:
    """The same in Prometheus' text format, with the labels communicator, rank, operation and peer. Any thread."""
    rows: dict[str, list[str]] = {metric: [] for metric in _HELP}
    for name, numbers in tables().items():
        quoted = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        labels = f'communicator="{quoted}",rank="{numbers["rank"]:.0f}"'
        for metric, line in filter(None, (_sample(labels, key, value) for key, value in numbers.items())):
            rows[metric].append(line)
    parts: list[str] = []
    for metric, (kind, text) in _HELP.items():
        if rows[metric]:
            parts += [f"# HELP tutti_{metric} {text}", f"# TYPE tutti_{metric} {kind}", *rows[metric]]
    return "".join(f"{part}\n" for part in parts)


def write_prometheus(path: str | os.PathLike[str]) -> None:
    """Writes that to a file, for the node exporter's textfile collector: a reader sees the old text or the new one."""
    folder, name = os.path.split(os.path.abspath(path))
    handle, draft = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(prometheus())
    os.chmod(draft, 0o644)
    os.replace(draft, path)
