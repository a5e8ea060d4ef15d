"""tutti's C interface for Python; use the package tutti, which has all of this."""
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Literal, TypedDict, Union, overload

from typing_extensions import Unpack

Array = Any
"""A numpy array, or whatever speaks DLPack or the buffer protocol: C-contiguous, in host memory; writable where it is written.
Not a scalar of numpy, which has no memory of its own, nor a masked array, nor a view with PyTorch's negative bit."""

class Settings(TypedDict, total=False):
    """What a communicator is made with. Times in seconds. What is None, or left away, is at its default, and of a child what its
    parent has. Variables that are set (docs/settings.md) win."""

    join_timeout: float | None
    connect_timeout: float | None
    operation_timeout: float | None
    heartbeat: float | None  # 0: silence is no failure
    channels: int | str | None  # text: as TUTTI_CHANNELS, "2;all_reduce:8"
    transports: str | None
    algorithm: str | None
    protocol: str | None  # of GPUs
    name: str | None
    encrypt: bool | None
    reproducible: bool | None

class Wish(TypedDict, total=False):
    """How one operation is to run; the same on every rank. For `async_op` see the operations."""

    algorithm: str | None
    channels: int
    reproducible: bool
    tag: int

class Request:
    """An operation that goes on in the background, and keeps its buffers until it has ended. Any thread may ask."""

    def test(self) -> bool:
        """Whether it has ended. Raises its error."""

    def wait(self, timeout: float | None = None) -> None:
        """Until it has ended; raises its error, or Timeout after so many seconds: then it goes on."""

class Operator:
    """What Communicator.premulsum() makes, for that communicator."""

_Op = Union[Literal["sum", "prod", "max", "min", "avg", "band", "bor", "bxor"], Operator]

class Communicator:
    """One rank among others.

    Operations end when they are done and return None; with async_op=True they return a Request at once, and the buffers are not
    to be touched until that has ended. In a `with tutti.group()` block they are collected, and end with the block.
    As a context manager it is destroyed at the end, and aborted where an exception leaves the block, so that no other rank waits
    for this one."""

    @staticmethod
    def from_environment(**settings: Unpack[Settings]) -> Communicator:
        """Joins as what the launcher's environment says: mpirun, torchrun, srun, python -m tutti.run, ..."""

    @staticmethod
    def join(size: int, id: bytes, rank: int, **settings: Unpack[Settings]) -> Communicator:
        """Joins as `rank` of `size` with the bytes of unique_id(), which one rank has made."""

    @staticmethod
    def join_growing(size: int, id: bytes, rank: int, **settings: Unpack[Settings]) -> Communicator:
        """Joins a communicator whose ranks call grow() with the same size."""

    def split(self, color: int | None, key: int = 0, **settings: Unpack[Settings]) -> Communicator | None:
        """Of the ranks with the same color, ordered by key, then rank. None as the color: none for this rank."""

    def split_by_host(self, key: int = 0, **settings: Unpack[Settings]) -> Communicator:
        """Of the ranks of this one's host."""

    def duplicate(self, **settings: Unpack[Settings]) -> Communicator:
        """Of all ranks once more, with links of its own."""

    def shrink(self, left_out: Sequence[int] = ..., **settings: Unpack[Settings]) -> Communicator:
        """The survivors' way on after RemoteError. left_out: ranks that stay behind though alive, and do not call."""

    def grow(self, size: int, id: bytes | None = None, **settings: Unpack[Settings]) -> Communicator:
        """Of these ranks and others that call join_growing(). One rank brings the id of unique_id_to_grow()."""

    def unique_id_to_grow(self) -> bytes:
        """An id for one grow()."""

    @property
    def rank(self) -> int:
        """The number of this rank, from 0 on."""

    @property
    def size(self) -> int:
        """How many ranks there are."""

    @property
    def is_open(self) -> bool:
        """Whether it has neither been destroyed nor aborted."""

    @property
    def error(self) -> str | None:
        """What has stopped the communicator, in words; None while it works. Any thread."""

    def premulsum(self, factor: float, dtype: Any) -> Operator:
        """An operator: this rank's input times factor, added. Raises InvalidArgument where the dtype does not hold the factor:
        an integer type takes whole factors, a floating point one rounds."""

    def explain(self, collective: str, count: int, dtype: Any = "float32") -> str:
        """How a collective of so many elements would run, and why: what was chosen, what comes next, what was left out."""

    def explain_json(self, collective: str, count: int, dtype: Any = "float32") -> dict[str, Any]:
        """The same as a dict, with the keys of docs/json.md: operation, choice, others, left_out, links and so on."""

    def dump(self, path: str) -> None:
        """Writes this rank's record for tutti-doctor. Any thread."""

    def stats(self) -> dict[str, float]:
        """What was done and is used, as flat numbers, any thread: for each operation that was called, as
        "all_reduce", "all_reduce_operations", "all_reduce_bytes" (of this rank's buffers), and
        "all_reduce_wait_seconds" (that its caller waited in it), and the sums "operations", "bytes" and
        "wait_seconds"; "seconds" from each call's turn to its end, "bus_bytes" as nccl-tests count them,
        "bus_bandwidth", bytes a second, of these two; "wait_for_rank_3_seconds" and so on of ranks that calls waited
        for; "memory_bytes", "connected_peers", "library_operations", "rank", "size"."""

    def revoke(self) -> None:
        """Stops the work on all ranks; the communicator lives on for shrink(). Any thread."""

    def abort(self) -> None:
        """Gives everything up at once, on all ranks. Any thread."""

    def destroy(self) -> None:
        """Waits for what is under way, and leaves in good order. Once more does no harm."""

    def __enter__(self) -> Communicator: ...
    def __exit__(self, type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None: ...

    @overload
    def all_reduce(
        self, send: Array, recv: Array | None = None, op: _Op = "sum", *, async_op: Literal[False] = False, **wish: Unpack[Wish],
    ) -> None:
        """recv[i] = op over all ranks of send[i], on every rank. Without recv in place, in send."""
    @overload
    def all_reduce(
        self, send: Array, recv: Array | None = None, op: _Op = "sum", *, async_op: Literal[True], **wish: Unpack[Wish],
    ) -> Request: ...

    @overload
    def broadcast(
        self, buffer: Array, root: int = 0, *, async_op: Literal[False] = False, **wish: Unpack[Wish],
    ) -> None:
        """The root's buffer into everybody's. The root's may be read-only."""
    @overload
    def broadcast(self, buffer: Array, root: int = 0, *, async_op: Literal[True], **wish: Unpack[Wish]) -> Request: ...

    @overload
    def reduce(
        self, send: Array, recv: Array | None = None, op: _Op = "sum", root: int = 0, *, async_op: Literal[False] = False, **wish: Unpack[Wish],
    ) -> None:
        """As all_reduce, at the root only: elsewhere recv is not looked at. Without recv at the root in place."""
    @overload
    def reduce(
        self, send: Array, recv: Array | None = None, op: _Op = "sum", root: int = 0, *, async_op: Literal[True], **wish: Unpack[Wish],
    ) -> Request: ...

    @overload
    def all_gather(
        self, send: Array, recv: Array, recv_counts: Sequence[int] | None = None, *, async_op: Literal[False] = False, **wish: Unpack[Wish],
    ) -> None:
        """recv holds the send of every rank, in the order of ranks. With recv_counts, the same on all ranks, sizes differ."""
    @overload
    def all_gather(
        self, send: Array, recv: Array, recv_counts: Sequence[int] | None = None, *, async_op: Literal[True], **wish: Unpack[Wish],
    ) -> Request: ...

    @overload
    def reduce_scatter(
        self, send: Array, recv: Array, op: _Op = "sum", send_counts: Sequence[int] | None = None, *, async_op: Literal[False] = False, **wish: Unpack[Wish],
    ) -> None:
        """recv[i] = op over all ranks of send[rank * len(recv) + i]. With send_counts, the same on all ranks, sizes differ."""
    @overload
    def reduce_scatter(
        self, send: Array, recv: Array, op: _Op = "sum", send_counts: Sequence[int] | None = None, *, async_op: Literal[True], **wish: Unpack[Wish],
    ) -> Request: ...

    @overload
    def gather(
        self, send: Array, recv: Array | None = None, root: int = 0, recv_counts: Sequence[int] | None = None, *, async_op: Literal[False] = False, **wish: Unpack[Wish],
    ) -> None:
        """As all_gather, at the root only. recv_counts are given on every rank, and read at the root."""
    @overload
    def gather(
        self, send: Array, recv: Array | None = None, root: int = 0, recv_counts: Sequence[int] | None = None, *, async_op: Literal[True], **wish: Unpack[Wish],
    ) -> Request: ...

    @overload
    def scatter(
        self, send: Array | None, recv: Array, root: int = 0, send_counts: Sequence[int] | None = None, *, async_op: Literal[False] = False, **wish: Unpack[Wish],
    ) -> None:
        """recv[i] = the root's send[rank * len(recv) + i]. send_counts are given on every rank, and read at the root."""
    @overload
    def scatter(
        self, send: Array | None, recv: Array, root: int = 0, send_counts: Sequence[int] | None = None, *, async_op: Literal[True], **wish: Unpack[Wish],
    ) -> Request: ...

    @overload
    def all_to_all(
        self, send: Array, recv: Array | None = None, send_counts: Sequence[int] | None = None, recv_counts: Sequence[int] | None = None, *, async_op: Literal[False] = False, **wish: Unpack[Wish],
    ) -> None:
        """The r-th part of send goes to rank r; recv gets the parts in the order of ranks. Without recv in place."""
    @overload
    def all_to_all(
        self, send: Array, recv: Array | None = None, send_counts: Sequence[int] | None = None, recv_counts: Sequence[int] | None = None, *, async_op: Literal[True], **wish: Unpack[Wish],
    ) -> Request: ...

    @overload
    def send(self, buffer: Array, peer: int, *, async_op: Literal[False] = False, **wish: Unpack[Wish]) -> None:
        """A message to another rank, which receives as many elements of the same type."""
    @overload
    def send(self, buffer: Array, peer: int, *, async_op: Literal[True], **wish: Unpack[Wish]) -> Request: ...

    @overload
    def recv(self, buffer: Array, peer: int, *, async_op: Literal[False] = False, **wish: Unpack[Wish]) -> None:
        """A message from another rank."""
    @overload
    def recv(self, buffer: Array, peer: int, *, async_op: Literal[True], **wish: Unpack[Wish]) -> Request: ...

    @overload
    def barrier(self, *, async_op: Literal[False] = False, **wish: Unpack[Wish]) -> None:
        """Ends when every rank has called it."""
    @overload
    def barrier(self, *, async_op: Literal[True], **wish: Unpack[Wish]) -> Request: ...

def unique_id() -> bytes:
    """An id for Communicator.join: made on one rank, carried to the others. Whoever has it can join."""

def launch() -> dict[str, Any]: ...
def version() -> str: ...
def start_group() -> None: ...
def end_group() -> None: ...
def abandon_group() -> None: ...
