"""A recording as one HTML file without a server: 3D with a time slider, and charts beside it."""

from __future__ import annotations

import html
import importlib.resources
import math
from collections.abc import Sequence
from pathlib import Path

from longreach_dynamics.errors import InputError
from longreach_tools.fields import numeric_fields
from longreach_tools.output import writing
from longreach_view.charts import (
    COLOURS,
    EVENT,
    Chart,
    event_times,
    lines_of,
    load_presets,
    machine_charts,
    short_names,
)
from longreach_view.page import Request, scale_lines, unplaced_lines
from longreach_view.recording import BagSource
from longreach_view.scene import Scene
from longreach_view.server import new_token, open_server, stop_server
from longreach_view.world import World

# Pictures per second, and the most of a file; the most points of a line.
_RATE, _MOST, _MOST_POINTS = 25.0, 1200, 2000
# Height of a chart [pixels].
_HEIGHT = 240


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
        recorder = None
        for k in range(count):
            for sample in source.poll(world, k * step):
                world.take(sample, 0.0)
            for shown in worlds:
                for machine in shown.machines.values():
                    scene.update(machine, ghost=shown is ghost)
            recorder = recorder or server.get_scene_serializer()
            recorder.insert_sleep(step)
        assert recorder is not None
        page = recorder.as_html()
    finally:
        stop_server(server)
    charts = machine_charts(load_presets(), world)
    for shown in worlds:
        shown.plot(signal for chart in charts for signal in chart.signals)
    source.handle(Request('', 'seek', source.length))
    source.poll(world, 0.0)
    beside = importlib.resources.files(__package__).joinpath('export.html').read_text('utf-8')
    beside = beside.replace('BEGIN', repr(source.begin))
    rows = [f'<div>{html.escape(note)}</div>' for note in source.notes()]
    for machine in world.machines.values():
        rows += unplaced_lines(scene, machine)
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
    figure = make_subplots(
        rows=rows,
        shared_xaxes=True,
        vertical_spacing=0.3 / rows,
        subplot_titles=[chart.label for chart in charts],
    )
    for row, chart in enumerate(charts, 1):
        times, *lines, _ = lines_of(chart, worlds, length, _MOST_POINTS)
        names, suffix = short_names(chart.signals), str(row) if row > 1 else ''
        for k, line in enumerate(lines):
            second, number = divmod(k, len(names))
            figure.add_scatter(
                x=times,
                y=line,
                name=names[number] + ' (2)' * second,
                line={'color': COLOURS[number], 'dash': ('solid', 'dash')[second], 'width': 1.5},
                legend=f'legend{suffix}',
                row=row,
                col=1,
            )
        below = {'orientation': 'h', 'x': 0.0, 'yanchor': 'top', 'font': {'size': 11}}
        # Below the numbers of the last axis.
        below['y'] = figure.layout[f'yaxis{suffix}'].domain[0] - (
            0.07 / rows if row == rows else 0.0
        )
        figure.update_layout({f'legend{suffix}': below})
        for time in event_times(chart, worlds[0]):
            figure.add_vline(time, line={'color': EVENT, 'dash': 'dash', 'width': 1}, row=row)
    figure.update_xaxes(title_text='time [s]', row=rows)
    figure.update_layout(
        template='plotly_white',
        height=_HEIGHT * rows,
        margin={'l': 50, 'r': 10, 't': 30, 'b': 40},
        hovermode='x',
        showlegend=True,
    )
    text: str = figure.to_html(
        full_html=False,
        include_plotlyjs=True,
        include_mathjax=False,
        div_id='figure',
        config={'displaylogo': False, 'responsive': True},
    )
    return text
