r"""
Substitutions in launch files: their syntax.

``$(name argument ...)`` may stand anywhere in an attribute. Arguments are separated by one space.
One with spaces, parentheses or quotes is put in single or double quotes, inside which further
substitutions are replaced; these have no quotes of their own. A backslash takes the next character
as it stands, so ``\$(`` is no substitution.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from longreach_dynamics.errors import InputError

_NAME = re.compile(r'[A-Za-z][A-Za-z0-9_-]*')

FUNCTIONS = {
    'and': (2, 2),
    'command': (1, 1),
    'dirname': (0, 0),
    'equals': (2, 2),
    'find-pkg-share': (1, 1),
    'if': (2, 3),
    'not': (1, 1),
    'or': (2, 2),
    'var': (1, 2),
}
"""Fewest and most arguments by name; a file with others needs ROS 2's own launch."""


class Call(NamedTuple):
    """A substitution; the arguments have substitutions themselves."""

    name: str
    arguments: tuple[Parts, ...]


Parts = tuple[str | Call, ...]
"""Literal pieces without escapes, and calls, in order."""


@functools.cache
def parse(text: str) -> Parts:
    """Return the pieces of a text; raises InputError."""
    return _parts(text, 0, stop='', quoted=False)[0]


def _parts(text: str, at: int, stop: str, *, quoted: bool, refuse: str = '') -> tuple[Parts, int]:
    """Read up to a character of ``stop`` or to the end; return the pieces and the position."""
    parts: list[str | Call] = []
    while at < len(text) and text[at] not in stop:
        if text.startswith('$(', at):
            call, at = _call(text, at, quoted=quoted)
            parts.append(call)
            continue
        if text[at] in refuse:
            raise InputError(
                f'{text[at]!r} at column {at + 1} inside a substitution; '
                'put the argument in quotes or a backslash before the character'
            )
        if text[at] == '\\' and at + 1 < len(text):
            at += 1
        if parts and isinstance(parts[-1], str):
            parts[-1] += text[at]
        else:
            parts.append(text[at])
        at += 1
    return tuple(parts), at


def _call(text: str, start: int, *, quoted: bool) -> tuple[Call, int]:
    """Read ``$(name argument ...)``."""
    match = _NAME.match(text, start + 2)
    if match is None:
        raise InputError(f'no name after "$(" at column {start + 1}')
    name, at = match.group(), match.end()
    if name not in FUNCTIONS:
        raise InputError(
            f'the substitution $({name}) is not known here (allowed: {", ".join(FUNCTIONS)}); '
            'use ros2 launch'
        )
    arguments = []
    while text.startswith(' ', at):
        argument, at = _argument(text, at + 1, quoted=quoted)
        arguments.append(argument)
    if not text.startswith(')', at):
        found = f'{text[at]!r} at column {at + 1}' if at < len(text) else 'the end'
        raise InputError(
            f'"$({name}" at column {start + 1} is not closed: expected ")", found {found}'
        )
    least, most = FUNCTIONS[name]
    if not least <= len(arguments) <= most:
        raise InputError(
            f'$({name}) got {len(arguments)} arguments, takes '
            f'{" or ".join(map(str, range(least, most + 1)))}; '
            'an argument with spaces needs quotes'
        )
    return Call(name, tuple(arguments)), at + 1


def _argument(text: str, start: int, *, quoted: bool) -> tuple[Parts, int]:
    """Read one argument, in quotes or not."""
    mark = text[start : start + 1]
    if mark and mark in '\'"' and not quoted:
        parts, at = _parts(text, start + 1, mark, quoted=True)
        if at == len(text):
            raise InputError(f'the quote {mark} at column {start + 1} is not closed')
        return parts, at + 1
    parts, at = _parts(text, start, ' )', quoted=quoted, refuse='(\'"')
    if not parts:
        raise InputError(
            f'empty argument at column {start + 1}; arguments are separated by one space'
        )
    return parts, at
