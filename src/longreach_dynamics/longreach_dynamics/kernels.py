"""
Compiled functions whose cache notices every change that matters.

numba's cache asks only whether the file of the outermost function has changed: an edited
right-hand side in another file would silently go on as the old machine code. :func:`kernel`
therefore adds the state of the files of all compiled functions that the outermost one reaches.

Rule of the house: the outermost function of a computation is a ``@kernel`` and lives in the
machine's package; what it calls, shared integrators included, is plain ``@njit`` and is compiled
into it. Parameters are NamedTuples of numbers, so that a new value never compiles anything anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

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
    compiled: Any = njit(cache=True)(function)
    files = sorted({function.__code__.co_filename for function in _reached(compiled.py_func)})
    cache_file = compiled._cache._cache_file
    states = tuple(
        (file, Path(file).stat().st_mtime_ns, Path(file).stat().st_size) for file in files
    )
    cache_file._source_stamp = (cache_file._source_stamp, states)
    return cast('Function', compiled)


def _reached(function: FunctionType) -> Iterator[FunctionType]:
    """Yield a function and every compiled function that it names, directly or through others."""
    pending, seen = [function], set()
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        yield current
        named = [current.__globals__.get(name) for name in current.__code__.co_names]
        enclosed = [cell.cell_contents for cell in current.__closure__ or ()]
        pending += [value.py_func for value in (*named, *enclosed) if hasattr(value, 'py_func')]
