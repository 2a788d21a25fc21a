"""Recordings of a machine in ROS 2 bags: those of the plant, its sensors, and tracked markers."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError, check_has
from longreach_identification.machine import MeasuredSignal, Recording, Signal
from longreach_machine.runs import Source
from longreach_tools.bag import is_wall_clock, open_bag, read_bag
from longreach_tools.fields import read_field

_SECOND = 1_000_000_000  # [ns]
_LOAD = 'load'


@dataclasses.dataclass
class _Rows:
    """Rows of a signal, and its fields in messages, as :mod:`longreach_tools.fields` has them."""

    signal: str
    name: str  # of its entry; empty: the messages have one
    field: str
    status: str = ''  # of an entry that is a message; 0: valid
    variance: str = ''  # of its noise
    # Stamps [ns], values and variances.
    rows: list[tuple[int, float, float]] = dataclasses.field(default_factory=list)


def read_recording(
    bag: str | Path,
    signals: Sequence[MeasuredSignal],
    namespace: str | None = None,
    events: Sequence[tuple[float, str]] = (),
    conditions: Mapping[str, float] | None = None,
) -> Recording:
    """Read a bag; events and conditions replace those of ``load``; a calendar begins at 0."""
    # Entries with a status other than 0, such as lost markers, are left out.
    known = {source.topic for signal in signals for source in signal.sources}
    topics = _topics(bag, {*known, _LOAD}, namespace)
    parts: dict[str, list[_Rows]] = {}
    for signal in signals:
        source = next((s for s in signal.sources if s.topic in topics), None)
        if source is not None:
            parts.setdefault(topics[source.topic], []).append(_rows_of(signal, source))
    if not parts:
        raise InputError(
            f'{bag} has no signal of the machine, allowed: a topic that ends with one of'
            f' {", ".join(sorted(known))}; record sensors (sensors:=typical, or drivers)'
        )
    load = _Rows('mass', '', 'inertia.m')
    heard = parts | ({topics[_LOAD]: [load]} if _LOAD in topics else {})
    for topic, _, message in read_bag(bag, list(heard)):
        _add(heard[topic], topic, message)
    every = [one for own in parts.values() for one in own if one.rows]
    first = min((one.rows[0][0] for one in every), default=0)
    # Of a calendar: the recording's times begin at 0.
    start = first if is_wall_clock(first) else 0
    found = {}
    for one in every:
        times, values, variances = (np.array(part) for part in zip(*one.rows, strict=True))
        found[one.signal] = Signal((times - start) / _SECOND, values, np.sqrt(variances))
    changes = [((time - start) / _SECOND, mass) for time, mass, _ in load.rows]
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
        {signal.name: found[signal.name] for signal in signals if signal.name in found},
        tuple(events) or seen,
        {**carried, **(conditions or {})},
    )


def _topics(bag: str | Path, known: set[str], wanted: str | None) -> dict[str, str]:
    """Return the full name of each known topic that a bag contains in a namespace."""
    with open_bag(bag) as opened:
        full = list(opened.topics)
    found: dict[str, list[str]] = {}
    for name in full:
        # The longest: /a/sensors/strain is sensors/strain in /a, not strain in /a/sensors.
        topic = max((one for one in known if name.endswith('/' + one)), key=len, default='')
        namespace = name.removesuffix('/' + topic)
        if topic and (wanted is None or namespace.strip('/') == wanted.strip('/')):
            found.setdefault(topic, []).append(name)
    for topic, names in found.items():
        if len(names) > 1:
            raise InputError(
                f'{bag} has {topic} {len(names)} times: {", ".join(sorted(names))}; give the'
                ' namespace'
            )
    return {topic: names[0] for topic, names in found.items()}


def _rows_of(signal: MeasuredSignal, source: Source) -> _Rows:
    """Return the place of a signal in the messages of a topic."""
    head, dot, tail = source.field.partition('.')
    if not source.name:
        return _Rows(signal.name, '', source.field)
    entry = f'{head}[{source.name}]'
    if not dot:
        return _Rows(signal.name, source.name, entry)
    of_list, _, variance = signal.deviation.partition('.')
    noise = f'{entry}.{variance}' if of_list == head else ''
    return _Rows(signal.name, source.name, f'{entry}.{tail}', f'{entry}.status', noise)


def _add(every: Sequence[_Rows], topic: str, message: Any) -> None:
    """Read the signals of a message."""
    stamp = message.header.stamp
    time = int(stamp.sec) * _SECOND + int(stamp.nanosec)
    names = getattr(message, 'name', None)
    for rows in every:
        if names is not None and rows.name:
            check_has(topic, [rows.name], names, '; give the machine file of the recording')
        value, variance = read_field(message, rows.field), None
        if rows.status:
            if value is None or not np.isfinite(value) or read_field(message, rows.status):
                continue
            variance = read_field(message, rows.variance) if rows.variance else None
        value, variance = (np.nan if one is None else one for one in (value, variance))
        before, last, _ = rows.rows[-1] if rows.rows else (None, 0.0, 0.0)
        # The same message twice, as of a plant that is paused, counts once.
        if time != before or not (value == last or np.isnan(value)):
            rows.rows.append((time, value, variance))
