"""One job: the processes of one configuration, which measure a list of cells."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from cells import Cell

GRACE = 20  # seconds that the other ranks may take to end when one has


class Ended(Exception):
    """A job that did not end well."""


def memory_folder():
    """Where a file is memory."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _wait(processes, deadline):
    """Until all have ended, one has failed, or it is late. Returns the first failure, or None."""
    while True:
        codes = [process.poll() for process in processes]
        failed = next((code for code in codes if code), None)
        if failed is not None or all(code == 0 for code in codes):
            return failed
        if time.monotonic() > deadline:
            return "late"
        time.sleep(0.01)


def _end(processes):
    """Politely first: launchers end their own children."""
    for ending, patience in ((None, 2), (signal.SIGTERM, 5), (signal.SIGKILL, GRACE)):
        limit = time.monotonic() + patience
        for process in processes:
            if ending and process.poll() is None:
                os.killpg(process.pid, ending)
        while any(process.poll() is None for process in processes) and time.monotonic() < limit:
            time.sleep(0.01)


@contextlib.contextmanager
def undisturbed():
    """An end that is asked for meanwhile comes behind it."""
    asked = []
    heard = [number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, lambda number, _: asked.append(number)) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if asked:
            raise KeyboardInterrupt


def run(commands, environment, seconds, errors):
    """Runs the processes of a job to their end; raises Ended. What they print goes to the file `errors`."""
    processes = []
    try:
        for command in commands:
            with undisturbed():  # or nobody would know of the process
                processes.append(subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors,
                                                  preexec_fn=os.setpgrp))
        failed = _wait(processes, time.monotonic() + seconds)
    finally:
        with undisturbed():
            _end(processes)
    if failed == "late":
        raise Ended(f"not done after {seconds:.0f} s")
    if failed is not None:
        raise Ended(f"exit status {failed}" if failed > 0 else f"killed by signal {-failed}")


def _lines(path):
    """What was written up to the last whole line."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


class Folder:
    """The files of a job, in memory."""

    def __init__(self):
        self.path = Path(tempfile.mkdtemp(prefix="peer-comparison-", dir=memory_folder()))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def files(self, lines):
        """The arguments that name them."""
        (self.path / "cells").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        (self.path / "meeting").touch()
        return ["--cells", str(self.path / "cells"), "--meeting", str(self.path / "meeting"), "--out", str(self.path / "out")]

    def results(self):
        return _lines(self.path / "out")

    def errors(self):
        return open(self.path / "errors", "w", encoding="utf-8")

    def said(self):
        """The last that a job has said, for whoever looks for why it failed."""
        lines = (self.path / "errors").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        telling = [line for line in lines if line.startswith("rank ")] or lines
        return telling[0] if telling else "it said nothing"


class Timing(NamedTuple):
    """Microseconds of a call; and of a word to the other processor and back at that time, where that is known."""
    us: float
    line: float = None


@dataclass
class Outcome:
    """What was measured, also before something went wrong."""
    times: dict = field(default_factory=dict)  # {cell: Timing}
    used: float = 0  # seconds of processors, as far as the ranks told
    trouble: str = None
    begun: int = None  # the last line that was


def measure(program, ranks, lines, arguments, environment, seconds, network=None):
    """One job; its Outcome. `network`: of hosts, one for each rank."""
    with Folder() as folder:
        given = [*folder.files(lines), *arguments, "--deadline", str(int(seconds))]
        trouble = None
        try:
            with folder.errors() as errors:
                run(program.commands(ranks, given, network), environment, seconds + 5, errors)
        except Ended as ended:
            trouble = f"{ended}: {folder.said()}"
        rows = folder.results()
        times = {Cell(row["op"], row["type"], row["bytes"], row["in_place"]): Timing(row["us"], row.get("line_us"))
                 for row in rows if "us" in row}
        used, begun = sum(row.get("processor_s", 0) for row in rows), [row["begun"] for row in rows if "begun" in row]
        return Outcome(times, used, trouble, begun[-1] if begun else None)


def measure_limits(program, lines, arguments, environment, seconds):
    """The rows that compare_limits writes, and what went wrong."""
    with Folder() as folder:
        given = [*folder.files(lines), *arguments, "--deadline", str(int(seconds))]
        trouble = None
        try:
            with folder.errors() as errors:
                run([[str(program), *given]], environment, seconds + 5, errors)
        except Ended as ended:
            trouble = f"{ended}: {folder.said()}"
        return folder.results(), trouble
