"""Points in space from pixels: exact, and with covariances that Monte Carlo confirms."""

import math

import numpy as np
import pytest
from known_rig import moved_pose
from scipy import optimize
from scipy.spatial.transform import Rotation

from longreach_dynamics.errors import InputError
from longreach_markers.camera.geometry import Plane, Pose, fit_plane, intersect, pixel_ray
from longreach_markers.camera.model import Camera
from longreach_markers.camera.triangulation import locate_in_plane, triangulate

# One of each model.
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
# Errors of a good set-up: 0.1 mrad and 3 mm of poses, 0.3 mrad and 2 mm of the plane.
POSE_COVARIANCE = np.diag([1e-8, 1.5e-8, 0.5e-8, 9e-6, 4e-6, 9e-6])
POSE_COVARIANCE[0, 4] = POSE_COVARIANCE[4, 0] = 1e-7
PLANE_COVARIANCE = np.array([[9e-8, 2e-8, 1e-8], [2e-8, 4e-8, -2e-8], [1e-8, -2e-8, 4e-6]])
# The same of pixels: 0.02 px.
PIXEL_COVARIANCE = np.array([[4e-4, 1e-4], [1e-4, 2e-4]])
PIXEL_COVARIANCES = np.array([PIXEL_COVARIANCE, [[1e-4, -5e-5], [-5e-5, 3e-4]]])
SAMPLES = 1200


def random_rig(seed):
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


def pixel_of(camera, pose, point):
    return camera.project(pose.to_camera(point))


def moved_plane(plane, error):
    normal = Rotation.from_rotvec(error[:2] @ plane.axes).apply(plane.normal)
    centroid = plane.centroid + error[2] * plane.normal
    return Plane(normal, float(normal @ centroid), plane.covariance, centroid)


def normalised_square(location, truth):
    error = location.position - truth
    return float(error @ np.linalg.solve(location.covariance, error))


# One camera and a plane


@pytest.mark.parametrize('camera', CAMERAS, ids=lambda camera: camera.name)
@pytest.mark.parametrize('seed', range(4))
def test_a_point_of_a_plane_has_the_covariance_of_the_derivatives(camera, seed):
    (pose, _), plane, point = random_rig(seed)
    pixel = pixel_of(camera, pose, point)

    def place(error):
        origin, along = pixel_ray(camera, moved_pose(pose, error[2:8]), pixel + error[:2])
        return intersect(origin, 7.0 * along, moved_plane(plane, error[8:]))

    np.testing.assert_allclose(place(np.zeros(11)), point, atol=1e-9)
    steps = 1e-5 * np.diag([100.0] * 2 + [1.0] * 9)
    derivatives = np.array([place(step) - place(-step) for step in steps]) / 2e-5
    derivatives[:2] /= 100.0
    for derivative, row in zip(derivatives, np.eye(11), strict=True):
        one = np.diag(row)
        own = Pose(pose.rotation, pose.translation, one[2:8, 2:8])
        flat = Plane(plane.normal, plane.offset, one[8:, 8:], plane.centroid)
        found = locate_in_plane(camera, own, flat, pixel, one[:2, :2])
        expected = np.outer(derivative, derivative)
        most = 1e-6 * max(np.trace(expected), 1e-3)
        np.testing.assert_allclose(found.covariance, expected, rtol=0.0, atol=most)
        np.testing.assert_allclose(found.position, point, atol=1e-9)
        assert math.isnan(found.residual)


# Two cameras


def both_pixels(cameras, poses, point):
    return np.array([pixel_of(c, p, point) for c, p in zip(cameras, poses, strict=True)])


def rig_of(count, seed):
    """The first two cameras of a random rig and others around them, and a point that all see."""
    random = np.random.default_rng(600 + seed)
    (first, second), _, point = random_rig(seed)
    places = [(10.0, -19.0, 9.0), (0.0, -17.0, 6.0), (20.0, -18.0, 7.0), (10.0, -24.0, -3.0)]
    others = [
        Pose.from_look_at(place, point + 0.5 * random.normal(size=3), (0.0, 0.0, 1.0))
        for place in places
    ]
    poses = [first, second, *(Pose(p.rotation, p.translation, POSE_COVARIANCE) for p in others)]
    return [CAMERAS[(k + count) % 4] for k in range(count)], poses[:count], point


@pytest.mark.parametrize('count', [2, 3, 4, 6])
def test_no_other_point_is_more_likely(count):
    cameras, poses, point = rig_of(count, 1)
    noise = 0.2 * np.random.default_rng(count).normal(size=(count, 2))
    pixels = both_pixels(cameras, poses, point) + noise
    covariances = np.array([PIXEL_COVARIANCES[k % 2] for k in range(count)])
    whitening = np.linalg.cholesky(np.linalg.inv(covariances))

    def whitened(place):
        off = both_pixels(cameras, poses, place) - pixels
        return np.concatenate([w.T @ one for w, one in zip(whitening, off, strict=True)])

    best = optimize.least_squares(
        whitened, point, jac='3-point', xtol=1e-15, ftol=1e-15, gtol=1e-15
    )
    exact = [Pose(pose.rotation, pose.translation) for pose in poses]
    found = triangulate(cameras, exact, pixels, covariances)
    np.testing.assert_allclose(found.position, best.x, atol=2e-7)
    covariance = np.linalg.inv(best.jac.T @ best.jac)
    np.testing.assert_allclose(found.covariance, covariance, atol=1e-4 * np.trace(covariance))
    off = both_pixels(cameras, poses, found.position) - pixels
    assert found.residual == pytest.approx(math.sqrt(np.sum(off**2) / count), rel=1e-6)
    assert found.chi_square == pytest.approx(2.0 * best.cost / (2 * count - 3), rel=1e-3)
    assert math.isnan(found.gap) == (count > 2)
    # The order does not matter.
    turned = triangulate(cameras[::-1], poses[::-1], pixels[::-1], covariances[::-1])
    again = triangulate(cameras, poses, pixels, covariances)
    np.testing.assert_allclose(turned.position, again.position, atol=1e-8)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize('seed', range(4))
def test_errors_are_as_stated_and_smaller_with_three_cameras(seed):
    random = np.random.default_rng(700 + seed)
    cameras, poses, point = rig_of(3, seed)
    truth = both_pixels(cameras, poses, point)
    found = {2: [], 3: []}
    for _ in range(SAMPLES):
        moves = random.multivariate_normal(np.zeros(6), POSE_COVARIANCE, 3)
        pixels = truth + random.multivariate_normal(np.zeros(2), PIXEL_COVARIANCE, 3)
        taken = [moved_pose(pose, move) for pose, move in zip(poses, moves, strict=True)]
        for count, own in found.items():
            given = (one[:count] for one in (cameras, taken, pixels, [PIXEL_COVARIANCE] * 3))
            own.append(triangulate(*given))
    squares = {}
    for count, own in found.items():
        squares[count] = np.sum([(one.position - point) ** 2 for one in own])
        normalised = [normalised_square(one, point) for one in own]
        assert np.mean(normalised) == pytest.approx(3.0, abs=0.25)
        chi_square = np.mean([one.chi_square for one in own])
        assert chi_square == pytest.approx(1.0, abs=0.15 if count == 2 else 0.1)
    assert squares[3] < 0.8 * squares[2]


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
    intersect(origin, direction, Plane(np.array([0.0, 1.0, 0.0]), 2.0))


def locate(offset, pixel, covariance):
    pose = Pose.from_look_at((0.0, -22.0, 0.0), (0.0, 0.0, 0.0))
    locate_in_plane(BENT, pose, Plane(np.array([0.0, 1.0, 0.0]), offset), pixel, covariance)


def meet_both(count=2, moved=lambda one, other: (one, other), **given):
    """Triangulate a point with the poses of its cameras moved, and other values."""
    poses, _, point = random_rig(4)
    pixels = both_pixels((BENT, BENT), poses, point)
    values = {'pixels': pixels[:count], 'covariances': PIXEL_COVARIANCES[:count], **given}
    triangulate((BENT, BENT)[:count], moved(*poses)[:count], **values)


def beside(one, _):
    return one, Pose(one.rotation, one.translation + one.rotation[:, 0])


def turned(*poses):
    return [Pose(one.rotation @ np.diag([-1.0, 1.0, -1.0]), one.translation) for one in poses]


BENT = CAMERAS[0].replace(distortion=(-0.1, 0.0, 0.0, 0.0))
AT, FAR = (1231.0, 1019.0), (1e5, 1e5)
EYE, ZERO, UP, FLAT = np.eye(3), np.zeros(3), (0.0, 0.0, 1.0), (0.0, 1.0, 0.0)
SKEW = np.eye(6) + 0.5 * np.diag([1.0] + 4 * [0.0], k=1)
CORNER = [[0, 0, 0], [1, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ('function', 'values', 'text'),
    [
        (Pose, (1.01 * EYE, ZERO), r'R\^T R differs from the identity by 0.0201, allowed'),
        (Pose, (np.diag([1.0, 1.0, -1.0]), ZERO), 'is a reflection: its determinant is -1'),
        (Pose, (np.full((3, 3), math.nan), ZERO), 'rotation.* = nan, allowed: finite numbers'),
        (Pose, (np.eye(4), ZERO), r'rotation has shape \(4, 4\), allowed: \(3, 3\)'),
        (Pose, (EYE, (0.0, math.inf, 0.0)), 'translation.*finite'),
        (Pose, (EYE, ZERO, EYE), r'covariance of a pose has shape \(3, 3\), allowed: \(6, 6\)'),
        (Pose, (EYE, ZERO, SKEW), 'covariance of a pose is not symmetric'),
        (Pose, (EYE, ZERO, np.diag(5 * [1.0] + [-1e-3])), 'negative eigenvalue'),
        (Pose.from_quaternion, ((1, 0, 0, 1), ZERO), r'norm 1.414, allowed: 1; the order is x, y'),
        (Pose.from_quaternion, ((0, 0, math.nan, 1), ZERO), 'orientation.*finite'),
        (Pose.from_look_at, ((1, 2, 3), (1, 2, 3), UP), 'equals the position, allowed: another'),
        (Pose.from_look_at, ((1, 2, 3), (1, 2, 9), UP), 'is parallel to the line of sight'),
        (Pose.from_look_at, ((1, 2, 3), (1, 2, 9), ZERO), 'is parallel to the line of sight'),
        (Pose.from_look_at, ((1, 2, 3), (1, 2, math.nan), UP), 'target.*finite'),
        (Plane, ((0.0, 1.0, 1.0), 1.0), r'normal = .* has length 1.414, allowed: 1'),
        (Plane, ((0.0, math.nan, 1.0), 1.0), 'normal.*finite'),
        (Plane, (FLAT, math.inf), 'offset = inf m'),
        (Plane, (FLAT, 1.0, None, (0.0, 1.5, 0.0)), 'lies 0.5 m off the plane'),
        (Plane, (FLAT, 1.0, -EYE), 'covariance of a plane is not a covariance'),
        (fit_plane, (np.zeros((2, 3)), 0.01), '2 points, allowed for a plane: 3 or more'),
        (fit_plane, (np.zeros((4, 2)), 0.01), r'points have shape \(4, 2\)'),
        (fit_plane, ([[0, 0, 0], [1, 0, 0], [2, 0, 0]], 0.01), 'points lie on a line'),
        (fit_plane, ([[0, 0, 0], [9, 0, 0.02], [18, 0, -0.02]], 0.01), '0.0141 m .* farther'),
        (fit_plane, ([*CORNER[:2], [0, math.nan, 1]], 0.01), r'points\[2\].*finite'),
        (fit_plane, ([*CORNER, [1, 1, 1]], 0.01), 'do not lie in a plane.*check their'),
        (fit_plane, (CORNER, 0.0), r'deviation = 0 m, allowed: \(0, inf\) m'),
        (meet, ((3.0, 2.0, 1.0), FLAT), r'plane passes through the camera \(distance 0 m\)'),
        (meet, ((0.0, -5.0, 0.0), (1.0, 0.0, 0.3)), r'is parallel to the plane \(cosine'),
        (meet, ((0.0, -5.0, 0.0), (0.0, -1.0, 0.1)), r'meets it 7\.03 m behind the camera'),
        (meet, ((0.0, -5.0, 0.0), ZERO), 'direction = 0'),
        (meet, ((0.0, -5.0, math.nan), FLAT), 'origin.*finite'),
        (locate, (-30.0, AT, np.eye(2)), 'meets it 8 m behind the camera'),
        (locate, (0.0, (math.nan, 1019.0), np.eye(2)), 'pixel.*finite'),
        (locate, (0.0, FAR, np.eye(2)), 'has no ray'),
        (locate, (0.0, AT, [[1, 2], [2, 1]]), 'pixel .* negative eigenv'),
        (meet_both, {'moved': beside, 'pixels': [AT, AT]}, 'both rays are parallel'),
        (meet_both, {'count': 1}, r'1 cameras .* one camera needs a plane'),
        (
            meet_both,
            {'moved': lambda one, other: (one, Pose(other.rotation, one.translation))},
            'both rays start at the same point, allowed: two',
        ),
        (meet_both, {'moved': turned}, r'meet .* m behind the .* camera; check the poses'),
        (meet_both, {'pixels': [[math.nan, 1.0], [1.0, 1.0]]}, 'pixels.*finite'),
        (meet_both, {'pixels': [[1.0, 1.0]]}, r'pixels has shape \(1, 2\)'),
        (meet_both, {'covariances': np.ones((2, 2, 2))}, 'of a pixel = .*positive definite'),
        (meet_both, {'covariances': -PIXEL_COVARIANCES}, 'of a pixel is not a covariance'),
        (meet_both, {'covariances': np.eye(2)}, r'covariances has shape \(2, 2\)'),
        (meet_both, {'pixels': [AT, FAR]}, 'has no ray'),
    ],
)
def test_what_cannot_be_is_refused(function, values, text):
    with pytest.raises(InputError, match=text):
        function(**values) if isinstance(values, dict) else function(*values)
