"""
The subcommand ``sweep`` of a machine: runs for many values of parameters.

Finished runs can be written to a folder as they come, from which a stopped sweep is continued.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import itertools
import math
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError, LongreachError, check_distinct
from longreach_dynamics.parallel import each_outcome
from longreach_tools.arguments import check_unused, count, finite, names
from longreach_tools.options import add_results, add_workers
from longreach_tools.output import (
    figure,
    locked_directory,
    print_result,
    report_study,
    table,
    writing,
)

_MOST_RUNS = 10_000_000
# Combinations of the ends of ranges that are checked before the first run.
_MOST_ENDS = 1000
# Above, results are in a folder, and only their number is printed.
_MOST_SHOWN = 100_000
_MESSAGE, _WARNINGS, _BETWEEN = 'message', 'warnings', ' | '
# A file of results is written after so many runs, numbers of time series, or seconds (or 1 % of
# the time of the sweep).
_ROWS, _NUMBERS, _SECONDS = 20_000, 4_000_000, 10.0
# So many different messages are printed.
_MOST_LINES = 20
_CHANGED = (
    'the files or the code of the machine and its scenario have changed during the sweep; repeat'
    ' it: a folder of --results has the runs of before'
)


class Measured(NamedTuple):
    """Results of one run of a sweep."""

    numbers: tuple[float, ...]  # NaN where it has none
    message: str = ''  # why it failed; empty for a complete run
    warnings: tuple[str, ...] = ()
    killed: bool = False  # with its process: no result of the run
    series: tuple[np.ndarray, ...] = ()  # the columns of --series, (rows,) each


Job = Any


# --- arguments ------------------------------------------------------------------------------


def add_design(parser: argparse.ArgumentParser, example: str) -> None:
    """Add parameters with their ranges, and how the runs are made and written."""
    parser.add_argument(
        'ranges',
        metavar='PARAMETER START:STOP:COUNT',
        nargs='+',
        help=f'one or more parameters of the machine or, as scenario.NAME, of the scenario, for'
        f' example {example}, with COUNT values each; all combinations are run',
    )
    parser.add_argument(
        '--samples',
        metavar='N',
        type=count(_MOST_RUNS),
        help='N points of a Latin hypercube between START and STOP instead of a grid',
    )
    parser.add_argument('--seed', help='of --samples (default: 0)')
    add_workers(parser)
    parser.add_argument(
        '--results',
        help='folder of Parquet files, one row for each run, written as they finish; a stopped'
        ' sweep is continued from it',
    )
    parser.add_argument(
        '--series',
        metavar='COLUMN,COLUMN,..',
        type=names,
        default=(),
        help='columns of the runs over time, which --results gets, too',
    )
    add_results(parser, 'one row for each run', 'the measured quantities over the parameters')


def design_of(
    arguments: argparse.Namespace, place_of: Callable[[str], object] = str
) -> tuple[tuple[str, ...], np.ndarray]:
    """Return names and values (runs, parameters); two names of one place are refused."""
    words = arguments.ranges
    if len(words) % 2:
        raise InputError(
            f'{" ".join(words)}: allowed are pairs of a parameter and START:STOP:COUNT'
        )
    swept = tuple(words[::2])
    meant = {place_of(path) for path in swept}
    if len(meant) < len(swept):
        raise InputError(f'parameters = {", ".join(swept)}, allowed: each of them once')
    for text in getattr(arguments, 'set', ()):
        path = text.partition('=')[0]
        if place_of(path) in meant:
            raise InputError(
                f'--set {text}: {path} is swept; give its range only, or its value only'
            )
    ranges = [_range(text) for text in words[1::2]]
    gridded = arguments.samples is None
    for (*_, number), text in zip(ranges, words[1::2], strict=True):
        if gridded is not bool(number):
            word, end = ('without', ':COUNT') if gridded else ('with', '')
            raise InputError(f'{text}, allowed {word} --samples: START:STOP{end}')
    if not gridded:
        # Each of the N equal parts of each range has one point, at a random place in it.
        generator = np.random.default_rng(arguments.seed or 0)
        places = generator.permuted(
            np.tile(np.arange(arguments.samples), (len(swept), 1)), axis=1
        ).T
        shares = (places + generator.random(places.shape)) / arguments.samples
        start, stop = np.array([one[:2] for one in ranges]).T
        return swept, start + (stop - start) * shares
    check_unused(arguments, 'with --samples', 'seed')
    total = math.prod(number for *_, number in ranges)
    if total > _MOST_RUNS:
        raise InputError(f'{total} runs, allowed: up to {_MOST_RUNS}')
    steps = np.meshgrid(*map(_grid, ranges), indexing='ij')
    return swept, np.column_stack([one.ravel() for one in steps])


def _range(text: str) -> tuple[float, float, int]:
    """Read START:STOP:COUNT; without COUNT it is 0."""
    try:
        start, stop, *number = text.split(':')
        (most,) = [count(_MOST_RUNS)(one) for one in number] or [0]
        ends = finite(start), finite(stop)
        finite(str(ends[1] - ends[0]))
    except (ValueError, argparse.ArgumentTypeError) as error:
        raise InputError(
            f'{text!r}, allowed: START:STOP:COUNT such as -5:85:19, COUNT from 1 to {_MOST_RUNS}'
        ) from error
    if most != 1 and len(np.unique(_grid((*ends, most or 2)))) < (most or 2):
        raise InputError(f'{text}, allowed: different values; --set NAME=VALUE sets a single one')
    return *ends, most


def _grid(one: tuple[float, float, int]) -> np.ndarray:
    """Return the values of START:STOP:COUNT; those that two COUNTs share are the same numbers."""
    start, stop, number = one
    values = np.linspace(start, stop, number)
    digits = 12 - math.floor(math.log10(max(abs(start), abs(stop)) or 1.0))
    # 1e309 is infinite.
    values[1:-1] = np.round(values[1:-1], min(digits, 308))
    return values


# --- results on disk ------------------------------------------------------------------------


class Results:
    """Finished runs in a folder of Parquet files; ``key_of``: of all but the design, now."""

    def __init__(
        self,
        folder: Path,
        swept: Sequence[str],
        design: np.ndarray,
        units: Mapping[str, str],
        series: Mapping[str, str],
        key_of: Callable[[], str],
    ) -> None:
        if folder.suffix not in ('', '.parquet') or folder.is_file():
            raise InputError(
                f'--results {folder}, allowed: a folder, such as out/{folder.stem}.parquet; --csv'
                ' writes a table of few runs'
            )
        import pyarrow as pa
        from pyarrow import parquet

        self._pa, self._parquet = pa, parquet
        self.folder, self._design, self._size = folder, design, len(swept)
        keys = _as_bytes(design)
        self._order = np.argsort(keys)
        self._sorted = keys[self._order]
        self._numbers = [*swept, *units]
        columns = [*self._numbers, _MESSAGE, _WARNINGS, *series]
        number, text = pa.float64(), pa.string()
        units = {**units, **series}
        kinds = [number] * len(self._numbers) + [text] * 2 + [pa.list_(number)] * len(series)
        fields = [
            pa.field(name, kind, metadata={'unit': units.get(name, '')})
            for name, kind in zip(columns, kinds, strict=True)
        ]
        self._key_of, self._key = key_of, key_of()
        self._schema = pa.schema(fields, metadata={'longreach': self._key})
        self._rows: list[tuple[int, Measured]] = []
        self._waiting = 0

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """Lock the folder, check the files that are there, and write what is added."""
        with locked_directory(self.folder):
            self._begun = self._written = time.monotonic()
            for file in self._files():
                self._check(file)
            try:
                yield
            finally:
                self.write()

    def add(self, number: int, one: Measured) -> None:
        """Add a run of the design; it is on disk some seconds later, or at the end."""
        self._rows.append((number, one))
        self._waiting += sum(map(len, one.series))
        now = time.monotonic()
        pause = max(_SECONDS, 0.01 * (now - self._begun))
        if len(self._rows) >= _ROWS or self._waiting > _NUMBERS or now > self._written + pause:
            self.write()

    def earlier(self) -> Iterator[tuple[int, Measured]]:
        """Yield number and results of the design's runs that are there."""
        for file in self._files():
            found = self._parquet.read_table(file, columns=[*self._numbers, _MESSAGE, _WARNINGS])
            numbers = np.column_stack([found[name].to_numpy() for name in self._numbers])
            keys = _as_bytes(numbers[:, : self._size])
            places = np.searchsorted(self._sorted, keys).clip(max=len(self._sorted) - 1)
            rows = zip(
                (self._sorted[places] == keys).tolist(),
                self._order[places].tolist(),
                map(tuple, numbers[:, self._size :].tolist()),
                found[_MESSAGE].to_pylist(),
                found[_WARNINGS].to_pylist(),
                strict=True,
            )
            for is_own, k, results, message, warnings in rows:
                if is_own:
                    yield k, Measured(results, message, tuple(warnings.split(_BETWEEN)))

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob('part-*.parquet'))

    def _check(self, file: Path) -> None:
        """Raise InputError for a file that is not of this sweep."""
        try:
            schema = self._parquet.read_schema(file)
        except (self._pa.ArrowInvalid, OSError) as error:
            raise InputError(f'{file} is no Parquet file: {error}; give a new folder') from error
        if not schema.equals(self._schema):
            reason = f'has the columns {", ".join(schema.names)}'
        elif schema.metadata != self._schema.metadata:
            reason = 'is of other runs or other code'
        else:
            return
        raise InputError(
            f'{file} {reason}, allowed: the results of this sweep, with the same machine,'
            ' scenario, options, files and code; give a new folder'
        )

    def write(self) -> None:
        """Write a file of what is waiting."""
        if not self._rows:
            return
        if self._key_of() != self._key:
            self._rows = []
            raise InputError(_CHANGED)
        places, runs = zip(*self._rows, strict=True)
        numbers = np.column_stack([self._design[[*places]], [one.numbers for one in runs]])
        arrays = [
            *numbers.T,
            [one.message for one in runs],
            [_BETWEEN.join(one.warnings) for one in runs],
            *([one.series[k] if one.series else None for one in runs]
              for k in range(len(self._schema) - numbers.shape[1] - 2)),
        ]  # fmt: skip
        found = self._pa.table(
            [
                self._pa.array(one, kind)
                for one, kind in zip(arrays, self._schema.types, strict=True)
            ],
            schema=self._schema,
        )
        taken = [int(file.stem[5:]) for file in self._files() if file.stem[5:].isdecimal()]
        number = max(taken, default=-1) + 1
        with writing(self.folder / f'part-{number:06d}.parquet') as path:
            self._parquet.write_table(found, path)
        self._rows, self._waiting, self._written = [], 0, time.monotonic()


def _as_bytes(values: np.ndarray) -> np.ndarray:
    """Return rows (n, m) as one item each (n,), for exact comparison; -0 is 0."""
    rows = np.ascontiguousarray(values + 0.0)
    return rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()


# --- runs -----------------------------------------------------------------------------------


def run_sweep(
    machine: str,
    arguments: argparse.Namespace,
    swept: Sequence[str],
    design: np.ndarray,
    units: Mapping[str, str],
    job_of: Callable[[Mapping[str, float]], Job],
    measure: Callable[[Job], Measured],
    series: Mapping[str, str] | None = None,
) -> int:
    """Run and print a sweep; the ``repr`` of jobs shows all that a run depends on."""
    columns = [*swept, *units, _MESSAGE, _WARNINGS, *(series or ())]
    check_distinct('a column of the sweep', columns)
    if series and arguments.results is None:
        raise InputError('--series needs --results DIR, where time series are written')
    is_large = len(design) > _MOST_SHOWN
    if is_large and (arguments.results is None or arguments.csv or arguments.plot):
        raise InputError(
            f'{len(design)} runs, allowed: up to {_MOST_SHOWN}, or --results DIR without --csv and'
            ' --plot: pandas.read_parquet(DIR) reads it'
        )
    low, high = design.min(0).tolist(), design.max(0).tolist()
    ends = itertools.product(*zip(low, high, strict=True))
    for row in dict.fromkeys([*itertools.islice(ends, _MOST_ENDS), tuple(high)]):
        job_of(dict(zip(swept, row, strict=True)))
    # Without a folder a machine may be possible with swept values only.
    base = dict(zip(swept, low, strict=True)) if arguments.results is None else {}

    def key_of() -> str:
        # The addresses of objects are others in each process.
        text = re.sub(r' at 0x[0-9a-f]+', '', repr((job_of(base), sorted(series or ()))))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    key = key_of()
    found: dict[int, Measured] = {}
    said, done, failed = _Said(machine, swept), 0, 0
    missing = np.ones(len(design), dtype=bool)

    def note(k: int, one: Measured) -> None:
        nonlocal done, failed
        done, failed, missing[k] = done + 1, failed + bool(one.message), False
        if is_large:
            said.add(design[k], [one.message, *one.warnings])
        else:
            found[k] = one

    with contextlib.ExitStack() as stack:
        results = None
        if arguments.results is not None:
            results = Results(arguments.results, swept, design, units, series or {}, key_of)
            stack.enter_context(results.open())
            for k, one in results.earlier():
                note(k, one)
            if done:
                print(
                    f'longreach {machine}: {done} of {len(design)} runs are in'
                    f' {arguments.results}',
                    file=sys.stderr,
                )
        left = np.flatnonzero(missing)

        def lost(message: str) -> Measured:
            return Measured((math.nan,) * len(units), message, killed=True)

        stream = each_outcome(
            functools.partial(_run_one, job_of, measure, swept, len(units)),
            map(np.ndarray.tolist, design[left]),
            len(left),
            arguments.processes,
            cluster=arguments.cluster,
            lost=lost,
        )
        # Closed at the end of the block: an interruption may come between two outcomes.
        with contextlib.suppress(KeyboardInterrupt), contextlib.closing(stream):
            for number, one in stream:
                if len(one.numbers) != len(units):
                    raise InputError(
                        f'measure returns {len(one.numbers)} values, allowed: one for each of the'
                        f' results {", ".join(units)}'
                    )
                # The next sweep with this folder tries again what was killed.
                if results is not None and not one.killed:
                    results.add(int(left[number]), one)
                note(int(left[number]), one._replace(series=()))
        if results is not None:
            results.write()
        elif key_of() != key:
            raise InputError(_CHANGED)
    if is_large:
        where = f'pandas.read_parquet({str(arguments.results)!r})'
        text = f'{done} runs, {failed} failed; their results: {where}'
        print_result({'runs': done, 'failed': failed}, text, arguments.format)
    elif found:
        done_runs = [(design[k], one) for k, one in sorted(found.items())]
        _hand_out(arguments, swept, units, done_runs, said)
    said.print()
    if done < len(design):
        print(
            f'longreach {machine}: interrupted: {done} of {len(design)} runs are done',
            file=sys.stderr,
        )
        return 130
    return int(failed > 0)


def _run_one(
    job_of: Callable[[Mapping[str, float]], Job],
    measure: Callable[[Job], Measured],
    swept: Sequence[str],
    size: int,
    values: Sequence[float],
) -> Measured:
    """Make and run a job in a worker."""
    try:
        return measure(job_of(dict(zip(swept, values, strict=True))))
    except LongreachError as error:
        return Measured((math.nan,) * size, str(error))


class _Said:
    """Messages of runs, each of which is printed once."""

    def __init__(self, machine: str, swept: Sequence[str]) -> None:
        self._machine, self._swept = machine, swept
        self._lines: dict[str, tuple[str, int]] = {}
        self._more = 0

    def add(self, values: np.ndarray, lines: Sequence[str]) -> None:
        """Add the message and the warnings of a run."""
        for line in filter(None, lines):
            if line not in self._lines and len(self._lines) >= _MOST_LINES:
                self._more += 1
                continue
            pairs = zip(self._swept, values, strict=True)
            where, number = self._lines.get(line) or (
                ', '.join(f'{name} = {value:g}' for name, value in pairs), 0,
            )  # fmt: skip
            self._lines[line] = where, number + 1

    def print(self) -> None:
        """Print them on stderr."""
        for line, (where, number) in self._lines.items():
            more = f' and {number - 1} more runs' if number > 1 else ''
            print(f'longreach {self._machine}: {where}{more}: {line}', file=sys.stderr)
        if self._more:
            print(
                f'longreach {self._machine}: {self._more} other messages and warnings; --results'
                ' has all of them',
                file=sys.stderr,
            )


def _hand_out(
    arguments: argparse.Namespace,
    swept: Sequence[str],
    units: Mapping[str, str],
    done: Sequence[tuple[np.ndarray, Measured]],
    said: _Said,
) -> None:
    """Print and write the finished runs: values, results and messages."""
    columns = (*swept, *units)
    numbers = np.array([(*values, *one.numbers) for values, one in done])
    rows, cells = [], []
    for row, (_, one) in zip(numbers.tolist(), done, strict=True):
        known = [number if math.isfinite(number) else None for number in row]
        rows.append(dict(zip(columns, known, strict=True)) | {'message': one.message})
        shown = ['-' if number is None else number for number in known]
        cells.append((*shown, 'failed' if one.message else 'complete'))
    result = {'parameters': list(swept), 'units': dict(units), 'rows': rows}
    head = (*swept, *(f'{name} [{unit}]' for name, unit in units.items()), 'status')
    draw = functools.partial(_draw, names=swept, units=units, rows=numbers)
    report_study(arguments, result, table(head, cells), columns, numbers, draw)
    if not all(one.message for _, one in done):
        for name in _without_effect(swept, numbers):
            print(
                f'{name}: the results are the same for all its values; does the scenario set, or'
                ' the machine not use it?',
                file=sys.stderr,
            )
    for values, one in done:
        said.add(values, [one.message, *one.warnings])


def _without_effect(swept: Sequence[str], numbers: np.ndarray) -> list[str]:
    """Return parameters that change no result in rows of values and results, all else equal."""
    # Of a Latin hypercube, in which all else is never equal, all if all results are equal.

    def different(*columns: np.ndarray) -> int:
        return len({row.tobytes() for row in np.column_stack(columns) + 0.0})

    values, results = np.split(numbers, [len(swept)], axis=1)
    found = []
    for k, name in enumerate(swept):
        others = np.delete(values, k, axis=1)
        cases = different(others)
        is_same = different(others, results) == cases < len(numbers) or different(results) == 1
        if is_same and different(values[:, k]) > 1:
            found.append(name)
    return found


def _draw(
    file: str | Path, names: Sequence[str], units: Mapping[str, str], rows: np.ndarray
) -> None:
    """Draw each quantity over the first parameter, with lines where the others are equal."""
    first = len(names)
    known = [k for k in range(len(units)) if np.isfinite(rows[:, first + k]).any()]
    shown = known or range(len(units))
    rows = rows[np.argsort(rows[:, 0], kind='stable')]
    lines = [np.flatnonzero((rows[:, 1:first] == other).all(axis=1))
             for other in np.unique(rows[:, 1:first], axis=0)]  # fmt: skip
    scattered = len(lines) > 12
    with figure(file, size=(8.0, 1.8 * len(shown)), rows=len(shown)) as axes:
        for axis, k in zip(axes, shown, strict=True):
            name, unit = list(units.items())[k]
            if scattered:
                # More parameters than colours can tell: points.
                axis.plot(rows[:, 0], rows[:, first + k], '.', color='C0')
            for line in () if scattered else lines:
                other = rows[line[0], 1:first]
                label = ', '.join(f'{n} = {v:g}' for n, v in zip(names[1:], other, strict=True))
                axis.plot(rows[line, 0], rows[line, first + k], marker='.', label=label or None)
            axis.set_ylabel(name.replace('_', '\n', 1).replace('_', ' ') + f' [{unit}]')
        if first > 1 and not scattered:
            axes[0].legend(loc='lower right', bbox_to_anchor=(1.0, 1.02), frameon=False, ncols=2)
        axes[-1].set_xlabel(names[0])
