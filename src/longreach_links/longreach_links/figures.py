"""Figures of runs of flexible links."""

from __future__ import annotations

from pathlib import Path

from longreach_symbolic.simulation import LinksRun
from longreach_tools.output import figure, legend

__all__ = ['draw_run']

# Largest number of curves with a legend.
_NAMED = 6


def draw_run(file: Path, run: LinksRun) -> None:
    """Draw the way of the end, then motor angles, torques and deflections over time."""
    time = run.column('time')
    with figure(file, size=(8.0, 11.0), rows=3, above=2.2) as axes:
        way, *others = axes
        if 'wanted_x' in run.columns.names:
            way.plot(run.column('wanted_x'), run.column('wanted_z'), 'C7--', label='desired')
        way.plot(run.column('tip_x'), run.column('tip_z'), label='end')
        way.set(xlabel='x [m]', ylabel='z [m]', aspect='equal')
        legend(way, 2)
        for axis, (family, unit, text) in zip(
            others,
            (('motor_*', 'deg', 'motor angle'), ('torque_*', 'N m', 'torque'), ('f_*', 'mm', 'f')),
            strict=True,
        ):
            names = [column.name for column in run.columns if column.family == family]
            for name in names:
                axis.plot(time, run.column(name, unit), label=name)
            axis.set_ylabel(f'{text} [{unit}]')
            if len(names) <= _NAMED:
                legend(axis, len(names))
        others[-1].set_xlabel('time [s]')
