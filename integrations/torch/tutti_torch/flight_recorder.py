"""Records of tutti as the files that PyTorch's analyzer of flight recorders reads, torchfrtrace.

    python -m tutti_torch.flight_recorder RECORDS FOLDER
    torchfrtrace FOLDER

RECORDS is a folder with the records of a job's ranks (TUTTI_DUMP_DIR, tuttiCommDump), of whatever program. FOLDER,
which must be new or empty, gets a file for each process, tutti_trace_rank_0 and so on, in the analyzer's format
2.10. Ranks are those of the largest communicator there is. Each communicator is a process group, and so are the
messages of each direction between two ranks, since the analyzer takes messages of both directions with one number
for one operation. It knows the names of some libraries only, of which "nccl" is the one that every version takes:
all-reduce is "nccl:all_reduce". What no record says is not there: the shapes of tensors (there are numbers of
elements), stacks, time-outs.
"""

from __future__ import annotations

import argparse
import json
import pickle
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Record = dict[str, Any]
"""A rank's record of one communicator, as docs/json.md of tutti has it."""
Call = dict[str, Any]
Process = tuple[str, int]  # its host and number

_NAMES = {
    "all-reduce": "all_reduce",
    "all-gather": "all_gather",
    "all-gather-v": "all_gather_v",
    "reduce-scatter": "reduce_scatter",
    "reduce-scatter-v": "reduce_scatter_v",
    "all-to-all": "all_to_all",
    "all-to-all-v": "all_to_all",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "gather": "gather",
    "gather-v": "gather",
    "scatter": "scatter",
    "scatter-v": "scatter",
    "barrier": "all_reduce_barrier",
}
_TYPES = {
    "int8": "Char",
    "uint8": "Byte",
    "int16": "Short",
    "uint16": "UInt16",
    "int32": "Int",
    "uint32": "UInt32",
    "int64": "Long",
    "uint64": "UInt64",
    "half": "Half",
    "bfloat16": "BFloat16",
    "float": "Float",
    "double": "Double",
    "bool": "Bool",
    "f8e4m3": "Float8_e4m3fn",
    "f8e5m2": "Float8_e5m2",
}
_STATES = {
    "queued": "scheduled",
    "connecting": "started",
    "running": "started",
    "done": "completed",
    "failed": "started",
}


@dataclass
class Group:
    """A line of calls that the analyzer compares: the collectives of a communicator, or the messages of one
    direction."""

    name: str
    description: str
    ranks: list[int]  # of the job
    calls: dict[int, list[Call]]  # by rank of the job

    @property
    def begin(self) -> int:
        """The first number that no rank has forgotten."""
        return max((int(calls[0]["number"]) for calls in self.calls.values() if calls), default=0)


def read(folder: Path) -> list[Record]:
    """The records in the folder, of each rank of a communicator the latest. Raises ValueError where one cannot be
    read, or there is none."""
    latest: dict[tuple[str, int], Record] = {}
    for path in sorted(folder.glob("*.json")):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            who = record["communicator"]
            key, written = (who["id"], who["rank"]), record["writtenNs"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is no record of tutti: {error!r}. Take it away, or copy it anew") from error
        if record["tutti"]["format"] != 1:
            raise ValueError(f"{path} has format {record['tutti']['format']}: it is for a newer tutti_torch")
        if key not in latest or written > latest[key]["writtenNs"]:
            latest[key] = record
    if not latest:
        raise ValueError(
            f"there are no records in {folder}: set TUTTI_DUMP_DIR to it before the job starts. Ranks that fail then "
            "leave records there, and so do all when their processes are sent SIGUSR2"
        )
    return list(latest.values())


def _processes(record: Record) -> list[Process]:
    return [(rank["host"], rank["pid"]) for rank in record["ranks"]]


def ranks_of_job(records: Iterable[Record]) -> dict[Process, int]:
    """The number in the job of each process: its rank in the largest communicator; who is in others only, comes behind.
    Raises ValueError where ranks are threads of one process."""
    numbers: dict[Process, int] = {}
    for record in sorted(records, key=lambda record: -len(record["ranks"])):
        processes = _processes(record)
        if len(set(processes)) < len(processes):
            raise ValueError(
                f"communicator {record['communicator']['id']} has several ranks in one process, which PyTorch's "
                "analyzer cannot tell apart: use tutti-doctor"
            )
        for process in processes:
            numbers.setdefault(process, len(numbers))
    return numbers


def _names(records: Iterable[Record]) -> dict[str, str]:
    """Of each communicator its name, with its id where two have the same."""
    named = {record["communicator"]["id"]: record["communicator"]["name"] or "unnamed" for record in records}
    given = list(named.values())
    return {one: name if given.count(name) == 1 else f"{name} ({one})" for one, name in named.items()}


def _line(call: Call, rank: int) -> tuple[int, int] | None:
    """Of a message from whom to whom; None of a collective."""
    if call["line"] == "collective":
        return None
    return (rank, call["peer"]) if call["line"] == "send" else (call["peer"], rank)


def _forgetful(record: Record) -> bool:
    return bool(record["calls"]) and record["calls"][0]["order"] > 0


def groups_of(records: list[Record], numbers: dict[Process, int]) -> list[Group]:
    """All lines of calls, with what each rank has made of them. Those that a rank may have forgotten are left out."""
    names = _names(records)
    found: dict[tuple[str, tuple[int, int] | None], Group] = {}
    for record in records:
        who, processes = record["communicator"], _processes(record)
        here = numbers[processes[who["rank"]]]
        for line in {None, *(_line(call, who["rank"]) for call in record["calls"])}:
            members = processes if line is None else [processes[end] for end in line]
            name = names[who["id"]] + ("" if line is None else f", messages from {line[0]} to {line[1]}")
            group = found.setdefault(
                (who["id"], line), Group(name, f"communicator {who['id']}", [numbers[m] for m in members], {})
            )
            group.calls[here] = [call for call in record["calls"] if _line(call, who["rank"]) == line]
    for (one, line), group in found.items():  # who has no call of a line has made none, or has forgotten them
        for record in records:
            here = numbers[_processes(record)[record["communicator"]["rank"]]]
            if (
                record["communicator"]["id"] == one
                and here in group.ranks
                and not group.calls.setdefault(here, [])
                and _forgetful(record)
            ):
                group.calls.clear()
                break
    return [group for group in found.values() if group.calls]


def _sizes(call: Call, ranks: int) -> tuple[list[list[int]], list[list[int]]]:
    count = call["count"]
    whole = count * ranks
    inputs, outputs = {"all-gather": (count, whole), "reduce-scatter": (whole, count)}.get(call["kind"], (count, count))
    return [[inputs]], [[outputs]]


def _profiling_name(call: Call, group: Group) -> str:
    if call["line"] == "collective":
        return f"nccl:{_NAMES.get(call['kind'], call['kind'])}"
    source, destination = (sorted(group.ranks).index(rank) for rank in group.ranks)  # as the analyzer numbers the two
    return f"nccl:send {source}->{destination}" if call["line"] == "send" else f"nccl:recv {destination}<-{source}"


def _entry(call: Call, group: Group, number: int) -> dict[str, Any]:
    """What the flight recorder of a rank would say of the call; without its place among all."""
    inputs, outputs = _sizes(call, len(group.ranks))
    types, state, done = [_TYPES.get(call["type"], call["type"])], _STATES[call["state"]], call["state"] == "done"
    entry = {
        "pg_id": number,
        "process_group": (group.name, group.description),
        "collective_seq_id": call["number"],
        "p2p_seq_id": call["number"],
        "op_id": call["order"],
        "is_p2p": call["line"] != "collective",
        "profiling_name": _profiling_name(call, group),
        "input_sizes": inputs,
        "output_sizes": outputs,
        "input_dtypes": types,
        "output_dtypes": types,
        "state": state,
        "time_created_ns": call["queuedNs"],
        "time_discovered_started_ns": None if state == "scheduled" else call["queuedNs"],
        "time_discovered_completed_ns": call["endedNs"] if done else None,
        "retired": "endedNs" in call,
        "frames": [],
    }
    return {**entry, "duration_ms": (call["endedNs"] - call["queuedNs"]) / 1e6} if done else entry


def _status(calls: list[Call]) -> dict[str, int]:
    last = {
        state: max((call["number"] for call in calls if _STATES[call["state"]] in reached), default=-1)
        for state, reached in (
            ("enqueued", _STATES.values()),
            ("started", ("started", "completed")),
            ("completed", ("completed",)),
        )
    }
    return {f"last_{state}_collective": number for state, number in last.items()}


def dump_of(rank: int, groups: list[Group], version: str) -> dict[str, Any]:
    """The file of one rank, before it is pickled."""
    own = [(number, group) for number, group in enumerate(groups) if rank in group.calls]
    entries = [
        _entry(call, group, number)
        for number, group in own
        for call in group.calls[rank]
        if call["number"] >= group.begin
    ]
    entries.sort(key=lambda entry: (entry["time_created_ns"], entry["op_id"]))
    return {
        "version": "2.10",
        "comm_lib_version": f"tutti {version}",
        "pg_config": {
            group.name: {"name": group.name, "desc": group.description, "ranks": str(group.ranks)} for _, group in own
        },
        "pg_status": {str(number): _status(group.calls[rank]) for number, group in own},
        "entries": [{"record_id": place, **entry} for place, entry in enumerate(entries)],
    }


def convert(records_folder: Path, folder: Path) -> tuple[list[int], list[int]]:
    """Writes the files; the ranks of the job that left records, and those that left none. Raises ValueError,
    OSError."""
    records = read(records_folder)
    numbers = ranks_of_job(records)
    groups = groups_of(records, numbers)
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty, and the analyzer would read what is there: name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    told = sorted({rank for group in groups for rank in group.calls})
    for rank in told:
        with open(folder / f"tutti_trace_rank_{rank}", "wb") as file:
            pickle.dump(dump_of(rank, groups, records[0]["tutti"]["version"]), file)
    return told, sorted(set(numbers.values()) - set(told))


def main() -> int:
    """The command; its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tutti_torch.flight_recorder",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("records", type=Path, help="the folder with the records")
    parser.add_argument("folder", type=Path, help="where the files for the analyzer go: new or empty")
    asked = parser.parse_args()
    try:
        told, silent = convert(asked.records, asked.folder)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{len(told)} ranks: torchfrtrace {asked.folder}" + (" --allow-incomplete-ranks" if silent else ""))
    if silent:
        print(
            f"no records of ranks {', '.join(map(str, silent))}: their processes were gone, or on a host whose records "
            "are not here"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
