"""
Compiled functions whose cache notices every change that matters.

numba's cache asks only whether the file of the outermost function has changed: an edited
right-hand side in another file would silently go on as the old machine code. :func:`kernel`
therefore adds the state of the files of all compiled functions that the outermost one reaches,
and of the modules that these take constants from.

Rule of the house: the outermost function of a computation is a ``@kernel`` and lives in the
machine's package; what it calls, shared integrators included, is plain ``@njit`` and is compiled
into it. Parameters are NamedTuples of numbers, so that a new value never compiles anything anew.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
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
    files = sorted({file for reached in _reached(compiled.py_func) for file in _files(reached)})
    stats = [(file, Path(file).stat()) for file in files]
    states = tuple((file, stat.st_mtime_ns, stat.st_size) for file, stat in stats)
    cache_file = compiled._cache._cache_file
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
        names = current.__code__.co_names
        values: list[Any] = [current.__globals__.get(name) for name in names]
        values += [cell.cell_contents for cell in current.__closure__ or ()]
        # module.function stands as two names.
        modules = [value for value in values if isinstance(value, ModuleType)]
        values += [getattr(module, name, None) for module in modules for name in names]
        pending += [value.py_func for value in values if hasattr(value, 'py_func')]


def _files(function: FunctionType) -> Iterator[str]:
    """Yield the file of a function, and those of modules that it takes constants from."""
    file = function.__code__.co_filename
    yield file
    names = set(function.__code__.co_names)
    packages = {function.__module__.partition('.')[0], __name__.partition('.')[0]}
    for alias, module in _imported(file).items():
        source = getattr(sys.modules.get(module), '__file__', None)
        if alias in names and source and module.partition('.')[0] in packages:
            yield source


@functools.cache
def _imported(file: str) -> dict[str, str]:
    """Return the names that a file imports at its top, with the modules they come from."""
    names = {}
    for statement in ast.parse(Path(file).read_text(encoding='utf-8')).body:
        if isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            for item in statement.names:
                whole = f'{statement.module}.{item.name}'
                module = whole if whole in sys.modules else statement.module
                names[item.asname or item.name] = module
        elif isinstance(statement, ast.Import):
            for item in statement.names:
                names[item.asname or item.name] = item.name
    return names
