"""
Compiled functions whose cache notices every change that matters.

numba's cache asks only whether the file of the outermost function has changed. An edited right-hand
side in another file would silently go on with the old machine code. :func:`kernel` therefore adds
the state of all files of the function's own package and of this one to what the cache compares.

Rule of the house: the outermost function of a computation is a ``@kernel`` and lives in the
machine's package; what it calls, shared steppers included, is plain ``@njit`` and is compiled into
it. Right-hand sides are passed to steppers as arguments, parameters as NamedTuples of floats, so
that a new value never compiles anything anew.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from numba import njit

__all__ = ['kernel']

Function = TypeVar('Function', bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """
    Compile a function with numba and keep the machine code between runs.

    Parameters
    ----------
    function : callable
        A function of a module, in the subset of Python that numba compiles; it calls compiled
        functions of its own package and of longreach_dynamics only.

    Returns
    -------
    callable
        The compiled function. Unchecked: the public function around it validates.
    """
    compiled = njit(cache=True)(function)
    cache_file = compiled._cache._cache_file
    cache_file._source_stamp = (
        cache_file._source_stamp,
        _package_state(Path(function.__code__.co_filename).resolve().parent),
        _package_state(Path(__file__).resolve().parent),
    )
    return compiled  # type: ignore[no-any-return]


@functools.cache
def _package_state(directory: Path) -> tuple[tuple[str, int, int], ...]:
    """Return name, time of change [ns] and size [byte] of every module in a directory."""
    files = sorted(directory.glob('*.py'))
    return tuple((path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in files)
