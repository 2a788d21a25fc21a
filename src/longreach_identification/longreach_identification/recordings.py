"""Recordings of a machine: signals from CSV files, and checks of any recording."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError, check_among, check_distinct, check_has
from longreach_dynamics.tables import read_table
from longreach_identification.machine import MeasuredSignal, Recording, Signal, matches

TIME = 'time'
# By SI unit others: the factor to it, and what is added then. A gauge pressure is relative to that
# of the air.
UNITS: dict[str, dict[str, tuple[float, float]]] = {
    'Pa': {
        'bar': (1e5, 0.0), 'barg': (1e5, 101325.0), 'mbar': (1e2, 0.0), 'kPa': (1e3, 0.0),
        'MPa': (1e6, 0.0), 'psi': (6894.757293168, 0.0), 'psig': (6894.757293168, 101325.0),
    },
    'm': {'mm': (1e-3, 0.0), 'cm': (1e-2, 0.0), 'um': (1e-6, 0.0)},
    'rad': {'deg': (np.pi / 180.0, 0.0)},
    '1': {'um/m': (1e-6, 0.0), 'mm/m': (1e-3, 0.0), 'percent': (1e-2, 0.0)},
    's': {'ms': (1e-3, 0.0), 'us': (1e-6, 0.0), 'ns': (1e-9, 0.0), 'min': (60.0, 0.0)},
}  # fmt: skip
_NUMBER = re.compile(r'[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?')
# At the end of the name of a signal that is there more than once.
_NUMBERED = re.compile(r'_\d+$')
_FEWEST_ROWS = 10


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
    known = {TIME: 's', **{entry.name: entry.unit for entry in signals}}
    found: dict[str, _Column] = {}
    for entry in entries:
        name, equal, column = (part.strip() for part in entry.partition('='))
        if not equal or not column:
            raise InputError(f'column map {entry!r}, allowed: SIGNAL=COLUMN or SIGNAL=COLUMN:UNIT')
        check_among(f'column map {entry!r}: signal', name, known)
        if name in found:
            raise InputError(f'column map {entry!r}: {name} is given twice')
        head, colon, unit = (part.strip() for part in column.rpartition(':'))
        units = {known[name]: (1.0, 0.0), **UNITS.get(known[name], {})}
        if colon and unit in units:
            found[name] = _Column(head, *units[unit])
        elif colon and _NUMBER.fullmatch(unit) and float(unit) != 0.0:
            found[name] = _Column(head, float(unit))
        elif colon and unit:
            # A misspelt unit would be looked for as a part of the column's name.
            raise InputError(
                f'column map {entry!r}: unit {unit!r}, allowed: a factor, {", ".join(units)}; for'
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
    known, wanted.signals = wanted | {entry.name for entry in signals}, chosen
    table = read_table(file, clock.name, wanted, gaps=True)
    check_has(str(file), (chosen[n].name for n in columns or {} if n != TIME), table)
    for column in table:
        of = [name for name, own in chosen.items() if own.name == column]
        if len(of) > 1:
            raise InputError(
                f'{file}: column {column} is for {" and ".join(of)}, allowed: for one of them; say'
                ' where the other is, --column SIGNAL=COLUMN'
            )
    times = clock.of(table)
    found = {n: signal(times, c.of(table)) for n, c in chosen.items() if c.name in table}
    beyond = [name for name in table if name not in known and name != clock.name]
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
    """Raise InputError for a unit, clock, name or values that no recording may have."""
    check_distinct('one of the recordings', [recording.name for recording in recordings])
    known = {entry.name: entry for entry in signals}
    for recording in recordings:
        for name, shown in recording.signals.items():
            what = f'{name} in {recording.name}'
            _check_clock(what, shown.times)
            finite = shown.values[np.isfinite(shown.values)]
            if not finite.size:
                raise InputError(f'{what} has no finite value; leave this signal out')
            if name not in known:
                continue
            (low, high), least = known[name].limits, known[name].least
            if not (low <= finite.min() and max(low, least) <= finite.max() <= high):
                once = f', once {least:g} or more' if least > low else ''
                raise InputError(
                    f'{what} goes from {finite.min():.4g} to {finite.max():.4g}'
                    f' {known[name].unit}, allowed: {low:g} to {high:g}{once}; is its unit'
                    f' right, and its sign? Of a CSV file: --column {name}=COLUMN:UNIT or :FACTOR'
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
