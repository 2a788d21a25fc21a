"""Figures 10 to 14 of the experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from longreach_symbolic.experiment import CENTRE, PAPER_FREQUENCIES, RADIUS, Experiment
from longreach_tools.output import figure, legend

_COLORS = ('tab:blue', 'tab:orange')
_MOST_FREQUENCY = 100.0  # [rad/s]


def draw(file: str | Path, run: Experiment) -> None:
    """Draw a run: figure 10 of the paper for ``free``, figures 11 to 14 for ``circle``."""
    if run.case == 'free':
        _draw_free(file, run)
    else:
        _draw_circle(file, run)


def _draw_free(file: str | Path, run: Experiment) -> None:
    """Draw spectrum and acceleration of the free end, figure 10."""
    with figure(file, size=(9.0, 7.0), rows=3, above=1.0) as (spectrum, motion, angle, torque):
        frequency, amplitude = run.spectrum
        shown = frequency <= _MOST_FREQUENCY
        spectrum.plot(frequency[shown], amplitude[shown], label='spectrum of the acceleration')
        for number, value in enumerate(PAPER_FREQUENCIES):
            label = 'reported in the paper' if number == 0 else None
            spectrum.axvline(value, color='0.5', linestyle=':', label=label)
        spectrum.set_xlabel('angular frequency [rad/s]')
        spectrum.set_ylabel('[m/s$^2$]')
        motion.plot(run.time, run.accelerations[:, -1], linewidth=0.8, label='end of link 2')
        motion.set_ylabel('vertical\nacceleration [m/s$^2$]')
        _draw_angles(angle, run)
        _draw_torques(torque, run)
        torque.set_xlabel('time [s]')
        for axis in (spectrum, motion, angle, torque):
            legend(axis, 4)


def _draw_circle(file: str | Path, run: Experiment) -> None:
    """Draw path, angles, torques and accelerations, figures 11 to 14."""
    with figure(file, size=(9.0, 10.0), rows=4, above=2.0) as (path, angle, torque, first, second):
        turn = np.linspace(0.0, 2.0 * np.pi, 200)
        path.plot(
            CENTRE[0] + RADIUS * np.cos(turn), CENTRE[1] + RADIUS * np.sin(turn), '--',
            color='0.3', linewidth=1.0, label='desired',
        )  # fmt: skip
        path.plot(*run.ends[:, 1].T, color=_COLORS[1], label='end of link 2')
        path.set_aspect('equal')
        path.set_xlabel('x [m]')
        path.set_ylabel('y [m]')
        _draw_angles(angle, run)
        _draw_torques(torque, run)
        for number, axis in enumerate((first, second)):
            axis.plot(
                run.time, run.accelerations[:, number], color=_COLORS[number], linewidth=0.8,
                label=f'end of link {number + 1}',
            )  # fmt: skip
            axis.set_ylabel('vertical\nacceleration [m/s$^2$]')
        for axis in (path, angle, torque, first, second):
            legend(axis, 4)
        second.set_xlabel('time [s]')


def _draw_angles(axis: Any, run: Experiment) -> None:
    """Draw motor angles and what is desired."""
    for number, color in enumerate(_COLORS):
        name = f'motor {number + 1}'
        axis.plot(run.time, run.motor_angles[:, number], color=color, label=name)
        axis.plot(
            run.time, run.references[:, number], '--', color='0.3', linewidth=1.0,
            label='desired' if number else None,
        )  # fmt: skip
    axis.set_ylabel('angle [rad]')


def _draw_torques(axis: Any, run: Experiment) -> None:
    """Draw motor torques."""
    for number, color in enumerate(_COLORS):
        label = f'motor {number + 1}'
        axis.plot(run.time, run.motion.torques[:, number], color=color, linewidth=0.8, label=label)
    axis.set_ylabel('torque [N m]')
