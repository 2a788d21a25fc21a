"""Approximations inside the kernels of the fit, against the exact functions, and their bits."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from longreach_markers.marker.pixel_steps import blurred_step
from longreach_markers.marker.products import BLOCK, add_products, add_row, product
from longreach_markers.marker.symmetric import SECTORS, sector_of


def test_the_blurred_step_is_the_normal_distribution():
    for z in np.linspace(-4.89, 4.89, 997).tolist():
        phi, density = blurred_step.py_func(z, 0.0)
        assert phi == pytest.approx(0.5 * math.erfc(-z / math.sqrt(2.0)), abs=1e-7)
        exact = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
        assert density == pytest.approx(exact, abs=1e-8)
    # Beyond, an edge has no influence at all, so that its derivatives can be left out.
    assert blurred_step.py_func(4.9, 0.02) == (1.0, 0.0)
    assert blurred_step.py_func(-4.9, 0.02) == (0.0, 0.0)


def test_the_blurred_step_has_the_derivative_that_it_states():
    step = 1e-3
    for z in np.linspace(-4.0, 4.0, 161).tolist():
        after, before = (blurred_step.py_func(z + d, 0.03)[0] for d in (step, -step))
        _, slope = blurred_step.py_func(z, 0.03)
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
    add_row(rows, 20, rows, 3, 18, vector)
    below = np.tril(np.ones((15, 15), bool))
    assert np.allclose(matrix[3:18, 3:18][below], wanted[3:18, 3:18][below], rtol=1e-12)
    assert np.allclose(vector[3:18], wanted[20, 3:18], rtol=1e-12)
    assert product(rows, 4, rows, 7) == pytest.approx(wanted[4, 7], rel=1e-12)
    matrix[3:18, 3:18] = vector[3:18] = 0.0
    assert not matrix.any()
    assert not vector.any()


PROGRAM = """
import numpy as np
from longreach_dynamics.kernels import kernel
from longreach_markers.marker.pixel_model import fill_normal_equations
from longreach_markers.marker.pixel_parameters import (
    PARAMETERS,
)
from longreach_markers.marker.products import BLOCK, add_products

@kernel
def products(rows, normal):
    add_products(rows, 0, 21, normal)

@kernel
def equations(p, samples, sector, active, normal, joint, residuals):
    fill_normal_equations(
        p, np.zeros(0), False, np.zeros(3), False, samples, sector, active, normal, joint,
        residuals, 2.0, False,
    )

rng, normal = np.random.default_rng(1), np.zeros((21, 21))
products(rng.normal(size=(21, BLOCK)), normal)
if {whole}:
    p, normal, joint = np.zeros(PARAMETERS), np.zeros((21, PARAMETERS)), np.zeros((6, 27))
    p[[0, 3, 4, 5, 6, 7, 8, 9, 11, 12, 15]] = 190, 0.5, 30, 30, 17, 2, 12, 0.8, 0.9, 50, 200
    samples = rng.uniform([[10], [10], [40]], [[50], [50], [210]], (3, 1000))
    every = np.ones(96, bool)
    equations(p, samples, np.zeros(1000, int), every, normal, joint, np.zeros(1000))
print(normal.tobytes().hex())
"""


@pytest.mark.slow_after(1)
@pytest.mark.parametrize('whole', [False, True])
def test_the_cache_gives_the_bits_of_the_process_that_compiled(tmp_path: Path, whole: bool):
    # numba caches functions of files.
    program = tmp_path / 'program.py'
    program.write_text(PROGRAM.format(whole=whole))
    environment = os.environ | {'NUMBA_CACHE_DIR': str(tmp_path / 'cache')}
    first, again = (
        subprocess.run(
            [sys.executable, program], env=environment, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    )
    assert len(first) > 1000
    assert again == first
