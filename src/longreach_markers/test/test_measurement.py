"""Centre, covariance and ellipse of a fit, against points of the circle and general matrices."""

import math

import numpy as np
import pytest
from exact_marker import parameters

from longreach_dynamics.errors import InputError
from longreach_markers.camera.model import Camera
from longreach_markers.marker.limits import LIMITS
from longreach_markers.marker.measurement import circle_shapes, eigenvalues, measure
from longreach_markers.marker.observation import Ellipse
from longreach_markers.marker.pixel_parameters import (
    BAND,
    BLUR,
    CENTER,
    OUTSIDE,
    PARAMETERS,
    PERSPECTIVE,
    SHAPE,
)
from longreach_markers.marker.pixel_selection import shape_to_pinhole, to_pinhole

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
    root = np.random.default_rng(3).normal(size=(PARAMETERS, PARAMETERS)) * 1e-3
    return p, root @ root.T


# In pinhole pixels, as it is.
PLAINLY = np.zeros((2, 2)), np.zeros(16), LIMITS.replace(inflation=1.0, floor=0.0)


def matrix(triangle):
    return np.array([[triangle[0], triangle[1]], [triangle[1], triangle[2]]])


def center_of(p, known):
    shift = 0.5 * matrix(p[BLUR:BAND]) @ (p[OUTSIDE + 1 : OUTSIDE + 3] - p[BAND + 1 : BAND + 3])
    center = p[CENTER:SHAPE] + shift / (p[OUTSIDE] - p[BAND])
    if not known:
        h = p[PERSPECTIVE:]
        center = center - matrix(p[SHAPE:BLUR]) @ h / (1.0 - h @ h)
    return np.asarray(center)


@pytest.mark.parametrize('known', [True, False])
def test_center_and_covariance_of_a_fit(known):
    p, covariance = a_fit()
    if not known:
        # Of the size that its prior allows.
        p[PERSPECTIVE:] *= 0.1
    measured = measure(p, covariance, *PLAINLY, known=known)
    assert measured.center == pytest.approx(center_of(p, known), abs=1e-12)
    steps = 1e-5 * np.eye(PARAMETERS)
    ends = [center_of(p + step, known) - center_of(p - step, known) for step in steps]
    jacobian = np.transpose(ends) / 2e-5
    half = center_of(p, True) - p[CENTER:SHAPE]
    # Without the parts of second order: shape, blur and the step of the grey level.
    first = [CENTER, CENTER + 1, BAND + 1, BAND + 2, OUTSIDE + 1, OUTSIDE + 2]
    first += [] if known else [PERSPECTIVE, PERSPECTIVE + 1]
    wanted = jacobian[:, first] @ covariance[np.ix_(first, first)] @ jacobian[:, first].T
    # The perspective's second order is left out, too.
    wanted += np.outer(half, half)
    assert measured.covariance == pytest.approx(wanted, rel=1e-6 if known else 1e-3)


def test_the_outer_ellipse_passes_through_the_image_of_the_circle():
    p, covariance = a_fit()
    measured = measure(p, covariance, *PLAINLY, known=True)
    shift = measured.center - p[CENTER:SHAPE]
    angles = np.linspace(0.0, 2.0 * math.pi, 50)
    e = np.stack([np.cos(angles), np.sin(angles)])
    points = matrix(p[SHAPE:BLUR]) @ e / (1.0 + p[PERSPECTIVE:] @ e)
    points += (p[CENTER:SHAPE] + shift)[:, None]
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
