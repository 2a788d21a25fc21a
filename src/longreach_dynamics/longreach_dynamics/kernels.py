"""
Compiled functions with a cache that is invalidated by every relevant change.

numba's cache compares only the size and the modification time of the file of the outermost
function: after a change of a right-hand side in another file the old machine code would be used,
and a copied or freshly unpacked tree would be compiled again. :func:`kernel` therefore compares a
digest of everything that is compiled: the text of the files of all compiled functions that are
reached from the outermost one, and of plain ones with overloads, their code, which is older than
the file where that was changed after the import, and the values of the global constants that they
use. Location and modification time of the files have no effect.

The files of the cache are pickled, and what is read from them is executed. Each ends with a digest
of its content: damaged ones count as missing, are compiled again and overwritten. Those that
others than the user, root and the owner of the sources may write are not used, with a warning.

The outermost function of a computation is a ``@kernel`` in the machine's package; the functions
that it calls, including shared integrators, are plain ``@njit`` and compiled into it. Any of them
may be generated code, in a file that exists when it is imported. Parameters are NamedTuples of
numbers, so that new values need no compilation.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import hashlib
import io
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.runtime.nrt import rtsys

from longreach_dynamics._linking import only_linked

Function = TypeVar('Function', bound=Callable[..., Any])
Constants = TypeVar('Constants', bound=tuple[Any, ...])

# Types that numba compiles but whose source files cannot be determined: classes of jitclass, and
# functions of cfunc.
_NOT_FOLLOWED = ('JitClassType', 'CFunc')


class _CacheFile(IndexDataCacheFile):
    """The files of numba's cache of a function; damaged ones and those of others are missing."""

    def __init__(self, directory: str, name: str, stamp: str, source: str) -> None:
        super().__init__(directory, name, stamp)
        # numba writes the index first: of a process that ended then, or of two with other sources,
        # a new index named the machine code of before.
        self._data_name_pattern = f'{name}.{{number:d}}.{stamp[:16]}.nbc'
        self._name, self._source = name, source

    @contextlib.contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[io.BytesIO]:
        """Write the content and its digest, which unpickling does not read."""
        with super()._open_for_write(filepath) as file:
            content = io.BytesIO()
            yield content
            file.write(content.getvalue() + hashlib.sha256(content.getvalue()).digest())

    def save(self, key: Any, data: Any) -> None:
        """Save machine code, and remove that of other sources."""
        super().save(key, data)
        kept = set(self._load_index().values())
        for file in Path(self._cache_path).glob(f'{self._name}.*.nbc'):
            if kept and file.name not in kept:
                file.unlink(missing_ok=True)

    def _load_index(self) -> Any:
        # Of a type of arguments that has another name now, or is gone, it cannot be read.
        with contextlib.suppress(AttributeError, ImportError):
            return super()._load_index() if self._is_usable(self._index_path) else {}
        return {}

    def _load_data(self, name: str) -> Any:
        if not self._is_usable(self._data_path(name)):
            raise FileNotFoundError(name)  # which numba takes for a miss
        return super()._load_data(name)

    def _is_usable(self, file: str) -> bool:
        """Return whether a file is as it was written, and nobody else may have written it."""
        with contextlib.suppress(OSError):
            content = Path(file).read_bytes()
            return (
                hashlib.sha256(content[:-32]).digest() == content[-32:]
                and _is_private(self._cache_path, self._source)
                and _is_private(file, self._source)
            )
        return False


@functools.cache
def _is_private(path: str, source: str) -> bool:
    """Return whether nobody but the user, root and the sources' owner may write; warn if not."""
    if not hasattr(os, 'getuid'):
        return True
    status = Path(path).stat()
    owners = {0, os.getuid(), Path(source).stat().st_uid}
    if status.st_uid in owners and not _is_open_to_others(status):
        return True
    warnings.warn(
        f'{path} (owner {status.st_uid}, mode {status.st_mode & 0o777:o}) may be written by others'
        f' and is not used: compiled kernels are executed; remove it, or make it your own and'
        f' close it: chmod go-w {path}',
        stacklevel=2,
    )
    return False


def _is_open_to_others(status: os.stat_result) -> bool:
    """Return whether others than the owner may write, apart from the owner's own group."""
    if status.st_mode & 0o002:
        return True
    if not status.st_mode & 0o020:
        return False
    import grp
    import pwd

    try:
        group, user = grp.getgrgid(status.st_gid), pwd.getpwuid(status.st_uid)
    except KeyError:
        return status.st_gid != status.st_uid
    return group.gr_name != user.pw_name or bool(set(group.gr_mem) - {user.pw_name})


class _KernelCache(FunctionCache):
    """numba's cache of a function, with a digest in place of the file's time of change."""

    def __init__(self, function: FunctionType) -> None:
        super().__init__(function)
        self._cache_file = _CacheFile(
            self._cache_path,
            self._impl.filename_base,
            _digest(function),
            function.__code__.co_filename,
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the machine code for a signature; None when there is none."""
        # numba imports all that it can compile, such as SciPy, before; loading needs none of it.
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            found = self._load_overload(sig, target_context)
        if found is None:
            _announce()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save the machine code for a signature, where there is room and the right to."""
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)


@functools.cache
def _announce() -> None:
    """Say once, on a terminal and in a notebook, why the first call takes long."""
    if sys.stderr.isatty() or 'ipykernel' in sys.modules:
        print('compiling for the first use, up to a minute ...', file=sys.stderr)


@functools.cache
def _warn_of_no_cache() -> None:
    """Say once that neither the package nor the user's home can be written."""
    warnings.warn(
        'no directory for compiled kernels can be written: they compile in each process, in up to'
        ' a minute; name one: NUMBA_CACHE_DIR=DIR',
        stacklevel=3,
    )


def kernel(function: Function) -> Function:
    """
    Compile a function of a module with numba, and keep the machine code between runs.

    The compiled function checks nothing: the public function around it validates.
    """
    compiled: Any = njit(function)
    try:
        compiled._cache = _KernelCache(compiled.py_func)
    except RuntimeError:
        _warn_of_no_cache()
    compiled.compile = functools.partial(_compile, compiled.compile)
    return cast('Function', compiled)


def _compile(compile_: Callable[..., Any], signature: Any) -> Any:
    """Load or compile a kernel."""
    with only_linked():
        return compile_(signature)


def read_only(constants: Constants) -> Constants:
    """
    Take the right to write from all arrays of a named tuple, and of those within it; return it.

    Constants are kept and shared by all that ask for them; arrays own their numbers. numba
    compiles anew for an array that may be written on, so constants are made with this everywhere
    or nowhere.
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
        constants.append(f'{reached.__qualname__}: {_code_text(reached.__code__)}')
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


def _code_text(code: CodeType) -> str:
    """Return the code of a function and of those inside it as text."""
    inner = [_code_text(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts]
    return f'{code.co_code.hex()} {code.co_names} {inner}'


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
