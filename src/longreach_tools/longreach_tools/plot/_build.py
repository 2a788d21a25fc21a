"""Figures from recordings: which signals and events, on which axes, over which time."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_dynamics.runs import Column, convert
from longreach_machine import MACHINE_GROUP, MachineSpec, curves_of
from longreach_machine import panels as machine_panels
from longreach_tools import presets
from longreach_tools.bag import open_bag
from longreach_tools.bag._reading import first_messages
from longreach_tools.bag._stamps import is_wall_clock
from longreach_tools.fields import Signal
from longreach_tools.signals import (
    NANOSECONDS,
    Recording,
    column_of,
    find_topic,
    read_signals,
    signals_of,
)

from ._events import Watched, event_signals, events_of, spans
from ._picture import Curve, Panel, Picture, Strip, group
from ._units import JOINT_STATES, Units, describe, joint_units

_GROUPS = (MACHINE_GROUP, presets.PRESET_GROUP)


class Window(NamedTuple):
    """The part of the time axis that is shown [s]; None: from the start, to the end."""

    begin: float | None = None
    end: float | None = None

    def cut(self, time: np.ndarray) -> np.ndarray:
        """Return which times are within, shape (samples,)."""
        begin = -math.inf if self.begin is None else self.begin
        end = math.inf if self.end is None else self.end
        return (time >= begin) & (time <= end)


class _Data:
    """A recording with its signals, units and events; times are stamps until ``origin`` is set."""

    def __init__(
        self, path: Path, signals: Sequence[Signal], *, events: bool = True, space: str = ''
    ) -> None:
        self.origin = 0
        self.path = path
        self.watched: list[Watched] = []
        with open_bag(path) as bag:
            self._topics = dict(bag.topics)
            if bag.topics:
                signals = [Signal(find_topic(bag, s.topic), s.field) for s in signals]
            if events and bag.message_count:
                spaces = {signal.topic.split('/')[1] for signal in signals}
                self.watched = event_signals(bag, spaces)
        if space:
            self.watched = [w for w in self.watched if w.signal.topic.startswith(f'{space}/')]
        self.asked = signals
        self.recording = self._read()
        names = [n for n in self.recording.topics if self._topics[n].typename == JOINT_STATES]
        self.joints = joint_units(describe(path, names))
        self._units = Units(self.joints)

    def _read(self) -> Recording:
        """Read signals; without those of events if they cannot be read."""
        wanted = list(dict.fromkeys([*self.asked, *(one.signal for one in self.watched)]))
        try:
            return read_signals(self.path, wanted)
        except InputError:
            # Velocities may be absent from joint states.
            self.watched = []
            return read_signals(self.path, self.asked)

    def chosen(self) -> list[Signal]:
        """Return the numbers that the signals stand for, in their order."""
        found: dict[Signal, None] = {}
        for topic, field in self.asked:
            for name in self.recording.topics[topic].values:
                if not field or name == field or name.startswith((f'{field}.', f'{field}[')):
                    found[Signal(topic, name)] = None
        return list(found)

    def kind(self, signal: Signal) -> tuple[str, bool]:
        """Return the unit of a signal, and whether it has none and only the values 0 and 1."""
        unit = self._units.of(self._topics[signal.topic], signal.field)
        values = self.recording.topics[signal.topic].values[signal.field]
        known = values[np.isfinite(values)]
        return unit, not unit and bool(np.isin(known, (0.0, 1.0)).all())

    def time(self, topic: str) -> np.ndarray:
        """Return the times of a topic from the origin [s], shape (samples,)."""
        return np.asarray((self.recording.topics[topic].time - self.origin) / NANOSECONDS)

    def column(self, column: Column, space: str) -> Curve:
        """Return a column of a machine over the times that all its topics have [ns]."""
        time, values = column_of(self.recording.topics, column, space)
        return Curve(column.name, column.name, column.unit, time, values)


# A curve of either recording over its stamps [ns], and its label.
_Entry = tuple[Callable[[_Data], Curve], str]


def build(
    bag: Path, signals: Sequence[Signal], window: Window, against: Path | None = None
) -> tuple[Picture, list[str]]:
    """Return the figure of signals, and notes on what was assumed."""
    data = _Data(bag, signals)
    chosen = data.chosen()
    second = None if against is None else _Data(against, chosen, events=False)
    kinds = [(one, *data.kind(one)) for one in chosen]

    def curve(signal: Signal, unit: str, is_flag: bool, side: _Data) -> Curve:
        topic = side.recording.topics[signal.topic]
        return Curve(str(signal), '', unit, topic.time, topic.values[signal.field], is_flag)

    groups: list[tuple[str, list[_Entry]]] = [
        (label, [(partial(curve, *kinds[place]), text) for place, text in members])
        for label, members in group(kinds)
    ]
    return _picture(data, second, window, groups)


def build_preset(
    machine: str,
    bag: Path,
    namespace: str,
    file: Path | None,
    window: Window,
    against: Path | None = None,
) -> tuple[Picture, list[str]]:
    """Return the figure that a machine declares, and notes on what was assumed."""
    preset = _preset(machine, bag, namespace, file)
    space = '/' + namespace.strip('/')
    columns = {column.name: column for column in preset.columns}
    used = [c.name for panel in preset.panels for c, _ in curves_of(panel, preset.columns)]
    used += [lane.column for lane in preset.lanes]
    wanted = {name: signals_of(columns[name], space) for name in used}
    with open_bag(bag) as opened:
        recorded = {name for name, topic in opened.topics.items() if topic.count}
    topics = sorted({one.topic for sources in wanted.values() for one in sources})
    have = {n: s for n, s in wanted.items() if all(one.topic in recorded for one in s)}
    signals = list(dict.fromkeys(one for sources in have.values() for one in sources))
    if not signals:
        raise InputError(
            f'{bag}: no {machine} in namespace {space}: none of {", ".join(topics)} has a message;'
            f' give --namespace, or see longreach plot {bag} --list'
        )
    data = _Data(bag, signals, space=space)
    second = None if against is None else _Data(against, signals, events=False)
    notes = [
        f'{bag}: {topic} was not recorded; its curves are left out'
        for topic in topics
        if topic not in recorded
    ]

    def curve(name: str, panel: machine_panels.Panel, side: _Data) -> Curve:
        """Return a column in the unit of its panel, from its first value on where it asks so."""
        found = side.column(columns[name], space)
        values = convert(found.values, found.unit, panel.unit)
        known = values[np.isfinite(values)]
        if panel.relative and known.size:
            values = values - known[0]
        return dataclasses.replace(found, unit=panel.unit or found.unit, values=values)

    groups: list[tuple[str, list[_Entry]]] = []
    for panel in preset.panels:
        shown = [(c, one.label) for c, one in curves_of(panel, preset.columns) if c.name in have]
        if shown:
            unit = panel.unit or shown[0][0].unit
            label = panel.label + (f'\n[{unit}]' if unit not in ('', '1') else '')
            groups.append((label, [(partial(curve, c.name, panel), text) for c, text in shown]))
    stamped = f'{space}/{preset.intervals}'
    if preset.intervals and stamped in data.recording.topics:

        def intervals(side: _Data) -> Curve:
            time = side.recording.topics[stamped].time
            # To a microsecond: stamps are rounded to ns, and a constant rate is to look constant.
            return Curve('interval', '', 'ms', time[1:], np.round(np.diff(time) / 1e6, 3))

        groups.append(('interval of\nstamps [ms]', [(intervals, stamped)]))

    def strips() -> list[Strip]:
        lanes = [lane for lane in preset.lanes if lane.column in have]
        found = [data.column(columns[lane.column], space) for lane in lanes]
        return [
            Strip(lane.label, spans((c.time - data.origin) / NANOSECONDS, c.values > 0.0))
            for lane, c in zip(lanes, found, strict=True)
        ]

    return _picture(data, second, window, groups, strips, notes)


def _picture(
    data: _Data,
    second: _Data | None,
    window: Window,
    groups: Sequence[tuple[str, Sequence[_Entry]]],
    more: Callable[[], Sequence[Strip]] = lambda: (),
    notes: Sequence[str] = (),
) -> tuple[Picture, list[str]]:
    """Return the figure of panels, with the events of the first recording, and notes."""
    sides = [side for side in (data, second) if side is not None]
    said = [*data.recording.notes, *notes, *(second.recording.notes if second else ())]
    # Time 0 is that of a simulation, else the first sample.
    firsts = [min(int(one.time[0]) for one in side.recording.topics.values()) for side in sides]
    if any(map(is_wall_clock, firsts)):
        for side, first in zip(sides, firsts, strict=True):
            side.origin = first
        if second is not None:
            said.append('the recordings are compared from their first samples on, not by their'
                        ' stamps')  # fmt: skip
    panels = [
        Panel(label, *([_shown(*entry, side, window) for entry in entries] for side in sides))
        for label, entries in groups
    ]
    times = {name: data.time(name) for name in data.recording.topics}
    ends = [
        (float(curve.time[0]), float(curve.time[-1]))
        for panel in panels
        for curve in panel.curves
        if len(curve.time)
    ]
    if not ends:
        first, last = min(t[0] for t in times.values()), max(t[-1] for t in times.values())
        raise InputError(
            f'{data.path}: no sample between --from and --to; samples are at {first:g} to'
            f' {last:g} s'
        )
    begin, end = min(one[0] for one in ends), max(one[1] for one in ends)
    strips, marks = events_of(data.watched, data.recording.topics, times, data.joints)
    label = 'time [s]'
    if data.origin:
        start = datetime.fromtimestamp(data.origin / NANOSECONDS, UTC)
        label = f'time from {start:%Y-%m-%d %H:%M:%S} UTC [s]'
        if second is not None:
            label = 'time from the first sample [s]'
    names = tuple(side.path.name for side in sides)
    if len({*names}) < len(names):
        names = tuple(str(side.path) for side in sides)
    cut = [_within(strip, begin, end) for strip in (*strips, *more())]
    picture = Picture(
        ' and '.join(names),
        label,
        panels,
        [strip for strip in cut if strip.spans],
        [mark for mark in marks if begin <= mark.time <= end],
        names,
        data.origin,
    )
    return picture, said


def _shown(make: Callable[[_Data], Curve], label: str, side: _Data, window: Window) -> Curve:
    """Return the part of a curve in the window, from the origin, with its label."""
    curve = make(side)
    time = (curve.time - side.origin) / NANOSECONDS
    inside = window.cut(time)
    return dataclasses.replace(curve, label=label, time=time[inside], values=curve.values[inside])


def _within(strip: Strip, begin: float, end: float) -> Strip:
    """Return the part of a strip between two times."""
    cut = [(max(a, begin), min(b, end)) for a, b in strip.spans if b >= begin and a <= end]
    return strip._replace(spans=cut)


def preset_names() -> set[str]:
    """Return the names of all presets."""
    return {one.name for group in _GROUPS for one in metadata.entry_points(group=group)}


def _preset(machine: str, bag: Path, namespace: str, file: Path | None) -> presets.Preset:
    """Return the preset of a machine, or of another package."""
    if machine not in preset_names():
        raise InputError(f'--preset {machine}, allowed: {", ".join(sorted(preset_names()))}')
    for point in metadata.entry_points(group=MACHINE_GROUP, name=machine):
        spec: MachineSpec[Any, Any, Any] = point.load()
        columns = spec.columns(spec.load(file, spec.options())).recorded
        return presets.Preset(columns, spec.panels, spec.lanes)

    def first(topic: str) -> Any:
        name = f'/{namespace.strip("/")}/{topic}'
        found = first_messages(bag, [name])
        if name not in found:
            raise InputError(f'{bag}: {name} has no message; give --namespace')
        return found[name]

    point, *_ = metadata.entry_points(group=presets.PRESET_GROUP, name=machine)
    make: Callable[[presets.Request], presets.Preset] = point.load()
    return make(presets.Request(file, first))
