"""
Points in space from pixels, with covariances: by one camera and a plane, or by several cameras.

Covariances are propagated to first order with analytic Jacobians. Inputs without covariance are
treated as exact. Errors of pixels, of each pose and of the plane are treated as independent;
:mod:`longreach_markers.camera.geometry` defines their coordinates. The part that stems from poses,
plane and calibration, common to all images, is also given separately: it does not average out.

Kernels take the camera as ``packed`` (16,), :attr:`longreach_markers.camera.model.Camera.packed`,
and its pose T_world_cam as R (3, 3) and t (3,) [m] with covariance ``pose_cov`` (6, 6); kernels
for k cameras take these with a leading axis of k, and ``pixels`` (k, 2) [px] with ``weights``
(k, 2, 2), the inverse covariances. ``pixel_cov`` and ``ray_cov`` are covariances of pixels, and of
pixels from the calibration [px^2].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from longreach_dynamics.errors import InputError
from longreach_dynamics.kernels import kernel
from longreach_dynamics.linear_algebra import assign, cholesky, cholesky_solve
from longreach_dynamics.tables import numbers_of
from longreach_markers.camera.geometry import (
    LEAST_COSINE,
    LEAST_DISTANCE,
    Plane,
    Pose,
    check_meeting,
    checked_covariance,
    project_point,
)
from longreach_markers.camera.model import Camera, projection_jacobian, undistort_point

# Angle between two rays [rad] below which they are parallel.
_SAME_RAY = 1e-6
_MAX_STEPS = 50


class Location(NamedTuple):
    """A point in space."""

    position: np.ndarray  # (3,) in the world [m]
    covariance: np.ndarray  # (3, 3) [m^2]
    residual: float = math.nan  # RMS reprojection error [px]
    # Squared Mahalanobis distance of the pixels over its 2 k - 3 degrees of freedom for k cameras;
    # of two, the squared distance of both rays over its variance. 1 on average if the covariances
    # of pixels and poses are correct.
    chi_square: float = math.nan
    # The part of the covariance from poses, plane and calibration (3, 3) [m^2]; None: zero. These
    # errors are common to all images: they do not average out.
    systematic: np.ndarray | None = None
    # Distance of the rays of two cameras in the images, with sign, and its standard deviation from
    # the pixels alone [px]; NaN for more cameras.
    gap: float = math.nan
    gap_noise: float = math.nan

    @property
    def noise(self) -> np.ndarray:
        """The part of the covariance from the pixels (3, 3), independent in each image [m^2]."""
        return self.covariance if self.systematic is None else self.covariance - self.systematic


@njit
def _propagate(jacobian, covariance, total):  # type: ignore[no-untyped-def]
    """Add J S J^T to total (n, n), for a Jacobian J (n, m) and a covariance S (m, m)."""
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


@njit
def _dot(a, b):  # type: ignore[no-untyped-def]
    """Return the scalar product; loops in place of array expressions compile in half the time."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@kernel
def _locate(  # type: ignore[no-untyped-def]
    packed, R, t, pose_cov, plane, plane_cov, pixel, pixel_cov, ray_cov,
    position, noise, systematic,
):  # fmt: skip
    """Locate a pixel in a plane; return its distance [m], and cosine between ray and normal."""
    # plane (13,): normal, offset, centroid and both axes. Fills the position and its covariances:
    # noise from the pixel, systematic from all else.
    n, offset, centroid, axes = plane[:3], plane[3], plane[4:7], plane[7:].reshape((2, 3))
    x, y = undistort_point(packed, pixel[0], pixel[1])
    ray, from_centroid = np.empty(3), np.empty(3)
    for i in range(3):
        ray[i] = R[i, 0] * x + R[i, 1] * y + R[i, 2]
    along, away = _dot(n, ray), offset - _dot(n, t)
    cosine = along / math.sqrt(x * x + y * y + 1.0)
    if not (abs(away) > LEAST_DISTANCE and abs(cosine) > LEAST_COSINE and away / cosine > 0.0):
        return away, cosine
    depth = away / along
    ux, uy, vx, vy = projection_jacobian(packed, x, y)
    area = ux * vy - uy * vx
    # Derivatives by pixel, rotation vector and translation: the motion of the ray at this depth,
    # then of the point, which moves along the ray back into the plane.
    by_ray, by_plane = np.zeros((3, 8)), np.empty((3, 3))
    for i in range(3):
        position[i] = t[i] + depth * ray[i]
        from_centroid[i] = position[i] - centroid[i]
        by_ray[i, 0] = depth / area * (R[i, 0] * vy - R[i, 1] * vx)
        by_ray[i, 1] = depth / area * (R[i, 1] * ux - R[i, 0] * uy)
        by_ray[i, 2] = depth * (R[i, 2] * y - R[i, 1])
        by_ray[i, 3] = depth * (R[i, 0] - R[i, 2] * x)
        by_ray[i, 4] = depth * (R[i, 1] * x - R[i, 0] * y)
        by_ray[i, 5 + i] = 1.0
    for j in range(8):
        back = _dot(n, by_ray[:, j]) / along
        for i in range(3):
            by_ray[i, j] -= back * ray[i]
    for i in range(3):
        by_plane[i, 0] = _dot(axes[1], from_centroid) / along * ray[i]
        by_plane[i, 1] = -_dot(axes[0], from_centroid) / along * ray[i]
        by_plane[i, 2] = ray[i] / along
    noise[:] = 0.0
    systematic[:] = 0.0
    _propagate(by_ray[:, :2], pixel_cov, noise)
    _propagate(by_ray[:, :2], ray_cov, systematic)
    _propagate(by_ray[:, 2:], pose_cov, systematic)
    _propagate(by_plane, plane_cov, systematic)
    return away, cosine


def locate_in_plane(
    camera: Camera,
    pose: Pose,
    plane: Plane,
    pixel: ArrayLike,
    covariance: ArrayLike,
    calibration: float = 0.0,
) -> Location:
    """
    Locate a pixel in a plane, Henikl 2015, (38).

    Parameters
    ----------
    camera : Camera
    pose : Pose
    plane : Plane
    pixel : array_like, shape (2,)
        u, v including distortion [px].
    covariance : array_like, shape (2, 2)
        Covariance of the pixel [px^2].
    calibration : float
        Standard deviation of a pixel from the calibration [px].

    Returns
    -------
    Location
        With the covariance from pixel, calibration, pose and plane. For an exact plane it is
            singular along the normal.

    Raises
    ------
    InputError
        For values that are not finite, a pixel without a ray, a plane through the camera, and a
        ray that does not meet it.
    """
    place = numbers_of('pixel', pixel, (2,))
    pixel_covariance = checked_covariance(covariance, 2, 'covariance of a pixel')
    position, noise, systematic = np.empty(3), np.empty((3, 3)), np.empty((3, 3))
    away, cosine = _locate(
        camera.packed, pose.rotation, pose.translation, _or_zeros(pose.covariance, 6),
        np.concatenate([plane.normal, [plane.offset], plane.centroid, plane.axes.ravel()]),
        _or_zeros(plane.covariance, 3), place, pixel_covariance, calibration**2 * np.eye(2),
        position, noise, systematic,
    )  # fmt: skip
    if math.isnan(cosine):
        camera.undistort(place)
    check_meeting(away, cosine)
    return Location(position, noise + systematic, systematic=systematic)


@njit
def _reproject(packed, R, t, point, pixels, weights, residuals, jacobians):  # type: ignore[no-untyped-def]
    """Fill measured minus projected pixels and Jacobians (k, 2, 9); return the squared error."""
    cost = 0.0
    for c in range(len(pixels)):
        u, v = project_point(packed[c], R[c], t[c], point, jacobians[c])
        residuals[c, 0] = pixels[c, 0] - u
        residuals[c, 1] = pixels[c, 1] - v
        for i in range(2):
            for j in range(2):
                cost += residuals[c, i] * weights[c, i, j] * residuals[c, j]
    return cost


@njit
def _normal_equations(jacobians, weights, residuals, matrix, right):  # type: ignore[no-untyped-def]
    """Fill the normal equations for a point: ``matrix`` J^T W J (3, 3), ``right`` J^T W r (3,)."""
    by_point = jacobians[:, :, 6:]
    matrix[:] = 0.0
    right[:] = 0.0
    for c in range(len(residuals)):
        for i in range(2):
            for j in range(2):
                w = weights[c, i, j]
                for k in range(3):
                    right[k] += by_point[c, i, k] * w * residuals[c, j]
                    for h in range(3):
                        matrix[k, h] += by_point[c, i, k] * w * by_point[c, j, h]


@njit
def _between_rays(packed, R, t, pixels, pair, position, found):  # type: ignore[no-untyped-def]
    """Fill the midpoint between two rays, found[:3] of _triangulate; False if they do not meet."""
    rays = np.empty((2, 3))
    for k in range(2):
        c = pair[k]
        x, y = undistort_point(packed[c], pixels[c, 0], pixels[c, 1])
        length = math.sqrt(x * x + y * y + 1.0)
        for i in range(3):
            rays[k, i] = (R[c, i, 0] * x + R[c, i, 1] * y + R[c, i, 2]) / length
    across = np.cross(rays[0], rays[1])
    size = _dot(across, across)
    found[0] = math.sqrt(size)
    if not found[0] > _SAME_RAY:
        return False
    first, second = t[pair[0]], t[pair[1]]
    for k in range(2):
        found[1 + k] = _dot(np.cross(second - first, rays[1 - k]), across) / size
    for i in range(3):
        position[i] = (first[i] + found[1] * rays[0, i] + second[i] + found[2] * rays[1, i]) / 2.0
    return found[1] > 0.0 and found[2] > 0.0


@njit
def _start(packed, R, t, pixels, position, found):  # type: ignore[no-untyped-def]
    """Intersect the rays of those two cameras that include the largest angle below 90 deg."""
    best, largest = (0, 1), -1.0
    count = len(pixels)
    if count > 2:
        for a in range(count):
            for b in range(a + 1, count):
                meet = _between_rays(packed, R, t, pixels, (a, b), position, found)
                if meet and found[0] > largest:
                    best, largest = (a, b), found[0]
    return _between_rays(packed, R, t, pixels, best, position, found)


@njit
def _most_likely(packed, R, t, pixels, weights, position, residuals, jacobians):  # type: ignore[no-untyped-def]
    """Minimise the Mahalanobis distance by Levenberg-Marquardt; return whether it converged."""
    trial, moved = np.empty_like(residuals), np.empty_like(jacobians)
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
        # The predicted decrease is below rounding errors of the cost, that is below a
        # ten-thousandth of a standard deviation.
        small = _dot(step, right) <= 1e-8 + 1e-10 * cost
        new_cost = _reproject(packed, R, t, position + step, pixels, weights, trial, moved)
        if new_cost <= cost or small:
            position += step
            assign(residuals.ravel(), trial.ravel())
            assign(jacobians.ravel(), moved.ravel())
            cost = new_cost
            damping = 0.1 * damping if damping > 1e-9 else 0.0
        else:
            damping = max(10.0 * damping, 1e-6)
        if small and damping < 1.0:
            return True
    return False


@njit
def _minor(jacobians, left_out):  # type: ignore[no-untyped-def]
    """Return a minor of the Jacobian by the point (4, 3), without one of its rows."""
    m = np.empty((3, 3))
    row = 0
    for k in range(4):
        if k != left_out:
            for i in range(3):
                m[row, i] = jacobians[k // 2, k % 2, 6 + i]
            row += 1
    return _dot(m[0], np.cross(m[1], m[2]))


@njit
def _gap(jacobians, residuals, pose_cov, pixel_cov, ray_cov, found):  # type: ignore[no-untyped-def]
    """Fill found[4:] of :func:`_triangulate` for two cameras: chi_square, gap, its deviation."""
    off, by_noise, variance, size = 0.0, np.zeros((1, 1)), np.zeros((1, 1)), 0.0
    # The combination of residuals that no displacement of the point changes: orthogonal to J.
    q, q_by_pose = np.empty((1, 2)), np.empty((1, 6))
    for c in range(2):
        for j in range(2):
            q[0, j] = _minor(jacobians, 2 * c + j) * (1.0 - 2.0 * j)
            off += q[0, j] * residuals[c, j]
            size += q[0, j] ** 2
        for k in range(6):
            q_by_pose[0, k] = q[0, 0] * jacobians[c, 0, k] + q[0, 1] * jacobians[c, 1, k]
        _propagate(q, pixel_cov[c], by_noise)
        _propagate(q, ray_cov[c], variance)
        _propagate(q_by_pose, pose_cov[c], variance)
    found[4] = off * off / (by_noise[0, 0] + variance[0, 0])
    found[5] = off / math.sqrt(size)
    found[6] = math.sqrt(by_noise[0, 0] / size)


@kernel
def _triangulate(  # type: ignore[no-untyped-def]
    packed, R, t, pose_cov, pixels, pixel_cov, ray_cov, position, noise, systematic, found
):
    """Triangulate; return 0, 1 if the rays do not meet, or 2 if the iterations failed."""
    # Filled: as by _locate, and found (7,): angle between the rays [rad], distances along both
    # [m], residual [px], chi_square; for two cameras, gap and its deviation [px].
    if not _start(packed, R, t, pixels, position, found):
        return 1
    count = len(pixels)
    weights, s = np.empty((count, 2, 2)), np.empty((2, 2))
    residuals, jacobians = np.empty((count, 2)), np.empty((count, 2, 9))
    for c in range(count):
        project_point(packed[c], R[c], t[c], position, jacobians[c])
        # Without the poses, noise in the pixels' covariances would move a point whose rays miss
        # each other.
        for i in range(2):
            for j in range(2):
                s[i, j] = pixel_cov[c, i, j] + ray_cov[c, i, j]
        _propagate(jacobians[c, :, :6].copy(), pose_cov[c], s)
        area = s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0]
        weights[c, 0, 0], weights[c, 0, 1] = s[1, 1] / area, -s[0, 1] / area
        weights[c, 1, 0], weights[c, 1, 1] = -s[1, 0] / area, s[0, 0] / area
    if not _most_likely(packed, R, t, pixels, weights, position, residuals, jacobians):
        return 2
    found[3] = math.sqrt(np.sum(residuals * residuals) / count)
    matrix, column = np.empty((3, 3)), np.empty(3)
    _normal_equations(jacobians, weights, residuals, matrix, column)
    if not cholesky(matrix):
        return 2
    estimator, by_pose = np.empty((3, 2)), np.empty((3, 6))
    noise[:] = 0.0
    systematic[:] = 0.0
    cost = 0.0
    for c in range(count):
        poses = jacobians[c, :, :6].copy()
        by_point = jacobians[c, :, 6:].copy()
        for j in range(2):
            for k in range(3):
                column[k] = by_point[0, k] * weights[c, 0, j] + by_point[1, k] * weights[c, 1, j]
            # A column of the estimator (J^T W J)^-1 J^T W.
            cholesky_solve(matrix, column)
            for k in range(3):
                estimator[k, j] = column[k]
            for i in range(2):
                cost += residuals[c, i] * weights[c, i, j] * residuals[c, j]
        for k in range(6):
            for i in range(3):
                by_pose[i, k] = estimator[i, 0] * poses[0, k] + estimator[i, 1] * poses[1, k]
        _propagate(estimator, pixel_cov[c], noise)
        _propagate(estimator, ray_cov[c], systematic)
        _propagate(by_pose, pose_cov[c], systematic)
    found[4] = cost / (2 * count - 3)
    if count == 2:
        _gap(jacobians, residuals, pose_cov, pixel_cov, ray_cov, found)
    return 0


def triangulate(
    cameras: Sequence[Camera],
    poses: Sequence[Pose],
    pixels: ArrayLike,
    covariances: ArrayLike,
    calibrations: Sequence[float] = (),
) -> Location:
    """
    Triangulate a point seen by two or more cameras: the maximum-likelihood estimate.

    It minimises the Mahalanobis distance of the pixels from its projections, with the covariances
    of pixels, calibrations and poses.

    Parameters
    ----------
    cameras : sequence of k Camera
    poses : sequence of k Pose
    pixels : array_like, shape (k, 2)
        u, v including distortion in each camera [px].
    covariances : array_like, shape (k, 2, 2)
        Covariances of the pixels [px^2], positive definite.
    calibrations : sequence of k float, optional
        Standard deviations of pixels from the calibrations [px]; by default 0.

    Returns
    -------
    Location
        With residual and chi_square; of two cameras also gap and gap_noise.

    Raises
    ------
    InputError
        For one camera, pixels without a ray, parallel rays, and rays that meet behind a camera.
    """
    count = len(cameras)
    if not 2 <= count == len(poses):
        raise InputError(
            f'{count} cameras and {len(poses)} poses, allowed: two or more, as many of each; one'
            ' camera needs a plane'
        )
    places = numbers_of('pixels', pixels, (count, 2))
    pixel_covariances = numbers_of('covariances', covariances, (count, 2, 2))
    for covariance in pixel_covariances:
        covariance[:] = checked_covariance(covariance, 2, 'covariance of a pixel')
        if not covariance[0, 0] * covariance[1, 1] > covariance[0, 1] ** 2:
            raise InputError(
                f'covariance of a pixel = {covariance.tolist()}, allowed: positive definite'
            )
    position, found = np.empty(3), np.full(7, math.nan)
    noise, systematic = np.empty((3, 3)), np.empty((3, 3))
    status = _triangulate(
        np.array([camera.packed for camera in cameras]),
        np.array([pose.rotation for pose in poses]),
        np.array([pose.translation for pose in poses]),
        np.array([_or_zeros(pose.covariance, 6) for pose in poses]),
        places, pixel_covariances,
        np.array([sigma**2 * np.eye(2) for sigma in calibrations or count * [0.0]]),
        position, noise, systematic, found,
    )  # fmt: skip
    if status == 1:
        for camera, pixel in zip(cameras, places, strict=True):
            camera.undistort(pixel)
        _raise_for_rays(*found[:3])
    if status:
        raise InputError(
            f'pixels {places.tolist()} have no common point in front of the cameras; check'
            ' the poses, and that all show the same marker'
        )
    residual, chi_square, gap, gap_noise = found[3:].tolist()
    return Location(position, noise + systematic, residual, chi_square, systematic, gap, gap_noise)


def _raise_for_rays(angle: float, along_1: float, along_2: float) -> NoReturn:
    """Raise InputError for rays with an angle [rad] that meet at distances [m]."""
    if not angle > _SAME_RAY:
        raise InputError(
            f'both rays are parallel ({angle:.3g} rad between them), allowed: two cameras that see'
            ' the point from different sides'
        )
    if along_1 == 0.0 and along_2 == 0.0:
        raise InputError(
            'both rays start at the same point, allowed: two cameras in different places'
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
    return np.zeros((size, size)) if covariance is None else covariance
