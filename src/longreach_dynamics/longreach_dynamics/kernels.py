"""
Compiled functions with a cache that is invalidated by every relevant change.

numba's cache compares only the size and the modification time of the file of the outermost
function: after a change of a right-hand side in another file the old machine code would be used,
and a copied or freshly unpacked tree would be compiled again. :func:`kernel` therefore compares a
digest of everything that is compiled: the text of the files of all compiled functions that are
reached from the outermost one, and of plain ones with overloads, and the values of the global
constants that these use. Location and modification time of the files have no effect.

The outermost function of a computation is a ``@kernel`` in the machine's package; the functions
that it calls, including shared integrators, are plain ``@njit`` and compiled into it. Any of them
may be generated code, in a file that exists when it is imported. Parameters are NamedTuples of
numbers, so that new values need no compilation.
"""

from __future__ import annotations

import enum
import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numba.core.caching import FunctionCache
from numba.core.runtime.nrt import rtsys

__all__ = ['kernel', 'read_only']

Function = TypeVar('Function', bound=Callable[..., Any])
Constants = TypeVar('Constants', bound=tuple[Any, ...])

# Types that numba compiles but whose source files cannot be determined: classes of jitclass, and
# functions of cfunc.
_NOT_FOLLOWED = ('JitClassType', 'CFunc')


class _KernelCache(FunctionCache):
    """
    numba's cache of a function, with a digest in place of the file's time of change.

    numba also imports the implementations of all that it can compile (SciPy's linear algebra
    among them) before it loads anything. Loading needs none of them; compiling imports them
    itself.
    """

    def __init__(self, function: FunctionType) -> None:
        super().__init__(function)
        self._cache_file._source_stamp = _digest(function)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the machine code for a signature; None when there is none."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


def kernel(function: Function) -> Function:
    """
    Compile a function with numba and keep the machine code between runs.

    Parameters
    ----------
    function : callable
        A function of a module, in the subset of Python that numba compiles.

    Returns
    -------
    callable
        The compiled function. Unchecked: the public function around it validates.
    """
    compiled: Any = njit(function)
    compiled._cache = _KernelCache(compiled.py_func)
    return cast('Function', compiled)


def read_only(constants: Constants) -> Constants:
    """
    Take the right to write from all arrays of a named tuple, and of those within it.

    Constants are kept and shared by all that ask for them. numba compiles anew for an array that
    may be written on, so constants are made with this everywhere or nowhere.

    Parameters
    ----------
    constants : NamedTuple
        Of numbers, arrays, and tuples of them; arrays own their numbers.

    Returns
    -------
    NamedTuple
        The same one.
    """
    for value in constants:
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
        elif isinstance(value, tuple):
            read_only(value)
    return constants


def _digest(function: FunctionType) -> str:
    """Return a digest of all that is compiled into a function."""
    files, constants = set(), []
    for reached in _reached(function):
        files.add(_file_digest(reached.__code__.co_filename))
        values = _named(reached)
        # Overloads, which numba compiles in place of a plain function, are in the same file.
        plain = [value for value in _flat(values.values()) if isinstance(value, FunctionType)]
        files |= {_file_digest(value.__code__.co_filename) for value in plain}
        constants += [
            f'{reached.__qualname__}.{name} = {text}'
            for name, value in values.items()
            if (text := _constant(value)) is not None
        ]
    return hashlib.sha256('\n'.join(sorted(files) + sorted(constants)).encode()).hexdigest()


def _reached(function: FunctionType) -> Iterator[FunctionType]:
    """Yield a function and every compiled function that it names, directly or through others."""
    pending, seen = [function], set()
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        yield current
        for value in _flat(_named(current).values()):
            if type(value).__name__ in _NOT_FOLLOWED:
                raise TypeError(
                    f'{current.__module__}.{current.__qualname__} is compiled with {value!r},'
                    ' whose source the cache does not follow, allowed: numbers, arrays, named'
                    ' tuples and functions compiled by @njit; write it as one of these'
                )
            # numba.vectorize has its compiled function inside.
            compiled = getattr(value, '_dispatcher', value)
            if hasattr(compiled, 'py_func'):
                pending.append(compiled.py_func)


def _flat(values: Iterable[Any]) -> Iterator[Any]:
    """Yield values, and those in tuples one by one."""
    for value in values:
        if isinstance(value, tuple):
            yield from _flat(value)
        else:
            yield value


def _named(function: FunctionType) -> dict[str, Any]:
    """Return the values that a function takes from its module, its maker or its defaults."""
    names = set(_names(function.__code__))
    values = {name: function.__globals__[name] for name in names & function.__globals__.keys()}
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    values |= {name: cell.cell_contents for name, cell in cells}
    # package.module.name stands as three names.
    modules = [item for item in values.items() if isinstance(item[1], ModuleType)]
    seen = set()
    while modules:
        alias, module = modules.pop()
        if module in seen:
            continue
        seen.add(module)
        found = {f'{alias}.{name}': getattr(module, name, None) for name in names}
        values |= {name: value for name, value in found.items() if value is not None}
        modules += [item for item in found.items() if isinstance(item[1], ModuleType)]
    values['defaults'] = (function.__defaults__, *(function.__kwdefaults__ or {}).items())
    return values


def _names(code: CodeType) -> Iterator[str]:
    """Yield the global names and attributes of a function and of those inside it."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


@functools.cache
def _file_digest(file: str) -> str:
    """Return a digest of the text of a file; for code that came from none its name."""
    path = Path(file)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else file


def _constant(value: Any) -> str | None:
    """Return the text of a value that is compiled in as a constant; None for anything else."""
    if isinstance(value, np.ndarray):
        return f'{value.dtype.str} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}'
    if isinstance(value, tuple):
        return repr([_constant(item) for item in value])
    if isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        return repr(value)
    if isinstance(value, type) and issubclass(value, enum.Enum):
        return repr(list(value))
    if isinstance(value, type) and issubclass(value, tuple):
        return repr(getattr(value, '_fields', None))
    return None
