"""Names of topics: relative ones belong to a namespace, full ones begin with a slash."""

from __future__ import annotations

import re

from longreach_dynamics.errors import InputError

__all__ = ['absolute_name', 'checked_name']

_FULL_NAME = re.compile(r'(/[A-Za-z_][A-Za-z0-9_]*)+')


def absolute_name(name: str, namespace: str = '/') -> str:
    """Return the absolute name of a topic; a relative name is resolved in the namespace."""
    return name if name.startswith('/') else f'/{namespace.strip("/")}/{name}'.replace('//', '/')


def checked_name(name: str, namespace: str = '/') -> str:
    """
    Return the absolute name of a topic after checking that ROS accepts it.

    Raises
    ------
    InputError
        If ROS does not.
    """
    full = absolute_name(name, namespace)
    if not _FULL_NAME.fullmatch(full) or '__' in full:
        raise InputError(
            f'topic name {name!r}; allowed: parts of letters, digits and _ between slashes, none '
            'of which begins with a digit, and no __'
        )
    return full
