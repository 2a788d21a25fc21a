"""Poses, planes, rays: exact, and with covariances that Monte Carlo confirms."""

import math

import numpy as np
import pytest
from random_rig import CAMERAS, pixel_of, random_rig
from scipy.spatial.transform import Rotation

from longreach_dynamics.errors import InputError
from longreach_markers.camera.geometry import Plane, Pose, fit_plane, intersect, pixel_ray

SAMPLES = 1200


# Poses


def test_a_camera_that_looks_at_a_point():
    camera, pose = CAMERAS[0], Pose.from_look_at((3.0, -20.0, 2.0), (10.0, 1.0, 6.0))
    np.testing.assert_allclose(pixel_of(camera, pose, (10.0, 1.0, 6.0)), (1231.0, 1019.0))
    u, v = pixel_of(camera, pose, np.array([10.0, 1.0, 6.1]))
    assert u == pytest.approx(1231.0)
    assert v < 1019.0
    # Seen from -y towards +y, +x is to the right.
    assert pixel_of(camera, pose, np.array([10.1, 1.0, 6.0]))[0] > 1231.0
    assert np.linalg.det(pose.rotation) == pytest.approx(1.0)


def quaternions():
    random = np.random.default_rng(8)
    half_turns = [np.append(axis, 0.0) for axis in np.eye(3)]
    diagonal = np.array([1.0, -1.0, 1.0, 0.0]) / math.sqrt(3.0)
    tiny = np.array([1e-9, -2e-9, 1e-9, 1.0])
    drawn = list(random.normal(size=(30, 4)))
    return [q / np.linalg.norm(q) for q in [*half_turns, diagonal, tiny, *drawn]]


@pytest.mark.parametrize('quaternion', quaternions())
def test_quaternions_are_scipys(quaternion):
    pose = Pose.from_quaternion(quaternion, (1.0, 2.0, 3.0))
    matrix = Rotation.from_quat(quaternion).as_matrix()
    np.testing.assert_allclose(pose.rotation, matrix, rtol=0.0, atol=1e-14)
    np.testing.assert_array_equal(pose.translation, (1.0, 2.0, 3.0))
    found = pose.quaternion
    assert found[3] >= 0.0
    sign = math.copysign(1.0, found @ quaternion)
    np.testing.assert_allclose(found, sign * quaternion, atol=1e-14)


# Planes


@pytest.mark.parametrize('seed', range(8))
def test_axes_of_a_plane_are_right_handed(seed):
    normal = np.random.default_rng(seed).normal(size=3)
    plane = Plane(normal / np.linalg.norm(normal), 1.5)
    frame = np.vstack([plane.axes, plane.normal])
    np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-14)
    assert np.linalg.det(frame) == pytest.approx(1.0)
    np.testing.assert_allclose(plane.centroid, 1.5 * plane.normal)


@pytest.mark.parametrize('count', [3, 4, 5, 20])
@pytest.mark.parametrize('seed', range(3))
def test_exact_points_give_their_plane(count, seed):
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
def test_sign_of_a_fitted_normal_follows_its_rule(direction, expected):
    normal = np.array(direction) / np.linalg.norm(direction)
    given = Plane(normal, 3.0)
    places = np.array([[4, 0], [0, 3], [-4, 1], [-1, -3.0]])
    for order in np.random.default_rng(2).permuted(np.tile(np.arange(4), (6, 1)), axis=1):
        fit = fit_plane(given.centroid + places[order] @ given.axes, 0.01)
        wanted = np.array(expected) / np.linalg.norm(expected)
        np.testing.assert_allclose(fit.plane.normal, wanted, atol=1e-12)
        assert fit.plane.offset == pytest.approx(3.0 * float(normal @ fit.plane.normal))


@pytest.mark.parametrize('count', [3, 5, 12])
def test_covariance_of_a_fitted_plane_is_what_monte_carlo_finds(count):
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


# Rays


@pytest.mark.parametrize('camera', CAMERAS, ids=lambda camera: camera.name)
@pytest.mark.parametrize('seed', range(5))
def test_a_ray_runs_through_what_its_pixel_shows(camera, seed):
    (pose, _), plane, point = random_rig(seed)
    origin, direction = pixel_ray(camera, pose, pixel_of(camera, pose, point))
    np.testing.assert_array_equal(origin, pose.translation)
    assert np.linalg.norm(direction) == pytest.approx(1.0, abs=1e-14)
    np.testing.assert_allclose(np.cross(point - origin, direction), np.zeros(3), atol=1e-9)
    np.testing.assert_allclose(intersect(origin, 7.0 * direction, plane), point, atol=1e-9)


@pytest.mark.parametrize('seed', range(3))
def test_rays_are_those_of_the_paper(seed):
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


# What is refused


def meet(origin, direction):
    return intersect(origin, direction, Plane(np.array([0.0, 1.0, 0.0]), 2.0))


EYE, ZERO, UP, FLAT = np.eye(3), np.zeros(3), (0.0, 0.0, 1.0), (0.0, 1.0, 0.0)
SKEW = np.eye(6) + 0.5 * np.diag([1.0] + 4 * [0.0], k=1)
CORNER = [[0, 0, 0], [1, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ('function', 'values', 'text'),
    [
        (Pose, (1.01 * EYE, ZERO), r'R\^T R differs from the identity by 0.0201, allowed'),
        (Pose, (np.diag([1.0, 1.0, -1.0]), ZERO), 'is a reflection: its determinant is -1'),
        (Pose, (np.full((3, 3), math.nan), ZERO), 'rotation = .*allowed: finite numbers'),
        (Pose, (np.eye(4), ZERO), r'rotation has shape \(4, 4\), allowed: \(3, 3\)'),
        (Pose, (EYE, (0.0, math.inf, 0.0)), 'translation = .*finite'),
        (Pose, (EYE, ZERO, EYE), r'covariance of a pose has shape \(3, 3\), allowed: \(6, 6\)'),
        (Pose, (EYE, ZERO, SKEW), 'covariance of a pose is not symmetric'),
        (Pose, (EYE, ZERO, np.diag(5 * [1.0] + [-1e-3])), 'negative eigenvalue'),
        (Pose.from_quaternion, ((1, 0, 0, 1), ZERO), r'norm 1.414, allowed: 1; the order is x, y'),
        (Pose.from_quaternion, ((0, 0, math.nan, 1), ZERO), 'orientation = .*finite'),
        (Pose.from_look_at, ((1, 2, 3), (1, 2, 3), UP), 'equals the position, allowed: another'),
        (Pose.from_look_at, ((1, 2, 3), (1, 2, 9), UP), 'is parallel to the line of sight'),
        (Pose.from_look_at, ((1, 2, 3), (1, 2, 9), ZERO), 'is parallel to the line of sight'),
        (Pose.from_look_at, ((1, 2, 3), (1, 2, math.nan), UP), 'target = .*finite'),
        (Plane, ((0.0, 1.0, 1.0), 1.0), r'normal = .* has length 1.414, allowed: 1'),
        (Plane, ((0.0, math.nan, 1.0), 1.0), 'normal = .*finite'),
        (Plane, (FLAT, math.inf), 'offset = inf m'),
        (Plane, (FLAT, 1.0, None, (0.0, 1.5, 0.0)), 'lies 0.5 m off the plane'),
        (Plane, (FLAT, 1.0, -EYE), 'covariance of a plane is not a covariance'),
        (fit_plane, (np.zeros((2, 3)), 0.01), '2 points, allowed for a plane: 3 or more'),
        (fit_plane, (np.zeros((4, 2)), 0.01), r'points have shape \(4, 2\)'),
        (fit_plane, ([[0, 0, 0], [1, 0, 0], [2, 0, 0]], 0.01), 'points lie on a line'),
        (
            fit_plane,
            ([[0, 0, 0], [9, 0, 0.02], [18, 0, -0.02]], 0.01),
            r'0.0141 m .* farther apart',
        ),
        (fit_plane, ([*CORNER[:2], [0, math.nan, 1]], 0.01), r'points\[2\] = .*finite'),
        (fit_plane, ([*CORNER, [1, 1, 1]], 0.01), 'do not lie in a plane.*check their'),
        (fit_plane, (CORNER, 0.0), r'deviation = 0.0 m, allowed: \(0, inf\) m'),
        (meet, ((3.0, 2.0, 1.0), FLAT), r'plane passes through the camera \(distance 0 m\)'),
        (meet, ((0.0, -5.0, 0.0), (1.0, 0.0, 0.3)), r'is parallel to the plane \(cosine'),
        (meet, ((0.0, -5.0, 0.0), (0.0, -1.0, 0.1)), r'meets it 7\.03 m behind the camera'),
        (meet, ((0.0, -5.0, 0.0), ZERO), 'direction = 0'),
        (meet, ((0.0, -5.0, math.nan), FLAT), 'origin = .*finite'),
    ],
)
def test_what_cannot_be_is_refused(function, values, text):
    with pytest.raises(InputError, match=text):
        function(*values)
