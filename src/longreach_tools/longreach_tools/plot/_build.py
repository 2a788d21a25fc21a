"""Figures from recordings: which signals and events, on which axes, over which time."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from longreach_dynamics.description import Robot, parse_description
from longreach_dynamics.errors import InputError
from longreach_dynamics.resources import data_directory, open_text
from longreach_dynamics.runs import Column, Derived, Source, convert
from longreach_machine import MACHINE_GROUP, MachineSpec, curves_of
from longreach_machine import panels as machine_panels
from longreach_tools import presets
from longreach_tools.bag import open_bag
from longreach_tools.bag._reading import store_of
from longreach_tools.bag._stamps import is_wall_clock
from longreach_tools.fields import Signal

from ._events import Watched, event_signals, events_of, spans
from ._picture import Curve, Panel, Picture, Strip, group
from ._series import NANOSECONDS, Recording, find_topic, read_signals
from ._units import Units

_GROUPS = (MACHINE_GROUP, presets.PRESET_GROUP)


@dataclasses.dataclass(frozen=True)
class Window:
    """The part of the time axis that is shown [s]; None: from the start, to the end."""

    begin: float | None = None
    end: float | None = None

    def cut(self, time: np.ndarray) -> np.ndarray:
        """Return which times are within, shape (samples,)."""
        begin = -math.inf if self.begin is None else self.begin
        end = math.inf if self.end is None else self.end
        return (time >= begin) & (time <= end)


def build(
    bag: Path, signals: Sequence[Signal], window: Window, against: Path | None = None
) -> tuple[Picture, list[str]]:
    """Return the figure of signals, and notes on what was assumed."""
    data = _Data(bag, signals)
    notes = list(data.recording.notes)
    chosen = data.chosen()
    kinds = [(one, data.unit(one), data.is_flag(one)) for one in chosen]
    curves = {one: data.curve(one, unit, flag) for one, unit, flag in kinds}
    others: dict[Signal, Curve] = {}
    second = None
    if against is not None:
        second = _Data(against, chosen, events=False)
        notes += second.recording.notes
        others = {one: second.curve(one, unit, flag) for one, unit, flag in kinds}
    notes += _align(data, second)
    panels = []
    for label, members in group(kinds):
        members_of = [(chosen[place], text) for place, text in members]
        panels.append(
            Panel(
                label,
                [_shown(curves[one], text, data.origin, window) for one, text in members_of],
                [_shown(others[one], text, second.origin, window) for one, text in members_of]
                if second
                else [],
            )
        )
    return _picture(data, second, panels, []), notes


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
    shown_in = [curves_of(panel, preset.columns) for panel in preset.panels]
    used = [column.name for pairs in shown_in for column, _ in pairs]
    used += [lane.column for lane in preset.lanes]
    wanted = {name: _sources(columns[name], space) for name in dict.fromkeys(used)}
    with open_bag(bag) as opened:
        recorded = {name for name, topic in opened.topics.items() if topic.count}
    have = {name: all(one.topic in recorded for one in s) for name, s in wanted.items()}
    signals = list(
        dict.fromkeys(s for name, sources in wanted.items() if have[name] for s in sources)
    )
    if not signals:
        topics = sorted({one.topic for sources in wanted.values() for one in sources})
        raise InputError(
            f'{bag}: no {machine} in namespace {space}: none of {", ".join(topics)} has a message;'
            f' give --namespace, or see longreach plot {bag} --list'
        )
    missing = sorted({one.topic for s in wanted.values() for one in s} - recorded)
    data = _Data(bag, signals, space=space)
    notes = list(data.recording.notes)
    notes += [f'{bag}: {topic} was not recorded; its curves are left out' for topic in missing]
    second = None if against is None else _Data(against, signals, events=False)
    notes += second.recording.notes if second else []
    notes += _align(data, second)

    def panel(one: machine_panels.Panel) -> Panel | None:
        shown = [
            (column.name, curve.label)
            for column, curve in curves_of(one, preset.columns)
            if have[column.name]
        ]
        if not shown:
            return None
        sides: list[list[Curve]] = []
        for side in (data, second):
            sides.append(
                [
                    _shown(
                        _scaled(side.column(columns[name], wanted[name]), one),
                        label,
                        side.origin,
                        window,
                    )
                    for name, label in shown
                ]
                if side
                else []
            )
        unit = sides[0][0].unit
        return Panel(one.label + (f'\n[{unit}]' if unit not in ('', '1') else ''), *sides)

    panels = [made for made in map(panel, preset.panels) if made is not None]
    if preset.intervals and f'{space}/{preset.intervals}' in data.recording.topics:
        panels.append(
            Panel(
                'interval of\nstamps [ms]',
                [_intervals(data, f'{space}/{preset.intervals}', window)],
                [_intervals(second, f'{space}/{preset.intervals}', window)] if second else [],
            )
        )
    strips = []
    for lane in preset.lanes:
        if have[lane.column]:
            curve = data.column(columns[lane.column], wanted[lane.column])
            found = spans((curve.time - data.origin) / NANOSECONDS, curve.values > 0.0)
            strips += [Strip(lane.label, found)] if found else []
    return _picture(data, second, panels, strips), notes


class _Data:
    """A recording with its signals, units and events."""

    def __init__(
        self, path: Path, signals: Sequence[Signal], *, events: bool = True, space: str = ''
    ) -> None:
        self.origin = 0
        with open_bag(path) as bag:
            spaces = {
                find_topic(bag, signal.topic).split('/')[1] for signal in signals if bag.topics
            }
            self.watched: list[Watched] = (
                event_signals(bag, spaces) if events and bag.message_count else []
            )
            self._topics = dict(bag.topics)
            self.asked = [
                Signal(find_topic(bag, s.topic) if bag.topics else s.topic, s.field)
                for s in signals
            ]
        if space:
            self.watched = [w for w in self.watched if w.signal.topic.startswith(f'{space}/')]
        wanted = list(dict.fromkeys([*signals, *(one.signal for one in self.watched)]))
        self.path = path
        self.recording = self._read(wanted, signals)
        robots = describe(path, [name for name in self.recording.topics if self._is_joints(name)])
        self.joints = joint_units(robots)
        self._units = Units(self.joints)

    def _read(self, wanted: Sequence[Signal], signals: Sequence[Signal]) -> Recording:
        """Read signals; without those of events if they cannot be read."""
        if wanted == list(signals):
            return read_signals(self.path, wanted)
        try:
            return read_signals(self.path, wanted)
        except InputError:
            # Velocities may be absent from joint states.
            self.watched = []
            return read_signals(self.path, signals)

    def _is_joints(self, name: str) -> bool:
        """Return whether a topic has the state of joints."""
        return self._topics[name].typename == 'sensor_msgs/msg/JointState'

    def chosen(self) -> list[Signal]:
        """Return the numbers that the signals stand for, in their order."""
        found: dict[Signal, None] = {}
        for topic, field in self.asked:
            for name in self.recording.topics[topic].values:
                if not field or name == field or name.startswith((f'{field}.', f'{field}[')):
                    found[Signal(topic, name)] = None
        return list(found)

    def unit(self, signal: Signal) -> str:
        """Return the unit of a signal."""
        return self._units.of(self._topics[signal.topic], signal.field)

    def is_flag(self, signal: Signal) -> bool:
        """Return whether a signal has no unit and only the values 0 and 1."""
        values = self.recording.topics[signal.topic].values[signal.field]
        known = values[np.isfinite(values)]
        return not self.unit(signal) and bool(np.isin(known, (0.0, 1.0)).all())

    def time(self, topic: str) -> np.ndarray:
        """Return the times of a topic from the origin [s], shape (samples,)."""
        return np.asarray((self.recording.topics[topic].time - self.origin) / NANOSECONDS)

    def curve(self, signal: Signal, unit: str, is_flag: bool) -> Curve:
        """Return a signal over time; the origin is still zero."""
        topic = self.recording.topics[signal.topic]
        values = topic.values[signal.field]
        return Curve(str(signal), '', unit, topic.time, values, is_flag)

    def column(self, column: Column, sources: Sequence[Signal]) -> Curve:
        """Return a column of a machine over the times that all its sources have [ns]."""
        topics = [self.recording.topics[one.topic] for one in sources]
        time = topics[0].time
        for other in topics[1:]:
            if other is not topics[0]:
                time = np.intersect1d(time, other.time)
        parts = []
        for one, topic in zip(sources, topics, strict=True):
            values = topic.values.get(one.field, np.full(len(topic.time), np.nan))
            parts.append(
                values if topic.time is time else values[np.searchsorted(topic.time, time)]
            )
        table = np.stack(parts, axis=1)
        source = column.source
        values = source.function(table) if isinstance(source, Derived) else table[:, 0]
        return Curve(column.name, column.name, column.unit, time, np.asarray(values, dtype=float))


def describe(
    path: Path, names: Sequence[str], urdf: Path | None = None
) -> dict[str, tuple[str, Robot]]:
    """Return the descriptions of the machines of some topics with joint states."""
    found: dict[str, tuple[str, Robot]] = {}
    if not names:
        return found
    with open_bag(path) as bag:
        texts = [
            name
            for name, topic in bag.topics.items()
            if name.endswith('/robot_description') and topic.count
        ]
    messages = _first_messages(path, [*names, *texts])
    for name in names:
        beside = f'{name.rpartition("/")[0]}/robot_description'
        if urdf is not None:
            with open_text(urdf) as file:
                found[name] = (str(urdf), parse_description(file.read(), str(urdf)))
        elif beside in messages:
            source = f'{beside} of {path}'
            found[name] = (source, parse_description(messages[beside].data, source))
        elif name in messages:
            installed = installed_description(list(messages[name].name))
            if installed is not None:
                found[name] = (str(installed[0]), installed[1])
    return found


def _first_messages(path: Path, names: Sequence[str]) -> dict[str, Any]:
    """Return the first message of each topic that has one."""
    found: dict[str, Any] = {}
    with open_bag(path) as bag:
        waiting = {name for name in names if bag.topics[name].count}
        stores = store_of(bag, sorted(waiting))
        for name, _, data in bag.messages(sorted(waiting)):
            if name in waiting:
                found[name] = stores[name].deserialize_cdr(data, bag.topics[name].typename)
                waiting.remove(name)
            if not waiting:
                break
    return found


def joint_units(
    robots: Mapping[str, tuple[str, Robot]],
) -> dict[str, tuple[str, str, str]]:
    """Return the units of position, velocity and effort by the name of the joint."""
    return {
        name: joint.units for _, robot in robots.values() for name, joint in robot.joints.items()
    }


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
        return presets.Preset((*columns, *spec.recorded_columns), spec.panels, spec.lanes)

    def first(topic: str) -> Any:
        name = f'/{namespace.strip("/")}/{topic}'
        with open_bag(bag) as opened:
            if name not in opened.topics or not opened.topics[name].count:
                raise InputError(f'{bag}: {name} has no message; give --namespace')
        return _first_messages(bag, [name])[name]

    (point,) = metadata.entry_points(group=presets.PRESET_GROUP, name=machine)
    make: Callable[[presets.Request], presets.Preset] = point.load()
    return make(presets.Request(file, first))


def _sources(column: Column, space: str) -> list[Signal]:
    """Return the signals of a column."""
    source = column.source
    if source is None:
        raise ValueError(f'{column.name} is not in any message')
    sources = source.sources if isinstance(source, Derived) else (source,)
    return [_signal(one, space) for one in sources]


def _signal(source: Source, space: str) -> Signal:
    """Return the signal of a source; the name of an entry follows the first part of the field."""
    head, dot, tail = source.field.partition('.')
    entry = f'[{source.name}]' if source.name else ''
    return Signal(f'{space}/{source.topic}', f'{head}{entry}{dot}{tail}')


def _scaled(curve: Curve, panel: machine_panels.Panel) -> Curve:
    """Return a curve in the unit of its panel, from its first value on where it asks for it."""
    values = convert(curve.values, curve.unit, panel.unit)
    known = values[np.isfinite(values)]
    if panel.relative and known.size:
        values = values - known[0]
    return dataclasses.replace(curve, unit=panel.unit or curve.unit, values=values)


def _intervals(data: _Data, topic: str, window: Window) -> Curve:
    """Return the intervals between the stamps of a topic [ms]."""
    time = data.recording.topics[topic].time
    # To a microsecond: stamps are rounded to ns, and a constant rate is to look constant.
    curve = Curve('interval', '', 'ms', time[1:], np.round(np.diff(time) / 1e6, 3))
    return _shown(curve, topic, data.origin, window)


def _shown(curve: Curve, label: str, origin: int, window: Window) -> Curve:
    """Return the part of a curve in the window, from the origin [ns], with its label."""
    time = (curve.time - origin) / NANOSECONDS
    inside = window.cut(time)
    return dataclasses.replace(curve, label=label, time=time[inside], values=curve.values[inside])


def _align(data: _Data, second: _Data | None) -> list[str]:
    """Set the origins of the times: zero for simulation time, else the first sample."""
    sides = [side for side in (data, second) if side is not None]
    firsts = [
        min(int(topic.time[0]) for topic in side.recording.topics.values()) for side in sides
    ]
    if not any(map(is_wall_clock, firsts)):
        return []
    for side, first in zip(sides, firsts, strict=True):
        side.origin = first
    if second is None:
        return []
    return ['the recordings are compared from their first samples on, not by their stamps']


def _picture(
    data: _Data,
    second: _Data | None,
    panels: Sequence[Panel],
    more: Sequence[Strip],
) -> Picture:
    """Return the figure of panels, with the events of the first recording."""
    curves = [curve for panel in panels for curve in panel.curves]
    if not any(len(curve.time) for curve in curves):
        first, last = _range(data)
        raise InputError(
            f'{data.path}: no sample between --from and --to; samples are at {first:g} to'
            f' {last:g} s'
        )
    times = {name: data.time(name) for name in data.recording.topics}
    strips, marks = events_of(data.watched, data.recording.topics, times, data.joints)
    begin = min(float(curve.time[0]) for curve in curves if len(curve.time))
    end = max(float(curve.time[-1]) for curve in curves if len(curve.time))
    cut = [_within(strip, begin, end) for strip in (*strips, *more)]
    label = 'time [s]'
    if data.origin:
        start = datetime.fromtimestamp(data.origin / NANOSECONDS, UTC)
        label = f'time from {start:%Y-%m-%d %H:%M:%S} UTC [s]'
        if second is not None:
            label = 'time from the first sample [s]'
    names = (data.path.name,) if second is None else _names(data.path, second.path)
    return Picture(
        ' and '.join(names),
        label,
        panels,
        [strip for strip in cut if strip.spans],
        [mark for mark in marks if begin <= mark.time <= end],
        names,
        data.origin,
    )


def _names(first: Path, second: Path) -> tuple[str, str]:
    """Return names of two recordings that differ."""
    return (first.name, second.name) if first.name != second.name else (str(first), str(second))


def _range(data: _Data) -> tuple[float, float]:
    """Return the first and the last time of the signals [s]."""
    times = [data.time(name) for name in data.recording.topics]
    return min(float(t[0]) for t in times), max(float(t[-1]) for t in times)


def _within(strip: Strip, begin: float, end: float) -> Strip:
    """Return the part of a strip between two times."""
    spans_ = [
        (max(first, begin), min(last, end))
        for first, last in strip.spans
        if last >= begin and first <= end
    ]
    return dataclasses.replace(strip, spans=spans_)


def installed_description(joints: Collection[str]) -> tuple[Path, Robot] | None:
    """
    Return the installed description that has all these joints, and its file; None without.

    Descriptions are those in ``urdf/`` of the packages with commands of ``longreach``.
    """
    points = metadata.entry_points(group=MACHINE_GROUP)
    for package in sorted({point.module.partition('.')[0] for point in points}):
        try:
            directory = data_directory(package) / 'urdf'
        except InputError:
            continue
        for file in sorted(directory.glob('*.urdf')):
            robot = parse_description(file.read_text(encoding='utf-8'), str(file))
            if joints and set(joints) <= set(robot.joints):
                return file, robot
    return None
