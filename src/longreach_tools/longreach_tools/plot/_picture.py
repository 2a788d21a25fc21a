"""What a figure shows before it is drawn: panels of curves over a common time [s], and events."""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from longreach_dynamics.parameters import rules_of
from longreach_machine import curves_of
from longreach_machine import panels as declared
from longreach_machine.panels import GAP, period_of, with_gaps
from longreach_machine.runs import Column, convert
from longreach_tools.fields import Signal

# Units in which people read, and the magnitude from which on.
_READ = {
    'rad': ('deg', 0.0),
    'rad/s': ('deg/s', 0.0),
    'N': ('kN', 1e4),
    'Pa': ('bar', 1e5),
}
# Longer names of several fields are not written along an axis [letters].
_LONG = 24
# Share of the width of a panel that a letter of an event's label takes.
_LETTER = 0.011
_ENTRY = re.compile(r'\[([^\[\]]+)\]')


@dataclasses.dataclass(frozen=True)
class Curve:
    """A signal over time."""

    name: str  # in tables
    label: str  # in the legend
    unit: str
    time: np.ndarray  # (samples,)
    values: np.ndarray  # (samples,), NaN where it is not known
    steps: bool = False  # it holds its value until the next sample
    wanted: bool = False  # a set point
    zero: float = 0.0  # from which on figures show the values
    shown: str = ''  # unit in figures; empty: in which people read

    def drawn(self, end: float) -> Curve:
        """Return the curve with unknown values in gaps; what has no period holds to an end [s]."""
        time, values = with_gaps(self.time, self.values)
        if self.steps and len(time) and not period_of(np.diff(time)):
            time, values = np.append(time, end), np.append(values, values[-1])
        return dataclasses.replace(self, time=time, values=values)

    def less(self, other: Curve) -> Curve:
        """Return the difference from a curve of a second recording; NaN where one is not known."""
        found = np.full(len(self.values), np.nan)
        known = np.isfinite(other.values)
        time, values = other.time[known], other.values[known]
        if len(time) > 1:
            # Of a sample at the very time of one of the second run, either interval may be a gap.
            ends = [
                np.clip(np.searchsorted(time, self.time, side=side), 1, len(time) - 1)
                for side in ('left', 'right')
            ]
            if self.steps:
                between = values[np.searchsorted(time, self.time, side='right') - 1]
            else:
                between = np.interp(self.time, time, values)
            steps = np.diff(time)
            longest = GAP * period_of(steps) or math.inf
            inside = (self.time >= time[0]) & (self.time <= time[-1])
            inside &= np.minimum(*(steps[end - 1] for end in ends)) <= longest
            found[inside] = (self.values - between)[inside]
        return dataclasses.replace(self, values=found, zero=self.zero - other.zero)


@dataclasses.dataclass(frozen=True)
class Panel:
    """Curves with a common vertical axis, those of a second run, the differences, and limits."""

    label: str
    curves: Sequence[Curve]
    others: Sequence[Curve] = ()
    differences: Sequence[Curve] = ()
    limits: Sequence[float] = dataclasses.field(default=(), kw_only=True)  # in its unit

    def compared(self) -> Panel:
        """Return the panel with the differences, where there is a second recording."""
        differences = [*map(Curve.less, self.curves, self.others)]
        return dataclasses.replace(self, differences=differences)

    def changed(self, function: Callable[[Curve], Curve], label: str = '') -> Panel:
        """Return the panel with all curves changed by a function."""
        every = (self.curves, self.others, self.differences)
        curves = ([*map(function, one)] for one in every)
        return Panel(label or self.label, *curves, limits=self.limits)


class Strip(NamedTuple):
    """Times [begin, end) at which something holds: red if ``alarm``, in words if ``written``."""

    label: str
    spans: Sequence[tuple[float, float]]
    alarm: bool = False
    written: bool = False


class Mark(NamedTuple):
    """An event."""

    time: float
    label: str


class Picture(NamedTuple):
    """A figure of one or two runs; ``origin`` is the stamp at time 0 of a recording [ns]."""

    title: str
    time_label: str
    panels: Sequence[Panel]
    strips: Sequence[Strip]
    marks: Sequence[Mark]
    names: tuple[str, ...]
    origin: int = 0

    @property
    def rows(self) -> list[Panel]:
        """The panels with those of the differences below each."""
        rows = []
        for panel in self.panels:
            rows.append(panel)
            if panel.differences:
                names, _, unit = panel.label.rpartition('\n')
                label = f'difference\n{unit if names else panel.label}'
                rows.append(Panel(label, panel.differences))
        return rows

    def readable(self) -> Picture:
        """Return the figure in units in which people read, from curves' zeros on, with gaps."""
        return self._replace(panels=[_readable(one, self.limits[1]) for one in self.panels])

    @property
    def events(self) -> list[tuple[float, str]]:
        """The times of the events, each with its labels, or none where there is no space."""
        begin, end = self.limits
        free = -math.inf
        found = []
        for time in sorted({mark.time for mark in self.marks}):
            text = ''
            if time >= free:
                labels = dict.fromkeys(mark.label for mark in self.marks if mark.time == time)
                text = ', '.join(labels)
                free = time + (end - begin) * _LETTER * (len(text) + 2)
            found.append((time, text))
        return found

    @property
    def limits(self) -> tuple[float, float]:
        """First and last time."""
        times = [c.time for p in self.panels for c in (*p.curves, *p.others) if len(c.time)]
        times = times or [np.zeros(1)]
        begin, end = min(float(t[0]) for t in times), max(float(t[-1]) for t in times)
        return (begin, end) if end > begin else (begin - 0.5, end + 0.5)


def isolated(values: np.ndarray) -> list[int]:
    """Return the places of samples beside which none is known: a line does not show them."""
    known = np.concatenate(([False], np.isfinite(values), [False]))
    alone: list[int] = np.flatnonzero(known[1:-1] & ~known[:-2] & ~known[2:]).tolist()
    return alone


def spans(time: np.ndarray, holds: np.ndarray, least: int = 1) -> list[tuple[float, float]]:
    """Return [begin, end) [s] of times in which a condition holds for a number of samples."""
    # What holds at the last sample ends right after it.
    after = np.append(time, np.nextafter(time[-1:], np.inf))
    edges = np.diff(np.concatenate(([0], holds.astype(int), [0])))
    starts, stops = np.flatnonzero(edges > 0), np.flatnonzero(edges < 0)
    return [
        (float(time[begin]), float(after[end]))
        for begin, end in zip(starts.tolist(), stops.tolist(), strict=True)
        if end - begin >= least
    ]


def decimate(values: np.ndarray, most: int) -> np.ndarray:
    """Return the places of the samples that are drawn, so that no peak and no gap is lost."""
    count = len(values)
    if count <= most:
        return np.arange(count)
    edges = np.linspace(0, count, most // 4 + 1).astype(int)
    kept = set()
    for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        part = values[begin:end]
        known = np.flatnonzero(np.isfinite(part))
        kept |= {begin, end - 1}
        if known.size:
            kept |= {begin + int(known[k(part[known])]) for k in (np.argmin, np.argmax)}
        if known.size not in (0, part.size):
            # One unknown value breaks the line here, too; it takes the place of the last sample.
            kept.discard(end - 1)
            kept.add(begin + int(np.flatnonzero(~np.isfinite(part))[0]))
    return np.array(sorted(kept))


def group(
    signals: Sequence[tuple[Signal, str, bool]],
) -> list[tuple[str, list[tuple[int, str]]]]:
    """Return labels of panels, and places and labels of signals: of one unit, field, or flags."""
    panels: dict[tuple[str, str], list[int]] = {}
    for place, (signal, unit, is_flag) in enumerate(signals):
        stem = _ENTRY.sub('', signal.field)
        key = ('flag', '') if is_flag else (unit, '' if unit not in ('', '1') else stem)
        panels.setdefault(key, []).append(place)
    result = []
    for (unit, _), places in panels.items():
        members = [signals[place][0] for place in places]
        stems = dict.fromkeys(_ENTRY.sub('', one.field).replace('_', ' ') for one in members)
        words = ', '.join(stems)
        if len(words) > _LONG:
            words = os.path.commonpath([stem.replace('.', '/') for stem in stems])
            words = words.replace('/', '.')
        shown = '' if unit in ('', '1', 'flag') else f'[{unit}]'
        if unit == 'flag':
            words = words or 'flags'
        labels = zip(places, _labels(members), strict=True)
        result.append((f'{words}\n{shown}'.strip(), list(labels)))
    return result


def _labels(signals: Sequence[Signal]) -> list[str]:
    """Return the shortest labels that distinguish signals of a panel."""
    candidates = []
    for signal in signals:
        entries = _ENTRY.findall(signal.field)
        tail = signal.field.rpartition(']')[2].lstrip('.')
        candidates.append(
            (
                ' '.join(filter(None, (*entries, tail))) if entries else signal.field,
                signal.field,
                f'{signal.topic.rpartition("/")[2]}.{signal.field}',
            )
        )
    for labels in zip(*candidates, strict=True):
        if max(Counter(labels).values()) == 1:
            return list(labels)
    return [str(signal) for signal in signals]


def _readable(panel: Panel, end: float) -> Panel:
    """Return a panel in the unit in which people read, up to an end [s]."""
    every = (*panel.curves, *panel.others)
    units = {curve.unit for curve in every}
    unit = units.pop() if len(units) == 1 else ''
    shown, least = _READ.get(unit, ('', 0.0))
    peaks = [np.abs(c.values[np.isfinite(c.values)]).max(initial=0.0) for c in every]
    if any(c.shown for c in every) or f'[{unit}]' not in panel.label or max(peaks) < least:
        shown = ''

    def in_figure(curve: Curve) -> Curve:
        to = curve.shown or shown or curve.unit
        values = convert(curve.values - curve.zero, curve.unit, to)
        return dataclasses.replace(curve, unit=to, values=values, zero=0.0).drawn(end)

    label = panel.label.replace(f'[{unit}]', f'[{shown or unit}]')
    return panel.changed(in_figure, label)


def declared_panels(
    panels: Iterable[declared.Panel],
    columns: Sequence[Column],
    sides: Sequence[Callable[[Column], Curve]],
    parameters: Any = None,
) -> list[Panel]:
    """Return the panels that a machine declares; ``sides`` give the columns of one or two runs."""

    def drawn(found: Curve, one: declared.Curve, panel: declared.Panel) -> Curve:
        known = found.values[np.isfinite(found.values)]
        zero = float(known[0]) if panel.relative and known.size else 0.0
        return dataclasses.replace(
            found,
            label=one.label,
            wanted=one.wanted,
            steps=found.steps or one.wanted,
            zero=zero,
            shown=panel.unit,
        )

    result = []
    for panel in panels:
        if shown := curves_of(panel, columns):
            unit = panel.unit or shown[0][0].unit
            label = panel.label + '\nfrom its start' * panel.relative
            label += f'\n[{unit}]' if unit not in ('', '1') else ''
            curves = [[drawn(side(c), one, panel) for c, one in shown] for side in sides]
            limits = [
                float(
                    convert(getattr(parameters, one), rules_of(type(parameters))[one].unit, unit)
                )
                for one in (panel.limits if parameters is not None else ())
            ]
            result.append(Panel(label, *curves, limits=limits))
    return result
