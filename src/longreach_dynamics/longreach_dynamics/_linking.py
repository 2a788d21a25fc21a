"""
Compilation of a kernel without machine code of the functions that it calls.

numba optimises each compiled function and emits its machine code and wrappers, with which Python
can call it. Those that a kernel calls are then linked into it and optimised there again, once for
each level of calls. Within :func:`only_linked` the outermost function alone is optimised in full,
and kernels compile in two thirds of the time. Where Python calls one of the others after all, it
is compiled again.

Functions of other packages are compiled as ever: such a function has no environment, which
printing, exceptions with values and Python code within compiled code need.

Machine code that is loaded calls the first function of a name that the process has. numba numbers
functions, such as the inner ones of a factory, from 1 in each process: those of kernels that were
compiled in different ones had the same names. Here each process has numbers of its own, and each
kernel, as a process that is forked begins with those of the other.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from typing import Any

from numba.core import event
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import NullCache
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler_lock import global_compiler_lock
from numba.core.cpu import CPUContext
from numba.core.dispatcher import Dispatcher, _FunctionCompiler  # type: ignore[attr-defined]


class _Compiling(event.Listener):
    """The functions that are being compiled, outermost first: dispatchers, types of arguments."""

    def __init__(self) -> None:
        self.functions: list[tuple[Any, tuple[Any, ...]]] = []

    def on_start(self, event: event.Event) -> None:
        self.functions.append((event.data['dispatcher'], event.data['args']))

    def on_end(self, event: event.Event) -> None:  # noqa: ARG002
        self.functions.pop()

    def is_inner(self) -> bool:
        """Return whether the innermost is called by another one, and has no cache of its own."""
        if len(self.functions) < 2 or not all(_is_ours(one) for one, _ in self.functions):
            return False
        return isinstance(self.functions[-1][0]._cache, NullCache)


def _is_ours(dispatcher: Any) -> bool:
    """Return whether a function is one of Longreach, or of numba below one of these."""
    return str(dispatcher.py_func.__module__).startswith(('longreach_', 'numba.'))


_compiling = _Compiling()


class _Library(JITCodeLibrary):
    """The code of a function; that of an inner one can only be linked into others."""

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self.is_inner = _compiling.is_inner()

    def _set_compiled_object(self, value: bytes) -> None:
        self.is_inner = False  # read from the cache, with its machine code
        super()._set_compiled_object(value)

    def _optimize_final_module(self) -> None:
        if not self.is_inner:
            super()._optimize_final_module()
            return
        # What is small is inlined; without this the excavator on terrain is half as fast.
        passes, builder = self._codegen._module_pass_manager(
            loop_vectorize=False, slp_vectorize=False, opt=1, cost='cheap'
        )
        passes.run(self._final_module, builder)

    def _finalize_final_module(self) -> None:
        if not self.is_inner:
            super()._finalize_final_module()
            return
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


class _Again:
    """What Python calls in place of an inner function: it is compiled again, in full."""

    def __init__(self, dispatcher: Any, types: tuple[Any, ...]) -> None:
        self._dispatcher, self._types = dispatcher, types

    def __call__(self, *values: Any, **named: Any) -> Any:
        with global_compiler_lock:
            self._dispatcher.overloads.pop(self._types, None)
            return self._dispatcher(*values, **named)


_get_executable, _add_overload = CPUContext.get_executable, Dispatcher.add_overload


def _entry_point(context: Any, library: Any, fndesc: Any, env: Any) -> Any:
    if getattr(library, 'is_inner', False):
        return _Again(*_compiling.functions[-1])
    return _get_executable(context, library, fndesc, env)


def _keep(dispatcher: Any, result: Any) -> None:
    if isinstance(result.entry_point, _Again):
        dispatcher.overloads[tuple(result.signature.args)] = result
    else:
        _add_overload(dispatcher, result)


def _without_wrappers(_: Any, flags: Any) -> Any:
    flags.no_cpython_wrapper = flags.no_cfunc_wrapper = _compiling.is_inner()
    return flags


def _numbers() -> itertools.count[int]:
    return itertools.count(int.from_bytes(os.urandom(7)))


# Also of functions that Python calls first: they are linked into kernels as they are.
FunctionIdentity._unique_ids = _numbers()

_REPLACED = (
    (JITCPUCodegen, '_library_class', _Library),
    (CPUContext, 'get_executable', _entry_point),
    (Dispatcher, 'add_overload', _keep),
    (_FunctionCompiler, '_customize_flags', _without_wrappers),
)


@contextlib.contextmanager
def only_linked() -> Iterator[None]:
    """Emit no machine code of functions that are compiled because another one calls them."""
    with global_compiler_lock, contextlib.ExitStack() as restored:
        if not _compiling.functions:
            restored.enter_context(event.install_listener('numba:compile', _compiling))
            unique = (FunctionIdentity, '_unique_ids', _numbers())
            for owner, name, value in (*_REPLACED, unique):
                restored.callback(setattr, owner, name, getattr(owner, name))
                setattr(owner, name, value)
        yield
