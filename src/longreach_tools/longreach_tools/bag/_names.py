"""Names of topics: relative ones belong to a namespace, full ones begin with a slash."""

from __future__ import annotations

import re

from longreach_dynamics.errors import InputError

_FULL_NAME = re.compile(r'(/[A-Za-z_][A-Za-z0-9_]*)+')


def absolute_name(name: str, namespace: str = '/') -> str:
    """Return the absolute name of a topic; a relative name is resolved in the namespace."""
    return name if name.startswith('/') else f'/{namespace.strip("/")}/{name}'.replace('//', '/')


def matches(name: str, pattern: str) -> bool:
    """Return whether an absolute name is a pattern, in which a part ``*`` stands for any part."""
    parts, wanted = name.split('/'), pattern.split('/')
    return len(parts) == len(wanted) and all(
        want in ('*', part) for part, want in zip(parts, wanted, strict=True)
    )


def checked_name(name: str, namespace: str = '/', *, patterns: bool = False) -> str:
    """
    Return the absolute name of a topic after checking that ROS accepts it.

    With ``patterns``, parts may be ``*``.

    Raises
    ------
    InputError
        If ROS does not.
    """
    full = absolute_name(name, namespace)
    parts = full.split('/')
    checked = '/'.join('any' if patterns and part == '*' else part for part in parts)
    if not _FULL_NAME.fullmatch(checked) or '__' in full:
        raise InputError(
            f'topic name {name!r}; allowed: parts of letters, digits and _ between slashes, none '
            'of which begins with a digit, and no __'
        )
    return full
