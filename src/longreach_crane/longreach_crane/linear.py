"""The crane's equations between two events, for linear models."""

from __future__ import annotations

import numpy as np

from longreach_crane.model import HELD, Constants, Inputs, load_position, right_hand_side
from longreach_crane.simulation import STATE
from longreach_machine.linear import Signal, SmoothModel

_STATES = tuple(Signal(column.name, column.unit) for column in STATE)


def smooth_model(x: np.ndarray, inputs: Inputs, constants: Constants) -> SmoothModel:
    """Return the equations near a state x (5,); inputs ``command``, ``disturbance`` [N]."""

    def rates(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        dx = np.empty(5)
        given = inputs._replace(desired_force=float(u[0]), disturbance=float(u[1]))
        right_hand_side(0.0, x, given, constants, dx)
        return dx

    def observe(x: np.ndarray, _: np.ndarray) -> np.ndarray:
        return np.append(x, load_position(x, constants))

    return SmoothModel(
        _STATES,
        (Signal('command', 'N'), Signal('disturbance', 'N')),
        (*_STATES, Signal('load_position', 'm')),
        x,
        np.array([inputs.desired_force, inputs.disturbance]),
        rates,
        observe,
        ('the brake holds the car',) if inputs.car == HELD else (),
    )
