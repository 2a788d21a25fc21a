"""The figure of a run, made of the panels that its machine declares."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from longreach_dynamics.parameters import rules_of
from longreach_machine import MachineSpec, Panel, curves_of
from longreach_machine.gaps import with_gaps
from longreach_machine.runs import Run, convert
from longreach_tools.output import figure, legend
from longreach_tools.plot._picture import spans

# Largest number of curves with a legend; least columns of a legend.
_NAMED, _COLUMNS = 9, 5


def draw_run(
    spec: MachineSpec[Any, Any, Any], file: Path, run: Run[Any], library: Run[Any] | None = None
) -> None:
    """Draw panels and lanes below what the machine itself draws; the ``library``'s dotted."""
    named = [(one, [c.name for c, _ in curves_of(one, run.columns)]) for one in spec.panels]
    # Not zeros of an optional one.
    panels = [p for p, have in named if have and (not p.optional or run.stack(have).any())]
    above = 2.2 if spec.figures else 0.0
    rows = len(panels) + bool(spec.lanes)
    size = (9.0, 1.8 * rows + 1.6 * above)
    with figure(file, size=size, rows=rows, above=above) as axes:
        if spec.figures:
            import_module(spec.figures).draw_above(axes.pop(0), run)
        for axis, panel in zip(axes, panels, strict=False):
            _draw_panel(axis, panel, run, library)
        time = run.column('time')
        if spec.lanes:
            # Separate strips, so that they do not overlap.
            for level, lane in enumerate(spec.lanes):
                found = spans(time, run.column(lane.column) != 0.0)
                bars = [(begin, end - begin) for begin, end in found]
                color = ('tab:red', 'tab:gray')[level % 2]
                axes[-1].broken_barh(bars, (1.2 * level, 1.0), color=color)
            ticks = [1.2 * level + 0.5 for level in range(len(spec.lanes))]
            axes[-1].set_yticks(ticks, [lane.label for lane in spec.lanes])
        for event in getattr(run, 'events', ()):
            for axis in axes:
                axis.axvline(event.time, color='0.75', linewidth=0.8, zorder=0)
        axes[-1].set_xlabel('time [s]')
        axes[-1].set_xlim(time[0], time[-1])


def _draw_panel(axis: Any, panel: Panel, run: Run[Any], library: Run[Any] | None) -> None:
    """Draw the curves of a panel."""
    curves = curves_of(panel, run.columns)

    def values_of(one: Run[Any], name: str) -> tuple[Any, Any]:
        values = one.column(name, panel.unit)
        return with_gaps(one.column('time'), values - values[0] if panel.relative else values)

    for column, curve in curves:
        time, values = values_of(run, column.name)
        if curve.wanted:
            axis.step(time, values, '0.3', ls='--', lw=1.0, where='post', label=curve.label)
        else:
            axis.plot(time, values, label=curve.label)
    if library is not None:
        for k, (column, _) in enumerate(curves):
            label = None if k else 'library'
            axis.plot(*values_of(library, column.name), '0.1', ls=':', lw=1.2, label=label)
    for number, name in enumerate(panel.limits):
        label = None if number else 'limits'
        unit = rules_of(type(run.parameters))[name].unit
        limit = convert(getattr(run.parameters, name), unit, panel.unit)
        axis.axhline(limit, color='tab:red', linestyle=':', linewidth=1.0, label=label)
    unit = panel.unit or curves[0][0].unit
    axis.set_ylabel(panel.label + (f'\n[{unit}]' if unit not in ('', '1') else ''))
    if len(curves) <= _NAMED:
        entries = len(axis.get_legend_handles_labels()[1])
        legend(axis, max(_COLUMNS, (entries + 1) // 2))
