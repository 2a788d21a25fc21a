"""Charts: what is plotted together, as machines declare it, and the points of the lines."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import load_yaml
from longreach_dynamics.resources import share_directory
from longreach_machine import convert, curves_of
from longreach_machine.panels import period_of, with_gaps
from longreach_tools.bag import absolute_name
from longreach_tools.presets import Preset, Request, load_preset, preset_names
from longreach_tools.signals import signals_of
from longreach_view.world import STALE, Line, Machine, Series, World

_MOST = 6
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
_NUMBER = re.compile(r'\d+')
_KEYS = {'title', 'unit', 'scale', 'signals'}


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


def load_presets() -> dict[str, list[dict[str, Any]]]:
    """Return charts of machines without a declaration, of the installed ``charts.yaml``."""
    path = share_directory('longreach_view') / 'config' / 'charts.yaml'
    presets: dict[str, list[dict[str, Any]]] = load_yaml(path)
    for kind, charts in presets.items():
        for chart in charts:
            if not {'title', 'signals'} <= chart.keys() <= _KEYS:
                raise InputError(
                    f'{path}: a chart of {kind} has {", ".join(chart)}; allowed: title, signals,'
                    ' unit, scale'
                )
    return presets


def machine_charts(presets: dict[str, list[dict[str, Any]]], world: World) -> list[Chart]:
    """Return the charts of all machines: of ``presets``, else of the panels that one declares."""
    charts = []
    for machine in world.machines.values():
        declared = machine.kind in preset_names() - presets.keys()
        chosen = presets.get(machine.kind, presets['other'])
        found = _declared(machine, world) if declared else _preset(chosen, machine, world)
        for title, unit, scale, lines in found:
            for k in range(0, len(lines), _MOST):
                number = f' ({k // _MOST + 1})' if len(lines) > _MOST else ''
                name = f'{machine.name}: {title}{number}'.removeprefix(': ')
                charts.append(Chart(name, unit, scale, tuple(lines[k : k + _MOST])))
    return charts


def _preset(
    charts: Iterable[dict[str, Any]], machine: Machine, world: World
) -> Iterator[tuple[str, str, float, list[Line]]]:
    """Yield title, unit, scale and lines of charts of signals that exist."""
    prefix = f'/{machine.name}/' if machine.name else '/'
    own = [s.removeprefix(prefix) for s in world.signals() if s.startswith(prefix)]
    for chart in charts:
        patterns = (re.escape(p).replace(r'\*', r'[^\[\]]*') for p in chart['signals'])
        found = dict.fromkeys(s for p in patterns for s in own if re.fullmatch(p, s))
        lines = [Line(prefix + s, s.partition('.')[2]) for s in found]
        yield chart['title'], chart.get('unit', ''), float(chart.get('scale', 1.0)), lines


def _declared(machine: Machine, world: World) -> Iterator[tuple[str, str, float, list[Line]]]:
    """Yield title, unit, scale and lines of declared panels, as far as their signals exist."""
    try:
        if machine.robot is not None:
            preset = _of_machine(machine.kind)
        else:
            latest = machine.latest
            request = Request(None, lambda topic: latest[absolute_name(topic, machine.name)])
            preset = load_preset(machine.kind, request)
    except (InputError, KeyError):
        # No marker yet.
        return
    known = dict.fromkeys(world.signals())
    for panel in preset.panels:
        lines: list[Line] = []
        for column, curve in curves_of(panel, preset.columns):
            signals = signals_of(column, machine.name)
            function = getattr(column.source, 'function', None)
            topic, fields = signals[0].topic, tuple(s.field for s in signals)
            exist = known.keys() >= {f'{topic}.{field}' for field in fields}
            # Parameters that a function is bound to may be others than those of this machine.
            if exist and not isinstance(function, partial):
                name = f'{topic}.{column.name if function else fields[0]}'
                lines.append(Line(name, curve.label, curve.wanted, fields, function))
                # A panel has one unit. What is drawn from its start in small units is not here.
                unit = column.unit
        # Entries that differ in a number only, such as a beam more than the installed machine has.
        alike = {_NUMBER.sub('', line.signal) for line in lines if line.function is None}
        drawn = {line.signal for line in lines}
        lines += [
            Line(signal, signal.partition('.')[2])
            for signal in known
            if _NUMBER.sub('', signal) in alike and signal not in drawn
        ]
        if lines:
            shown = panel.unit if unit == 'rad' or not panel.relative else unit
            shown = shown or unit
            scale = float(convert(np.array(1.0), unit, shown))
            title = panel.label.replace('\n', ' ')
            yield title, '' if shown == '1' else shown, scale, lines


@cache
def _of_machine(kind: str) -> Preset:
    """Return the panels of an installed machine."""
    return load_preset(kind, Request(None, dict[str, Any]().__getitem__))


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
