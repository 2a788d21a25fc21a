"""Charts: what is plotted together, and the points of the lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from longreach_machine.panels import period_of, with_gaps
from longreach_view.world import STALE, Line, Series, World

# Decimals that are kept: without rounding a signal at rest would show noise of the last digits.
_DIGITS = 12
# More points of a line are slow in a browser.
_MOST_POINTS = 500
# Share of the vertical axis that values fill at least, or it is fitted again; their least span,
# as a share of them. Less than noise is no motion, and has the span of rest.
_FILLED, _LEAST_SPAN = 0.3, 1e-2
_NOISE, _REST = 1e-6, 1e-2
# Of so many last values it is found out whether they have a period.
_RECENT = 100
# Between the two ends of the line of an event [s]: upright on any page.
_INSTANT = 1e-6
# Of lines, those of matplotlib, as in figures; of set points and of events.
_COLOURS = ('#1f77b4', '#ff7f0e', '#2ca02c', '#d62728', '#9467bd', '#8c564b')
WANTED = EVENT = '#7d858f'


class Chart(NamedTuple):
    """Lines in one chart, with factor and unit of what is shown."""

    title: str
    unit: str
    scale: float
    lines: tuple[Line, ...]

    @property
    def label(self) -> str:
        """Title and unit."""
        return f'{self.title} [{self.unit}]' if self.unit else self.title

    @property
    def colours(self) -> list[str]:
        """Colours of the lines; set points have that of what is wanted."""
        pairs = zip(self.lines, _COLOURS, strict=False)
        return [WANTED if line.wanted else colour for line, colour in pairs]


def chart_of(signal: str) -> Chart:
    """Return the chart of a chosen signal, in the unit of its message."""
    return Chart(signal.lstrip('/'), '', 1.0, (Line(signal, signal.rpartition('/')[2]),))


def limits_of(
    lines: Sequence[np.ndarray], old: tuple[float, float] | None = None
) -> tuple[float, float]:
    """Return round limits of the vertical axis; the old ones while they fit, so that it rests."""
    values = np.concatenate(lines)
    values = values[np.isfinite(values)]
    if not len(values):
        return old or (0.0, 1.0)
    low, high = float(values.min()), float(values.max())
    if (
        old is not None
        and old[0] <= low <= high <= old[1]
        and high - low >= _FILLED * (old[1] - old[0])
    ):
        return old
    span = max(high - low, _LEAST_SPAN * max(-low, high))
    span = span if span >= _NOISE else _REST
    step = 10.0 ** math.floor(math.log10(span))
    step *= 1.0 if span >= 5.0 * step else 0.5 if span >= 2.0 * step else 0.2
    return step * math.floor(low / step - 0.1), step * math.ceil(high / step + 0.1)


def _part(series: Series, end: float, window: float, silent: bool) -> np.ndarray:
    """Return times and values before an end, shape (2, K); what is silent ends with its last."""
    begin = end - window
    if series.is_held or not period_of(np.diff(series.window(-math.inf, end)[0, -_RECENT:])):
        # It holds until the next value, also what was before.
        part = series.window(-math.inf, end)
        part = part[:, max(0, int(np.searchsorted(part[0], begin, 'right')) - 1) :].copy()
        part[0] = np.maximum(part[0], begin)
        return part
    part = np.array(with_gaps(*series.window(begin, end)))
    if silent and part.size:
        part = np.append(part, [[series.last + _INSTANT], [math.nan]], axis=1)
    return part


def _extremes(part: np.ndarray, interval: float) -> np.ndarray:
    """Return times of the least, the greatest and an unknown value (2, K) in each interval [s]."""
    time, values = part
    places, unknown = np.floor(time / interval), ~np.isfinite(values)
    found = []
    for order in (np.lexsort((values, unknown, places)), np.lexsort((-values, unknown, places))):
        found.append(time[order[np.unique(places[order], return_index=True)[1]]])
    gaps = time[unknown]
    return np.concatenate([*found, gaps[np.unique(places[unknown], return_index=True)[1]]])


def lines_of(chart: Chart, worlds: Sequence[World], window: float) -> tuple[np.ndarray, ...]:
    """
    Return times of the last ``window`` [s], and a chart's values, or NaN; last, 0 to 1 at events.

    Those of a second world follow the first's, moved so that its present is that of the first.
    """
    parts: list[np.ndarray] = []
    ends: list[float] = []
    for world in worlds:
        found = [world.series.get(line.signal, Series(1)) for line in chart.lines]
        last = max(series.last for series in found)
        end = world.present if math.isfinite(world.present) else last
        ends.append(end if math.isfinite(end) else 0.0)
        move = np.array([[ends[0] - ends[-1]], [0.0]])
        parts += [_part(series, ends[-1], window, end - last > STALE) + move for series in found]
    begin, end = ends[0] - window, ends[0]
    machine = worlds[0].owner_of(chart.lines[0].signal)
    events = np.unique([time for time, _ in machine.events] if machine is not None else [])
    events = events[(events > begin) & (events <= end)]
    # Of all: one with more samples may cover less time.
    times = np.unique(np.concatenate([part[0] for part in parts]))
    if len(times) > _MOST_POINTS:
        # Of each line the least and the greatest value in intervals that stay where they are, so
        # that no peak is lost and lines do not flicker.
        interval = window / max(_MOST_POINTS // (2 * len(parts)), 1)
        times = np.concatenate([_extremes(part, interval) for part in parts])
    times = np.unique(np.concatenate([[begin, end], times, events, events + _INSTANT]))
    lines = [times]
    for part in parts:
        # The last value at or before each time.
        places = np.searchsorted(part[0], times, side='right') - 1
        values = np.append(part[1], math.nan)[places]
        lines.append(np.round(chart.scale * values, _DIGITS))
    lines.append(np.full(len(times), math.nan))
    lines[-1][np.searchsorted(times, events)] = 0.0
    lines[-1][np.searchsorted(times, events + _INSTANT)] = 1.0
    return tuple(lines)
