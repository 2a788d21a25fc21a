"""Figures of the harvester."""

from __future__ import annotations

from pathlib import Path

from longreach_harvester.parameters import JOINTS
from longreach_harvester.simulation import HarvesterRun
from longreach_tools.output import figure, legend

__all__ = ['draw_run']


def draw_run(file: Path, run: HarvesterRun) -> None:
    """Draw joint angles, spools, pressures and flows over time."""
    time = run.column('time')
    with figure(file, size=(8.0, 9.0), rows=4) as axes:
        for k, name in enumerate(JOINTS):
            color = f'C{k}'
            axes[0].plot(time, run.column(f'q_{name}', 'deg'), color=color, label=name)
            axes[1].plot(time, run.column(f'spool_{name}'), color=color, label=name)
            for side, style in ((1, '-'), (2, ':')):
                pressures = run.column(f'p_{side}_{name}', 'bar')
                axes[2].plot(time, pressures, style, color=color, label=f'{name} {side}')
                flows = 6e4 * run.column(f'q_{side}_{name}')
                axes[3].plot(time, flows, style, color=color, label=f'{name} {side}')
        for axis, text, columns in zip(
            axes,
            ('angle [deg]', 'spool', 'pressure [bar]', 'flow [l/min]'),
            (3, 3, 6, 6),
            strict=True,
        ):
            axis.set_ylabel(text)
            legend(axis, columns)
        axes[-1].set_xlabel('time [s]')
