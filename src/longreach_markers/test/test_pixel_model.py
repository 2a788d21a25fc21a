"""What pixels near a marker's edges show: the derivatives, and what priors add."""

import itertools
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from exact_marker import MIDDLE, SIZE, A, U, V, draw, parameters, taken

from longreach_markers.camera.model import Camera
from longreach_markers.marker.pixel_model import fill_normal_equations
from longreach_markers.marker.pixel_parameters import (
    BAND,
    BEND,
    BLUR,
    CENTER,
    INSIDE,
    OUTSIDE,
    PARAMETERS,
    PERSPECTIVE,
    PERSPECTIVE_PRIOR,
    RHO,
    SHADOW,
    SHAPE,
)
from longreach_markers.marker.pixel_selection import (
    LIGHT_TERMS,
    add_light,
    divide_by_light,
    find_burnt,
    select_pixels,
)
from longreach_markers.marker.pixel_steps import blurred_step
from longreach_markers.marker.symmetric import SECTORS, sector_of

UNKNOWN, NONE = np.zeros(3), np.zeros(0)


def sloped(h=(0.0, 0.0), motion=0.0):
    blur = 0.8 + motion, 0.3 * motion, 0.8 + 0.2 * motion
    inside, band, outside = (190.0, 0.3, -0.2), (50.0, 0.1, 0.05), (200.0, 0.35, -0.15)
    return parameters(inside, 0.55, blur=blur, band=band, outside=outside, h=h)


class Model:
    """The compiled sum over pixels near the marker, at will with all sectors or none."""

    def __init__(self, *, disc, known, outline=UNKNOWN, noise=0.3, fixed=()):
        near = np.abs(np.hypot(U - MIDDLE[0], V - MIDDLE[1]) - 14.0) < 12.0
        self.samples = np.stack([U[near], V[near], np.zeros(near.sum())])
        self.sector = np.zeros(near.sum(), np.int64)
        self.disc, self.known, self.outline, self.noise = disc, known, np.array(outline), noise
        # What is not estimated of a shadow or bend, whose other parameters are the last ones.
        self.fixed = fixed

    def free(self, p):
        end = PERSPECTIVE if self.known else PARAMETERS
        # The last parameter of a shadow is the light inside of a ring.
        last = len(p) - (self.disc and len(p) == PARAMETERS + SHADOW)
        return np.r_[4 if self.disc else 0 : end, PARAMETERS:last]

    def at(self, p, grey=None, *, active=True, local=False):
        """Cost, normal matrix with the gradient as its last row, and residuals."""
        samples = self.samples.copy()
        samples[2] = 0.0 if grey is None else grey
        normal, residuals = np.zeros((PARAMETERS + 1, PARAMETERS)), np.zeros(len(self.sector))
        sectors = np.full(2 * SECTORS, active)
        joint = np.zeros((SHADOW, PARAMETERS + 1 + SHADOW))
        extension, count = np.append(p[PARAMETERS:], self.fixed), len(p) - PARAMETERS
        cost, used = fill_normal_equations(
            p[:PARAMETERS], extension, self.known, self.outline, self.disc, samples, self.sector,
            sectors, normal, joint, residuals, self.noise, local,
        )  # fmt: skip
        eliminated = 2 * np.unique(self.sector).size if local else 0
        assert used == active * (len(self.sector) - eliminated)
        whole = np.zeros((len(p) + 1, len(p)))
        whole[[*range(PARAMETERS), -1], :PARAMETERS] = normal
        whole[PARAMETERS:-1] = np.delete(joint[:count], PARAMETERS, axis=1)[:, : len(p)]
        whole[-1, PARAMETERS:] = joint[:count, PARAMETERS]
        return cost, whole, residuals

    def jacobian(self, p):
        columns = []
        for k in range(len(p)):
            step = np.zeros(len(p))
            step[k] = 1e-5 if k >= PERSPECTIVE else 1e-4
            columns.append((self.at(p - step)[2] - self.at(p + step)[2]) / (2.0 * step[k]))
        return np.array(columns).T


def judged(found, J, free):
    """Return a normal matrix and its approximation by derivatives, both scaled."""
    normal = (np.tril(found) + np.tril(found, -1).T)[np.ix_(free, free)]
    size = np.linalg.norm(J, axis=0)
    scale = np.outer(size, size)
    return normal / scale, J.T @ J / scale


@pytest.mark.parametrize('disc', [False, True])
@pytest.mark.parametrize(
    ('known', 'h', 'motion', 'extension', 'count'),
    [
        *itertools.product((False, True), ((0.0, 0.0), (0.006, -0.004)), (0.0, 3.0), [()], [0]),
        (True, (0.0, 0.0), 0.0, (0.7, 3.0, 0.6, 0.5, 0.55, 0.6, *MIDDLE), SHADOW),
        (True, (0.0, 0.0), 0.0, (0.15, 0.2, -0.1, -0.6, 0.8, 0.3), BEND),
    ],
)
def test_normal_matrix_and_gradient_are_those_of_the_model(
    disc, known, h, motion, extension, count
):
    model = Model(disc=disc, known=known, fixed=extension[count:])
    p = np.append(sloped(h, motion), extension[:count])
    free = model.free(p)
    J = model.jacobian(p)[:, free]
    # Priors do not depend on the pixels.
    normal = (model.at(p)[1] - model.at(p, active=False)[1])[:-1]
    # What sigma and the curvature change by with the direction of the edge is left out; so are the
    # correction where edges cross, widths, and what the shape changes in a bend.
    allowed = 0.15 if motion else 0.05 if count else 0.04
    np.testing.assert_allclose(*judged(normal, J, free), atol=allowed)
    other = np.random.default_rng(0).normal(size=len(J))
    gradient = (model.at(p, other)[1] - model.at(p)[1])[-1, free]
    size = np.linalg.norm(J, axis=0)
    most = (4.0 if count else 2.0) * allowed
    np.testing.assert_allclose(gradient / size, J.T @ other / size, atol=most)


def test_a_disc_has_no_inner_edge_and_a_known_normal_no_perspective():
    p = sloped()
    normal = Model(disc=True, known=True).at(p)[1]
    assert not normal[:, :CENTER].any()
    assert not normal[PERSPECTIVE:PARAMETERS].any()
    # An outer edge alone: what is inside has the band's level.
    same = sloped()
    same[RHO], same[INSIDE:RHO] = 0.3, (0.0, 9.0, 9.0)
    one, other = (Model(disc=True, known=True).at(own)[2] for own in (p, same))
    np.testing.assert_array_equal(one, other)


def test_residuals_are_what_the_exact_image_leaves():
    exact = draw(inner=0.55, blur=0.9)
    # A pixel adds the variance of its box.
    blur = 0.9**2 + 1.0 / 12.0
    model, p = Model(disc=False, known=True), parameters(rho=0.55, blur=(blur, 0.0, blur))
    columns, rows = model.samples[:2].astype(int)
    residuals = model.at(p, exact[rows, columns])[2]
    assert np.max(np.abs(residuals)) < 1.0
    assert math.sqrt(np.mean(residuals**2)) < 0.2


@pytest.mark.parametrize(
    ('index', 'value'),
    [(INSIDE + 1, 3.0), (BAND + 2, -2.0), (OUTSIDE + 1, 4.0), (PERSPECTIVE, 0.01)],
)
def test_priors_of_shading_and_perspective_have_their_gradient(index, value):
    model, p = Model(disc=False, known=False, noise=3.0), sloped()
    p[index] = value
    step = np.zeros(PARAMETERS)
    step[index] = 1e-4 * abs(value)
    above, below = (model.at(p + one * step, active=False)[0] for one in (1.0, -1.0))
    gradient = model.at(p, active=False)[1][PARAMETERS, index]
    assert gradient == pytest.approx(-0.5 * (above - below) / (2.0 * step[index]), rel=1e-6)


def test_prior_of_perspective_is_in_units_of_the_noise():
    p = sloped(h=(PERSPECTIVE_PRIOR, 0.0))
    with_h = Model(disc=True, known=False, noise=3.0).at(p, active=False)[0]
    without = Model(disc=True, known=False, noise=3.0).at(sloped(), active=False)[0]
    assert with_h - without == pytest.approx(9.0)
    known = Model(disc=True, known=True)
    one, other = (known.at(own, active=False)[0] for own in (p, sloped()))
    assert one == pytest.approx(other)


def test_prior_of_the_outline_is_blind_to_size_and_pulls_to_the_shape():
    p = sloped()
    same = Model(disc=True, known=True, outline=(1.7, 0.2, 1.2)).at(p, active=False)
    none = Model(disc=True, known=True).at(p, active=False)
    assert same[0] == pytest.approx(none[0])
    other = Model(disc=True, known=True, outline=(1.0, 0.0, 1.0)).at(p, active=False)
    pull = other[1][PARAMETERS, SHAPE:BLUR]
    # Towards a circle of the same size in the mean.
    assert (np.sign(pull) == (-1.0, -1.0, 1.0)).all()
    assert pull[0] == pytest.approx(-pull[2])
    size = math.sqrt(17.0 * 12.0 - 4.0)
    squares = (0.3 / 0.03 / size) ** 2 * (2.5**2 + 2.0**2 + 2.5**2)
    assert other[0] - none[0] == pytest.approx(squares)
    assert other[1][SHAPE, SHAPE] > none[1][SHAPE, SHAPE]


# --- light of each sector --------------------------------------------------------------------


def sectored():
    """A disc seen straight on, in twelve sectors; its parameters and the distance of pixels."""
    model, p = Model(disc=True, known=True), sloped()
    p[SHAPE:BLUR], p[BLUR:BAND] = (13.0, 0.0, 13.0), (0.8, 0.0, 0.8)
    du, dv = model.samples[0] - MIDDLE[0], model.samples[1] - MIDDLE[1]
    model.sector = (np.arctan2(dv, du) * 6.0 / np.pi + 6.0).astype(np.int64) % 12
    away = (np.hypot(du, dv) - 13.0) / math.sqrt(0.8) + 0.5 * math.sqrt(0.8) / 13.0
    return model, p, np.clip(away, -4.9, 4.9)


def test_a_level_and_a_slope_of_light_in_each_sector_change_nothing():
    model, p, away = sectored()
    rng = np.random.default_rng(4)
    grey = rng.normal(size=away.size)
    level, slope = rng.normal(size=(2, 2 * SECTORS)) * 20.0
    light = level[model.sector] + slope[model.sector] * away
    dark, lit = (model.at(p, one, local=True) for one in (grey, grey + light))
    assert lit[0] == pytest.approx(dark[0], rel=1e-9)
    np.testing.assert_allclose(lit[1], dark[1], atol=1e-7 * np.abs(dark[1]).max())
    np.testing.assert_allclose(lit[2], dark[2], atol=1e-8)
    # Light within a sector that is neither is seen.
    assert model.at(p, grey + 3.0 * away**2, local=True)[0] > 2.0 * dark[0]
    assert model.at(p, grey + light)[0] > 2.0 * dark[0]


def test_normal_matrix_without_light_is_that_of_what_light_does_not_explain():
    model, p, away = sectored()
    free = model.free(p)
    J = model.jacobian(p)[:, free]
    grey = np.random.default_rng(5).normal(size=away.size)
    kept, residuals = J.copy(), model.at(p, grey)[2]
    for part in np.unique(model.sector):
        rows = model.sector == part
        light = np.stack([np.ones(rows.sum()), away[rows]], axis=1)
        kept[rows] -= light @ np.linalg.lstsq(light, J[rows], rcond=None)[0]
        residuals[rows] -= light @ np.linalg.lstsq(light, residuals[rows], rcond=None)[0]
    priors = model.at(p, active=False)
    cost, found, left = model.at(p, grey, local=True)
    np.testing.assert_allclose(left, residuals, atol=1e-8)
    assert cost - priors[0] == pytest.approx(residuals @ residuals, rel=1e-9)
    np.testing.assert_allclose(*judged((found - priors[1])[:-1], kept, free), atol=0.04)
    size = np.linalg.norm(J, axis=0)
    gradient = (found - model.at(p, local=True)[1])[-1, free]
    np.testing.assert_allclose(gradient / size, kept.T @ grey / size, atol=0.08)


EVERY = np.ones(2 * SECTORS, bool)


def selected(image, p, *, packed=None, disc=False, reach=3.0):
    packed, (height, width) = np.zeros(16) if packed is None else packed, image.shape
    return select_pixels(image, packed, p, disc, reach, (0, width, 0, height))


# --- which pixels ---------------------------------------------------------------------------


def test_pixels_are_those_near_the_edges_in_the_sectors_of_the_nearer_one():
    image = np.random.default_rng(0).integers(0, 256, (SIZE, SIZE), dtype=np.uint8)
    samples, sector = selected(image, parameters())
    y = np.linalg.solve(A, samples[:2] - MIDDLE[:, None])
    r = np.hypot(*y)
    # Distances to edges, to first order.
    slope = np.linalg.norm(np.linalg.solve(A, y / r), axis=0)
    outer, inner = abs(r - 1.0) / slope, abs(r - 0.5) / slope
    assert np.minimum(outer, inner).max() <= 3.0
    np.testing.assert_array_equal(sector < SECTORS, outer <= inner)
    turn = (np.arctan2(y[1], y[0]) / (2.0 * np.pi) + 0.5) * SECTORS
    np.testing.assert_array_equal(sector % SECTORS, turn.astype(int) % SECTORS)
    columns, rows = samples[:2].astype(int)
    np.testing.assert_array_equal(samples[2], image[rows, columns])
    # All of them.
    whole = np.linalg.solve(A, np.stack([U.ravel(), V.ravel()]) - MIDDLE[:, None])
    size = np.hypot(*whole)
    scale = np.linalg.norm(np.linalg.solve(A, whole / size), axis=0)
    near = np.minimum(abs(size - 1.0), abs(size - 0.5)) <= 3.0 * scale
    assert samples.shape[1] == np.count_nonzero(near)
    # A disc has one edge.
    _, of_disc = selected(image, parameters(), disc=True)
    assert of_disc.max() < SECTORS
    assert 0 < of_disc.size < sector.size


@pytest.mark.parametrize(
    ('model', 'distortion'),
    [('plumb_bob', (-0.3, 0.1, 0.01, -0.01, 0.0)), ('equidistant', (0.02, 0.01, 0.0, 0.0))],
)
def test_pinhole_places_are_exact_in_a_large_window_of_a_bent_picture(model, distortion):
    camera = Camera('c', 500, 400, 1000.0, 1000.0, 240.0, 200.0, model, distortion)
    # Each pixel has a grey level of its own within its neighbourhood.
    rows, columns = np.mgrid[0:400, 0:500]
    image = (columns % 16 + 16 * (rows % 16)).astype(np.uint8)
    p = parameters(center=(230.0, 190.0), shape=(130.0, 0.0, 110.0))
    samples, _ = selected(image, p, packed=camera.packed, reach=30.0)
    assert samples.shape[1] > 20_000
    pixels = camera.distort((samples[:2].T - [240.0, 200.0]) / 1000.0)
    np.testing.assert_allclose(pixels, np.rint(pixels), atol=2e-3)
    u, v = np.rint(pixels).astype(int).T
    np.testing.assert_array_equal(samples[2], image[v, u])


# --- glare and light ------------------------------------------------------------------------


def test_sectors_that_glare_saturates_are_marked_with_their_neighbours():
    samples, sector = selected(taken(draw(), 0.0), parameters())
    burnt = np.ones(2 * SECTORS, bool)
    find_burnt(samples, sector, burnt)
    assert not burnt.any()
    samples[2, sector == 20] = 255.0
    find_burnt(samples, sector, burnt)
    np.testing.assert_array_equal(np.flatnonzero(burnt), [19, 20, 21])
    # Around the rim, but not from one edge to the other.
    samples[2, sector == 20] = 200.0
    samples[2, sector == 0] = 255.0
    find_burnt(samples, sector, burnt)
    np.testing.assert_array_equal(np.flatnonzero(burnt), [0, 1, SECTORS - 1])


def test_light_is_found_from_residuals_and_divided_out():
    samples, sector = selected(taken(draw(), 0.0), parameters())
    even = samples.copy()
    x, y = (samples[:2] - MIDDLE[:, None]) / 17.0
    given = np.array([0.0, 0.0, 0.0, 0.05, -0.02, 0.03, 0.01, -0.02, 0.015, 0.02])
    terms = np.stack([x**0, x, y, x * x, x * y, y * y, x**3, x * x * y, x * y * y, y**3])
    assert len(terms) == LIGHT_TERMS
    samples[2] *= 1.0 + given @ terms
    light = np.zeros(LIGHT_TERMS)
    residuals = samples[2] - even[2]
    gained = add_light(samples, sector, EVERY, residuals, (*MIDDLE, 17.0), light)
    np.testing.assert_allclose(light, given, atol=1e-9)
    # It explains all.
    assert gained == pytest.approx(np.mean(residuals**2))
    divide_by_light(samples, light, (*MIDDLE, 17.0))
    np.testing.assert_allclose(samples, even, rtol=1e-8)


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
