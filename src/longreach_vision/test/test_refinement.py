"""
The maximum-likelihood fit: its derivatives, what it finds, what it says about its error.

Images are drawn here: circles seen through a homography on 8 x 8 cells a pixel, then blurred.
"""

from __future__ import annotations

import math

import cv2
import numpy as np
import pytest

from longreach_vision.cameras import Camera
from longreach_vision.ellipses import SECTORS
from longreach_vision.refinement import PERSPECTIVE_PRIOR, Fit, _accumulate, fit_marker, image_of

SIZE, CELLS = 72, 8
A = np.array([[17.0, 2.0], [2.0, 12.0]])
CENTER = np.array([36.3, 35.2])
UNKNOWN = np.zeros(3)
EVERY = np.ones(2 * SECTORS, bool)
V, U = np.mgrid[0:SIZE, 0:SIZE].astype(float)
INSIDE, RHO, C, SHAPE, BLUR, BAND, OUTSIDE, H = 0, 3, 4, 6, 9, 12, 15, 18
COUNT = 20


def draw(
    center=CENTER,
    shape=A,
    h=(0.0, 0.0),
    inner=0.5,
    blur=0.85,
    levels=(190.0, 50.0, 200.0),
    camera=None,
) -> np.ndarray:
    """The exact image of a marker: its levels are those inside, of the band and outside."""
    at = (np.arange(SIZE * CELLS) + 0.5) / CELLS - 0.5
    u, v = np.meshgrid(at, at)
    pixels = np.stack([u, v], axis=-1)
    if camera is not None:
        pixels = camera.undistort(pixels) * [camera.fx, camera.fy] + [camera.cx, camera.cy]
    y = (pixels - center) @ np.linalg.inv(shape)
    plane = y / (1.0 - y @ np.array(h))[..., None]
    r = np.hypot(plane[..., 0], plane[..., 1])
    slope = np.hypot(*np.gradient(r)) + 1e-9
    # The share of a cell that lies within a circle: that of a straight edge.
    outer, hole = (np.clip((radius - r) / slope + 0.5, 0.0, 1.0) for radius in (1.0, inner))
    if inner == 0.0:
        hole[:] = 0.0
    grey = levels[2] + (levels[1] - levels[2]) * outer + (levels[0] - levels[1]) * hole
    # The pixel's box is a part of the blur.
    grey = cv2.GaussianBlur(grey, (0, 0), blur * CELLS, borderType=cv2.BORDER_REPLICATE)
    return np.asarray(grey.reshape(SIZE, CELLS, SIZE, CELLS).mean(axis=(1, 3)))


def taken(exact: np.ndarray, noise=0.0, seed=0) -> np.ndarray:
    grey = exact + noise * np.random.default_rng(seed).normal(size=exact.shape)
    return np.clip(np.rint(grey), 0, 255).astype(np.uint8)


def fit(
    image: np.ndarray,
    *,
    camera: Camera | None = None,
    normal=UNKNOWN,
    outline=UNKNOWN,
    inner=0.5,
    off=(0.4, -0.3, 0.03),
    shape=A,
    center=CENTER,
    noise=2.0,
    seen=EVERY,
) -> Fit:
    """Fit with a start that is off: by pixels, and by a share of the size."""
    size = (1.0 + off[2]) * shape
    u, v = np.add(center, off[:2])
    start = np.array([u, v, size[0, 0], size[0, 1], size[1, 1], inner])
    packed = np.zeros(16) if camera is None else camera.packed
    normal, outline = np.asarray(normal, float), np.asarray(outline, float)
    return fit_marker(image, packed, normal, outline, start, seen, 1.0, noise)


# --- derivatives ----------------------------------------------------------------------------


def parameters(h=(0.0, 0.0), motion=0.0) -> np.ndarray:
    p = np.zeros(COUNT)
    p[INSIDE:RHO], p[RHO] = (190.0, 0.3, -0.2), 0.55
    p[C:SHAPE], p[SHAPE:BLUR] = CENTER, (17.0, 2.0, 12.0)
    p[BLUR:BAND] = 0.8 + motion, 0.3 * motion, 0.8 + 0.2 * motion
    p[BAND:OUTSIDE], p[OUTSIDE:H], p[H:] = (50.0, 0.1, 0.05), (200.0, 0.35, -0.15), h
    return p


class Model:
    """The compiled sum over pixels near the marker, at will with all sectors or none."""

    def __init__(self, *, disc: bool, known: bool, outline=UNKNOWN, noise=0.3) -> None:
        near = np.abs(np.hypot(U - CENTER[0], V - CENTER[1]) - 14.0) < 12.0
        self.samples = np.stack([U[near], V[near], np.zeros(near.sum())])
        self.sector = np.zeros(near.sum(), np.int64)
        self.disc, self.known, self.outline, self.noise = disc, known, np.array(outline), noise
        self.free = slice(4 if disc else 0, H if known else COUNT)

    def at(self, p, grey=None, *, active=True):
        """Cost, normal matrix with the gradient as its last row, and residuals."""
        samples = self.samples.copy()
        samples[2] = 0.0 if grey is None else grey
        normal, residuals = np.zeros((COUNT + 1, COUNT)), np.zeros(len(self.sector))
        sectors = np.full(2 * SECTORS, active)
        cost, used = _accumulate(
            p, self.known, self.outline, self.disc, samples, self.sector, sectors, normal,
            residuals, self.noise,
        )  # fmt: skip
        assert used == active * len(self.sector)
        return cost, normal, residuals

    def jacobian(self, p) -> np.ndarray:
        """Derivatives of all grey levels by central differences."""
        columns = []
        for k in range(COUNT):
            step = np.zeros(COUNT)
            step[k] = 1e-5 if k >= H else 1e-4
            columns.append((self.at(p - step)[2] - self.at(p + step)[2]) / (2.0 * step[k]))
        return np.array(columns).T


CASES = [
    (disc, known, h, motion)
    for disc in (False, True)
    for known in (False, True)
    for h in ((0.0, 0.0), (0.006, -0.004))
    for motion in (0.0, 3.0)
]


@pytest.mark.parametrize(('disc', 'known', 'h', 'motion'), CASES)
def test_normal_matrix_and_gradient_are_those_of_the_model(disc, known, h, motion):
    model, p = Model(disc=disc, known=known), parameters(h, motion)
    J = model.jacobian(p)[:, model.free]
    # Priors do not depend on the pixels.
    normal = (model.at(p)[1] - model.at(p, active=False)[1])[:COUNT]
    normal = (np.tril(normal) + np.tril(normal, -1).T)[model.free, model.free]
    size = np.linalg.norm(J, axis=0)
    # What sigma and the curvature change by with the direction of the edge is left out.
    allowed = 0.04 if motion == 0.0 else 0.15
    np.testing.assert_allclose(normal / np.outer(size, size), J.T @ J / np.outer(size, size),
                               atol=allowed)  # fmt: skip
    other = np.random.default_rng(0).normal(size=len(J))
    gradient = (model.at(p, other)[1] - model.at(p)[1])[COUNT, model.free]
    np.testing.assert_allclose(gradient / size, J.T @ other / size, atol=2.0 * allowed)


def test_a_disc_has_no_inner_edge_and_a_known_normal_no_perspective():
    p = parameters()
    normal = Model(disc=True, known=True).at(p)[1]
    assert not normal[:, :C].any()
    assert not normal[H:COUNT].any()
    # An outer edge alone: what is inside has the band's level.
    same = parameters()
    same[RHO], same[INSIDE:RHO] = 0.3, (0.0, 9.0, 9.0)
    np.testing.assert_array_equal(
        Model(disc=True, known=True).at(p)[2], Model(disc=True, known=True).at(same)[2]
    )


def test_residuals_are_what_the_exact_image_leaves():
    exact = draw(inner=0.55, blur=0.9)
    model, p = Model(disc=False, known=True), np.zeros(COUNT)
    p[INSIDE], p[RHO], p[C:SHAPE], p[SHAPE:BLUR] = 190.0, 0.55, CENTER, (17.0, 2.0, 12.0)
    # A pixel adds the variance of its box.
    p[BLUR], p[BLUR + 2] = (0.9**2 + 1.0 / 12.0,) * 2
    p[BAND], p[OUTSIDE] = 50.0, 200.0
    columns, rows = model.samples[:2].astype(int)
    residuals = model.at(p, exact[rows, columns])[2]
    assert np.max(np.abs(residuals)) < 1.0
    assert math.sqrt(np.mean(residuals**2)) < 0.2


@pytest.mark.parametrize(
    ('index', 'value'),
    [(INSIDE + 1, 3.0), (BAND + 2, -2.0), (OUTSIDE + 1, 4.0), (H, 0.01), (H + 1, -0.02)],
)
def test_priors_of_shading_and_perspective_have_their_gradient(index, value):
    model, p = Model(disc=False, known=False, noise=3.0), parameters()
    p[index] = value
    step = np.zeros(COUNT)
    step[index] = 1e-4 * abs(value)
    above, below = (model.at(p + one * step, active=False)[0] for one in (1.0, -1.0))
    gradient = model.at(p, active=False)[1][COUNT, index]
    assert gradient == pytest.approx(-0.5 * (above - below) / (2.0 * step[index]), rel=1e-6)


def test_prior_of_perspective_is_in_units_of_the_noise():
    p = parameters(h=(PERSPECTIVE_PRIOR, 0.0))
    with_h = Model(disc=True, known=False, noise=3.0).at(p, active=False)[0]
    without = Model(disc=True, known=False, noise=3.0).at(parameters(), active=False)[0]
    assert with_h - without == pytest.approx(9.0)
    assert Model(disc=True, known=True).at(p, active=False)[0] == pytest.approx(
        Model(disc=True, known=True).at(parameters(), active=False)[0]
    )


def test_prior_of_the_outline_is_blind_to_size_and_pulls_to_the_shape():
    p = parameters()
    same = Model(disc=True, known=True, outline=(1.7, 0.2, 1.2)).at(p, active=False)
    none = Model(disc=True, known=True).at(p, active=False)
    assert same[0] == pytest.approx(none[0])
    other = Model(disc=True, known=True, outline=(1.0, 0.0, 1.0)).at(p, active=False)
    pull = other[1][COUNT, SHAPE:BLUR]
    # Towards a circle of the same size in the mean.
    assert pull[0] < 0.0
    assert pull[1] < 0.0
    assert pull[2] > 0.0
    assert pull[0] == pytest.approx(-pull[2])
    size = math.sqrt(17.0 * 12.0 - 4.0)
    assert other[0] - none[0] == pytest.approx(
        (0.3 / 0.03 / size) ** 2 * (2.5**2 + 2.0**2 + 2.5**2)
    )
    assert other[1][SHAPE, SHAPE] > none[1][SHAPE, SHAPE]


# --- what is found --------------------------------------------------------------------------


@pytest.mark.parametrize('inner', [0.0, 0.35, 0.5, 0.75])
@pytest.mark.parametrize('blur', [0.7, 1.2])
def test_an_exact_image_gives_its_parameters_back(inner, blur):
    found = fit(taken(draw(inner=inner, blur=blur)), inner=inner)
    p = found.parameters
    assert found.converged
    assert found.sectors[:SECTORS].all()
    assert found.residual < 0.5
    # Rounding to whole grey levels is all the noise there is.
    np.testing.assert_allclose(p[C:SHAPE], CENTER, atol=0.004)
    np.testing.assert_allclose(p[SHAPE:BLUR], [17.0, 2.0, 12.0], atol=0.02)
    np.testing.assert_allclose(p[BLUR:BAND], (blur**2 + 1 / 12) * np.array([1, 0, 1]), atol=0.05)
    assert p[BAND] == pytest.approx(50.0, abs=0.7)
    assert p[OUTSIDE] == pytest.approx(200.0, abs=0.7)
    if inner > 0.0:
        assert p[RHO] == pytest.approx(inner, abs=2e-3)
        # The bend of a hole of 4 px is not small beside its blur.
        assert p[INSIDE] == pytest.approx(190.0, abs=1.5)


def test_bright_on_dark_and_levels_that_all_differ():
    found = fit(taken(draw(levels=(60.0, 180.0, 30.0))))
    np.testing.assert_allclose(found.parameters[C:SHAPE], CENTER, atol=0.004)
    np.testing.assert_allclose(
        found.parameters[[INSIDE, BAND, OUTSIDE]], [60.0, 180.0, 30.0], atol=1.0
    )


def test_shading_that_is_linear_moves_nothing():
    shade = 1.0 + 0.008 * (U - CENTER[0]) - 0.004 * (V - CENTER[1])
    found = fit(taken(draw(levels=(160.0, 40.0, 160.0)) * shade))
    np.testing.assert_allclose(found.parameters[C:SHAPE], CENTER, atol=0.01)
    np.testing.assert_allclose(
        found.parameters[OUTSIDE + 1 : H], [160.0 * 0.008, -160.0 * 0.004], rtol=0.1
    )


def test_motion_is_found_as_the_larger_blur():
    places = CENTER + np.outer(np.arange(-7.5, 8.0), [0.25, 0.0])
    exact = np.mean([draw(center=place) for place in places], axis=0)
    found = fit(taken(exact))
    p = found.parameters
    np.testing.assert_allclose(p[C:SHAPE], CENTER, atol=0.01)
    still = 0.85**2 + 1.0 / 12.0
    assert p[BLUR] - still == pytest.approx(4.0**2 / 12.0, rel=0.15)
    assert p[BLUR + 2] == pytest.approx(still, rel=0.15)


def camera_of(h, distortion=(0.0,) * 5) -> tuple[Camera, np.ndarray]:
    """A camera and the normal in its frame with which the circle has this perspective."""
    camera = Camera('c', SIZE, SIZE, 900.0, 900.0, 4.0, 6.0, 'plumb_bob', distortion)
    # h = -A n_uv / (n . (c, 1)) for the normal of pinhole pixels, n_px = K^-T n.
    n_uv = -np.linalg.solve(A, h)
    n_px = np.array([*n_uv, 1.0 - n_uv @ CENTER])
    return camera, camera.matrix.T @ n_px


@pytest.mark.parametrize('h', [(0.0, 0.0), (0.01, -0.006), (-0.015, 0.01)])
def test_with_the_normal_the_centre_is_that_of_the_circle(h):
    camera, normal = camera_of(h)
    found = fit(taken(draw(h=h)), camera=camera, normal=normal)
    np.testing.assert_allclose(found.parameters[C:SHAPE], CENTER, atol=0.004)
    np.testing.assert_allclose(found.parameters[H:], h, atol=1e-4)
    # Either sense of the normal.
    other = fit(taken(draw(h=h)), camera=camera, normal=-normal)
    np.testing.assert_allclose(other.parameters, found.parameters, atol=1e-9)


def test_without_the_normal_perspective_is_found_from_the_image():
    found = fit(taken(draw(h=(0.01, -0.006))))
    # The centre of the outer ellipse is what is known well: c - A h / (1 - h . h).
    h = found.parameters[H:]
    shape = np.array([found.parameters[[6, 7]], found.parameters[[7, 8]]])
    ellipse = found.parameters[C:SHAPE] - shape @ h / (1.0 - h @ h)
    true = np.array([0.01, -0.006])
    np.testing.assert_allclose(ellipse, CENTER - A @ true / (1.0 - true @ true), atol=0.02)


def test_distortion_is_undone_before_the_fit():
    camera, normal = camera_of((0.0, 0.0), (-9.0, 0.0, 0.05, -0.03, 0.0))
    bent = draw(camera=camera)
    found = fit(taken(bent), camera=camera, normal=normal)
    np.testing.assert_allclose(found.parameters[C:SHAPE], CENTER, atol=0.005)
    without = fit(taken(bent))
    assert np.linalg.norm(without.parameters[C:SHAPE] - CENTER) > 0.03


def test_the_outline_holds_the_shape_where_the_rim_is_hidden():
    camera, normal = camera_of((0.0, 0.0))
    exact = draw(inner=0.0)
    exact[:, 42:] = 120.0
    # The sector in the middle is that to the right.
    seen = EVERY.copy()
    seen[SECTORS // 2 - 11 : SECTORS // 2 + 11] = False
    outline = A[[0, 0, 1], [0, 1, 1]] / 17.4
    errors = []
    for given in (UNKNOWN, outline):
        found = [
            fit(taken(exact, 3.0, k), camera=camera, normal=normal, outline=given, inner=0.0,
                off=(0.2, 0.1, 0.01), noise=3.0, seen=seen)
            for k in range(20)
        ]  # fmt: skip
        good = [one.parameters[C:SHAPE] - CENTER for one in found if one.converged]
        assert len(good) > 15
        errors.append(float(np.sqrt(np.mean(np.square(good)))))
    assert errors[1] < errors[0]
    assert errors[1] < 0.1


def test_what_covers_the_rim_is_left_out():
    exact = draw()
    clean = fit(taken(exact, 2.0))
    covered = exact.copy()
    covered[20:27, :] = 120.0
    found = fit(taken(covered, 2.0))
    assert found.converged
    kept = np.mean(found.sectors[:SECTORS])
    assert 0.4 < kept < 0.9
    np.testing.assert_allclose(found.parameters[C:SHAPE], CENTER, atol=0.04)
    assert found.residual < 1.2 * clean.residual
    # Less is known then.
    assert np.trace(found.covariance[4:6, 4:6]) > np.trace(clean.covariance[4:6, 4:6])


def test_glare_is_left_out_and_exposure_is_not_glare():
    exact = draw()
    assert fit(taken(exact, 2.0)).burnt == 0.0
    glary = exact + 300.0 * np.exp(-(((U - 56.0) / 12.0) ** 4) - ((V - 30.0) / 12.0) ** 4)
    found = fit(taken(glary, 2.0))
    assert 0.1 < found.burnt < 0.6
    assert not found.sectors[:SECTORS][found.sectors[:SECTORS].size // 2]
    # A white ground that noise takes above the limit here and there.
    for level in (251.0, 254.0):
        exposed = fit(taken(draw(levels=(level, 5.0, level)), 3.0), noise=3.0)
        assert exposed.burnt == 0.0
        assert exposed.sectors[:SECTORS].mean() > 0.9
        np.testing.assert_allclose(exposed.parameters[C:SHAPE], CENTER, atol=0.02)


@pytest.mark.parametrize('known', [False, True])
@pytest.mark.parametrize('inner', [0.0, 0.5])
def test_covariance_is_that_of_many_images(known, inner):
    camera, normal = camera_of((0.004, -0.003)) if known else (None, UNKNOWN)
    exact = draw(inner=inner, h=(0.004, -0.003))
    # What the centre means without the normal is known by the prior only: the ellipse's centre.
    errors, squares = [], []
    for seed in range(120):
        found = fit(
            taken(exact, 4.0, seed), camera=camera, normal=normal, inner=inner, noise=4.0
        )  # fmt: skip
        p = found.parameters
        if known:
            place, covariance = p[C:SHAPE] - CENTER, found.covariance[4:6, 4:6]
        else:
            shape = np.array([p[[6, 7]], p[[7, 8]]])
            J = np.hstack([np.eye(2), -shape])
            chosen = [4, 5, 18, 19]
            place = p[C:SHAPE] - shape @ p[H:] - CENTER + A @ [0.004, -0.003]
            covariance = J @ found.covariance[np.ix_(chosen, chosen)] @ J.T
        errors.append(place)
        squares.append(place @ np.linalg.solve(covariance, place) / 2.0)
    # 240 numbers: the mean of their squares is good to 9 %.
    assert 0.7 < np.mean(squares) < 1.35
    assert np.linalg.norm(np.mean(errors, axis=0)) < 4.0 * np.std(errors) / math.sqrt(120)


def test_of_other_parameters_the_deviation_is_right_too():
    exact = draw()
    found = [fit(taken(exact, 4.0, seed), noise=4.0) for seed in range(80)]
    spread = np.std([one.parameters for one in found], axis=0)
    stated = np.sqrt(np.mean([np.diag(one.covariance) for one in found], axis=0))
    # Those whose prior says nothing.
    free = [RHO, *range(C, BAND), INSIDE, BAND, OUTSIDE]
    np.testing.assert_allclose(spread[free] / stated[free], 1.0, atol=0.35)


def test_the_same_image_gives_the_same_fit():
    image = taken(draw(), 4.0)
    first, second = fit(image), fit(image)
    np.testing.assert_array_equal(first.parameters, second.parameters)
    np.testing.assert_array_equal(first.covariance, second.covariance)


@pytest.mark.parametrize('off', [(1.5, 0.0, 0.0), (-1.0, 1.0, 0.06), (0.5, -0.5, -0.07)])
def test_the_start_does_not_matter(off):
    image = taken(draw(), 3.0)
    best = fit(image).parameters[C:SHAPE]
    np.testing.assert_allclose(fit(image, off=off).parameters[C:SHAPE], best, atol=0.01)


def test_nothing_converges_where_nothing_is():
    random = np.random.default_rng(9)
    for image in (
        np.full((SIZE, SIZE), 90, np.uint8),
        np.zeros((SIZE, SIZE), np.uint8),
        np.full((SIZE, SIZE), 255, np.uint8),
        random.integers(0, 256, (SIZE, SIZE), dtype=np.uint8),
        taken(40.0 + 2.0 * U),
    ):
        found = fit(image)
        contrast = abs(found.parameters[OUTSIDE] - found.parameters[BAND])
        assert not found.converged or contrast < 6.0 * max(found.residual, 0.3)


def test_without_any_sector_nothing_is_fitted():
    found = fit(taken(draw()), seen=np.zeros(2 * SECTORS, bool))
    assert not found.converged


def test_outside_of_the_image_nothing_is_fitted():
    found = fit(taken(draw()), center=np.array([500.0, -300.0]))
    assert not found.converged
    assert found.pixels == 0


def test_a_marker_at_the_border_is_fitted_by_what_is_there():
    image = np.ascontiguousarray(taken(draw(), 2.0)[:, 28:])
    found = fit(image, center=CENTER - [28.0, 0.0])
    assert found.converged
    np.testing.assert_allclose(found.parameters[C:SHAPE], CENTER - [28.0, 0.0], atol=0.05)
    assert 0.4 < np.mean(found.sectors[:SECTORS]) < 0.8


# --- pixels ---------------------------------------------------------------------------------


def test_image_of_a_pinhole_pixel_is_the_distorted_one():
    camera = Camera(
        'c', 800, 600, 500.0, 510.0, 400.0, 290.0, 'plumb_bob', (-0.2, 0.05, 1e-3, -2e-3, 0.01)
    )
    pinhole = np.array([620.0, 130.0])
    pixel, jacobian = image_of(camera.packed, pinhole)
    rays = (pinhole - [400.0, 290.0]) / [500.0, 510.0]
    np.testing.assert_allclose(pixel, camera.distort(rays), atol=1e-10)
    step = 1e-4 * np.eye(2)
    slopes = [
        (image_of(camera.packed, pinhole + one)[0] - image_of(camera.packed, pinhole - one)[0])
        / 2e-4
        for one in step
    ]
    np.testing.assert_allclose(jacobian, np.transpose(slopes), atol=1e-8)


def test_without_a_camera_pixels_stay():
    pixel, jacobian = image_of(np.zeros(16), np.array([12.5, -3.0]))
    np.testing.assert_array_equal(pixel, [12.5, -3.0])
    np.testing.assert_array_equal(jacobian, np.eye(2))
