"""Small dense systems against LAPACK."""

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


def definite(random, size, condition=1e4):
    """Return a random symmetric matrix with eigenvalues from 1 to a condition number."""
    vectors, _ = np.linalg.qr(random.normal(size=(size, size)))
    matrix = (vectors * np.logspace(0.0, math.log10(condition), size)) @ vectors.T
    return np.asarray((matrix + matrix.T) / 2.0)


@pytest.mark.parametrize('size', [1, 2, 3, 8, 12, 24])
def test_solution_is_lapacks(size):
    random = np.random.default_rng(100 + size)
    matrix, vector = definite(random, size), random.normal(size=size)
    expected = linalg.solve(matrix, vector, assume_a='pos')
    # Only the lower triangle is read, and the upper one stays.
    given = np.tril(matrix) + np.triu(np.full((size, size), math.nan), 1)
    roots, plain, solutions = given.copy(), given.copy(), np.array([vector, vector])
    assert cholesky(roots)
    cholesky_solve(roots, solutions[0])
    assert ldl_of(plain, size)
    ldl_solve_of(plain, solutions[1], size)
    scale = 1e-9 * np.abs(expected).max()
    np.testing.assert_allclose(solutions, [expected] * 2, rtol=1e-9, atol=scale)
    for factor in (roots, plain):
        assert np.all(np.isnan(factor[np.triu_indices(size, 1)]))


def test_solution_of_an_ill_conditioned_system_has_a_small_residual():
    random = np.random.default_rng(3)
    matrix, vector = definite(random, 12, 1e12), random.normal(size=12)
    factor, solution = matrix.copy(), vector.copy()
    assert cholesky(factor)
    cholesky_solve(factor, solution)
    size = np.abs(matrix).max() * np.abs(solution).max()
    assert np.abs(matrix @ solution - vector).max() < 1e-14 * size


@pytest.mark.parametrize(
    'factorise', [cholesky, lambda matrix: ldl_of(matrix, len(matrix))], ids=['roots', 'plain']
)
@pytest.mark.parametrize(('row', 'column'), [(0, 0), (2, 1), (4, 2), (4, 4)])
def test_indefinite_matrices_are_told(row, column, factorise):
    matrix = definite(np.random.default_rng(7), 5, 10.0)
    negative = matrix.copy()
    negative[row, row] = -1.0
    assert not factorise(negative)
    matrix[row, column] = math.nan
    assert not factorise(matrix)
    assert not factorise(np.zeros((3, 3)))
    # Semidefinite: the last row repeats the first.
    assert not factorise(np.array([[4.0, 2.0], [2.0, 1.0]]))


@pytest.mark.parametrize('size', [1, 2, 3, 5, 15])
def test_lu_solution_is_lapacks(size):
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


def test_lu_tells_a_singular_matrix():
    pivots = np.empty(2, np.int64)
    assert not lu(np.zeros((2, 2)), pivots)
    assert not lu(np.array([[1.0, 2.0], [2.0, 4.0]]), pivots)
