"""Starts the ranks of a job on this host: python -m tutti.run -n 4 script.py arguments.

Each rank has the variables that tutti reads (TUTTI_RANK, TUTTI_SIZE, TUTTI_LOCAL_RANK, TUTTI_LOCAL_SIZE, TUTTI_JOB) and those
of PyTorch's env:// (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT). When a rank fails the others
are ended, and the failure is told. Signals that ask the job to end are handed on, but for those that whoever starts the job
has it ignore, as nohup does.

The exit status is that of the first rank that failed: 128 and the signal's number where a signal ended it; 0 where all
ranks ended well.
"""
from __future__ import annotations

import argparse
import contextlib
import ctypes
import fcntl
import os
import signal
import subprocess
import sys
import termios
import threading
import time
import uuid
from collections.abc import Sequence
from types import FrameType
from typing import IO, Any

from tutti._ports import free_port

_LIBC = ctypes.CDLL(None)  # before the first fork: a child of one has time for nothing but a call
_HANDED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_GRACE_SECONDS = 5.0
_MOST_RANKS = 16384  # of a communicator
_LOOK = 16  # ranks are started between two looks at whether one has failed


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tutti.run", description="Starts the ranks of a job on this host.")
    parser.add_argument("-n", "--ranks", type=int, required=True, help="how many")
    parser.add_argument("--prefix", action="store_true", help="write the rank's number before each line of its output")
    parser.add_argument("--master-port", type=int, help="MASTER_PORT of the ranks (default: a free one)")
    parser.add_argument("-m", "--module", action="store_true", help="the script is a module, as with python -m")
    parser.add_argument("--no-python", action="store_true", help="the script is a program of its own")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    told = parser.parse_args(argv)
    if told.ranks < 1:
        parser.error(f"argument -n/--ranks: {told.ranks} ranks: there is at least one")
    if told.ranks > _MOST_RANKS:
        parser.error(f"argument -n/--ranks: {told.ranks} ranks: there are {_MOST_RANKS} at most")
    return told


def _command(told: argparse.Namespace) -> list[str]:
    if told.no_python:
        return [told.script, *told.arguments]
    return [sys.executable, *(["-m"] if told.module else []), told.script, *told.arguments]


def _environment(rank: int, size: int, port: int, job: str) -> dict[str, str]:
    own = {"TUTTI_RANK": rank, "TUTTI_SIZE": size, "TUTTI_LOCAL_RANK": rank, "TUTTI_LOCAL_SIZE": size, "TUTTI_JOB": job,
           "RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1",
           "MASTER_PORT": port}
    return {**os.environ, **{name: str(value) for name, value in own.items()}}


def _begin(launcher: int) -> None:
    """In the child. A process group of its own, in the launcher's session: where the system shares processors among sessions first, a
    rank alone in one would give way to nobody. The terminal is the launcher's: who had it could be stopped by it. And where the launcher
    is killed, no rank stays."""
    with contextlib.suppress(OSError):  # there is none
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        fcntl.ioctl(terminal, termios.TIOCNOTTY)
        os.close(terminal)
    os.setpgid(0, 0)
    pr_set_pdeathsig = 1
    _LIBC.prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != launcher:  # it was, before that
        os.kill(os.getpid(), signal.SIGKILL)


def _say(text: str) -> None:
    print(f"tutti.run: {text}", file=sys.stderr, flush=True)


def _describe(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(-status).name}"
    return f"was ended by signal {-status}"


class _Job:
    """The ranks that were started, each the leader of a process group of its own."""

    def __init__(self, told: argparse.Namespace) -> None:
        self.told = told
        self.asked: signal.Signals | None = None  # what has asked the job to end
        self.ranks: list[subprocess.Popen[bytes]] = []
        self.relays: list[threading.Thread] = []

    def start(self) -> None:
        port, job = self.told.master_port or free_port(), f"tutti.run-{uuid.uuid4()}"
        output, launcher = subprocess.PIPE if self.told.prefix else None, os.getpid()
        for rank in range(self.told.ranks):
            if self.asked is not None or (rank % _LOOK == 0 and self.failed() is not None):
                break
            process = subprocess.Popen(_command(self.told), env=_environment(rank, self.told.ranks, port, job), stdout=output,
                                       stderr=output, stdin=None if rank == 0 else subprocess.DEVNULL,
                                       preexec_fn=lambda: _begin(launcher))
            self.ranks.append(process)
            if self.asked is not None:  # meanwhile: the others have been told
                self._signal(process, self.asked)
        for rank, process in enumerate(self.ranks if self.told.prefix else ()):  # threads: after the last fork
            self._relay(rank, process.stdout, sys.stdout.buffer)
            self._relay(rank, process.stderr, sys.stderr.buffer)

    def _relay(self, rank: int, source: IO[bytes] | None, target: IO[bytes]) -> None:
        def relay() -> None:
            for line in source or ():
                with contextlib.suppress(OSError):  # where nobody reads any more: the rank goes on all the same
                    target.write(f"[{rank}] ".encode() + line if line.endswith(b"\n") else f"[{rank}] ".encode() + line + b"\n")
                    target.flush()
        thread = threading.Thread(target=relay, daemon=True)
        thread.start()
        self.relays.append(thread)

    def hand_on(self, number: int, _frame: FrameType | None = None) -> None:
        self.asked = signal.Signals(number)
        self.kill(number)

    def kill(self, number: int) -> None:
        for process in self.ranks:
            self._signal(process, number)

    @staticmethod
    def _signal(process: subprocess.Popen[bytes], number: int) -> None:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
                os.killpg(process.pid, signal.SIGCONT)  # who is stopped hears it, too

    def failed(self) -> int | None:
        """A rank that has failed, if any."""
        return next((rank for rank, process in enumerate(self.ranks) if process.poll()), None)

    def running(self) -> bool:
        return any(process.poll() is None for process in self.ranks)

    def wait(self) -> int:
        """Until all have ended, or one has failed. The first failure's status, or 0."""
        while self.running() and self.failed() is None:
            time.sleep(0.02)
        first = self.failed()
        if first is None:
            return 0
        status = int(self.ranks[first].returncode)
        others = sum(process.poll() is None for process in self.ranks)
        if self.asked is None:
            _say(f"rank {first} of {self.told.ranks} (pid {self.ranks[first].pid}) {_describe(status)}"
                 + (f"; ending the other {others} that still run" if others else ""))
        return status if status > 0 else 128 - status

    def end(self) -> None:
        """Ends what still runs: asks first, so that the ranks can say what they have to."""
        deadline = time.monotonic() + _GRACE_SECONDS
        if self.asked is None:
            time.sleep(0.2)  # of a rank that died the others hear from tutti: they may say so
            self.kill(signal.SIGTERM)
        while self.running() and time.monotonic() < deadline:
            time.sleep(0.02)
        self.kill(signal.SIGKILL)
        for process in self.ranks:
            process.wait()
        for thread in self.relays:
            thread.join(timeout=1)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the job of the command line, and returns its exit status."""
    job = _Job(_arguments(argv))
    before: dict[int, Any] = {number: signal.signal(number, job.hand_on) for number in _HANDED_ON
                              if signal.getsignal(number) is not signal.SIG_IGN}  # as nohup has it
    try:
        job.start()
        return job.wait()
    except OSError as error:
        _say(f"cannot start {' '.join(_command(job.told))}: {error.strerror}")
        return 127
    finally:
        job.end()
        for number, handler in before.items():
            signal.signal(number, handler)


if __name__ == "__main__":
    sys.exit(main())
