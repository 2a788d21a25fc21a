"""Noise and its correlation, as the residuals of a fit show them."""

import math

import cv2
import numpy as np
import pytest
from exact_marker import MIDDLE, SIZE, U, V, parameters

from longreach_dynamics.errors import InputError
from longreach_markers.camera.model import Camera
from longreach_markers.marker import pixel_parameters as at
from longreach_markers.marker.limits import LIMITS
from longreach_markers.marker.measurement import circle_shapes, eigenvalues, measure
from longreach_markers.marker.observation import Ellipse
from longreach_markers.marker.pixel_model import fill_slopes
from longreach_markers.marker.pixel_selection import shape_to_pinhole, to_pinhole
from longreach_markers.marker.residuals import (
    CORRELATIONS,
    bend_significance,
    correlation_factor,
    index_pixels,
    measure_noise,
    square_beside_light,
)
from longreach_markers.marker.symmetric import SECTORS

EVERY = np.ones(2 * SECTORS, bool)


class Ring:
    """Pixels near the edges of a ring of 24 px, and what residuals among them say."""

    def __init__(self):
        self.p = parameters(shape=(24.0, 3.0, 18.0))
        u, v = U.ravel(), V.ravel()
        samples = np.stack([u, v, 0.0 * u, u, v])
        slopes = np.empty((9, u.size))
        fill_slopes(self.p, False, samples, slopes)
        near = slopes[0] < 4.0
        self.samples, self.slopes = samples[:, near].copy(), slopes[:, near].copy()
        self.sector = np.zeros(near.sum(), np.int64)
        self.place = index_pixels(self.samples, (0, SIZE, 0, SIZE))

    def measured(self, residuals):
        correlation = np.zeros(CORRELATIONS)
        given = self.place, self.slopes, self.sector, EVERY
        noise = measure_noise(*given, residuals, correlation)
        return noise, correlation, correlation_factor(*given, correlation)

    def noise(self, rng, smoothing):
        image = rng.normal(size=(SIZE, SIZE))
        if smoothing > 0.0:
            image = cv2.GaussianBlur(image, (0, 0), smoothing)
            image *= 2.0 * math.sqrt(math.pi) * smoothing
        columns, rows = self.samples[3:].astype(int)
        return 3.0 * image[rows, columns]


@pytest.mark.slow
def test_independent_noise_has_no_correlation():
    ring, rng = Ring(), np.random.default_rng(0)
    for _ in range(20):
        noise, correlation, factor = ring.measured(ring.noise(rng, 0.0))
        assert (noise, correlation.any(), factor) == (0.0, False, 1.0)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize('smoothing', [0.7, 1.0])
def test_smoothed_noise_is_measured(smoothing):
    ring, rng = Ring(), np.random.default_rng(1)
    noises, correlations, factors = zip(
        *(ring.measured(ring.noise(rng, smoothing)) for _ in range(40)), strict=True
    )
    assert np.mean(noises) == pytest.approx(3.0, rel=0.1)
    near = np.mean(correlations, axis=0)[0, CORRELATIONS[1] // 2 + 1]
    assert near == pytest.approx(math.exp(-0.25 / smoothing**2), abs=0.1)
    # The scatter of the sum of residuals times derivatives, over that of independent noise.
    move = ring.slopes[2] + ring.slopes[3]
    J = move * ring.slopes[4]
    sums = [J @ ring.noise(rng, smoothing) for _ in range(400)]
    exact = np.var(sums) / (9.0 * J @ J)
    assert np.mean(factors) == pytest.approx(exact, rel=0.25)


def test_slow_changes_of_light_are_no_correlation():
    ring, rng = Ring(), np.random.default_rng(2)
    light = 4.0 * np.sin(0.15 * ring.samples[0]) * np.cos(0.1 * ring.samples[1])
    noise, _, factor = ring.measured(ring.noise(rng, 0.0) + light)
    assert noise == 0.0
    assert factor == 1.0


class Bend:
    """Derivatives of a ring's grey levels by what a flat marker has, and by heights of a bend."""

    def __init__(self):
        self.ring = Ring()
        _, _, outer, inner, mu, mv, eu, ev, flat = self.ring.slopes
        move, stretch = outer + inner, outer + 0.5 * inner
        self.move, self.mu, self.mv = move, mu, mv
        self.flat = np.stack(
            [move * mu, move * mv, stretch * mu * eu, stretch * (mu * ev + mv * eu),
             stretch * mv * ev, inner * flat], axis=1,
        )  # fmt: skip
        height = (outer + 0.25 * inner) * (0.6 * mu + 0.8 * mv)
        self.heights = np.stack(
            [height, height * (eu * eu - ev * ev), 2.0 * height * eu * ev], axis=1
        )

    def weighed(self, residuals):
        ring, doubt = self.ring, np.full((2, 2), np.nan)
        chi_square = bend_significance(
            ring.p, 0.6, 0.8, ring.slopes, ring.sector, EVERY, residuals, 9.0, doubt
        )
        return chi_square, doubt

    def fitted(self, residuals):
        """Return changes of a flat marker that explain residuals best, and what is left."""
        changes, *_ = np.linalg.lstsq(self.flat, residuals, rcond=None)
        return changes, residuals - self.flat @ changes


def test_a_bend_is_told_from_a_shift_and_another_shape():
    bend, rng = Bend(), np.random.default_rng(3)
    noise = bend.ring.noise(rng, 0.0)
    usual, _ = bend.weighed(noise)
    assert usual < 14.0
    shifted = bend.flat @ (0.2, -0.1, 0.1, 0.0, 0.1, 0.0)
    assert bend.weighed(noise + shifted)[0] == pytest.approx(usual, rel=1e-3, abs=1e-3)
    assert bend.weighed(noise + 0.1 * bend.heights[:, 1])[0] > 50.0


def test_doubt_of_a_flat_marker_is_small():
    bend, rng = Bend(), np.random.default_rng(5)
    variance = 9.0 * np.linalg.inv(bend.flat.T @ bend.flat)[:2, :2]
    growth = []
    for _ in range(400):
        chi_square, doubt = bend.weighed(bend.ring.noise(rng, 0.0))
        np.testing.assert_allclose(doubt, doubt.T, atol=1e-12)
        assert np.linalg.eigvalsh(doubt)[0] > -1e-12
        assert doubt.any() == (chi_square > 2.0)
        growth.append(math.sqrt(1.0 + np.trace(doubt) / np.trace(variance)))
    # Documented: some percent of the deviation.
    assert 1.01 < np.mean(growth) < 1.1


@pytest.mark.parametrize('size', [0.01, 0.02, 0.04, 0.1])
def test_doubt_is_the_mean_square_of_the_error_by_a_bend(size):
    bend, rng = Bend(), np.random.default_rng(6)
    variance = 9.0 * np.linalg.inv(bend.flat.T @ bend.flat)[:2, :2]
    squares, doubts = np.zeros((2, 2)), np.zeros((2, 2))
    for _ in range(200):
        turn = rng.uniform(0.0, 2.0 * math.pi)
        bow = size * rng.choice([-1.0, 1.0])
        rim = bow * np.array([1.0, math.cos(turn), math.sin(turn)])
        changes, left = bend.fitted(bend.heights @ rim + bend.ring.noise(rng, 0.0))
        _, doubt = bend.weighed(left)
        squares += np.outer(changes[:2], changes[:2])
        doubts += variance + doubt
    # The variance alone would be 4 to 270 times too small. Of a bend that hardly exceeds the noise
    # a part is missed, but not more than the factor of the variance and a z^2 of 2 allow.
    most = 1.3 if size > 0.03 else 2.0 * LIMITS.inflation
    assert 0.8 < np.trace(squares) / np.trace(doubts) < most


def test_light_of_sectors_is_told_from_noise():
    ring, rng = Ring(), np.random.default_rng(3)
    distance, level, eu, ev = *ring.slopes[:2], *ring.slopes[6:8]
    # Of the two edges, the nearer one.
    r = np.hypot(*np.linalg.solve([[24.0, 3.0], [3.0, 18.0]], ring.samples[:2] - MIDDLE[:, None]))
    is_inner = np.abs(r - 0.5) < np.abs(r - 1.0)
    part = ((np.arctan2(ev, eu) / (2.0 * np.pi) + 0.5) * SECTORS).astype(int) % SECTORS
    part = part + SECTORS * is_inner
    z = np.where(level == is_inner, distance, -distance)
    light = rng.normal(0.0, 10.0, (2, 2 * SECTORS))
    noise = rng.normal(0.0, 3.0, z.size)
    uneven = light[0, part] + light[1, part] * z

    def left(residuals, active=EVERY):
        return square_beside_light(ring.slopes, part, active, residuals)

    assert left(uneven) == pytest.approx(0.0, abs=1e-9)
    # The mean is that of what is left of the degrees of freedom.
    assert left(noise) == pytest.approx(9.0, rel=0.1)
    assert left(uneven + noise) == pytest.approx(left(noise))
    half = EVERY & (np.arange(2 * SECTORS) % 2 == 0)
    noise[part % 2 == 1] = 1e3
    assert left(noise, half) == pytest.approx(9.0, rel=0.15)


# --- centre, covariance and ellipse of a fit -----------------------------------------------------


CAMERA = Camera(
    'left', 640, 480, 700.0, 690.0, 322.0, 236.0, 'plumb_bob', (-0.2, 0.05, 1e-3, -5e-4)
)


def image_of(pinhole):
    """Return the image of a pinhole pixel, and its Jacobian by differences."""

    def image(pixel):
        return CAMERA.distort((pixel - (CAMERA.cx, CAMERA.cy)) / (CAMERA.fx, CAMERA.fy))

    steps = 1e-3 * np.eye(2)
    slopes = [(image(pinhole + step) - image(pinhole - step)) / 2e-3 for step in steps]
    return image(pinhole), np.transpose(slopes)


def a_fit():
    place = {'center': (470.3, 121.8), 'shape': (31.0, -6.0, 22.0), 'h': (0.03, -0.02)}
    grey = {'band': (50.0, 0.05, -0.02), 'outside': (180.0, 0.4, 0.3)}
    p = parameters(blur=(1.3, 0.2, 0.9), **place, **grey)
    root = np.random.default_rng(3).normal(size=(at.PARAMETERS, at.PARAMETERS)) * 1e-3
    return p, root @ root.T


# In pinhole pixels, as it is.
PLAINLY = np.zeros((2, 2)), np.zeros(16), LIMITS.replace(inflation=1.0, floor=0.0)


def matrix(triangle):
    return np.array([[triangle[0], triangle[1]], [triangle[1], triangle[2]]])


def center_of(p, known):
    shift = (
        0.5
        * matrix(p[at.BLUR : at.BAND])
        @ (p[at.OUTSIDE + 1 : at.OUTSIDE + 3] - p[at.BAND + 1 : at.BAND + 3])
    )
    center = p[at.CENTER : at.SHAPE] + shift / (p[at.OUTSIDE] - p[at.BAND])
    if not known:
        h = p[at.PERSPECTIVE :]
        center = center - matrix(p[at.SHAPE : at.BLUR]) @ h / (1.0 - h @ h)
    return np.asarray(center)


@pytest.mark.parametrize('known', [True, False])
def test_center_and_covariance_of_a_fit(known):
    p, covariance = a_fit()
    if not known:
        # Of the size that its prior allows.
        p[at.PERSPECTIVE :] *= 0.1
    measured = measure(p, covariance, *PLAINLY, known=known)
    assert measured.center == pytest.approx(center_of(p, known), abs=1e-12)
    steps = 1e-5 * np.eye(at.PARAMETERS)
    ends = [center_of(p + step, known) - center_of(p - step, known) for step in steps]
    jacobian = np.transpose(ends) / 2e-5
    half = center_of(p, True) - p[at.CENTER : at.SHAPE]
    # Without the parts of second order: shape, blur and the step of the grey level.
    first = [at.CENTER, at.CENTER + 1, at.BAND + 1, at.BAND + 2, at.OUTSIDE + 1, at.OUTSIDE + 2]
    first += [] if known else [at.PERSPECTIVE, at.PERSPECTIVE + 1]
    wanted = jacobian[:, first] @ covariance[np.ix_(first, first)] @ jacobian[:, first].T
    # The perspective's second order is left out, too.
    wanted += np.outer(half, half)
    assert measured.covariance == pytest.approx(wanted, rel=1e-6 if known else 1e-3)


def test_the_outer_ellipse_passes_through_the_image_of_the_circle():
    p, covariance = a_fit()
    measured = measure(p, covariance, *PLAINLY, known=True)
    shift = measured.center - p[at.CENTER : at.SHAPE]
    angles = np.linspace(0.0, 2.0 * math.pi, 50)
    e = np.stack([np.cos(angles), np.sin(angles)])
    points = matrix(p[at.SHAPE : at.BLUR]) @ e / (1.0 + p[at.PERSPECTIVE :] @ e)
    points += (p[at.CENTER : at.SHAPE] + shift)[:, None]
    back = np.linalg.solve(matrix(measured.outer), points - measured.outer_center[:, None])
    assert np.linalg.norm(back, axis=0) == pytest.approx(1.0, abs=1e-12)
    ellipse = measured.ellipse
    along = np.array([math.cos(ellipse.angle), math.sin(ellipse.angle)])
    assert matrix(measured.outer) @ along == pytest.approx(ellipse.axes[0] * along)
    assert ellipse.axes == pytest.approx(eigenvalues(*measured.outer)[::-1])


def test_a_measurement_in_the_image():
    p, covariance = a_fit()
    given = measure(p, covariance, *PLAINLY, known=True)
    doubt, limits = (
        np.array([[2e-4, -1e-4], [-1e-4, 3e-4]]),
        LIMITS.replace(inflation=1.2, floor=0.01),
    )
    found = measure(p, covariance, doubt, CAMERA.packed, limits, known=True)
    center, jacobian = image_of(given.center)
    outer_center, _ = image_of(given.outer_center)
    assert found.center == pytest.approx(center, abs=1e-12)
    assert found.outer_center == pytest.approx(outer_center, abs=1e-12)
    wanted = 1.2 * jacobian @ (given.covariance + doubt) @ jacobian.T + 1e-4 * np.eye(2)
    assert found.covariance == pytest.approx(wanted, rel=1e-6)
    assert matrix(found.spread) == pytest.approx(
        jacobian @ matrix(given.spread) @ jacobian.T, rel=1e-6
    )
    stretched = jacobian @ matrix(given.outer)
    assert matrix(found.outer) @ matrix(found.outer) == pytest.approx(stretched @ stretched.T)
    np.testing.assert_allclose(to_pinhole(CAMERA.packed, *center), given.center, atol=1e-8)
    # An ellipse is undistorted as its points are: A A^T, whatever turns the unit circle.
    back = jacobian @ matrix(shape_to_pinhole(CAMERA.packed, *center, 9.0, 1.0, 7.0))
    there = matrix((9.0, 1.0, 7.0))
    np.testing.assert_allclose(back @ back.T, there @ there.T, rtol=1e-4)


def test_shapes_of_a_circle_are_those_of_its_points():
    normal = np.array([0.3, -0.5, -1.0])
    normal /= np.linalg.norm(normal)
    x, y = 0.2, -0.15
    _, _, axes = np.linalg.svd(normal[None, :])
    angles = np.linspace(0.0, 2.0 * math.pi, 40, endpoint=False)
    circle = (
        np.array([x, y, 1.0]) + 1e-5 * np.stack([np.cos(angles), np.sin(angles)], 1) @ axes[1:]
    )
    pinhole = circle[:, :2] / circle[:, 2:] * (CAMERA.fx, CAMERA.fy)
    image = CAMERA.project(circle)
    for shape, points in zip(
        circle_shapes(CAMERA.packed, normal, x, y), (pinhole, image), strict=True
    ):
        away = points - points.mean(axis=0)
        size = np.linalg.norm(np.linalg.solve(matrix(shape), away.T), axis=0)
        assert np.ptp(size) / size.mean() < 1e-3
        assert eigenvalues(*shape)[1] == pytest.approx(1.0)


def test_the_longer_axis_of_an_ellipse_is_the_first():
    angles = np.linspace(0.0, 2.0 * math.pi, 9)[:-1]
    ellipse, turned = (
        Ellipse((5.0, -3.0), axes, angle)
        for axes, angle in (((2.0, 1.0), 0.7), ((1.0, 2.0), 0.7 - 2.5 * math.pi))
    )
    assert turned.axes.tolist() == [2.0, 1.0]
    assert turned.angle == pytest.approx(0.7)
    along, across = np.array([[0.7, 0.7 + math.pi / 2.0]]).T
    points = ellipse.points(angles) - ellipse.center
    assert points[0] == pytest.approx(2.0 * np.concatenate([np.cos(along), np.sin(along)]))
    assert points[2] == pytest.approx(np.concatenate([np.cos(across), np.sin(across)]))
    assert Ellipse((0.0, 0.0), (1.0, 1.0), 0.4).angle == 0.0


@pytest.mark.parametrize(
    ('center', 'axes', 'angle'),
    [
        ((0.0, math.nan), (2.0, 1.0), 0.0),
        ((0.0, 0.0), (2.0, 1.0), math.nan),
        ((0.0, 0.0), (2.0, 0.0), 0.0),
        ((0.0, 0.0, 0.0), (2.0, 1.0), 0.0),
    ],
)
def test_impossible_ellipses_are_refused(center, axes, angle):
    with pytest.raises(InputError, match=r'ellipse .* allowed: a centre of two finite numbers'):
        Ellipse(center, axes, angle)
