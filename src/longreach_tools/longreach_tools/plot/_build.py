"""Figures from recordings: which signals and events, on which axes, over which time."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError, check_among
from longreach_machine import curves_of
from longreach_machine.panels import period_of
from longreach_machine.runs import Column, Derived
from longreach_tools.bag import absolute_name, open_bag
from longreach_tools.bag._reading import first_messages
from longreach_tools.bag._stamps import is_wall_clock
from longreach_tools.fields import Signal, near_names, numeric_fields
from longreach_tools.presets import Request, load_preset, preset_names
from longreach_tools.signals import (
    NANOSECONDS,
    Recording,
    column_of,
    find_topic,
    is_below,
    read_signals,
    signals_of,
)

from ._events import Watched, event_signals, events_of, machine_space
from ._picture import Curve, Mark, Panel, Picture, Strip, declared_panels, group, spans
from ._units import JOINT_STATES, Units, describe

_NUMBER = re.compile(r'\d+')


class Window(NamedTuple):
    """The part of the time axis that is shown [s]; None: from the start, to the end."""

    begin: float | None = None
    end: float | None = None

    def part(self, curve: Curve) -> Curve:
        """Return the part of a curve that is shown."""
        begin = -math.inf if self.begin is None else self.begin
        end = math.inf if self.end is None else self.end
        inside = (curve.time >= begin) & (curve.time <= end)
        return dataclasses.replace(curve, time=curve.time[inside], values=curve.values[inside])


class _Side:
    """A recording with its signals, units and events; times are from ``origin`` on [ns]."""

    def __init__(self, path: Path, signals: Sequence[Signal], *, events: bool = True) -> None:
        self.path = path
        self._watched: list[Watched] = []
        with open_bag(path) as bag:
            self._topics = dict(bag.topics)
            if bag.topics:
                signals = [Signal(find_topic(bag, s.topic), s.field) for s in signals]
            if events and bag.message_count:
                spaces = {machine_space(bag, one.topic) for one in signals}
                self._watched = event_signals(bag, spaces)
        self._asked = signals
        # Of a second recording these are what the first one has.
        self._named = {*signals} if events else set()
        self.recording = self._read()
        self.notes = list(self.recording.notes)
        names = [n for n in self.recording.topics if self._topics[n].typename == JOINT_STATES]
        self._units = Units(describe(path, names))
        # Not those of events, which a second recording is not read for.
        times = {one.topic: self.recording.topics[one.topic].time for one in signals}
        if not any(map(len, times.values())):
            raise InputError(f'{path}: no message of {", ".join(times)} since time began anew')
        self.first = min(int(time[0]) for time in times.values() if len(time))
        # Time 0 is that of a simulation, else the first sample.
        self.origin = self.first if is_wall_clock(self.first) else 0

    def _read(self) -> Recording:
        """Read signals; without those of events if they cannot be read."""
        wanted = list(dict.fromkeys([*self._asked, *(one.signal for one in self._watched)]))
        try:
            return read_signals(self.path, wanted)
        except InputError:
            # Velocities may be absent from joint states.
            self._watched = []
            return read_signals(self.path, self._asked)

    def chosen(self) -> list[Signal]:
        """Return the numbers that the signals stand for, in their order."""
        found: dict[Signal, None] = {}
        for topic, field in self._asked:
            for name in self.recording.topics[topic].values:
                if name == field or is_below(name, field):
                    found[Signal(topic, name)] = None
        return list(found)

    def kind(self, signal: Signal) -> tuple[str, bool]:
        """Return the unit of a signal, and whether it has none and only the values 0 and 1."""
        unit = self._units.of(self._topics[signal.topic], signal.field)
        values = self.recording.topics[signal.topic].values[signal.field]
        known = values[np.isfinite(values)]
        return unit, not unit and bool(np.isin(known, (0.0, 1.0)).all())

    def seconds(self, time: np.ndarray) -> np.ndarray:
        """Return times from the origin [s] for stamps [ns], both (samples,)."""
        return np.asarray((time - self.origin) / NANOSECONDS)

    def curve(self, signal: Signal, label: str, unit: str, is_flag: bool) -> Curve:
        """Return a signal; InputError for an entry that was asked for, and no message has."""
        data = self.recording.topics[signal.topic]
        time, values = data.samples(signal.field)
        if signal in self._named and len(data.time) and not len(time):
            message = first_messages(self.path, [signal.topic])[signal.topic]
            known = numeric_fields(message)
            none = 'no message' if signal.field not in known else 'since time began anew none'
            raise InputError(
                f'{self.path}: {none} of {signal.topic} has {signal.field}; similar:'
                f' {near_names(signal.field, known)}'
            )
        # What has no period is published when it changes, and holds until then.
        steps = is_flag or not period_of(np.diff(data.time))
        return Curve(str(signal), label, unit, self.seconds(time), values, steps)

    def column(self, space: str, column: Column) -> Curve:
        """Return a column of a machine over the times that all its topics have."""
        time, values = column_of(self.recording.topics, column, space)
        steps = not period_of(np.diff(time))
        return Curve(column.name, '', column.unit, self.seconds(time), values, steps)

    def events(self) -> tuple[list[Strip], list[Mark]]:
        """Return strips and marks of the events."""
        return events_of(self._watched, self.recording.topics, self.seconds, self._units)


def _sides(bag: Path, signals: Sequence[Signal], against: Path | None) -> list[_Side]:
    """Read signals of a recording, and of a second one."""
    sides = [_Side(bag, signals)]
    if against is not None:
        sides.append(_Side(against, sides[0].chosen(), events=False))
    if len(sides) > 1 and any(side.origin for side in sides):
        sides[0].notes.append(
            'the recordings are compared from their first samples on, not by their stamps'
        )
        for side in sides:
            side.origin = side.first
    return sides


def build(
    bag: Path, signals: Sequence[Signal], window: Window, against: Path | None = None
) -> tuple[Picture, list[str]]:
    """Return the figure of signals, and notes on what was assumed."""
    sides = _sides(bag, signals, against)
    kinds = [(one, *sides[0].kind(one)) for one in sides[0].chosen()]
    panels = []
    for label, members in group(kinds):
        shown = [(kinds[place][0], text, *kinds[place][1:]) for place, text in members]
        panels.append(Panel(label, *([side.curve(*one) for one in shown] for side in sides)))
    return _picture(sides, window, panels)


def build_preset(
    machine: str,
    bag: Path,
    namespace: str,
    file: Path | None,
    window: Window,
    against: Path | None = None,
    most: int | None = None,
) -> tuple[Picture, list[str]]:
    """Return the (first) panels that a machine declares, and notes on what was assumed."""
    check_among('--preset', machine, sorted(preset_names()))

    def first(topic: str) -> Any:
        name = absolute_name(topic, namespace)
        found = first_messages(bag, [name])
        if name not in found:
            raise InputError(f'{bag}: {name} has no message; give --namespace')
        return found[name]

    preset = load_preset(machine, Request(file, first))
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
    sides = _sides(bag, signals, against)
    sides[0].notes += [
        f'{bag}: {topic} was not recorded; its curves are left out'
        for topic in topics
        if topic not in recorded
    ]
    panels = declared_panels(
        preset.panels,
        [column for column in preset.columns if column.name in have],
        [functools.partial(side.column, space) for side in sides],
    )
    stamped = absolute_name(preset.intervals, space)
    if preset.intervals and stamped in sides[0].recording.topics:
        found = []
        for side in sides:
            time = side.recording.topics[stamped].time
            # To a microsecond: stamps are rounded to ns, and a constant rate is to look constant.
            steps = np.round(np.diff(time) / NANOSECONDS, 6)
            time = side.seconds(time[1:])
            found.append([Curve('interval', stamped, 's', time, steps, shown='ms')])
        panels.append(Panel('interval of\nstamps [ms]', *found))
    panels = panels[:most]
    drawn = {curve.name for panel in panels for curve in panel.curves}
    # Parameters of the machine are bound to the function of a column that depends on them.
    installed = [
        name
        for name, column in columns.items()
        if name in drawn
        and isinstance(column.source, Derived)
        and isinstance(column.source.function, functools.partial)
    ]
    if installed and file is None:
        sides[0].notes.append(
            f'{", ".join(installed)}: by the installed parameters of the {machine}; --file'
            ' takes others'
        )
    known = {
        one for column in columns.values() if column.source for one in signals_of(column, space)
    }
    if others := _others(bag, known):
        sides[0].notes.append(
            f'{bag}: {", ".join(others)} left out, because'
            f' {file or f"the installed {machine}"} has none; --file adds them'
        )
    strips = []
    for lane in preset.lanes:
        if lane.column in have:
            flag = sides[0].column(space, columns[lane.column])
            strips.append(Strip(lane.label, spans(flag.time, flag.values > 0.0), lane.alarm))
    return _picture(sides, window, panels, strips)


def _others(bag: Path, known: set[Signal]) -> list[str]:
    """Return recorded entries that differ from known ones in a number, such as a fifth beam."""
    alike = {(topic, _NUMBER.sub('', field)) for topic, field in known}
    found: dict[str, None] = {}
    for topic, message in first_messages(bag, sorted({one.topic for one in known})).items():
        for field in numeric_fields(message):
            if (topic, _NUMBER.sub('', field)) in alike and (topic, field) not in known:
                found[field.partition('[')[2].partition(']')[0]] = None
    return list(found)


def _picture(
    sides: Sequence[_Side], window: Window, panels: Sequence[Panel], lanes: Sequence[Strip] = ()
) -> tuple[Picture, list[str]]:
    """Return what is in the window, with the events of the first recording, and notes."""
    first = sides[0]
    # Differences are of the whole curves: at the ends they need samples beside the window.
    panels = [one.compared().changed(window.part) for one in panels]
    ends = [curve.time[[0, -1]] for one in panels for curve in one.curves if len(curve.time)]
    if not ends:
        every = [one.time for one in first.recording.topics.values() if len(one.time)]
        times = [first.seconds(time)[[0, -1]] for time in every]
        raise InputError(
            f'{first.path}: no sample between --from and --to; samples are at {np.min(times):g} to'
            f' {np.max(times):g} s'
        )
    begin, end = float(np.min(ends)), float(np.max(ends))
    strips, marks = first.events()
    # A lane that is an event, too, is drawn once.
    lanes = [lane for lane in lanes if lane.label not in {strip.label for strip in strips}]
    label = 'time [s]'
    if first.origin:
        start = datetime.fromtimestamp(first.origin / NANOSECONDS, UTC)
        label = f'time from {start:%Y-%m-%d %H:%M:%S} UTC [s]'
        if len(sides) > 1:
            label = 'time from the first sample [s]'
    names = tuple(side.path.name for side in sides)
    if len({*names}) < len(names):
        names = tuple(str(side.path) for side in sides)
    cut = [
        strip._replace(
            spans=[(max(a, begin), b) for a, b in strip.spans if b > begin and a <= end]
        )
        for strip in (*strips, *lanes)
    ]
    picture = Picture(
        ' and '.join(names),
        label,
        panels,
        [strip for strip in cut if strip.spans],
        [mark for mark in marks if begin <= mark.time <= end],
        names,
        first.origin,
    )
    return picture, [note for side in sides for note in side.notes]
