"""
Poses of cameras, and the plane of the boom, from laser-measured reference points.

All poses and the coordinates of the points are estimated jointly
(:mod:`longreach_markers.setup.bundle_adjustment`), with the laser's coordinates and distances as
measurements in addition to the pixels. The laser's coordinates define the world frame. The joint
covariance of poses and points gives that of the plane through the adjusted points, and of any
marker located later. The intrinsics are treated as exact.

Source: Henikl 2015, 4.2.2, which estimates only the pose of each single camera.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError, LongreachError, check_among, named
from longreach_dynamics.parameters import Parameters, load, quantity
from longreach_markers.camera.files import read_camera
from longreach_markers.camera.geometry import PlaneFit, Pose, fit_plane
from longreach_markers.camera.model import Camera
from longreach_markers.rig import FIRST, camera_names, check_cameras
from longreach_markers.rig_parameters import PLACES, bounded
from longreach_markers.setup.bundle_adjustment import (
    EstimatedPlane,
    Prediction,
    Predictor,
    Problem,
    Seen,
    State,
    best_fit,
    is_in_image,
    is_misfit,
)
from longreach_markers.setup.localisation_advice import (
    ambiguities,
    culprits,
    misfit,
    placement,
    plane_misfit,
)

# No measurement is more accurate [m].
_FINEST = 1e-9


@dataclasses.dataclass(frozen=True)
class CameraEntry(Parameters):
    """A camera to be localised."""

    calibration: str = quantity('calibration file, relative to the folder of this file', '')
    position: tuple[float, ...] | None = bounded(
        'approximate position, x y z, to resolve an ambiguity', 'm', PLACES, None, length=3
    )
    position_deviation: float = bounded(
        'standard deviation of the position', 'm', (_FINEST, 1e3), 0.3
    )


@dataclasses.dataclass(frozen=True)
class ReferencePoint(Parameters):
    """A point with measured coordinates; :func:`reference_file` adds pixels by camera."""

    name: str = quantity('name', '')
    position: tuple[float, ...] = bounded('x y z in the world', 'm', PLACES, length=3)
    deviation: float = bounded('standard deviation of each coordinate', 'm', (_FINEST, 10.0), 0.01)
    in_plane: bool = quantity('whether the point lies in the plane of the boom', '', default=False)


@dataclasses.dataclass(frozen=True)
class Distance(Parameters):
    """A distance measured by laser."""

    between: tuple[str, ...] = quantity(
        'names of two points, or of a camera and a point', length=2
    )
    distance: float = quantity('distance', 'm', above=0.0, at_most=1e4)
    deviation: float = bounded('standard deviation', 'm', (_FINEST, 10.0), 0.005)


@dataclasses.dataclass(frozen=True)
class Reference(Parameters):
    """Measurements for the localisation of the cameras."""

    cameras: Parameters = quantity('cameras by name')
    points: tuple[ReferencePoint, ...] = quantity('reference points', '')
    distances: tuple[Distance, ...] = quantity('measured distances', '', default=())
    pixel_deviation: float = bounded(
        'standard deviation of pixels; 0.3 to 1 if read by eye', 'px', (1e-6, 100.0), 0.05
    )
    tip: tuple[float, ...] = bounded(
        'position at which the error of a marker is predicted, x y z',
        'm',
        PLACES,
        (25.1, 0.0, 1.7),
        length=3,
        source='tip of longreach_boom/config/boom.yaml, pose site',
    )

    def check(self) -> None:
        """Raise InputError for names that are duplicate or unknown."""
        check_cameras(self.sides)
        names = [point.name for point in self.points]
        for name in names:
            if not name or name in self._known or names.count(name) > 1:
                raise InputError(
                    f'points has the name {name!r}, allowed: no two alike, none of'
                    f' {", ".join(self._known)}'
                )
        for index, distance in enumerate(self.distances):
            for name in distance.between:
                check_among(f'distances[{index}].between', name, (*self.sides, *names))
            if distance.between[0] == distance.between[1]:
                raise InputError(f'distances[{index}].between has {distance.between[0]!r} twice')
        for index, point in enumerate(self.points):
            for side in self._known:
                if getattr(point, side) is not None and side not in self.sides:
                    raise InputError(
                        f'points[{index}] has a pixel for {side}, but cameras has no {side}'
                    )

    @property
    def sides(self) -> tuple[str, ...]:
        """Names of the cameras, left and right first."""
        return tuple(side for side in self._known if getattr(self.cameras, side) is not None)

    @property
    def _known(self) -> tuple[str, ...]:
        """Names of cameras that a point may have pixels of."""
        return tuple(one.name for one in dataclasses.fields(self.cameras))


def reference_file(names: Iterable[str]) -> type[Reference]:
    """Return the class of a file of reference points that cameras of these names see."""
    ordered = sorted(names, key=lambda name: (*FIRST, name).index(name))
    check_cameras(ordered)
    for name in ordered:
        if name in {one.name for one in dataclasses.fields(ReferencePoint)}:
            raise InputError(f'cameras has {name!r}, which is a key of points, allowed: others')
    text = 'u v in the image of this camera, including distortion'
    pixel = functools.partial(quantity, text, 'px', length=2, default=None)
    entries = [(name, CameraEntry | None, quantity('camera', default=None)) for name in ordered]
    pixels = [(name, tuple[float, ...] | None, pixel()) for name in ordered]
    cameras = dataclasses.make_dataclass('_Cameras', entries, bases=(Parameters,), frozen=True)
    point = dataclasses.make_dataclass('_Point', pixels, bases=(ReferencePoint,), frozen=True)
    whole = [
        ('cameras', cameras, quantity('cameras by name')),
        ('points', tuple[point, ...], quantity('reference points', '')),  # type: ignore[valid-type]
    ]
    return dataclasses.make_dataclass('_Reference', whole, bases=(Reference,), frozen=True)


def load_reference(file: str | Path) -> Reference:
    """
    Read a file of reference points.

    Raises
    ------
    InputError
        For invalid values, with file, key, value and allowed range.
    """
    with named(f'{file}: '):
        kind = reference_file(camera_names(Path(file)))
    return load(kind, file)


def read_cameras(reference: Reference, folder: str | Path) -> dict[str, Camera]:
    """Return the cameras of a reference by side; calibration files are relative to a folder."""
    return {
        side: read_camera(Path(folder) / getattr(reference.cameras, side).calibration)
        for side in reference.sides
    }


# Residuals, in standard deviations, beyond which the fit is refused, and of which a warning is
# given.
_REFUSED = 10.0
# Largest next step of converged least squares, in standard deviations.
_LEFT = 0.1
# Pixels closer than this are treated as the same point [px].
_LEAST_WIDTH = 2.0


class PointFit(NamedTuple):
    """A reference point after the fit."""

    name: str
    position: np.ndarray  # (3,) adjusted [m]
    correction: np.ndarray  # (3,) adjusted minus measured [m]
    covariance: np.ndarray  # (3, 3) of the adjusted position [m^2]
    pixels: dict[str, np.ndarray]  # (2,) measured minus projected, by camera [px]


@dataclasses.dataclass(frozen=True)
class Localisation:
    """
    Estimated poses of the cameras and plane of the boom, and their assessment.

    Parameters
    ----------
    poses : dict of Pose
        T_world_cam by camera, with covariance.
    points : tuple of PointFit
        In the order of the reference.
    plane : PlaneFit, optional
        Plane through the adjusted points marked in_plane, with covariance; None without such
        points.
    sum_of_squares, freedom : float, int
        Sum of squared normalised residuals, and degrees of freedom, its expected value.
    rms : dict of float
        RMS distance between pixels and projections, by camera [px].
    tip : Prediction
        Predicted accuracy at the tip given in the reference.
    at_points : tuple of Prediction
        Predicted accuracy at the reference points.
    warnings : tuple of str
        Reasons not to trust the result, and remedies; empty for a good one.
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


def localise(reference: Reference, cameras: Mapping[str, Camera]) -> Localisation:
    """
    Estimate the poses of one camera or more.

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
        For fewer than three points in an image, points on a line, pixels outside the image, and
            inconsistent measurements, with the point that is probably wrong.
    LongreachError
        If the least squares have not converged.
    """
    problem = _problem_of(reference, cameras)
    _check(problem)
    best, rivals = best_fit(problem)
    if best is None:
        doubt = culprits(problem) or 'check positions and pixels of the points'
        raise InputError(f'no pose has all points in front of the camera; {doubt}')
    warnings = ambiguities(problem, best, rivals)
    scale = 1.0
    if is_misfit(best.cost, best.freedom):
        scale = best.cost / best.freedom
        is_refused = scale > _REFUSED**2
        doubt = misfit(problem, best, is_refused=is_refused)
        if is_refused:
            raise InputError(doubt)
        warnings.append(doubt)
    if not best.left <= _LEFT * math.sqrt(scale):
        raise LongreachError(
            f'the poses have not converged: the next step would move them by'
            f' {best.left / math.sqrt(scale):.2g} standard deviations, allowed: {_LEFT:g}; add'
            ' points that are spread over the images and in depth'
        )
    covariance = scale * _inverse(best.jacobian.T @ best.jacobian)
    state = best.state
    poses = {}
    for c, (side, pose) in enumerate(zip(problem.sides, state.poses, strict=True)):
        own = slice(6 * c, 6 * c + 6)
        poses[side] = Pose(pose.rotation, pose.translation, covariance[own, own])
    plane, doubt = _plane(reference, state, covariance)
    if doubt:
        warnings.append(doubt)
    predictor = Predictor(problem, state, covariance, plane)
    tip = predictor.at(np.array(reference.tip))
    at_points = tuple(predictor.at(point) for point in state.points)
    warnings += placement(predictor, tip, at_points)
    residuals = problem.pixel_residuals(state)
    return Localisation(
        poses=poses,
        points=_point_fits(problem, state, covariance, residuals),
        plane=plane.fit if plane else None,
        sum_of_squares=best.cost,
        freedom=best.freedom,
        rms={
            side: math.sqrt(float(np.mean(np.sum(off**2, axis=1))))
            for side, off in zip(problem.sides, residuals, strict=True)
        },
        tip=tip,
        at_points=at_points,
        warnings=tuple(warnings),
    )


def _inverse(matrix: np.ndarray) -> np.ndarray:
    """Return the inverse of a normal matrix; raise InputError if it is singular."""
    try:
        inverse = np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        inverse = np.full_like(matrix, math.nan)
    # Rounding of a singular matrix can make variances negative.
    if not (np.isfinite(inverse).all() and (np.diag(inverse) > 0.0).all()):
        raise InputError(
            'the measurements do not determine the poses; add points that are spread over the'
            ' images and in depth, and look for duplicate points or pixels'
        )
    return np.asarray(0.5 * (inverse + inverse.T))


def _problem_of(reference: Reference, cameras: Mapping[str, Camera]) -> Problem:
    sides = reference.sides
    for side in sides:
        if side not in cameras:
            raise InputError(f'cameras has {", ".join(cameras)}, allowed: {", ".join(sides)}')
    names = tuple(point.name for point in reference.points)
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
        names,
        np.array([point.position for point in reference.points], dtype=float).reshape(-1, 3),
        np.array([point.deviation for point in reference.points], dtype=float),
        reference.pixel_deviation,
        tuple(
            (ends[d.between[0]], ends[d.between[1]], d.distance, d.deviation)
            for d in reference.distances
        ),
        tuple(stands),
    )


def _check(problem: Problem) -> None:
    for side, camera, seen in zip(problem.sides, problem.cameras, problem.seen, strict=True):
        count = len(seen.indices)
        if count < 3:
            raise InputError(
                f'{side} sees {count} reference points, allowed: 3 or more; 6 that are spread over'
                ' the image and in depth are good'
            )
        for index, pixel in zip(seen.indices, seen.pixels, strict=True):
            if not is_in_image(camera, pixel):
                raise InputError(
                    f'{problem.names[index]} has the pixel ({pixel[0]:g}, {pixel[1]:g}) in {side},'
                    f' allowed: within {camera.width} x {camera.height} px'
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
                f'the {count} reference points of {side} lie on a line: they spread'
                f' {sizes[1]:.3g} m across it, allowed: above {least:.3g} m; add a point off the'
                ' line'
            )


def _point_fits(
    problem: Problem, state: State, covariance: np.ndarray, residuals: list[np.ndarray]
) -> tuple[PointFit, ...]:
    fits = []
    for k, name in enumerate(problem.names):
        pixels = {
            side: off[seen.indices == k][0]
            for side, seen, off in zip(problem.sides, problem.seen, residuals, strict=True)
            if k in seen.indices
        }
        own = slice(6 * len(state.poses) + 3 * k, 6 * len(state.poses) + 3 * k + 3)
        point = state.points[k]
        correction = point - problem.measured[k]
        fits.append(PointFit(name, point, correction, covariance[own, own], pixels))
    return tuple(fits)


def _plane(
    reference: Reference, state: State, covariance: np.ndarray
) -> tuple[EstimatedPlane | None, str]:
    """Fit the plane through the adjusted points marked in_plane; with a warning or ''."""
    inside = [k for k, point in enumerate(reference.points) if point.in_plane]
    if not inside:
        return None, ''
    if len(inside) < 3:
        raise InputError(f'{len(inside)} points have in_plane: true, allowed: 3 or more, or none')
    first = len(covariance) - 3 * len(state.points)
    columns = np.concatenate([np.arange(first + 3 * k, first + 3 * k + 3) for k in inside])
    deviation = math.sqrt(float(np.mean(np.diag(covariance)[columns])))
    points = state.points[inside]
    with named('points with in_plane: '):
        fit = fit_plane(points, deviation)
    plane, count = fit.plane, len(inside)
    # Derivatives by the points' distances from the plane; changes within the plane have no effect.
    offsets = (points - plane.centroid) @ plane.axes.T
    design = np.column_stack([offsets[:, 1], -offsets[:, 0], np.ones(count)])
    by_distance = np.linalg.solve(design.T @ design, design.T)
    J = np.zeros((3, len(covariance)))
    J[:, columns] = (by_distance[:, :, None] * plane.normal).reshape(3, -1)
    across = np.kron(np.eye(count), plane.normal[None])
    distances = across @ covariance[np.ix_(columns, columns)] @ across.T
    spread = J @ covariance @ J.T
    doubt = ''
    if count > 3:
        left = np.eye(count) - design @ by_distance
        expected = float(np.trace(left @ distances @ left.T)) / (count - 3)
        ratio = fit.rms**2 / expected
        if is_misfit(ratio * (count - 3), count - 3):
            names = [reference.points[k].name for k in inside]
            doubt = plane_misfit(fit, math.sqrt(expected), names)
            spread = spread * ratio
    plane = dataclasses.replace(plane, covariance=0.5 * (spread + spread.T))
    return EstimatedPlane(fit._replace(plane=plane), J), doubt
