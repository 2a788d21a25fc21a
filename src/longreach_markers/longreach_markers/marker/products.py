"""
Sums of products of rows of numbers, for normal matrices inside compiled code.

Rows have a fixed length, that of a block of pixels, so that the loops over them are vectorised and
the rows stay in the cache of the processor.
"""

from __future__ import annotations

from numba import njit

# Pixels that are processed together.
BLOCK = 64


@njit(fastmath={'contract', 'reassoc', 'arcp', 'nsz'}, error_model='numpy')
def add_products(rows, first, last, matrix):  # type: ignore[no-untyped-def]
    """
    Add the products of rows (n, BLOCK) to the lower triangle of a matrix.

    From ``first`` up to ``last``, a multiple of three rows; also above the diagonal within three.
    """
    # Nine products at a time, which fit into registers.
    for i in range(first, last, 3):
        for j in range(first, i + 1, 3):
            s00 = s01 = s02 = s10 = s11 = s12 = s20 = s21 = s22 = 0.0
            for k in range(BLOCK):
                a, b, c = rows[i, k], rows[i + 1, k], rows[i + 2, k]
                d, e, f = rows[j, k], rows[j + 1, k], rows[j + 2, k]
                s00 += a * d
                s01 += a * e
                s02 += a * f
                s10 += b * d
                s11 += b * e
                s12 += b * f
                s20 += c * d
                s21 += c * e
                s22 += c * f
            matrix[i, j] += s00
            matrix[i, j + 1] += s01
            matrix[i, j + 2] += s02
            matrix[i + 1, j] += s10
            matrix[i + 1, j + 1] += s11
            matrix[i + 1, j + 2] += s12
            matrix[i + 2, j] += s20
            matrix[i + 2, j + 1] += s21
            matrix[i + 2, j + 2] += s22


@njit(fastmath={'contract', 'reassoc', 'arcp', 'nsz'}, error_model='numpy')
def add_row(own, rows, first, last, vector):  # type: ignore[no-untyped-def]
    """Add the products of one row (BLOCK,) and others, as in :func:`add_products`, to a vector."""
    for j in range(first, last, 3):
        s0 = s1 = s2 = 0.0
        for k in range(BLOCK):
            s0 += own[k] * rows[j, k]
            s1 += own[k] * rows[j + 1, k]
            s2 += own[k] * rows[j + 2, k]
        vector[j] += s0
        vector[j + 1] += s1
        vector[j + 2] += s2


@njit(fastmath={'contract', 'reassoc', 'arcp', 'nsz'}, error_model='numpy')
def product(one, other):  # type: ignore[no-untyped-def]
    """Return the product of two rows (BLOCK,)."""
    total = 0.0
    for k in range(BLOCK):
        total += one[k] * other[k]
    return total
