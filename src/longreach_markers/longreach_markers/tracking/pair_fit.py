"""
Least squares for two cameras that see the same markers: clocks, poses, and what changed them.

Both rays to a marker and the baseline lie in one plane: e = b . (d_l x d_r) = 0, with the rays d
and the baseline b in the world. If the stamps of the second camera are late by T, its track holds
at stamp t + T what the first camera saw at stamp t, and e(T) = 0. T minimises e over all sightings
of all markers; the second track is interpolated by cubic splines, so that T may exceed the
interval between images. The derivative of e by T is the image velocity across the epipolar line:
markers that stand still, or move along these lines, carry no information.

Estimated together with T are the pose of the second camera and a constant error of each marker's
pixel, so that a bumped camera does not look like an offset. Rolling shutters expose row v later
than the middle row by line_time (v - v_middle): e contains the difference of both delays times the
velocity. The equations are solved again with the mean line time and the difference of both as
further unknowns, or with one of both alike, which are used where they are significant.

Residuals are weighted by Huber's function; the standard error is the larger one of that from their
scatter and that from blocks of time (residuals that persist).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy

from longreach_markers.rig import MountedCamera, Rig

UNFIT = 3.0
"""Scale of residuals over noise from which the equations do not describe the sightings."""

SURE = 4.0
"""Standard errors beyond which an estimate is significant."""

PRIOR_LINE = 30e-6
"""Prior standard deviation of the line time [s]: that of slow sensors."""

MOVES = 4.0
"""Standard deviations within which velocities count as 0: noise would look like information."""

PARTS, QUIET = 10, 0.2
"""Parts of the time in which noise is estimated, and share of them that are quiet."""

# Prior standard deviations: offset [s]; rotation of the second camera [rad]; its displacement over
# the baseline; constant error of a marker [px]. They exceed what occurs, and only keep the
# equations solvable.
_PRIOR_OFFSET, _PRIOR_TURN, _PRIOR_SHIFT, _PRIOR_PIXEL = 10.0, 0.02, 0.05, 1.0
# Standard deviation of a cubic spline's derivative, times interval over that of its samples: 1.2
# at samples, at most 2 between them.
_SLOPE_NOISE = 2.0
# An interval longer than this many usual ones is a gap, which is not interpolated.
_GAP = 1.6
# Residuals over their scale from which Huber's weights decrease, and the least scale.
_HUBER, _LEAST_SCALE = 1.5, 0.05
# Least number of sightings for each unknown.
_LEAST_SIGHTINGS = 3
# Steps; largest one [s]; last one over the standard error.
_MAX_STEPS, _LARGEST_STEP, _CONVERGED = 30, 0.05, 0.01
# Blocks of time for the standard error, and the least number of them.
_BLOCKS, _LEAST_BLOCKS = 40, 10
# Images in which something moves; fewer may be those of a bump, or of noise, and tell no offset.
_LEAST_MOVING = 5
# Intervals around a step of the clock, or before a bump, in which splines are not used.
_AROUND = 4
# Sightings of which most must contradict the solution, in a row, to be named.
_IN_A_ROW = 24


class Track(NamedTuple):
    """Sightings of a marker by a camera, in increasing order of time."""

    times: np.ndarray  # (N,) [s]
    places: np.ndarray  # (N, 2), normalised coordinates
    covariances: np.ndarray  # (N, 2, 2), of these


def track_of(table: np.ndarray, mounted: MountedCamera) -> Track:
    """Return a track from times, pixels and covariances, the first columns of a table."""
    camera = mounted.camera
    places = camera.undistort(table[:, 1:3], strict=False)
    # The lens is neglected here: weights need no more.
    scale = np.array([1.0 / camera.fx, 1.0 / camera.fy])
    covariances = table[:, [3, 4, 4, 5]].reshape(-1, 2, 2) * np.outer(scale, scale)
    fine = np.isfinite(places).all(axis=1)
    return Track(table[fine, 0], places[fine], covariances[fine])


class Rows(NamedTuple):
    """Equations of all sightings at assumed offsets; L of them, with P unknowns."""

    matrix: np.ndarray  # (L, P), derivatives by the unknowns: T, line times, pose, markers
    residuals: np.ndarray  # (L,), e
    deviations: np.ndarray  # (L,), of e from the pixels
    slope_deviations: np.ndarray  # (L,), of the first column
    per_pixel: np.ndarray  # (L,), change of e by a pixel
    times: np.ndarray  # (L,) [s]
    left: np.ndarray  # (L, 3), rays of the first camera
    right: np.ndarray  # (L, 3), and of the second
    speeds: np.ndarray  # (L,), velocity in normalised coordinates [1/s]
    noise: np.ndarray  # (L,), standard deviation of such a coordinate
    markers: np.ndarray  # (L,), index
    keys: np.ndarray  # (L,), number of the sighting, whatever the offset


class Fit(NamedTuple):
    """Solution of the linearised equations, with S offsets of the clock, one after each step."""

    unknowns: np.ndarray  # (S + P - 1,)
    deviations: np.ndarray  # (S,), standard errors of the offsets [s]
    cost: float
    scale: float  # of the residuals, over their stated deviations
    speed: float  # largest image velocity across the epipolar lines [px/s]
    lines: np.ndarray  # (2,), mean line time, and that of the second camera minus the first [s]
    line_deviations: np.ndarray  # (2,)
    offsets: np.ndarray  # (S,), at which the equations were linearised [s]


class PairFit:
    """
    The least-squares problem of two cameras: ``pairs`` are tracks of each marker in both.

    ``steps``: times of steps of the clock that were found [s]; ``bump``: time from which on
    nothing is used, because a camera was bumped [s]; inf for none. Both, and the times of tracks
    and equations, are since ``start`` [s].
    """

    def __init__(self, rig: Rig, pairs: list[tuple[str, Track, Track]]) -> None:
        mounted = list(rig.cameras.values())
        self.poses = [one.pose for one in mounted]
        self._lenses = [one.camera for one in mounted]
        self._calibrated = math.hypot(*(one.calibration_deviation for one in mounted))
        self._base = self.poses[1].translation - self.poses[0].translation
        # Directions at right angles to the baseline, (3, 2): its length does not change e = 0.
        self._across = np.linalg.svd(self._base[None])[2][1:].T
        # Times since 1970 are multiples of 0.24 us, too coarse for the last steps of descend.
        self.start = float(pairs[0][1].times[0])
        self.pairs = [(name, self._since(one), self._since(two)) for name, one, two in pairs]
        self._splines = [
            scipy.interpolate.CubicSpline(track.times, track.places) for _, _, track in self.pairs
        ]
        self.interval = float(np.median(np.concatenate([np.diff(p[2].times) for p in pairs])))
        length = float(np.linalg.norm(self._base))
        priors = [_PRIOR_OFFSET, *2 * [PRIOR_LINE], *3 * [_PRIOR_TURN]]
        priors += 2 * [_PRIOR_SHIFT * length]
        # 1 / variance; in the order of the unknowns.
        self.prior = np.array([*priors, *len(pairs) * [_PRIOR_PIXEL]]) ** -2.0
        self.steps: list[float] = []
        self.bump = math.inf

    def _since(self, track: Track) -> Track:
        return track._replace(times=track.times - self.start)

    # --- equations ---------------------------------------------------------------------------

    def rows(self, offsets: np.ndarray, step: int = 1) -> Rows:
        """Return the equations at offsets (S,) [s], of every so many-th sighting."""
        parts = [self._rows_of(k, offsets, step) for k in range(len(self.pairs))]
        return Rows(*(np.concatenate(values) for values in zip(*parts, strict=True)))

    def _rows_of(self, index: int, offsets: np.ndarray, step: int) -> Rows:
        """Return the equations of one marker."""
        _, left, right = self.pairs[index]
        at = left.times + offsets[np.searchsorted(self.steps, left.times, side='right')]
        knots, gaps = right.times, np.diff(right.times) > _GAP * self.interval
        k = np.searchsorted(knots, at, side='right') - 1
        # Splines are uncertain in the outermost intervals, and near gaps and steps.
        usable = (k >= 1) & (k <= len(knots) - 3)
        usable &= left.times < self.bump - _AROUND * self.interval
        around = np.clip(k, 1, len(knots) - 3)
        usable &= ~(gaps[around - 1] | gaps[around] | gaps[around + 1])
        for edge, jump in zip(self.steps, np.diff(offsets), strict=True):
            around_edge = _AROUND + 0.5 + round(abs(jump) / self.interval)
            usable &= np.abs(left.times - edge) > around_edge * self.interval
        which = np.flatnonzero(usable)
        which = which[which % step == 0]
        left = Track(*(values[which] for values in left))
        at, k = at[which], k[which]
        spline, base = self._splines[index], self._base
        places, speeds = spline(at), spline(at, 1)
        ones = np.ones((len(at), 1))
        turns = [pose.rotation for pose in self.poses]
        seen = [
            np.hstack([xy, ones]) @ turn.T
            for xy, turn in zip((left.places, places), turns, strict=True)
        ]
        # e = b . (d_l x d_r); by d_r: b x d_l, by d_l: d_r x b, by b: d_l x d_r.
        by_right, by_left = np.cross(base, seen[0]), np.cross(seen[1], base)
        crossed = np.cross(seen[0], seen[1])
        # By the normalised coordinates of both cameras, (L, 2).
        gradients = by_left @ turns[0][:, :2], by_right @ turns[1][:, :2]
        noise = right.covariances[k]
        own, other = (
            np.einsum('li,lij,lj->l', gradient, covariance, gradient)
            for gradient, covariance in zip(gradients, (left.covariances, noise), strict=True)
        )
        slopes = np.einsum('li,li->l', gradients[1], speeds)
        per_pixel = np.linalg.norm(gradients[1], axis=1) / self._lenses[1].fx
        constants = np.zeros((len(at), len(self.pairs)))
        constants[:, index] = per_pixel
        # A rotation w of the second camera moves its rays by w x d_r.
        turned = np.cross(seen[1], by_right)
        # Rows of the second camera from its middle one minus those of the first. A row that is
        # exposed later has the effect of a stamp that is early.
        rows = [
            camera.fy * xy[:, 1] + camera.cy - 0.5 * (camera.height - 1.0)
            for camera, xy in zip(self._lenses, (left.places, places), strict=True)
        ]
        lines = slopes * (rows[0] - rows[1]), -0.5 * slopes * (rows[0] + rows[1])
        return Rows(
            np.column_stack([slopes, *lines, turned, crossed @ self._across, constants]),
            crossed @ base,
            np.sqrt(own + other),
            _SLOPE_NOISE / self.interval * np.sqrt(other),
            per_pixel,
            left.times,
            seen[0],
            seen[1],
            np.linalg.norm(speeds, axis=1),
            np.sqrt(0.5 * np.trace(noise, axis1=1, axis2=2)),
            np.full(len(at), index),
            which + index * 10**9,
        )

    def heights(self, rows: Rows) -> np.ndarray:
        """Return the larger distance of each sighting's rows from the middle one, (L,) [px]."""
        found = []
        both = zip(self._lenses, self.poses, (rows.left, rows.right), strict=True)
        for camera, pose, rays in both:
            _, y, z = (rays @ pose.rotation).T
            found.append(np.abs(camera.fy * y / z + camera.cy - 0.5 * (camera.height - 1.0)))
        return np.asarray(np.maximum(*found))

    def points(self, rows: Rows) -> np.ndarray:
        """Return the points nearest to both rays of each sighting, (L, 3) [m]."""
        across = np.cross(rows.left, rows.right)
        size = np.sum(across * across, axis=1, keepdims=True)
        along, back = (
            np.sum(np.cross(self._base, ray) * across, axis=1, keepdims=True) / size
            for ray in (rows.right, rows.left)
        )
        first = self.poses[0].translation + along * rows.left
        return np.asarray(0.5 * (first + self.poses[1].translation + back * rows.right))

    # --- solution ----------------------------------------------------------------------------

    def cost(self, offset: float, step: int) -> float:
        """Return the cost at one offset [s] for every so many-th sighting; inf for too few."""
        offsets = np.array([offset])
        rows = self.rows(offsets, step)
        enough = self._are_enough(rows)
        return self._fit(rows, offsets, with_offset=False).cost if enough else math.inf

    def _are_enough(self, rows: Rows) -> bool:
        return len(rows.times) >= _LEAST_SIGHTINGS * (len(self.prior) + len(self.steps))

    def descend(self, offsets: np.ndarray, *, lines: int = 0) -> Fit | None:
        """
        Minimise by Gauss-Newton steps from offsets (S,) [s], with 0 to 2 unknown line times.

        Returns None with too few sightings; deviations are infinite if it has not converged.
        """
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
        segment = np.searchsorted(self.steps, rows.times, side='right')[:, None] == range(count)
        whole = rows.matrix / rows.deviations[:, None]
        right = -rows.residuals / rows.deviations
        slopes, noise = whole[:, 0], rows.slope_deviations / rows.deviations
        matrix = np.column_stack([segment * slopes[:, None], whole[:, 1:]])
        prior = np.concatenate([np.full(count, self.prior[0]), self.prior[1:]])
        freedom = math.sqrt(len(right) / (len(right) - len(prior)))
        for _ in range(10):
            moves = np.abs(slopes) > MOVES * noise * max(1.0, scale)
            moves &= len(np.unique(rows.times[moves])) >= _LEAST_MOVING
            matrix[:, :count] = segment * (slopes * (moves & with_offset))[:, None]
            matrix[:, count : count + 2] = moves[:, None] * whole[:, 1:3] * (lines > np.arange(2))
            weighted = matrix * weights[:, None] / scale**2
            inverse = np.linalg.inv(matrix.T @ weighted + np.diag(prior))
            unknowns = inverse @ (weighted.T @ right)
            residuals = right - matrix @ unknowns
            before, scale = scale, 1.4826 * float(np.median(np.abs(residuals))) * freedom
            scale = max(scale, _LEAST_SCALE)
            size = np.abs(residuals) / scale
            weights = np.minimum(1.0, _HUBER / np.maximum(size, _HUBER))
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
            within = matrix * (size < _HUBER)[:, None] / scale**2
            inverse = np.linalg.inv(matrix.T @ within + np.diag(prior))
            by_blocks = np.sum((scores @ inverse[: count + 2].T) ** 2, axis=0)
            variances = np.maximum(variances, by_blocks * used / (used - 1.0))
        across = np.abs(slopes) * rows.deviations / rows.per_pixel
        return Fit(
            unknowns,
            np.sqrt(variances[:count]),
            # Huber's function of the residuals over their stated deviations.
            float(np.mean(np.minimum(residuals**2, scale * _HUBER * np.abs(residuals)))),
            scale,
            float(across.max()),
            unknowns[count : count + 2],
            np.sqrt(variances[count:]),
            offsets,
        )

    # --- noise and changes -------------------------------------------------------------------

    def noise(self, rows: Rows, residuals: np.ndarray) -> float:
        """
        Return the scale of residuals that pixels and calibration explain, over the stated one.

        By second differences in time, on which slow motion, poses and clocks have hardly any
        influence; at least 1.
        """
        order = np.lexsort((rows.times, rows.markers))
        marker, values = rows.markers[order], residuals[order]
        second = np.abs(values[2:] - 2.0 * values[1:-1] + values[:-2]) / math.sqrt(6.0)
        same = marker[2:] == marker[:-2]
        own, times = second[same], rows.times[order][2:][same]
        # Of quiet parts: with a clock that has jumped, fast motion is left over elsewhere.
        parts = [part for part in np.array_split(own[np.argsort(times)], PARTS) if len(part)]
        quiet = np.quantile([np.median(part) for part in parts], QUIET) if parts else 0.0
        own = 1.4826 * float(quiet)
        lens = self._calibrated * float(np.median(rows.per_pixel / rows.deviations))
        return math.hypot(max(own, 1.0), lens)

    def misfit(self, found: Fit) -> float:
        """Return the scale of residuals in the second worst tenth of the time, over noise."""
        rows = self.rows(found.offsets)
        own = self.residuals(rows, found)
        parts = np.array_split(np.abs(own)[np.argsort(rows.times)], PARTS)
        scales = [1.4826 * float(np.median(part)) for part in parts if len(part)]
        return sorted(scales)[-2:][0] / self.noise(rows, own)

    def contradiction(self, found: Fit) -> tuple[float, float] | None:
        """Return the first and last time at which residuals are far above noise, if there are."""
        rows = self.rows(found.offsets)
        own, order = self.residuals(rows, found), np.argsort(rows.times)
        limit = UNFIT * self.noise(rows, own) / 1.4826
        parts = np.array_split(order, max(1, len(order) // _IN_A_ROW))
        loud = [part for part in parts if len(part) and np.median(np.abs(own[part])) > limit]
        if not loud:
            return None
        first, last = rows.times[[loud[0][0], loud[-1][-1]]] + self.start
        return float(first), float(last)

    @staticmethod
    def residuals(rows: Rows, found: Fit) -> np.ndarray:
        """Return residuals of a solution, at its offsets, over their stated deviations."""
        own = rows.residuals + rows.matrix[:, 1:] @ found.unknowns[len(found.offsets) :]
        return np.asarray(own / rows.deviations)
