"""
Offset between the clocks of two cameras, from tracks of the same markers in both.

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
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from longreach_dynamics.errors import LongreachError
from longreach_vision.rig import MountedCamera, Rig
from longreach_vision.tracking.sightings import Sightings

__all__ = ['ClockOffset', 'Clocks', 'OffsetEstimator', 'clock_estimates', 'compare_clocks']

# Standard errors beyond which an offset is significant, and with which an unknown offset covers an
# interval between images.
_SURE = 4.0
# Prior standard deviations: offset [s]; rotation of the second camera [rad]; its displacement over
# the baseline; constant error of a marker [px]. They exceed what occurs, and only keep the
# equations solvable.
_PRIOR_OFFSET, _PRIOR_TURN, _PRIOR_SHIFT, _PRIOR_PIXEL = 10.0, 0.02, 0.05, 1.0
# Prior standard deviation of the line time [s]: that of slow sensors. Below a fifth of it, a
# standard error says something about the line time.
_PRIOR_LINE, _LINE_KNOWN = 30e-6, 0.2
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
# Least number of sightings for each unknown, and of samples of a track.
_LEAST_SIGHTINGS, _LEAST_SAMPLES = 3, 6
# Steps; largest one [s]; last one over the standard error.
_MAX_STEPS, _LARGEST_STEP, _CONVERGED = 30, 0.05, 0.01
# Blocks of time for the standard error, and the least number of them.
_BLOCKS, _LEAST_BLOCKS = 40, 10
# Largest offset searched for [s], also as a share of the duration; sightings used in the search;
# cost below which, relative to that of the nearest minimum, a farther one is taken.
_FARTHEST, _SHARE, _THINNED, _BETTER = 1.0, 0.25, 400, 0.5
# Share of the sightings whose position error is below the one stated.
_QUANTILE = 0.99


@dataclasses.dataclass(frozen=True)
class ClockOffset:
    """
    Offset between the stamps of two cameras.

    Parameters
    ----------
    cameras : (str, str)
    offset : float
        Time by which stamps of the second camera are later than those of the first for the same
        instant [s], in addition to the delays in the rig; NaN if there are too few sightings.
    deviation : float
        Standard error [s]; inf for too few sightings, or if the estimate has not converged.
    interval : float
        Usual interval between images [s].
    speed : float
        Largest image velocity across the epipolar lines, including noise [px/s].
    sightings : int
        Number of sightings of a marker by both cameras.
    marker : str
        Marker whose positions the offset moves most.
    error : float
        Movement of its triangulated positions by the offset, exceeded in 1 % of images [m].
    shift : float
        Movement of its pixels by the offset over their standard deviation, likewise.
    line_time : float
        Line time of both cameras [s], in addition to that in the rig; NaN if unknown.
    line_deviation : float
        Standard error of it [s].
    line_shift : float
        Movement of pixels by the line time over their standard deviation, exceeded in 1 % of
        images.
    """

    cameras: tuple[str, str]
    offset: float = math.nan
    deviation: float = math.inf
    interval: float = math.nan
    speed: float = 0.0
    sightings: int = 0
    marker: str = ''
    error: float = 0.0
    shift: float = 0.0
    line_time: float = math.nan
    line_deviation: float = math.inf
    line_shift: float = 0.0

    @property
    def has_line_time(self) -> bool:
        """Whether the line time is certain, and moves pixels by more than their deviation."""
        return abs(self.line_time) > _SURE * self.line_deviation and self.line_shift > 1.0

    @property
    def is_line_time_known(self) -> bool:
        """Whether the motion determines the line time."""
        return self.line_deviation < _LINE_KNOWN * _PRIOR_LINE

    @property
    def is_known(self) -> bool:
        """Whether the data determine the offset better than to an interval between images."""
        return _SURE * self.deviation < self.interval

    @property
    def is_significant(self) -> bool:
        """Whether the offset is certain, and moves pixels by more than their stated deviation."""
        return self.is_known and abs(self.offset) > _SURE * self.deviation and self.shift > 1.0

    def __str__(self) -> str:
        """Return the offset in one line."""
        first, second = self.cameras
        if math.isfinite(self.offset) and not math.isfinite(self.deviation):
            return (
                f'clock offset of {second} against {first}: the estimate has not converged; record'
                ' markers that move irregularly, at right angles to the line between the cameras'
            )
        if not math.isfinite(self.deviation):
            return (
                f'clock offset of {second} against {first}: cannot be known from'
                f' {self.sightings} sightings of markers by both cameras; record more images'
            )
        if not self.is_known:
            return (
                f'clock offset of {second} against {first}: cannot be known (standard error'
                f' {1e3 * self.deviation:.3g} ms), as markers move across the epipolar lines at'
                f' {self.speed:.2g} px/s at most; record markers that move at right angles to the'
                ' line between the cameras'
            )
        line = 'cannot be known from this motion'
        if self.is_line_time_known:
            line = f'{1e6 * self.line_time:+.2f} us a row, standard error'
            line += f' {1e6 * self.line_deviation:.2f} us'
        return (
            f'clock offset of {second} against {first}: {1e3 * self.offset:+.3f} ms, standard'
            f' error {1e3 * self.deviation:.3f} ms\nrolling shutter of both: {line}'
        )

    @property
    def warning(self) -> str:
        """Warning about a significant offset, with its effect and a remedy; empty for none."""
        first, second = self.cameras
        if self.has_line_time:
            return (
                f'{first} and {second} have rolling shutters:'
                f' {1e6 * self.line_time:.2f} us a row (standard error'
                f' {1e6 * self.line_deviation:.2f} us, the same for both), and stamps of {second}'
                f' are {1e3 * self.offset:+.2f} ms late: positions of moving markers are wrong,'
                ' which their covariance does not contain; use cameras with a global shutter, or'
                ' add line_time to the rig: longreach vision sync RECORDING --rig RIG.yaml'
            )
        if not self.is_significant:
            return ''
        late = 'later' if self.offset > 0.0 else 'earlier'
        return (
            f'stamps of {second} are {1e3 * abs(self.offset):.2f} ms (standard error'
            f' {1e3 * self.deviation:.2f} ms) {late} than those of {first}: triangulated positions'
            f' of {self.marker} are wrong by up to {1e3 * self.error:.2g} mm, which their'
            ' covariance does not contain; trigger both cameras together, or add the delay to the'
            ' rig: longreach vision sync RECORDING --rig RIG.yaml'
        )

    def fields(self) -> dict[str, object]:
        """Return the result as a JSON object, None for unknown numbers."""
        given = dataclasses.asdict(self) | {'cameras': list(self.cameras), 'known': self.is_known}
        for key, value in given.items():
            if isinstance(value, float) and not math.isfinite(value):
                given[key] = None
        return given | {'warning': self.warning}


class OffsetEstimator:
    """
    Estimates the offset of the clocks of two cameras.

    Parameters
    ----------
    sightings : Sightings
        May grow between estimates; with one camera nothing can be said.
    """

    def __init__(self, sightings: Sightings) -> None:
        # Here: --help does not wait for it, nor a running tracker at its first estimate.
        import scipy.interpolate  # noqa: F401

        self._rig, self._sightings = sightings.rig, sightings

    def estimate(self, *, search: bool = True) -> ClockOffset | None:
        """
        Estimate the offset from all sightings so far; None with one camera.

        Parameters
        ----------
        search : bool
            Also search for offsets up to 1 s, or a quarter of the duration, for which the tracks
            fit clearly better. Otherwise the minimum nearest to 0 is found: for a vibration,
            offsets below about a quarter of its period.
        """
        if len(self._rig.cameras) < 2:
            return None
        first, second = self._rig.cameras
        pairs = []
        for marker in self._rig.names:
            tracks = [
                _track(self._sightings.table(name, marker), self._rig.cameras[name])
                for name in (first, second)
            ]
            if min(len(track.times) for track in tracks) >= _LEAST_SAMPLES:
                pairs.append((marker, tracks[0], tracks[1]))
        if not pairs:
            return ClockOffset((first, second))
        return _Problem(self._rig, pairs).solve(search=search)


@dataclasses.dataclass(frozen=True)
class Clocks:
    """
    Stamps of all cameras of a rig against those of the first one.

    Parameters
    ----------
    offsets : dict of (float, float)
        By camera without the first one: time by which its stamps are later than those of the
        first [s], as in :class:`ClockOffset`, and its standard error.
    found : dict of ClockOffset
        By camera: the estimate with a camera whose offset is known.
    failed : list of ClockOffset
        Estimates of two cameras that cannot be known.
    """

    offsets: dict[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    found: dict[str, ClockOffset] = dataclasses.field(default_factory=dict)
    failed: list[ClockOffset] = dataclasses.field(default_factory=list)

    def of_each(self) -> list[ClockOffset]:
        """Return the estimate of each camera but the first: the known one, or else the first."""
        unknown: dict[str, ClockOffset] = {}
        for one in self.failed:
            unknown.setdefault(one.cameras[1], one)
        return list({**unknown, **self.found}.values())

    def line_time(self) -> tuple[float, float, tuple[str, ...]]:
        """
        Return the line time that the cameras have in common.

        Returns
        -------
        line_time, deviation : float
            Mean of the significant ones, weighted by their standard errors, and its standard error
            [s]; NaN if there is none.
        cameras : tuple of str
            Cameras with this line time.

        Raises
        ------
        LongreachError
            If cameras have different line times.
        """
        shown = [one for one in self.found.values() if one.has_line_time]
        if not shown:
            return math.nan, math.inf, ()
        weights = np.array([one.line_deviation**-2 for one in shown])
        mean = float(np.average([one.line_time for one in shown], weights=weights))
        deviation = float(weights.sum() ** -0.5)
        for one in self.found.values():
            spread = math.hypot(one.line_deviation, deviation)
            if one.is_line_time_known and abs(one.line_time - mean) > _SURE * spread:
                raise LongreachError(
                    f'{" and ".join(one.cameras)} have {1e6 * one.line_time:.2f} us a row, others'
                    f' {1e6 * mean:.2f} us: line times are estimated for equal cameras alone;'
                    ' write line_time from the data sheets into the rig, then run sync again'
                )
        return mean, deviation, tuple(dict.fromkeys(name for one in shown for name in one.cameras))


def compare_clocks(sightings: Sightings) -> Clocks:
    """
    Estimate the offset of each camera against the first one.

    Where both share too few sightings, or these do not show it, it is the sum of the offsets
    against a third camera.
    """
    clocks = Clocks()
    for _ in clock_estimates(sightings, clocks, search=True):
        pass
    return clocks


def clock_estimates(sightings: Sightings, clocks: Clocks, *, search: bool) -> Iterator[None]:
    """Fill ``clocks`` as :func:`compare_clocks` does, one estimate of two cameras at a time."""
    known = list(sightings.rig.cameras)[:1]
    for near in known:  # grows
        start, spread = clocks.offsets.get(near, (0.0, 0.0))
        for far in sightings.rig.cameras:
            if far in known:
                continue
            one = OffsetEstimator(sightings.between(near, far)).estimate(search=search)
            assert one is not None
            if one.is_known:
                clocks.offsets[far] = start + one.offset, math.hypot(spread, one.deviation)
                clocks.found[far] = one
                known.append(far)
            else:
                clocks.failed.append(one)
            yield


class _Track(NamedTuple):
    """Sightings of a marker by a camera, in increasing order of time."""

    times: np.ndarray  # (N,) [s]
    places: np.ndarray  # (N, 2), normalised coordinates
    covariances: np.ndarray  # (N, 2, 2), of these

    def thinned(self, step: int) -> _Track:
        """Return every so many-th sighting."""
        return _Track(*(values[::step] for values in self))


def _track(table: np.ndarray, mounted: MountedCamera) -> _Track:
    """Return a track from times, pixels and covariances (N, 6)."""
    camera = mounted.camera
    places = camera.undistort(table[:, 1:3], strict=False)
    # The lens is neglected here: weights need no more.
    scale = np.array([1.0 / camera.fx, 1.0 / camera.fy])
    covariances = table[:, [3, 4, 4, 5]].reshape(-1, 2, 2) * np.outer(scale, scale)
    fine = np.isfinite(places).all(axis=1)
    return _Track(table[fine, 0], places[fine], covariances[fine])


class _Rows(NamedTuple):
    """Equations of all sightings at an assumed offset; L of them, with P unknowns."""

    matrix: np.ndarray  # (L, P), derivatives of the residuals by the unknowns, the first by T
    residuals: np.ndarray  # (L,), e
    deviations: np.ndarray  # (L,), of e from the pixels
    slope_deviations: np.ndarray  # (L,), of the first column
    per_pixel: np.ndarray  # (L,), change of e by a pixel
    times: np.ndarray  # (L,) [s]
    rays: tuple[np.ndarray, np.ndarray]  # (L, 3) of both cameras
    speeds: np.ndarray  # (L,), image velocity over the deviation of a pixel [1/s]
    markers: np.ndarray  # (L,), index


class _Problem:
    """The least-squares problem for the offset."""

    def __init__(self, rig: Rig, pairs: list[tuple[str, _Track, _Track]]) -> None:
        names = tuple(rig.cameras)
        self.cameras: tuple[str, str] = (names[0], names[1])
        self._poses = [rig.cameras[name].pose for name in self.cameras]
        self._lenses = [rig.cameras[name].camera for name in self.cameras]
        self._focal = rig.cameras[self.cameras[1]].camera.fx
        self._base = self._poses[1].translation - self._poses[0].translation
        # Directions at right angles to the baseline, (3, 2): its length does not change e = 0.
        self._across = np.linalg.svd(self._base[None])[2][1:].T
        self._pairs = pairs
        from scipy.interpolate import CubicSpline

        self._splines = [CubicSpline(track.times, track.places) for _, _, track in pairs]
        self.interval = float(np.median(np.concatenate([np.diff(p[2].times) for p in pairs])))
        length = float(np.linalg.norm(self._base))
        # 1 / variance; in the order of the unknowns.
        self._prior = np.array(
            [
                _PRIOR_OFFSET,
                _PRIOR_LINE,
                *3 * [_PRIOR_TURN],
                *2 * [_PRIOR_SHIFT * length],
                *len(pairs) * [_PRIOR_PIXEL],
            ]
        )
        self._prior = self._prior**-2

    def rows(self, offset: float, step: int = 1) -> _Rows:
        """Return the equations at an offset [s], of every so many-th sighting."""
        parts = [self._rows_of(k, offset, step) for k in range(len(self._pairs))]
        joined = [np.concatenate(values) for values in zip(*parts, strict=True)]
        matrix, residuals, deviations, slopes, pixel, times, left, right, speeds, which = joined
        return _Rows(
            matrix, residuals, deviations, slopes, pixel, times, (left, right), speeds, which
        )

    def _rows_of(self, index: int, offset: float, step: int) -> tuple[np.ndarray, ...]:
        """Return the equations of one marker, in the order of :class:`_Rows`."""
        _, left, right = self._pairs[index]
        left = left.thinned(step)
        at = left.times + offset
        knots, gaps = right.times, np.diff(right.times) > _GAP * self.interval
        k = np.searchsorted(knots, at, side='right') - 1
        # Splines are uncertain in the outermost intervals, and near gaps.
        usable = (k >= 1) & (k <= len(knots) - 3)
        around = np.clip(k, 1, len(knots) - 3)
        usable &= ~(gaps[around - 1] | gaps[around] | gaps[around + 1])
        left = _Track(*(values[usable] for values in left))
        at, k = at[usable], k[usable]
        spline, base = self._splines[index], self._base
        places, speeds = spline(at), spline(at, 1)
        ones = np.ones((len(at), 1))
        turns = [pose.rotation for pose in self._poses]
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
        per_pixel = np.linalg.norm(gradients[1], axis=1) / self._focal
        constants = np.zeros((len(at), len(self._pairs)))
        constants[:, index] = per_pixel
        # A rotation w of the second camera moves its rays by w x d_r.
        turned = np.cross(seen[1], by_right)
        # Rows of the second camera from its middle one minus those of the first.
        rows = [
            camera.fy * xy[:, 1] + camera.cy - 0.5 * (camera.height - 1.0)
            for camera, xy in zip(self._lenses, (left.places, places), strict=True)
        ]
        # A row that is exposed later has the effect of a stamp that is early.
        lines = slopes * (rows[0] - rows[1])
        matrix = np.column_stack([slopes, lines, turned, crossed @ self._across, constants])
        return (
            matrix,
            crossed @ base,
            np.sqrt(own + other),
            _SLOPE_NOISE / self.interval * np.sqrt(other),
            per_pixel,
            left.times,
            *seen,
            np.linalg.norm(speeds, axis=1) / np.sqrt(0.5 * np.trace(noise, axis1=1, axis2=2)),
            np.full(len(at), index),
        )

    def solve(self, *, search: bool) -> ClockOffset:
        """Return the estimate."""
        found = self._descend(0.0)
        if search and found is not None:
            start = self._search()
            if start is not None and abs(start - found.offset) > self.interval:
                other = self._descend(start)
                if other is not None and other.cost < _BETTER * found.cost:
                    found = other
        if found is None:
            return ClockOffset(
                self.cameras, interval=self.interval, sightings=len(self.rows(0.0).times)
            )
        judged = self._judged(found)
        both = self._descend(found.offset, with_line=True)
        if both is None:
            return judged
        rows = self.rows(both.offset)
        shifts = np.abs(both.line * rows.speeds * self._heights(rows))
        judged = dataclasses.replace(
            judged,
            line_time=both.line,
            line_deviation=both.line_deviation,
            line_shift=float(np.quantile(shifts, _QUANTILE)),
        )
        if judged.has_line_time:
            # Without it, the offset would contain the mean of its effect.
            judged = dataclasses.replace(
                judged, offset=float(both.offset), deviation=both.deviation
            )
        return judged

    def _heights(self, rows: _Rows) -> np.ndarray:
        """Return the larger distance of each sighting's rows from the middle one, (L,) [px]."""
        found = []
        for camera, pose, rays in zip(self._lenses, self._poses, rows.rays, strict=True):
            _, y, z = (rays @ pose.rotation).T
            found.append(np.abs(camera.fy * y / z + camera.cy - 0.5 * (camera.height - 1.0)))
        return np.asarray(np.maximum(*found))

    def _search(self) -> float | None:
        """Return the offset on a grid with which the tracks fit best [s]."""
        times = self._pairs[0][1].times
        most = min(_FARTHEST, _SHARE * float(times[-1] - times[0]))
        count = math.floor(most / self.interval)
        sightings = sum(len(left.times) for _, left, _ in self._pairs)
        step = max(1, sightings // _THINNED)
        costs = {}
        for k in range(-count, count + 1):
            rows = self.rows(k * self.interval, step)
            if self._are_enough(rows):
                costs[k * self.interval] = self._fit(rows, with_offset=False).cost
        return min(costs, key=lambda offset: costs[offset]) if costs else None

    def _are_enough(self, rows: _Rows) -> bool:
        return len(rows.times) >= _LEAST_SIGHTINGS * len(self._prior)

    def _descend(self, offset: float, *, with_line: bool = False) -> _Fit | None:
        """
        Minimise by Gauss-Newton steps from an offset [s].

        Returns None with too few sightings; the deviation is infinite if it has not converged.
        """
        for _ in range(_MAX_STEPS):
            rows = self.rows(offset)
            if not self._are_enough(rows):
                return None
            found = self._fit(rows, with_line=with_line)._replace(offset=offset)
            step = min(max(found.unknowns[0], -_LARGEST_STEP), _LARGEST_STEP)
            if abs(step) < _CONVERGED * found.deviation:
                return found
            offset += step
        return found._replace(deviation=math.inf, line_deviation=math.inf)

    def _fit(self, rows: _Rows, *, with_offset: bool = True, with_line: bool = False) -> _Fit:
        """Solve the linearised equations, with weights that follow the residuals."""
        weights, scale = np.ones(len(rows.times)), 1.0
        matrix = rows.matrix / rows.deviations[:, None]
        right = -rows.residuals / rows.deviations
        slopes, noise = matrix[:, 0].copy(), rows.slope_deviations / rows.deviations
        lines = matrix[:, 1].copy()
        freedom = math.sqrt(len(right) / (len(right) - len(self._prior)))
        for _ in range(10):
            moves = np.abs(slopes) > _MOVES * noise * max(1.0, scale)
            matrix[:, 0] = np.where(moves & with_offset, slopes, 0.0)
            matrix[:, 1] = np.where(moves & with_line, lines, 0.0)
            weighted = matrix * weights[:, None] / scale**2
            inverse = np.linalg.inv(matrix.T @ weighted + np.diag(self._prior))
            unknowns = inverse @ (weighted.T @ right)
            residuals = right - matrix @ unknowns
            before, scale = scale, 1.4826 * float(np.median(np.abs(residuals))) * freedom
            scale = max(scale, _LEAST_SCALE)
            size = np.abs(residuals) / scale
            weights = np.minimum(1.0, _HUBER / np.maximum(size, _HUBER))
            if abs(scale - before) < 1e-3 * scale:
                break
        variances = np.diag(inverse)[:2]
        edges = np.linspace(rows.times.min(), rows.times.max(), _BLOCKS + 1)[1:-1]
        blocks = np.searchsorted(edges, rows.times)
        scores = np.zeros((_BLOCKS, len(unknowns)))
        np.add.at(scores, blocks, weighted * residuals[:, None])
        used = len(np.unique(blocks[moves])) if moves.any() else 0
        if used >= _LEAST_BLOCKS:
            by_blocks = np.sum((scores @ inverse[:2].T) ** 2, axis=0) * used / (used - 1.0)
            variances = np.maximum(variances, by_blocks)
        across = np.abs(slopes) * rows.deviations / rows.per_pixel
        return _Fit(
            unknowns,
            math.sqrt(variances[0]),
            # Huber's function of the residuals over their stated deviations.
            float(np.mean(np.minimum(residuals**2, scale * _HUBER * np.abs(residuals)))),
            float(across.max()),
            line=float(unknowns[1]),
            line_deviation=math.sqrt(variances[1]),
        )

    def _judged(self, found: _Fit) -> ClockOffset:
        """Return the result with the errors that the offset makes."""
        there, stamped = self.rows(found.offset), self.rows(0.0)
        # The same sightings at both offsets.
        key = [list(zip(one.markers, one.times, strict=True)) for one in (there, stamped)]
        common = sorted(set(key[0]) & set(key[1]))
        pick = []
        for one in key:
            index = {value: k for k, value in enumerate(one)}
            pick.append([index[value] for value in common])
        moved = np.linalg.norm(
            self._points(there, pick[0]) - self._points(stamped, pick[1]), axis=1
        )
        shifts = abs(found.offset) * stamped.speeds[pick[1]]
        which = stamped.markers[pick[1]]
        errors = {
            k: (float(np.quantile(moved[which == k], _QUANTILE)), k) for k in np.unique(which)
        }
        result = ClockOffset(
            self.cameras,
            float(found.offset),
            found.deviation,
            self.interval,
            found.speed,
            len(there.times),
        )
        if not errors:
            return result
        error, worst = max(errors.values())
        return dataclasses.replace(
            result,
            marker=self._pairs[worst][0],
            error=error,
            shift=float(np.quantile(shifts[which == worst], _QUANTILE)),
        )

    def _points(self, rows: _Rows, pick: list[int]) -> np.ndarray:
        """Return the points nearest to both rays of some sightings, (L, 3) [m]."""
        one, other = (ray[pick] for ray in rows.rays)
        across = np.cross(one, other)
        size = np.sum(across * across, axis=1, keepdims=True)
        along, back = (
            np.sum(np.cross(self._base, ray) * across, axis=1, keepdims=True) / size
            for ray in (other, one)
        )
        ends = (pose.translation for pose in self._poses)
        first, second = (
            end + length * ray
            for end, length, ray in zip(ends, (along, back), (one, other), strict=True)
        )
        return np.asarray(0.5 * (first + second))


class _Fit(NamedTuple):
    """Solution of the linearised equations."""

    unknowns: np.ndarray  # (P,)
    deviation: float  # standard error of the offset [s]
    cost: float
    speed: float  # largest image velocity across the epipolar lines [px/s]
    offset: float = 0.0  # at which the equations were linearised [s]
    line: float = math.nan  # line time [s]
    line_deviation: float = math.inf
