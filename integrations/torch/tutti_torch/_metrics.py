"""What the process groups of tutti have done, as flat numbers."""

from __future__ import annotations

_SUMS = ("bytes", "operations", "wait_seconds", "seconds", "bus_bytes")


def groups() -> dict[str, dict[str, float]]:
    """What each process group of tutti in this process has done. The names are the groups' descriptions
    ("default_pg", or what new_group() was given as group_desc), or "group_" and their names, and a number where two
    would have the same. The keys are those of tutti.Communicator.stats(). Any thread."""
    from . import _C

    all_of_them: dict[str, dict[str, float]] = {}
    for name, description, numbers in _C.groups():
        chosen = description if description not in ("", "undefined") else f"group_{name}"
        unique, count = chosen, 2
        while unique in all_of_them:
            unique, count = f"{chosen}{count}", count + 1
        all_of_them[unique] = numbers
    return all_of_them


def stats() -> dict[str, float]:
    """The same as one flat dict, for loggers that take one: "default_pg_all_reduce_bytes" and so on, and the sums
    "bytes", "operations", "wait_seconds", "seconds", "bus_bytes" and "bus_bandwidth" (bytes a second) over all
    groups, which are there from the beginning. mlflow.log_metrics(tutti_torch.stats(), step=n) is one line. Any
    thread."""
    flat = dict.fromkeys(_SUMS, 0.0)
    for group, numbers in groups().items():
        for key, value in numbers.items():
            flat[f"{group}_{key}"] = value
        for key in _SUMS:
            flat[key] += numbers[key]
    flat["bus_bandwidth"] = flat["bus_bytes"] / flat["seconds"] if flat["seconds"] else 0.0
    return flat
