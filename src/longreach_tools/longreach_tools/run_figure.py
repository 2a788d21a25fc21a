"""Figures of declared panels, above all of the run of a machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from longreach_machine import Lane, MachineSpec, Panel, curves_of
from longreach_machine.runs import Column, Run
from longreach_tools.plot._draw import draw
from longreach_tools.plot._picture import Curve, Mark, Picture, Strip, declared_panels, spans


def draw_run(
    spec: MachineSpec[Any, Any, Any], file: Path, run: Run[Any], library: Run[Any] | None = None
) -> None:
    """Draw panels and lanes below what the machine itself draws; below a recording the library."""
    # Not zeros of an optional one.
    shown = [
        panel
        for panel in spec.panels
        if not panel.optional
        or run.stack([column.name for column, _ in curves_of(panel, run.columns)]).any()
    ]
    sides = {'recording': run.column} | ({} if library is None else {'library': library.column})
    above = partial(import_module(spec.figures).draw_above, run=run) if spec.figures else None
    draw_columns(file, shown, run.columns, sides, spec.lanes, run.parameters, above)


def draw_columns(
    file: Path,
    panels: Iterable[Panel],
    columns: Sequence[Column],
    sides: Mapping[str, Callable[[str], np.ndarray]],
    lanes: Iterable[Lane] = (),
    parameters: Any = None,
    above: Callable[[Any], None] | None = None,
    *,
    differences: bool = False,
) -> None:
    """Draw panels of columns that one or two sides give by name, and lanes of the first side."""

    def curves(values: Callable[[str], np.ndarray]) -> Callable[[Column], Curve]:
        return lambda c: Curve(c.name, '', c.unit, values('time'), values(c.name))

    drawn = declared_panels(panels, columns, [*map(curves, sides.values())], parameters)
    if differences:
        drawn = [panel.compared() for panel in drawn]
    first = next(iter(sides.values()))
    strips = [
        Strip(lane.label, spans(first('time'), first(lane.column) > 0.0), lane.alarm)
        for lane in lanes
    ]
    marks = [Mark(begin, strip.label) for strip in strips for begin, _ in strip.spans]
    strips = [strip for strip in strips if strip.spans]
    picture = Picture('', 'time [s]', drawn, strips, marks, tuple(sides)).readable()
    draw(file, picture, above)
