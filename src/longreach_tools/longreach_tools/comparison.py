"""Output of commands: results of runs, and comparison of a recorded run with the library's."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from longreach_machine.runs import Run, compare_runs
from longreach_tools.output import report_study, summary_table, table

# Largest difference at which a recording equals the library's run [SI units].
SAME = 1e-9

AnyRun = TypeVar('AnyRun', bound=Run[Any])


def report_run(
    arguments: argparse.Namespace,
    machine: str,
    run: AnyRun,
    draw: Callable[[Path, AnyRun], None] | None = None,
    more: Mapping[str, Any] | None = None,
    text: str = '',
) -> int:
    """Write CSV and figure of a run, print ``more`` and summary or ``text``; return exit code."""
    report = {**(more or {}), **run.report()}
    text = text or summary_table(run.shown(), run.UNITS)
    rows = run.columns.names, run.table
    report_study(arguments, report, text, *rows, lambda file: draw(file, run) if draw else None)
    for warning in (*run.warnings(), *[run.message] * bool(run.message)):
        print(f'longreach {machine}: {warning}', file=sys.stderr)
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
    Print the differences between a recording and the library's run; return 0 if it is this run.

    Otherwise, and where the library's run failed, 1; ``advice`` is printed. ``what``: a row.
    """
    if not len(expected.table):
        expected.check()
    differences = compare_runs(recorded, expected, what)
    units = {column.name: column.unit for column in recorded.columns}
    rows = [(name, value, units.get(name, '')) for name, value in differences.items()]
    text = table(('largest difference from the library', 'value', 'unit'), rows)
    (missing,) = (count for name, count in differences.items() if name.endswith('s_missing'))
    # In this form NaN counts as a difference.
    agrees = all(differences[name] <= SAME for name in recorded.columns.names[1:])
    same = agrees and not missing
    ends = [float(run.column('time')[-1]) for run in (recorded, expected)]
    if same:
        text += '\n\nthe recording is this run of the library' + _part(*ends)
    more = {
        'bag': str(arguments.bag),
        'differences': differences,
        'same': same,
        'compared_until': min(ends),
    }
    report_run(arguments, machine, recorded, draw, more, text)
    if agrees and missing:
        advice = f'{missing} {what}s are missing, the others agree'
    elif not same:
        advice = f'the recording is not this run of the library. {advice}'
    failed = f"the library's run failed at {ends[1]:g} s: {expected.message}"
    for line in [failed] * bool(expected.message) + [advice] * (not same):
        print(f'longreach {machine} compare: {line}', file=sys.stderr)
    return int(not same or bool(expected.message))


def _part(recorded: float, expected: float) -> str:
    """Return a text on the compared part when the end times of two runs [s] differ."""
    if abs(recorded - expected) < 1e-6:
        return ''
    longer = 'recording' if recorded > expected else "library's run"
    shared, end = sorted((recorded, expected))
    return f' up to {shared:g} s; the {longer} goes on to {end:g} s'
