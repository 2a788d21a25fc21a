"""Poses, planes, rays: exact, and with covariances that Monte Carlo confirms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from random_rig import CAMERAS, pixel_of, random_rig
from scipy.spatial.transform import Rotation

from longreach_dynamics.errors import InputError
from longreach_markers.camera.geometry import Plane, Pose, fit_plane, intersect, pixel_ray
from longreach_markers.camera.model import Camera

SAMPLES = 1200


# Poses


def test_a_camera_that_looks_at_a_point() -> None:
    camera, pose = CAMERAS[0], Pose.from_look_at((3.0, -20.0, 2.0), (10.0, 1.0, 6.0))
    np.testing.assert_allclose(pixel_of(camera, pose, (10.0, 1.0, 6.0)), (1231.0, 1019.0))
    u, v = pixel_of(camera, pose, np.array([10.0, 1.0, 6.1]))
    assert u == pytest.approx(1231.0)
    assert v < 1019.0
    # Seen from -y towards +y, +x is to the right.
    assert pixel_of(camera, pose, np.array([10.1, 1.0, 6.0]))[0] > 1231.0
    assert np.linalg.det(pose.rotation) == pytest.approx(1.0)


def quaternions() -> list[np.ndarray]:
    random = np.random.default_rng(8)
    half_turns = [np.append(axis, 0.0) for axis in np.eye(3)]
    diagonal = np.array([1.0, -1.0, 1.0, 0.0]) / math.sqrt(3.0)
    tiny = np.array([1e-9, -2e-9, 1e-9, 1.0])
    drawn = list(random.normal(size=(30, 4)))
    return [q / np.linalg.norm(q) for q in [*half_turns, diagonal, tiny, *drawn]]


@pytest.mark.parametrize('quaternion', quaternions())
def test_quaternions_are_scipys(quaternion: np.ndarray) -> None:
    pose = Pose.from_quaternion(quaternion, (1.0, 2.0, 3.0))
    matrix = Rotation.from_quat(quaternion).as_matrix()
    np.testing.assert_allclose(pose.rotation, matrix, rtol=0.0, atol=1e-14)
    np.testing.assert_array_equal(pose.translation, (1.0, 2.0, 3.0))
    found = pose.quaternion
    assert found[3] >= 0.0
    sign = math.copysign(1.0, found @ quaternion)
    np.testing.assert_allclose(found, sign * quaternion, atol=1e-14)


def bad_poses() -> list[tuple[Any, Any, Any, str]]:
    eye, zero = np.eye(3), np.zeros(3)
    sheared = np.eye(3)
    sheared[0, 1] = 0.02
    skew = np.eye(6)
    skew[0, 1] = 0.5
    return [
        (1.01 * eye, zero, None, r'R\^T R differs from the identity by 0.0201, allowed'),
        (sheared, zero, None, 'differs from the identity by 0.02'),
        (np.diag([1.0, 1.0, -1.0]), zero, None, 'rotation is a reflection: its determinant is -1'),
        (np.full((3, 3), math.nan), zero, None, 'rotation = .*allowed: finite numbers'),
        (np.eye(4), zero, None, r'rotation has shape \(4, 4\), allowed: \(3, 3\)'),
        (eye, (0.0, math.inf, 0.0), None, 'translation = .*finite'),
        (eye, zero, np.eye(3), r'covariance of a pose has shape \(3, 3\), allowed: \(6, 6\)'),
        (eye, zero, skew, 'covariance of a pose is not symmetric'),
        (eye, zero, np.diag([1.0, 1.0, 1.0, 1.0, 1.0, -1e-3]), 'negative eigenvalue'),
    ]


@pytest.mark.parametrize(('rotation', 'translation', 'covariance', 'text'), bad_poses())
def test_impossible_poses_are_refused(
    rotation: np.ndarray, translation: np.ndarray, covariance: np.ndarray, text: str
) -> None:
    with pytest.raises(InputError, match=text):
        Pose(rotation, translation, covariance)


@pytest.mark.parametrize(
    ('quaternion', 'text'),
    [
        ((1.0, 0.0, 0.0, 1.0), 'has norm 1.414, allowed: 1; the order is x, y, z, w'),
        ((0.0, 0.0, math.nan, 1.0), 'orientation = .*finite'),
        ((0.0, 0.0, 1.0), r'orientation has shape \(3,\)'),
    ],
)
def test_impossible_quaternions_are_refused(quaternion: tuple[float, ...], text: str) -> None:
    with pytest.raises(InputError, match=text):
        Pose.from_quaternion(quaternion, np.zeros(3))


@pytest.mark.parametrize(
    ('target', 'up', 'text'),
    [
        ((1.0, 2.0, 3.0), (0.0, 0.0, 1.0), 'equals the position, allowed: another point'),
        ((1.0, 2.0, 9.0), (0.0, 0.0, 1.0), 'is parallel to the line of sight'),
        ((1.0, 2.0, 9.0), (0.0, 0.0, 0.0), 'is parallel to the line of sight'),
        ((1.0, 2.0, math.nan), (0.0, 0.0, 1.0), 'target = .*finite'),
    ],
)
def test_impossible_views_are_refused(target: Any, up: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        Pose.from_look_at((1.0, 2.0, 3.0), target, up)


# Planes


@pytest.mark.parametrize('seed', range(8))
def test_axes_of_a_plane_are_right_handed(seed: int) -> None:
    normal = np.random.default_rng(seed).normal(size=3)
    plane = Plane(normal / np.linalg.norm(normal), 1.5)
    frame = np.vstack([plane.axes, plane.normal])
    np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-14)
    assert np.linalg.det(frame) == pytest.approx(1.0)
    np.testing.assert_allclose(plane.centroid, 1.5 * plane.normal)


@pytest.mark.parametrize(
    ('values', 'text'),
    [
        (((0.0, 1.0, 1.0), 1.0), r'normal = .* has length 1.414, allowed: 1'),
        (((0.0, math.nan, 1.0), 1.0), 'normal = .*finite'),
        (((0.0, 1.0, 0.0), math.inf), 'offset = inf m'),
        (((0.0, 1.0, 0.0), 1.0, None, (0.0, 1.5, 0.0)), 'lies 0.5 m off the plane'),
        (((0.0, 1.0, 0.0), 1.0, -np.eye(3)), 'covariance of a plane is not a covariance'),
    ],
)
def test_impossible_planes_are_refused(values: tuple[Any, ...], text: str) -> None:
    with pytest.raises(InputError, match=text):
        Plane(*values)


@pytest.mark.parametrize('count', [3, 4, 5, 20])
@pytest.mark.parametrize('seed', range(3))
def test_exact_points_give_their_plane(count: int, seed: int) -> None:
    plane = random_rig(seed)[1]
    inside = np.random.default_rng(seed).uniform(-8.0, 8.0, (count, 2))
    fit = fit_plane(plane.centroid + inside @ plane.axes, 0.01)
    np.testing.assert_allclose(fit.plane.normal, plane.normal, atol=1e-12)
    assert fit.plane.offset == pytest.approx(plane.offset, abs=1e-12)
    np.testing.assert_allclose(fit.residuals, np.zeros(count), atol=1e-12)
    assert math.isnan(fit.rms) if count == 3 else fit.rms < 1e-12


@pytest.mark.parametrize(
    ('direction', 'expected'),
    [
        ((0.0, -1.0, 0.0), (0.0, 1.0, 0.0)),
        ((0.3, -0.9, 0.3), (-0.3, 0.9, -0.3)),
        ((-1.0, 0.0, 0.0), (1.0, 0.0, 0.0)),
        ((-1.0, 0.05, -0.5), (1.0, -0.05, 0.5)),
        ((0.0, 0.0, -1.0), (0.0, 0.0, 1.0)),
    ],
)
def test_sign_of_a_fitted_normal_follows_its_rule(direction: Any, expected: Any) -> None:
    normal = np.array(direction) / np.linalg.norm(direction)
    given = Plane(normal, 3.0)
    places = np.array([[4, 0], [0, 3], [-4, 1], [-1, -3.0]])
    for order in np.random.default_rng(2).permuted(np.tile(np.arange(4), (6, 1)), axis=1):
        fit = fit_plane(given.centroid + places[order] @ given.axes, 0.01)
        wanted = np.array(expected) / np.linalg.norm(expected)
        np.testing.assert_allclose(fit.plane.normal, wanted, atol=1e-12)
        assert fit.plane.offset == pytest.approx(3.0 * float(normal @ fit.plane.normal))


@pytest.mark.parametrize('count', [3, 5, 12])
def test_covariance_of_a_fitted_plane_is_what_monte_carlo_finds(count: int) -> None:
    random = np.random.default_rng(count)
    truth = random_rig(count)[1]
    deviation = 0.01
    inside = random.uniform(-6.0, 6.0, (count, 2)) * (1.0, 0.4)
    points = truth.centroid + inside @ truth.axes
    squares = []
    for _ in range(SAMPLES):
        plane = fit_plane(points + deviation * random.normal(size=points.shape), deviation).plane
        turn = plane.axes @ np.cross(plane.normal, truth.normal)
        error = np.append(turn, -truth.distance(plane.centroid))
        assert plane.covariance is not None
        squares.append(error @ np.linalg.solve(plane.covariance, error))
    assert np.mean(squares) == pytest.approx(3.0, abs=0.25)


@pytest.mark.parametrize(
    ('points', 'deviation', 'text'),
    [
        (np.zeros((2, 3)), 0.01, '2 points, allowed for a plane: 3 or more'),
        (np.zeros((4, 2)), 0.01, r'points have shape \(4, 2\)'),
        ([[0, 0, 0], [1, 0, 0], [2, 0, 0]], 0.01, 'points lie on a line'),
        ([[0, 0, 0], [9, 0, 0.02], [18, 0, -0.02]], 0.01, 'spread 0.0141 m across it'),
        ([[0, 0, 0], [1, 0, 0], [0, math.nan, 1]], 0.01, r'points\[2\] = .*finite'),
        ([[0, 0, 0], [1, 0, 0], [0, 0, 1], [1, 1, 1]], 0.01, 'do not lie in a plane.*check their'),
        ([[0, 0, 0], [1, 0, 0], [0, 0, 1]], 0.0, r'deviation = 0.0 m, allowed: \(0, inf\) m'),
    ],
)
def test_points_that_give_no_plane_are_refused(points: Any, deviation: float, text: str) -> None:
    with pytest.raises(InputError, match=text):
        fit_plane(np.array(points), deviation)


# Rays


@pytest.mark.parametrize('camera', CAMERAS, ids=lambda camera: camera.name)
@pytest.mark.parametrize('seed', range(5))
def test_a_ray_runs_through_what_its_pixel_shows(camera: Camera, seed: int) -> None:
    (pose, _), plane, point = random_rig(seed)
    origin, direction = pixel_ray(camera, pose, pixel_of(camera, pose, point))
    np.testing.assert_array_equal(origin, pose.translation)
    assert np.linalg.norm(direction) == pytest.approx(1.0, abs=1e-14)
    np.testing.assert_allclose(np.cross(point - origin, direction), np.zeros(3), atol=1e-9)
    np.testing.assert_allclose(intersect(origin, 7.0 * direction, plane), point, atol=1e-9)


@pytest.mark.parametrize('seed', range(3))
def test_rays_are_those_of_the_paper(seed: int) -> None:
    camera, pose = CAMERAS[0], random_rig(seed)[0][0]
    u, v = 431.7, 1820.2
    # Its camera frame is the optical one, turned by half a turn about z.
    R = np.diag([-1.0, -1.0, 1.0]) @ pose.rotation.T
    d = -R @ pose.translation
    centre = -np.linalg.inv(R) @ d
    f = 0.05
    image = np.array([-(u - camera.cx) / camera.fx * f, -(v - camera.cy) / camera.fy * f, f])
    along = np.linalg.inv(R) @ image - np.linalg.inv(R) @ d - centre
    origin, direction = pixel_ray(camera, pose, (u, v))
    np.testing.assert_allclose(origin, centre, atol=1e-12)
    np.testing.assert_allclose(direction, along / np.linalg.norm(along), atol=1e-12)


@pytest.mark.parametrize(
    ('origin', 'direction', 'text'),
    [
        ((3.0, 2.0, 1.0), (0.0, 1.0, 0.0), r'plane passes through the camera \(distance 0 m\)'),
        ((0.0, -5.0, 0.0), (1.0, 0.0, 0.3), r'the ray is parallel to the plane \(cosine'),
        ((0.0, -5.0, 0.0), (0.0, -1.0, 0.1), r'it meets it 7\.03 m behind the camera'),
        ((0.0, -5.0, 0.0), (0.0, 0.0, 0.0), 'direction = 0'),
        ((0.0, -5.0, math.nan), (0.0, 1.0, 0.0), 'origin = .*finite'),
    ],
)
def test_rays_that_meet_no_plane_are_refused(origin: Any, direction: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        intersect(origin, direction, Plane(np.array([0.0, 1.0, 0.0]), 2.0))
