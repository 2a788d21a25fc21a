"""
The three tasks of ARGESIM benchmark C13R.

Task A compares the nonlinear and the linear model without controller and brake; Tasks B and C are
the scenarios of the controlled crane, without and with diagnosis (C13R section 3).
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from longreach_crane.machine import Command, Crane
from longreach_crane.model import load_position
from longreach_crane.parameters import CraneParameters, load_machinery
from longreach_crane.scenario import Disturbance, Scenario, load_scenario
from longreach_dynamics.resources import share_directory

TASKS = ('a', 'b', 'c')
# Dest [N] of Task A.
DISTURBANCES = (-750.0, -800.0, -850.0)
# Task A: motor force [N] and its duration [s]; start and end of the disturbance [s].
_PUSH, _PUSH_END = 160.0, 15.0
_DISTURBED_FROM, _DISTURBED_TO = 4.0, 7.0
END = 2000.0


class TaskARow(NamedTuple):
    """Load position x_l [m] at t = 2000 s in both models, for one disturbance [N]."""

    disturbance: float
    nonlinear: float
    linear: float
    difference: float  # nonlinear - linear
    limit: float  # of both models for t to infinity
    error_estimate: float  # of nonlinear and linear, the larger one


def task_a(crane: CraneParameters, disturbance: float) -> TaskARow:
    """
    Run Task A for one disturbance from 4 s to 7 s [N].

    The error estimate is the change of x_l with both tolerances increased by a factor of 30: about
    30 times the remaining error, and at least the rounding of the result.
    """
    values, errors = [], []
    for model in ('nonlinear', 'linear'):
        fine, coarse = (
            _load_position_at_end(crane, disturbance, model, 1e-14 * k, 1e-13 * k)
            for k in (1.0, 30.0)
        )
        values.append(fine)
        errors.append(max(abs(fine - coarse), 4.0 * float(np.spacing(abs(fine)))))
    return TaskARow(
        disturbance=disturbance,
        nonlinear=values[0],
        linear=values[1],
        difference=values[0] - values[1],
        limit=task_a_limit(crane, disturbance),
        error_estimate=max(errors),
    )


def task_a_limit(crane: CraneParameters, disturbance: float) -> float:
    """
    Return the final load position x_l in Task A [m] of both models; inf without friction.

    Balance of momentum: the impulses of motor and disturbance equal that of friction,
    (d_c + d_l) x_l = 15 s 160 N + 3 s Dest. The first-order motor transmits its whole impulse.
    """
    impulse = _PUSH * _PUSH_END + disturbance * (_DISTURBED_TO - _DISTURBED_FROM)
    friction = crane.car_friction + crane.load_friction
    return impulse / friction if friction > 0.0 else float(np.copysign(np.inf, impulse))


def _load_position_at_end(
    parameters: CraneParameters, disturbance: float, model: str, relative: float, absolute: float
) -> float:
    """Return x_l at the end of Task A [m]."""
    span = _DISTURBED_TO - _DISTURBED_FROM
    scenario = Scenario(
        duration=END, disturbances=(Disturbance(_DISTURBED_FROM, span, disturbance),)
    )
    crane = Crane(parameters, scenario, model, relative=relative, absolute=absolute)
    state = crane.initial_state()
    # Each interval is smooth: forces change at its ends only.
    edges = (0.0, _DISTURBED_FROM, _DISTURBED_TO, _PUSH_END, END)
    for start, end in itertools.pairwise(edges):
        force = _PUSH if start < _PUSH_END else 0.0
        state = crane.advance(state, Command(force, False), start, end - start)
    return float(load_position(state.x, crane.constants))


def task_scenario(task: str) -> Scenario:
    """Return the installed scenario of Task 'b' or 'c'."""
    directory = share_directory('longreach_bringup') / 'config' / 'scenarios'
    return load_scenario(directory / f'task_{task}.yaml', load_machinery().controller.sample_time)
