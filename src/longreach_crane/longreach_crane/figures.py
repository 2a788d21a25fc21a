"""Figures of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from longreach_crane.results import CraneRun
from longreach_tools.output import figure, legend

__all__ = ['draw_run']


def _spans(time: np.ndarray, flags: np.ndarray) -> list[tuple[float, float]]:
    """Return (start, length) [s] of the times in which a flag is set, both shape (cycles,)."""
    edges = np.diff(np.concatenate(([0.0], flags, [0.0])))
    starts = np.flatnonzero(edges > 0.0)
    stops = np.minimum(np.flatnonzero(edges < 0.0), len(time) - 1)
    return [(time[i], time[j] - time[i]) for i, j in zip(starts, stops, strict=True)]


def draw_run(file: str | Path, result: CraneRun) -> None:
    """
    Draw car, load, angle, brake and emergency mode over time, as required in C13R.

    The plot of the position has the set points and the permitted range, too.

    Parameters
    ----------
    file : path
        Picture to write; its suffix selects the format.
    result : CraneRun
    """
    time = result.column('time')
    with figure(file, size=(9.0, 6.5), rows=4) as (position, angle, force, modes):
        position.plot(time, result.column('load_position'), color='tab:orange', label='load $x_l$')
        position.plot(time, result.column('car_position'), color='tab:blue', label='car $x_c$')
        if result.set_points is not None:
            style: dict[str, Any] = {'color': '0.3', 'linestyle': '--', 'linewidth': 1.0}
            position.step(time, result.set_points, where='post', label='set point', **style)
        crane = result.parameters
        for limit, label in ((crane.minimum_position, 'limits'), (crane.maximum_position, None)):
            position.axhline(limit, color='tab:red', linestyle=':', linewidth=1.0, label=label)
        position.set_ylabel('position [m]')
        angle.plot(time, result.column('angle', 'deg'), color='tab:green', label=r'cable $\alpha$')
        angle.set_ylabel('angle [deg]')
        force.plot(time, result.column('command'), color='0.6', label='desired')
        force.plot(time, result.column('motor_force'), color='tab:purple', label='motor $f_c$')
        force.set_ylabel('force [N]')
        # Separate strips, so that the two do not overlap.
        for level, name, color in ((1.2, 'brake', 'tab:gray'), (0.0, 'emergency', 'tab:red')):
            modes.broken_barh(_spans(time, result.column(name)), (level, 1.0), color=color)
        modes.set_yticks([0.5, 1.7], ['emergency', 'brake'])
        modes.set_ylim(-0.1, 2.3)
        modes.set_xlabel('time [s]')
        modes.set_xlim(time[0], time[-1])
        for number, event in enumerate(result.events):
            for axis in (position, angle, force, modes):
                label = 'brake, emergency' if axis is angle and number == 0 else None
                axis.axvline(event.time, color='0.75', linewidth=0.8, zorder=0, label=label)
        for axis in (position, angle, force):
            legend(axis, 4)
