"""The subcommand ``sweep`` of a machine: runs for a range of values of a parameter."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from longreach_dynamics.parallel import InterruptedSweep
from longreach_tools.arguments import count, sweep
from longreach_tools.options import add_results
from longreach_tools.output import figure, print_result, table, write_csv

__all__ = ['Measured', 'add_sweep', 'run_sweep']


class Measured(NamedTuple):
    """Results of one run of a sweep."""

    numbers: tuple[float, ...]  # NaN where it has none
    message: str = ''  # why it failed; empty for a complete run
    warnings: tuple[str, ...] = ()


def add_sweep(commands: Any, example: str) -> argparse.ArgumentParser:
    """Add ``sweep`` with parameter, values, number of processes and results."""
    parser: argparse.ArgumentParser = commands.add_parser(
        'sweep', help='runs for a range of values of a parameter'
    )
    parser.add_argument('parameter', help=f'for example {example}')
    parser.add_argument('values', metavar='START:STOP:COUNT', type=sweep)
    parser.add_argument(
        '--processes',
        type=count(1000),
        help='number of parallel runs (default: one for each core)',
    )
    add_results(parser, 'one row for each value', 'the measured quantities over the parameter')
    return parser


def run_sweep(
    machine: str,
    arguments: argparse.Namespace,
    units: Mapping[str, str],
    measure_all: Callable[[], Sequence[Measured]],
) -> int:
    """
    Run a sweep, print and write its finished runs, and return the exit code.

    Parameters
    ----------
    machine : str
        The command, such as ``boom``.
    arguments : Namespace
        Of a parser made by :func:`add_sweep`.
    units : dict
        Of the measured quantities, by name.
    measure_all : callable
        Makes the runs; may raise InterruptedSweep.
    """
    values = arguments.values.tolist()
    outcomes: Sequence[Measured | None]
    try:
        outcomes = measure_all()
    except InterruptedSweep as interrupt:
        outcomes = interrupt.outcomes
    done = [(value, one) for value, one in zip(values, outcomes, strict=True) if one is not None]
    if done:
        _hand_out(machine, arguments, units, done)
    if len(done) < len(values):
        print(
            f'longreach {machine}: interrupted: {len(done)} of {len(values)} runs are done',
            file=sys.stderr,
        )
        return 130
    return int(any(one.message for _, one in done))


def _hand_out(
    machine: str,
    arguments: argparse.Namespace,
    units: Mapping[str, str],
    done: Sequence[tuple[float, Measured]],
) -> None:
    """Print and write the finished runs: values, results and messages."""
    names = (arguments.parameter, *units)
    numbers = np.array([(value, *one.numbers) for value, one in done])
    if arguments.csv is not None:
        write_csv(arguments.csv, names, numbers)
    if arguments.plot is not None:
        _draw(arguments.plot, arguments.parameter, units, numbers)
    rows, cells = [], []
    for row, (_, one) in zip(numbers.tolist(), done, strict=True):
        known = [number if math.isfinite(number) else None for number in row]
        rows.append(dict(zip(names, known, strict=True)) | {'message': one.message})
        shown = ['-' if number is None else number for number in known]
        cells.append((*shown, 'failed' if one.message else 'complete'))
    result = {'parameter': arguments.parameter, 'units': dict(units), 'rows': rows}
    head = (arguments.parameter, *(f'{name} [{unit}]' for name, unit in units.items()), 'status')
    print_result(result, table(head, cells), arguments.format)
    for value, one in done:
        for line in filter(None, (one.message, *one.warnings)):
            print(
                f'longreach {machine}: {arguments.parameter} = {value:g}: {line}', file=sys.stderr
            )


def _draw(file: str | Path, parameter: str, units: Mapping[str, str], rows: np.ndarray) -> None:
    """Draw each quantity over the parameter, rows (values, 1 + quantities), that some run has."""
    known = [k for k in range(1, len(units) + 1) if np.isfinite(rows[:, k]).any()]
    shown = known or range(1, len(units) + 1)
    with figure(file, size=(8.0, 1.8 * len(shown)), rows=len(shown)) as axes:
        for axis, k in zip(axes, shown, strict=True):
            name, unit = list(units.items())[k - 1]
            axis.plot(rows[:, 0], rows[:, k], marker='.', color='C0')
            axis.set_ylabel(name.replace('_', '\n', 1).replace('_', ' ') + f' [{unit}]')
        axes[-1].set_xlabel(parameter)
