"""Results of ``longreach identify``: the machine's file, text, and the report."""

from __future__ import annotations

import argparse
import datetime
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from longreach_identification.pipeline import Identified
from longreach_identification.report_files import profile_figure, report
from longreach_identification.report_files import table as html_table
from longreach_tools.output import table


def found_file(found: Identified, files: Sequence[Path]) -> str:
    """Return a machine file with what was found, and comments that say from which files."""
    now = datetime.datetime.now(datetime.UTC).strftime('%Y-%m-%d %H:%M UTC')
    lines = [
        f'Identified by longreach identify {found.page.name} on {now}',
        f'from {", ".join(path.name for path in files)}.',
        '',
    ]
    for name, entry in found.parameters.items():
        value, error, start = (entry[key] for key in ('value', 'standard_error', 'start'))
        line = f'{name} = {_number(value)} +- {_number(error)}'
        lines.append(line if start is None else f'{line}, before {_number(start)}')
    lines += [f'Warning: {text}' for text in found.warnings]
    text = yaml.safe_dump(
        found.machine.as_mapping(), sort_keys=False, default_flow_style=None, width=99
    )
    return ''.join(f'# {line}'.rstrip() + '\n' for line in lines) + '\n' + text


def _number(value: float | None) -> str:
    """Return a number with five digits, - for none."""
    return '-' if value is None else f'{value:.5g}'


def text_of(found: Identified, more: Mapping[str, Any]) -> str:
    """Return the parameters and profiles as text."""
    rows = [
        (name, *(_number(entry[key]) for key in ('start', 'value', 'standard_error')))
        for name, entry in found.parameters.items()
    ]
    parts = [table(('parameter', 'start', 'found', 'standard error'), rows)]
    for name, one in more.get('profiles', {}).items():
        curve = list(zip(one['values'], one['increase'], strict=True))
        parts.append(table((name, 'increase of chi-square'), curve))
    return '\n\n'.join(parts)


def report_of(
    found: Identified,
    files: Sequence[Path],
    arguments: argparse.Namespace,
    planted: dict[str, float],
    more: Mapping[str, Any],
) -> str:
    """Return the report as HTML."""
    page = found.page
    units = {entry.name: entry.unit for entry in page.free_parameters(found.start)}
    units |= {signal.name: signal.unit for signal in page.signals(found.start)}
    if found.statics is not None:
        units |= {name: 'N' for name in found.statics.residuals if name.startswith('force_')}
    if planted and found.dynamics is not None:
        experiment = found.dynamics.problem.predict.experiments[0]  # type: ignore[attr-defined]
        planted = planted | page.derived(page.load(str(arguments.planted)), experiment)
    now = datetime.datetime.now(datetime.UTC).strftime('%Y-%m-%d %H:%M UTC')
    facts = [
        ('recordings', ', '.join(path.name for path in files)),
        ('begun with', str(arguments.file or 'the installed file')),
        ('written to', str(arguments.out or '-')),
        ('command', shlex.join(['longreach', *sys.argv[1:]])),
        ('time', now),
    ]
    head = ['parameter', 'unit', 'start', 'found', 'standard error', 'change']
    # Beside what was expected: the planted value, or the start.
    head += ['planted', 'off by [standard errors]'] if planted else ['moved by [standard errors]']
    rows = []
    for name, entry in found.parameters.items():
        value, start = entry['value'], entry['start']
        change = '' if not start or value is None else f'{value / start - 1.0:+.2%}'
        numbers = [_number(entry[key]) for key in ('start', 'value', 'standard_error')]
        known = [_number(planted.get(name))] if planted else []
        expected, error = planted.get(name) if planted else start, entry['standard_error']
        if value is not None and expected is not None and error:
            known.append(f'{(value - expected) / error:+.1f}')
        rows.append((name, units.get(name, ''), *numbers, change, *known))
    tables = [('Parameters', html_table(head, rows))]
    if found.statics is not None:
        effects = found.statics.sensitivity
        columns = list(dict.fromkeys(n for changes in effects.values() for n in changes))
        cells = [
            (name, *(f'{changes[n]:+.2%}' if n in changes else '' for n in columns))
            for name, changes in effects.items()
        ]
        title = 'Change of results when a dimension or the payload is wrong by 1 % (10 mm)'
        tables.append((title, html_table(('taken as exact', *columns), cells)))
    for name, one in more.get('profiles', {}).items():
        text = profile_figure(name, one['values'], one['increase'])
        tables.append((f'Profile likelihood of {name}', text))
    title = f'Identification of the {page.name}'
    return report(title, found.stages(), facts, found.warnings, units, tables)
