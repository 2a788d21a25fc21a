"""Inputs that follow straight lines between knots, and the instants at which they switch."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError, check_within

Knots = Sequence[tuple[float, float]]
"""Pairs of time [s] and value; two at one time are a jump."""


class Schedule(NamedTuple):
    """N inputs that are straight lines in intervals, and constant before and behind."""

    edges: np.ndarray  # (E + 1,) [s], rising
    starts: np.ndarray  # (E, N) values at the beginning of each interval
    slopes: np.ndarray  # (E, N) [1/s]


def check_knots(knots: Knots, what: str) -> None:
    """Raise InputError with the first knot that is not allowed; ``what`` is named first."""
    if not knots:
        raise InputError(f'{what} has no knots, allowed: 1 or more pairs of time and value')
    for k, (time, value) in enumerate(knots):
        check_within(f'{what}[{k}]', value, '[-1, 1]')
        earliest = knots[k - 1][0] if k else 0.0
        if not earliest <= time < math.inf:
            raise InputError(
                f'{what}[{k}]: time = {time:g} s, allowed: {earliest:g} s or later, finite;'
                ' sort the knots, the first one at 0 s or later'
            )
        if k > 1 and time == knots[k - 2][0]:
            raise InputError(
                f'{what}[{k}]: time = {time:g} s stands three times, allowed: twice, for a jump'
            )


def schedule_of(inputs: Sequence[Knots], levels: Sequence[Sequence[float]]) -> Schedule:
    """Return inputs in intervals that end at all knots, and where one crosses its ``levels``."""
    cuts = {0.0}
    for knots, crossed in zip(inputs, levels, strict=True):
        cuts |= {float(time) for time, _ in knots}
        for (t0, u0), (t1, u1) in itertools.pairwise(knots):
            for level in crossed:
                if (u0 - level) * (u1 - level) < 0.0:
                    cuts.add(t0 + (level - u0) / (u1 - u0) * (t1 - t0))
    edges = np.array([*sorted(cuts), max(cuts) + 1.0])
    middles = 0.5 * (edges[1:] + edges[:-1])
    starts = np.empty((middles.size, len(inputs)))
    slopes = np.empty_like(starts)
    for i, knots in enumerate(inputs):
        times, values = np.array(knots, dtype=float).T
        after = np.searchsorted(times, middles, side='right')
        for k, m in enumerate(after):
            if m in (0, times.size):
                slopes[k, i], starts[k, i] = 0.0, values[min(m, times.size - 1)]
                continue
            slopes[k, i] = (values[m] - values[m - 1]) / (times[m] - times[m - 1])
            starts[k, i] = values[m - 1] + slopes[k, i] * (edges[k] - times[m - 1])
    return Schedule(edges, starts, slopes)


def constant_schedule(values: Sequence[float]) -> Schedule:
    """Return inputs that do not change."""
    starts = np.array([values], dtype=float)
    return Schedule(np.array([0.0, 1.0]), starts, np.zeros_like(starts))
