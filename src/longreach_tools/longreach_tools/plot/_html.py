"""Interactive figures in one HTML file, drawn by plotly, which is part of the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from longreach_tools.output import writing

from ._draw import MOST_POINTS
from ._picture import Curve, Picture, decimate, isolated

# How plotly writes a figure.
HTML: dict[str, Any] = {
    'include_plotlyjs': True,
    'include_mathjax': False,
    'div_id': 'figure',
    'config': {'displaylogo': False, 'responsive': True},
}
# Heights of a panel, of a bar of a strip, and of margins with the range selector [px].
_PANEL, _BAR, _MARGIN = 190, 22, 170
# Size of an isolated sample [px].
_DOT = 7.0
_DASHES = ('solid', 'dash', 'dot', 'dashdot')
# Of a set point, as in other figures.
_WANTED = {'color': '#4d4d4d', 'dash': 'dash'}


def write_page(file: Path, picture: Picture) -> None:
    """Write a figure as one page."""
    with writing(file) as path:
        path.write_text(plotted(picture).to_html(**HTML), encoding='utf-8')


def plotted(picture: Picture) -> Any:
    """Return a figure of plotly."""
    from plotly.colors import qualitative
    from plotly.subplots import make_subplots

    panels = picture.rows
    heights = [_PANEL] * len(panels) + [_BAR * (len(picture.strips) + 1)] * bool(picture.strips)
    page = make_subplots(
        rows=len(heights),
        cols=1,
        shared_xaxes=True,
        vertical_spacing=min(0.03, 0.3 / len(heights)),
        row_heights=heights,
    )
    # Those of matplotlib.
    colors = qualitative.D3
    for row, panel in enumerate(panels, 1):
        for number, curve in enumerate(panel.curves):
            look = {'color': colors[number % len(colors)]}
            look['dash'] = _DASHES[number // len(colors) % len(_DASHES)]
            if curve.wanted:
                look = _WANTED
            if panel.others:
                other = panel.others[number]
                name = f'{curve.label}, {picture.names[1]}'
                _add(page, row, other, name, {**look, 'width': 4}, 0.35)
            _add(page, row, curve, curve.label, {**look, 'width': 1.5}, 1.0)
        page.update_yaxes(title_text=panel.label.replace('\n', '<br>'), row=row, col=1)
        # Beside the panel.
        name = str(row) if row > 1 else ''
        place = {'y': page.layout[f'yaxis{name}'].domain[1], 'yanchor': 'top'}
        page.update_layout({f'legend{name}': place})
    if picture.strips:
        _add_strips(page, len(heights), picture)
    for time, text in picture.events:
        page.add_vline(x=time, line={'color': 'rgba(120,120,120,0.5)', 'width': 1})
        place = {'xref': 'x', 'yref': 'y domain', 'xanchor': 'left', 'yanchor': 'bottom'}
        page.add_annotation(x=time, y=1.0, text=text, showarrow=False, **place)
    page.update_xaxes(range=list(picture.limits))
    page.update_xaxes(title_text=picture.time_label, row=len(heights), col=1)
    page.update_layout(
        title={'text': picture.title, 'x': 0.01},
        template='plotly_white',
        height=sum(heights) + _MARGIN,
        showlegend=True,
        hovermode='x',
    )
    return page


def _add(
    page: Any, row: int, curve: Curve, name: str, line: dict[str, Any], opacity: float
) -> None:
    """Add a curve to a row."""
    kept = decimate(curve.values, MOST_POINTS)
    shape = {'shape': 'hv'} if curve.steps else {}
    points: dict[str, Any] = {'mode': 'lines'}
    if alone := isolated(curve.values[kept]):
        sizes = np.zeros(len(kept))
        sizes[alone] = _DOT
        look = {'size': sizes.tolist(), 'opacity': 1.0, 'line': {'width': 0}}
        points = {'mode': 'lines+markers', 'marker': look}
    page.add_scatter(
        x=curve.time[kept].tolist(),
        # Unknown values are gaps; JSON has no NaN.
        y=[value if np.isfinite(value) else None for value in curve.values[kept].tolist()],
        name=name,
        line=line | shape,
        **points,
        opacity=opacity,
        legend=f'legend{row if row > 1 else ""}',
        row=row,
        col=1,
    )


def _add_strips(page: Any, row: int, picture: Picture) -> None:
    """Add bars for the times in which the brake is closed and the like."""
    for strip in picture.strips:
        page.add_bar(
            base=[begin for begin, _ in strip.spans],
            x=[end - begin for begin, end in strip.spans],
            y=[strip.label] * len(strip.spans),
            orientation='h',
            marker={'color': '#d62728' if strip.alarm else '#7f7f7f', 'line': {'width': 0}},
            customdata=[list(span) for span in strip.spans],
            hovertemplate='%{customdata[0]:.6g} s to %{customdata[1]:.6g} s',
            name=strip.label,
            showlegend=False,
            row=row,
            col=1,
        )
    page.update_layout(barmode='overlay')
    page.update_yaxes(autorange='reversed', row=row, col=1)
