"""
Poses of two cameras, and the plane of the boom, from reference points measured with a laser.

Each camera first by itself: starts from several solvers (SQPNP, IPPE where the points lie in a
plane, EPNP, P3P on triples), then Levenberg and Marquardt with the lens distortion, and the best
minimum of all. Then all at once: both poses and the coordinates of the points, with the laser's
coordinates and distances as measurements beside the pixels. What a pixel is off is as a rule far
less than what the laser is off (a hundredth of a pixel is 0.1 mm at 22 m), so that the two cameras
correct the coordinates. The laser's coordinates also hold what the pixels cannot know: where the
world's frame lies.

The covariance of poses and points together gives that of the plane through the adjusted points,
and of any marker that would be located later; both contain the same errors of the same points,
which adding up separate covariances would not know. The intrinsics count as exact.

Source: Henikl 2015, 4.2.2, which stops at the pose of each camera by itself.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from scipy import stats

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, load, quantity
from longreach_vision.adjustment import FLAT, Fit, Problem, Seen, State, alike, best_fit, projected
from longreach_vision.cameras import Camera, read_camera
from longreach_vision.geometry import PlaneFit, Pose, fit_plane

__all__ = [
    'SIDES',
    'CameraEntry',
    'CameraPair',
    'Distance',
    'Localisation',
    'PointFit',
    'Prediction',
    'Reference',
    'ReferencePoint',
    'load_reference',
    'localise',
    'read_cameras',
]

SIDES = ('left', 'right')

# Coordinates of maps are below the first, no tape or laser is better than the second [m].
_FARTHEST, _FINEST = 1e8, 1e-9
# Misfit: chance to be as bad, above which all is well; deviations beyond which nothing is written.
_CHANCE, _REFUSED = 1e-3, 10.0
# Starts when many trials are made.
_FEW_STARTS = 3
# The tip is far from the points when its error is so many times theirs.
_FAR, _FAR_FROM = 2.5, 5e-3
# Pixels nearer to each other than this are one point [px].
_LEAST_WIDTH = 2.0
# Swaps that are tried; to rank them, draws of three points, how near others agree [px], and the
# error of a point that nothing is known of [px].
_SWAPS, _DRAWN, _AGREEING, _UNKNOWN = 200, 300, 10.0, 1e6
# Points that cover less of an image are said to [1].
_LEAST_SHARE = 0.05


@dataclasses.dataclass(frozen=True)
class CameraEntry(Parameters):
    """A camera whose pose is wanted."""

    calibration: str = quantity('its calibration file, from the folder of this file', '')
    position: tuple[float, ...] | None = quantity(
        'about where it stands in the world, x y z, if the points alone leave a choice',
        'm',
        length=3,
        at_least=-_FARTHEST,
        at_most=_FARTHEST,
        default=None,
    )
    position_deviation: float = quantity(
        'standard deviation of that', 'm', at_least=_FINEST, at_most=1e3, default=0.3
    )


@dataclasses.dataclass(frozen=True)
class CameraPair(Parameters):
    """One camera or two."""

    left: CameraEntry | None = quantity('left camera', '', default=None)
    right: CameraEntry | None = quantity('right camera', '', default=None)

    def check(self) -> None:
        """Raise InputError when there is none."""
        if self.left is None and self.right is None:
            raise InputError('left and right are missing, allowed: one of them or both')


@dataclasses.dataclass(frozen=True)
class ReferencePoint(Parameters):
    """A point whose coordinates were measured, and its pixels."""

    name: str = quantity('name', '')
    position: tuple[float, ...] = quantity(
        'x y z in the world', 'm', length=3, at_least=-_FARTHEST, at_most=_FARTHEST
    )
    deviation: float = quantity(
        'standard deviation of each coordinate', 'm', at_least=_FINEST, at_most=10.0, default=0.01
    )
    left: tuple[float, ...] | None = quantity(
        'u v in the left image, with distortion', 'px', length=2, default=None
    )
    right: tuple[float, ...] | None = quantity(
        'u v in the right image, with distortion', 'px', length=2, default=None
    )
    in_plane: bool = quantity('whether it lies in the plane of the boom', '', default=False)


@dataclasses.dataclass(frozen=True)
class Distance(Parameters):
    """A distance measured with a laser."""

    between: tuple[str, ...] = quantity('names of two points, or left or right and one', length=2)
    distance: float = quantity('distance', 'm', above=0.0, at_most=1e4)
    deviation: float = quantity(
        'standard deviation', 'm', at_least=_FINEST, at_most=10.0, default=0.005
    )


@dataclasses.dataclass(frozen=True)
class Reference(Parameters):
    """What was measured to find the cameras' poses."""

    cameras: CameraPair = quantity('cameras', '')
    points: tuple[ReferencePoint, ...] = quantity('reference points', '')
    distances: tuple[Distance, ...] = quantity('distances between them', '', default=())
    pixel_deviation: float = quantity(
        'standard deviation of a pixel coordinate; of one read by eye 0.3 to 1',
        'px',
        at_least=1e-6,
        at_most=100.0,
        default=0.05,
    )
    tip: tuple[float, ...] = quantity(
        'where the error of a marker is predicted, x y z',
        'm',
        length=3,
        at_least=-_FARTHEST,
        at_most=_FARTHEST,
        default=(25.1, 0.0, 1.7),
        source='tip of longreach_boom/config/boom.yaml, pose site',
    )

    def check(self) -> None:
        """Raise InputError for names that are double or lead nowhere."""
        names = [point.name for point in self.points]
        for name in names:
            if not name or name in SIDES or names.count(name) > 1:
                raise InputError(
                    f'points has the name {name!r}, allowed: no two alike, none of'
                    f' {", ".join(SIDES)}'
                )
        for index, distance in enumerate(self.distances):
            for name in distance.between:
                if name not in names and name not in self.sides:
                    raise InputError(
                        f'distances[{index}].between has {name!r}, allowed:'
                        f' {", ".join((*self.sides, *names))}'
                    )
            if distance.between[0] == distance.between[1]:
                raise InputError(f'distances[{index}].between has {distance.between[0]!r} twice')
        for index, point in enumerate(self.points):
            for side in SIDES:
                if getattr(point, side) is not None and side not in self.sides:
                    raise InputError(
                        f'points[{index}] has a pixel for {side}, but cameras has no {side}'
                    )

    @property
    def sides(self) -> tuple[str, ...]:
        """Which cameras there are."""
        return tuple(side for side in SIDES if getattr(self.cameras, side) is not None)


class PointFit(NamedTuple):
    """A reference point after the fit."""

    name: str
    position: np.ndarray  # (3,) adjusted [m]
    correction: np.ndarray  # (3,) adjusted less measured [m]
    covariance: np.ndarray  # (3, 3) of the adjusted position [m^2]
    pixels: dict[str, np.ndarray]  # (2,) measured less projected, by camera [px]


class Prediction(NamedTuple):
    """Where a marker would be located that is at a point, and how well; in the world's axes."""

    point: np.ndarray  # (3,) [m]
    in_plane: dict[str, np.ndarray]  # covariance (3, 3) by camera [m^2]; empty without a plane
    triangulated: np.ndarray | None  # (3, 3) [m^2]; None with one camera

    @property
    def error(self) -> float:
        """Root of the variances' sum of the best estimate [m]; NaN where no camera sees it."""
        every = [*self.in_plane.values()]
        if self.triangulated is not None:
            every.append(self.triangulated)
        return min((math.sqrt(float(np.trace(cov))) for cov in every), default=math.nan)


@dataclasses.dataclass(frozen=True)
class Localisation:
    """
    Poses of cameras and plane of the boom, with what speaks for and against them.

    Parameters
    ----------
    poses : dict of Pose
        T_world_cam by camera, with covariance.
    points : tuple of PointFit
        In the order of the reference.
    plane : PlaneFit, optional
        Through the adjusted points that lie in it, with covariance; None for fewer than three.
    sum_of_squares, freedom : float, int
        Of all residuals in units of their deviations; on average they are equal.
    rms : dict of float
        Root of the mean squared distance of pixels from projections, by camera [px].
    tip : Prediction
        At the tip that the reference names.
    at_points : tuple of Prediction
        At the reference points.
    warnings : tuple of str
        Why it cannot be trusted, and what to do; empty for a good one.
    """

    poses: dict[str, Pose]
    points: tuple[PointFit, ...]
    plane: PlaneFit | None
    sum_of_squares: float
    freedom: int
    rms: dict[str, float]
    tip: Prediction
    at_points: tuple[Prediction, ...]
    warnings: tuple[str, ...]


def load_reference(file: str | Path) -> Reference:
    """
    Read a file of reference points; config/reference_example.yaml is one.

    Raises
    ------
    InputError
        With file, key, value and allowed range.
    """
    return load(Reference, file)


def read_cameras(reference: Reference, folder: str | Path) -> dict[str, Camera]:
    """Return the cameras of a reference by side; their files are found from a folder."""
    return {
        side: read_camera(Path(folder) / getattr(reference.cameras, side).calibration)
        for side in reference.sides
    }


def localise(reference: Reference, cameras: Mapping[str, Camera]) -> Localisation:
    """
    Estimate the poses of one or two cameras.

    Parameters
    ----------
    reference : Reference
    cameras : mapping of str to Camera
        By side, as in the reference.

    Returns
    -------
    Localisation

    Raises
    ------
    InputError
        For fewer than three points in an image, points along a line, pixels outside of the image,
        and measurements that contradict each other, with the point that is likely wrong.
    """
    problem = _problem_of(reference, cameras)
    names = [point.name for point in reference.points]
    _check(problem, names)
    best, rivals = best_fit(problem)
    if best is None:
        culprits = _culprits(problem, names) or 'check positions and pixels of the points'
        raise InputError(f'no pose has all points in front of the camera; {culprits}')
    warnings = _ambiguities(problem, best, rivals)
    scale = 1.0
    if best.freedom > 0 and float(stats.chi2.sf(best.cost, best.freedom)) < _CHANCE:
        scale = best.cost / best.freedom
        text = _misfit_text(problem, names, best)
        if scale > _REFUSED**2:
            raise InputError(text)
        warnings.append(text)
    covariance = scale * _inverse(best.jacobian.T @ best.jacobian)
    state = best.state
    poses = {
        side: Pose(
            pose.rotation, pose.translation, covariance[6 * c : 6 * c + 6, 6 * c : 6 * c + 6]
        )
        for c, (side, pose) in enumerate(zip(problem.sides, state.poses, strict=True))
    }
    plane, plane_of = _plane(reference, state, covariance, warnings)
    predict = _Predictor(problem, state, covariance, plane, plane_of)
    tip = predict.at(np.array(reference.tip))
    at_points = tuple(predict.at(point) for point in state.points)
    result = Localisation(
        poses,
        _point_fits(problem, names, state, covariance),
        plane,
        best.cost,
        best.freedom,
        {
            side: math.sqrt(float(np.mean(np.sum(off**2, axis=1))))
            for side, off in zip(problem.sides, _pixel_residuals(problem, state), strict=True)
        },
        tip,
        at_points,
        (),
    )
    warnings += _placement(problem, predict, result)
    return dataclasses.replace(result, warnings=tuple(warnings))


def _inverse(matrix: np.ndarray) -> np.ndarray:
    """Return the inverse of a normal matrix, or raise InputError when it has none."""
    try:
        inverse = np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        inverse = np.full_like(matrix, math.nan)
    # Rounding makes variances negative, where there ought to be none.
    if not (np.isfinite(inverse).all() and (np.diag(inverse) > 0.0).all()):
        raise InputError(
            'the measurements do not determine the poses; add points that are spread over the'
            ' images and in depth, and look for points or pixels that stand twice'
        )
    return np.asarray(0.5 * (inverse + inverse.T))


def _problem_of(reference: Reference, cameras: Mapping[str, Camera]) -> Problem:
    """Return the problem that a reference states."""
    sides = reference.sides
    for side in sides:
        if side not in cameras:
            raise InputError(f'cameras has {", ".join(cameras)}, allowed: {", ".join(sides)}')
    names = [point.name for point in reference.points]
    seen = []
    for side in sides:
        pixels = [getattr(point, side) for point in reference.points]
        indices = [k for k, pixel in enumerate(pixels) if pixel is not None]
        seen.append(
            Seen(np.array(indices, dtype=int), np.array([pixels[k] for k in indices], dtype=float))
        )
    ends = {name: k for k, name in enumerate(names)}
    ends |= {side: -1 - c for c, side in enumerate(sides)}
    stands = []
    for c, side in enumerate(sides):
        entry = getattr(reference.cameras, side)
        if entry.position is not None:
            stands.append((c, np.array(entry.position), entry.position_deviation))
    return Problem(
        sides,
        tuple(cameras[side] for side in sides),
        tuple(seen),
        np.array([point.position for point in reference.points], dtype=float).reshape(-1, 3),
        np.array([point.deviation for point in reference.points], dtype=float),
        reference.pixel_deviation,
        tuple(
            (ends[d.between[0]], ends[d.between[1]], d.distance, d.deviation)
            for d in reference.distances
        ),
        tuple(stands),
    )


def _check(problem: Problem, names: Sequence[str]) -> None:
    """Raise InputError when the points cannot determine a pose."""
    for side, camera, seen in zip(problem.sides, problem.cameras, problem.seen, strict=True):
        count = len(seen.indices)
        if count < 3:
            raise InputError(
                f'{side} sees {count} reference points, allowed: 3 or more; 6 that are spread over'
                ' the image and in depth are good'
            )
        for index, (u, v) in zip(seen.indices, seen.pixels, strict=True):
            if not (-0.5 <= u <= camera.width - 0.5 and -0.5 <= v <= camera.height - 0.5):
                raise InputError(
                    f'{names[index]} has the pixel ({u:g}, {v:g}) in {side}, allowed: within'
                    f' {camera.width} x {camera.height} px'
                )
        width = float(np.ptp(seen.pixels, axis=0).max())
        if width < _LEAST_WIDTH:
            raise InputError(
                f'the {count} pixels of {side} lie within {width:.3g} px, allowed: above'
                f' {_LEAST_WIDTH:g} px; has one been copied to all points?'
            )
        points, sigma = problem.measured[seen.indices], problem.deviations[seen.indices]
        sizes = np.linalg.svd(points - points.mean(axis=0), compute_uv=False) / math.sqrt(count)
        least = max(3.0 * float(np.median(sigma)), 0.01 * float(sizes[0]))
        if sizes[1] <= least:
            raise InputError(
                f'the {count} reference points of {side} lie along a line: they spread'
                f' {sizes[1]:.3g} m across it, allowed: above {least:.3g} m; add a point beside it'
            )


def _pixel_residuals(problem: Problem, state: State) -> list[np.ndarray]:
    """Return what measured pixels are off the projections, by camera, (m, 2) [px]."""
    return [
        seen.pixels - projected(camera, pose, state.points[seen.indices])[0]
        for camera, pose, seen in zip(problem.cameras, state.poses, problem.seen, strict=True)
    ]


def _point_fits(
    problem: Problem, names: Sequence[str], state: State, covariance: np.ndarray
) -> tuple[PointFit, ...]:
    """Return what became of the points."""
    residuals = _pixel_residuals(problem, state)
    fits = []
    for k, name in enumerate(names):
        pixels = {
            side: off[seen.indices == k][0]
            for side, seen, off in zip(problem.sides, problem.seen, residuals, strict=True)
            if k in seen.indices
        }
        start = 6 * len(state.poses) + 3 * k
        fits.append(
            PointFit(
                name,
                state.points[k],
                state.points[k] - problem.measured[k],
                covariance[start : start + 3, start : start + 3],
                pixels,
            )
        )
    return tuple(fits)


def _plane(
    reference: Reference, state: State, covariance: np.ndarray, warnings: list[str]
) -> tuple[PlaneFit | None, np.ndarray | None]:
    """
    Return the plane through the adjusted points that lie in it, with its covariance.

    The second value is its Jacobian by all that is estimated, (3, 6 poses + 3 n).
    """
    inside = [k for k, point in enumerate(reference.points) if point.in_plane]
    if not inside:
        return None, None
    if len(inside) < 3:
        raise InputError(
            f'{len(inside)} points are said to lie in the plane, allowed: 3 or more, or none'
        )
    first = len(covariance) - 3 * len(state.points)
    columns = np.concatenate([np.arange(first + 3 * k, first + 3 * k + 3) for k in inside])
    deviation = math.sqrt(float(np.mean(np.diag(covariance)[columns])))
    points = state.points[inside]
    try:
        fit = fit_plane(points, deviation)
    except InputError as error:
        raise InputError(f'points with in_plane: {error}') from error
    plane, count = fit.plane, len(inside)
    # By small changes of the points' distances; changes within the plane do nothing.
    offsets = (points - plane.centroid) @ plane.axes.T
    design = np.column_stack([offsets[:, 1], -offsets[:, 0], np.ones(count)])
    by_distance = np.linalg.solve(design.T @ design, design.T)
    J = np.zeros((3, len(covariance)))
    J[:, columns] = (by_distance[:, :, None] * plane.normal).reshape(3, -1)
    across = np.kron(np.eye(count), plane.normal[None])
    distances = across @ covariance[np.ix_(columns, columns)] @ across.T
    spread = J @ covariance @ J.T
    if count > 3:
        left = np.eye(count) - design @ by_distance
        expected = float(np.trace(left @ distances @ left.T)) / (count - 3)
        ratio = fit.rms**2 / expected
        if float(stats.chi2.sf(ratio * (count - 3), count - 3)) < _CHANCE:
            worst = int(np.argmax(np.abs(fit.residuals)))
            warnings.append(
                f'points with in_plane lie {1e3 * fit.rms:.1f} mm (RMS) off their plane, expected:'
                f' {1e3 * math.sqrt(expected):.1f} mm; check'
                f' {reference.points[inside[worst]].name}, or leave out what is not in the plane'
            )
            spread = spread * ratio
    plane = dataclasses.replace(plane, covariance=0.5 * (spread + spread.T))
    return PlaneFit(plane, fit.residuals, fit.rms), J


@dataclasses.dataclass(frozen=True)
class _Predictor:
    """Covariances of markers that are located with an estimate."""

    problem: Problem
    state: State
    covariance: np.ndarray
    plane: PlaneFit | None
    plane_jacobian: np.ndarray | None

    def at(self, point: np.ndarray) -> Prediction:
        """Return the prediction at a point (3,) of the world [m]."""
        parts = []
        for c, (camera, pose) in enumerate(
            zip(self.problem.cameras, self.state.poses, strict=True)
        ):
            pixels, jacobians = projected(camera, pose, point[None])
            if np.isfinite(pixels).all() and _inside(camera, pixels[0]):
                parts.append((c, jacobians[0]))
        in_plane = {}
        if self.plane is not None:
            for c, _ in parts:
                in_plane[self.problem.sides[c]] = self._in_plane(c, point)
        triangulated = None
        if len(parts) > 1:
            triangulated = self._triangulated(parts)
        return Prediction(point, in_plane, triangulated)

    def _by_poses(self, c: int, jacobian: np.ndarray) -> np.ndarray:
        """Return rows by a camera's pose as rows by all that is estimated."""
        rows = np.zeros((len(jacobian), len(self.covariance)))
        rows[:, 6 * c : 6 * c + 6] = jacobian
        return rows

    def _triangulated(self, parts: list[tuple[int, np.ndarray]]) -> np.ndarray:
        """Return the covariance of a point that several cameras see."""
        A = np.vstack([jacobian[:, 6:] for _, jacobian in parts])
        B = np.vstack([self._by_poses(c, jacobian[:, :6]) for c, jacobian in parts])
        estimator = np.linalg.solve(A.T @ A, A.T)
        G = estimator @ B
        pixel = self.problem.pixel_deviation**2 * estimator @ estimator.T
        return np.asarray(pixel + G @ self.covariance @ G.T)

    def _in_plane(self, c: int, point: np.ndarray) -> np.ndarray:
        """Return the covariance of the point of the plane that a camera sees near a point."""
        assert self.plane is not None
        assert self.plane_jacobian is not None
        plane, pose = self.plane.plane, self.state.poses[c]
        on = point - float(plane.distance(point)) * plane.normal
        _, jacobians = projected(self.problem.cameras[c], pose, on[None])
        A, B = jacobians[0, :, 6:], jacobians[0, :, :6]
        # Two equations from the pixel and one from the plane: n.(p - c) = s + turns.
        offsets = plane.axes @ (on - plane.centroid)
        by_plane = np.array([[offsets[1], -offsets[0], 1.0]]) @ self.plane_jacobian
        M = np.linalg.inv(np.vstack([A, plane.normal]))
        G = M @ np.vstack([-self._by_poses(c, B), by_plane])
        pixel = self.problem.pixel_deviation**2 * M[:, :2] @ M[:, :2].T
        return np.asarray(pixel + G @ self.covariance @ G.T)

    def with_point(self, point: np.ndarray) -> _Predictor:
        """Return the predictor if one more point had been measured, as well as the middle one."""
        sigma = float(np.median(self.problem.deviations))
        information = np.linalg.inv(self.covariance)
        # Its coordinates are one and the same error for all cameras.
        A, B = [], []
        for c, (camera, pose) in enumerate(
            zip(self.problem.cameras, self.state.poses, strict=True)
        ):
            pixels, jacobians = projected(camera, pose, point[None])
            if np.isfinite(pixels).all() and _inside(camera, pixels[0]):
                A.append(jacobians[0, :, 6:])
                B.append(self._by_poses(c, jacobians[0, :, :6]))
        if A:
            rows, by_all = np.vstack(A), np.vstack(B)
            noise = sigma**2 * rows @ rows.T + self.problem.pixel_deviation**2 * np.eye(len(rows))
            information = information + by_all.T @ np.linalg.solve(noise, by_all)
        return dataclasses.replace(self, covariance=np.linalg.inv(information))


def _inside(camera: Camera, pixel: np.ndarray) -> bool:
    """Tell whether a pixel (2,) lies in the image."""
    u, v = pixel
    return bool(-0.5 <= u <= camera.width - 0.5 and -0.5 <= v <= camera.height - 0.5)


# --- what is said about it ------------------------------------------------------------------


def _ambiguities(problem: Problem, best: Fit, rivals: list[Fit]) -> list[str]:
    """Return what to say about other poses that fit as well."""
    found = []
    for c, (side, seen) in enumerate(zip(problem.sides, problem.seen, strict=True)):
        place = best.state.poses[c].translation
        others: list[Pose] = []
        for rival in rivals:
            pose = rival.state.poses[c]
            known = [best.state.poses[c], *others]
            if not any(alike(pose, other, problem.measured) for other in known):
                others.append(pose)
        if not others and len(seen.indices) > 3:
            continue
        if not others:
            found.append(
                f'{side} sees 3 points only: nothing checks them, and other poses may fit nearly'
                ' as well; add one that is off their plane'
            )
            continue
        told = ' or '.join(_place(pose.translation) for pose in others)
        found.append(
            f'{side} stands at {_place(place)}, or as likely at {told}:'
            f' {len(seen.indices)} points do not tell; add points that are off their plane, or'
            f' give cameras.{side}.position'
        )
    return found


def _place(position: np.ndarray) -> str:
    """Return a position for people."""
    return '(' + ', '.join(f'{value:.2f}' for value in position) + ') m'


def _misfit_text(problem: Problem, names: Sequence[str], best: Fit) -> str:
    """Return what to say about measurements that contradict each other."""
    times = math.sqrt(best.cost / best.freedom)
    residuals = np.concatenate(_pixel_residuals(problem, best.state))
    pixels = math.sqrt(float(np.mean(np.sum(residuals**2, axis=1))))
    shifts = np.linalg.norm(best.state.points - problem.measured, axis=1)
    text = (
        f'the measurements do not fit: residuals are {times:.3g} times what their deviations say'
        f' ({pixels:.3g} px, points moved by up to {1e3 * float(shifts.max()):.3g} mm)'
    )
    culprits = _culprits(problem, names)
    if culprits:
        return f'{text}; {culprits}'
    if times > _REFUSED:
        return f'{text}; look for swapped or mistyped points, or another calibration'
    return f'{text}; state larger deviations if that is what they are, or look for mistyped points'


def _culprits(problem: Problem, names: Sequence[str]) -> str:
    """Return which points are likely wrong or swapped, for messages; empty for none."""
    suspects = _suspects(problem, names)
    if suspects:
        return f'{" or ".join(suspects)} is likely wrong: measure it again, or leave it out'
    swapped = _swaps(problem, names)
    return f'{" or ".join(swapped)} are likely swapped' if swapped else ''


def _fits(problem: Problem) -> bool:
    """Tell whether measurements agree with each other, and can contradict each other."""
    if min(len(seen.indices) for seen in problem.seen) < 3:
        return False
    best, _ = best_fit(problem, _FEW_STARTS)
    if best is None or best.freedom < 1:
        return False
    return float(stats.chi2.sf(best.cost, best.freedom)) >= _CHANCE


def _suspects(problem: Problem, names: Sequence[str]) -> list[str]:
    """Return the points without which all the rest fits; what of them, where that is known."""
    found = []
    for k, name in enumerate(names):
        by = [c for c, seen in enumerate(problem.seen) if k in seen.indices]
        whole = problem._replace(
            distances=tuple(item for item in problem.distances if k not in item[:2])
        )
        if not by or not _fits(whole.without(k, by)):
            continue
        enough = [c for c in by if _fits(problem.without(k, [c]))] if len(by) > 1 else []
        if len(enough) == 1:
            found.append(f'the pixel of {name} in {problem.sides[enough[0]]}')
        else:
            found.append(name)
    if not found and problem.distances and _fits(problem._replace(distances=())):
        return ['a distance']
    return found


def _swaps(problem: Problem, names: Sequence[str]) -> list[str]:
    """Return the pairs of pixels, or of positions, with which everything fits once swapped."""
    found = []
    for trial, c, told in itertools.islice(_swapped(problem, names), _SWAPS):
        # One camera by itself is quicker to refuse; three points in it agree with anything.
        single = trial.only(c)
        if (len(single.measured) < 4 or _fits(single)) and _fits(trial):
            found.append(told)
    return found


def _swapped(problem: Problem, names: Sequence[str]) -> Iterator[tuple[Problem, int, str]]:
    """Yield problems less a swap, a camera that it was in, and its name; the likeliest first."""
    off = [_off(problem, c) for c in range(len(problem.cameras))]
    trials: list[tuple[float, Problem, int, str]] = []
    for a, b in itertools.combinations(range(len(names)), 2):
        by = [c for c, errors in enumerate(off) if a in errors or b in errors]
        both = [c for c in by if a in off[c] and b in off[c]]
        pair = f'{names[a]} and {names[b]}'
        for c in both:
            places = (int(np.flatnonzero(problem.seen[c].indices == k)[0]) for k in (a, b))
            trial = problem.swapped(c, *places)
            trials.append((min(off[c][a], off[c][b]), trial, c, f'{pair} in {problem.sides[c]}'))
        # In the only camera that sees them, swapped positions are swapped pixels.
        if len(by) > 1:
            errors = [sum(one.get(k, 0.0) for one in off) for k in (a, b)]
            most = max(by, key=lambda c: len(off[c]))
            told = f'the positions of {pair}'
            trials.append((min(errors), problem.exchanged(a, b), most, told))
    trials.sort(key=lambda trial: -trial[0])
    for _, trial, c, told in trials:
        yield trial, c, told


def _off(problem: Problem, c: int) -> dict[int, float]:
    """Return by how much each point is off in a camera whose pose most of them agree on [px]."""
    single = problem.only(c)
    camera, pixels = single.cameras[0], single.seen[0].pixels
    errors = np.full(len(pixels), _UNKNOWN)
    middle = single.measured.mean(axis=0)
    with contextlib.suppress(cv2.error):
        # It takes four points or more, and may agree on nothing.
        found, turn, shift, _ = cv2.solvePnPRansac(
            single.measured - middle,
            camera.undistort(pixels),
            np.eye(3),
            np.zeros(0),
            iterationsCount=_DRAWN,
            reprojectionError=_AGREEING / camera.fx,
            flags=cv2.SOLVEPNP_AP3P,
        )
        if found:
            R = cv2.Rodrigues(turn)[0]
            pose = Pose(R.T, middle - R.T @ np.ravel(shift))
            distance = np.linalg.norm(projected(camera, pose, single.measured)[0] - pixels, axis=1)
            errors = np.where(np.isfinite(distance), distance, _UNKNOWN)
    return dict(zip(problem.seen[c].indices.tolist(), errors.tolist(), strict=True))


def _placement(problem: Problem, predict: _Predictor, result: Localisation) -> list[str]:
    """Return what to say about where the points are."""
    found = []
    tip = result.tip
    error = tip.error
    if math.isnan(error):
        if not any(
            np.isfinite(camera.project(pose.to_camera(tip.point), strict=False)).all()
            and _inside(camera, camera.project(pose.to_camera(tip.point), strict=False))
            for camera, pose in zip(problem.cameras, predict.state.poses, strict=True)
        ):
            found.append(
                f'no camera sees the tip at {_place(tip.point)}: turn them, or give another tip'
            )
        else:
            found.append(
                'one camera sees the tip and no plane is known: mark three or more points with'
                ' in_plane: true'
            )
    at_points = [value.error for value in result.at_points if math.isfinite(value.error)]
    if at_points and error > max(_FAR * float(np.median(at_points)), _FAR_FROM):
        helped = predict.with_point(tip.point).at(tip.point).error
        thick = np.linalg.svd(problem.measured - problem.measured.mean(axis=0), compute_uv=False)
        flat = ' and in one plane' if thick[2] < FLAT * thick[1] else ''
        found.append(
            f'a marker at the tip would be off by {1e3 * error:.0f} mm, at the reference points by'
            f' {1e3 * float(np.median(at_points)):.0f} mm: these are clustered{flat}, far from the'
            f' tip; one more near it would give {1e3 * helped:.0f} mm; spread them all round the'
            ' space where markers move, in depth, too'
        )
    for side, camera, seen in zip(problem.sides, problem.cameras, problem.seen, strict=True):
        hull = cv2.convexHull(seen.pixels.astype(np.float32))
        share = float(cv2.contourArea(hull)) / (camera.width * camera.height)
        if share < _LEAST_SHARE:
            found.append(
                f'the reference points cover {100.0 * share:.1f} % of the image of {side}: spread'
                ' them over it'
            )
    return found
