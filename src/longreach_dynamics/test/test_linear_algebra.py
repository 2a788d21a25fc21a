"""Small dense systems against LAPACK."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import linalg

from longreach_dynamics.linear_algebra import (
    cholesky,
    cholesky_solve,
    ldl_of,
    ldl_solve_of,
    lu,
    lu_solve,
)


def definite(random: np.random.Generator, size: int, condition: float = 1e4) -> np.ndarray:
    """Return a random symmetric matrix with eigenvalues from 1 to a condition number."""
    vectors, _ = np.linalg.qr(random.normal(size=(size, size)))
    matrix = (vectors * np.logspace(0.0, math.log10(condition), size)) @ vectors.T
    return np.asarray((matrix + matrix.T) / 2.0)


@pytest.mark.parametrize('size', [1, 2, 3, 8, 12, 24])
def test_factor_is_lapacks(size: int) -> None:
    matrix = definite(np.random.default_rng(size), size)
    factor = matrix.copy()
    assert cholesky(factor)
    expected = np.linalg.cholesky(matrix)
    np.testing.assert_allclose(np.tril(factor, -1), np.tril(expected, -1), rtol=1e-9, atol=1e-9)
    # The diagonal is kept as what the solution multiplies by.
    np.testing.assert_allclose(np.diag(factor), 1.0 / np.diag(expected), rtol=1e-9)


@pytest.mark.parametrize('size', [1, 2, 3, 8, 12, 24])
def test_solution_is_lapacks(size: int) -> None:
    random = np.random.default_rng(100 + size)
    matrix, vector = definite(random, size), random.normal(size=size)
    expected = linalg.solve(matrix, vector, assume_a='pos')
    factor, solution = matrix.copy(), vector.copy()
    assert cholesky(factor)
    cholesky_solve(factor, solution)
    np.testing.assert_allclose(solution, expected, rtol=1e-9, atol=1e-9 * abs(expected).max())


@pytest.mark.parametrize('size', [1, 2, 3, 8, 12])
def test_solution_without_square_roots_is_lapacks(size: int) -> None:
    random = np.random.default_rng(300 + size)
    matrix, vector = definite(random, size), random.normal(size=size)
    expected = linalg.solve(matrix, vector, assume_a='pos')
    factor, solution = np.tril(matrix) + np.triu(np.full((size, size), math.nan), 1), vector.copy()
    assert ldl_of(factor, size)
    ldl_solve_of(factor, solution, size)
    np.testing.assert_allclose(solution, expected, rtol=1e-9, atol=1e-9 * abs(expected).max())
    spoilt = matrix.copy()
    spoilt[size // 2, size // 2] = math.nan
    assert not ldl_of(spoilt, size)
    assert not ldl_of(-matrix, size)


def test_solution_of_an_ill_conditioned_system_has_a_small_residual() -> None:
    random = np.random.default_rng(3)
    matrix, vector = definite(random, 12, 1e12), random.normal(size=12)
    factor, solution = matrix.copy(), vector.copy()
    assert cholesky(factor)
    cholesky_solve(factor, solution)
    size = np.abs(matrix).max() * np.abs(solution).max()
    assert np.abs(matrix @ solution - vector).max() < 1e-14 * size


def test_only_the_lower_triangle_is_read_and_the_upper_one_stays() -> None:
    matrix = definite(np.random.default_rng(5), 6)
    clean, spoilt = matrix.copy(), np.tril(matrix) + np.triu(np.full((6, 6), math.nan), 1)
    assert cholesky(clean)
    assert cholesky(spoilt)
    np.testing.assert_array_equal(np.tril(spoilt), np.tril(clean))
    assert np.all(np.isnan(spoilt[np.triu_indices(6, 1)]))
    np.testing.assert_array_equal(clean[np.triu_indices(6, 1)], matrix[np.triu_indices(6, 1)])
    solutions = np.ones(6), np.ones(6)
    cholesky_solve(clean, solutions[0])
    cholesky_solve(spoilt, solutions[1])
    np.testing.assert_array_equal(*solutions)


@pytest.mark.parametrize(('row', 'column'), [(0, 0), (2, 1), (4, 2), (4, 4)])
def test_indefinite_matrices_are_told(row: int, column: int) -> None:
    matrix = definite(np.random.default_rng(7), 5, 10.0)
    negative = matrix.copy()
    negative[row, row] = -1.0
    assert not cholesky(negative)
    matrix[row, column] = math.nan
    assert not cholesky(matrix)
    assert not cholesky(np.zeros((3, 3)))
    # Semidefinite: the last row repeats the first.
    assert not cholesky(np.array([[4.0, 2.0], [2.0, 1.0]]))


@pytest.mark.parametrize('size', [1, 2, 3, 5, 15])
def test_lu_solution_is_lapacks(size: int) -> None:
    random = np.random.default_rng(200 + size)
    matrix, vector = random.normal(size=(size, size)), random.normal(size=size)
    # Without an exchange of rows this one has no factors.
    matrix[0, 0] = 0.0 if size > 1 else 1.0
    factors, pivots, solution = matrix.copy(), np.empty(size, np.int64), vector.copy()
    assert lu(factors, pivots)
    lu_solve(factors, pivots, solution)
    expected = linalg.solve(matrix, vector)
    np.testing.assert_allclose(solution, expected, rtol=1e-10, atol=1e-10 * abs(expected).max())
    np.testing.assert_array_equal(pivots, linalg.lu_factor(matrix)[1])


def test_lu_tells_a_singular_matrix() -> None:
    pivots = np.empty(2, np.int64)
    assert not lu(np.zeros((2, 2)), pivots)
    assert not lu(np.array([[1.0, 2.0], [2.0, 4.0]]), pivots)
