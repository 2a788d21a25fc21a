"""Figures of the paper: two models of the harvester."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from longreach_dynamics.valve_pid import ValvePidParameters
from longreach_harvester.simulation import HarvesterRun
from longreach_tools.output import figure, legend


def draw_models(
    file: Path,
    runs: Mapping[str, HarvesterRun],
    references: np.ndarray,
    stick: ValvePidParameters,
) -> None:
    """
    Draw figures 5 and 8 to 11 of the paper for several models.

    Parameters
    ----------
    file : Path
    runs : mapping
        By the name of the model.
    references : ndarray, shape (rows, 3)
        What the controllers follow [rad].
    stick : ValvePidParameters
        Controller of the stick.
    """
    with figure(file, size=(8.0, 9.0), rows=4) as axes:
        for (name, run), style in zip(runs.items(), ('C0-', 'C1--'), strict=True):
            time, band = run.column('time'), run.parameters.stick_cylinder.valve.dead_band
            error = np.degrees(references[:, 2] - run.column('q_stick'))
            spool = run.column('spool_stick')
            beyond = np.maximum(np.abs(spool) - band, 0.0) / (1.0 - band)
            volts = stick.full_volts * np.copysign(beyond, spool)
            pressures = [run.column(f'p_2_{joint}', 'bar') for joint in ('stick', 'boom')]
            for axis, values in zip(axes, (error, pressures[0], volts, pressures[1]), strict=True):
                axis.plot(time, values, style, label=name)
        for axis, text in zip(
            axes,
            (
                'stick: error [deg]\n(figures 5, 8)',
                'stick: P_4 [bar]\n(figure 9)',
                'stick: command [V]\n(figure 10)',
                'boom, closed: P_4 [bar]\n(figure 11)',
            ),
            strict=True,
        ):
            axis.set_ylabel(text)
        legend(axes[0], 2)
        axes[-1].set_xlabel('time [s]')
