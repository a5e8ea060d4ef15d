"""Who this process is, as the library reads it from the launcher's variables; and the same for others who want to know."""
from __future__ import annotations

import os
import socket
import zlib
from dataclasses import dataclass

import numpy

from tutti import _core
from tutti._core import Communicator
from tutti._errors import InvalidUsage
from tutti._ports import BESIDE, free_port

_DEFAULT_PORT, _FIRST_PORT, _PORTS = 29500, 20000, 10000


@dataclass(frozen=True)
class Launch:
    """What the launcher says. -1, "" and 0 stand for what it does not tell."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    one_host: bool
    root_host: str
    root_port: int
    launcher: str
    source: str
    job: str


def launch() -> Launch:
    """Reads the launcher's environment by the library's own reader, and joins nothing. Raises what Communicator
    .from_environment would: no launcher, half a set of variables, contradictions."""
    return Launch(**_core.launch())


def _beside(root_port: int) -> int:
    """The port of which the library makes this one where it meets beside another service (docs/launchers.md): a process
    that reads MASTER_PORT later meets the others where it would have met them before."""
    first, ports = 1024, 65536 - 1024
    return first + (root_port - first - BESIDE) % ports


def _told_place(told: Launch) -> tuple[str, str]:
    """Host and port as all ranks can work them out alike: the user's, the launcher's, or by the job's name."""
    host = os.environ.get("MASTER_ADDR") or ("127.0.0.1" if told.one_host else told.root_host)
    if not host:
        raise InvalidUsage(
            f"{told.launcher} says who this is (rank {told.rank} of {told.size}), but tells no address of rank 0: set "
            "MASTER_ADDR, or hand over a communicator, by which the ranks can agree: tutti.export_env(tutti.init())")
    by_job = _FIRST_PORT + zlib.crc32(told.job.encode()) % _PORTS if told.job else _DEFAULT_PORT
    return host, os.environ.get("MASTER_PORT") or str(_beside(told.root_port) if told.root_port else by_job)


def _own_address() -> str:
    """By which this host reaches others; where it reaches none, what its name stands for."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # of documents; nothing is sent
            return str(probe.getsockname()[0])
        except OSError:
            return socket.gethostbyname(socket.gethostname())


def _own_place(told: Launch, one_host: bool) -> tuple[str, str]:
    """Where rank 0 can be met: what is set or told, else an address of this host, and a port that is free now."""
    port = os.environ.get("MASTER_PORT") or str(free_port())
    return os.environ.get("MASTER_ADDR") or told.root_host or ("127.0.0.1" if one_host else _own_address()), port


def _agreed_place(told: Launch, comm: Communicator) -> tuple[str, str]:
    """Rank 0's, on every rank; but for what is set here."""
    with comm.split_by_host() as here:
        one_host = here.size == comm.size
    text = numpy.zeros(512, "uint8")
    if comm.rank == 0:
        try:
            encoded = " ".join(_own_place(told, one_host)).encode()[:512]
            text[: len(encoded)] = list(encoded)
        except OSError:  # told below, to all
            pass
    comm.broadcast(text)
    host, _, port = text.tobytes().rstrip(b"\0").decode().partition(" ")
    if not host:
        raise InvalidUsage("rank 0 has found no address of its host: set MASTER_ADDR")
    return os.environ.get("MASTER_ADDR") or host, os.environ.get("MASTER_PORT") or port


def _local(told: Launch, comm: Communicator | None) -> tuple[int, int]:
    if told.local_rank >= 0 and told.local_size > 0:
        return told.local_rank, told.local_size
    if comm is not None:
        with comm.split_by_host() as here:
            return here.rank, here.size
    if told.one_host:
        return told.rank, told.size
    if told.local_rank >= 0:
        return told.local_rank, -1
    raise InvalidUsage(
        f"{told.launcher} says who this is (rank {told.rank} of {told.size}), but not which number it has on its host: set "
        "TUTTI_LOCAL_RANK and TUTTI_LOCAL_SIZE, or hand over a communicator: tutti.export_env(tutti.init())")


def export_env(comm: Communicator | None = None) -> dict[str, str]:
    """Sets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT in os.environ, for libraries that read
    these (PyTorch's env://), from whatever launcher has started this process. Returns what it has set. All ranks call it.

    What can be told apart without a word between ranks is: on one host the loopback address and a port made of the job's
    name; on several the place that the launcher tells, as AZ_BATCH_MASTER_NODE or Slurm's list of nodes. Where it tells
    none, as MPI's process managers, give a communicator of all ranks: then they agree on an address of rank 0 and a free
    port there. Who gives one gives it on all ranks. MASTER_ADDR and MASTER_PORT that are set stay as they are; nothing else of os.environ is touched."""
    told = launch()
    local_rank, local_size = _local(told, comm)
    host, port = _told_place(told) if comm is None else _agreed_place(told, comm)
    values = {"RANK": told.rank, "WORLD_SIZE": told.size, "LOCAL_RANK": local_rank, "LOCAL_WORLD_SIZE": local_size,
              "MASTER_ADDR": host, "MASTER_PORT": port}
    texts = {name: str(value) for name, value in values.items() if value != -1}
    os.environ.update(texts)
    return texts
