"""Poses, planes, rays, points in space: exact, and with covariances that Monte Carlo confirms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize
from scipy.spatial.transform import Rotation

from longreach_dynamics.errors import InputError
from longreach_vision.cameras import Camera
from longreach_vision.geometry import (
    Location,
    Plane,
    Pose,
    fit_plane,
    intersect,
    locate_in_plane,
    pixel_ray,
    triangulate,
)

CAMERAS = [
    Camera('plain', 2452, 2054, 4800.0, 4810.0, 1231.0, 1019.0),
    Camera(
        *('wide', 2452, 2054, 2600.0, 2590.0, 1200.0, 1040.0),
        *('plumb_bob', (-0.2, 0.09, 0.002, -0.001, -0.02)),
    ),
    Camera(
        *('rational', 2452, 2054, 2100.0, 2100.0, 1226.0, 1027.0),
        *('rational_polynomial', (1.2, 0.4, 0.001, -0.002, 0.01, 1.5, 0.6, 0.05)),
    ),
    Camera(
        *('fisheye', 2452, 2054, 1500.0, 1500.0, 1226.0, 1027.0),
        *('equidistant', (0.01, -0.002, 0.001, -0.0005)),
    ),
]
# Errors of a good set-up: 0.02 px, 0.1 mrad and 3 mm of poses, 0.3 mrad and 2 mm of the plane.
POSE_COVARIANCE = np.diag([1e-8, 1.5e-8, 0.5e-8, 9e-6, 4e-6, 9e-6])
POSE_COVARIANCE[0, 4] = POSE_COVARIANCE[4, 0] = 1e-7
PLANE_COVARIANCE = np.array([[9e-8, 2e-8, 1e-8], [2e-8, 4e-8, -2e-8], [1e-8, -2e-8, 4e-6]])
PIXEL_COVARIANCE = np.array([[4e-4, 1e-4], [1e-4, 2e-4]])
SAMPLES = 1200


def random_rig(seed: int) -> tuple[tuple[Pose, Pose], Plane, np.ndarray]:
    """Two cameras some 20 m off a boom's plane, the plane, and a point on it in front of both."""
    random = np.random.default_rng(seed)
    normal = np.array([0.0, 1.0, 0.0]) + 0.1 * random.normal(size=3)
    normal /= np.linalg.norm(normal)
    middle = np.array([10.0, 0.0, 5.0]) + random.normal(size=3)
    plane = Plane(normal, float(normal @ middle), PLANE_COVARIANCE, middle)
    point = middle + random.uniform(-3.0, 3.0, 2) @ plane.axes
    places = np.array([[4.0, -20.0, 2.0], [16.0, -22.0, 1.0]]) + random.normal(size=(2, 3))
    up = np.array([0.0, 0.0, 1.0]) + 0.2 * random.normal(size=3)
    looking = [
        Pose.from_look_at(place, middle + 0.5 * random.normal(size=3), up) for place in places
    ]
    first, second = (Pose(p.rotation, p.translation, POSE_COVARIANCE) for p in looking)
    return (first, second), plane, point


def moved_pose(pose: Pose, error: np.ndarray) -> Pose:
    """Turn a pose about the camera's axes and shift it."""
    turn = Rotation.from_rotvec(error[:3]).as_matrix()
    return Pose(pose.rotation @ turn, pose.translation + error[3:], pose.covariance)


def moved_plane(plane: Plane, error: np.ndarray) -> Plane:
    """Turn a plane about its axes through its centroid and shift it."""
    normal = Rotation.from_rotvec(error[:2] @ plane.axes).apply(plane.normal)
    centroid = plane.centroid + error[2] * plane.normal
    return Plane(normal, float(normal @ centroid), plane.covariance, centroid)


def exact(pose: Pose) -> Pose:
    return Pose(pose.rotation, pose.translation)


def pixel_of(camera: Camera, pose: Pose, point: np.ndarray) -> np.ndarray:
    return camera.project(pose.to_camera(point))


def normalised_square(location: Location, truth: np.ndarray) -> float:
    error = location.position - truth
    return float(error @ np.linalg.solve(location.covariance, error))


# Poses


@pytest.mark.parametrize('seed', range(5))
def test_there_and_back(seed: int) -> None:
    pose = random_rig(seed)[0][0]
    points = np.random.default_rng(seed).normal(size=(4, 5, 3))
    np.testing.assert_allclose(pose.to_world(pose.to_camera(points)), points, atol=1e-13)
    whole = np.concatenate([points, np.ones((4, 5, 1))], axis=-1) @ pose.matrix.T
    np.testing.assert_allclose(pose.to_world(points), whole[..., :3], atol=1e-13)
    np.testing.assert_allclose(pose.to_camera(pose.translation), np.zeros(3), atol=1e-13)


def test_a_camera_that_looks_at_a_point() -> None:
    camera, pose = CAMERAS[0], Pose.from_look_at((3.0, -20.0, 2.0), (10.0, 1.0, 6.0))
    np.testing.assert_allclose(pixel_of(camera, pose, (10.0, 1.0, 6.0)), (1231.0, 1019.0))
    u, v = pixel_of(camera, pose, np.array([10.0, 1.0, 6.1]))
    assert u == pytest.approx(1231.0)
    assert v < 1019.0
    # Seen from -y towards +y, +x is to the right.
    assert pixel_of(camera, pose, np.array([10.1, 1.0, 6.0]))[0] > 1231.0
    assert np.linalg.det(pose.rotation) == pytest.approx(1.0)


@pytest.mark.parametrize('up', [(0.0, -1.0, 0.0), (1.0, 0.0, 0.0)])
def test_up_may_be_chosen(up: tuple[float, float, float]) -> None:
    camera, pose = CAMERAS[0], Pose.from_look_at((0.0, 0.0, 0.0), (0.0, 0.0, 5.0), up)
    assert pixel_of(camera, pose, np.array([0.0, 0.0, 5.0]) + 0.1 * np.array(up))[1] < 1019.0


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
    np.testing.assert_allclose(
        pose.rotation, Rotation.from_quat(quaternion).as_matrix(), rtol=0.0, atol=1e-14
    )
    np.testing.assert_array_equal(pose.translation, (1.0, 2.0, 3.0))
    found = pose.quaternion
    assert found[3] >= 0.0
    assert abs(found @ quaternion) == pytest.approx(1.0, abs=1e-14)
    np.testing.assert_allclose(
        found, math.copysign(1.0, found @ quaternion) * quaternion, atol=1e-14
    )


def test_rounding_of_rotations_is_taken_out() -> None:
    pose = random_rig(1)[0][0]
    rounded = Pose(np.round(pose.rotation, 4), pose.translation).rotation
    np.testing.assert_allclose(rounded.T @ rounded, np.eye(3), atol=1e-14)
    np.testing.assert_allclose(rounded, pose.rotation, atol=1e-4)
    nearly = Pose.from_quaternion(np.round(pose.quaternion, 3), pose.translation)
    np.testing.assert_allclose(nearly.rotation, pose.rotation, atol=3e-3)


def bad_poses() -> list[tuple[Any, Any, Any, str]]:
    eye, zero = np.eye(3), np.zeros(3)
    sheared = np.eye(3)
    sheared[0, 1] = 0.02
    skew = np.eye(6)
    skew[0, 1] = 0.5
    return [
        (1.01 * eye, zero, None, r'R\^T R differs from the identity by 0.0201, allowed'),
        (sheared, zero, None, 'differs from the identity by 0.02'),
        (np.diag([1.0, 1.0, -1.0]), zero, None, 'rotation mirrors: its determinant is -1'),
        (np.zeros((3, 3)), zero, None, 'differs from the identity by 1'),
        (np.full((3, 3), math.nan), zero, None, 'rotation = .*allowed: finite numbers'),
        (np.eye(4), zero, None, r'rotation has shape \(4, 4\), allowed: \(3, 3\)'),
        (eye, (0.0, math.inf, 0.0), None, 'translation = .*finite'),
        (eye, zero, np.eye(3), r'covariance of a pose has shape \(3, 3\), allowed: \(6, 6\)'),
        (eye, zero, skew, 'covariance of a pose is not symmetric'),
        (eye, zero, np.diag([1.0, 1.0, 1.0, 1.0, 1.0, -1e-3]), 'negative eigenvalue'),
        (eye, zero, np.diag([1.0, 1.0, 1.0, 1.0, 1.0, math.nan]), 'covariance .*finite'),
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
        ((0.0, 0.0, 0.0, 0.0), 'has norm 0, allowed: 1; the order is x, y, z, w'),
        ((1.0, 0.0, 0.0, 1.0), 'has norm 1.414'),
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
        ((1.0, 2.0, 3.0), (0.0, 0.0, 1.0), 'is the position, allowed: another point'),
        ((1.0, 2.0, 9.0), (0.0, 0.0, 1.0), 'lies along the line of sight'),
        ((1.0, 2.0, 9.0), (0.0, 0.0, 0.0), 'lies along the line of sight'),
        ((1.0, 2.0, math.nan), (0.0, 0.0, 1.0), 'target = .*finite'),
    ],
)
def test_impossible_views_are_refused(target: Any, up: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        Pose.from_look_at((1.0, 2.0, 3.0), target, up)


def test_poses_and_planes_keep_their_own_arrays() -> None:
    shift, normal = np.zeros(3), np.array([0.0, 1.0, 0.0])
    pose, plane = Pose(np.eye(3), shift), Plane(normal, 0.0)
    shift[0] = normal[0] = 5.0
    assert pose.translation[0] == plane.normal[0] == 0.0


# Planes


@pytest.mark.parametrize('seed', range(8))
def test_axes_of_a_plane_are_right_handed(seed: int) -> None:
    normal = np.random.default_rng(seed).normal(size=3)
    plane = Plane(normal / np.linalg.norm(normal), 1.5)
    frame = np.vstack([plane.axes, plane.normal])
    np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-14)
    assert np.linalg.det(frame) == pytest.approx(1.0)
    np.testing.assert_allclose(plane.centroid, 1.5 * plane.normal)


def test_axes_of_a_booms_plane_do_not_jump() -> None:
    for tilt in np.random.default_rng(1).normal(size=(20, 3)) * 1e-3:
        normal = np.array([0.0, 1.0, 0.0]) + tilt
        plane = Plane(normal / np.linalg.norm(normal), 0.0)
        np.testing.assert_allclose(plane.axes, [[1, 0, 0], [0, 0, -1]], atol=0.01)


def test_length_of_a_normal_divides_the_offset() -> None:
    plane = Plane(np.array([0.0, 0.6, 0.8]) * 1.005, 2.01)
    np.testing.assert_allclose(plane.normal, (0.0, 0.6, 0.8), rtol=1e-15)
    assert plane.offset == pytest.approx(2.0, rel=1e-15)
    assert plane.distance((5.0, 1.2, 1.6)) == pytest.approx(0.0, abs=1e-15)
    np.testing.assert_allclose(plane.distance(np.zeros((3, 2, 3))), np.full((3, 2), -2.0))


@pytest.mark.parametrize(
    ('values', 'text'),
    [
        (((0.0, 0.0, 0.0), 1.0), r'normal = .* has length 0, allowed: 1'),
        (((0.0, 1.0, 1.0), 1.0), 'has length 1.414'),
        (((0.0, math.nan, 1.0), 1.0), 'normal = .*finite'),
        (((0.0, 1.0, 0.0), math.inf), 'offset = inf m'),
        (((0.0, 1.0, 0.0), 1.0, None, (0.0, 1.5, 0.0)), 'lies 0.5 m off the plane'),
        (((0.0, 1.0, 0.0), 1.0, -np.eye(3)), 'covariance of a plane is none'),
        (((0.0, 1.0, 0.0), 1.0, np.eye(2)), r'covariance of a plane has shape \(2, 2\)'),
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


def test_residuals_are_distances_along_the_normal() -> None:
    points = np.array([[0, 1, 0], [6, 1, 0], [0, 1, 6], [6, 1, 6]], dtype=float)
    points[:, 1] += [0.01, -0.01, -0.01, 0.01]
    fit = fit_plane(points, 0.01)
    np.testing.assert_allclose(fit.plane.normal, (0.0, 1.0, 0.0), atol=1e-12)
    np.testing.assert_allclose(fit.residuals, [0.01, -0.01, -0.01, 0.01], atol=1e-12)
    assert fit.rms == pytest.approx(0.02)
    np.testing.assert_allclose(fit.plane.centroid, (3.0, 1.0, 3.0))


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
    for order in np.random.default_rng(2).permuted(np.tile(np.arange(4), (6, 1)), axis=1):
        points = (
            given.centroid + np.array([[4, 0], [0, 3], [-4, 1], [-1, -3.0]])[order] @ given.axes
        )
        fit = fit_plane(points, 0.01)
        np.testing.assert_allclose(
            fit.plane.normal, np.array(expected) / np.linalg.norm(expected), atol=1e-12
        )
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
        ([[0, 0, 0], [1, 0, 0], [2, 0, 0]], 0.01, 'points lie along a line'),
        ([[0, 0, 0], [9, 0, 0.02], [18, 0, -0.02]], 0.01, 'spread 0.0141 m across it'),
        ([[0, 0, 0], [0, 0, 0], [2, 0, 1]], 0.001, 'measure points farther apart'),
        ([[0, 0, 0], [1, 0, 0], [0, math.nan, 1]], 0.01, r'points\[2\] = .*finite'),
        ([[0, 0, 0], [1, 0, 0], [0, 0, 1], [1, 1, 1]], 0.01, 'points lie in no plane.*mistyped'),
        ([[0, 0, 0], [1, 0, 0], [0, 0, 1]], 0.0, r'deviation = 0.0 m, allowed: \(0, inf\) m'),
        ([[0, 0, 0], [1, 0, 0], [0, 0, 1]], math.nan, 'deviation = nan'),
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
        ((3.0, 2.0, 1.0), (0.0, 1.0, 0.0), r'the plane passes through the camera \(0 m off\)'),
        ((0.0, -5.0, 0.0), (1.0, 0.0, 0.3), r'the ray is parallel to the plane \(cosine'),
        ((0.0, -5.0, 0.0), (0.0, -1.0, 0.1), r'it would meet it 7\.03 m behind the camera'),
        ((0.0, -5.0, 0.0), (0.0, 0.0, 0.0), 'direction = 0'),
        ((0.0, -5.0, math.nan), (0.0, 1.0, 0.0), 'origin = .*finite'),
        ((0.0, -5.0), (0.0, 1.0, 0.0), r'origin has shape \(2,\)'),
    ],
)
def test_rays_that_meet_no_plane_are_refused(origin: Any, direction: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        intersect(origin, direction, Plane(np.array([0.0, 1.0, 0.0]), 2.0))


# One camera and a plane


@pytest.mark.parametrize('camera', CAMERAS, ids=lambda camera: camera.name)
@pytest.mark.parametrize('seed', range(5))
def test_a_point_of_the_plane_is_found_again(camera: Camera, seed: int) -> None:
    (pose, _), plane, point = random_rig(seed)
    pixel = pixel_of(camera, pose, point)
    found = locate_in_plane(camera, pose, plane, pixel, PIXEL_COVARIANCE)
    np.testing.assert_allclose(found.position, point, atol=1e-9)
    np.testing.assert_array_equal(found.covariance, found.covariance.T)
    assert math.isnan(found.residual)


@pytest.mark.parametrize('camera', CAMERAS, ids=lambda camera: camera.name)
@pytest.mark.parametrize('seed', range(4))
def test_covariance_in_a_plane_is_that_of_the_derivatives(camera: Camera, seed: int) -> None:
    (pose, _), plane, point = random_rig(seed)
    pixel = pixel_of(camera, pose, point)

    def place(error: np.ndarray) -> np.ndarray:
        ray = pixel_ray(camera, moved_pose(pose, error[2:8]), pixel + error[:2])
        return intersect(*ray, moved_plane(plane, error[8:]))

    steps = 1e-5 * np.diag([100.0] * 2 + [1.0] * 9)
    derivatives = np.array([place(step) - place(-step) for step in steps]) / 2e-5
    derivatives[:2] /= 100.0
    for i, derivative in enumerate(derivatives):
        one = np.zeros((11, 11))
        one[i, i] = 1.0
        found = locate_in_plane(
            camera,
            Pose(pose.rotation, pose.translation, one[2:8, 2:8]),
            Plane(plane.normal, plane.offset, one[8:, 8:], plane.centroid),
            pixel,
            one[:2, :2],
        )
        expected = np.outer(derivative, derivative)
        np.testing.assert_allclose(
            found.covariance, expected, rtol=0.0, atol=1e-6 * max(np.trace(expected), 1e-3)
        )


@pytest.mark.parametrize('seed', range(3))
@pytest.mark.parametrize('camera', CAMERAS[:2], ids=lambda camera: camera.name)
def test_errors_in_a_plane_are_as_large_as_their_covariance(camera: Camera, seed: int) -> None:
    random = np.random.default_rng(100 + seed)
    (pose, _), plane, point = random_rig(seed)
    pixels = random.multivariate_normal(pixel_of(camera, pose, point), PIXEL_COVARIANCE, SAMPLES)
    poses = random.multivariate_normal(np.zeros(6), POSE_COVARIANCE, SAMPLES)
    planes = random.multivariate_normal(np.zeros(3), PLANE_COVARIANCE, SAMPLES)
    squares = [
        normalised_square(
            locate_in_plane(
                camera, moved_pose(pose, p), moved_plane(plane, s), pixel, PIXEL_COVARIANCE
            ),
            point,
        )
        for pixel, p, s in zip(pixels, poses, planes, strict=True)
    ]
    assert np.mean(squares) == pytest.approx(3.0, abs=0.25)


@pytest.mark.parametrize('seed', range(3))
def test_covariance_in_an_exact_plane_is_singular_across_it(seed: int) -> None:
    random = np.random.default_rng(200 + seed)
    camera = CAMERAS[1]
    (pose, _), plane, point = random_rig(seed)
    known = Plane(plane.normal, plane.offset)
    pixel = pixel_of(camera, pose, point)
    found = locate_in_plane(camera, pose, known, pixel, PIXEL_COVARIANCE)
    np.testing.assert_allclose(found.covariance @ plane.normal, np.zeros(3), atol=1e-18)
    inside = plane.axes @ found.covariance @ plane.axes.T
    assert np.linalg.eigvalsh(inside)[0] > 1e-8
    squares = []
    for error in random.multivariate_normal(np.zeros(6), POSE_COVARIANCE, SAMPLES):
        shown = random.multivariate_normal(pixel, PIXEL_COVARIANCE)
        position = locate_in_plane(
            camera, moved_pose(pose, error), known, shown, PIXEL_COVARIANCE
        ).position
        off = plane.axes @ (position - point)
        squares.append(off @ np.linalg.solve(inside, off))
    assert np.mean(squares) == pytest.approx(2.0, abs=0.2)


@pytest.mark.parametrize('corner', [(9.0, 5.0), (9.0, -5.0), (0.0, 5.0)])
def test_errors_of_a_fitted_plane_reach_its_points(corner: tuple[float, float]) -> None:
    random = np.random.default_rng(17)
    camera, ((posed, _), plane, _) = CAMERAS[0], random_rig(1)
    # Reference points in a slanting row, and a marker far from them.
    inside = np.array([[-3.0, -1.0], [-1.0, -0.8], [0.0, 0.5], [1.0, 0.4], [3.0, 0.9]])
    points, place = plane.centroid + inside @ plane.axes, plane.centroid + corner @ plane.axes
    pose = Pose.from_look_at(posed.translation, place)
    squares = []
    for _ in range(SAMPLES):
        fitted = fit_plane(points + 0.005 * random.normal(size=points.shape), 0.005).plane
        found = locate_in_plane(camera, pose, fitted, (1231.0, 1019.0), np.zeros((2, 2)))
        off = float(plane.distance(found.position))
        squares.append(off**2 / float(plane.normal @ found.covariance @ plane.normal))
    assert np.mean(squares) == pytest.approx(1.0, abs=0.15)


def test_a_pixel_at_22_m_is_worth_its_millimetres() -> None:
    camera = CAMERAS[0]
    pose = Pose.from_look_at((0.0, -22.0, 0.0), (0.0, 0.0, 0.0))
    plane = Plane(np.array([0.0, 1.0, 0.0]), 0.0)
    found = locate_in_plane(camera, pose, plane, (1231.0, 1019.0), 0.01**2 * np.eye(2))
    deviations = np.sqrt(np.diag(found.covariance))
    np.testing.assert_allclose(deviations, (22.0e-2 / 4800.0, 0.0, 22.0e-2 / 4810.0), atol=1e-15)


@pytest.mark.parametrize(
    ('plane', 'pixel', 'covariance', 'text'),
    [
        (((0.0, 1.0, 0.0), -22.0), (1231.0, 1019.0), np.eye(2), 'passes through the camera'),
        (((1.0, 0.0, 0.0), 5.0), (1231.0, 1019.0), np.eye(2), 'ray is parallel to the plane'),
        (((0.0, 1.0, 0.0), -30.0), (1231.0, 1019.0), np.eye(2), 'meet it 8 m behind the camera'),
        (((0.0, 1.0, 0.0), 0.0), (math.nan, 1019.0), np.eye(2), 'pixel = .*finite'),
        (((0.0, 1.0, 0.0), 0.0), (1e5, 1e5), np.eye(2), 'is reached by no ray'),
        (((0.0, 1.0, 0.0), 0.0), (1231.0, 1019.0), -np.eye(2), 'covariance of a pixel is none'),
        (((0.0, 1.0, 0.0), 0.0), (1231.0, 1019.0), np.eye(3), 'covariance of a pixel has shape'),
        (
            *(((0.0, 1.0, 0.0), 0.0), (1231.0, 1019.0), np.array([[1.0, 2.0], [2.0, 1.0]])),
            'negative eigenvalue',
        ),
    ],
)
def test_pixels_that_show_no_point_of_the_plane_are_refused(
    plane: Any, pixel: Any, covariance: np.ndarray, text: str
) -> None:
    pose = Pose.from_look_at((0.0, -22.0, 0.0), (0.0, 0.0, 0.0))
    camera = CAMERAS[0].replace(distortion=(-0.1, 0.0, 0.0, 0.0))
    with pytest.raises(InputError, match=text):
        locate_in_plane(camera, pose, Plane(*plane), pixel, covariance)


# Two cameras


def both_pixels(cameras: Any, poses: Any, point: np.ndarray) -> np.ndarray:
    return np.array([pixel_of(c, p, point) for c, p in zip(cameras, poses, strict=True)])


PIXEL_COVARIANCES = np.array([PIXEL_COVARIANCE, [[1e-4, -5e-5], [-5e-5, 3e-4]]])
PAIRS = [(CAMERAS[0], CAMERAS[0]), (CAMERAS[1], CAMERAS[0]), (CAMERAS[2], CAMERAS[3])]


@pytest.mark.parametrize('cameras', PAIRS)
@pytest.mark.parametrize('seed', range(5))
def test_what_both_cameras_show_is_found_again(cameras: Any, seed: int) -> None:
    poses, _, point = random_rig(seed)
    pixels = both_pixels(cameras, poses, point)
    found = triangulate(cameras, poses, pixels, PIXEL_COVARIANCES)
    np.testing.assert_allclose(found.position, point, atol=1e-8)
    assert found.residual < 1e-7
    assert found.chi_square < 1e-9


@pytest.mark.parametrize('cameras', PAIRS)
@pytest.mark.parametrize('seed', range(4))
def test_no_other_point_is_more_likely(cameras: Any, seed: int) -> None:
    poses, _, point = random_rig(seed)
    # Ten deviations off, so that the minimum is far from where the rays are nearest.
    noise = 0.2 * np.random.default_rng(seed).normal(size=(2, 2))
    pixels = both_pixels(cameras, poses, point) + noise
    whitening = np.linalg.cholesky(np.linalg.inv(PIXEL_COVARIANCES))

    def whitened(place: np.ndarray) -> np.ndarray:
        off = both_pixels(cameras, poses, place) - pixels
        return np.concatenate([whitening[c].T @ off[c] for c in range(2)])

    best = optimize.least_squares(
        whitened, point, jac='3-point', xtol=1e-15, ftol=1e-15, gtol=1e-15
    )
    found = triangulate(cameras, [exact(pose) for pose in poses], pixels, PIXEL_COVARIANCES)
    np.testing.assert_allclose(found.position, best.x, atol=2e-7)
    covariance = np.linalg.inv(best.jac.T @ best.jac)
    np.testing.assert_allclose(
        found.covariance, covariance, rtol=0.0, atol=1e-4 * np.trace(covariance)
    )
    off = both_pixels(cameras, poses, found.position) - pixels
    assert found.residual == pytest.approx(math.sqrt(np.sum(off**2) / 2.0), rel=1e-6)
    # With exact poses the one degree of freedom left is the whole cost.
    assert found.chi_square == pytest.approx(2.0 * best.cost, rel=1e-3)


@pytest.mark.parametrize('cameras', PAIRS[:2])
@pytest.mark.parametrize('seed', range(3))
def test_triangulated_errors_are_as_large_as_their_covariance(cameras: Any, seed: int) -> None:
    random = np.random.default_rng(300 + seed)
    poses, _, point = random_rig(seed)
    truth = both_pixels(cameras, poses, point)
    squares, chi_squares = [], []
    for _ in range(SAMPLES):
        errors = random.multivariate_normal(np.zeros(6), POSE_COVARIANCE, 2)
        pixels = [
            random.multivariate_normal(truth[c], PIXEL_COVARIANCES[c], method='cholesky')
            for c in range(2)
        ]
        taken = [moved_pose(pose, error) for pose, error in zip(poses, errors, strict=True)]
        found = triangulate(cameras, taken, np.array(pixels), PIXEL_COVARIANCES)
        squares.append(normalised_square(found, point))
        chi_squares.append(found.chi_square)
    assert np.mean(squares) == pytest.approx(3.0, abs=0.25)
    assert np.mean(chi_squares) == pytest.approx(1.0, abs=0.15)


def test_order_of_the_cameras_does_not_matter() -> None:
    poses, _, point = random_rig(3)
    cameras = PAIRS[1]
    pixels = both_pixels(cameras, poses, point) + np.array([[0.1, -0.2], [0.05, 0.3]])
    one = triangulate(cameras, poses, pixels, PIXEL_COVARIANCES)
    other = triangulate(cameras[::-1], poses[::-1], pixels[::-1], PIXEL_COVARIANCES[::-1])
    np.testing.assert_allclose(one.position, other.position, atol=1e-9)
    np.testing.assert_allclose(one.covariance, other.covariance, rtol=1e-5, atol=1e-12)
    assert one.chi_square == pytest.approx(other.chi_square, rel=1e-5)


def test_a_point_off_the_plane_is_seen_off_it() -> None:
    cameras, (poses, plane, point) = PAIRS[0], random_rig(2)
    swayed = point + 0.1 * plane.normal
    pixels = both_pixels(cameras, poses, swayed)
    found = triangulate(cameras, poses, pixels, PIXEL_COVARIANCES)
    assert plane.distance(found.position) == pytest.approx(0.1, abs=1e-8)
    inside = locate_in_plane(cameras[0], poses[0], plane, pixels[0], PIXEL_COVARIANCE)
    assert np.linalg.norm(inside.position - (swayed - 0.1 * plane.normal)) > 0.02


def test_pixels_of_different_markers_do_not_fit_together() -> None:
    cameras, (poses, plane, point) = PAIRS[0], random_rig(2)
    # Half a metre across what both cameras span.
    other = point + 0.5 * plane.axes[1]
    pixels = np.array(
        [pixel_of(cameras[0], poses[0], point), pixel_of(cameras[1], poses[1], other)]
    )
    assert triangulate(cameras, poses, pixels, PIXEL_COVARIANCES).chi_square > 1000.0


def test_rays_that_share_no_point_are_refused() -> None:
    cameras, (poses, _, point) = PAIRS[0], random_rig(4)
    pixels = both_pixels(cameras, poses, point)
    with pytest.raises(InputError, match='both rays are parallel'):
        triangulate(cameras, (poses[0], poses[0]), pixels[[0, 0]], PIXEL_COVARIANCES)
    beside = Pose(poses[0].rotation, poses[0].translation + poses[0].rotation[:, 0])
    with pytest.raises(InputError, match='both rays are parallel'):
        triangulate(cameras, (poses[0], beside), pixels[[0, 0]], PIXEL_COVARIANCES)
    turned = [Pose(pose.rotation @ np.diag([-1.0, 1.0, -1.0]), pose.translation) for pose in poses]
    with pytest.raises(InputError, match=r'meet .* m behind the .* camera; check the poses'):
        triangulate(cameras, turned, pixels, PIXEL_COVARIANCES)


@pytest.mark.parametrize(
    ('change', 'text'),
    [
        ({'pixels': [[math.nan, 1.0], [1.0, 1.0]]}, 'pixels = .*finite'),
        ({'pixels': [[1.0, 1.0]]}, r'pixels has shape \(1, 2\)'),
        ({'covariances': np.zeros((2, 2, 2))}, 'covariance of a pixel = .*positive definite'),
        ({'covariances': np.ones((2, 2, 2))}, 'covariance of a pixel = .*positive definite'),
        ({'covariances': -PIXEL_COVARIANCES}, 'covariance of a pixel is none'),
        ({'covariances': np.eye(2)}, r'covariances has shape \(2, 2\)'),
        ({'pixels': [[1231.0, 1019.0], [1e5, 1e5]]}, 'is reached by no ray'),
    ],
)
def test_impossible_pixels_are_refused(change: dict[str, Any], text: str) -> None:
    camera = CAMERAS[0].replace(distortion=(-0.1, 0.0, 0.0, 0.0))
    poses, _, point = random_rig(4)
    values = {
        'pixels': both_pixels((camera, camera), poses, point),
        'covariances': PIXEL_COVARIANCES,
    } | change
    with pytest.raises(InputError, match=text):
        triangulate((camera, camera), poses, **values)
