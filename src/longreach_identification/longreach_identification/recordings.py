"""Recordings of a machine: from CSV files and ROS 2 bags, and checks of any recording."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_dynamics.runs import Source
from longreach_dynamics.tables import read_table
from longreach_identification.machine import MeasuredSignal, Recording, Signal, matches

TIME = 'time'
# Factor to the SI unit, and what is added then. A gauge pressure is relative to that of the air.
UNITS: dict[str, tuple[float, float]] = {
    'bar': (1e5, 0.0), 'barg': (1e5, 101325.0), 'mbar': (1e2, 0.0), 'kPa': (1e3, 0.0),
    'MPa': (1e6, 0.0), 'psi': (6894.757293168, 0.0), 'psig': (6894.757293168, 101325.0),
    'mm': (1e-3, 0.0), 'cm': (1e-2, 0.0), 'um': (1e-6, 0.0), 'deg': (np.pi / 180.0, 0.0),
    'um/m': (1e-6, 0.0), 'mm/m': (1e-3, 0.0), 'percent': (1e-2, 0.0), 'ms': (1e-3, 0.0),
    'us': (1e-6, 0.0), 'ns': (1e-9, 0.0), 'min': (60.0, 0.0),
}  # fmt: skip
_NUMBER = re.compile(r'[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?')
# At the end of the name of a signal that is there more than once.
_NUMBERED = re.compile(r'_\d+$')
_FEWEST_ROWS = 10
_SECOND = 1_000_000_000  # [ns]
_LOAD = 'load'


class _Column(NamedTuple):
    """A column of a file for one signal."""

    name: str
    factor: float = 1.0
    offset: float = 0.0

    def of(self, table: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return its values in the SI unit."""
        return table[self.name] * self.factor + self.offset


ColumnMap = Mapping[str, _Column]


class _Wanted(set[str]):
    """Columns that are read; of numbered ``signals`` those of a larger machine, too."""

    signals: Iterable[str] = ()

    def __contains__(self, name: object, /) -> bool:
        """Return whether a column is read."""
        family = _NUMBERED.sub('', str(name))
        larger = family != name and family in {_NUMBERED.sub('', one) for one in self.signals}
        return larger or super().__contains__(name)


def column_map(entries: Iterable[str], signals: Sequence[MeasuredSignal]) -> ColumnMap:
    """
    Return which column of a file holds which signal of a machine.

    Entries are ``SIGNAL=COLUMN`` or ``SIGNAL=COLUMN:UNIT``, with a unit of :data:`UNITS` or the
    factor to the SI unit, such as ``p_head_1=boom up:barg``, ``piston_1=s1:mm``, ``time=t:ms``.
    InputError for an entry that is none, an unknown signal, or one that is given twice.
    """
    known = [TIME, *(entry.name for entry in signals)]
    found: dict[str, _Column] = {}
    for entry in entries:
        name, equal, column = (part.strip() for part in entry.partition('='))
        if not equal or not column:
            raise InputError(f'column map {entry!r}, allowed: SIGNAL=COLUMN or SIGNAL=COLUMN:UNIT')
        if name not in known:
            raise InputError(f'column map {entry!r}: signal {name!r}, allowed: {", ".join(known)}')
        if name in found:
            raise InputError(f'column map {entry!r}: {name} is given twice')
        head, colon, unit = (part.strip() for part in column.rpartition(':'))
        if colon and unit in UNITS:
            found[name] = _Column(head, *UNITS[unit])
        elif colon and _NUMBER.fullmatch(unit) and float(unit) != 0.0:
            found[name] = _Column(head, float(unit))
        elif colon and unit:
            # A misspelt unit would be looked for as a part of the column's name.
            raise InputError(
                f'column map {entry!r}: unit {unit!r}, allowed: a factor, {", ".join(UNITS)}; for'
                ' a column with a colon in its name, and SI units, end with a colon'
            )
        else:
            found[name] = _Column(head if colon else column)
    return found


def read_csv(
    file: str | Path,
    signals: Sequence[MeasuredSignal],
    columns: ColumnMap | None = None,
    events: Sequence[tuple[float, str]] = (),
    conditions: Mapping[str, float] | None = None,
) -> Recording:
    """
    Read a recording of a machine from a CSV file.

    The file has a head line of names and rows of numbers, see
    :func:`longreach_dynamics.tables.read_table`; an empty cell, or NaN, is a missing value.
    ``columns`` is that of :func:`column_map`; signals that it lacks are columns of their own name.
    ``events`` and ``conditions`` are those of the recording. InputError for a file that is no
    table, and columns that are missing or contain no number.
    """
    chosen = {name: _Column(name) for name in (TIME, *(entry.name for entry in signals))}
    chosen |= dict(columns or {})
    clock = chosen.pop(TIME)
    wanted = _Wanted(column.name for column in chosen.values())
    own, wanted.signals = set(wanted), chosen
    table = read_table(file, clock.name, wanted, gaps=True)
    for name in columns or {}:
        if name != TIME and chosen[name].name not in table:
            raise InputError(
                f'{file}: column {chosen[name].name} for {name} is missing, found:'
                f' {", ".join(table)}'
            )
    times = clock.of(table)
    found = {n: signal(times, c.of(table)) for n, c in chosen.items() if c.name in table}
    beyond = [name for name in table if name not in own and name != clock.name]
    if found and beyond:
        raise InputError(
            f'{file} has {", ".join(beyond)}, of which this machine has no part: is it the right'
            ' machine file? If so, leave these columns out'
        )
    if not found:
        names = ', '.join(entry.name for entry in signals)
        raise InputError(
            f'{file} has no signal of the machine, found: {", ".join(table)}; allowed: {names};'
            ' give a column map'
        )
    return Recording(Path(file).name, found, tuple(events), dict(conditions or {}))


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
    """
    Read a bag; events and conditions replace those of ``load``; times of a calendar begin at 0.

    Entries with a status other than 0, such as lost markers, are left out.
    """
    from longreach_tools.bag import is_wall_clock, read_bag

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
    from longreach_tools.bag import open_bag

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
    from longreach_tools.fields import read_field

    stamp = message.header.stamp
    time = int(stamp.sec) * _SECOND + int(stamp.nanosec)
    names = getattr(message, 'name', None)
    for rows in every:
        if names is not None and rows.name and rows.name not in names:
            raise InputError(
                f'{topic} has no {rows.name}, found: {", ".join(names)}; give the machine file of'
                ' the recording'
            )
        entries = getattr(message, rows.field.partition('[')[0]) if rows.status else ()
        if rows.status and all(entry.name != rows.name for entry in entries):
            # A name of digits would be read as an index.
            continue
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


def signal(times: np.ndarray, values: np.ndarray) -> Signal:
    """Return a signal (rows,) whose noise is unknown."""
    return Signal(times, values, np.broadcast_to(np.nan, times.shape))


def require(
    recording: Recording, needed: Sequence[Sequence[str]], signals: Sequence[MeasuredSignal]
) -> list[str]:
    """Return needed patterns, the first of alternatives of which all are there; InputError."""
    found = []
    for alternatives in needed:
        lacks = []
        for pattern in alternatives:
            wanted = [entry for entry in signals if matches(entry.name, [pattern])]
            missing = [entry for entry in wanted if entry.name not in recording.signals]
            if not missing:
                found.append(pattern)
                break
            topics = dict.fromkeys(s.topic for entry in missing for s in entry.sources)
            names = ', '.join(entry.name for entry in missing)
            lacks.append(f'{names} (topic {" or ".join(topics)}; in a CSV file: columns)')
        else:
            raise InputError(
                f'{recording.name} lacks {"; or instead ".join(lacks)}; found:'
                f' {", ".join(recording.signals) or "no signal"}'
            )
    return found


def check_finite(recording: Recording, patterns: Sequence[str]) -> None:
    """Raise InputError for signals of some patterns with values that are not finite."""
    for name, (times, values, _) in recording.signals.items():
        bad = times[~np.isfinite(values)]
        if bad.size and matches(name, patterns):
            raise InputError(
                f'{name} in {recording.name} is not finite in {bad.size} of {len(values)} rows,'
                f' from {bad[0]:.6g} s to {bad[-1]:.6g} s, allowed: numbers; cut the recording, or'
                ' leave this signal out'
            )


def check_recordings(recordings: Sequence[Recording], signals: Sequence[MeasuredSignal]) -> None:
    """
    Raise InputError for what no recording may have.

    A wrong unit, no finite value, a clock that stands or jumps back, a name or values of another.
    """
    names = [recording.name for recording in recordings]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(
            f'recordings have the names {", ".join(twice)} twice, allowed: no two alike; rename'
            ' one'
        )
    known = {entry.name: entry for entry in signals}
    for recording in recordings:
        for name, shown in recording.signals.items():
            what = f'{name} in {recording.name}'
            _check_clock(what, shown.times)
            finite = np.abs(shown.values[np.isfinite(shown.values)])
            if not finite.size:
                raise InputError(f'{what} has no finite value; leave this signal out')
            low, high = known[name].sizes if name in known else (0.0, np.inf)
            if not low <= finite.max() <= high:
                raise InputError(
                    f'{what} is at most {finite.max():.4g} {known[name].unit} in magnitude,'
                    f' allowed: {low:g} to {high:g}; is its unit right? A unit of a CSV file is'
                    f' given by --column {name}=COLUMN:UNIT'
                )
    for one, other in itertools.combinations(recordings, 2):
        both = [name for name in one.signals if name in other.signals]
        if both and all(_are_same(one.signals[n], other.signals[n]) for n in both):
            raise InputError(
                f'{one.name} and {other.name} have the same values: one recording would count'
                ' twice; give it once'
            )


def _are_same(one: Signal, other: Signal) -> bool:
    """Return whether signals have the same values, or one is a part of the other."""
    _, first, second = np.intersect1d(one.times, other.times, return_indices=True)
    pairs = [(one.values, other.values)]
    if len(first) >= _FEWEST_ROWS:
        pairs.append((one.values[first], other.values[second]))
    return any(np.array_equal(*pair, equal_nan=True) for pair in pairs)


def _check_clock(what: str, times: np.ndarray) -> None:
    """Raise InputError when times stand or jump back."""
    if not np.isfinite(times).all():
        raise InputError(f'the clock of {what} is not finite in some rows, allowed: seconds')
    steps = np.diff(times)
    back = np.flatnonzero(steps < 0.0)
    if back.size:
        k = int(back[0])
        raise InputError(
            f'the clock of {what} jumps back {back.size} times, first from {times[k]:.6g} s to'
            f' {times[k + 1]:.6g} s, allowed: times that rise; was the simulation reset, or the'
            ' clock set? Split the recording there'
        )
    still = np.flatnonzero(steps == 0.0)
    if still.size:
        raise InputError(
            f'the clock of {what} stands in {still.size} rows, first at {times[still[0]]:.6g} s,'
            ' allowed: times that rise; are messages stamped when they are published?'
        )
