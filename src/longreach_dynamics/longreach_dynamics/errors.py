"""The two errors that Longreach raises on purpose, and those that signals raise."""

from __future__ import annotations

__all__ = ['InputError', 'LongreachError', 'unwrapped']


class LongreachError(Exception):
    """Something failed that the user can know about; the text is one clear sentence or two."""


class InputError(LongreachError, ValueError):
    """
    Input that cannot be used: a file, a value, an argument.

    The text names the quantity, the given value, the allowed values and the remedy.
    """


def unwrapped(error: BaseException) -> BaseException:
    """Return what a signal raised during compiled code, which wraps it in SystemErrors."""
    cause: BaseException | None = error
    while isinstance(cause, SystemError):
        cause = cause.__cause__
    return cause or error
