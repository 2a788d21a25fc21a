"""Approximations inside the kernels of the fit, against the exact functions, and their bits."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest

from longreach_markers.marker.pixel_steps import blurred_step
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


def test_sectors_at_borders_are_sectors():
    for x, y in ((0.0, 0.0), (1.0, 0.0), (-1.0, 0.0), (-1.0, -0.0), (0.0, 1.0), (0.0, -1.0)):
        assert 0 <= sector_of.py_func(x, y) < SECTORS


PROGRAM = """
import numpy as np
from longreach_dynamics.kernels import kernel
from longreach_markers.marker.pixel_model import fill_normal_equations
from longreach_markers.marker.pixel_parameters import PARAMETERS
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
def test_the_cache_gives_the_bits_of_the_process_that_compiled(tmp_path, whole):
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
