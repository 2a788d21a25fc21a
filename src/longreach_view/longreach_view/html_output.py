"""A recording as one HTML file without a server: 3D with a time slider, and charts beside it."""

from __future__ import annotations

import html
import importlib.resources
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_tools.fields import numeric_fields
from longreach_tools.output import writing
from longreach_tools.plot._html import HTML
from longreach_view.charts import (
    EVENT,
    WANTED,
    Chart,
    event_times,
    limits_of,
    lines_of,
    load_presets,
    machine_charts,
)
from longreach_view.page import Request, lacking_lines, scale_lines
from longreach_view.recording import BagSource
from longreach_view.scene import Scene
from longreach_view.server import new_token, open_server, stop_server
from longreach_view.world import World

# Pictures per second, and the most of a file; the most points of a line.
_RATE, _MOST, _MOST_POINTS = 25.0, 1200, 2000
# Times at which it is found out how much room machines need.
_LOOKS = 60
# Height of a chart, width of its legend on a narrow page, height of a line of that, and what else
# is between two charts: a title [pixels].
_HEIGHT, _WIDTH, _LINE, _TITLE = 165, 320, 20, 35


def export(paths: Sequence[Path], file: Path) -> str:
    """Write one recording, or two to compare, to a file; return what it has, in words."""
    if file.suffix != '.html':
        raise InputError(f'--export {file}: the page is HTML; allowed: a name that ends in .html')
    source = BagSource(paths, math.inf)
    world, ghost = World(numeric_fields, source.count), source.ghost()
    worlds = [world] if ghost is None else [world, ghost]
    source.handle(Request('', 'loop', False))
    step = max(1.0 / _RATE, source.length / _MOST)
    count = math.floor(source.length / step) + 1
    server = open_server('127.0.0.1', 0, new_token())
    try:
        scene = Scene(server)

        def show(now: float) -> None:
            for sample in source.poll(world, now):
                world.take(sample, 0.0)
            for shown in worlds:
                for machine in shown.machines.values():
                    scene.update(machine, ghost=shown is ghost)
            scene.fit_pages()

        # Before, at some times, because the page begins with room for all that follows.
        for time in np.linspace(0.0, source.length, _LOOKS, endpoint=False):
            show(time)
        source.handle(Request('', 'seek', 0.0))
        show(source.length)
        recorder = server.get_scene_serializer()
        for k in range(1, count):
            recorder.insert_sleep(step)
            show(source.length + k * step)
        recorder.insert_sleep(step)
        page = recorder.as_html()
    finally:
        stop_server(server)
    charts = machine_charts(load_presets(), world)
    for shown in worlds:
        shown.plot(line for chart in charts for line in chart.lines)
    source.handle(Request('', 'seek', source.length))
    source.poll(world, 0.0)
    beside = importlib.resources.files(__package__).joinpath('export.html').read_text('utf-8')
    beside = beside.replace('BEGIN', repr(source.begin))
    rows = [f'<div>{html.escape(note)}</div>' for note in source.notes()]
    for machine in world.machines.values():
        rows += lacking_lines(scene, machine)
    rows += scale_lines(world.machines.values())
    beside = beside.replace('SCALES', ''.join(rows))
    beside = beside.replace('FIGURE', _figure(charts, worlds, source.length))
    title = html.escape(f'Longreach - {", ".join(world.machines)}')
    page = page.replace('<title>Viser</title>', f'<title>{title}</title>', 1)
    with writing(file) as path:
        path.write_text(page.replace('</body>', f'{beside}</body>'), encoding='utf-8')
    kept = f'a picture every {step:.2g} s, at most {_MOST_POINTS} points of a curve'
    return f'{file}: {source.length:.1f} s, {kept}'


def _figure(charts: Sequence[Chart], worlds: Sequence[World], length: float) -> str:
    """Return charts of whole recordings as a part of a page, with plotly in it."""
    from plotly.subplots import make_subplots

    rows = max(len(charts), 1)
    names = [[line.label for line in chart.lines] for chart in charts]
    for some in names if len(worlds) > 1 else ():
        some += [f'{name} (2)' for name in some]
    below = _LINE * max(map(_legend_lines, names), default=0)
    height = rows * _HEIGHT + (rows - 1) * (_TITLE + below)
    figure = make_subplots(
        rows=rows,
        shared_xaxes=True,
        vertical_spacing=(_TITLE + below) / height,
        subplot_titles=[chart.label for chart in charts],
    )
    for row, chart in enumerate(charts, 1):
        times, *lines, _ = lines_of(chart, worlds, length, _MOST_POINTS)
        suffix = str(row) if row > 1 else ''
        for k, line in enumerate(lines):
            second, number = divmod(k, len(chart.lines))
            colour = chart.colours[number]
            dash = 'dash' if second or colour == WANTED else 'solid'
            figure.add_scatter(
                x=times,
                y=line,
                name=names[row - 1][k],
                line={'color': colour, 'dash': dash, 'width': 1.5},
                legend=f'legend{suffix}',
                row=row,
                col=1,
            )
        legend = {'orientation': 'h', 'x': 0.0, 'yanchor': 'top', 'font': {'size': 11}}
        # Below the numbers of the last axis.
        legend['y'] = figure.layout[f'yaxis{suffix}'].domain[0] - (
            _TITLE / height if row == rows else 0.0
        )
        figure.update_layout({f'legend{suffix}': legend})
        figure.update_yaxes(range=limits_of(lines), row=row)
        for time in event_times(chart, worlds[0]):
            figure.add_vline(time, line={'color': EVENT, 'dash': 'dash', 'width': 1}, row=row)
    figure.update_xaxes(title_text='time [s]', row=rows)
    figure.update_layout(
        template='plotly_white',
        height=height + 2 * _TITLE + below,
        margin={'l': 50, 'r': 10, 't': _TITLE, 'b': _TITLE + below},
        hovermode='x',
        showlegend=True,
    )
    return str(figure.to_html(full_html=False, **HTML))


def _legend_lines(names: Sequence[str]) -> int:
    """Return the lines of a legend: names side by side are as wide as the longest, with a dash."""
    beside = max(1, int(_WIDTH / (45.0 + 5.3 * max(map(len, names)))))
    return -(-len(names) // beside)
