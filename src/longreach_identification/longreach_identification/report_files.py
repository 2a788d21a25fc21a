"""
Reports of identifications: one HTML file without references to others.

Figures show, for each recording, measured signals beside the model's, before and after, and the
residuals: after Henikl 2015, figures 12 to 14.
"""

from __future__ import annotations

import html
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from longreach_identification.estimation import Estimate
from longreach_identification.machine import Recording, Signal
from longreach_identification.pipeline import Stage

# Points of a curve beyond which a figure shows every so-many-th; curves in one panel;
# points up to which they are large.
_MOST_POINTS, _MOST_CURVES, _FEW = 1000, 6, 50
_LAGS = 100  # of an autocorrelation, in rows
_WIDTH = 9.5  # of a figure [in]
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


def report(
    title: str,
    stages: Sequence[Stage],
    facts: Sequence[tuple[str, str]],
    warnings: Sequence[str],
    units: Mapping[str, str],
    tables: Sequence[tuple[str, str]],
) -> str:
    """Return a report as HTML; facts and tables stand between head and stages."""
    parts = [f'<h1>{html.escape(title)}</h1>', table((), facts, 'facts')]
    parts += [f'<p class="warning">{html.escape(text)}</p>' for text in warnings]
    for heading, content in tables:
        parts += [f'<h2>{html.escape(heading)}</h2>', content]
    for stage in stages:
        parts.append(f'<h2>{html.escape(stage.title)}</h2>')
        if stage.notes:
            lines = ''.join(f'<li>{html.escape(text)}</li>' for text in stage.notes)
            parts.append(f'<details><summary>Stretches</summary><ul>{lines}</ul></details>')
        parts += [
            _parameters(stage.estimate, units),
            _fit(stage, units),
            _correlation(stage.estimate),
            *(_curves(stage, recording, units) for recording in stage.recordings),
        ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{html.escape(title)}</title><style>{_STYLE}</style></head>\n<body>\n'
        + '\n'.join(parts)
        + '\n</body></html>\n'
    )


def table(head: Sequence[str], rows: Iterable[Sequence[object]], style: str = '') -> str:
    """Return rows as an HTML table; numbers with five significant digits, NaN as nothing."""
    lines = []
    if head:
        lines.append(''.join(f'<th>{html.escape(cell)}</th>' for cell in head))
    lines += [''.join(f'<td>{_cell(cell)}</td>' for cell in row) for row in rows]
    named = f' class="{style}"' if style else ''
    return f'<table{named}>' + ''.join(f'<tr>{line}</tr>' for line in lines) + '</table>'


def _cell(value: object) -> str:
    """Return the content of a cell."""
    if isinstance(value, float):
        return '' if math.isnan(value) else f'{value:.5g}'
    return html.escape(str(value))


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
    return table(head, rows)


def _fit(stage: Stage, units: Mapping[str, str]) -> str:
    """Return the table of signals, before and after."""
    rows = []
    for name, fit in stage.estimate.fit.items():
        errors = [
            recording.signals[name].values - stage.before[recording.name, name]
            for recording in stage.recordings
            if (recording.name, name) in stage.before and name in recording.signals
        ]
        before = np.concatenate(errors) if errors else np.array([np.nan])
        with np.errstate(invalid='ignore'):
            rms = float(np.sqrt(np.nanmean(before**2))) if np.isfinite(before).any() else math.nan
        after = (fit.rms, fit.deviation, fit.variance_explained, fit.validation_rms)
        rows.append((name, units.get(name, ''), fit.rows, rms, *after))
    head = ('signal', 'unit', 'rows', 'RMS before', 'RMS after', 'noise', 'variance explained')
    return table((*head, 'RMS of validation'), rows)


def _correlation(found: Estimate) -> str:
    """Return a figure of the correlation matrix."""
    if len(found.names) < 2:
        return ''
    from matplotlib.figure import Figure

    size = 1.6 + 0.32 * len(found.names)
    figure = Figure(figsize=(size + 2.0, size), layout='constrained')
    axes = figure.add_subplot()
    shown = axes.imshow(found.correlation, vmin=-1.0, vmax=1.0, cmap='RdBu_r')
    axes.set_xticks(range(len(found.names)), found.names, rotation=90, fontsize=7)
    axes.set_yticks(range(len(found.names)), found.names, fontsize=7)
    figure.colorbar(shown, label='correlation')
    return _svg(figure)


def _curves(stage: Stage, recording: Recording, units: Mapping[str, str]) -> str:
    """Return a figure of a recording: a panel for each family of signals, with residuals."""
    from matplotlib.figure import Figure

    families: dict[str, list[str]] = {}
    for name in recording.signals:
        if (recording.name, name) in stage.estimate.predicted:
            families.setdefault(_family(name), []).append(name)
    panels = [
        (family, names[k : k + _MOST_CURVES])
        for family, names in families.items()
        for k in range(0, len(names), _MOST_CURVES)
    ]
    if not panels:
        return ''
    figure = Figure(figsize=(_WIDTH, 2.9 * len(panels)), layout='constrained')
    widths = (3, 2) if stage.at_rest else (3, 2, 1)
    axes = figure.subplots(len(panels), len(widths), squeeze=False, width_ratios=widths)
    for row, (_, names) in zip(axes, panels, strict=True):
        left, right, far = row[0], row[1], row[-1]
        for k, name in enumerate(names):
            signal = recording.signals[name]
            key = (recording.name, name)
            order = np.argsort(signal.times, kind='stable')
            every = order[:: max(1, len(order) // _MOST_POINTS)]
            times, values = signal.times[every], signal.values[every]
            after, color = stage.estimate.predicted[key][every], f'C{k}'
            size = 2 if len(times) > _FEW else 7
            # Motion without its constant, by which signals of different size are compared.
            base = 0.0 if stage.at_rest else float(np.nanmean(values))
            dots = {'color': color, 'markersize': size, 'rasterized': True}
            left.plot(times, values - base, '.', alpha=0.5, **dots)
            # Nothing is known between two poses.
            before, now = ('x', '+') if stage.at_rest else ('--', '-')
            if key in stage.before:
                left.plot(times, stage.before[key][every] - base, before, color=color, lw=0.8)
            left.plot(times, after - base, now, color=color, linewidth=1.2, label=name)
            right.plot(times, values - after, '.', **dots)
            if not stage.at_rest:
                lags, related = _autocorrelation(signal, stage.estimate.predicted[key])
                far.plot(lags, related, color=color, linewidth=1.0)
        unit = units.get(names[0], '')
        what = _family(names[0]) + ('' if stage.at_rest else ' less its mean')
        left.set_ylabel(f'{what} [{unit}]' if unit else what)
        left.legend(fontsize=7, loc='upper right')
        right.set_ylabel('residual')
        if not stage.at_rest:
            far.set_ylabel('autocorrelation')
            far.set_ylim(-1.0, 1.0)
        for one in row:
            one.grid(alpha=0.3)
    for one, text in zip(axes[-1], ('time [s]', 'time [s]', 'lag [s]'), strict=False):
        one.set_xlabel(text)
    marks = 'before (x), after (+)' if stage.at_rest else 'before (dashed), after (line)'
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


def profile_figure(name: str, values: Sequence[float], increase: Sequence[float]) -> str:
    """Return the figure of a profile likelihood, with the level of 95 %."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(0.5 * _WIDTH, 2.9), layout='constrained')
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


def _svg(figure: Any) -> str:
    """Return a figure as an element of a page."""
    buffer = io.StringIO()
    figure.savefig(buffer, format='svg', metadata={'Date': None})
    text = re.sub(r'<metadata>.*?</metadata>', '', buffer.getvalue(), flags=re.DOTALL)
    return f'<figure>{text[text.index("<svg") :]}</figure>'
