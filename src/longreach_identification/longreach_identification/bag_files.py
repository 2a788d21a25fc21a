"""Recordings of a machine in ROS 2 bags: those of the plant, its sensors, and tracked markers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_dynamics.runs import Source
from longreach_identification.machine import MeasuredSignal, Recording, Signal
from longreach_tools.bag import is_wall_clock, open_bag, read_bag

_SECOND = 1_000_000_000  # [ns]
_LOAD = 'load'


class _Part(NamedTuple):
    """A signal in the messages of a topic."""

    signal: str
    source: Source
    deviation: str


def read_recording(
    bag: str | Path,
    signals: Sequence[MeasuredSignal],
    namespaces: Sequence[str] = (),
    events: Sequence[tuple[float, str]] = (),
    conditions: Mapping[str, float] | None = None,
) -> Recording:
    """
    Read a recording from a bag; events and conditions replace what the topic ``load`` tells.

    Each signal has the stamps of its own messages [s], those of a calendar relative to the first.
    Entries of lists with a status other than 0, such as lost markers, are left out. InputError for
    a bag without signals of the machine, or with a topic in several namespaces.
    """
    known = {source.topic for signal in signals for source in signal.sources}
    topics = _topics(bag, {*known, _LOAD}, namespaces)
    parts: dict[str, list[_Part]] = {}
    for signal in signals:
        source = next((s for s in signal.sources if s.topic in topics), None)
        if source is not None:
            listed = signal.deviation.partition('.')[0] == source.field.partition('.')[0]
            part = _Part(signal.name, source, signal.deviation if listed else '')
            parts.setdefault(topics[source.topic], []).append(part)
    if not parts:
        raise InputError(
            f'{bag} has no signal of the machine, allowed: a topic that ends with one of'
            f' {", ".join(sorted(known))}; record sensors (sensors:=typical, or drivers)'
        )
    readers = {name: _TopicReader(name, own) for name, own in parts.items()}
    loads = _TopicReader(_LOAD, [_Part('mass', Source(_LOAD, 'inertia.m'), '')])
    heard = readers | ({topics[_LOAD]: loads} if _LOAD in topics else {})
    for topic, _, message in read_bag(bag, list(heard)):
        heard[topic].add(message)
    rows = [(part.signal, reader.of(k)) for reader in readers.values() for k, part in reader.parts]
    stamps = [times[0] for _, (times, _, _) in rows if len(times)]
    first = min(stamps, default=0)
    # Of a calendar: the recording's times begin at 0.
    start = first if is_wall_clock(first) else 0
    found = {}
    for name, (times, values, variances) in rows:
        if len(times):
            seconds = (np.array(times, dtype=np.int64) - start) / _SECOND
            found[name] = Signal(seconds, np.array(values), np.sqrt(np.array(variances)))
    order = [signal.name for signal in signals if signal.name in found]
    changes = [((time - start) / _SECOND, m) for time, m in zip(*loads.of(0)[:2], strict=True)]
    seen = tuple(
        (time, 'release' if mass < before else 'attach')
        for (_, before), (time, mass) in itertools.pairwise(changes)
        if mass != before
    )
    masses = sorted({mass for _, mass in changes})
    if sum(mass > 0.0 for mass in masses) > 1 and 'payload' not in (conditions or {}):
        raise InputError(
            f'{bag}: the load has {", ".join(f"{mass:g}" for mass in masses)} kg, allowed: one'
            ' mass and none; split the recording'
        )
    carried = {'payload': masses[-1]} if masses else {}
    return Recording(
        Path(bag).name,
        {name: found[name] for name in order},
        tuple(events) or seen,
        {**carried, **(conditions or {})},
    )


def _topics(bag: str | Path, known: set[str], namespaces: Sequence[str]) -> dict[str, str]:
    """Return the full name of each known topic that a bag contains."""
    allowed = ['/' + name.strip('/') for name in namespaces]
    with open_bag(bag) as opened:
        full = list(opened.topics)
    found: dict[str, list[str]] = {}
    for name in full:
        # The longest: /a/sensors/strain is sensors/strain in /a, not strain in /a/sensors.
        matches = [topic for topic in known if name.endswith('/' + topic)]
        if not matches:
            continue
        topic = max(matches, key=len)
        namespace = name.removesuffix('/' + topic) or '/'
        if not allowed or namespace in allowed:
            found.setdefault(topic, []).append(name)
    for topic, names in found.items():
        if len(names) > 1:
            raise InputError(
                f'{bag} has {topic} {len(names)} times: {", ".join(sorted(names))}; give the'
                ' namespace'
            )
    return {topic: names[0] for topic, names in found.items()}


class _TopicReader:
    """Reads the signals of one topic."""

    def __init__(self, topic: str, parts: Sequence[_Part]) -> None:
        self._topic = topic
        self.parts = list(enumerate(parts))
        self._rows: list[tuple[list[int], list[float], list[float]]] = [
            ([], [], []) for _ in parts
        ]
        self._getters = [
            (
                _getter(part.source.field.partition('.')[2]),
                _getter(part.deviation.partition('.')[2]) if part.deviation else None,
            )
            for part in parts
        ]

    def of(self, index: int) -> tuple[list[int], list[float], list[float]]:
        """Return stamps [ns], values and variances of a signal."""
        return self._rows[index]

    def add(self, message: Any) -> None:
        """Read a message."""
        stamp = message.header.stamp
        time = int(stamp.sec) * _SECOND + int(stamp.nanosec)
        names = getattr(message, 'name', None)
        places: dict[str, int] = {}
        if names is not None:
            places = {name: k for k, name in enumerate(names)}
        for k, part in self.parts:
            listed = getattr(message, part.source.field.partition('.')[0])
            value, variance = np.nan, np.nan
            get, get_variance = self._getters[k]
            if not part.source.name:
                value = float(_getter(part.source.field)(message))
            elif names is not None:
                if part.source.name not in places:
                    raise InputError(
                        f'{self._topic} has no {part.source.name}, found: {", ".join(names)}; give'
                        ' the machine file of the recording'
                    )
                if places[part.source.name] < len(listed):
                    value = float(get(listed[places[part.source.name]]))
            else:
                entry = next((entry for entry in listed if entry.name == part.source.name), None)
                if entry is None or getattr(entry, 'status', 0) != 0:
                    continue
                value = float(get(entry))
                if get_variance is not None:
                    variance = float(get_variance(entry))
                if not np.isfinite(value):
                    continue
            times, values, variances = self._rows[k]
            if times and time == times[-1] and (value == values[-1] or value != value):
                # The same message twice, as of a plant that is paused.
                continue
            times.append(time)
            values.append(value)
            variances.append(variance)


def _getter(path: str) -> Callable[[Any], Any]:
    """Return a function that follows a path such as ``position.x`` or ``covariance.8``."""
    steps = path.split('.') if path else []

    def get(value: Any) -> Any:
        for step in steps:
            value = value[int(step)] if step.isdigit() else getattr(value, step)
        return value

    return get
