"""What a figure of flexible links has above the panels."""

from __future__ import annotations

from typing import Any

from longreach_dynamics.runs import Run
from longreach_tools.output import legend


def draw_above(axis: Any, run: Run[Any]) -> None:
    """Draw the way of the end."""
    if 'wanted_x' in run.columns.names:
        axis.plot(run.column('wanted_x'), run.column('wanted_z'), 'C7--', label='desired')
    axis.plot(run.column('tip_x'), run.column('tip_z'), label='end')
    axis.set(xlabel='x [m]', ylabel='z [m]', aspect='equal')
    legend(axis, 2)
