"""Results of ``longreach identify``: the machine's file, text, and the report in one HTML file."""

from __future__ import annotations

import argparse
import datetime
import html
import io
import math
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import yaml

from longreach_identification.estimation import Estimate
from longreach_identification.machine import Recording, Signal, matches
from longreach_identification.pipeline import Identified
from longreach_tools.output import table

# Points of a curve beyond which a figure shows every so-many-th; curves in one panel;
# points up to which they are large.
_MOST_POINTS, _MOST_CURVES, _FEW = 1000, 6, 50
_LAGS = 100  # of an autocorrelation, in rows
_WIDTH = 9.5  # of a figure [in]
Predictions: TypeAlias = Mapping[tuple[str, str], np.ndarray]  # by recording and signal
_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 74rem; margin: 2rem auto;
  padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { padding: 0.15rem 0.7rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid #8884; }
th:first-child, td:first-child, .facts td { text-align: left; }
.facts td { white-space: normal; }
figure { margin: 1rem 0; background: #fff; } figure svg { width: 100%; height: auto; }
.warning { border-left: 4px solid #d62728; padding-left: 0.8rem; margin: 0.4rem 0; }
"""


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
    lines += [f'Note: {text}' for text in found.notes]
    text = yaml.safe_dump(
        found.machine.as_mapping(), sort_keys=False, default_flow_style=None, width=99
    )
    return ''.join(f'# {line}'.rstrip() + '\n' for line in lines) + '\n' + text


def _number(value: object) -> str:
    """Return a number with five digits, - for none, nothing for NaN, and other things as text."""
    if isinstance(value, float):
        return '' if math.isnan(value) else f'{value:.5g}'
    return '-' if value is None else str(value)


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
        true = page.load(str(arguments.planted))
        planted = planted | page.derived(true, found.dynamics.experiment)
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
        expected, error = planted.get(name) if planted else start, entry['standard_error']
        known: list[object] = [expected] if planted else []
        if value is not None and expected is not None and error:
            known.append(f'{(value - expected) / error:+.1f}')
        rows.append((name, units.get(name, ''), start, value, error, change, *known))
    title = html.escape(f'Identification of the {page.name}')
    parts = [f'<h1>{title}</h1>', _table((), facts, 'facts')]
    parts += [f'<p class="warning">{html.escape(text)}</p>' for text in found.warnings]
    parts += [f'<p>{html.escape(text)}</p>' for text in found.notes]
    parts += ['<h2>Parameters</h2>', _table(head, rows)]
    if found.statics is not None:
        effects = found.statics.sensitivity
        columns = list(dict.fromkeys(n for changes in effects.values() for n in changes))
        cells = [
            (name, *(f'{changes[n]:+.2%}' if n in changes else '' for n in columns))
            for name, changes in effects.items()
        ]
        text = 'Change of results when a dimension or the payload is wrong by 1 % (10 mm)'
        parts += [f'<h2>{text}</h2>', _table(('taken as exact', *columns), cells)]
    for name, one in more.get('profiles', {}).items():
        parts.append(f'<h2>Profile likelihood of {name}</h2>')
        parts.append(_profile(name, one['values'], one['increase']))
    if found.statics is not None:
        lines = ''.join(f'<li>{html.escape(text)}</li>' for text in found.statics.stretches)
        stretches = f'<details><summary>Stretches</summary><ul>{lines}</ul></details>'
        parts += ['<h2>Poses at rest</h2>', stretches]
        parts += _shown(found.statics.estimate, found.statics.before, units, at_rest=True)
    if found.dynamics is not None:
        estimate = found.dynamics.estimate
        before = _before(page.values(found.start), estimate)
        parts += ['<h2>Motion</h2>', *_shown(estimate, before, units, at_rest=False)]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{title}</title><style>{_STYLE}</style></head>\n<body>\n'
        + '\n'.join(parts)
        + '\n</body></html>\n'
    )


def _before(start: Mapping[str, float], found: Estimate) -> Predictions:
    """Return the predictions of the start values for recordings of motion."""
    values = {name: start.get(name, 0.0) for name in found.names}
    before = {}
    for number, recording in enumerate(found.problem.recordings):
        for name, shown in found.problem.predict(number, values).items():
            offset = 0.0
            if matches(name, found.problem.offsets):
                offset = np.nanmean(recording.signals[name].values - shown)
            before[recording.name, name] = shown + offset
    return before


def _shown(
    found: Estimate, before: Predictions, units: Mapping[str, str], at_rest: bool
) -> list[str]:
    """Return tables and figures of an estimation, whose rows may be poses at rest."""
    recordings = found.problem.recordings
    curves = [_curves(found, one, before, units, at_rest) for one in recordings]
    return [_parameters(found, units), _fit(found, before, units), _correlation(found), *curves]


def _table(head: Sequence[str], rows: Iterable[Sequence[object]], style: str = '') -> str:
    """Return rows as an HTML table; numbers with five significant digits, NaN as nothing."""
    lines = [''.join(f'<th>{html.escape(cell)}</th>' for cell in head)] if head else []
    lines += [''.join(f'<td>{html.escape(_number(cell))}</td>' for cell in row) for row in rows]
    named = f' class="{style}"' if style else ''
    return f'<table{named}>' + ''.join(f'<tr>{line}</tr>' for line in lines) + '</table>'


def _parameters(found: Estimate, units: Mapping[str, str]) -> str:
    """Return the table of unknowns."""
    head = 'unknown', 'unit', 'search from', 'found', 'standard error', '95 % interval', 'prior'
    rows = []
    for j, name in enumerate(found.names):
        if found.prior_share[j] == 1.0:
            # Considered only.
            continue
        low, high = found.interval(name)
        numbers = (float(values[j]) for values in (found.start, found.values))
        interval = '-' if math.isnan(low) else f'{low:.5g} to {high:.5g}'
        error = float(found.standard_errors[j])
        share = f'{found.prior_share[j]:.0%}'
        rows.append((name, units.get(name, ''), *numbers, error, interval, share))
    return _table(head, rows)


def _fit(found: Estimate, before: Predictions, units: Mapping[str, str]) -> str:
    """Return the table of signals, before and after."""
    rows = []
    for name, fit in found.fit.items():
        errors = [
            recording.signals[name].values - before[recording.name, name]
            for recording in found.problem.recordings
            if (recording.name, name) in before
        ]
        every = np.concatenate([np.zeros(0), *errors])
        every = every[np.isfinite(every)]
        rms = float(np.sqrt(np.mean(every**2))) if every.size else math.nan
        after = (fit.rms, fit.deviation, fit.variance_explained, fit.validation_rms)
        rows.append((name, units.get(name, ''), fit.rows, rms, *after))
    head = ('signal', 'unit', 'rows', 'RMS before', 'RMS after', 'noise', 'variance explained')
    return _table((*head, 'RMS of validation'), rows)


def _correlation(found: Estimate) -> str:
    """Return a figure of the correlation matrix."""
    if len(found.names) < 2:
        return ''
    size = 1.6 + 0.32 * len(found.names)
    figure = _figure(size + 2.0, size)
    axes = figure.add_subplot()
    shown = axes.imshow(found.correlation, vmin=-1.0, vmax=1.0, cmap='RdBu_r')
    axes.set_xticks(range(len(found.names)), found.names, rotation=90, fontsize=7)
    axes.set_yticks(range(len(found.names)), found.names, fontsize=7)
    figure.colorbar(shown, label='correlation')
    return _svg(figure)


def _curves(
    found: Estimate,
    recording: Recording,
    before: Predictions,
    units: Mapping[str, str],
    at_rest: bool,
) -> str:
    """Return a figure of a recording: a panel for each family of signals, with residuals."""
    families: dict[str, list[str]] = {}
    for name in recording.signals:
        if (recording.name, name) in found.predicted:
            families.setdefault(_family(name), []).append(name)
    panels = [
        names[k : k + _MOST_CURVES]
        for names in families.values()
        for k in range(0, len(names), _MOST_CURVES)
    ]
    if not panels:
        return ''
    figure = _figure(_WIDTH, 2.9 * len(panels))
    widths = (3, 2) if at_rest else (3, 2, 1)
    axes = figure.subplots(len(panels), len(widths), squeeze=False, width_ratios=widths)
    for row, names in zip(axes, panels, strict=True):
        left, right, far = row[0], row[1], row[-1]
        for k, name in enumerate(names):
            signal, key = recording.signals[name], (recording.name, name)
            order = np.argsort(signal.times, kind='stable')
            every = order[:: max(1, len(order) // _MOST_POINTS)]
            times, values = signal.times[every], signal.values[every]
            after, color = found.predicted[key][every], f'C{k}'
            size = 2 if len(times) > _FEW else 7
            # Motion without its constant, by which signals of different size are compared.
            base = 0.0 if at_rest else float(np.nanmean(values))
            dots = {'color': color, 'markersize': size, 'rasterized': True}
            left.plot(times, values - base, '.', alpha=0.5, **dots)
            # Nothing is known between two poses.
            old, now = ('x', '+') if at_rest else ('--', '-')
            if key in before:
                left.plot(times, before[key][every] - base, old, color=color, lw=0.8)
            left.plot(times, after - base, now, color=color, linewidth=1.2, label=name)
            right.plot(times, values - after, '.', **dots)
            if not at_rest:
                lags, related = _autocorrelation(signal, found.predicted[key])
                far.plot(lags, related, color=color, linewidth=1.0)
        unit = units.get(names[0], '')
        what = _family(names[0]) + ('' if at_rest else ' less its mean')
        left.set_ylabel(f'{what} [{unit}]' if unit else what)
        left.legend(fontsize=7, loc='upper right')
        right.set_ylabel('residual')
        if not at_rest:
            far.set_ylabel('autocorrelation')
            far.set_ylim(-1.0, 1.0)
        for one in row:
            one.grid(alpha=0.3)
    for one, text in zip(axes[-1], ('time [s]', 'time [s]', 'lag [s]'), strict=False):
        one.set_xlabel(text)
    marks = 'before (x), after (+)' if at_rest else 'before (dashed), after (line)'
    figure.suptitle(f'{recording.name}: measured (dots), {marks}')
    return _svg(figure)


def _autocorrelation(signal: Signal, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return lags [s] and the autocorrelation of residuals: 0 for noise without memory."""
    rest = np.nan_to_num(signal.values - predicted)
    rest = rest - rest.mean()
    count = min(len(rest) - 1, _LAGS)
    size = max(float(rest @ rest), 1e-300)
    related = [float(rest[k:] @ rest[: len(rest) - k]) / size for k in range(count + 1)]
    interval = float(np.median(np.diff(signal.times))) if len(rest) > 1 else 0.0
    return interval * np.arange(count + 1), np.array(related)


def _profile(name: str, values: Sequence[float], increase: Sequence[float]) -> str:
    """Return the figure of a profile likelihood, with the level of 95 %."""
    figure = _figure(0.5 * _WIDTH, 2.9)
    axes = figure.add_subplot()
    axes.plot(values, increase, 'o-', markersize=4)
    axes.axhline(3.84, linestyle='--', color='gray', linewidth=0.8, label='95 %')
    axes.set_xlabel(name)
    axes.set_ylabel('increase of chi-square')
    axes.set_ylim(0.0, max(8.0, min(float(np.max(increase)), 30.0)))
    axes.legend(fontsize=7)
    axes.grid(alpha=0.3)
    return _svg(figure)


def _family(name: str) -> str:
    """Return the common part of the names of similar signals."""
    head, _, tail = name.rpartition('_')
    if name.startswith('marker_'):
        return f'marker_{tail}'
    return head if tail.isdigit() else name


def _figure(width: float, height: float) -> Any:
    """Return an empty figure [in]."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout='constrained')


def _svg(figure: Any) -> str:
    """Return a figure as an element of a page."""
    buffer = io.StringIO()
    figure.savefig(buffer, format='svg', metadata={'Date': None})
    text = re.sub(r'<metadata>.*?</metadata>', '', buffer.getvalue(), flags=re.DOTALL)
    return f'<figure>{text[text.index("<svg") :]}</figure>'
