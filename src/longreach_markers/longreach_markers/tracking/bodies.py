"""
Poses of rigid groups of markers.

The pose of a body with markers at p_i in its frame minimises

    sum_i r_i^T (N_i + s^2 I)^-1 r_i,   r_i = z_i - R p_i - t,

with the measured positions z_i, their covariances N_i from the pixels and the deviation s of the
p_i, by Gauss-Newton on SO(3) from the solution of Kabsch (1976). Errors of camera poses and plane,
which move all markers together, are no weights but propagated with their correlation; the other
systematic errors, of calibrations, have an unknown correlation, so that both extremes, independent
and common, are added. The deviation s is the same in all images.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import NamedTuple

import cv2
import numpy as np
from scipy.linalg import block_diag
from scipy.special import chdtri

from longreach_markers.camera.geometry import Pose, project_point
from longreach_markers.camera.triangulation import Location
from longreach_markers.marker.detection import TRACKED
from longreach_markers.rig import Body, Rig
from longreach_markers.rig_parameters import LEAST_MARKERS, distance_from_line
from longreach_markers.tracking.frames import BodyEstimate, Estimate

# Probability of a larger chi-square of a rigid body: one set of images in nine hours at 30 Hz.
_CHANCE = 1e-6
# Standard deviation of a rotation above which the linear propagation of errors ends [rad].
_TURNED = 0.1
# Steps, and the square of one in standard deviations at which the iterations end.
_STEPS, _SMALL = 50, 1e-12


class _Located(NamedTuple):
    """A marker with the position that is used."""

    name: str
    location: Location
    cameras: tuple[str, ...]
    in_plane: bool  # whether the position uses the plane


def locate_body(body: Body, rig: Rig, estimates: Mapping[str, Estimate]) -> BodyEstimate:
    """Estimate the pose of a body from its markers at one time; the reason where there is none."""
    located = _usable(body, estimates)
    names = tuple(one.name for one in located)
    if len(located) < LEAST_MARKERS:
        missing = [marker.name for marker in body.markers if marker.name not in names]
        off = {marker.name: abs(estimates[marker.name].off_plane) for marker in body.markers}
        worst = max(off, key=lambda name: off[name])
        how, why = 'tracked', ''
        if off[worst]:
            how = 'triangulated'
            why = f', as {worst} was {1e3 * off[worst]:.3g} mm out of the plane'
        return BodyEstimate(
            body.name,
            f'{len(located)} of {len(body.markers)} markers {how}, required:'
            f' {LEAST_MARKERS}{why}; not {how}: {", ".join(missing)}',
            names,
        )
    on_body = {marker.name: marker.position for marker in body.markers}
    points = np.array([on_body[name] for name in names])
    seen = np.array([one.location.position for one in located])
    noises = np.array([one.location.noise for one in located])
    geometry = body.deviation**2 * np.eye(3)
    apart = distance_from_line(points)
    if not apart > body.deviation:
        reason = (
            f'{", ".join(names)} are too near to one line: rotation about it is unknown; track'
            ' another marker of the body'
        )
        return BodyEstimate(body.name, reason, names)
    weights = np.linalg.inv(noises + geometry)
    rotation, translation = _aligned(points, seen)
    # Matrices [p] (n, 3, 3) with [p] w = p x w.
    across = np.cross(np.eye(3), points[:, None])
    shift = np.broadcast_to(np.eye(3), across.shape)
    for _ in range(_STEPS):
        residuals = (seen - points @ rotation.T - translation).ravel()
        # Derivatives of R exp([w]) p + t + d by w and d.
        by_pose = np.concatenate([-rotation @ across, shift], axis=2)
        jacobian, weighted = by_pose.reshape(-1, 6), (weights @ by_pose).reshape(-1, 6).T
        information = weighted @ jacobian
        step = np.linalg.solve(information, weighted @ residuals)
        if step @ information @ step < _SMALL:
            break
        rotation = rotation @ cv2.Rodrigues(step[:3])[0]
        translation = translation + step[3:]
    else:
        return BodyEstimate(body.name, 'the estimate of its pose does not converge', names)
    gain = np.linalg.solve(information, weighted)
    own = np.kron(np.eye(len(names)), geometry)
    systematic = _systematic(rig, located) + own
    noise = block_diag(*noises)
    covariance = gain @ (noise + systematic) @ gain.T
    turned = math.sqrt(np.linalg.eigvalsh(covariance[:3, :3])[-1])
    if not turned < _TURNED:
        reason = (
            f'its rotation is uncertain by {turned:.2g} rad, allowed: below {_TURNED:g}:'
            f' {", ".join(names)} are {1e3 * apart:.3g} mm from one line (RMS), with a'
            f' deviation of {1e3 * body.deviation:.3g} mm on the body; measure them more'
            ' accurately, or track another marker of the body'
        )
        return BodyEstimate(body.name, reason, names)
    # Residuals are what the pose leaves of the errors.
    left = np.eye(3 * len(names)) - jacobian @ gain
    freedom = 3 * len(names) - 6
    spread = left @ (noise + systematic) @ left.T
    variances, directions = np.linalg.eigh(spread)
    along = directions[:, -freedom:].T @ residuals
    chi_square = float(np.sum(along**2 / variances[-freedom:]))
    limit = float(chdtri(freedom, _CHANCE))
    if not chi_square <= limit:
        reason = _misfit(names, residuals, spread, chi_square, limit)
        return BodyEstimate(body.name, reason, names, chi_square=chi_square, freedom=freedom)
    pose = Pose(rotation, translation, _symmetric(covariance))
    return BodyEstimate(
        body.name, '', names, pose, _symmetric(gain @ systematic @ gain.T), chi_square, freedom
    )


def _usable(body: Body, estimates: Mapping[str, Estimate]) -> list[_Located]:
    found = []
    seen = {marker.name: estimates[marker.name] for marker in body.markers}
    # A body that has left the plane, or is tilted to it, has no positions in it.
    is_off = any(one.off_plane for one in seen.values())
    for name, one in seen.items():
        if one.triangulated is not None and (one.status == TRACKED or one.is_off_plane):
            found.append(_Located(name, one.triangulated, one.cameras, in_plane=False))
        elif one.in_plane is not None and one.status == TRACKED and not is_off:
            found.append(_Located(name, one.in_plane, one.cameras, in_plane=True))
    return found


def _misfit(
    names: tuple[str, ...], residuals: np.ndarray, spread: np.ndarray, found: float, limit: float
) -> str:
    by_marker = residuals.reshape(-1, 3)
    variances = np.diag(spread).reshape(-1, 3).sum(axis=1)
    worst = int(np.argmax((by_marker**2).sum(axis=1) / variances))
    away = 1e3 * float(np.linalg.norm(by_marker[worst]))
    return (
        f'its markers do not fit: chi-square {found:.3g}, allowed: {limit:.3g}; {names[worst]} is'
        f' off by {away:.2g} mm; check the positions of markers on the body, and that they are'
        ' fixed to it'
    )


def _aligned(points: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return R (3, 3), t (3,) with least sum of |z - R p - t|^2, Kabsch 1976."""
    middle, centre = points.mean(axis=0), seen.mean(axis=0)
    left, _, right = np.linalg.svd((seen - centre).T @ (points - middle))
    # A rotation, not a reflection.
    turn = np.diag([1.0, 1.0, np.sign(np.linalg.det(left @ right))])
    rotation = left @ turn @ right
    return rotation, centre - rotation @ middle


# --- systematic errors -----------------------------------------------------------------------


def _systematic(rig: Rig, located: list[_Located]) -> np.ndarray:
    """Return the covariance (3n, 3n) of positions from errors common to all images [m^2]."""
    # As if both cameras had pixels of equal variance; what is stated beyond that is added twice.
    plane = np.zeros((3, 3)) if rig.plane.covariance is None else rig.plane.covariance
    causes = block_diag(pose_covariances(rig), plane)
    effects = np.concatenate([_sensitivity(rig, one) for one in located])
    found = effects @ causes @ effects.T
    beyond = np.empty((3 * len(located), 3))
    for k, one in enumerate(located):
        part = slice(3 * k, 3 * k + 3)
        stated = one.location.covariance - one.location.noise
        variances, directions = np.linalg.eigh(stated - found[part, part])
        beyond[part] = directions @ np.diag(np.sqrt(np.maximum(variances, 0.0))) @ directions.T
    blocks = beyond.reshape(-1, 3, 3)
    return np.asarray(found + beyond @ beyond.T + block_diag(*(blocks @ blocks)))


def _sensitivity(rig: Rig, one: _Located) -> np.ndarray:
    """Return the derivatives (3, 6 c + 3) of a position by c camera poses and the plane."""
    position, plane = one.location.position, rig.plane
    point, poses = pixel_derivatives(rig, one.cameras, position)
    if not one.in_plane:
        # Pixels stay: a change of the poses is compensated by the point.
        return np.concatenate([-np.linalg.pinv(point) @ poses, np.zeros((3, 3))], axis=1)
    solve = plane.axes.T @ np.linalg.pinv(point @ plane.axes.T)
    offset = position - plane.centroid
    # Displacement of the plane here by its two rotations and its shift.
    height = np.array([plane.axes[1] @ offset, -plane.axes[0] @ offset, 1.0])
    along = plane.normal - solve @ point @ plane.normal
    return np.concatenate([-solve @ poses, np.outer(along, height)], axis=1)


def pose_covariances(rig: Rig) -> np.ndarray:
    """Return the covariance (6 c, 6 c) of all camera poses; 0 for those without."""
    known = (one.pose.covariance for one in rig.cameras.values())
    return np.asarray(block_diag(*(np.zeros((6, 6)) if one is None else one for one in known)))


def pixel_derivatives(
    rig: Rig, cameras: Collection[str], position: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return derivatives of pixels in k cameras: by the point (2 k, 3), all poses (2 k, 6 c)."""
    by_point, by_poses = [], []
    for k, (name, mounted) in enumerate(rig.cameras.items()):
        if name not in cameras:
            continue
        pose, jacobian = mounted.pose, np.empty((2, 9))
        project_point(mounted.camera.packed, pose.rotation, pose.translation, position, jacobian)
        by_point.append(jacobian[:, 6:])
        by_poses.append(np.zeros((2, 6 * len(rig.cameras))))
        by_poses[-1][:, 6 * k : 6 * k + 6] = jacobian[:, :6]
    return np.concatenate(by_point), np.concatenate(by_poses)


def _symmetric(matrix: np.ndarray) -> np.ndarray:
    return np.asarray(0.5 * (matrix + matrix.T))
