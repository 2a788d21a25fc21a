"""Small dense systems inside compiled code: no allocation, no call into LAPACK."""

from __future__ import annotations

import math

from numba import njit

__all__ = ['cholesky', 'cholesky_of', 'cholesky_solve', 'cholesky_solve_of']


@njit
def cholesky(matrix):  # type: ignore[no-untyped-def]
    """
    Overwrite the lower triangle of a symmetric matrix (n, n) with its Cholesky factor.

    Only the lower triangle is read; the diagonal of the factor is stored as its inverse. What lies
    above the diagonal stays. Returns False when the matrix is not positive definite.
    """
    return cholesky_of(matrix, matrix.shape[0])


@njit(inline='always')
def cholesky_of(matrix, n):  # type: ignore[no-untyped-def]
    """Do :func:`cholesky` where it is called: for a constant n its loops are unrolled."""
    for j in range(n):
        total = matrix[j, j]
        for k in range(j):
            total -= matrix[j, k] * matrix[j, k]
        # Written so that NaN fails, too.
        if not total > 0.0:
            return False
        inverse = 1.0 / math.sqrt(total)
        matrix[j, j] = inverse
        for i in range(j + 1, n):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = total * inverse
    return True


@njit
def cholesky_solve(factor, vector):  # type: ignore[no-untyped-def]
    """Overwrite a vector (n,) with the solution of the system that :func:`cholesky` factored."""
    cholesky_solve_of(factor, vector, vector.size)


@njit(inline='always')
def cholesky_solve_of(factor, vector, n):  # type: ignore[no-untyped-def]
    """Do :func:`cholesky_solve` where it is called: for a constant n its loops are unrolled."""
    for i in range(n):
        total = vector[i]
        for k in range(i):
            total -= factor[i, k] * vector[k]
        vector[i] = total * factor[i, i]
    for i in range(n - 1, -1, -1):
        total = vector[i]
        for k in range(i + 1, n):
            total -= factor[k, i] * vector[k]
        vector[i] = total * factor[i, i]
