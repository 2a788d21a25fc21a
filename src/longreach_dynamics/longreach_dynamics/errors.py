"""The two errors that Longreach raises on purpose, and those that signals raise."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

# Most characters of a text: names and values in it may be of any length.
_LONGEST = 2000


def shortened(text: str) -> str:
    """Return a text for a line in a log or on a screen, without its middle if it is long."""
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2
    return f'{text[:half]} ... ({len(text) - 2 * half} characters left out) ... {text[-half:]}'


class LongreachError(Exception):
    """A failure that the user can know about; texts above 2000 characters are shortened."""

    def __init__(self, text: object = '') -> None:
        super().__init__(shortened(str(text)))


class InputError(LongreachError, ValueError):
    """
    Input that cannot be used: a file, a value, an argument.

    The text names the quantity, the given value, the allowed values and the remedy.
    """


@contextlib.contextmanager
def named(what: str) -> Iterator[None]:
    """Begin the text of an InputError inside with what it is about, such as ``'poses[0]: '``."""
    try:
        yield
    except InputError as error:
        raise InputError(f'{what}{error}') from error


def unwrapped(error: BaseException) -> BaseException:
    """Return what a signal raised during compiled code, which wraps it in SystemErrors."""
    cause: BaseException | None = error
    while isinstance(cause, SystemError):
        cause = cause.__cause__
    return cause or error
