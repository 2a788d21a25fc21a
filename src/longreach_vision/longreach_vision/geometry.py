"""
Poses of cameras, planes and rays, with covariances.

A pose is T_world_cam, p_world = R p_cam + t with the camera's optical frame: x to the right, y
down, z forward. t is the camera's centre, Henikl 2015, (31), and R the transpose of his. A plane
is n.p = lambda, (36). Lengths are metres of the world's frame, pixels have distortion.

Poses and planes may come with a covariance. Small errors have these coordinates:

- a pose's: rotation vector w about the axes of the camera's frame [rad], R exp([w]), and t + d in
  the world [m];
- a plane's: rotations about its two in-plane axes through its centroid [rad], right-handed, and a
  shift along its normal there [m].
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from longreach_dynamics.errors import InputError
from longreach_vision.arrays import checked_array, checked_covariance
from longreach_vision.cameras import Camera, distort_point, projection_jacobian

__all__ = [
    'LEAST_COSINE',
    'LEAST_DISTANCE',
    'Plane',
    'PlaneFit',
    'Pose',
    'check_meeting',
    'fit_plane',
    'intersect',
    'pixel_ray',
    'project_point',
]

LEAST_COSINE = 1e-6
"""Of a ray to a plane's normal: below it, the ray is parallel to the plane."""

LEAST_DISTANCE = 1e-6
"""Of a camera from a plane [m]: below it, the plane passes through the camera."""

# What rounding to four digits leaves of a rotation matrix, or to two of a quaternion.
_ROTATION_ERROR, _QUATERNION_ERROR = 1e-3, 1e-2
# Part of its length by which a normal may be off, and metres by which a centroid may lie off.
_NORMAL_ERROR, _CENTROID_ERROR = 1e-2, 1e-3
# A component of a normal that is larger than this decides its sign.
_SIGN = 0.1
# Points spread across a line by fewer of their deviations give no plane.
_SPREAD = 3.0


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
        rotation = checked_array(self.rotation, (3, 3), 'rotation')
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
        _keep(self, 'translation', checked_array(self.translation, (3,), 'translation'))
        if self.covariance is not None:
            covariance = checked_covariance(self.covariance, 6, 'covariance of a pose')
            _keep(self, 'covariance', covariance)

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
        centre = checked_array(position, (3,), 'position')
        forward = checked_array(target, (3,), 'target') - centre
        upwards = checked_array(up, (3,), 'up')
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
        quaternion = checked_array(xyzw, (4,), 'orientation')
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
        normal = checked_array(self.normal, (3,), 'normal')
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
            centroid = checked_array(self.centroid, (3,), 'centroid')
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
    x, y = camera.undistort(checked_array(pixel, (2,), 'pixel'))
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
    start = checked_array(origin, (3,), 'origin')
    along = checked_array(direction, (3,), 'direction')
    length = float(np.linalg.norm(along))
    if not length > 0.0:
        raise InputError('direction = 0, allowed: a vector that is not 0')
    along = along / length
    away = plane.offset - float(plane.normal @ start)
    cosine = float(plane.normal @ along)
    check_meeting(away, cosine)
    return np.asarray(start + away / cosine * along)


def check_meeting(away: float, cosine: float) -> None:
    """Raise InputError unless a ray meets a plane a distance [m] away, at a cosine to n."""
    if not abs(away) > LEAST_DISTANCE:
        raise InputError(
            f'the plane passes through the camera ({away:.3g} m off), allowed: one that the camera'
            ' looks at from outside'
        )
    if not abs(cosine) > LEAST_COSINE:
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
def project_point(packed, R, t, point, jacobian):  # type: ignore[no-untyped-def]
    """
    Return the pixel (u, v) of a point in the world; NaN if there is none.

    Fills the Jacobian (2, 9) by the pose's rotation vector, by its translation and by the point.
    ``packed`` is :attr:`longreach_vision.cameras.Camera.packed`.
    """
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
        # p moves by p x w.
        jacobian[i, 0] = g1 * p[2] - g2 * p[1]
        jacobian[i, 1] = g2 * p[0] - g0 * p[2]
        jacobian[i, 2] = g0 * p[1] - g1 * p[0]
        for k in range(3):
            jacobian[i, 6 + k] = g0 * R[k, 0] + g1 * R[k, 1] + g2 * R[k, 2]
            jacobian[i, 3 + k] = -jacobian[i, 6 + k]
    return u, v


def _keep(owner: object, name: str, array: np.ndarray) -> None:
    """Set a field of a frozen dataclass to an array of its own, laid out as kernels take it."""
    object.__setattr__(owner, name, np.array(array, dtype=np.float64, order='C'))
