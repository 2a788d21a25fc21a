"""Periods of samples, and the gaps where some are missing."""

from __future__ import annotations

import numpy as np

# An interval beyond this many periods is a gap: neither values nor lines go across it.
GAP = 5.0
# Least number of intervals that define a period, and least share of them that are at most half a
# period away from it; others are those of a topic that is published when something changes.
_FEWEST, _EVEN = 3, 0.75


def period_of(steps: np.ndarray) -> float:
    """Return the median of intervals (n,), 0 where they have no period."""
    if len(steps) < _FEWEST:
        return 0.0
    period = float(np.median(steps))
    return period if np.mean(np.abs(steps - period) <= 0.5 * period) >= _EVEN else 0.0


def with_gaps(time: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return times and values (n,) with an unknown value a period after the last before a gap."""
    period = period_of(np.diff(time))
    gaps = np.flatnonzero(np.diff(time) > GAP * period) if period else np.empty(0, dtype=int)
    return (
        np.insert(time, gaps + 1, time[gaps] + period),
        np.insert(np.asarray(values, dtype=float), gaps + 1, np.nan),
    )
