"""
Least squares for camera poses and point coordinates, and its initial values.

The pose of a single camera has several local minima: the solutions of several solvers (SQPNP,
IPPE, EPNP, P3P on triples) are refined by Levenberg-Marquardt with lens distortion. The minima of
all cameras are combined and refined together with the coordinates of the points, whose measured
values fix the world frame. Unknowns: for each camera, rotation vector and translation as in
:class:`longreach_markers.camera.geometry.Pose`, then the coordinates of each point.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import cv2
import numpy as np
from scipy.special import chdtrc

from longreach_dynamics.kernels import kernel
from longreach_markers.camera.geometry import PlaneFit, Pose, project_point
from longreach_markers.camera.model import Camera

FLAT = 0.1
"""Largest ratio of thickness to width of points that are treated as coplanar."""

# Initial poses for each camera.
_STARTS = 8
# Number of largest triples of points from which poses are initialised; minima per camera, and
# their largest sum of squares above the least one, that are combined with the other cameras'.
_TRIPLES, _RIVALS, _RIVAL_LIMIT = 12, 4, 50.0
# Combinations of the cameras' minima that are refined, those of the least sums of squares; all of
# up to three cameras.
_COMBINED = _RIVALS**3
# Poses are different beyond this angle [rad] or this share of the distance to the points.
_TURN, _SHIFT = math.radians(1.0), 0.02
# Minima are equivalent if their sums of squares differ by less than _EQUAL (3 standard
# deviations); within _TIE of the least, the upright one is returned.
_EQUAL, _TIE = 9.0, 1.0
_STEPS, _DAMPING = 60, 1e-4
# Significance level below which residuals are a misfit.
_CHANCE = 1e-3

# --- least squares --------------------------------------------------------------------------


@kernel
def _project_all(packed, R, t, points, pixels, jacobians):  # type: ignore[no-untyped-def]
    """Fill pixels (n, 2) and Jacobians (n, 2, 9) of points (n, 3), see :func:`project_point`."""
    for m in range(points.shape[0]):
        pixels[m] = project_point(packed, R, t, points[m], jacobians[m])


def projected(camera: Camera, pose: Pose, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return pixels, Jacobians (n, 2, 9) by pose and point; NaN without a pixel."""
    pixels, jacobians = np.empty((len(points), 2)), np.empty((len(points), 2, 9))
    _project_all(
        camera.packed,
        pose.rotation.copy(),
        pose.translation.copy(),
        np.ascontiguousarray(points),
        pixels,
        jacobians,
    )
    return pixels, jacobians


def is_in_image(camera: Camera, pixel: np.ndarray) -> bool:
    """Return whether a pixel (2,) lies in the image; False for NaN."""
    u, v = pixel
    return bool(-0.5 <= u <= camera.width - 0.5 and -0.5 <= v <= camera.height - 0.5)


def is_misfit(sum_of_squares: float, freedom: int) -> bool:
    """Return whether normalised residuals are significantly too large (chi-squared test)."""
    # chdtrc is chi2.sf without scipy.stats, whose import takes longer than most commands.
    return freedom > 0 and float(chdtrc(freedom, sum_of_squares)) < _CHANCE


class Seen(NamedTuple):
    """The points that a camera observes, and their pixels."""

    indices: np.ndarray  # (m,)
    pixels: np.ndarray  # (m, 2) [px]


class State(NamedTuple):
    """The unknowns of the least squares problem."""

    poses: tuple[Pose, ...]
    points: np.ndarray  # (n, 3)

    def moved(self, step: np.ndarray) -> State:
        """Return the state after a step, shape (6 poses + 3 n,)."""
        first = 6 * len(self.poses)
        both = zip(self.poses, step[:first].reshape(-1, 6), strict=True)
        poses = [pose.moved(own) for pose, own in both]
        return State(tuple(poses), self.points + step[first:].reshape(-1, 3))


class Fit(NamedTuple):
    """A local minimum of a problem, or what iterations towards it have reached."""

    state: State
    cost: float  # sum of squares of normalised residuals
    freedom: int
    jacobian: np.ndarray
    left: float  # next Gauss-Newton step in standard deviations (RMS): 0 at the minimum


class Problem(NamedTuple):
    """Measured pixels, coordinates and distances, with their standard deviations."""

    sides: tuple[str, ...]
    cameras: tuple[Camera, ...]
    seen: tuple[Seen, ...]
    names: tuple[str, ...]  # of the n points
    measured: np.ndarray  # (n, 3)
    deviations: np.ndarray  # (n,)
    pixel_deviation: float
    # Two indices of points (camera c is -1 - c), value and standard deviation [m].
    distances: tuple[tuple[int, int, float, float], ...]
    # Measured positions of cameras: index, position, standard deviation [m].
    stands: tuple[tuple[int, np.ndarray, float], ...]

    def only(self, c: int) -> Problem:
        """Return the problem of one camera and the points that it observes."""
        seen = self.seen[c]
        return self._replace(
            sides=(self.sides[c],),
            cameras=(self.cameras[c],),
            seen=(Seen(np.arange(len(seen.indices)), seen.pixels),),
            names=tuple(self.names[k] for k in seen.indices),
            measured=self.measured[seen.indices],
            deviations=self.deviations[seen.indices],
            distances=(),
            stands=tuple((0, place, sigma) for k, place, sigma in self.stands if k == c),
        )

    def without(self, point: int, sides: Iterable[int]) -> Problem:
        """Return the problem without the observations of a point by some cameras."""
        seen = list(self.seen)
        for c in sides:
            kept = seen[c].indices != point
            seen[c] = Seen(seen[c].indices[kept], seen[c].pixels[kept])
        return self._replace(seen=tuple(seen))

    def pixel_residuals(self, state: State) -> list[np.ndarray]:
        """Return measured minus projected pixels for each camera, (m, 2) [px]."""
        return [
            seen.pixels - projected(camera, pose, state.points[seen.indices])[0]
            for camera, pose, seen in zip(self.cameras, state.poses, self.seen, strict=True)
        ]

    def linearise(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """Return residuals (r,) and Jacobian (r, 6 poses + 3 n), both over the deviations."""
        count, first = len(state.points), 6 * len(state.poses)
        size = first + 3 * count
        rows: list[np.ndarray] = []
        columns: list[np.ndarray] = []
        for c, (camera, pose, seen) in enumerate(
            zip(self.cameras, state.poses, self.seen, strict=True)
        ):
            pixels, jacobians = projected(camera, pose, state.points[seen.indices])
            J = np.zeros((len(seen.indices), 2, size))
            J[:, :, 6 * c : 6 * c + 6] = jacobians[:, :, :6]
            for m, index in enumerate(seen.indices):
                J[m, :, first + 3 * index : first + 3 * index + 3] = jacobians[m, :, 6:]
            rows.append((pixels - seen.pixels).ravel() / self.pixel_deviation)
            columns.append(J.reshape(-1, size) / self.pixel_deviation)
        weights = np.repeat(1.0 / self.deviations, 3)
        rows.append((state.points - self.measured).ravel() * weights)
        columns.append(np.hstack([np.zeros((3 * count, first)), np.diag(weights)]))
        for a, b, value, sigma in self.distances:
            row = np.zeros((1, size))
            (at_a, place_a), (at_b, place_b) = (self._end(state, end) for end in (a, b))
            way = at_b - at_a
            length = max(float(np.linalg.norm(way)), 1e-9)
            row[0, place_a : place_a + 3] = -way / length / sigma
            row[0, place_b : place_b + 3] = way / length / sigma
            rows.append(np.array([(length - value) / sigma]))
            columns.append(row)
        for c, place, sigma in self.stands:
            block = np.zeros((3, size))
            block[:, 6 * c + 3 : 6 * c + 6] = np.eye(3) / sigma
            rows.append((state.poses[c].translation - place) / sigma)
            columns.append(block)
        return np.concatenate(rows), np.vstack(columns)

    def _end(self, state: State, end: int) -> tuple[np.ndarray, int]:
        """Return the position of an end of a distance, and its first column in the Jacobian."""
        if end < 0:
            return state.poses[-1 - end].translation, 6 * (-1 - end) + 3
        return state.points[end], 6 * len(state.poses) + 3 * end

    def solve(self, state: State) -> Fit | None:
        """Return what Levenberg-Marquardt reaches from a state; None if it diverges."""
        residuals, J = self.linearise(state)
        cost = float(residuals @ residuals)
        if not math.isfinite(cost):
            return None
        damping = _DAMPING
        for _ in range(_STEPS):
            N, g = J.T @ J, J.T @ residuals
            step = -np.linalg.solve(N + damping * np.diag(np.diag(N) + 1e-12), g)
            trial = state.moved(step)
            new_residuals, new_J = self.linearise(trial)
            new_cost = float(new_residuals @ new_residuals)
            if not new_cost <= cost:
                if damping > 1e8:
                    break
                damping *= 10.0
                continue
            done = cost - new_cost <= 1e-10 * (1.0 + cost) and damping <= _DAMPING
            state, residuals, J, cost = trial, new_residuals, new_J, new_cost
            damping = max(0.1 * damping, 1e-12)
            if done:
                break
        along = J @ np.linalg.lstsq(J, residuals, rcond=None)[0]
        left = math.sqrt(max(float(residuals @ along), 0.0) / J.shape[1])
        return Fit(state, cost, len(residuals) - J.shape[1], J, left)


# --- where to start -------------------------------------------------------------------------


def _starts(points: np.ndarray, rays: np.ndarray) -> Iterator[Pose]:
    """Yield candidate poses for points (n, 3) with normalised coordinates (n, 2)."""
    middle = points.mean(axis=0)
    inner = points - middle
    _, sizes, axes = np.linalg.svd(inner)
    count, eye = len(points), np.eye(3)
    solutions: list[tuple[np.ndarray, np.ndarray]] = []

    def add(flag: int, coordinates: np.ndarray, basis: np.ndarray) -> None:
        try:
            _, turns, shifts, _ = cv2.solvePnPGeneric(
                coordinates, rays, eye, np.zeros(0), flags=flag
            )
        except cv2.error:
            return
        for turn, shift in zip(turns, shifts, strict=True):
            solutions.append((cv2.Rodrigues(turn)[0] @ basis, np.ravel(shift)))

    add(cv2.SOLVEPNP_SQPNP, inner, eye)
    if count > 3:
        add(cv2.SOLVEPNP_EPNP, inner, eye)
        if sizes[2] < FLAT * sizes[1]:
            # IPPE rejects points with noise normal to their plane, and requires the plane z = 0.
            basis = axes * np.linalg.det(axes)
            flat = inner @ basis.T
            flat[:, 2] = 0.0
            add(cv2.SOLVEPNP_IPPE, flat, basis)
    for triple in _triples(inner):
        try:
            _, turns, shifts = cv2.solveP3P(
                inner[triple], rays[triple], eye, np.zeros(0), cv2.SOLVEPNP_AP3P
            )
        except cv2.error:
            continue
        solutions += [
            (cv2.Rodrigues(turn)[0], np.ravel(shift))
            for turn, shift in zip(turns, shifts, strict=True)
        ]
    for R, t in solutions:
        if np.isfinite(R).all() and np.isfinite(t).all():
            # OpenCV returns the pose of the world in the camera frame.
            yield Pose(R.T, middle - R.T @ t)


def _triples(points: np.ndarray) -> list[list[int]]:
    def area(triple: Iterable[int]) -> float:
        a, b, c = points[list(triple)]
        return float(np.linalg.norm(np.cross(b - a, c - a)))

    largest = sorted(itertools.combinations(range(len(points)), 3), key=area, reverse=True)
    return [list(triple) for triple in largest[:_TRIPLES]]


def _minima(problem: Problem, c: int, starts: int) -> list[Fit]:
    single = problem.only(c)
    camera, seen = single.cameras[0], single.seen[0]
    rays = camera.undistort(seen.pixels)
    scored: list[tuple[float, Pose]] = []
    for pose in _starts(single.measured, rays):
        pixels, _ = projected(camera, pose, single.measured)
        error = float(np.mean((pixels - seen.pixels) ** 2))
        if math.isfinite(error):
            scored.append((error, pose))
    scored.sort(key=lambda item: item[0])
    tried: list[Pose] = []
    found: list[Fit] = []
    for _, pose in scored:
        if len(tried) >= starts:
            break
        if any(alike(pose, other, single.measured) for other in tried):
            continue
        tried.append(pose)
        fit = single.solve(State((pose,), single.measured))
        if fit and not any(
            alike(fit.state.poses[0], other.state.poses[0], single.measured) for other in found
        ):
            found.append(fit)
    found.sort(key=lambda fit: fit.cost)
    return found


def alike(one: Pose, other: Pose, points: np.ndarray) -> bool:
    """Return whether two poses are equal within the tolerance of the iterations."""
    cosine = 0.5 * (float(np.trace(one.rotation.T @ other.rotation)) - 1.0)
    distance = float(np.linalg.norm(points.mean(axis=0) - one.translation))
    shift = float(np.linalg.norm(one.translation - other.translation))
    return math.acos(min(max(cosine, -1.0), 1.0)) < _TURN and shift < _SHIFT * distance


def best_fit(problem: Problem, starts: int = _STARTS) -> tuple[Fit | None, list[Fit]]:
    """Return the best minimum of all cameras, and equivalents, from ``starts`` poses for each."""
    lists = []
    for c in range(len(problem.cameras)):
        found = _minima(problem, c, starts)
        if not found:
            return None, []
        limit = found[0].cost + _RIVAL_LIMIT
        lists.append([fit for fit in found if fit.cost <= limit][:_RIVALS])
    combined = list(itertools.product(*lists))
    if len(combined) > _COMBINED:
        combined.sort(key=lambda chosen: sum(fit.cost for fit in chosen))
    fits: list[Fit] = []
    for chosen in combined[:_COMBINED]:
        poses = tuple(fit.state.poses[0] for fit in chosen)
        fit = problem.solve(State(poses, problem.measured))
        if fit and not any(_same(fit.state, other.state, problem.measured) for other in fits):
            fits.append(fit)
    if not fits:
        return None, []
    least = min(fit.cost for fit in fits)
    # Of equivalent poses, prefer the one with upright cameras, whose y axes point down.
    best = min(
        (fit for fit in fits if fit.cost <= least + _TIE),
        key=lambda fit: float(sum(pose.rotation[2, 1] for pose in fit.state.poses)),
    )
    rivals = [fit for fit in fits if fit is not best and fit.cost <= best.cost + _EQUAL]
    return best, sorted(rivals, key=lambda fit: fit.cost)


def _same(one: State, other: State, points: np.ndarray) -> bool:
    return all(alike(a, b, points) for a, b in zip(one.poses, other.poses, strict=True))


class EstimatedPlane(NamedTuple):
    """A plane through adjusted points."""

    fit: PlaneFit
    jacobian: np.ndarray  # by all unknowns, (3, 6 poses + 3 n)


class Prediction(NamedTuple):
    """Predicted covariance of a marker located at a point, in the axes of the world."""

    point: np.ndarray  # (3,) [m]
    in_plane: dict[str, np.ndarray]  # covariance (3, 3) by camera [m^2]; empty without a plane
    triangulated: np.ndarray | None  # (3, 3) [m^2]; None with one camera
    # Standard deviation of the length of a movement by 1 m from there in the plane, or, without
    # one, along the worst axis [m]; NaN if no camera sees both ends.
    movement: float

    @property
    def error(self) -> float:
        """Root sum of variances of the best estimate [m]; NaN if no camera sees the point."""
        every = [*self.in_plane.values()]
        if self.triangulated is not None:
            every.append(self.triangulated)
        return min((math.sqrt(float(np.trace(cov))) for cov in every), default=math.nan)


@dataclasses.dataclass(frozen=True)
class Predictor:
    """Computes covariances of markers located with estimated poses."""

    problem: Problem
    state: State
    covariance: np.ndarray  # of the solution, 6 rows for each pose, then 3 for each point
    plane: EstimatedPlane | None

    def at(self, point: np.ndarray) -> Prediction:
        """Return the prediction at a point (3,) of the world [m]."""
        seen = self.seen(point)
        in_plane = {}
        if self.plane is not None:
            in_plane = {
                self.problem.sides[c]: self._spread(*self._in_plane(c, self.plane, point))
                for c in seen
            }
        triangulated = self._spread(*self._triangulated(seen)) if len(seen) > 1 else None
        return Prediction(point, in_plane, triangulated, self._movement(point))

    def _movement(self, point: np.ndarray) -> float:
        """Return the standard deviation of a movement by 1 m from a point on [m]."""
        steps = np.eye(3) if self.plane is None else self.plane.fit.plane.axes
        found = [self._of_movement(point, point + step, step) for step in steps]
        return max(found, key=lambda one: (math.isnan(one), one))

    def _of_movement(self, start: np.ndarray, end: np.ndarray, along: np.ndarray) -> float:
        ends = [self.seen(point) for point in (start, end)]
        both = ends[0].keys() & ends[1].keys()
        if self.plane is not None:
            kinds = [[self._in_plane(c, self.plane, p) for p in (start, end)] for c in both]
        elif len(both) > 1:
            kinds = [[self._triangulated({c: one[c] for c in both}) for one in ends]]
        else:
            kinds = []
        changes = [along @ (there - here) for (_, here), (_, there) in kinds]
        return min(
            (math.sqrt(float(one @ self.covariance @ one)) for one in changes), default=math.nan
        )

    def seen(self, point: np.ndarray) -> dict[int, np.ndarray]:
        """Return the Jacobians (2, 9) of a point's pixels, for the cameras that see it."""
        found = {}
        for c, (camera, pose) in enumerate(
            zip(self.problem.cameras, self.state.poses, strict=True)
        ):
            pixels, jacobians = projected(camera, pose, point[None])
            if is_in_image(camera, pixels[0]):
                found[c] = jacobians[0]
        return found

    def _by_all(self, c: int, by_pose: np.ndarray) -> np.ndarray:
        rows = np.zeros((len(by_pose), len(self.covariance)))
        rows[:, 6 * c : 6 * c + 6] = by_pose
        return rows

    def _triangulated(self, seen: dict[int, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives of a triangulated point by pixels and by all unknowns."""
        by_point = np.vstack([jacobian[:, 6:] for jacobian in seen.values()])
        by_all = np.vstack([self._by_all(c, jacobian[:, :6]) for c, jacobian in seen.items()])
        estimator = np.linalg.solve(by_point.T @ by_point, by_point.T)
        return estimator, estimator @ by_all

    def _in_plane(
        self, c: int, plane: EstimatedPlane, point: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives of a point in the plane by pixels and by all unknowns."""
        flat, pose = plane.fit.plane, self.state.poses[c]
        on = point - float(flat.distance(point)) * flat.normal
        _, jacobians = projected(self.problem.cameras[c], pose, on[None])
        by_pose, by_point = jacobians[0, :, :6], jacobians[0, :, 6:]
        # Two equations from the pixel and one from the plane: n.(p - c) = s + rotations.
        offsets = flat.axes @ (on - flat.centroid)
        by_plane = np.array([[offsets[1], -offsets[0], 1.0]]) @ plane.jacobian
        solver = np.linalg.inv(np.vstack([by_point, flat.normal]))
        return solver[:, :2], solver @ np.vstack([-self._by_all(c, by_pose), by_plane])

    def _spread(self, by_pixels: np.ndarray, by_all: np.ndarray) -> np.ndarray:
        pixel = self.problem.pixel_deviation**2 * by_pixels @ by_pixels.T
        return np.asarray(pixel + by_all @ self.covariance @ by_all.T)
