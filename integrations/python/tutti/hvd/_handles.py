"""What stands for an operation that is under way."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Callable, Optional, Union

from tutti._errors import InvalidArgument, Timeout, error_of


class Handle:
    """One operation. Any thread may ask and wait; each that waits gets the result, or an error of its own."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._ended = threading.Event()
        self._result: Any = None
        self._failure: Optional[tuple[int, str]] = None

    def done(self) -> bool:
        """Whether it has ended, well or not."""
        return self._ended.is_set()

    def wait(self, timeout: Optional[float] = None) -> Any:
        """Until it has ended; returns the result, or raises what went wrong. After so many seconds Timeout: then it
        goes on."""
        if not self._ended.wait(timeout):
            raise Timeout(f"{self.what} goes on: it has not ended within the {timeout} s of this wait")
        if self._failure is not None:
            raise error_of(*self._failure)
        return self._result

    def settle(self) -> None:
        """Until it has ended, well or not."""
        self._ended.wait()

    def succeed(self, result: Any) -> None:
        """Ends it. Once."""
        self._result = result
        self._ended.set()

    def fail(self, code: int, text: str) -> None:
        """Ends it with an error, by the number of its class."""
        self._failure = code, f"{self.what}: {text}"
        self._ended.set()


class Chained:
    """Handles that are waited for together, and what is made of their results."""

    def __init__(
        self, handles: Sequence[AnyHandle], finish: Callable[[list[Any]], Any] = lambda results: results
    ) -> None:
        self._handles = handles
        self._finish = finish
        self._lock = threading.Lock()
        self._finished: Optional[tuple[Any]] = None

    def done(self) -> bool:
        """Whether all have ended."""
        return all(handle.done() for handle in self._handles)

    def wait(self, timeout: Optional[float] = None) -> Any:
        """Until all have ended, so many seconds for each; raises the first error."""
        failures, results = [], []
        for handle in self._handles:
            try:
                results.append(handle.wait(timeout))
            except RuntimeError as error:
                failures.append(error)
        if failures:
            raise failures[0]
        with self._lock:
            if self._finished is None:
                self._finished = (self._finish(results),)
            return self._finished[0]


AnyHandle = Union[Handle, Chained]


def checked(handle: AnyHandle) -> AnyHandle:
    """It. Raises where it is something else, such as the number that stands for an operation in Horovod."""
    if not isinstance(handle, (Handle, Chained)):
        raise InvalidArgument(f"handle is {handle!r}: it is what a call whose name has _async in it returned")
    return handle
