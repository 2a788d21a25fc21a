"""
Sums of products of rows of numbers, for normal matrices inside compiled code.

Rows have a fixed length, that of a block of pixels, so that they stay in the cache of the
processor. Their sums are written as those of vectors: where a compiler may reorder a plain sum to
make vectors of it, it does so in one way in a function of its own and in another way within its
caller, and a kernel loaded from the cache has other last bits than in the process that compiled
it. For the same reason nothing that is compiled into the fit has ``fastmath``.
"""

from __future__ import annotations

from typing import Any

from numba import njit, types
from numba.core.cgutils import ir  # type: ignore[attr-defined]
from numba.extending import intrinsic

# Pixels that are processed together, and numbers of a vector.
BLOCK, _LANES = 64, 4


def _products_of(count: int, others: int) -> Any:
    """Return a compiled function: products of ``count`` rows from i, with ``others`` from j."""

    @intrinsic
    def products(_, rows, i, beside, j):  # type: ignore[no-untyped-def]
        result = types.UniTuple(types.float64, count * others)
        vector = ir.VectorType(ir.DoubleType(), _LANES)

        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            def row_of(k):  # type: ignore[no-untyped-def]
                array = context.make_array(signature.args[k])(context, builder, arguments[k])
                row = arguments[k + 1]
                return builder.gep(array.data, [builder.mul(row, ir.Constant(row.type, BLOCK))])

            def vector_at(start, k):  # type: ignore[no-untyped-def]
                place = builder.gep(start, [ir.Constant(ir.IntType(64), k)])
                return builder.load(builder.bitcast(place, vector.as_pointer()), align=8)

            one, other = row_of(0), row_of(2)
            sums = [ir.Constant(vector, [0.0] * _LANES)] * (count * others)
            for k in range(0, BLOCK, _LANES):
                left = [vector_at(one, BLOCK * m + k) for m in range(count)]
                right = [vector_at(other, BLOCK * n + k) for n in range(others)]
                added = [builder.fmul(a, b) for a in left for b in right]
                sums = [builder.fadd(*two) for two in zip(sums, added, strict=True)]
            lanes = [ir.Constant(ir.IntType(32), k) for k in range(_LANES)]
            found = []
            for total in sums:
                a, b, c, d = (builder.extract_element(total, lane) for lane in lanes)
                found.append(builder.fadd(builder.fadd(a, b), builder.fadd(c, d)))
            return context.make_tuple(builder, result, found)

        return result(rows, i, beside, j), generate

    return products


# Nine products at a time fit into registers.
_nine, _three, _single = _products_of(3, 3), _products_of(1, 3), _products_of(1, 1)


@njit
def add_products(rows, first, last, matrix):  # type: ignore[no-untyped-def]
    """Add the products of rows (n, BLOCK) to the lower triangle of a matrix."""
    # From first up to last, a multiple of three rows; also above the diagonal within three.
    for i in range(first, last, 3):
        for j in range(first, i + 1, 3):
            sums = _nine(rows, i, rows, j)
            for m in range(3):
                for n in range(3):
                    matrix[i + m, j + n] += sums[3 * m + n]


@njit
def add_row(own, i, rows, first, last, vector):  # type: ignore[no-untyped-def]
    """Add the products of row i of ``own`` and others, as in :func:`add_products`, to a vector."""
    for j in range(first, last, 3):
        sums = _three(own, i, rows, j)
        for n in range(3):
            vector[j + n] += sums[n]


@njit
def product(one, i, other, j):  # type: ignore[no-untyped-def]
    """Return the product of row i of an array (n, BLOCK), and row j of another one."""
    return _single(one, i, other, j)[0]
