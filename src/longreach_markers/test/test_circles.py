"""Ellipses and conics, and circles in space whose images they are: exact."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_markers.camera.circles import Ellipse, circle_conic, projected_center

ANGLES = np.linspace(0.0, 2.0 * math.pi, 97)[:-1]
FOCAL, PRINCIPAL = 4800.0, np.array([1231.0, 1019.0])
MATRIX = np.array([[FOCAL, 0.0, PRINCIPAL[0]], [0.0, FOCAL, PRINCIPAL[1]], [0.0, 0.0, 1.0]])


def values_of(conic: np.ndarray, points: np.ndarray) -> np.ndarray:
    """p^T C p over the size of its terms."""
    whole = np.column_stack([points, np.ones(len(points))])
    terms = whole[:, :, None] * conic * whole[:, None, :]
    return np.asarray(terms.sum(axis=(1, 2)) / np.abs(terms).sum(axis=(1, 2)))


def random_circle(seed: int, tilt: float) -> tuple[np.ndarray, np.ndarray, float]:
    """A circle some 20 m off, anywhere in the image, tilted by an angle to its line of sight."""
    random = np.random.default_rng(seed)
    center = np.append(random.uniform(-0.25, 0.25, 2), 1.0) * random.uniform(5.0, 30.0)
    sight = center / np.linalg.norm(center)
    across = np.cross(sight, random.normal(size=3))
    across /= np.linalg.norm(across)
    return center, math.cos(tilt) * sight + math.sin(tilt) * across, random.uniform(0.05, 0.3)


def rim(center: np.ndarray, normal: np.ndarray, radius: float) -> np.ndarray:
    """Normalised coordinates of points of a circle."""
    first = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
    first /= np.linalg.norm(first)
    second = np.cross(normal, first)
    points = center + radius * (np.outer(np.cos(ANGLES), first) + np.outer(np.sin(ANGLES), second))
    return np.asarray(points[:, :2] / points[:, 2:])


ELLIPSES = [
    ((0.0, 0.0), (2.0, 1.0), 0.0),
    ((5.0, -3.0), (2.0, 1.0), 0.7),
    ((1800.3, 955.6), (17.0, 9.0), -1.2),
    ((12.0, 1999.0), (30.0, 29.9), 1.5),
    ((0.2, 0.1), (0.007, 0.001), -0.4),
    ((3.0, 4.0), (5.0, 2.0), math.pi / 2.0),
]


@pytest.mark.parametrize(('center', 'axes', 'angle'), ELLIPSES)
@pytest.mark.parametrize('factor', [1.0, -3e5, 2e-9])
def test_an_ellipse_comes_back_from_its_conic(
    center: Any, axes: Any, angle: float, factor: float
) -> None:
    ellipse = Ellipse(center, axes, angle)
    again = Ellipse.from_conic(factor * ellipse.conic)
    # Of the size of the rounding of a conic far from the origin.
    size = 1e-15 * (np.linalg.norm(center) + axes[0]) ** 2 / axes[1]
    np.testing.assert_allclose(again.center, center, atol=10.0 * size)
    np.testing.assert_allclose(again.axes, axes, atol=1e3 * size)
    assert math.remainder(again.angle - angle, math.pi) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(('center', 'axes', 'angle'), ELLIPSES)
def test_points_lie_on_the_ellipse_and_its_conic(center: Any, axes: Any, angle: float) -> None:
    ellipse = Ellipse(center, axes, angle)
    points = ellipse.points(ANGLES)
    np.testing.assert_allclose(values_of(ellipse.conic, points), 0.0, atol=1e-15)
    middle = np.append(center, 1.0)
    assert middle @ ellipse.conic @ middle == pytest.approx(-1.0, abs=1e-6)
    # From u towards v: the longer axis, and a quarter further the shorter one.
    along = np.array([math.cos(angle), math.sin(angle)])
    across = np.array([-math.sin(angle), math.cos(angle)])
    np.testing.assert_allclose(points[0] - center, axes[0] * along, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(points[24] - center, axes[1] * across, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize(
    ('center', 'axes', 'angle', 'text'),
    [
        ((0.0, math.nan), (2.0, 1.0), 0.0, 'allowed: finite numbers'),
        ((0.0, 0.0), (math.inf, 1.0), 0.0, 'allowed: finite numbers'),
        ((0.0, 0.0), (2.0, 1.0), math.nan, 'allowed: finite numbers'),
        ((0.0, 0.0), (2.0, 0.0), 0.0, r'axes = \[2.0, 0.0\], allowed: \(0, inf\)'),
        ((0.0, 0.0), (2.0, -1.0), 0.0, 'axes = '),
        ((0.0, 0.0, 0.0), (2.0, 1.0), 0.0, r'have shapes \(3,\) and \(2,\), allowed: \(2,\)'),
    ],
)
def test_impossible_ellipses_are_refused(center: Any, axes: Any, angle: float, text: str) -> None:
    with pytest.raises(InputError, match=text):
        Ellipse(center, axes, angle)


# A hyperbola, a parabola, two lines, one line twice, a point, an empty one, nothing.
DEGENERATE = [
    (np.diag([1.0, -1.0, -1.0]), 'is a hyperbola, parabola or line'),
    (np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -0.5], [0.0, -0.5, 0.0]]), 'is a hyperbola, parabola'),
    (np.outer([1.0, 2.0, 3.0], [2.0, 1.0, 0.0]), 'is a hyperbola, parabola or line'),
    (np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]), 'is a hyperbola, parabola or line'),
    (np.diag([1.0, 2.0, 0.0]), 'is a point or empty'),
    (np.array([[1.0, 0.0, -3.0], [0.0, 1.0, -4.0], [-3.0, -4.0, 25.0]]), 'is a point or empty'),
    (np.diag([1.0, 2.0, 1.0]), 'is a point or empty'),
    (np.zeros((3, 3)), 'is a hyperbola, parabola or line'),
    (np.full((3, 3), math.nan), 'allowed: 3 x 3 finite numbers'),
    (np.eye(2), 'allowed: 3 x 3 finite numbers'),
]


@pytest.mark.parametrize(('conic', 'text'), DEGENERATE)
def test_conics_that_are_no_ellipse_are_refused(conic: np.ndarray, text: str) -> None:
    with pytest.raises(InputError, match=text):
        Ellipse.from_conic(conic)
    with pytest.raises(InputError, match=text):
        projected_center(conic, np.array([0.0, 0.0, 1.0]))


@pytest.mark.parametrize('tilt', np.radians([0.0, 1.0, 30.0, 60.0, 80.0]))
@pytest.mark.parametrize('seed', range(6))
def test_the_conic_of_a_circle_runs_through_its_projected_rim(seed: int, tilt: float) -> None:
    center, normal, radius = random_circle(seed, tilt)
    conic = circle_conic(center, normal, radius)
    points = rim(center, normal, radius)
    np.testing.assert_allclose(values_of(conic, points), 0.0, atol=1e-14)
    ellipse = Ellipse.from_conic(conic)
    np.testing.assert_allclose(values_of(ellipse.conic, points), 0.0, atol=1e-13)
    # Semi-axes are those of the points, in pixels: nearest and farthest from the centre.
    distances = FOCAL * np.linalg.norm(points - ellipse.center, axis=1)
    longest, shortest = FOCAL * ellipse.axes
    assert shortest * (1.0 - 1e-6) <= distances.min() <= distances.max() <= longest * (1.0 + 1e-6)
    assert distances.max() == pytest.approx(longest, rel=2e-3)
    inside = np.append(center[:2] / center[2], 1.0)
    assert inside @ conic @ inside < 0.0


@pytest.mark.parametrize('tilt', np.radians([0.0, 1.0, 30.0, 60.0, 80.0]))
@pytest.mark.parametrize('seed', range(6))
def test_the_projected_centre_is_exact(seed: int, tilt: float) -> None:
    center, normal, radius = random_circle(seed, tilt)
    conic = circle_conic(center, normal, radius)
    expected = center[:2] / center[2]
    # Of either sign, length and scale; to a millionth of a pixel.
    for factor in (1.0, -4.0):
        found = projected_center(factor * conic, -factor * normal)
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-6 / FOCAL)


def test_centre_of_the_ellipse_is_off_by_what_is_known() -> None:
    # 0.05 to 0.135 px, or 0.4 to 1.2 mm, for a marker of 0.15 m at 20 to 25 m.
    center, radius = np.array([0.0, 0.0, 20.0]), 0.15
    normal = np.array([math.sin(math.radians(45.0)), 0.0, math.cos(math.radians(45.0))])
    conic = circle_conic(center, normal, radius)
    off = FOCAL * (Ellipse.from_conic(conic).center - projected_center(conic, normal))
    np.testing.assert_allclose(off[1], 0.0, atol=1e-9)
    # Of second order: f r^2 sin cos / z^2.
    assert abs(off[0]) == pytest.approx(FOCAL * radius**2 * 0.5 / 400.0, rel=1e-3)
    assert 0.05 < abs(off[0]) < 0.2


@pytest.mark.parametrize(
    ('center', 'normal', 'radius', 'text'),
    [
        ((0.0, 0.0, 10.0), (1.0, 0.0, 0.0), 0.2, 'plane passes through the camera'),
        ((0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 0.2, 'plane passes through the camera'),
        ((0.0, 0.0, -10.0), (0.0, 0.0, 1.0), 0.2, 'reaches to z = -10 m'),
        ((1.0, 0.0, 0.1), (1.0, 0.0, 0.0), 0.2, 'reaches to z = -0.1 m of the camera frame'),
        ((0.0, 0.0, 10.0), (0.0, 0.0, 1.0), 0.0, r'radius = 0.0 m, allowed: \(0, inf\) m'),
        ((0.0, 0.0, 10.0), (0.0, 0.0, 1.0), math.nan, 'radius = nan m'),
        ((0.0, 0.0, 10.0), (0.0, 0.0, 0.0), 0.2, 'normal_cam = .*a vector that is not 0'),
        ((0.0, 0.0, 10.0), (0.0, math.nan, 1.0), 0.2, 'normal_cam = .*3 finite numbers'),
        ((0.0, 10.0), (0.0, 0.0, 1.0), 0.2, 'center_cam = .*3 finite numbers'),
    ],
)
def test_circles_without_an_ellipse_are_refused(
    center: Any, normal: Any, radius: float, text: str
) -> None:
    with pytest.raises(InputError, match=text):
        circle_conic(center, normal, radius)


def test_a_plane_seen_edge_on_has_no_centre() -> None:
    conic = Ellipse((0.3, 0.1), (0.02, 0.01), 0.4).conic
    with pytest.raises(InputError, match='the plane is seen edge-on'):
        projected_center(conic, (1.0, 0.0, -0.3))
