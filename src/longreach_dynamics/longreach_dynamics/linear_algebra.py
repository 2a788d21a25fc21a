"""Small dense systems inside compiled code: no allocation, no call into LAPACK."""

from __future__ import annotations

import math

from numba import njit


@njit
def assign(target, values):  # type: ignore[no-untyped-def]
    """Fill an array (n,) with the values of another."""
    # numba compiles a check of shapes with its message for an assignment to a slice.
    for index in range(values.size):
        target[index] = values[index]


@njit
def cholesky(matrix):  # type: ignore[no-untyped-def]
    """
    Overwrite the lower triangle of a symmetric matrix (n, n) with its Cholesky factor.

    Only the lower triangle is read; the diagonal of the factor is stored as its inverse. What lies
    above the diagonal stays. Returns False when the matrix is not positive definite.
    """
    n = matrix.shape[0]
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
    n = vector.size
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


@njit(inline='always')
def ldl_of(matrix, n):  # type: ignore[no-untyped-def]
    """Overwrite the lower triangle (n, n) with L D, 1/D on the diagonal; False: not definite."""
    # Without square roots, for a few rows faster than :func:`cholesky`; loops of constant n are
    # unrolled.
    for j in range(n):
        total = matrix[j, j]
        for k in range(j):
            total -= matrix[j, k] * matrix[j, k] * matrix[k, k]
        # Written so that NaN fails, too.
        if not total > 0.0:
            return False
        matrix[j, j] = 1.0 / total
        for i in range(j + 1, n):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k] * matrix[k, k]
            matrix[i, j] = total
    return True


@njit(inline='always')
def ldl_solve_of(factor, vector, n):  # type: ignore[no-untyped-def]
    """Overwrite a vector (n,) with the solution of the system that :func:`ldl_of` factored."""
    for i in range(n):
        total = vector[i]
        for k in range(i):
            total -= factor[i, k] * vector[k]
        vector[i] = total * factor[i, i]
    for i in range(n - 1, -1, -1):
        total = 0.0
        for k in range(i + 1, n):
            total += factor[k, i] * vector[k]
        vector[i] -= total * factor[i, i]


@njit
def lu(matrix, pivots):  # type: ignore[no-untyped-def]
    """Overwrite a matrix (n, n) with its LU factors, 1/U on the diagonal; False: singular."""
    # ``pivots`` (n,), integers: the row with which each was exchanged.
    n = matrix.shape[0]
    for j in range(n):
        pivot = j
        for i in range(j + 1, n):
            if abs(matrix[i, j]) > abs(matrix[pivot, j]):
                pivot = i
        pivots[j] = pivot
        if not 0.0 < abs(matrix[pivot, j]) < math.inf:
            return False
        if pivot != j:
            for k in range(n):
                matrix[j, k], matrix[pivot, k] = matrix[pivot, k], matrix[j, k]
        inverse = 1.0 / matrix[j, j]
        matrix[j, j] = inverse
        for i in range(j + 1, n):
            factor = matrix[i, j] * inverse
            matrix[i, j] = factor
            if factor != 0.0:
                for k in range(j + 1, n):
                    matrix[i, k] -= factor * matrix[j, k]
    return True


@njit
def lu_solve(factors, pivots, vector):  # type: ignore[no-untyped-def]
    """Overwrite a vector (n,) with the solution of the system that :func:`lu` factored."""
    n = vector.size
    for j in range(n):
        pivot = pivots[j]
        vector[j], vector[pivot] = vector[pivot], vector[j]
    for i in range(1, n):
        total = vector[i]
        for k in range(i):
            total -= factors[i, k] * vector[k]
        vector[i] = total
    for i in range(n - 1, -1, -1):
        total = vector[i]
        for k in range(i + 1, n):
            total -= factors[i, k] * vector[k]
        vector[i] = total * factors[i, i]
