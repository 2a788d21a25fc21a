"""
Stretches of a recording in which the machine stands still, and means of its signals in them.

A motion is still at a time if its means over the windows before and after, of about one period of
the slowest vibration, differ by less than a limit times the window's length; both have to be free
of motion. Means are weighted by sin^2 over the stretch (Hann), which suppresses vibrations; their
errors are those of an autoregressive process, or of rounding where a signal stays on one level.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_identification.covariance import autoregression, coloured_product
from longreach_identification.machine import Recording, Signal

# Interval of the times at which motions are judged, in windows.
_GRID = 0.04
# A mean needs this share of the usual rows of its window; otherwise the recording has a gap.
_SHARE = 0.5
# A limit must exceed the noise of a rate by this factor.
_CLEAR = 4.0
# Rows from which an autoregressive model is estimated; more are averaged in groups.
_MOST_ROWS, _FEWEST_ROWS = 400, 8
# A signal with fewer levels than this share of its rows is quantised.
_FEWEST_LEVELS = 0.5


class Motion(NamedTuple):
    """What shows whether a machine moves: the position of one actuator."""

    signal: Signal
    limit: float  # of its rate when it is still [unit/s]
    unit: str


class Mean(NamedTuple):
    """Mean of a signal over a stretch."""

    value: float
    standard_error: float
    rows: int


class StillStretch(NamedTuple):
    """A part of a recording in which the machine stands still."""

    recording: str
    start: float  # [s]
    end: float  # [s]
    means: Mapping[str, Mean]  # of all signals with rows in it
    directions: Mapping[str, int]  # of the last motion before it: 1, -1; 0: there was none


def find_still(
    recording: Recording, motions: Mapping[str, Motion], shortest: float = 5.0, window: float = 2.5
) -> tuple[list[StillStretch], list[str]]:
    """Return stretches of ``shortest`` [s] at rest, and lines on which are used, and why not."""
    if not motions:
        raise InputError(f'{recording.name} has no motion, allowed: at least one')
    if not (window > 0.0 and shortest > 0.0):
        raise InputError(f'window = {window} s, shortest = {shortest} s, allowed: above 0 s')
    first = max(float(m.signal.times[0]) for m in motions.values())
    last = min(float(m.signal.times[-1]) for m in motions.values())
    if not last - first >= 2.0 * window + shortest:
        raise InputError(
            f'{recording.name} has {max(0.0, last - first):.3g} s with all motions, allowed: at'
            f' least {2.0 * window + shortest:.3g} s, two windows and the shortest stretch'
        )
    count = math.floor((last - first) / (_GRID * window)) + 1
    grid = first + _GRID * window * np.arange(count)
    averages = {name: _averages(recording, name, m, grid, window) for name, m in motions.items()}
    skip = round(1.0 / _GRID)
    still = np.zeros(count, dtype=bool)
    still[skip : count - skip] = True
    for name, motion in motions.items():
        moved = np.abs(averages[name][skip:-skip] - averages[name][: -2 * skip])
        # Not where a mean is NaN.
        still[skip:-skip] &= moved <= motion.limit * window
    for time, _ in recording.events:
        still[(grid >= time - _GRID * window) & (grid < time + window)] = False
    resolution = {name: resolution_of(shown.values) for name, shown in recording.signals.items()}
    stretches: list[StillStretch] = []
    lines: list[str] = []
    edges = np.flatnonzero(np.diff(np.concatenate([[0], still, [0]])))
    for begin, end in edges.reshape(-1, 2):
        start, stop = float(grid[begin]), float(grid[end - 1])
        part = f'{recording.name} {start:.1f} s to {stop:.1f} s:'
        reason = ''
        if stop - start < shortest:
            reason = f'still for {stop - start:.2g} s only, shortest: {shortest:g} s'
        for name, motion in motions.items():
            crept = float(averages[name][max(begin, end - 1 - skip)] - averages[name][begin])
            if not reason and abs(crept) > motion.limit * shortest:
                reason = (
                    f'{name} moved by {crept:.3g} {motion.unit} during it, allowed:'
                    f' {motion.limit * shortest:.3g} {motion.unit}'
                )
        if reason:
            lines.append(f'{part} not used, {reason}')
            continue
        means = {}
        for name, (times, values, _) in recording.signals.items():
            inside = (times >= start) & (times <= stop) & np.isfinite(values)
            if np.count_nonzero(inside) >= _FEWEST_ROWS:
                means[name] = mean_of(times[inside], values[inside], resolution[name])
        directions = {
            name: _direction(averages[name], begin, end, motion.limit * window)
            for name, motion in motions.items()
        }
        stretches.append(StillStretch(recording.name, start, stop, means, directions))
        signs = ''.join('0+-'[sign] for sign in directions.values())
        lines.append(f'{part} used, directions {signs}')
    return stretches, lines


def _averages(
    recording: Recording, name: str, motion: Motion, grid: np.ndarray, window: float
) -> np.ndarray:
    """Return the mean over the window after each time of the grid; NaN in gaps."""
    times, values = motion.signal.times, motion.signal.values
    usual = float(np.median(np.diff(times)))
    rows = window / usual
    if rows < _FEWEST_ROWS:
        raise InputError(
            f'the rows of {name} in {recording.name} are {usual:.3g} s apart, allowed: at most'
            f' {window / _FEWEST_ROWS:.3g} s; is the unit of time right?'
        )
    # Second differences of successive rows show the noise, and hardly any motion.
    noise = float(np.median(np.abs(np.diff(values, 2)))) / 1.652
    error = noise * math.sqrt(2.0 / rows) / window
    if _CLEAR * error > motion.limit:
        raise InputError(
            f'{name} in {recording.name} is too noisy: its rate is known to {error:.2g}'
            f' {motion.unit}/s over {window:g} s, allowed: {motion.limit / _CLEAR:.2g}'
            f' {motion.unit}/s; filter it, or choose a longer window'
        )
    sums = np.concatenate([[0.0], np.cumsum(values - values[0])])
    begin, end = np.searchsorted(times, grid), np.searchsorted(times, grid + window)
    number = end - begin
    with np.errstate(invalid='ignore', divide='ignore'):
        found = (sums[end] - sums[begin]) / number + values[0]
    return np.where(number >= _SHARE * rows, found, np.nan)


def _direction(averages: np.ndarray, begin: int, end: int, threshold: float) -> int:
    """Return the sign of the last motion before a stretch; 0 if there was none."""
    skip = round(1.0 / _GRID)
    rest = float(np.mean(averages[begin : max(begin + 1, end - skip)]))
    away = np.flatnonzero(np.abs(averages[:begin] - rest) > threshold)
    return int(np.sign(rest - averages[away[-1]])) if away.size else 0


def resolution_of(values: np.ndarray) -> float:
    """Return the step between the levels of a quantised signal; 0 when it is not quantised."""
    shown = values[np.isfinite(values)]
    levels = np.unique(shown)
    if not 1 < levels.size < _FEWEST_LEVELS * shown.size:
        return 0.0
    # Levels that differ by rounding are the same.
    steps = np.diff(levels)
    return float(steps[steps > 1e-6 * steps.max()].min())


def mean_of(times: np.ndarray, values: np.ndarray, resolution: float = 0.0) -> Mean:
    """Return mean and standard error of a signal (8 or more finite rows); resolution: its step."""
    rows = len(values)
    group = math.ceil(rows / _MOST_ROWS)
    used = rows - rows % group
    shown, when = (one[:used].reshape(-1, group).mean(axis=1) for one in (values, times))
    weight = np.sin(np.pi * (when - times[0] + 1e-12) / (times[-1] - times[0] + 2e-12)) ** 2
    weight = weight / weight.sum()
    value = float(weight @ shown)
    residuals = shown - value
    spread = float(np.std(residuals))
    variance = 0.0
    if spread > 0.0:
        coefficients, innovation = autoregression(residuals)
        variance = float(coloured_product(weight[:, None], coefficients, innovation)[0, 0])
        # A model of slow vibrations may promise less than a single row tells.
        variance = min(variance, spread**2)
    if spread < 0.5 * resolution:
        variance += resolution**2 / 12.0
    return Mean(value, math.sqrt(max(0.0, variance)), rows)
