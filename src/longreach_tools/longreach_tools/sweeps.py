"""
The subcommand ``sweep`` of a machine: runs for many values of parameters.

Finished runs can be written to a file as they come, from which a stopped sweep is continued.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import fcntl
import hashlib
import itertools
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.parallel import InterruptedSweep, run_jobs
from longreach_tools.arguments import allow_lists, count, finite
from longreach_tools.options import add_results, add_workers
from longreach_tools.output import check_output, figure, print_result, table, write_csv, writing

_MOST_RUNS = 100_000
_FORMATS = ('.csv', '.parquet')
# Columns of a file of results besides parameters and measured quantities.
_NUMBER, _KEY, _MESSAGE, _WARNINGS = 'run', 'key', 'message', 'warnings'
_BETWEEN = ' | '


class Measured(NamedTuple):
    """Results of one run of a sweep."""

    numbers: tuple[float, ...]  # NaN where it has none
    message: str = ''  # why it failed; empty for a complete run
    warnings: tuple[str, ...] = ()
    killed: bool = False  # with its process: no result of the run


# --- arguments ------------------------------------------------------------------------------


def add_design(parser: argparse.ArgumentParser, example: str) -> None:
    """Add parameters with their ranges, and how the runs are made and written."""
    allow_lists(parser)
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
    parser.add_argument('--seed', type=int, default=0, help='of --samples (default: 0)')
    add_workers(parser)
    parser.add_argument(
        '--results',
        metavar='FILE',
        type=Path,
        help='.csv or .parquet, one row for each run, written as they finish; a stopped sweep is'
        ' continued from it',
    )
    add_results(parser, 'one row for each run', 'the measured quantities over the parameters')


def design_of(arguments: argparse.Namespace) -> tuple[tuple[str, ...], np.ndarray]:
    """
    Return the names of the parameters, and their values (runs, parameters).

    A grid, of which the last parameter changes fastest, or a Latin hypercube: each of the N equal
    parts of each range has one point, at a random place in it.
    """
    words = arguments.ranges
    if len(words) % 2:
        raise InputError(
            f'{" ".join(words)}: allowed are pairs of a parameter and START:STOP:COUNT'
        )
    names = tuple(words[::2])
    if len({*names}) < len(names):
        raise InputError(f'parameters = {", ".join(names)}, allowed: each of them once')
    ranges = [_range(text) for text in words[1::2]]
    if arguments.samples is not None:
        generator = np.random.default_rng(arguments.seed)
        places = generator.permuted(
            np.tile(np.arange(arguments.samples), (len(names), 1)), axis=1
        ).T
        shares = (places + generator.random(places.shape)) / arguments.samples
        start, stop = np.array([one[:2] for one in ranges]).T
        return names, start + (stop - start) * shares
    for (*_, number), text in zip(ranges, words[1::2], strict=True):
        if not number:
            raise InputError(f'{text}, allowed without --samples: START:STOP:COUNT')
    total = math.prod(number for *_, number in ranges)
    if total > _MOST_RUNS:
        raise InputError(f'{total} runs, allowed: up to {_MOST_RUNS}')
    steps = [np.linspace(*one) for one in ranges]
    return names, np.array(list(itertools.product(*steps)))


def _range(text: str) -> tuple[float, float, int]:
    """Read START:STOP:COUNT; without COUNT it is 0."""
    try:
        start, stop, *number = text.split(':')
        (most,) = [count(_MOST_RUNS)(one) for one in number] or [0]
        return finite(start), finite(stop), most
    except (ValueError, argparse.ArgumentTypeError) as error:
        raise InputError(
            f'{text!r}, allowed: START:STOP:COUNT such as -5:85:19, COUNT from 1 to {_MOST_RUNS}'
        ) from error


# --- results on disk ------------------------------------------------------------------------


class Results:
    """
    Results of a sweep on disk (.csv or .parquet), written as they come.

    Each row has a key of all that its run depends on, one of ``keys`` (runs,). A row whose key is
    wanted again in an existing file is not run again. While a sweep runs, ``FILE.parquet`` is
    written as ``FILE.parquet.part``, a CSV file: Parquet can be read only when it is complete.
    """

    def __init__(
        self,
        file: Path,
        names: Sequence[str],
        units: Mapping[str, str],
        values: np.ndarray,
        keys: Sequence[str],
    ) -> None:
        if file.suffix not in _FORMATS:
            raise InputError(
                f'{file} has the extension {file.suffix!r}, allowed: {", ".join(_FORMATS)}'
            )
        if file.suffix == '.parquet':
            _parquet()
        check_output(csv=file)
        self.file, self._units = file, dict(units)
        self._values, self._keys = values, list(keys)
        self._head = [_NUMBER, *names, *units, _KEY, _MESSAGE, _WARNINGS]
        self._part = file if file.suffix == '.csv' else file.with_name(file.name + '.part')
        self.done: dict[int, Measured] = {}

    @contextlib.contextmanager
    def open(self) -> Iterator[Results]:
        """Read the rows that are there, keep the file open for more, and complete it."""
        fresh = not self._part.exists()
        stream = self._locked()
        try:
            with stream:
                try:
                    rows = self._read(stream)
                    if self._part != self.file and self.file.exists():
                        rows += _rows_of_parquet(self.file, self._head)
                    self._take(rows)
                except BaseException:
                    # An existing file is left as it was.
                    if fresh:
                        self._part.unlink(missing_ok=True)
                    raise
                self._writer = csv.writer(stream, lineterminator='\n')
                self._stream = stream
                if stream.tell() == 0:
                    self._write(self._head)
                try:
                    yield self
                finally:
                    if self._part != self.file:
                        self._write_parquet()
                        self._part.unlink(missing_ok=True)
        except OSError as error:
            raise LongreachError(f'{self._part} cannot be written: {error.strerror}') from error

    def add(self, k: int, one: Measured) -> None:
        """Append the result of run k."""
        self.done[k] = one
        self._write(self._row(k, one))

    def _row(self, k: int, one: Measured) -> list[object]:
        values = [repr(float(value)) for value in (*self._values[k], *one.numbers)]
        # One line for each run, so that a line without an end is one that was not finished.
        texts = [' '.join(text.splitlines()) for text in (one.message, *one.warnings)]
        return [k, *values, self._keys[k], texts[0], _BETWEEN.join(texts[1:])]

    def _write(self, row: Sequence[object]) -> None:
        """Append a row; it is complete on disk, or, after a kill, its line has no end."""
        self._writer.writerow(row)
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def _locked(self) -> IO[str]:
        """Open the file for this sweep alone."""
        # newline: the csv module's own line ends, also in messages.
        stream = self._part.open('a+', encoding='utf-8', newline='')
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            stream.close()
            raise InputError(
                f'{self.file} is being written by another sweep; give another file'
            ) from error
        return stream

    def _read(self, stream: IO[str]) -> list[list[str]]:
        """Return the rows of the CSV file, and cut off a line that was not finished."""
        stream.seek(0)
        text = stream.read()
        whole = text[: text.rfind('\n') + 1]
        if whole != text:
            stream.truncate(len(whole.encode()))
        stream.seek(0, os.SEEK_END)
        rows = list(csv.reader(whole.splitlines(keepends=True)))
        if rows and rows[0] != self._head:
            raise self._foreign(f'has the columns {", ".join(rows[0])}')
        return rows[1:]

    def _take(self, rows: Sequence[Sequence[str]]) -> None:
        """Assign rows to the runs of this sweep."""
        numbers = {key: k for k, key in enumerate(self._keys)}
        first = 1 + self._values.shape[1]
        for row in rows:
            try:
                k = numbers[row[first + len(self._units)]]
                found = tuple(float(value) for value in row[first : first + len(self._units)])
                message, warnings = row[-2:]
            except (KeyError, IndexError, ValueError) as error:
                raise self._foreign('contains other runs') from error
            self.done[k] = Measured(found, message, tuple(filter(None, warnings.split(_BETWEEN))))

    def _foreign(self, reason: str) -> InputError:
        return InputError(
            f'{self.file} {reason}, allowed: the results of this sweep, with the same machine,'
            ' scenario and options; give a new file'
        )

    def _write_parquet(self) -> None:
        """Write all results in the order of the runs."""
        pa, parquet = _parquet()
        order = sorted(self.done)
        columns = list(zip(*(self._row(k, self.done[k]) for k in order), strict=True))
        if not columns:
            return
        kinds = [pa.int64(), *[pa.float64()] * (len(self._head) - 4), *[pa.string()] * 3]
        arrays = [
            pa.array(
                [float(v) if kind == pa.float64() else v for v in column],
                kind,
            )
            for column, kind in zip(columns, kinds, strict=True)
        ]
        fields = [
            pa.field(name, kind, metadata={'unit': self._units.get(name, '')})
            for name, kind in zip(self._head, kinds, strict=True)
        ]
        with writing(self.file) as path:
            parquet.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), path)


def _parquet() -> tuple[Any, Any]:
    """Return pyarrow and its Parquet module."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError(
            'a .parquet file needs the package pyarrow; install it: pip install pyarrow; or give a'
            ' .csv file'
        ) from None
    return pyarrow, pyarrow.parquet


def _rows_of_parquet(file: Path, head: Sequence[str]) -> list[list[str]]:
    """Return the rows of a Parquet file as text."""
    pa, parquet = _parquet()
    try:
        found = parquet.read_table(file)
    except pa.ArrowInvalid as error:
        raise InputError(f'{file} is no Parquet file: {error}; give a new file') from error
    if found.column_names != list(head):
        raise InputError(
            f'{file} has the columns {", ".join(found.column_names)}, allowed:'
            f' {", ".join(head)}; give a new file'
        )
    return [[str(value) for value in row.values()] for row in found.to_pylist()]


# --- runs -----------------------------------------------------------------------------------


def run_sweep(
    machine: str,
    arguments: argparse.Namespace,
    units: Mapping[str, str],
    measure: Callable[[Any], Measured],
    jobs_of: Callable[[Sequence[dict[str, float]]], Sequence[Any]],
) -> int:
    """
    Run a sweep, print and write its finished runs, and return the exit code.

    ``units`` are of the measured quantities, by name; ``measure``, defined at module level, makes
    one run of a job. ``jobs_of`` takes the values of the parameters by name, one mapping for each
    run, and returns the jobs, whose ``repr`` tells all that a run depends on.
    """
    names, values = design_of(arguments)
    for text in getattr(arguments, 'set', ()):
        if (path := text.partition('=')[0]) in names:
            raise InputError(
                f'--set {text}: {path} is swept; give its range only, or its value only'
            )
    jobs = jobs_of([dict(zip(names, row, strict=True)) for row in values.tolist()])
    done: dict[int, Measured] = {}
    with contextlib.ExitStack() as stack:
        results = None
        if arguments.results is not None:
            keys = [_key(job) for job in jobs]
            results = Results(arguments.results, names, units, values, keys)
            done = dict(stack.enter_context(results.open()).done)
            if done:
                print(
                    f'longreach {machine}: {len(done)} of {len(jobs)} runs are in'
                    f' {arguments.results}',
                    file=sys.stderr,
                )
        left = [k for k in range(len(jobs)) if k not in done]

        def finished(number: int, one: Measured) -> None:
            # The next sweep with this file tries again what was killed.
            if results is not None and not one.killed:
                results.add(left[number], one)

        def lost(message: str) -> Measured:
            return Measured((math.nan,) * len(units), message, killed=True)

        outcomes: Sequence[Any]
        try:
            outcomes = run_jobs(
                measure, [jobs[k] for k in left], arguments.processes,
                cluster=arguments.cluster, finished=finished, lost=lost,
            )  # fmt: skip
        except InterruptedSweep as interrupt:
            outcomes = interrupt.outcomes
    done |= {k: one for k, one in zip(left, outcomes, strict=True) if one is not None}
    shown = sorted(done.items())
    if shown:
        rows = [(values[k], one) for k, one in shown]
        _hand_out(machine, arguments, names, units, rows)
    if len(shown) < len(jobs):
        print(
            f'longreach {machine}: interrupted: {len(shown)} of {len(jobs)} runs are done',
            file=sys.stderr,
        )
        return 130
    return int(any(one.message for _, one in shown))


def _key(job: Any) -> str:
    """Return a key of all that a run depends on."""
    # The addresses of objects are others in each process.
    text = re.sub(r' at 0x[0-9a-f]+', '', repr(job))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _hand_out(
    machine: str,
    arguments: argparse.Namespace,
    names: Sequence[str],
    units: Mapping[str, str],
    done: Sequence[tuple[np.ndarray, Measured]],
) -> None:
    """Print and write the finished runs: values, results and messages."""
    columns = (*names, *units)
    numbers = np.array([(*values, *one.numbers) for values, one in done])
    if arguments.csv is not None:
        write_csv(arguments.csv, columns, numbers)
    if arguments.plot is not None:
        _draw(arguments.plot, names, units, numbers)
    rows, cells = [], []
    for row, (_, one) in zip(numbers.tolist(), done, strict=True):
        known = [number if math.isfinite(number) else None for number in row]
        rows.append(dict(zip(columns, known, strict=True)) | {'message': one.message})
        shown = ['-' if number is None else number for number in known]
        cells.append((*shown, 'failed' if one.message else 'complete'))
    result = {'parameters': list(names), 'units': dict(units), 'rows': rows}
    head = (*names, *(f'{name} [{unit}]' for name, unit in units.items()), 'status')
    print_result(result, table(head, cells), arguments.format)
    complete = np.array([one.numbers for _, one in done if not one.message])
    if len(complete) > 1 and np.array_equal(complete, complete[:1].repeat(len(complete), 0), True):
        print(
            f'longreach {machine}: all runs have the same results: does the scenario set, or not'
            f' use, {", ".join(names)}?',
            file=sys.stderr,
        )
    said: dict[str, list[str]] = {}
    for values, one in done:
        where = ', '.join(f'{name} = {value:g}' for name, value in zip(names, values, strict=True))
        for line in filter(None, (one.message, *one.warnings)):
            said.setdefault(line, []).append(where)
    for line, places in said.items():
        more = f' and {len(places) - 1} more runs' if len(places) > 1 else ''
        print(f'longreach {machine}: {places[0]}{more}: {line}', file=sys.stderr)


def _draw(
    file: str | Path, names: Sequence[str], units: Mapping[str, str], rows: np.ndarray
) -> None:
    """
    Draw each quantity that some run has over the first parameter; rows (runs, all columns).

    Runs that differ in the first parameter alone are joined by a line.
    """
    first = len(names)
    known = [k for k in range(len(units)) if np.isfinite(rows[:, first + k]).any()]
    shown = known or range(len(units))
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
