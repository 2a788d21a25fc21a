"""
Least squares for two cameras that see the same markers: clocks, poses, and what changed them.

Both rays to a marker and the baseline lie in one plane: e = b . (d_l x d_r) = 0, with the rays d
and the baseline b in the world. If the stamps of the second camera are late by T, its track holds
at stamp t + T what the first camera saw at stamp t, and e(T) = 0. T minimises e over all sightings
of all markers; the second track is interpolated by cubic splines, so that T may exceed the
interval between images. The derivative of e by T is the image velocity across the epipolar line:
markers that stand still, or move along these lines, carry no information.

A wrong pose of the second camera and a constant error of each marker's pixel also make e differ
from 0. They are estimated together with T, so that a bumped camera does not look like an offset.
Rolling shutters expose row v later than the middle row by line_time (v - v_middle). If both
cameras have the same line time, e contains its difference between the rows of both cameras times
the velocity. The equations are solved again with it as a further unknown; it is used where it is
significant, and cannot be known where markers stand still or have the same rows in both images.

Residuals are weighted by Huber's function; the standard error is the larger one of that from the
scatter of the residuals and that from blocks of time (residuals that persist).

What changed during the recording is found by comparing hypotheses with the same residuals: the
clock of a camera jumped at a time, T has another value from there on; or a camera was bumped, the
pose has. Each is solved for all times at which blocks of sightings begin, steps of the clock from
each of several multiples of the interval to each other one. The logarithms of their likelihoods
are compared, for as many independent residuals as their autocorrelation leaves, less Schwarz's
penalty for the unknowns.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from longreach_markers.rig import MountedCamera, Rig

UNFIT = 3.0
"""Scale of residuals over noise from which the equations do not describe the sightings."""

SURE = 4.0
"""Standard errors beyond which an estimate is significant."""

PRIOR_LINE = 30e-6
"""Prior standard deviation of the line time [s]: that of slow sensors."""

# Prior standard deviations: offset [s]; rotation of the second camera [rad]; its displacement over
# the baseline; constant error of a marker [px]. They exceed what occurs, and only keep the
# equations solvable.
_PRIOR_OFFSET, _PRIOR_TURN, _PRIOR_SHIFT, _PRIOR_PIXEL = 10.0, 0.02, 0.05, 1.0
# Velocities within this many standard deviations of their noise count as zero: noise in them
# would look like information.
_MOVES = 4.0
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
# Largest offset searched for [s], also as a share of the duration; sightings used in the search;
# cost below which, relative to that of the nearest minimum, a farther one is taken.
_FARTHEST, _SHARE, _THINNED, _BETTER = 1.0, 0.25, 400, 0.5
# Search for changes: largest number of them; blocks of time, and sightings in each; steps of the
# clock to both sides of the present offset, in intervals.
_CHANGES, _PIECES, _PIECE, _STEPS = 4, 60, 6, 4
# Mean square of a block over that of noise from which a search is worth while; least ratio of the
# costs without and with a change, and of their likelihoods (logarithm).
_LOUD, _LEAST_RATIO, _LEAST_GAIN = 4.0, 1.3, 30.0
# Intervals around a step of the clock, or before a bump, in which splines are not used.
_AROUND = 4
# Parts of the time in which noise is estimated, and share of them that are quiet.
_PARTS, _QUIET = 10, 0.2
# Sightings of which most must contradict the solution, in a row, to be named.
_IN_A_ROW = 24
# Residuals over noise that count as this many at most.
_CLIP = 6.0
# Unknowns of the pose: rotation, and displacement across the baseline.
_POSE = slice(2, 7)


class Track(NamedTuple):
    """Sightings of a marker by a camera, in increasing order of time."""

    times: np.ndarray  # (N,) [s]
    places: np.ndarray  # (N, 2), normalised coordinates
    covariances: np.ndarray  # (N, 2, 2), of these


def track_of(table: np.ndarray, mounted: MountedCamera) -> Track:
    """Return a track from times, pixels and covariances (N, 6)."""
    camera = mounted.camera
    places = camera.undistort(table[:, 1:3], strict=False)
    # The lens is neglected here: weights need no more.
    scale = np.array([1.0 / camera.fx, 1.0 / camera.fy])
    covariances = table[:, [3, 4, 4, 5]].reshape(-1, 2, 2) * np.outer(scale, scale)
    fine = np.isfinite(places).all(axis=1)
    return Track(table[fine, 0], places[fine], covariances[fine])


class Rows(NamedTuple):
    """Equations of all sightings at assumed offsets; L of them, with P unknowns."""

    matrix: np.ndarray  # (L, P), derivatives of the residuals by the unknowns, the first by T
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
    line: float  # line time [s]
    line_deviation: float
    offsets: np.ndarray  # (S,), at which the equations were linearised [s]


class PairFit:
    """
    The least-squares problem of two cameras: ``pairs`` are tracks of each marker in both.

    ``steps``: times of steps of the clock that were found [s]; ``bump``: time from which on
    nothing is used, because a camera was bumped [s]; inf for none.
    """

    def __init__(self, rig: Rig, pairs: list[tuple[str, Track, Track]]) -> None:
        from scipy.interpolate import CubicSpline

        mounted = list(rig.cameras.values())
        self.poses = [one.pose for one in mounted]
        self._lenses = [one.camera for one in mounted]
        self._calibrated = math.hypot(*(one.calibration_deviation for one in mounted))
        self._base = self.poses[1].translation - self.poses[0].translation
        # Directions at right angles to the baseline, (3, 2): its length does not change e = 0.
        self._across = np.linalg.svd(self._base[None])[2][1:].T
        self.pairs = pairs
        self._splines = [CubicSpline(track.times, track.places) for _, _, track in pairs]
        self.interval = float(np.median(np.concatenate([np.diff(p[2].times) for p in pairs])))
        length = float(np.linalg.norm(self._base))
        priors = [_PRIOR_OFFSET, PRIOR_LINE, *3 * [_PRIOR_TURN], *2 * [_PRIOR_SHIFT * length]]
        # 1 / variance; in the order of the unknowns.
        self._prior = np.array([*priors, *len(pairs) * [_PRIOR_PIXEL]]) ** -2.0
        self.steps: list[float] = []
        self.bump = math.inf

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
        lines = slopes * (rows[0] - rows[1])
        return Rows(
            np.column_stack([slopes, lines, turned, crossed @ self._across, constants]),
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

    def solve(self, *, search: bool) -> Fit | None:
        """Return the solution up to a bump, with all steps; None for too few sightings."""
        near = self.descend(np.zeros(1))
        if near is None:
            return self._with_changes(near)
        starts = [near]
        if search:
            start = self._search()
            if start is not None and abs(start - near.offsets[0]) > self.interval:
                far = self.descend(np.array([start]))
                if far is not None and far.cost < _BETTER * near.cost:
                    is_good = SURE * far.deviations[0] < self.interval
                    is_good = is_good and self.misfit(far) < UNFIT
                    starts = [far] if is_good else [near, far]
        best: tuple[Fit, list[float], float] | None = None
        for start_fit in starts:
            self.steps, self.bump = [], math.inf
            found = self._with_changes(start_fit)
            if found is not None and (best is None or found.cost < _BETTER * best[0].cost):
                best = found, self.steps, self.bump
        if best is None:
            return None
        found, self.steps, self.bump = best
        return found

    def _with_changes(self, found: Fit | None) -> Fit | None:
        """Return the solution with the changes that it leaves over, one after the other."""
        for _ in range(_CHANGES):
            change = None if found is None else self._change(found)
            if found is None or change is None:
                break
            time, offsets = change
            if offsets is None:
                self.bump = time
                self.steps = [one for one in self.steps if one < time]
                found = self.descend(found.offsets[: len(self.steps) + 1])
                continue
            k = int(np.searchsorted(self.steps, time))
            self.steps.insert(k, time)
            before, behind = found.offsets[:k], found.offsets[k + 1 :]
            after = self.descend(np.concatenate([before, offsets, behind]))
            if after is None or not np.isfinite(after.deviations).all():
                del self.steps[k]
                break
            found = after
        return found

    def _search(self) -> float | None:
        """Return the offset on a grid with which the tracks fit best [s]."""
        times = self.pairs[0][1].times
        most = min(_FARTHEST, _SHARE * float(times[-1] - times[0]))
        count = math.floor(most / self.interval)
        sightings = sum(len(left.times) for _, left, _ in self.pairs)
        step = max(1, sightings // _THINNED)
        costs = {}
        for k in range(-count, count + 1):
            offset = np.array([k * self.interval])
            rows = self.rows(offset, step)
            if self._are_enough(rows):
                costs[k * self.interval] = self._fit(rows, offset, with_offset=False).cost
        return min(costs, key=lambda offset: costs[offset]) if costs else None

    def _are_enough(self, rows: Rows) -> bool:
        return len(rows.times) >= _LEAST_SIGHTINGS * (len(self._prior) + len(self.steps))

    def descend(self, offsets: np.ndarray, *, with_line: bool = False) -> Fit | None:
        """
        Minimise by Gauss-Newton steps from offsets (S,) [s].

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
            found = self._fit(rows, offsets, with_line=with_line)
            step = np.clip(found.unknowns[: len(offsets)], -_LARGEST_STEP, _LARGEST_STEP)
            if (np.abs(step) < _CONVERGED * found.deviations).all():
                return found
            offsets = offsets + step
        endless = np.full(len(offsets), math.inf)
        return found._replace(deviations=endless, line_deviation=math.inf)

    def _fit(
        self,
        rows: Rows,
        offsets: np.ndarray,
        *,
        with_offset: bool = True,
        with_line: bool = False,
    ) -> Fit:
        """Solve the linearised equations, with weights that follow the residuals."""
        weights, scale, count = np.ones(len(rows.times)), 1.0, len(offsets)
        segment = np.searchsorted(self.steps, rows.times, side='right')[:, None] == range(count)
        whole = rows.matrix / rows.deviations[:, None]
        right = -rows.residuals / rows.deviations
        slopes, noise = whole[:, 0], rows.slope_deviations / rows.deviations
        matrix = np.column_stack([segment * slopes[:, None], whole[:, 1:]])
        prior = np.concatenate([np.full(count, self._prior[0]), self._prior[1:]])
        freedom = math.sqrt(len(right) / (len(right) - len(prior)))
        for _ in range(10):
            moves = np.abs(slopes) > _MOVES * noise * max(1.0, scale)
            matrix[:, :count] = segment * (slopes * (moves & with_offset))[:, None]
            matrix[:, count] = np.where(moves & with_line, whole[:, 1], 0.0)
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
        variances = np.diag(inverse)[: count + 1]
        edges = np.linspace(rows.times.min(), rows.times.max(), _BLOCKS + 1)[1:-1]
        blocks = np.searchsorted(edges, rows.times)
        scores = np.zeros((_BLOCKS, len(unknowns)))
        np.add.at(scores, blocks, weighted * residuals[:, None])
        used = len(np.unique(blocks[moves])) if moves.any() else 0
        if used >= _LEAST_BLOCKS:
            by_blocks = np.sum((scores @ inverse[: count + 1].T) ** 2, axis=0)
            variances = np.maximum(variances, by_blocks * used / (used - 1.0))
        across = np.abs(slopes) * rows.deviations / rows.per_pixel
        return Fit(
            unknowns,
            np.sqrt(variances[:count]),
            # Huber's function of the residuals over their stated deviations.
            float(np.mean(np.minimum(residuals**2, scale * _HUBER * np.abs(residuals)))),
            scale,
            float(across.max()),
            float(unknowns[count]),
            math.sqrt(variances[count]),
            offsets,
        )

    # --- noise and changes -------------------------------------------------------------------

    def _noise(self, rows: Rows, residuals: np.ndarray) -> float:
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
        parts = [part for part in np.array_split(own[np.argsort(times)], _PARTS) if len(part)]
        quiet = np.quantile([np.median(part) for part in parts], _QUIET) if parts else 0.0
        own = 1.4826 * float(quiet)
        lens = self._calibrated * float(np.median(rows.per_pixel / rows.deviations))
        return math.hypot(max(own, 1.0), lens)

    def misfit(self, found: Fit) -> float:
        """Return the scale of residuals in the second worst tenth of the time, over noise."""
        rows = self.rows(found.offsets)
        own = self._residuals(rows, found)
        parts = np.array_split(np.abs(own)[np.argsort(rows.times)], _PARTS)
        scales = [1.4826 * float(np.median(part)) for part in parts if len(part)]
        return sorted(scales)[-2:][0] / self._noise(rows, own)

    def contradiction(self, found: Fit) -> tuple[float, float] | None:
        """Return the first and last time at which residuals are far above noise, if there are."""
        rows = self.rows(found.offsets)
        own, order = self._residuals(rows, found), np.argsort(rows.times)
        limit = UNFIT * self._noise(rows, own) / 1.4826
        parts = np.array_split(order, max(1, len(order) // _IN_A_ROW))
        loud = [part for part in parts if len(part) and np.median(np.abs(own[part])) > limit]
        if not loud:
            return None
        return float(rows.times[loud[0][0]]), float(rows.times[loud[-1][-1]])

    @staticmethod
    def _residuals(rows: Rows, found: Fit) -> np.ndarray:
        """Return residuals of a solution, at its offsets, over their stated deviations."""
        own = rows.residuals + rows.matrix[:, 1:] @ found.unknowns[len(found.offsets) :]
        return np.asarray(own / rows.deviations)

    def _change(self, found: Fit) -> tuple[float, tuple[float, float] | None] | None:
        """
        Return the time of the change that explains the residuals of a solution best.

        With the offsets before and after a step of the clock, None for a bump; None for no change.
        """
        rows = self.rows(found.offsets)
        noise = self._noise(rows, self._residuals(rows, found))
        times = np.unique(rows.times)
        pieces = min(_PIECES, len(times) // 2, len(rows.times) // _PIECE)
        if pieces < 3:
            return None
        edges = times[np.linspace(0, len(times), pieces + 1).round().astype(int)[1:-1]]
        # Blocks do not extend beyond steps that are known.
        edges = np.union1d(edges, self.steps)
        middle = self._shifted(found, 0.0, edges, edges, noise)
        squares = np.diff(middle.sums[:, -1, -1]) / np.maximum(middle.counts, 1)
        if not (squares > _LOUD * noise**2).any():
            return None
        plain, _ = _least(middle.sums[-1:], self._prior)
        ranked: list[_Hypothesis] = []
        for is_step in (False, True):
            coarse = self._best(found, middle, edges, edges, noise, is_step=is_step)
            if coarse is None:
                continue
            # Then at each time around the best one.
            first, last = max(coarse.edge - 1, 0), min(coarse.edge + 1, len(edges) - 1)
            fine = times[(times >= edges[first]) & (times <= edges[last])]
            fine = np.union1d(fine, self.steps)
            again = self._shifted(found, 0.0, fine, edges, noise)
            own = self._best(found, again, fine, edges, noise, is_step=is_step)
            ranked.append(own if own is not None and own.cost < coarse.cost else coarse)
        ranked.sort(key=lambda one: one.cost)
        if not ranked or plain[0] < _LEAST_RATIO * ranked[0].cost:
            return None
        persistence = min(ranked[0].persistence(noise), 0.98)
        count = len(rows.times) * (1.0 - persistence) / (1.0 + persistence)
        gains = [
            count * math.log(plain[0] / one.cost) - one.unknowns * math.log(count)
            for one in ranked
        ]
        best = int(np.argmax(gains))
        if gains[best] < _LEAST_GAIN:
            return None
        return ranked[best].time(noise), ranked[best].offsets

    def _shifted(
        self, found: Fit, shift: float, edges: np.ndarray, groups: np.ndarray, noise: float
    ) -> _Shifted:
        """
        Return the equations with all offsets shifted [s], and their sums over blocks.

        ``edges`` and ``groups`` (B - 1,) are the times between blocks, and between those in which
        residuals are compared.
        """
        rows = self.rows(found.offsets + shift)
        values = np.column_stack([rows.matrix, rows.residuals]) / rows.deviations[:, None]
        slopes = np.abs(rows.matrix[:, 0])
        values[:, 0] *= slopes > _MOVES * noise * rows.slope_deviations
        own = np.abs(self._residuals(rows, found))
        # Single wrong pixels count less than the others of their time.
        weights, group = np.ones(len(own)), np.searchsorted(groups, rows.times, side='right')
        for k in range(len(self.pairs)):
            mine = rows.markers == k
            for b in np.unique(group[mine]):
                these = mine & (group == b)
                usual = max(float(np.median(own[these])), 0.7 * noise)
                weights[these] = np.minimum(1.0, 2.5 * usual / np.maximum(own[these], usual)) ** 2
        block = np.searchsorted(edges, rows.times, side='right')
        scaled = values * np.sqrt(weights)[:, None]
        cuts = np.searchsorted(np.sort(block), np.arange(len(edges) + 2))
        scaled = scaled[np.argsort(block, kind='stable')]
        sums = [scaled[a:b].T @ scaled[a:b] for a, b in itertools.pairwise(cuts)]
        total = np.concatenate([np.zeros_like(sums[:1]), np.cumsum(sums, axis=0)])
        return _Shifted(rows, values, total, np.diff(cuts))

    def _as_bump(self, middle: _Shifted, edges: np.ndarray) -> _Hypothesis:
        """Return the best time of a change of the pose."""
        size = len(self._prior)
        before, after = np.eye(size + 1, size + 6), np.eye(size + 1, size + 6)
        for one in (before, after):
            one[-1] = np.eye(size + 6)[-1]
        after[_POSE, size : size + 5] = np.eye(5)
        prior = np.concatenate([self._prior, self._prior[_POSE]])
        costs, solutions = _least(
            before.T @ middle.sums[1:-1] @ before
            + after.T @ (middle.sums[-1] - middle.sums[1:-1]) @ after,
            prior,
        )
        b = int(np.argmin(costs))
        both = [(middle, part @ np.append(solutions[b], 1.0)) for part in (before, after)]
        return _Hypothesis(float(costs[b]), 6, b, edges, both, None)

    def _best(
        self,
        found: Fit,
        middle: _Shifted,
        edges: np.ndarray,
        groups: np.ndarray,
        noise: float,
        *,
        is_step: bool,
    ) -> _Hypothesis | None:
        """Return the best time of a bump, or of a step of the clock, and its size."""
        if not is_step:
            return self._as_bump(middle, edges)
        size = len(self._prior)
        shifts = {
            k: middle if k == 0 else self._shifted(found, k * self.interval, edges, groups, noise)
            for k in range(-_STEPS, _STEPS + 1)
        }
        sums = {}
        for k, one in shifts.items():
            # Fewer sightings are usable near gaps and ends: sums of as many as without a shift.
            share = middle.counts / np.maximum(one.counts, 1)
            parts = np.diff(one.sums, axis=0) * share[:, None, None]
            parts[one.counts == 0] = np.diff(middle.sums, axis=0)[one.counts == 0]
            sums[k] = np.concatenate([np.zeros_like(parts[:1]), np.cumsum(parts, axis=0)])
        # Unknowns: the offset before and after, and all others.
        before, after, outside = np.zeros((3, size + 1, size + 2))
        for part in (before, after, outside):
            part[1:, 2:] = np.eye(size)
        before[0, 0] = after[0, 1] = 1.0
        prior = np.concatenate([self._prior[:1], self._prior])
        known = [0, *(int(np.searchsorted(edges, one)) + 1 for one in self.steps), len(edges) + 1]
        best: _Hypothesis | None = None
        spread = math.inf
        for segment, (start, stop) in enumerate(itertools.pairwise(known)):
            rest = sums[0][-1] - sums[0][stop] + sums[0][start]
            cut = np.arange(start + 1, stop)
            if not len(cut):
                continue
            for i, j in itertools.product(shifts, shifts):
                if i == j != 0:
                    continue
                whole = (
                    before.T @ (sums[i][cut] - sums[i][start]) @ before
                    + after.T @ (sums[j][stop] - sums[j][cut]) @ after
                    + outside.T @ rest @ outside
                )
                costs, solutions = _least(whole, prior)
                b = int(np.argmin(costs))
                if best is None or costs[b] < best.cost:
                    x = np.append(solutions[b], 1.0)
                    offset = found.offsets[segment] + self.interval * np.array([i, j]) + x[:2]
                    both = [(shifts[i], before @ x), (shifts[j], after @ x)]
                    jump = float(offset[0]), float(offset[1])
                    best = _Hypothesis(float(costs[b]), 2, int(cut[b]) - 1, edges, both, jump)
                    inverse = np.linalg.inv(whole[b][:-1, :-1] + np.diag(prior))
                    spread = noise * math.sqrt(inverse[0, 0] + inverse[1, 1] - 2 * inverse[0, 1])
        if best is None or best.offsets is None:
            return None
        return best if abs(best.offsets[1] - best.offsets[0]) > SURE * spread else None


def _least(sums: np.ndarray, prior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return least sums of squares (K,) and unknowns (K, Q) of ``sums`` (K, Q + 1, Q + 1)."""
    matrix, right = sums[:, :-1, :-1] + np.diag(prior), sums[:, :-1, -1:]
    unknowns = -np.linalg.solve(matrix, right)
    return sums[:, -1, -1] + np.sum(right * unknowns, axis=(1, 2)), unknowns[..., 0]


class _Shifted(NamedTuple):
    """Equations at offsets that are shifted alike."""

    rows: Rows
    values: np.ndarray  # (L, P + 1), matrix and residuals over the stated deviations
    sums: np.ndarray  # (B + 1, P + 1, P + 1), products of columns before each of B blocks
    counts: np.ndarray  # (B,), sightings in each


class _Hypothesis(NamedTuple):
    """A change at the start of a block, with all unknowns."""

    cost: float
    unknowns: int  # more than without a change
    edge: int  # of the blocks
    edges: np.ndarray  # times between the blocks [s]
    parts: list[tuple[_Shifted, np.ndarray]]  # equations before and after, and factors (P + 1,)
    offsets: tuple[float, float] | None

    def residuals(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return times (L,), markers and residuals before and after, of common sightings."""
        (one, x), (other, y) = self.parts
        _, i, j = np.intersect1d(one.rows.keys, other.rows.keys, return_indices=True)
        before, after = (one.values @ x)[i], (other.values @ y)[j]
        return one.rows.times[i], one.rows.markers[i], before, after

    def time(self, noise: float) -> float:
        """Return the time of the first sighting after the change, near the edge [s]."""
        times, _, before, after = self.residuals()
        first = self.edges[max(self.edge - 1, 0)]
        last = self.edges[min(self.edge + 1, len(self.edges) - 1)]
        before, after = (np.minimum(np.abs(one), _CLIP * noise) ** 2 for one in (before, after))
        found = np.unique(times[(times >= first) & (times <= last)])
        if not len(found):
            return float(self.edges[self.edge])
        costs = [before[times < at].sum() + after[times >= at].sum() for at in found]
        return float(found[int(np.argmin(costs))])

    def persistence(self, noise: float) -> float:
        """Return the correlation of a residual with the next one of the same marker."""
        times, markers, before, after = self.residuals()
        own = np.where(times < self.time(noise), before, after)
        order = np.lexsort((times, markers))
        own, markers = np.clip(own, -_CLIP * noise, _CLIP * noise)[order], markers[order]
        same, times = markers[1:] == markers[:-1], times[order][1:]
        both, square = (own[1:] * own[:-1])[same], (own[1:] ** 2)[same]
        # Of quiet parts, as there may be further changes.
        order = np.argsort(times[same])
        parts = zip(*(np.array_split(one[order], _PARTS) for one in (both, square)), strict=True)
        ratios = [a.sum() / b.sum() for a, b in parts if b.any()]
        return max(0.0, float(np.quantile(ratios, _QUIET))) if ratios else 0.0
