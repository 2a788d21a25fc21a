"""Figures drawn by matplotlib, and tables of the same curves."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longreach_tools.output import figure, write_csv

from ._picture import Curve, Panel, Picture, decimate, isolated

# More points of one curve are not drawn, see :func:`decimate`.
MOST_POINTS = 4000
# Sizes [inch] of a panel, of a bar of a strip, of the margins, and of what a machine draws above.
_WIDTH, _PANEL, _BAR, _MARGIN, _ABOVE = 9.0, 1.75, 0.2, 0.75, 3.5
_COLORS, _STYLES = 10, ('-', '--', ':', '-.')
# Legends with more entries have two columns.
_LONG_LEGEND = 8


def draw(file: Path, picture: Picture, above: Callable[[Any], None] | None = None) -> None:
    """Draw a figure, and with ``above`` in axes above it."""
    panels = picture.rows
    heights = [_PANEL] * len(panels)
    if picture.strips:
        heights.append(_BAR * (len(picture.strips) + 1))
    extra = _ABOVE if above else 0.0
    size = (_WIDTH, extra + sum(heights) + _MARGIN)
    with figure(file, size, rows=len(heights), above=extra, heights=heights) as axes:
        if above:
            above(axes.pop(0))
        for axis, panel in zip(axes, panels, strict=False):
            _draw_panel(axis, panel, picture)
        if picture.strips:
            _draw_strips(axes[-1], picture)
        for time, text in picture.events:
            for axis in axes:
                axis.axvline(time, color='0.75', linewidth=0.8, zorder=0)
            place = {'xycoords': ('data', 'axes fraction'), 'textcoords': 'offset points'}
            style = {'fontsize': 'small', 'color': '0.4'}
            axes[0].annotate(text, (time, 1.0), xytext=(2, 2), **place, **style)
        axes[0].set_title(picture.title, loc='left', fontsize='medium', pad=14.0)
        axes[-1].set_xlabel(picture.time_label)
        axes[0].set_xlim(*picture.limits)


def _draw_panel(axis: Any, panel: Panel, picture: Picture) -> None:
    """Draw the curves of a panel."""
    for number, curve in enumerate(panel.curves):
        style = style_of(number, curve)
        if panel.others:
            other = panel.others[number]
            # The second run below, wide and pale: where they agree, both are seen.
            _draw_curve(axis, other, {**style, 'linewidth': 3.5, 'alpha': 0.35, 'label': None})
        _draw_curve(axis, curve, style)
    if panel.others:
        for name, style in zip(
            picture.names, ({'linewidth': 1.2}, {'linewidth': 3.5, 'alpha': 0.35}), strict=True
        ):
            axis.plot([], [], color='0.3', label=name, **style)
    for number, limit in enumerate(panel.limits):
        label = None if number else 'limits'
        axis.axhline(limit, color='tab:red', linestyle=':', linewidth=1.0, label=label)
    axis.set_ylabel(panel.label)
    # An offset would be written where events are named.
    axis.ticklabel_format(axis='y', useOffset=False)
    values = np.concatenate([curve.values for curve in (*panel.curves, *panel.others)])
    flags = np.isin(values[np.isfinite(values)], (0.0, 1.0)).all()
    if flags and all(curve.steps and not curve.unit for curve in panel.curves):
        axis.set_yticks([0, 1])
    entries = len(axis.get_legend_handles_labels()[1])
    axis.legend(
        loc='upper left',
        bbox_to_anchor=(1.0, 1.03),
        frameon=False,
        fontsize='small' if entries <= _LONG_LEGEND else 'x-small',
        ncols=math.ceil(entries / (2 * _LONG_LEGEND)),
        labelspacing=0.25,
    )


def _draw_curve(axis: Any, curve: Curve, style: dict[str, Any]) -> None:
    """Draw a curve."""
    kept = decimate(curve.values, MOST_POINTS)
    if alone := isolated(curve.values[kept]):
        style = {**style, 'marker': '.', 'markevery': alone}
    axis.plot(curve.time[kept], curve.values[kept], **style)


def style_of(number: int, curve: Curve) -> dict[str, Any]:
    """Return how a curve is drawn, by its number on its axes."""
    line = _STYLES[number // _COLORS % len(_STYLES)]
    style = {'color': f'C{number % _COLORS}', 'linestyle': line}
    look = {'color': '0.3', 'linestyle': '--'} if curve.wanted else style
    steps = 'steps-post' if curve.steps else 'default'
    return {**look, 'linewidth': 1.2, 'drawstyle': steps, 'label': curve.label}


def _draw_strips(axis: Any, picture: Picture) -> None:
    """Draw when the brake is closed and the like, one bar for each."""
    strips = picture.strips
    for level, strip in enumerate(reversed(strips)):
        bars = [(begin, end - begin) for begin, end in strip.spans]
        color = 'tab:red' if strip.alarm else 'tab:gray'
        axis.broken_barh(bars, (level - 0.4, 0.8), color=color)
    names = [strip.label for strip in reversed(strips)]
    axis.set_yticks(range(len(strips)), names, fontsize='small')
    axis.set_ylim(-0.6, len(strips) - 0.4)
    axis.grid(visible=False, axis='y')


def write_table(file: Path, picture: Picture) -> None:
    """Write all samples as CSV, nan where a curve has none; of equal times each has a row."""
    columns: list[tuple[str, np.ndarray, np.ndarray]] = []
    for panel in picture.panels:
        for place, curve in enumerate(panel.curves):
            columns.append((curve.name, curve.time, curve.values))
            if panel.others:
                other = panel.others[place]
                columns.append((f'{curve.name} of {picture.names[1]}', other.time, other.values))
                less = panel.differences[place].values
                columns.append((f'difference of {curve.name}', curve.time, less))
    unique = list({name: (name, time, values) for name, time, values in columns}.values())
    # Times as real parts, and the number among equal ones as imaginary parts.
    stamps = [t + 1j * (np.arange(len(t)) - np.searchsorted(t, t)) for _, t, _ in unique]
    rows = np.unique(np.concatenate(stamps))
    table = np.full((len(rows), 1 + len(unique)), np.nan)
    table[:, 0] = rows.real
    for place, ((_, _, values), own) in enumerate(zip(unique, stamps, strict=True), 1):
        table[np.searchsorted(rows, own), place] = values
    write_csv(file, ['time', *(name for name, _, _ in unique)], table)


def statistics(curve: Curve) -> dict[str, float | int | None]:
    """Return samples, unknown ones, least, greatest and mean value, and the largest interval."""
    known = curve.values[np.isfinite(curve.values)]
    steps: Sequence[float] = np.diff(curve.time).tolist()
    return {
        'samples': len(curve.time),
        'unknown': len(curve.time) - len(known),
        'min': float(known.min()) if known.size else None,
        'max': float(known.max()) if known.size else None,
        'mean': float(known.mean()) if known.size else None,
        'largest_interval': max(steps) if steps else None,
    }


def agreement(difference: Curve) -> dict[str, float | None]:
    """Return the share of samples at which two curves are known, largest and RMS difference."""
    known = difference.values[np.isfinite(difference.values)]
    some = len(known) > 0
    return {
        'overlap': len(known) / len(difference.values) if some else 0.0,
        'largest_difference': float(np.abs(known).max()) if some else None,
        'rms_difference': float(np.sqrt(np.mean(known**2))) if some else None,
    }
