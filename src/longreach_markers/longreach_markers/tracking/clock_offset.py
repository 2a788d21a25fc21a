"""
Offset between the clocks of two cameras, from tracks of the same markers in both.

The estimate is that of :mod:`longreach_markers.tracking.pair_fit`; here is what follows from it:
how certain the offset is, which errors it makes, whether a clock jumped or a camera was bumped
during the sightings, and by which camera's image.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import numpy as np

from longreach_dynamics.errors import LongreachError
from longreach_markers.tracking.changes import solve
from longreach_markers.tracking.pair_fit import PRIOR_LINE, SURE, UNFIT, PairFit
from longreach_markers.tracking.sightings import Sightings, json_fields

# Below this share of its prior deviation, a standard error says something about the line time.
_LINE_KNOWN = 0.2
# Least number of samples of a track.
_LEAST_SAMPLES = 6
# Share of the sightings whose position error is below the one stated.
_QUANTILE = 0.99
# Jump in an image over the usual deviation from a smooth motion, that shows which camera it was,
# and over that of the other camera; pixel noise added to the usual one [px].
_JUMPED, _MORE, _STILL = 4.0, 3.0, 0.02
_NOT_STATED = 'which their covariance does not contain'
# Images in which it is looked for.
_NEAR = 6


@dataclasses.dataclass(frozen=True)
class ClockStep:
    """A jump of stamps in a camera's image; camera '': of the second against the first."""

    time: float  # [s]
    jump: float
    deviation: float  # standard error [s]
    camera: str = ''


@dataclasses.dataclass(frozen=True)
class ClockOffset:
    """
    Offset between the stamps of two cameras.

    Parameters
    ----------
    cameras : (str, str)
    offset, deviation : float
        Time by which stamps of the second camera are later than those of the first for the same
        instant, in addition to the delays in the rig, and its standard error [s]; NaN and inf for
        too few sightings, inf if the estimate has not converged.
    interval : float
        Usual interval between images [s].
    speed : float
        Largest image velocity across the epipolar lines, including noise [px/s].
    sightings : int
        Number of sightings of a marker by both cameras.
    marker : str
        Marker whose positions the offset moves most.
    error, shift : float
        Movement of its triangulated positions by the offset [m], and of its pixels over their
        standard deviation, exceeded in 1 % of images.
    line_time, line_deviation : float
        Mean line time of both cameras, in addition to that in the rig, and its standard error
        [s]; NaN if unknown.
    lines_apart, lines_apart_deviation : float
        Line time of the second camera minus that of the first, in addition to those in the rig,
        and its standard error [s]; 0 if it is not significant, NaN if unknown.
    line_shift, line_error : float
        Movement of pixels by the line time, or by this difference, over their standard deviation,
        and of markers while it exposes the rows from the middle to theirs [m], exceeded in 1 % of
        images.
    steps : tuple of ClockStep
        Jumps of the clocks; the offset is that before the first one.
    bump, moved : float, str
        Time at which a camera was bumped last [s], NaN if none was; this camera, empty if unknown.
    misfit : float
        Scale of the residuals over that of the noise of pixels and calibration.
    contradiction : (float, float), optional
        First and last time of a short part in which residuals are far above noise [s].
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
    lines_apart: float = math.nan
    lines_apart_deviation: float = math.inf
    line_shift: float = 0.0
    line_error: float = 0.0
    steps: tuple[ClockStep, ...] = ()
    bump: float = math.nan
    moved: str = ''
    misfit: float = 1.0
    contradiction: tuple[float, float] | None = None

    @property
    def lines_differ(self) -> bool:
        """Whether line times differ for certain, and move pixels by more than their deviation."""
        is_sure = abs(self.lines_apart) > SURE * self.lines_apart_deviation
        return is_sure and self.line_shift > 1.0

    @property
    def has_line_time(self) -> bool:
        """Whether the line time is certain, and moves pixels by more than their deviation."""
        return abs(self.line_time) > SURE * self.line_deviation and self.line_shift > 1.0

    @property
    def is_line_time_known(self) -> bool:
        """Whether the motion determines the line time."""
        return self.line_deviation < _LINE_KNOWN * PRIOR_LINE

    @property
    def is_known(self) -> bool:
        """Whether there is one offset, determined better than to an interval between images."""
        is_sure = SURE * self.deviation < self.interval
        is_one = not self.steps and not self.lines_differ
        return is_sure and is_one and self.misfit < UNFIT

    @property
    def is_significant(self) -> bool:
        """Whether the offset is certain, and moves pixels by more than their stated deviation."""
        return self.is_known and abs(self.offset) > SURE * self.deviation and self.shift > 1.0

    def __str__(self) -> str:
        first, second = self.cameras
        what = f'clock offset of {second} against {first}: '
        advice = 'record markers that move at right angles to the line between the cameras'
        if math.isnan(self.offset):
            return (
                f'{what}cannot be known from {self.sightings} sightings of markers by both'
                ' cameras; record more images'
            )
        if math.isinf(self.deviation):
            return f'{what}the estimate has not converged; {advice}, irregularly'
        if self.steps:
            return f'{what}not one value: {self._steps}'
        if self.lines_differ:
            return f'{what}cannot be known, as {self._shutters}'
        if self.misfit >= UNFIT:
            return (
                f'{what}cannot be known, as residuals are {self.misfit:.2g} times the noise of'
                f' pixels and calibration, allowed: {UNFIT:g}: check the calibration, the poses'
                ' and the stamps'
            )
        if not self.is_known:
            return (
                f'{what}cannot be known (standard error {1e3 * self.deviation:.3g} ms), as markers'
                f' move across the epipolar lines at {self.speed:.2g} px/s at most; {advice}'
            )
        text = f'{what}{1e3 * self.offset:+.3f} ms, standard error {1e3 * self.deviation:.3f} ms'
        if math.isfinite(self.bump):
            text += f', until {self.moved or "a camera"} was bumped at t = {self.bump:.2f} s'
        shutter = 'rolling shutter of both: cannot be known from this motion'
        if self.is_line_time_known:
            shutter = (
                f'rolling shutter of both: {1e6 * self.line_time:+.2f} us a row of these images,'
                f' standard error {1e6 * self.line_deviation:.2f} us'
            )
        return '\n'.join(filter(None, (text, shutter, self._contradiction)))

    @property
    def _contradiction(self) -> str:
        if self.contradiction is None:
            return ''
        first, last = self.contradiction
        return (
            f'between t = {first:.2f} and {last:.2f} s {" and ".join(self.cameras)} contradict'
            ' each other: wrong stamps, lost or repeated images, or a camera that moved and came'
            f' back; positions of moving markers are wrong there, {_NOT_STATED}'
        )

    @property
    def _shutters(self) -> str:
        first, second = self.cameras
        deviation = f'(standard error {1e6 * self.lines_apart_deviation:.2f} us)'
        return (
            f'rolling shutters of {second} and {first} differ by {1e6 * self.lines_apart:+.2f} us'
            f' a row of these images {deviation}: write line_time of both from the data sheets'
            ' into the rig (negative if read from below), then run sync again'
        )

    @property
    def _steps(self) -> str:
        first, second = self.cameras
        against = f', against {first}, or that of {first} by the opposite,'
        return '; '.join(
            f'clock of {one.camera or second} jumps by {1e3 * one.jump:+.1f} ms'
            f'{"" if one.camera else against} at t = {one.time:.2f} s'
            f' (standard error {1e3 * one.deviation:.1f} ms)'
            for one in self.steps
        )

    @property
    def warning(self) -> str:
        """Warning about a significant offset, with its effect and a remedy; empty for none."""
        first, second = self.cameras
        sync = 'longreach vision sync RECORDING --rig RIG.yaml'
        marker, moving = (
            f'positions of {who} are wrong by up to {1e3 * error:.2g} mm, {_NOT_STATED}'
            for who, error in (
                (self.marker or 'moving markers', self.error),
                ('moving markers', max(self.line_error, self.error)),
            )
        )
        if self.steps:
            jumps = [-one.jump if one.camera == first else one.jump for one in self.steps]
            why = 'images were lost and the others stamped by their number, or the clock was set'
            if len(jumps) > 1 and (min(jumps) > 0.0 or max(jumps) < 0.0):
                rate = sum(jumps[1:]) / (self.steps[-1].time - self.steps[0].time)
                why += f', or that of {second} runs at another rate, by {1e6 * rate:+.0f} ppm'
            moved = f'{self.moved} was bumped at t = {self.bump:.2f} s, too,' * bool(self.moved)
            return (
                f'{self._steps}: {why}; {marker}; {moved or "no camera has moved"} and no delay'
                ' corrects this:'
                ' record with the time of each exposure, or use one part alone'
            )
        if self.lines_differ:
            return f'{self._shutters}; until then {moving}'
        if self.has_line_time:
            return (
                f'{first} and {second} have rolling shutters: {1e6 * self.line_time:.2f} us a row'
                f' of these images (standard error {1e6 * self.line_deviation:.2f} us, both'
                f' alike), and stamps of {second} are {1e3 * self.offset:+.2f} ms late: {moving};'
                f' use cameras with a global shutter, or add line_time to the rig: {sync}'
            )
        if not self.is_significant:
            return self._contradiction
        late = 'later' if self.offset > 0.0 else 'earlier'
        return (
            f'stamps of {second} are {1e3 * abs(self.offset):.2f} ms (standard error'
            f' {1e3 * self.deviation:.2f} ms) {late} than those of {first}: triangulated {marker};'
            f' trigger both cameras together, or add the delay to the rig: {sync}'
        )

    def fields(self) -> dict[str, object]:
        """Return the result as a JSON object, None for unknown numbers."""
        return json_fields(self) | {'known': self.is_known, 'warning': self.warning}


def estimate_offset(sightings: Sightings, *, search: bool = True) -> ClockOffset:
    """Estimate the offset of the clocks of a rig's two cameras from sightings."""
    first, second = sightings.rig.cameras
    fit = PairFit(sightings)
    if not fit.pairs:
        return ClockOffset((first, second))
    found = solve(fit, search=search)
    result = ClockOffset((first, second), interval=fit.interval)
    if fit.bumps:
        moved, bump = _jumped(sightings, fit.start + fit.bumps[-1])
        result = dataclasses.replace(result, bump=bump, moved=moved)
    if found is None:
        count = len(fit.rows(np.zeros(len(fit.steps) + 1)).times)
        return dataclasses.replace(result, sightings=count)
    misfit = fit.misfit(found)
    # What several bumps leave over of a pose that creeps lasts longer than the blocks of the
    # standard errors.
    wider = misfit**2 if len(fit.bumps) > 1 else 1.0
    for count in (2, 1):
        line = fit.descend(found.offsets, lines=count)
        if line is None:
            continue
        rows = fit.rows(line.offsets)
        delays = np.abs(line.lines[count - 1] * rows.speeds * rows.heights)
        depths = np.linalg.norm(rows.points - fit.poses[1].translation, axis=1)
        result = dataclasses.replace(
            result,
            line_time=float(line.lines[0]),
            line_deviation=wider * float(line.line_deviations[0]),
            lines_apart=float(line.lines[1]),
            lines_apart_deviation=wider * float(line.line_deviations[1]),
            line_shift=float(np.quantile(delays / rows.noise, _QUANTILE)),
            line_error=float(np.quantile(delays * depths, _QUANTILE)),
        )
        if result.lines_differ if count == 2 else result.has_line_time:
            # Without it, the offset would contain the mean of its effect.
            found, misfit = line, fit.misfit(line)
            break
    there, stamped = fit.rows(found.offsets), fit.rows(0.0 * found.offsets)
    # The same sightings at both offsets.
    _, a, b = np.intersect1d(there.keys, stamped.keys, return_indices=True)
    errors = np.linalg.norm(there.points[a] - stamped.points[b], axis=1)
    shifts = (np.abs(found.offsets).max() * stamped.speeds / stamped.noise)[b]
    for k in np.unique(stamped.markers[b]):
        own = stamped.markers[b] == k
        error = float(np.quantile(errors[own], _QUANTILE))
        if error > result.error or not result.marker:
            shift = float(np.quantile(shifts[own], _QUANTILE))
            marker = fit.pairs[k][0]
            result = dataclasses.replace(result, marker=marker, error=error, shift=shift)
    steps = []
    for k, time in enumerate(fit.steps):
        camera, time = _jumped(sightings, fit.start + time)
        jump = float(found.offsets[k + 1] - found.offsets[k])
        deviation = math.hypot(*found.deviations[k : k + 2])
        steps.append(ClockStep(time, -jump if camera == first else jump, deviation, camera))
    return dataclasses.replace(
        result,
        offset=float(found.offsets[0]),
        deviation=wider * float(found.deviations[0]),
        speed=found.speed,
        sightings=len(there.times),
        steps=tuple(steps),
        misfit=misfit,
        contradiction=fit.contradiction(found) if found.deviations[0] < math.inf else None,
    )


def _jumped(sightings: Sightings, time: float) -> tuple[str, float]:
    """Return the camera in whose image markers jumped near a time, empty if unknown; when."""
    found = {camera: _jump(sightings, camera, time) for camera in sightings.rig.cameras}
    most, other = sorted(found, key=lambda camera: -found[camera][0])
    score = found[most][0]
    is_clear = score > _JUMPED and score > _MORE * found[other][0]
    return (most, found[most][1]) if is_clear else ('', time)


def _jump(sightings: Sightings, camera: str, time: float) -> tuple[float, float]:
    """Return the deviation of markers from smooth motion over the usual one, and its time."""
    jumps, usual, begun = 0.0, 0.0, []
    for name in sightings.rig.names:
        table = sightings.table(camera, name)
        if len(table) < 2 * _LEAST_SAMPLES:
            continue
        times, slopes = table[:, 0], table[:, 1:3]
        # From the parabola through the three sightings before.
        for k in (1, 2, 3):
            slopes = np.diff(slopes, axis=0) / (times[k:] - times[:-k])[:, None]
        spans = math.prod(times[3:] - times[k : k - 3] for k in range(3))
        off = np.linalg.norm(slopes, axis=1) * spans
        # Cameras that are not synchronous see it in images of different times.
        near = np.sort(np.argsort(np.abs(times[3:] - time))[:_NEAR])
        jumps += float(off[near].max())
        usual += float(np.median(off)) + _STILL
        begun.append(times[3:][near[np.argmax(off[near] > 0.4 * off[near].max())]])
    return (jumps / usual, float(np.median(begun))) if begun else (0.0, time)


@dataclasses.dataclass(frozen=True)
class Clocks:
    """Stamps of all cameras of a rig against those of the first one."""

    # By camera: how much later its stamps are, and the standard error [s]; the estimate with a
    # camera whose offset is known. Then those that cannot be known.
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
        """Return the line time that the cameras have in common."""
        shown = [one for one in self.found.values() if one.has_line_time]
        if not shown:
            return math.nan, math.inf, ()
        weights = np.array([one.line_deviation**-2 for one in shown])
        mean = float(np.average([one.line_time for one in shown], weights=weights))
        deviation = float(weights.sum() ** -0.5)
        for one in self.found.values():
            spread = math.hypot(one.line_deviation, deviation)
            if one.is_line_time_known and abs(one.line_time - mean) > SURE * spread:
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
            one = estimate_offset(sightings.between(near, far), search=search)
            if one.is_known:
                clocks.offsets[far] = start + one.offset, math.hypot(spread, one.deviation)
                clocks.found[far] = one
                known.append(far)
            else:
                clocks.failed.append(one)
            yield
