"""The two errors that Longreach raises on purpose, and the sentence that they are made of."""

from __future__ import annotations

__all__ = ['InputError', 'LongreachError']


class LongreachError(Exception):
    """Something failed that the user can know about; the text is one clear sentence or two."""


class InputError(LongreachError, ValueError):
    """
    Input that cannot be used: a file, a value, an argument.

    The text says what was wrong, what was got, what is allowed and what to do.
    """
