"""
Poses of cameras, rays, planes, and points in space from pixels, with their covariances.

A pose is T_world_cam, p_world = R p_cam + t with the camera's optical frame: x to the right, y
down, z forward. t is the camera's centre, Henikl 2015, (31), and R the transpose of his. A plane
is n.p = lambda, (36). Lengths are metres of the world's frame, pixels have distortion.

Covariances are carried to first order, by analytic Jacobians. What has none counts as exact: a
result's covariance holds only what was given. Errors of pixels, of each pose and of the plane
count as independent of each other. Small errors have these coordinates:

- a pose's: rotation vector w about the axes of the camera's frame [rad], R exp([w]), and t + d in
  the world [m];
- a plane's: rotations about its two in-plane axes through its centroid [rad], right-handed, and a
  shift along its normal there [m].
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import NamedTuple, NoReturn

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from longreach_dynamics.errors import InputError
from longreach_dynamics.kernels import kernel
from longreach_dynamics.linear_algebra import cholesky, cholesky_solve
from longreach_vision.cameras import (
    Camera,
    distort_point,
    projection_jacobian,
    undistort_point,
)

__all__ = [
    'Location',
    'Plane',
    'PlaneFit',
    'Pose',
    'fit_plane',
    'intersect',
    'locate_in_plane',
    'pixel_ray',
    'triangulate',
    'warm_up',
]

# What rounding to four digits leaves of a rotation matrix, or to two of a quaternion.
_ROTATION_ERROR, _QUATERNION_ERROR = 1e-3, 1e-2
# Part of its length by which a normal may be off, and metres by which a centroid may lie off.
_NORMAL_ERROR, _CENTROID_ERROR = 1e-2, 1e-3
# Cosine of a ray to a plane's normal, distance of a camera from the plane [m], and angle between
# two rays [rad], below which there is no point to speak of.
_PARALLEL, _THROUGH, _SAME_RAY = 1e-6, 1e-6, 1e-6
# A component of a normal that is larger than this decides its sign.
_SIGN = 0.1
# Points spread across a line by fewer of their deviations give no plane.
_SPREAD = 3.0
# What rounding leaves of a covariance's symmetry and of eigenvalues that are 0, in relation.
_ASYMMETRY = 1e-6
_MAX_STEPS = 50


@dataclasses.dataclass(frozen=True, eq=False)
class Pose:
    """
    The pose T_world_cam of a camera: p_world = R p_cam + t.

    Parameters
    ----------
    rotation : ndarray, shape (3, 3)
        R; columns are the axes of the camera's optical frame in the world. Small errors of
        rounding are taken out.
    translation : ndarray, shape (3,)
        t, the camera's centre in the world [m].
    covariance : ndarray, shape (6, 6), optional
        Of rotation vector in the camera's frame [rad] and translation in the world [m].

    Raises
    ------
    InputError
        For what is no rotation, with by how much, and for numbers that are not finite.
    """

    rotation: np.ndarray
    translation: np.ndarray
    covariance: np.ndarray | None = None

    def __post_init__(self) -> None:
        """Check the arrays and keep copies."""
        rotation = _array(self.rotation, (3, 3), 'rotation')
        error = float(np.abs(rotation.T @ rotation - np.eye(3)).max())
        if not error < _ROTATION_ERROR:
            raise InputError(
                f'rotation is none: R^T R differs from the identity by {error:.3g}, allowed:'
                f' [0, {_ROTATION_ERROR:g}); give it with more digits, or as a quaternion'
            )
        if np.linalg.det(rotation) < 0.0:
            raise InputError('rotation mirrors: its determinant is -1, allowed: 1; swap two axes')
        left, _, right = np.linalg.svd(rotation)
        _keep(self, 'rotation', left @ right)
        _keep(self, 'translation', _array(self.translation, (3,), 'translation'))
        if self.covariance is not None:
            _keep(self, 'covariance', _covariance(self.covariance, 6, 'covariance of a pose'))

    @classmethod
    def from_look_at(
        cls, position: ArrayLike, target: ArrayLike, up: ArrayLike = (0.0, 0.0, 1.0)
    ) -> Pose:
        """
        Return the pose of a level camera that looks at a point.

        Parameters
        ----------
        position, target : array_like, shape (3,)
            The camera's centre and a point on its axis, in the world [m].
        up : array_like, shape (3,)
            Upwards in the image.

        Raises
        ------
        InputError
            When the target is the position, or lies exactly upwards or downwards of it.
        """
        centre = _array(position, (3,), 'position')
        forward = _array(target, (3,), 'target') - centre
        upwards = _array(up, (3,), 'up')
        right = np.cross(forward, upwards)
        distance, width = np.linalg.norm(forward), np.linalg.norm(right)
        if not distance > 0.0:
            raise InputError(f'target = {centre.tolist()} is the position, allowed: another point')
        if not width > 1e-9 * distance * np.linalg.norm(upwards):
            raise InputError(
                f'up = {upwards.tolist()} lies along the line of sight, allowed: across it'
            )
        forward, right = forward / distance, right / width
        return cls(np.column_stack([right, np.cross(forward, right), forward]), centre)

    @classmethod
    def from_quaternion(
        cls, xyzw: ArrayLike, position: ArrayLike, covariance: ArrayLike | None = None
    ) -> Pose:
        """
        Return the pose with an orientation as geometry_msgs/Quaternion has it, x y z w.

        Raises
        ------
        InputError
            For a norm that is not 1 but for rounding.
        """
        quaternion = _array(xyzw, (4,), 'orientation')
        norm = math.hypot(*quaternion)
        if not abs(norm - 1.0) < _QUATERNION_ERROR:
            raise InputError(
                f'orientation = {quaternion.tolist()} has norm {norm:.4g}, allowed: 1; the'
                ' order is x, y, z, w'
            )
        x, y, z, w = quaternion / norm
        rotation = np.array(
            [
                [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)],
                [2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)],
                [2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)],
            ]
        )
        if covariance is not None:
            covariance = np.asarray(covariance)
        return cls(rotation, np.asarray(position), covariance)

    @property
    def quaternion(self) -> np.ndarray:
        """The orientation x y z w, shape (4,), with w not negative."""
        R = self.rotation
        # The rows are the quaternion times four of each of its elements: the longest is exact.
        rows = np.array(
            [
                [
                    1.0 + R[0, 0] - R[1, 1] - R[2, 2],
                    R[0, 1] + R[1, 0],
                    R[0, 2] + R[2, 0],
                    R[2, 1] - R[1, 2],
                ],
                [
                    R[0, 1] + R[1, 0],
                    1.0 - R[0, 0] + R[1, 1] - R[2, 2],
                    R[1, 2] + R[2, 1],
                    R[0, 2] - R[2, 0],
                ],
                [
                    R[0, 2] + R[2, 0],
                    R[1, 2] + R[2, 1],
                    1.0 - R[0, 0] - R[1, 1] + R[2, 2],
                    R[1, 0] - R[0, 1],
                ],
                [R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1], 1.0 + np.trace(R)],
            ]
        )
        longest = rows[np.argmax(np.diag(rows))]
        quaternion = longest / np.linalg.norm(longest)
        return np.asarray(-quaternion if quaternion[3] < 0.0 else quaternion)

    @property
    def matrix(self) -> np.ndarray:
        """T_world_cam, shape (4, 4), of homogeneous coordinates."""
        matrix = np.eye(4)
        matrix[:3, :3], matrix[:3, 3] = self.rotation, self.translation
        return matrix

    def to_camera(self, points: ArrayLike) -> np.ndarray:
        """Return points (..., 3) of the world [m] in the camera's frame, Henikl 2015, (29)."""
        return np.asarray((np.asarray(points) - self.translation) @ self.rotation)

    def to_world(self, points: ArrayLike) -> np.ndarray:
        """Return points (..., 3) of the camera's frame [m] in the world."""
        return np.asarray(np.asarray(points) @ self.rotation.T + self.translation)


@dataclasses.dataclass(frozen=True, eq=False)
class Plane:
    """
    A plane n.p = lambda, Henikl 2015, (36).

    Parameters
    ----------
    normal : ndarray, shape (3,)
        n. Its length is made 1, if it is so but for rounding; the offset is divided by it, too.
    offset : float
        lambda [m].
    covariance : ndarray, shape (3, 3), optional
        Of rotations about the two :attr:`axes` through the centroid [rad], and of a shift along
        the normal there [m].
    centroid : ndarray, shape (3,), optional
        A point of the plane [m], that of the measurements; by default the one nearest to the
        origin.

    Raises
    ------
    InputError
        For a normal of another length, a centroid off the plane, and numbers that are not finite.
    """

    normal: np.ndarray
    offset: float
    covariance: np.ndarray | None = None
    centroid: np.ndarray = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        """Check the numbers and keep copies."""
        normal = _array(self.normal, (3,), 'normal')
        length = math.hypot(*normal)
        if not abs(length - 1.0) < _NORMAL_ERROR:
            raise InputError(f'normal = {normal.tolist()} has length {length:.4g}, allowed: 1')
        if not math.isfinite(self.offset):
            raise InputError(f'offset = {self.offset} m, allowed: a finite number')
        normal, offset = normal / length, float(self.offset) / length
        _keep(self, 'normal', normal)
        object.__setattr__(self, 'offset', offset)
        centroid = offset * normal
        if self.centroid is not None:
            centroid = _array(self.centroid, (3,), 'centroid')
            error = float(normal @ centroid) - offset
            if not abs(error) < _CENTROID_ERROR:
                raise InputError(
                    f'centroid = {centroid.tolist()} lies {error:.3g} m off the plane, allowed:'
                    f' {_CENTROID_ERROR:g} m'
                )
            centroid = centroid - error * normal
        _keep(self, 'centroid', centroid)
        if self.covariance is not None:
            _keep(self, 'covariance', _covariance(self.covariance, 3, 'covariance of a plane'))

    @functools.cached_property
    def axes(self) -> np.ndarray:
        """
        The two in-plane axes, shape (2, 3), right-handed with the normal.

        The first is the world's x axis laid into the plane; its y axis, where the normal is
        within 26 degrees of x.
        """
        n = self.normal
        along = np.array([0.0, 1.0, 0.0]) if abs(n[0]) > 0.9 else np.array([1.0, 0.0, 0.0])
        first = along - (along @ n) * n
        first /= np.linalg.norm(first)
        axes = np.array([first, np.cross(n, first)])
        axes.setflags(write=False)
        return axes

    def distance(self, points: ArrayLike) -> np.ndarray:
        """Return how far points (..., 3) [m] lie off the plane along its normal, shape (...)."""
        return np.asarray(np.asarray(points) @ self.normal - self.offset)


class PlaneFit(NamedTuple):
    """A plane through measured points."""

    plane: Plane
    residuals: np.ndarray  # (n,) of the points, along the normal [m]
    rms: float  # of the residuals over n - 3 degrees of freedom [m]; NaN for three points


class Location(NamedTuple):
    """A point in space."""

    position: np.ndarray  # (3,) in the world [m]
    covariance: np.ndarray  # (3, 3) [m^2]
    residual: float = math.nan  # RMS distance of pixels from the reprojected point [px]
    # Squared distance of both rays over its variance, 1 degree of freedom: on average 1 when
    # pixels and poses are as good as their covariances say.
    chi_square: float = math.nan


def fit_plane(points: ArrayLike, deviation: float) -> PlaneFit:
    """
    Return the plane with the least squared distances to points.

    The normal's sign depends on its direction only: of its components y, x and z, the first that
    is larger than 0.1 in size is positive. The plane of a boom has a normal along +y.

    Parameters
    ----------
    points : array_like, shape (n, 3)
        Three or more [m].
    deviation : float
        Standard deviation of each coordinate [m]; the plane's covariance follows from it.

    Raises
    ------
    InputError
        For fewer than three points, for points that lie along a line or in no plane as far as
        their deviation can tell, and numbers that are not finite.
    """
    array = np.array(points, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != 3:
        raise InputError(f'points have shape {array.shape}, allowed: (n, 3)')
    count = array.shape[0]
    if count < 3:
        raise InputError(f'{count} points, allowed for a plane: 3 or more')
    if not np.isfinite(array).all():
        worst = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
        raise InputError(f'points[{worst}] = {array[worst].tolist()}, allowed: finite numbers')
    if not 0.0 < deviation < math.inf:
        raise InputError(f'deviation = {deviation} m, allowed: (0, inf) m')
    centroid = array.mean(axis=0)
    _, sizes, directions = np.linalg.svd(array - centroid)
    spread, thickness = sizes[1:] / math.sqrt(count)
    if not spread > _SPREAD * deviation:
        raise InputError(
            f'points lie along a line: they spread {spread:.3g} m across it, allowed for a'
            f' deviation of {deviation:g} m: above {_SPREAD * deviation:.3g} m; measure points'
            ' farther apart'
        )
    if not spread > _SPREAD * thickness:
        raise InputError(
            f'points lie in no plane: they spread {spread:.3g} m within it and {thickness:.3g} m'
            ' off it; is one of them mistyped?'
        )
    normal = _with_sign(directions[2])
    plane = Plane(normal, float(normal @ centroid), None, centroid)
    residuals = plane.distance(array)
    inside = (array - centroid) @ plane.axes.T
    # Of the slopes along both axes; the plane turns about the one by that along the other.
    slopes = deviation**2 * np.linalg.inv(inside.T @ inside)
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    covariance = np.zeros((3, 3))
    covariance[:2, :2] = turn @ slopes @ turn.T
    covariance[2, 2] = deviation**2 / count
    freedom = count - 3
    rms = math.sqrt(float(residuals @ residuals) / freedom) if freedom else math.nan
    return PlaneFit(dataclasses.replace(plane, covariance=covariance), residuals, rms)


def _with_sign(normal: np.ndarray) -> np.ndarray:
    """Return a normal (3,) or its opposite, by the rule of :func:`fit_plane`."""
    for i in (1, 0, 2):
        if abs(normal[i]) > _SIGN:
            return np.asarray(normal * math.copysign(1.0, normal[i]))
    return normal


def pixel_ray(camera: Camera, pose: Pose, pixel: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """
    Return the ray that a pixel sees, Henikl 2015, (31) to (34).

    Parameters
    ----------
    camera : Camera
    pose : Pose
    pixel : array_like, shape (2,)
        u, v with distortion [px].

    Returns
    -------
    origin : ndarray, shape (3,)
        The camera's centre in the world [m].
    direction : ndarray, shape (3,)
        Of length 1, in the world.

    Raises
    ------
    InputError
        For a pixel that is not finite or that no ray reaches.
    """
    x, y = camera.undistort(_array(pixel, (2,), 'pixel'))
    direction = pose.rotation @ np.array([x, y, 1.0])
    return pose.translation.copy(), direction / np.linalg.norm(direction)


def intersect(origin: ArrayLike, direction: ArrayLike, plane: Plane) -> np.ndarray:
    """
    Return the point (3,) [m] where a ray meets a plane, Henikl 2015, (35) to (38).

    Parameters
    ----------
    origin : array_like, shape (3,)
        [m].
    direction : array_like, shape (3,)
        Of any length.
    plane : Plane

    Raises
    ------
    InputError
        For a plane through the origin, a ray parallel to it, and a plane behind the origin.
    """
    start, along = _array(origin, (3,), 'origin'), _array(direction, (3,), 'direction')
    length = float(np.linalg.norm(along))
    if not length > 0.0:
        raise InputError('direction = 0, allowed: a vector that is not 0')
    along = along / length
    away = plane.offset - float(plane.normal @ start)
    cosine = float(plane.normal @ along)
    _check_meeting(away, cosine)
    return np.asarray(start + away / cosine * along)


def _check_meeting(away: float, cosine: float) -> None:
    """Raise InputError unless a ray meets a plane a distance [m] away, at a cosine to n."""
    if not abs(away) > _THROUGH:
        raise InputError(
            f'the plane passes through the camera ({away:.3g} m off), allowed: one that the camera'
            ' looks at from outside'
        )
    if not abs(cosine) > _PARALLEL:
        raise InputError(
            f'the ray is parallel to the plane (cosine to the normal {cosine:.3g}), allowed: one'
            ' that meets it'
        )
    if not away / cosine > 0.0:
        raise InputError(
            f'the ray leaves the plane: it would meet it {-away / cosine:.3g} m behind the camera;'
            " check the camera's orientation, and the plane's offset"
        )


@njit
def _propagate(jacobian, covariance, total):  # type: ignore[no-untyped-def]
    """Add J S J^T (n, n) of a Jacobian (n, m) and a covariance (m, m)."""
    n, m = jacobian.shape
    for i in range(n):
        for j in range(i + 1):
            added = 0.0
            for k in range(m):
                for h in range(m):
                    added += jacobian[i, k] * covariance[k, h] * jacobian[j, h]
            total[i, j] += added
            if j < i:
                total[j, i] += added


@kernel
def _locate(packed, R, t, pose_cov, plane, plane_cov, pixel, pixel_cov, position, covariance):  # type: ignore[no-untyped-def]
    """
    Fill position (3,) and covariance (3, 3); return the plane's distance and the ray's cosine.

    ``plane`` (13,) holds normal, offset, centroid and both axes.
    """
    n, offset, centroid, axes = plane[:3], plane[3], plane[4:7], plane[7:].reshape((2, 3))
    x, y = undistort_point(packed, pixel[0], pixel[1])
    ray = R[:, 0] * x + R[:, 1] * y + R[:, 2]
    along, away = np.sum(n * ray), offset - np.sum(n * t)
    cosine = along / math.sqrt(x * x + y * y + 1.0)
    if not (abs(away) > _THROUGH and abs(cosine) > _PARALLEL and away / cosine > 0.0):
        return away, cosine
    depth = away / along
    position[:] = t + depth * ray
    ux, uy, vx, vy = projection_jacobian(packed, x, y)
    area = ux * vy - uy * vx
    # By pixel, rotation vector and translation: how the ray moves at this depth, and then the
    # point, which slides along the ray into the plane again.
    by_ray = np.zeros((3, 8))
    by_ray[:, 0] = depth / area * (R[:, 0] * vy - R[:, 1] * vx)
    by_ray[:, 1] = depth / area * (R[:, 1] * ux - R[:, 0] * uy)
    by_ray[:, 2] = depth * (R[:, 2] * y - R[:, 1])
    by_ray[:, 3] = depth * (R[:, 0] - R[:, 2] * x)
    by_ray[:, 4] = depth * (R[:, 1] * x - R[:, 0] * y)
    for i in range(3):
        by_ray[i, 5 + i] = 1.0
    for j in range(8):
        by_ray[:, j] -= np.sum(n * by_ray[:, j]) / along * ray
    by_plane = np.empty((3, 3))
    by_plane[:, 0] = np.sum(axes[1] * (position - centroid)) / along * ray
    by_plane[:, 1] = -np.sum(axes[0] * (position - centroid)) / along * ray
    by_plane[:, 2] = ray / along
    covariance[:] = 0.0
    _propagate(by_ray[:, :2], pixel_cov, covariance)
    _propagate(by_ray[:, 2:], pose_cov, covariance)
    _propagate(by_plane, plane_cov, covariance)
    return away, cosine


def locate_in_plane(
    camera: Camera, pose: Pose, plane: Plane, pixel: ArrayLike, covariance: ArrayLike
) -> Location:
    """
    Return the point of a plane that a pixel shows, Henikl 2015, (38).

    Parameters
    ----------
    camera : Camera
    pose : Pose
    plane : Plane
    pixel : array_like, shape (2,)
        u, v with distortion [px].
    covariance : array_like, shape (2, 2)
        Of the pixel [px^2].

    Returns
    -------
    Location
        With the covariance from pixel, pose and plane. That of an exact plane is singular across
        it.

    Raises
    ------
    InputError
        As :func:`pixel_ray` and :func:`intersect`.
    """
    place = _array(pixel, (2,), 'pixel')
    pixel_covariance = _covariance(covariance, 2, 'covariance of a pixel')
    position, result = np.empty(3), np.empty((3, 3))
    away, cosine = _locate(
        camera.packed,
        pose.rotation,
        pose.translation,
        _or_zeros(pose.covariance, 6),
        np.concatenate([plane.normal, [plane.offset], plane.centroid, plane.axes.ravel()]),
        _or_zeros(plane.covariance, 3),
        place,
        pixel_covariance,
        position,
        result,
    )
    if math.isnan(cosine):
        camera.undistort(place)
    _check_meeting(away, cosine)
    return Location(position, result)


@njit
def _project(packed, R, t, point, jacobian):  # type: ignore[no-untyped-def]
    """
    Return the pixel (u, v) of a point in the world; NaN if there is none.

    Fills the Jacobian (2, 9) by the point, by the pose's rotation vector and by its translation.
    """
    p = np.empty(3)
    for i in range(3):
        p[i] = 0.0
        for k in range(3):
            p[i] += R[k, i] * (point[k] - t[k])
    if not p[2] > 0.0:
        return math.nan, math.nan
    x, y = p[0] / p[2], p[1] / p[2]
    u, v = distort_point(packed, x, y)
    ux, uy, vx, vy = projection_jacobian(packed, x, y)
    for i in range(2):
        by_x, by_y = (ux, uy) if i == 0 else (vx, vy)
        g0, g1, g2 = by_x / p[2], by_y / p[2], -(by_x * x + by_y * y) / p[2]
        for k in range(3):
            jacobian[i, k] = g0 * R[k, 0] + g1 * R[k, 1] + g2 * R[k, 2]
            jacobian[i, 6 + k] = -jacobian[i, k]
        # p moves by p x w.
        jacobian[i, 3] = g1 * p[2] - g2 * p[1]
        jacobian[i, 4] = g2 * p[0] - g0 * p[2]
        jacobian[i, 5] = g0 * p[1] - g1 * p[0]
    return u, v


@njit
def _reproject(packed, R, t, point, pixels, weights, residuals, jacobians):  # type: ignore[no-untyped-def]
    """
    Fill what pixels (2, 2) are off a point, (2, 2), and the Jacobians (2, 2, 9).

    Returns the squared Mahalanobis distance.
    """
    cost = 0.0
    for c in range(2):
        u, v = _project(packed[c], R[c], t[c], point, jacobians[c])
        residuals[c, 0] = pixels[c, 0] - u
        residuals[c, 1] = pixels[c, 1] - v
        for i in range(2):
            for j in range(2):
                cost += residuals[c, i] * weights[c, i, j] * residuals[c, j]
    return cost


@njit
def _normal_equations(jacobians, weights, residuals, matrix, right):  # type: ignore[no-untyped-def]
    """Fill J^T W J (3, 3) and J^T W r (3,)."""
    matrix[:] = 0.0
    right[:] = 0.0
    for c in range(2):
        for i in range(2):
            for j in range(2):
                w = weights[c, i, j]
                for k in range(3):
                    right[k] += jacobians[c, i, k] * w * residuals[c, j]
                    for h in range(3):
                        matrix[k, h] += jacobians[c, i, k] * w * jacobians[c, j, h]


@njit
def _between_rays(packed, R, t, pixels, position, found):  # type: ignore[no-untyped-def]
    """
    Fill position (3,) half-way between two rays where they are nearest.

    Returns whether that worked; ``found`` gets the angle between the rays [rad] and the distances
    along them [m].
    """
    rays = np.empty((2, 3))
    for c in range(2):
        x, y = undistort_point(packed[c], pixels[c, 0], pixels[c, 1])
        length = math.sqrt(x * x + y * y + 1.0)
        for i in range(3):
            rays[c, i] = (R[c, i, 0] * x + R[c, i, 1] * y + R[c, i, 2]) / length
    across = np.cross(rays[0], rays[1])
    size = np.sum(across * across)
    found[0] = math.sqrt(size)
    if not found[0] > _SAME_RAY:
        return False
    base = t[1] - t[0]
    for c in range(2):
        found[1 + c] = np.sum(np.cross(base, rays[1 - c]) * across) / size
    position[:] = (t[0] + found[1] * rays[0] + t[1] + found[2] * rays[1]) / 2.0
    return found[1] > 0.0 and found[2] > 0.0


@njit
def _most_likely(packed, R, t, pixels, weights, position, residuals, jacobians):  # type: ignore[no-untyped-def]
    """
    Move position (3,) to the least Mahalanobis distance, by Levenberg and Marquardt.

    Returns whether it got there; residuals (2, 2) and Jacobians (2, 2, 9) are those there.
    """
    trial, moved = np.empty((2, 2)), np.empty((2, 2, 9))
    matrix, right = np.empty((3, 3)), np.empty(3)
    cost = _reproject(packed, R, t, position, pixels, weights, residuals, jacobians)
    damping = 0.0
    for _ in range(_MAX_STEPS):
        _normal_equations(jacobians, weights, residuals, matrix, right)
        for k in range(3):
            matrix[k, k] *= 1.0 + damping
        if not cholesky(matrix):
            return False
        step = right.copy()
        cholesky_solve(matrix, step)
        # The linear problem promises to lower the cost by less than rounding may change it: by a
        # ten-thousandth of a standard deviation.
        small = np.sum(step * right) <= 1e-8 + 1e-10 * cost
        new_cost = _reproject(packed, R, t, position + step, pixels, weights, trial, moved)
        if new_cost <= cost or small:
            position += step
            residuals[:] = trial
            jacobians[:] = moved
            cost = new_cost
            damping = 0.1 * damping if damping > 1e-9 else 0.0
        else:
            damping = max(10.0 * damping, 1e-6)
        if small and damping < 1.0:
            return True
    return False


@njit
def _minor(jacobians, left_out):  # type: ignore[no-untyped-def]
    """Return the determinant of the Jacobian by the point (4, 3) without one of its rows."""
    m = np.empty((3, 3))
    row = 0
    for k in range(4):
        if k != left_out:
            m[row] = jacobians[k // 2, k % 2, :3]
            row += 1
    return np.sum(m[0] * np.cross(m[1], m[2]))


@kernel
def _triangulate(packed, R, t, pose_cov, pixels, pixel_cov, position, covariance, found):  # type: ignore[no-untyped-def]
    """
    Fill position (3,) and covariance (3, 3).

    Returns 0, or 1 where the rays and 2 where the iterations failed. ``found`` (5,) gets the angle
    between the rays [rad], the distances along them [m], residual [px] and chi_square.
    """
    if not _between_rays(packed, R, t, pixels, position, found):
        return 1
    weights = np.empty((2, 2, 2))
    for c in range(2):
        s = pixel_cov[c]
        weights[c] = np.array([[s[1, 1], -s[0, 1]], [-s[1, 0], s[0, 0]]])
        weights[c] /= s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0]
    residuals, jacobians = np.empty((2, 2)), np.empty((2, 2, 9))
    if not _most_likely(packed, R, t, pixels, weights, position, residuals, jacobians):
        return 2
    found[3] = math.sqrt(np.sum(residuals * residuals) / 2.0)
    matrix, column = np.empty((3, 3)), np.empty(3)
    _normal_equations(jacobians, weights, residuals, matrix, column)
    if not cholesky(matrix):
        return 2
    off, variance = 0.0, np.zeros((1, 1))
    estimator, by_pose = np.empty((3, 2)), np.empty((3, 6))
    # The one combination of the residuals that no point can change: it is orthogonal to J.
    q, q_by_pose = np.empty((1, 2)), np.empty((1, 6))
    covariance[:] = 0.0
    for c in range(2):
        by_point = jacobians[c, :, :3].copy()
        poses = jacobians[c, :, 3:].copy()
        for j in range(2):
            for k in range(3):
                column[k] = by_point[0, k] * weights[c, 0, j] + by_point[1, k] * weights[c, 1, j]
            # A column of the estimator (J^T W J)^-1 J^T W.
            cholesky_solve(matrix, column)
            estimator[:, j] = column
            q[0, j] = _minor(jacobians, 2 * c + j) * (1.0 - 2.0 * j)
            off += q[0, j] * residuals[c, j]
        for k in range(6):
            q_by_pose[0, k] = q[0, 0] * poses[0, k] + q[0, 1] * poses[1, k]
            for i in range(3):
                by_pose[i, k] = estimator[i, 0] * poses[0, k] + estimator[i, 1] * poses[1, k]
        _propagate(estimator, pixel_cov[c], covariance)
        _propagate(by_pose, pose_cov[c], covariance)
        _propagate(q, pixel_cov[c], variance)
        _propagate(q_by_pose, pose_cov[c], variance)
    found[4] = off * off / variance[0, 0]
    return 0


def triangulate(
    cameras: tuple[Camera, Camera],
    poses: tuple[Pose, Pose],
    pixels: ArrayLike,
    covariances: ArrayLike,
) -> Location:
    """
    Return the point that two cameras see: the most likely one for the pixels.

    It has the least Mahalanobis distance of the pixels from its projections. The poses count as
    exact for the position; their covariances go into that of the position.

    Parameters
    ----------
    cameras : two of Camera
    poses : two of Pose
    pixels : array_like, shape (2, 2)
        u, v with distortion in each camera [px].
    covariances : array_like, shape (2, 2, 2)
        Of the pixels [px^2], positive definite.

    Returns
    -------
    Location
        With residual and chi_square.

    Raises
    ------
    InputError
        For pixels that no ray reaches, rays that are parallel, and rays that meet behind a camera.
    """
    places = _array(pixels, (2, 2), 'pixels')
    pixel_covariances = _array(covariances, (2, 2, 2), 'covariances')
    for covariance in pixel_covariances:
        covariance[:] = _covariance(covariance, 2, 'covariance of a pixel')
        if not covariance[0, 0] * covariance[1, 1] > covariance[0, 1] ** 2:
            raise InputError(
                f'covariance of a pixel = {covariance.tolist()}, allowed: positive definite'
            )
    position, result, found = np.empty(3), np.empty((3, 3)), np.full(5, math.nan)
    status = _triangulate(
        np.array([camera.packed for camera in cameras]),
        np.array([pose.rotation for pose in poses]),
        np.array([pose.translation for pose in poses]),
        np.array([_or_zeros(pose.covariance, 6) for pose in poses]),
        places,
        pixel_covariances,
        position,
        result,
        found,
    )
    if status == 1:
        for camera, pixel in zip(cameras, places, strict=True):
            camera.undistort(pixel)
        _raise_for_rays(*found[:3])
    if status:
        raise InputError(
            f'pixels {places.tolist()} belong to no common point in front of both cameras; check'
            ' the poses, and that both show the same marker'
        )
    return Location(position, result, float(found[3]), float(found[4]))


def _raise_for_rays(angle: float, along_1: float, along_2: float) -> NoReturn:
    """Raise InputError for rays with an angle [rad] that meet at distances [m]."""
    if not angle > _SAME_RAY:
        raise InputError(
            f'both rays are parallel ({angle:.3g} rad between them), allowed: two cameras that see'
            ' the point from different sides'
        )
    if along_1 == 0.0 and along_2 == 0.0:
        raise InputError(
            'both rays begin at the same point, allowed: two cameras in different places'
        )
    which = 'first' if along_1 <= 0.0 else 'second'
    raise InputError(
        f'the rays meet {-min(along_1, along_2):.3g} m behind the {which} camera; check the poses,'
        ' and that both show the same marker'
    )


def warm_up() -> None:
    """Compile the kernels, or load them from the cache."""
    camera = Camera(name='any', width=100, height=100, fx=100.0, fy=100.0, cx=50.0, cy=50.0)
    poses = (
        Pose.from_look_at((-1.0, -5.0, 0.0), (0.0, 0.0, 0.0)),
        Pose.from_look_at((1.0, -5.0, 0.0), (0.0, 0.0, 0.0)),
    )
    pixels = np.array([camera.project(pose.to_camera((0.0, 0.0, 0.0))) for pose in poses])
    plane = Plane(np.array([0.0, 1.0, 0.0]), 0.0)
    locate_in_plane(camera, poses[0], plane, pixels[0], np.eye(2))
    triangulate((camera, camera), poses, pixels, np.array([np.eye(2), np.eye(2)]))


def _or_zeros(covariance: np.ndarray | None, size: int) -> np.ndarray:
    """Return a covariance, or zeros for none."""
    return np.zeros((size, size)) if covariance is None else covariance


def _keep(owner: object, name: str, array: np.ndarray) -> None:
    """Set a field of a frozen dataclass to an array of its own, laid out as kernels take it."""
    object.__setattr__(owner, name, np.array(array, dtype=np.float64, order='C'))


def _array(values: ArrayLike, shape: tuple[int, ...], name: str) -> np.ndarray:
    """Return a copy of finite numbers of one shape."""
    array = np.array(values, dtype=np.float64)
    if array.shape != shape:
        raise InputError(f'{name} has shape {array.shape}, allowed: {shape}')
    if not np.isfinite(array).all():
        raise InputError(f'{name} = {array.tolist()}, allowed: finite numbers')
    return array


def _covariance(values: ArrayLike, size: int, name: str) -> np.ndarray:
    """Return a covariance (size, size), checked to be one."""
    covariance = _array(values, (size, size), name)
    largest = float(np.abs(covariance).max())
    if not float(np.abs(covariance - covariance.T).max()) <= _ASYMMETRY * largest:
        raise InputError(f'{name} is not symmetric: {covariance.tolist()}')
    covariance = (covariance + covariance.T) / 2.0
    # Each coordinate in its own deviations, since rad and m share one matrix.
    deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    with np.errstate(over='ignore'):
        scaled = covariance / np.outer(deviations, deviations).clip(1e-300)
    if not np.isfinite(scaled).all():
        raise InputError(f'{name} is none: it has a negative or far too large variance')
    least = float(np.linalg.eigvalsh(scaled)[0]) if size > 2 else _least_eigenvalue(scaled)
    if not least >= -_ASYMMETRY:
        raise InputError(
            f'{name} is none: it has a negative eigenvalue, {covariance.tolist()}, allowed:'
            ' positive semidefinite'
        )
    return np.asarray(covariance)


def _least_eigenvalue(matrix: np.ndarray) -> float:
    """Return the smaller eigenvalue of a symmetric matrix (2, 2), in less time than LAPACK's."""
    (a, b), (_, d) = matrix.tolist()
    return float((a + d) / 2.0 - math.hypot((a - d) / 2.0, b))
