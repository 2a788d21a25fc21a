"""Figures 10 to 14 of the experiment, and that of ``longreach symbolic growth``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longreach_symbolic.experiment import CENTRE, PAPER_FREQUENCIES, RADIUS, Experiment
from longreach_tools.output import figure, legend

_COLORS = ('tab:blue', 'tab:orange')
_MOST_FREQUENCY = 100.0  # [rad/s]
# Table 1 of the paper, for 1 to 5 links [s].
_PAPER = (0.36, 0.92, 4.21, 21.3, 114.6)
_PAPER_TRADITIONAL = (41.63, 106.28, 212.57, 365.28, 1316.45)


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


def plot_growth(file: Path, rows: Sequence[Mapping[str, float]]) -> None:
    """Draw processor times [s] and operations by the number of links."""
    links = [row['links'] for row in rows]
    with figure(file, (7.0, 6.0), rows=2) as (times, operations):
        printed = range(1, len(_PAPER) + 1)
        times.plot(printed, _PAPER_TRADITIONAL, '^--', color='0.6', label='paper, traditional')
        times.plot(printed, _PAPER, 'v--', color='0.35', label='paper')
        times.plot(
            links, [r['derived'] + r['written'] for r in rows], 's-', label='reduced form, as C'
        )
        times.plot(links, [r['derived'] for r in rows], 'o-', label='reduced form')
        times.set_yscale('log')
        times.set_ylabel('time [s]')
        legend(times, 4)
        operations.plot(links, [r['written_out'] for r in rows], 's-', label='written out')
        operations.plot(links, [r['operations'] for r in rows], 'o-', label='after cse')
        operations.set_yscale('log')
        operations.set_ylabel('operations')
        operations.set_xlabel('links')
        legend(operations, 2)
