"""The figure of a run, made of the panels that its machine declares."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from longreach_machine import MachineSpec, curves_of
from longreach_machine.runs import Column, Run
from longreach_tools.plot._draw import draw
from longreach_tools.plot._picture import Curve, Mark, Picture, Strip, declared_panels, spans


def draw_run(
    spec: MachineSpec[Any, Any, Any], file: Path, run: Run[Any], library: Run[Any] | None = None
) -> None:
    """Draw panels and lanes below what the machine itself draws; below a recording the library."""

    def side(one: Run[Any]) -> Callable[[Column], Curve]:
        time = one.column('time')
        return lambda c: Curve(c.name, '', c.unit, time, one.column(c.name))

    # Not zeros of an optional one.
    shown = [
        panel
        for panel in spec.panels
        if not panel.optional
        or run.stack([column.name for column, _ in curves_of(panel, run.columns)]).any()
    ]
    runs = [run] if library is None else [run, library]
    panels = declared_panels(shown, run.columns, [*map(side, runs)], run.parameters)
    strips = [
        Strip(lane.label, spans(run.column('time'), run.column(lane.column) > 0.0), lane.alarm)
        for lane in spec.lanes
    ]
    marks = [Mark(begin, strip.label) for strip in strips for begin, _ in strip.spans]
    names = ('recording', 'library')[: len(runs)]
    strips = [strip for strip in strips if strip.spans]
    picture = Picture('', 'time [s]', panels, strips, marks, names).readable()
    above = partial(import_module(spec.figures).draw_above, run=run) if spec.figures else None
    draw(file, picture, above)
