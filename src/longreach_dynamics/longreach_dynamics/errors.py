"""The errors that Longreach raises on purpose, checks that raise them, and those of signals."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence, Sized

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


def check_among(name: str, value: object, allowed: Collection[str], remedy: str = '') -> None:
    """Refuse a value that is none of a few."""
    if value not in allowed:
        raise InputError(f'{name} = {value!r}, allowed: {" | ".join(allowed) or "none"}{remedy}')


def check_count(name: str, values: Sized, count: int, what: str = '') -> None:
    """Refuse another number of values than ``count``, of which ``what`` says what they are."""
    if len(values) != count:
        allowed = f'{count}, {what}' if what else count
        raise InputError(f'{name} has {len(values)} values, allowed: {allowed}')


def check_distinct(name: str, values: Sequence[str]) -> None:
    """Refuse a name that stands twice."""
    for value in values:
        if values.count(value) > 1:
            raise InputError(f'{name} has the name {value!r} twice, allowed: no two alike')


def check_has(what: str, needed: Iterable[str], found: Collection[str], remedy: str = '') -> None:
    """Refuse a file, recording or message that lacks names."""
    if missing := [name for name in needed if name not in found]:
        shown = ', '.join(found) or 'nothing'
        raise InputError(f'{what} lacks {", ".join(missing)}; found: {shown}{remedy}')


def check_one(least: int = 1, **given: object) -> None:
    """Refuse more than one of some values that is neither None nor empty, and less than least."""
    names = [name for name, value in given.items() if value]
    if not least <= len(names) <= 1:
        shown = ' and '.join(names) or f'none of {", ".join(given)}'
        raise InputError(f'{shown} given, allowed: one of them')


def check_within(name: str, value: float, allowed: str) -> None:
    """Refuse a number outside of an interval with a unit, such as ``(0, 0.1] s``."""
    _, low, high, rest = re.split(r', |[][()]', allowed, maxsplit=3)
    above = value > float(low) or (allowed[0] == '[' and value == float(low))
    below = value < float(high) or (allowed[-len(rest) - 1] == ']' and value == float(high))
    if not (above and below):
        raise InputError(f'{name} = {value:.12g}{rest.partition(";")[0]}, allowed: {allowed}')


def unwrapped(error: BaseException) -> BaseException:
    """Return what a signal raised during compiled code, which wraps it in SystemErrors."""
    cause: BaseException | None = error
    while isinstance(cause, SystemError):
        cause = cause.__cause__
    return cause or error
