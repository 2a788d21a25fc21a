"""Approximations inside the kernels of the fit, against the exact functions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from longreach_markers.marker import pixel_model
from longreach_markers.marker.products import BLOCK, add_products, add_row
from longreach_markers.marker.symmetric import SECTORS, sector_of


def test_the_blurred_step_is_the_normal_distribution():
    for z in np.linspace(-4.89, 4.89, 997).tolist():
        phi, density = pixel_model._blurred_step.py_func(z, 0.0)
        assert phi == pytest.approx(0.5 * math.erfc(-z / math.sqrt(2.0)), abs=1e-7)
        exact = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
        assert density == pytest.approx(exact, abs=1e-8)
    # Beyond, an edge has no influence at all, so that its derivatives can be left out.
    assert pixel_model._blurred_step.py_func(4.9, 0.02) == (1.0, 0.0)
    assert pixel_model._blurred_step.py_func(-4.9, 0.02) == (0.0, 0.0)


def test_the_blurred_step_has_the_derivative_that_it_states():
    step = 1e-3
    for z in np.linspace(-4.0, 4.0, 161).tolist():
        after, before = (pixel_model._blurred_step.py_func(z + d, 0.03)[0] for d in (step, -step))
        _, slope = pixel_model._blurred_step.py_func(z, 0.03)
        assert slope == pytest.approx((after - before) / (2.0 * step), abs=1e-5)


def test_sectors_are_those_of_the_angle():
    rng = np.random.default_rng(1)
    for angle in rng.uniform(-math.pi, math.pi, 3000).tolist():
        size = float(rng.uniform(0.1, 9.0))
        place = (angle / (2.0 * math.pi) + 0.5) * SECTORS
        # The approximation may differ at the borders.
        if 1e-3 < place % 1.0 < 1.0 - 1e-3:
            found = sector_of.py_func(size * math.cos(angle), size * math.sin(angle))
            assert found == int(place)
    for x, y in ((0.0, 0.0), (1.0, 0.0), (-1.0, 0.0), (-1.0, -0.0), (0.0, 1.0), (0.0, -1.0)):
        assert 0 <= sector_of.py_func(x, y) < SECTORS


def test_products_of_rows():
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(21, BLOCK))
    wanted = rows @ rows.T
    matrix, vector = np.zeros((21, 20)), np.zeros(20)
    add_products(rows, 3, 18, matrix)
    add_row(rows[20], rows, 3, 18, vector)
    below = np.tril(np.ones((15, 15), bool))
    assert np.allclose(matrix[3:18, 3:18][below], wanted[3:18, 3:18][below], rtol=1e-12)
    assert np.allclose(vector[3:18], wanted[20, 3:18], rtol=1e-12)
    matrix[3:18, 3:18] = vector[3:18] = 0.0
    assert not matrix.any()
    assert not vector.any()
