"""A recording as one HTML file without a server: 3D with a time slider, and charts beside it."""

from __future__ import annotations

import html
import importlib.resources
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_machine.panels import period_of
from longreach_tools.fields import numeric_fields
from longreach_tools.output import writing
from longreach_tools.plot._draw import MOST_POINTS
from longreach_tools.plot._html import HTML, plotted
from longreach_tools.plot._picture import Curve, Mark, Panel, Picture
from longreach_view.chart_files import load_presets, machine_charts
from longreach_view.charts import Chart
from longreach_view.page import Request, lacking_lines, legend_lines
from longreach_view.recording import BagSource
from longreach_view.scene import Scene
from longreach_view.server import new_token, open_server, stop_server
from longreach_view.world import Line, World

# Pictures per second, and the most of a file.
_RATE, _MOST = 25.0, 1200
# Times at which it is found out how much room machines need.
_LOOKS = 60


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
    rows += legend_lines(world.machines.values())
    beside = beside.replace('SCALES', ''.join(rows))
    beside = beside.replace('FIGURE', _figure(charts, worlds))
    title = html.escape(f'Longreach - {", ".join(world.machines)}')
    page = page.replace('<title>Viser</title>', f'<title>{title}</title>', 1)
    with writing(file) as path:
        path.write_text(page.replace('</body>', f'{beside}</body>'), encoding='utf-8')
    kept = f'a picture every {step:.2g} s, at most {MOST_POINTS} points of a curve'
    return f'{file}: {source.length:.1f} s, {kept}'


def _figure(charts: Sequence[Chart], worlds: Sequence[World]) -> str:
    """Return charts of whole recordings as a part of a page, with plotly in it."""

    def curve(line: Line, scale: float, world: World) -> Curve:
        series = world.series[line.signal]
        time, values = series.window(-math.inf, math.inf)
        steps = series.is_held or not period_of(np.diff(time))
        time = time + worlds[0].present - world.present
        one = Curve('', line.label, '', time, scale * values, steps, line.wanted)
        return one.drawn(worlds[0].present)

    panels = [
        Panel(
            f'{chart.title}\n[{chart.unit}]'.removesuffix('\n[]'),
            *([curve(line, chart.scale, world) for line in chart.lines] for world in worlds),
        )
        for chart in charts
    ] or [Panel('', ())]
    # Without texts, for which there is no room.
    marks = [Mark(time, '') for one in worlds[0].machines.values() for time, _ in one.events]
    page = plotted(Picture('', 'time [s]', panels, (), marks, ('', '2')))
    page.update_layout(margin={'l': 60, 'r': 10, 't': 40, 'b': 40}, font={'size': 11})
    return str(page.to_html(full_html=False, **HTML))
