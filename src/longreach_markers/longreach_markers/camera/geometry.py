"""
Poses of cameras, planes and rays, with covariances.

A pose is T_world_cam, p_world = R p_cam + t, with the camera's optical frame: x right, y down, z
forward. t is the camera's centre, Henikl 2015, (31), and R the transpose of the rotation there. A
plane is n.p = lambda, (36). Lengths are in metres in the world frame, pixels include distortion.

Poses and planes can have a covariance. Its coordinates are:

- for a pose: rotation vector w about the axes of the camera frame [rad], R exp([w]), and
  displacement d in the world frame [m], t + d;
- for a plane: rotations about its two in-plane axes through its centroid [rad], right-handed, and
  displacement along its normal there [m].
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import NamedTuple

import cv2
import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from longreach_dynamics.errors import InputError, check_within
from longreach_dynamics.tables import numbers_of
from longreach_markers.camera.model import Camera, distort_point, projection_jacobian

# Relative tolerance for asymmetry and negative eigenvalues caused by rounding.
_ASYMMETRY = 1e-6


def checked_covariance(values: ArrayLike, size: int, name: str) -> np.ndarray:
    """Return a copy of a covariance (size, size) after checking that it is one."""
    covariance = numbers_of(name, values, (size, size))
    largest = float(np.abs(covariance).max())
    if not float(np.abs(covariance - covariance.T).max()) <= _ASYMMETRY * largest:
        raise InputError(f'{name} is not symmetric: {covariance.tolist()}')
    covariance = (covariance + covariance.T) / 2.0
    # Scale by the standard deviations, because rad and m share one matrix.
    deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    with np.errstate(over='ignore'):
        scaled = covariance / np.outer(deviations, deviations).clip(1e-300)
    if not np.isfinite(scaled).all():
        raise InputError(
            f'{name} is not a covariance: it has a negative or far too large variance'
        )
    least = float(np.linalg.eigvalsh(scaled)[0]) if size > 2 else _least_eigenvalue(scaled)
    if not least >= -_ASYMMETRY:
        raise InputError(
            f'{name} is not a covariance: it has a negative eigenvalue,'
            f' {covariance.tolist()}, allowed: positive semidefinite'
        )
    return np.asarray(covariance)


def _least_eigenvalue(matrix: np.ndarray) -> float:
    """Return the smaller eigenvalue of a symmetric matrix (2, 2), faster than LAPACK."""
    (a, b), (_, d) = matrix.tolist()
    return float((a + d) / 2.0 - math.hypot((a - d) / 2.0, b))


LEAST_COSINE = 1e-6
"""Cosine between ray and normal below which they are treated as parallel to the plane."""

LEAST_DISTANCE = 1e-6
"""Distance of camera and plane below which the plane passes through the camera [m]."""

# Tolerance for rotation matrices rounded to four digits, and quaternions rounded to two.
_ROTATION_ERROR, _QUATERNION_ERROR = 1e-3, 1e-2
# Tolerance of the length of a normal, and of the distance of a centroid from its plane [m].
_NORMAL_ERROR, _CENTROID_ERROR = 1e-2, 1e-3
# Least component of a normal that determines its sign.
_SIGN = 0.1
# Least spread of points across a line, in standard deviations, that defines a plane.
_SPREAD = 3.0


@dataclasses.dataclass(frozen=True, eq=False)
class Pose:
    """
    Pose T_world_cam of a camera: p_world = R p_cam + t.

    Parameters
    ----------
    rotation : ndarray, shape (3, 3)
        R; its columns are the axes of the camera's optical frame in the world. Rounding errors are
            removed.
    translation : ndarray, shape (3,)
        t, the camera's centre in the world [m].
    covariance : ndarray, shape (6, 6), optional
        Covariance of rotation vector in the camera frame [rad] and translation in the world [m].

    Raises
    ------
    InputError
        For a matrix that is not a rotation, and for values that are not finite.
    """

    rotation: np.ndarray
    translation: np.ndarray
    covariance: np.ndarray | None = None

    def __post_init__(self) -> None:
        rotation = numbers_of('rotation', self.rotation, (3, 3))
        error = float(np.abs(rotation.T @ rotation - np.eye(3)).max())
        if not error < _ROTATION_ERROR:
            raise InputError(
                'rotation is not a rotation matrix: R^T R differs from the identity by'
                f' {error:.3g}, allowed: [0, {_ROTATION_ERROR:g}); give it with more digits, or'
                ' as a quaternion'
            )
        if np.linalg.det(rotation) < 0.0:
            raise InputError(
                'rotation is a reflection: its determinant is -1, allowed: 1; swap two axes'
            )
        left, _, right = np.linalg.svd(rotation)
        _keep(self, 'rotation', left @ right)
        _keep(self, 'translation', numbers_of('translation', self.translation, (3,)))
        if self.covariance is not None:
            covariance = checked_covariance(self.covariance, 6, 'covariance of a pose')
            _keep(self, 'covariance', covariance)

    @classmethod
    def from_look_at(
        cls, position: ArrayLike, target: ArrayLike, up: ArrayLike = (0.0, 0.0, 1.0)
    ) -> Pose:
        """Return the pose of a level camera that looks from a position at a target [m]."""
        centre = numbers_of('position', position, (3,))
        forward = numbers_of('target', target, (3,)) - centre
        upwards = numbers_of('up', up, (3,))
        right = np.cross(forward, upwards)
        distance, width = np.linalg.norm(forward), np.linalg.norm(right)
        if not distance > 0.0:
            raise InputError(
                f'target = {centre.tolist()} equals the position, allowed: another point'
            )
        if not width > 1e-9 * distance * np.linalg.norm(upwards):
            raise InputError(
                f'up = {upwards.tolist()} is parallel to the line of sight, allowed: another'
                ' direction'
            )
        forward, right = forward / distance, right / width
        return cls(np.column_stack([right, np.cross(forward, right), forward]), centre)

    @classmethod
    def from_quaternion(
        cls, xyzw: ArrayLike, position: ArrayLike, covariance: ArrayLike | None = None
    ) -> Pose:
        """Return the pose for an orientation x y z w, of norm 1, and a position [m]."""
        quaternion = numbers_of('orientation', xyzw, (4,))
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

    def moved(self, change: np.ndarray, covariance: np.ndarray | None = None) -> Pose:
        """Return the pose after a rotation vector in the camera [rad], and a displacement [m]."""
        turn, _ = cv2.Rodrigues(change[:3].copy())
        return Pose(self.rotation @ turn, self.translation + change[3:], covariance)

    @property
    def quaternion(self) -> np.ndarray:
        """Orientation x y z w, shape (4,), with w not negative."""
        R = self.rotation
        # Each row is the quaternion times four times one of its elements; the longest is most
        # accurate.
        rows = np.zeros((4, 4))
        rows[:3, :3] = R + R.T
        rows[:3, 3] = rows[3, :3] = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
        a, b, c = np.diag(R)
        np.fill_diagonal(
            rows, (1.0 + a - b - c, 1.0 - a + b - c, 1.0 - a - b + c, 1.0 + np.trace(R))
        )
        longest = rows[np.argmax(np.diag(rows))]
        quaternion = longest / np.linalg.norm(longest)
        return np.asarray(-quaternion if quaternion[3] < 0.0 else quaternion)

    @property
    def matrix(self) -> np.ndarray:
        """Homogeneous matrix T_world_cam, shape (4, 4)."""
        matrix = np.eye(4)
        matrix[:3, :3], matrix[:3, 3] = self.rotation, self.translation
        return matrix

    def to_camera(self, points: ArrayLike) -> np.ndarray:
        """Transform points (..., 3) [m] from the world to the camera frame, Henikl 2015, (29)."""
        return np.asarray((np.asarray(points) - self.translation) @ self.rotation)

    def to_world(self, points: ArrayLike) -> np.ndarray:
        """Transform points (..., 3) [m] from the camera frame to the world."""
        return np.asarray(np.asarray(points) @ self.rotation.T + self.translation)


@dataclasses.dataclass(frozen=True, eq=False)
class Plane:
    """
    A plane n.p = lambda, Henikl 2015, (36).

    Parameters
    ----------
    normal : ndarray, shape (3,)
        n, of length 1. Normal and offset are normalised to remove rounding errors.
    offset : float
        lambda [m].
    covariance : ndarray, shape (3, 3), optional
        Covariance of rotations about the two :attr:`axes` through the centroid [rad], and of the
        displacement along the normal there [m].
    centroid : ndarray, shape (3,), optional
        A point of the plane, the centroid of the measurements [m]; by default the point nearest to
        the origin.

    Raises
    ------
    InputError
        For a normal of another length, a centroid off the plane, and values that are not finite.
    """

    normal: np.ndarray
    offset: float
    covariance: np.ndarray | None = None
    centroid: np.ndarray = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        normal = numbers_of('normal', self.normal, (3,))
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
            centroid = numbers_of('centroid', self.centroid, (3,))
            error = float(normal @ centroid) - offset
            if not abs(error) < _CENTROID_ERROR:
                raise InputError(
                    f'centroid = {centroid.tolist()} lies {error:.3g} m off the plane, allowed:'
                    f' {_CENTROID_ERROR:g} m'
                )
            centroid = centroid - error * normal
        _keep(self, 'centroid', centroid)
        if self.covariance is not None:
            covariance = checked_covariance(self.covariance, 3, 'covariance of a plane')
            _keep(self, 'covariance', covariance)

    @functools.cached_property
    def axes(self) -> np.ndarray:
        """
        Two in-plane axes, shape (2, 3), right-handed with the normal.

        The first is the projection of the world's x axis onto the plane; of its y axis, if the
        normal is within 26 degrees of x.
        """
        n = self.normal
        along = np.array([0.0, 1.0, 0.0]) if abs(n[0]) > 0.9 else np.array([1.0, 0.0, 0.0])
        first = along - (along @ n) * n
        first /= np.linalg.norm(first)
        axes = np.array([first, np.cross(n, first)])
        axes.setflags(write=False)
        return axes

    def distance(self, points: ArrayLike) -> np.ndarray:
        """Return the signed distance of points (..., 3) [m] from the plane, shape (...)."""
        return np.asarray(np.asarray(points) @ self.normal - self.offset)


class PlaneFit(NamedTuple):
    """Plane fitted to measured points."""

    plane: Plane
    residuals: np.ndarray  # (n,) distances of the points along the normal [m]
    rms: float  # of the residuals over n - 3 degrees of freedom [m]; NaN for three points

    def turned(self) -> PlaneFit:
        """Return the same plane with the opposite normal."""
        old, covariance = self.plane, self.plane.covariance
        if covariance is not None:
            # The second axis turns with the normal, the first one does not.
            signs = np.array([1.0, -1.0, -1.0])
            covariance = covariance * np.outer(signs, signs)
        plane = Plane(-old.normal, -old.offset, covariance, old.centroid)
        return PlaneFit(plane, -self.residuals, self.rms)


def fit_plane(points: ArrayLike, deviation: float) -> PlaneFit:
    """Fit a plane to points (n, 3) [m] whose coordinates have a standard deviation [m]."""
    # By total least squares. The sign of the normal depends on its direction only: of its
    # components y, x and z, the first that exceeds 0.1 in magnitude is positive. The plane of a
    # boom has a normal along +y.
    array = np.array(points, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != 3:
        raise InputError(f'points have shape {array.shape}, allowed: (n, 3)')
    count = array.shape[0]
    if count < 3:
        raise InputError(f'{count} points, allowed for a plane: 3 or more')
    if not np.isfinite(array).all():
        worst = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
        raise InputError(f'points[{worst}] = {array[worst].tolist()}, allowed: finite numbers')
    check_within('deviation', deviation, '(0, inf) m')
    centroid = array.mean(axis=0)
    _, sizes, directions = np.linalg.svd(array - centroid)
    spread, thickness = sizes[1:] / math.sqrt(count)
    if not spread > _SPREAD * deviation:
        raise InputError(
            f'points lie on a line: they spread {spread:.3g} m across it, allowed for a'
            f' deviation of {deviation:g} m: above {_SPREAD * deviation:.3g} m; measure points'
            ' farther apart'
        )
    if not spread > _SPREAD * thickness:
        raise InputError(
            f'points do not lie in a plane: they spread {spread:.3g} m within it and'
            f' {thickness:.3g} m off it; check their coordinates'
        )
    normal = _with_sign(directions[2])
    plane = Plane(normal, float(normal @ centroid), None, centroid)
    residuals = plane.distance(array)
    inside = (array - centroid) @ plane.axes.T
    # Covariance of the slopes along both axes; each rotation equals the slope along the other
    # axis.
    slopes = deviation**2 * np.linalg.inv(inside.T @ inside)
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    covariance = np.zeros((3, 3))
    covariance[:2, :2] = turn @ slopes @ turn.T
    covariance[2, 2] = deviation**2 / count
    freedom = count - 3
    rms = math.sqrt(float(residuals @ residuals) / freedom) if freedom else math.nan
    return PlaneFit(dataclasses.replace(plane, covariance=covariance), residuals, rms)


def _with_sign(normal: np.ndarray) -> np.ndarray:
    for i in (1, 0, 2):
        if abs(normal[i]) > _SIGN:
            return np.asarray(normal * math.copysign(1.0, normal[i]))
    return normal


def pixel_ray(camera: Camera, pose: Pose, pixel: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return camera centre (3,) [m] and unit direction of a pixel's ray, Henikl 2015, (31-34)."""
    x, y = camera.undistort(numbers_of('pixel', pixel, (2,)))
    direction = pose.rotation @ np.array([x, y, 1.0])
    return pose.translation.copy(), direction / np.linalg.norm(direction)


def intersect(origin: ArrayLike, direction: ArrayLike, plane: Plane) -> np.ndarray:
    """Return the intersection (3,) [m] of a ray and a plane, Henikl 2015, (35) to (38)."""
    start = numbers_of('origin', origin, (3,))
    along = numbers_of('direction', direction, (3,))
    length = float(np.linalg.norm(along))
    if not length > 0.0:
        raise InputError('direction = 0, allowed: a vector that is not 0')
    along = along / length
    away = plane.offset - float(plane.normal @ start)
    cosine = float(plane.normal @ along)
    check_meeting(away, cosine)
    return np.asarray(start + away / cosine * along)


def check_meeting(away: float, cosine: float) -> None:
    """Check that a ray meets a plane, from the distance [m] along n and the cosine to n."""
    if not abs(away) > LEAST_DISTANCE:
        raise InputError(
            f'the plane passes through the camera (distance {away:.3g} m), allowed: a plane at a'
            ' distance'
        )
    if not abs(cosine) > LEAST_COSINE:
        raise InputError(
            f'the ray is parallel to the plane (cosine to the normal {cosine:.3g}), allowed: a ray'
            ' that meets it'
        )
    if not away / cosine > 0.0:
        raise InputError(
            f'the ray points away from the plane: it meets it {-away / cosine:.3g} m behind the'
            ' camera;'
            " check the camera's orientation, and the plane's offset"
        )


@njit
def project_point(packed, R, t, point, jacobian):  # type: ignore[no-untyped-def]
    """Return the pixel (u, v) of a point (3,) in the world [m]; NaN if there is none."""
    # With packed of Camera.packed, R and t of T_world_cam. Fills jacobian (2, 9): derivatives by
    # rotation vector, translation and point.
    p = np.empty(3)
    for i in range(3):
        p[i] = 0.0
        for k in range(3):
            p[i] += R[k, i] * (point[k] - t[k])
    if not p[2] > 0.0:
        jacobian[:] = math.nan
        return math.nan, math.nan
    x, y = p[0] / p[2], p[1] / p[2]
    u, v = distort_point(packed, x, y)
    ux, uy, vx, vy = projection_jacobian(packed, x, y)
    for i in range(2):
        by_x, by_y = (ux, uy) if i == 0 else (vx, vy)
        g0, g1, g2 = by_x / p[2], by_y / p[2], -(by_x * x + by_y * y) / p[2]
        # A rotation w changes p by p x w.
        jacobian[i, 0] = g1 * p[2] - g2 * p[1]
        jacobian[i, 1] = g2 * p[0] - g0 * p[2]
        jacobian[i, 2] = g0 * p[1] - g1 * p[0]
        for k in range(3):
            jacobian[i, 6 + k] = g0 * R[k, 0] + g1 * R[k, 1] + g2 * R[k, 2]
            jacobian[i, 3 + k] = -jacobian[i, 6 + k]
    return u, v


def _keep(owner: object, name: str, array: np.ndarray) -> None:
    """Set a field of a frozen dataclass to a contiguous copy of an array."""
    object.__setattr__(owner, name, np.array(array, dtype=np.float64, order='C'))
