"""
Runs: tables of observed quantities over time, with names, units and where messages hold them.

A machine declares each quantity once, as a :class:`Column`. Heads of CSV files, tables in
documents, the reading of recordings, comparisons and labels in figures follow from that. A
:class:`Run` is such a table with the parameters that gave it; one that had to end early keeps its
rows up to there, and its message says why and what to do.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from tqdm import tqdm

from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.stepping import IntegrationError
from longreach_dynamics.tables import for_json
from longreach_machine.machine import (
    BY_SCENARIO,
    HydraulicSample,
    by_scenario,
    closed_loop,
    sample_counts,
    step_time,
)

Parameters = TypeVar('Parameters')

# Most steps in one call of compiled code, a fraction of a second: an interrupt is handled between.
_PIECE = 20_000
# Entries after the end of a run that its warning names.
_NAMED = 3
# Topics that show a machine: its method, and what that returns after the names.
_SAMPLES = {
    'joint_states': ('joint_sample', 'position', 'velocity', 'effort'),
    'hydraulics': ('hydraulic_sample', *HydraulicSample._fields[1:]),
}

# Units of figures for those of tables.
_FACTORS = {
    ('rad', 'deg'): math.degrees(1.0),
    ('rad/s', 'deg/s'): math.degrees(1.0),
    ('rad/s^2', 'deg/s^2'): math.degrees(1.0),
    ('N', 'kN'): 1e-3,
    ('Pa', 'bar'): 1e-5,
    ('m', 'mm'): 1e3,
    ('s', 'ms'): 1e3,
    ('m^3/s', 'l/min'): 6e4,
    ('1', '1e-6'): 1e6,
}


class Source(NamedTuple):
    """Where a recording holds a quantity, in the unit of its column."""

    topic: str  # relative to the machine's namespace
    field: str  # such as position, or wrench.force.x; of a list with names the field of an entry
    name: str = ''  # of the entry, in messages that name their entries


def sources(topic: str, names: Sequence[str]) -> Callable[..., list[Source]]:
    """Return a function of a field, and of other names, that says where recordings hold it."""

    def of(field: str, names: Sequence[str] = names) -> list[Source]:
        return [Source(topic, field, name) for name in names]

    return of


class Derived(NamedTuple):
    """A quantity that follows from recorded ones."""

    sources: tuple[Source, ...]
    function: Callable[[np.ndarray], np.ndarray]  # (rows, sources) -> (rows,)


@dataclasses.dataclass(frozen=True)
class Column:
    """
    An observed quantity; ``unit`` in SI, '1' for a plain number, empty for a code or a flag.

    ``meaning`` is for documents, ``source`` the message field in a recording, None: not recorded.
    ``family`` is the common name of similar columns in documents, such as ``phi_i``; empty: the
    name. InputError for a unit of figures, such as deg.
    """

    name: str
    unit: str = ''
    meaning: str = ''
    source: Source | Derived | None = None
    family: str = ''

    def __post_init__(self) -> None:
        """Check the unit: messages and figures take it for SI."""
        if si := [unit for unit, shown in _FACTORS if shown == self.unit]:
            raise InputError(
                f'column {self.name} in {self.unit!r}, allowed: {si[0]}; figures convert'
            )

    @property
    def sources(self) -> tuple[Source, ...]:
        """Where a recording holds what it is made of; none: it is not recorded."""
        if isinstance(self.source, Derived):
            return self.source.sources
        return () if self.source is None else (self.source,)

    def of(self, values: np.ndarray) -> np.ndarray:
        """Return the column (rows,) of values of its :attr:`sources` (rows, sources)."""
        return self.source.function(values) if isinstance(self.source, Derived) else values[:, 0]


def each(
    family: str,
    keys: Iterable[object],
    unit: str,
    meaning: str,
    sources: Iterable[Source | Derived] = (),
    mark: str = '*',
) -> list[Column]:
    """
    Return one column for each key of several parts, with its source if there are any.

    ``family`` is the name of all, in which ``mark`` stands for a key, such as ``force_*``.
    """
    head, _, tail = family.rpartition(mark)
    return [
        Column(f'{head}{key}{tail}', unit, meaning, source, family)
        for key, source in itertools.zip_longest(keys, sources)
    ]


class Columns(tuple[Column, ...]):
    """Columns of a table in their order; the first one is time [s]."""

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all, the head of a CSV file."""
        return tuple(column.name for column in self)

    @functools.cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    @property
    def recorded(self) -> Columns:
        """Those that messages hold, and time."""
        return Columns((self[0], *(column for column in self[1:] if column.source)))

    def place(self, name: str) -> int:
        """Return where a column is; InputError for a name that is none."""
        try:
            return self._places[name]
        except KeyError:
            raise InputError(f'column = {name!r}, allowed: {", ".join(self.names)}') from None

    def unit(self, name: str) -> str:
        """Return the unit of a column."""
        return self[self.place(name)].unit


def convert(values: np.ndarray, unit: str, shown: str) -> np.ndarray:
    """Return values in another unit; InputError for one into which these are not converted."""
    if shown in ('', unit):
        return values
    if (unit, shown) not in _FACTORS:
        allowed = ', '.join(to for of, to in _FACTORS if of == unit)
        raise InputError(f'unit = {shown!r}, allowed for {unit!r}: {unit}, {allowed}')
    return values * _FACTORS[unit, shown]


class PartialRunError(IntegrationError):
    """
    An integration that cannot go on.

    ``recorded`` are the tables of rows up to there; ``state`` is the last one, None: not known.
    """

    def __init__(self, message: str, *recorded: np.ndarray, state: Any = None) -> None:
        super().__init__(message)
        self.recorded, self.state = recorded, state


class Record(NamedTuple):
    """Rows of a run from time 0 on, see :func:`record`."""

    times: np.ndarray  # (rows,) [s]
    tables: tuple[np.ndarray, ...]  # (rows, ...)
    state: Any  # of the machine at the end; of a run that ended early, maybe some rows before
    message: str  # why the run ended early, or ''


def record(
    machine: Any,
    state: Any,
    first: Sequence[np.ndarray],
    samples: int,
    every: int,
    *,
    command: Callable[[int, Any], Any] | None = None,
    ended: Callable[[Any], bool] | None = None,
    progress: bool = False,
) -> Record:
    """
    Record a run of a machine whose compiled code takes many steps at once.

    The machine has ``step`` [s], and ``advance_recorded(state, command, first step, steps,
    every)``, which returns the state and its tables of every ``every``-th step, or raises
    PartialRunError. ``first`` has the row of time 0 of each table; ``samples`` rows follow, of
    ``every`` steps each. ``command`` returns one from the number of a sample and the state; by
    default the machine follows its scenario. ``ended`` tells from the state after each row whether
    the run ends there. ``progress`` shows a bar on stderr, on a terminal and for more than 1 s.
    """
    message = ''
    parts: list[list[np.ndarray]] = [[row[None]] for row in first]
    piece = 1 if command or ended else max(1, _PIECE // every)
    # None for tqdm: only on a terminal.
    with tqdm(total=samples, disable=None if progress else True, delay=1.0, unit='row') as bar:
        for sample in range(0, samples, piece):
            given = command(sample, state) if command else BY_SCENARIO
            steps = every * min(piece, samples - sample)
            try:
                state, *tables = machine.advance_recorded(
                    state, given, sample * every, steps, every
                )
            except PartialRunError as error:
                message, tables = str(error), list(error.recorded)
                state = state if error.state is None else error.state
            for part, table in zip(parts, tables, strict=True):
                part.append(table)
            bar.update(len(tables[0]))
            if message or (ended and ended(state)):
                break
    found = tuple(np.concatenate(part) for part in parts)
    times = np.array([step_time(k * every, machine.step) for k in range(len(found[0]))])
    return Record(times, found, state, message)


def sampled(machine: Any, columns: Columns, duration: float) -> tuple[np.ndarray, str]:
    """
    Return the table of a run by the machine's scenario, and why it ended early, or ''.

    There is a row for each of the machine's steps, and a column for each that recordings have,
    taken from where messages have it: what ``joint_sample`` and ``hydraulic_sample`` return.
    InputError when the duration [s] is no whole number of steps.
    """
    columns = columns.recorded
    _, samples = sample_counts(duration, machine.step, machine.step, len(columns))
    topics = sorted({source.topic for column in columns for source in column.sources})

    def shown(state: Any) -> list[Any]:
        return [getattr(machine, _SAMPLES[topic][0])(state, BY_SCENARIO) for topic in topics]

    places: dict[Source, int] = {}
    for topic, (names, *parts) in zip(topics, shown(machine.initial_state()), strict=True):
        for field, part in zip(_SAMPLES[topic][1:], parts, strict=True):
            for name, _ in zip(names, part, strict=False):
                places[Source(topic, field, name)] = len(places) + 1
    rows, message = [], ''
    try:
        for cycle in closed_loop(machine, by_scenario, samples, machine.step):
            found = [part for _, *parts in shown(cycle.state) for part in parts]
            rows.append((cycle.time, *itertools.chain(*found)))
    except LongreachError as error:
        message = str(error)
    table = np.array(rows)
    values = [column.of(table[:, [places[s] for s in column.sources]]) for column in columns[1:]]
    return np.column_stack((table[:, 0], *values)), message


@dataclasses.dataclass(frozen=True)
class Run(Generic[Parameters]):
    """
    A simulated or recorded run: parameters of the machine, columns, and table (rows, columns).

    ``message``: why the run ended early and what to do; empty for a complete one. ``late``: what
    the scenario has after its end. InputError for a table of another width, and for columns of
    one name.
    """

    UNITS: ClassVar[Mapping[str, str]] = {'duration': 's'}
    """Unit of each quantity of :meth:`summary` that has one."""

    parameters: Parameters
    columns: Columns
    table: np.ndarray
    message: str = dataclasses.field(default='', kw_only=True)
    late: tuple[str, ...] = dataclasses.field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        """Check that each column of the table has a name of its own."""
        names = self.columns.names
        if self.table.ndim != 2 or not self.table.shape[1] == len(names) == len({*names}):
            raise InputError(
                f'table of the shape {self.table.shape} with the {len(names)} columns'
                f' {", ".join(names)}, allowed: (rows, {len(names)}) and different names; give the'
                ' table a column for each that is declared'
            )

    @property
    def status(self) -> str:
        """Whether the run is ``complete``, or ``failed`` before its end."""
        return 'failed' if self.message else 'complete'

    def column(self, name: str, unit: str = '') -> np.ndarray:
        """Return one column (rows,), by default in its own unit; InputError for an unknown one."""
        place = self.columns.place(name)
        return convert(self.table[:, place], self.columns[place].unit, unit)

    def stack(self, names: Sequence[str]) -> np.ndarray:
        """Return columns side by side, shape (rows, names)."""
        return self.table[:, [self.columns.place(name) for name in names]]

    def sample_time(self, step: float) -> float:
        """
        Return the shortest interval of rows in whole steps [s]; ``step`` for a single row.

        InputError when it is none.
        """
        times = self.column('time')
        interval = float(np.diff(times).min()) if len(times) > 1 else step
        whole = max(round(interval / step), 1) * step
        if abs(whole - interval) > 1e-6:
            raise InputError(
                f'samples every {interval:.6g} s, allowed: whole steps of {step:g} s, such as'
                f' {whole:g} s; the library has no samples in between'
            )
        return whole

    def summary(self) -> dict[str, Any]:
        """Return the main results as plain numbers; None for a run without rows."""
        return {'duration': float(self.column('time')[-1]) if len(self.table) else None}

    def shown(self) -> dict[str, Any]:
        """Return the summary for people."""
        return self.summary()

    def warnings(self) -> tuple[str, ...]:
        """Return warnings about the run, one line each."""
        if not self.late:
            return ()
        more = f', and {len(self.late) - _NAMED} more' if len(self.late) > _NAMED else ''
        return (f'after the end of the run, not reached: {", ".join(self.late[:_NAMED])}{more}',)

    def report(self) -> dict[str, Any]:
        """Return the summary with units, status and message; None for non-finite values."""
        return {
            **for_json(self.summary()),
            'units': dict(self.UNITS),
            'status': self.status,
            'message': self.message,
        }

    def check(self) -> None:
        """Raise IntegrationError with the message of a run that failed."""
        if self.message:
            raise IntegrationError(self.message)


def compare_runs(recorded: Run[Any], expected: Run[Any], what: str = 'sample') -> dict[str, float]:
    """
    Return by how much a recorded run differs from the library's, which has all of its columns.

    Instants are the same when they agree to a microsecond; a run that is longer than the other is
    compared as far as that goes. Returns the largest absolute difference of each recorded column
    but time and, named after the last word of ``what``, the term for a row, ``samples_compared``
    and ``samples_missing``: rows that both have, and that one lacks. InputError when there is no
    instant in common.
    """
    names = recorded.columns.names
    tables = [recorded.table, expected.stack(names)]
    end = min(table[-1, 0] for table in tables) + 1e-9
    one, other = (table[table[:, 0] <= end] for table in tables)
    instants = (np.round(table[:, 0] * 1e6).astype(int) for table in (one, other))
    _, rows, expected_rows = np.intersect1d(*instants, return_indices=True)
    if rows.size == 0:
        raise InputError(f'the recording and the scenario have no {what} in common')
    largest = np.abs(one[rows] - other[expected_rows]).max(axis=0)
    counted = what.split()[-1]
    return {
        **dict(zip(names[1:], largest[1:].tolist(), strict=True)),
        f'{counted}s_compared': rows.size,
        f'{counted}s_missing': max(len(one), len(other)) - rows.size,
    }
