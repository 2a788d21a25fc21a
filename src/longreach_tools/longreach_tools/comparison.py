"""Output of commands: results of runs, and comparison of a recorded run with the library's."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from longreach_dynamics.runs import Run, compare_runs
from longreach_tools.output import print_result, summary_table, table, write_csv

SAME = 1e-9
"""Largest difference at which a recording equals the library's run [SI units]."""

AnyRun = TypeVar('AnyRun', bound=Run[Any])


def hand_out(
    arguments: argparse.Namespace,
    machine: str,
    run: AnyRun,
    draw: Callable[[Path, AnyRun], None] | None = None,
    more: Mapping[str, Any] | None = None,
    text: str = '',
) -> int:
    """
    Write the requested CSV file and figure of a run, print its summary, return the exit code.

    Parameters
    ----------
    arguments : Namespace
        With ``format``, ``csv``, and ``plot`` if ``draw`` is given.
    machine : str
        Name of the machine's command.
    run : Run
        Of a failed run the rows before the failure are written; the exit code is then 1.
    draw : callable, optional
        Takes file and run; draws the figure.
    more : mapping, optional
        Additional JSON entries, before the summary.
    text : str, optional
        Printed instead of the table of the summary.
    """
    if arguments.csv is not None:
        write_csv(arguments.csv, run.columns.names, run.table)
    if draw is not None and arguments.plot is not None:
        draw(arguments.plot, run)
    report = {**(more or {}), **run.report()}
    print_result(report, text or summary_table(run.shown(), run.UNITS), arguments.format)
    for warning in run.warnings():
        print(f'longreach {machine}: {warning}', file=sys.stderr)
    if run.message:
        print(f'longreach {machine}: {run.message}', file=sys.stderr)
    return int(run.status == 'failed')


def report_comparison(
    arguments: argparse.Namespace,
    machine: str,
    recorded: AnyRun,
    expected: Run[Any],
    advice: str,
    draw: Callable[[Path, AnyRun], None] | None = None,
    what: str = 'sample',
) -> int:
    """
    Print the differences between a recording and the library's run, and return the exit code.

    Parameters
    ----------
    arguments : Namespace
        With ``bag`` and those of :func:`hand_out`.
    machine : str
        Name of the machine's command.
    recorded, expected : Run
    advice : str
        Printed when they differ: which options to give, and which runs always differ.
    draw : callable, optional
        Takes file and run; draws the recorded run.
    what : str
        Term for a row.

    Returns
    -------
    int
        0 when all differences are at most ``SAME`` and no row is missing, otherwise 1.
    """
    expected.check()
    differences = compare_runs(recorded, expected, what)
    units = {column.name: column.unit for column in recorded.columns}
    lines = [differences_table(differences, units)]
    (missing,) = (count for name, count in differences.items() if name.endswith('s_missing'))
    # In this form NaN counts as a difference.
    same = not missing and all(differences[name] <= SAME for name in recorded.columns.names[1:])
    ends = [float(run.column('time')[-1]) for run in (recorded, expected)]
    if same:
        lines += ['', 'the recording is this run of the library' + _part(*ends)]
    more = {
        'bag': str(arguments.bag),
        'differences': differences,
        'same': same,
        'compared_until': min(ends),
    }
    hand_out(arguments, machine, recorded, draw, more, '\n'.join(lines))
    if not same:
        print(
            f'longreach {machine} compare: the recording is not this run of the library. {advice}',
            file=sys.stderr,
        )
    return int(not same)


def _part(recorded: float, expected: float) -> str:
    """Return a text on the compared part when the end times of two runs [s] differ."""
    if abs(recorded - expected) < 1e-6:
        return ''
    longer = 'recording' if recorded > expected else "library's run"
    shared, end = sorted((recorded, expected))
    return f' up to {shared:g} s; the {longer} goes on to {end:g} s'


def differences_table(differences: Mapping[str, float], units: Mapping[str, str]) -> str:
    """Return the differences from :func:`longreach_dynamics.runs.compare_runs` as a table."""
    rows = [(name, value, units.get(name, '')) for name, value in differences.items()]
    return table(('largest difference from the library', 'value', 'unit'), rows)
