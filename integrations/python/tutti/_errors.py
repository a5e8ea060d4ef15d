"""The library's results as exceptions: `code` to branch on, and the library's text for a person."""
from __future__ import annotations


class Error(RuntimeError):
    """What every failed call of tutti raises."""

    code = 3

    def __init__(self, text: str, code: int | None = None) -> None:
        super().__init__(text)
        if code is not None:
            self.code = code


class InvalidArgument(Error, ValueError):
    """One argument of the call is wrong in itself."""

    code = 4


class InvalidUsage(Error):
    """The call, or a setting, does not fit the others, here or on another rank."""

    code = 5


class RemoteError(Error):
    """Another rank failed, left or aborted; the text names it. Communicator.shrink() is the way on."""

    code = 6


class Timeout(Error, TimeoutError):
    """A deadline passed; the text names who has not come."""

    code = 8


class SystemFailure(Error):
    """The operating system refused something."""

    code = 2


class InternalError(Error):
    """A defect of the library."""


_CLASSES: dict[int, type[Error]] = {
    each.code: each for each in (InvalidArgument, InvalidUsage, RemoteError, Timeout, SystemFailure, InternalError)
}


def error_of(code: int, text: str) -> Error:
    """The exception for a result of the library."""
    return _CLASSES.get(code, Error)(text, code)
