"""
Least squares for two cameras that see the same markers: clocks, poses, and what changed them.

Both rays to a marker and the baseline lie in one plane: e = b . (d_l x d_r) = 0, with the rays d
and the baseline b in the world. If the stamps of the second camera are late by T, its track,
interpolated by cubic splines, holds at stamp t + T what the first camera saw at t. T minimises e
over all sightings of all markers; markers that stand still, or move along the epipolar lines,
carry no information.

Estimated together with T are the pose of the second camera and a constant error of each marker's
pixel, and, where they are significant, line times: rolling shutters expose row v later than the
middle row by line_time (v - v_middle). A clock that jumped has another offset in each part of the
time, a camera that was bumped another pose. Residuals are weighted by Huber's function; the
standard error is the larger one of that from their scatter and that from blocks of time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import scipy

from longreach_markers.camera.geometry import Pose
from longreach_markers.camera.model import Camera
from longreach_markers.tracking.sightings import Sightings

UNFIT = 3.0
"""Scale of residuals over noise from which the equations do not describe the sightings."""

SURE = 4.0
"""Standard errors beyond which an estimate is significant."""

PRIOR_LINE = 30e-6
"""Prior standard deviation of the line time [s]: that of slow sensors."""

HUBER = 1.5
"""Residuals over their scale from which Huber's weights decrease."""

MOVES = 4.0
"""Standard deviations within which velocities count as 0: noise would look like information."""

# Prior standard deviations: offset [s]; rotation of the second camera [rad]; its displacement over
# the baseline; constant error of a marker [px]. They exceed what occurs, and only keep the
# equations solvable.
_PRIOR_OFFSET, _PRIOR_TURN, _PRIOR_SHIFT, _PRIOR_PIXEL = 10.0, 0.02, 0.05, 1.0
# Standard deviation of a cubic spline's derivative, times interval over that of its samples: 1.2
# at samples, at most 2 between them.
_SLOPE_NOISE = 2.0
# An interval longer than this many usual ones is a gap, which is not interpolated.
_GAP = 1.6
# Difference of times that are the same [s].
_SAME_TIME = 1e-9
# Least scale of residuals.
_LEAST_SCALE = 0.05
# Least number of sightings for each unknown, and of samples of a track.
_LEAST_SIGHTINGS, _LEAST_SAMPLES = 3, 6
# Steps; largest one [s]; last one over the standard error.
_MAX_STEPS, _LARGEST_STEP, _CONVERGED = 30, 0.05, 0.01
# Blocks of time for the standard error, and the least number of them.
_BLOCKS, _LEAST_BLOCKS = 40, 10
# Images in which something moves; fewer may be those of a bump, or of noise, and tell no offset.
_LEAST_MOVING = 5
# Intervals around a step of the clock, or a bump, in which splines are not used.
_AROUND = 4
# Parts of the time for the misfit; sightings of which most must contradict the solution, in a row,
# to be named.
_PARTS, _IN_A_ROW = 10, 24


class Track(NamedTuple):
    """Sightings of a marker by a camera, in increasing order of time."""

    times: np.ndarray  # (N,) [s]
    places: np.ndarray  # (N, 2), normalised coordinates
    covariances: np.ndarray  # (N, 2, 2), of these


class Common(NamedTuple):
    """Sightings of one marker by both cameras at the same instants, L of them."""

    times: np.ndarray  # (L,), of the first camera [s]
    places: np.ndarray  # (2, L, 2), normalised coordinates; the second ones are interpolated
    covariances: np.ndarray  # (2, L, 2, 2), of these
    velocities: np.ndarray  # (L, 2), of the second ones [1/s]
    which: np.ndarray  # (L,), number of the sighting, whatever the offset


class Rays:
    """Rays (L, 3) of two cameras to points seen at normalised coordinates (2, L, 2)."""

    def __init__(self, poses: Sequence[Pose], places: np.ndarray) -> None:
        self._poses, self._base = poses, poses[1].translation - poses[0].translation
        self._left, self.right = (
            np.column_stack([xy, np.ones(len(xy))]) @ pose.rotation.T
            for pose, xy in zip(poses, places, strict=True)
        )
        # e = b . (d_l x d_r); by b: d_l x d_r, by d_l: d_r x b, by d_r: b x d_l.
        self.by_base = np.cross(self._left, self.right)
        self.by_rays = np.cross(self.right, self._base), np.cross(self._base, self._left)
        self.gaps = self.by_base @ self._base

    def gradients(self) -> np.ndarray:
        """Return derivatives of e by the normalised coordinates of both cameras, (2, L, 2)."""
        both = zip(self.by_rays, self._poses, strict=True)
        return np.array([by @ pose.rotation[:, :2] for by, pose in both])

    def points(self) -> np.ndarray:
        """Return the points nearest to both rays, (L, 3) [m]."""
        size = np.sum(self.by_base**2, axis=1)
        # Distances along both rays: (b x d_r) . (d_l x d_r) and (b x d_l) . (d_l x d_r).
        along = -np.sum(self.by_rays[0] * self.by_base, axis=1) / size
        back = np.sum(self.by_rays[1] * self.by_base, axis=1) / size
        ends = along[:, None] * self._left + back[:, None] * self.right
        return np.asarray(0.5 * (self._poses[0].translation + self._poses[1].translation + ends))


class Rows(NamedTuple):
    """Equations of all sightings at assumed offsets; L of them, with P unknowns."""

    matrix: np.ndarray  # (L, P), derivatives by T, both line times, pose (5), markers
    residuals: np.ndarray  # (L,), e
    deviations: np.ndarray  # (L,), of e from the pixels
    slope_deviations: np.ndarray  # (L,), of the first column
    per_pixel: np.ndarray  # (L,), change of e by a pixel
    times: np.ndarray  # (L,) [s]
    points: np.ndarray  # (L, 3) [m]
    heights: np.ndarray  # (L,), larger distance of both rows from the middle one [px]
    speeds: np.ndarray  # (L,), velocity in normalised coordinates [1/s]
    noise: np.ndarray  # (L,), standard deviation of such a coordinate
    markers: np.ndarray  # (L,), index
    keys: np.ndarray  # (L,), number of the sighting, whatever the offset


class Fit(NamedTuple):
    """Solution of the linearised equations, with S offsets of the clock, one after each step."""

    unknowns: np.ndarray  # those of PairFit.columns
    deviations: np.ndarray  # (S,), standard errors of the offsets [s]
    cost: float
    speed: float  # largest image velocity across the epipolar lines [px/s]
    lines: np.ndarray  # (2,), mean line time, and that of the second camera minus the first [s]
    line_deviations: np.ndarray  # (2,)
    offsets: np.ndarray  # (S,), at which the equations were linearised [s]


class PairFit:
    """The least-squares problem of a rig's two cameras, from sightings since a time [s]."""

    def __init__(self, sightings: Sightings, since: float = -math.inf) -> None:
        cameras = sightings.rig.cameras
        self.cameras = tuple(cameras)
        self.poses = [one.pose for one in cameras.values()]
        self._lenses = [one.camera for one in cameras.values()]
        self._calibrated = math.hypot(*(one.calibration_deviation for one in cameras.values()))
        base = self.poses[1].translation - self.poses[0].translation
        # Directions at right angles to the baseline, (3, 2): its length does not change e = 0.
        self._across = np.linalg.svd(base[None])[2][1:].T
        # Times of steps of the clock, and of bumps of a camera, that were found.
        self.steps: list[float] = []
        self.bumps: list[float] = []
        tables = {
            marker: [sightings.table(camera, marker, since) for camera in cameras]
            for marker in sightings.rig.names
        }
        # Times here are since then: those since 1970 are multiples of 0.24 us, too coarse for the
        # last steps of descend.
        self.start = min((float(one[0, 0]) for one, _ in tables.values() if len(one)), default=0.0)
        # Tracks of each marker in both cameras.
        self.pairs: list[tuple[str, Track, Track]] = []
        for marker, both in tables.items():
            one, other = (self._track(*two) for two in zip(both, self._lenses, strict=True))
            if min(len(one.times), len(other.times)) >= _LEAST_SAMPLES:
                self.pairs.append((marker, one, other))
        if not self.pairs:
            return
        self._splines = [
            scipy.interpolate.CubicSpline(track.times, track.places) for _, _, track in self.pairs
        ]
        intervals = [np.diff(track.times) for _, _, track in self.pairs]
        self.interval = float(np.median(np.concatenate(intervals)))
        pose = 3 * [_PRIOR_TURN] + 2 * [_PRIOR_SHIFT * float(np.linalg.norm(base))]
        # Of offset, line times, pose, markers.
        self._priors = [_PRIOR_OFFSET], 2 * [PRIOR_LINE], pose, len(self.pairs) * [_PRIOR_PIXEL]

    def _track(self, table: np.ndarray, camera: Camera) -> Track:
        places = camera.undistort(table[:, 1:3], strict=False)
        # The lens is neglected here: weights need no more.
        scale = np.array([1.0 / camera.fx, 1.0 / camera.fy])
        covariances = table[:, [3, 4, 4, 5]].reshape(-1, 2, 2) * np.outer(scale, scale)
        fine = np.isfinite(places).all(axis=1)
        return Track(table[fine, 0] - self.start, places[fine], covariances[fine])

    # --- equations ---------------------------------------------------------------------------

    def common(
        self, index: int, offsets: np.ndarray, step: int = 1, *, ends: bool = False
    ) -> Common:
        """Return every so many-th common sighting of a marker at offsets (S,) [s]."""
        _, left, right = self.pairs[index]
        at = left.times + offsets[np.searchsorted(self.steps, left.times, side='right')]
        knots, gaps = right.times, np.diff(right.times) > _GAP * self.interval
        k = np.searchsorted(knots, at, side='right') - 1
        # Splines are uncertain in the outermost intervals, and near gaps, steps and bumps.
        usable = (k >= 1) & (k <= len(knots) - 3)
        around = np.clip(k, 1, len(knots) - 3)
        usable &= ~(gaps[around - 1] | gaps[around] | gaps[around + 1])
        jumps = [*np.diff(offsets), *np.zeros(len(self.bumps))]
        for edge, jump in zip([*self.steps, *self.bumps], jumps, strict=True):
            around_edge = _AROUND + 0.5 + round(abs(jump) / self.interval)
            usable &= np.abs(left.times - edge) > around_edge * self.interval
        k = np.clip(k, 0, len(knots) - 1)
        if ends:
            # Where no velocities are needed, sightings of the same time are good everywhere.
            usable |= np.abs(at - knots[k]) < _SAME_TIME
        which = np.flatnonzero(usable)
        which = which[which % step == 0]
        at, k = at[which], k[which]
        spline = self._splines[index]
        return Common(
            left.times[which],
            np.array([left.places[which], spline(at)]),
            np.array([left.covariances[which], right.covariances[k]]),
            spline(at, 1),
            which,
        )

    def rows(self, offsets: np.ndarray, step: int = 1) -> Rows:
        """Return the equations at offsets (S,) [s], of every so many-th sighting."""
        parts = [self._rows_of(k, offsets, step) for k in range(len(self.pairs))]
        return Rows(*(np.concatenate(values) for values in zip(*parts, strict=True)))

    def _rows_of(self, index: int, offsets: np.ndarray, step: int) -> Rows:
        """Return the equations of one marker."""
        times, places, covariances, velocities, which = self.common(index, offsets, step)
        rays = Rays(self.poses, places)
        gradients = rays.gradients()
        own, other = np.einsum('cli,clij,clj->cl', gradients, covariances, gradients)
        slopes = np.einsum('li,li->l', gradients[1], velocities)
        per_pixel = np.linalg.norm(gradients[1], axis=1) / self._lenses[1].fx
        constants = np.zeros((len(times), len(self.pairs)))
        constants[:, index] = per_pixel
        # A rotation w of the second camera moves its rays by w x d_r.
        turned = np.cross(rays.right, rays.by_rays[1])
        # Rows of both cameras from their middle ones: those of the second minus those of the
        # first. A row that is exposed later has the effect of a stamp that is early.
        rows = [
            camera.fy * xy[:, 1] + camera.cy - 0.5 * (camera.height - 1.0)
            for camera, xy in zip(self._lenses, places, strict=True)
        ]
        lines = slopes * (rows[0] - rows[1]), -0.5 * slopes * (rows[0] + rows[1])
        return Rows(
            np.column_stack([slopes, *lines, turned, rays.by_base @ self._across, constants]),
            rays.gaps,
            np.sqrt(own + other),
            _SLOPE_NOISE / self.interval * np.sqrt(other),
            per_pixel,
            times,
            rays.points(),
            np.max(np.abs(rows), axis=0),
            np.linalg.norm(velocities, axis=1),
            np.sqrt(0.5 * np.trace(covariances[1], axis1=1, axis2=2)),
            np.full(len(times), index),
            which + index * 10**9,
        )

    def columns(self, rows: Rows) -> np.ndarray:
        """Return the derivatives by all unknowns: of S offsets, line times, poses, markers."""
        offset, lines, pose, markers = np.split(rows.matrix, [1, 3, 8], axis=1)
        parts = []
        for column, edges in ((offset, self.steps), (pose, self.bumps)):
            part = np.searchsorted(edges, rows.times, side='right')
            parts.append([column * (part == k)[:, None] for k in range(len(edges) + 1)])
        return np.column_stack([*parts[0], lines, *parts[1], markers])

    @property
    def prior(self) -> np.ndarray:
        """1 / variance of all unknowns before the sightings."""
        offset, lines, pose, markers = self._priors
        offsets, poses = offset * (len(self.steps) + 1), pose * (len(self.bumps) + 1)
        return np.array([*offsets, *lines, *poses, *markers]) ** -2.0

    # --- solution ----------------------------------------------------------------------------

    def cost(self, offset: float, step: int) -> float:
        """Return the cost at one offset [s] for every so many-th sighting; inf for too few."""
        offsets = np.array([offset])
        rows = self.rows(offsets, step)
        enough = self._are_enough(rows)
        return self._fit(rows, offsets, with_offset=False).cost if enough else math.inf

    def _are_enough(self, rows: Rows) -> bool:
        return len(rows.times) >= _LEAST_SIGHTINGS * len(self.prior)

    def descend(self, offsets: np.ndarray, *, lines: int = 0) -> Fit | None:
        """Minimise by Gauss-Newton steps from offsets (S,) [s], with 0 to 2 unknown line times."""
        # None with too few sightings; deviations are infinite if it has not converged.
        common: np.ndarray | None = None
        for k in range(_MAX_STEPS):
            rows = self.rows(offsets)
            if k > _MAX_STEPS // 4:
                # Where offsets are whole intervals, sightings beside gaps come and go.
                common = rows.keys if common is None else np.intersect1d(common, rows.keys)
                rows = Rows(*(values[np.isin(rows.keys, common)] for values in rows))
            if not self._are_enough(rows):
                return None
            found = self._fit(rows, offsets, lines=lines)
            step = np.clip(found.unknowns[: len(offsets)], -_LARGEST_STEP, _LARGEST_STEP)
            if (np.abs(step) < _CONVERGED * found.deviations).all():
                return found
            offsets = offsets + step
        endless = np.full(len(offsets), math.inf)
        return found._replace(deviations=endless, line_deviations=np.full(2, math.inf))

    def _fit(
        self, rows: Rows, offsets: np.ndarray, *, with_offset: bool = True, lines: int = 0
    ) -> Fit:
        """Solve the linearised equations, with weights that follow the residuals."""
        weights, scale, count = np.ones(len(rows.times)), 1.0, len(offsets)
        whole, prior = self.columns(rows) / rows.deviations[:, None], self.prior
        right = -rows.residuals / rows.deviations
        slopes, matrix = np.abs(rows.matrix[:, 0]), whole.copy()
        freedom = math.sqrt(len(right) / (len(right) - len(prior)))
        for _ in range(10):
            moves = slopes > MOVES * rows.slope_deviations * max(1.0, scale)
            moves &= len(np.unique(rows.times[moves])) >= _LEAST_MOVING
            free = np.append(count * [with_offset], lines > np.arange(2))
            matrix[:, : count + 2] = whole[:, : count + 2] * moves[:, None] * free
            weighted = matrix * weights[:, None] / scale**2
            inverse = np.linalg.inv(matrix.T @ weighted + np.diag(prior))
            unknowns = inverse @ (weighted.T @ right)
            residuals = right - matrix @ unknowns
            before, scale = scale, 1.4826 * float(np.median(np.abs(residuals))) * freedom
            scale = max(scale, _LEAST_SCALE)
            size = np.abs(residuals) / scale
            weights = np.minimum(1.0, HUBER / np.maximum(size, HUBER))
            if abs(scale - before) < 1e-3 * scale:
                break
        variances = np.diag(inverse)[: count + 2]
        edges = np.linspace(rows.times.min(), rows.times.max(), _BLOCKS + 1)[1:-1]
        blocks = np.searchsorted(edges, rows.times)
        scores = np.zeros((_BLOCKS, len(unknowns)))
        np.add.at(scores, blocks, weighted * residuals[:, None])
        used = len(np.unique(blocks[moves])) if moves.any() else 0
        if used >= _LEAST_BLOCKS:
            # Residuals beyond Huber's bound do not change with the unknowns.
            within = matrix * (size < HUBER)[:, None] / scale**2
            inverse = np.linalg.inv(matrix.T @ within + np.diag(prior))
            by_blocks = np.sum((scores @ inverse[: count + 2].T) ** 2, axis=0)
            variances = np.maximum(variances, by_blocks * used / (used - 1.0))
        return Fit(
            unknowns,
            np.sqrt(variances[:count]),
            # Huber's function of the residuals over their stated deviations.
            float(np.mean(np.minimum(residuals**2, scale * HUBER * np.abs(residuals)))),
            float((slopes / rows.per_pixel).max()),
            unknowns[count : count + 2],
            np.sqrt(variances[count:]),
            offsets,
        )

    # --- noise and changes -------------------------------------------------------------------

    def noise(self, rows: Rows, residuals: np.ndarray) -> float:
        """Return the scale of residuals that pixels and calibration explain, over that stated."""
        # By second differences in time, on which slow motion, poses and clocks have hardly any
        # influence.
        order = np.lexsort((rows.times, rows.markers))
        marker, values = rows.markers[order], residuals[order]
        second = np.abs(values[2:] - 2.0 * values[1:-1] + values[:-2]) / math.sqrt(6.0)
        own = second[marker[2:] == marker[:-2]]
        scale = 1.4826 * float(np.median(own)) if len(own) else 0.0
        lens = self._calibrated * float(np.median(rows.per_pixel / rows.deviations))
        return math.hypot(max(scale, 1.0), lens)

    def _scales(self, found: Fit, count: int) -> Iterator[tuple[float, np.ndarray]]:
        """Yield the scale of residuals over noise in parts of the time, and its first and last."""
        rows = self.rows(found.offsets)
        own, order = self.residuals(rows, found), np.argsort(rows.times)
        noise = self.noise(rows, own)
        for part in np.array_split(order, count or max(1, len(order) // _IN_A_ROW)):
            if len(part):
                scale = 1.4826 * float(np.median(np.abs(own[part])))
                yield scale / noise, rows.times[part[[0, -1]]] + self.start

    def misfit(self, found: Fit) -> float:
        """Return the scale of residuals in the second worst tenth of the time, over noise."""
        return sorted(scale for scale, _ in self._scales(found, _PARTS))[-2:][0]

    def contradiction(self, found: Fit) -> tuple[float, float] | None:
        """Return the first and last time at which residuals are far above noise, if there are."""
        loud = [times for scale, times in self._scales(found, 0) if scale > UNFIT]
        return (float(loud[0][0]), float(loud[-1][1])) if loud else None

    def residuals(self, rows: Rows, found: Fit) -> np.ndarray:
        """Return residuals of a solution, at its offsets, over their stated deviations."""
        count = len(found.offsets)
        own = rows.residuals + self.columns(rows)[:, count:] @ found.unknowns[count:]
        return np.asarray(own / rows.deviations)
