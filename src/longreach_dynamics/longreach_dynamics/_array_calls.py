"""
Calls of kernels with arrays from Python in a tenth of a microsecond.

numba's own way into compiled code looks up the types of all arguments and wraps each array, a
tenth of a microsecond for each: more than the dynamics of a few links. A :class:`ArrayCall` hands
over the array objects as they are, and the kernel reads and checks their headers itself, with
:func:`vector` and :func:`matrix`. Arguments that these refuse with TypeError must be converted by
the caller.

The dynamics of three links take half a microsecond instead of one. The method depends on the
headers of CPython (with its lock) and of NumPy's C interface (struct PyArrayObject_fields in
ndarraytypes.h, stable between versions). The first call compares them with NumPy's own data of an
array; if they differ, kernels are called in numba's own way.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import carray, types  # type: ignore[attr-defined]
from numba.extending import (
    NativeValue,
    intrinsic,
    models,
    overload,
    register_jitable,
    register_model,
    unbox,
)

# Words of an array object; the number of axes and the flags have half of theirs.
_KIND, _DATA, _AXES, _SHAPE, _DTYPE, _FLAGS, _WORDS = 1, 2, 3, 4, 7, 8, 9
_HALF = 0xFFFFFFFF
_CONTIGUOUS_AND_ALIGNED = 0x101
# Word of a dtype that says float, of 8 bytes, in the machine's order.
_FORMAT = 3


class _ObjectPointer(types.CPointer):
    """The type of arguments that are Python's objects, seen as words."""


_OBJECT = _ObjectPointer(types.int64)
register_model(_ObjectPointer)(models.PointerModel)


@unbox(_ObjectPointer)  # type: ignore[untyped-decorator]
def _unbox(kind: Any, argument: Any, at: Any) -> Any:
    """Take the pointer itself; the caller holds a reference during the call."""
    return NativeValue(at.builder.bitcast(argument, at.context.get_value_type(kind)))


def _to_pointer(_: Any, address: Any) -> Any:
    """Return type and code of an address turned into a pointer."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(types.voidptr))

    return types.voidptr(address), generate


_pointer: Any = intrinsic(_to_pointer)


@register_jitable
def _array(x, like, axes):  # type: ignore[no-untyped-def]
    """Return data pointer and shape of an array; raise TypeError unless it is one of float."""
    words, good = carray(x, _WORDS), carray(like, _WORDS)
    # Before this is known to be an array, there is nothing else to read.
    if words[_KIND] != good[_KIND]:
        raise TypeError
    dtype = carray(_pointer(words[_DTYPE]), _FORMAT + 1, np.int64)
    if dtype[_FORMAT] != carray(_pointer(good[_DTYPE]), _FORMAT + 1, np.int64)[_FORMAT]:
        raise TypeError
    if words[_AXES] & _HALF != axes:
        raise TypeError
    if words[_FLAGS] & _CONTIGUOUS_AND_ALIGNED != _CONTIGUOUS_AND_ALIGNED:
        raise TypeError
    return _pointer(words[_DATA]), carray(_pointer(words[_SHAPE]), axes, np.int64)


def vector(x: Any, like: Any, n: int) -> Any:
    """Return the argument x as an array (n,); raise TypeError unless it is one like ``like``."""
    raise NotImplementedError('for compiled code')


@overload(vector, inline='always')
def _vector(x, like, n):  # type: ignore[no-untyped-def]  # noqa: ARG001
    """Return the code for a header, or for an array of numba's."""
    if not isinstance(x, types.Array):

        def of_header(x, like, n):  # type: ignore[no-untyped-def]
            data, shape = _array(x, like, 1)
            if shape[0] != n:
                raise TypeError
            return carray(data, n, np.float64)

        return of_header

    def of_array(x, like, n):  # type: ignore[no-untyped-def]  # noqa: ARG001
        if x.ndim != 1 or x.size != n:
            raise TypeError
        return x.reshape(n)

    return of_array


def matrix(x: Any, like: Any) -> Any:
    """Return the argument x as an array of two axes; raise TypeError unless it is one."""
    raise NotImplementedError('for compiled code')


@overload(matrix, inline='always')
def _matrix(x, like):  # type: ignore[no-untyped-def]  # noqa: ARG001
    """Return the code for a header, or for an array of numba's."""
    if not isinstance(x, types.Array):

        def of_header(x, like):  # type: ignore[no-untyped-def]
            data, shape = _array(x, like, 2)
            return carray(data, (shape[0], shape[1]), np.float64)

        return of_header

    def of_array(x, like):  # type: ignore[no-untyped-def]  # noqa: ARG001
        if x.ndim != 2:
            raise TypeError
        return x

    return of_array


class ArrayCall:
    """A kernel whose arguments are arrays, called with ``.call(...)``; the first call compiles."""

    __slots__ = ('_kernel', 'call')

    def __init__(self, kernel: Callable[..., None]) -> None:
        """Take a kernel that gives back nothing."""
        self._kernel: Any = kernel
        self.call: Callable[..., None] = self._first_call

    def _first_call(self, *arguments: Any) -> None:
        """Compile, and go on without this function from now on."""
        if _headers_are_known():
            signature = types.void(*[_OBJECT] * len(arguments))
            self._kernel.compile(signature)
            self.call = self._kernel.overloads[signature.args].entry_point
        else:
            self.call = self._by_numba
        self.call(*arguments)

    def _by_numba(self, *arguments: Any) -> None:
        """Call the kernel with arrays as numba takes them."""
        for array in arguments:
            usual = isinstance(array, np.ndarray) and array.dtype == np.float64
            if not (usual and array.flags.carray):
                raise TypeError
        self._kernel(*arguments)


def _headers_are_known() -> bool:
    """Return whether array objects have the expected layout."""
    array = np.empty((2, 3))[1:]
    words = (ctypes.c_int64 * _WORDS).from_address(id(array))
    form = int.from_bytes(ctypes.string_at(words[_DTYPE] + 8 * _FORMAT, 8), 'little')
    expected = int.from_bytes(b'fd=', 'little') | array.dtype.num << 32
    return (
        words[_KIND] == id(np.ndarray)
        and words[_DATA] == array.ctypes.data
        and words[_AXES] & _HALF == array.ndim
        and list((ctypes.c_int64 * 2).from_address(words[_SHAPE])) == [1, 3]
        and words[_DTYPE] == id(array.dtype)
        and form & ~(0xFF << 24) == expected
        and words[_FLAGS] & _HALF == array.flags.num
    )
