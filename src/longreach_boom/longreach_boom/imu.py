"""What inertial sensors at the beams' tips measure: rates of turn, and specific forces."""

from __future__ import annotations

import numpy as np

from longreach_boom.kinematics import frames_of, tip_angles
from longreach_boom.model import constants_of, row_count
from longreach_boom.motion import evaluate
from longreach_boom.parameters import BoomParameters
from longreach_boom.state import BoomState, StateParts, truck_of

# Time over which velocities are differenced along the motion [s].
_APART = 1e-5


def tip_rates(boom: BoomParameters, state: BoomState) -> np.ndarray:
    """Return the rates of turn of the beams' tips (N,) [rad/s], positive lifts."""
    turning, _ = tip_angles(boom, StateParts.of(state.y, boom).v)
    return np.asarray(truck_of(state.y, boom)[3] + turning)


def tip_accelerations(
    boom: BoomParameters,
    state: BoomState,
    friction: bool = True,
    mounting: np.ndarray | float = 0.0,
) -> np.ndarray:
    """Return acceleration less gravity of the tips (N, 2) [m/s^2], along and across."""
    constants = constants_of(boom, state.loads, friction)
    if state.forces is not None:
        constants = constants.pulled(state.forces)
    rows = row_count(constants)
    dy = np.empty(state.y.size)
    spools = np.zeros(boom.size)
    evaluate(state.y, state.modes, spools, constants, np.empty((rows, rows)), np.empty(rows), dy)
    ahead, behind = (
        np.array([frame.origin_rate for frame in frames_of(boom, y).frames[1:]])
        for y in (state.y + _APART * dy, state.y - _APART * dy)
    )
    felt = (ahead - behind) / (2.0 * _APART) + 1j * boom.gravity
    turned, _ = tip_angles(boom, StateParts.of(state.y, boom).q)
    seen = felt * np.exp(-1j * (truck_of(state.y, boom)[1] + turned + mounting))
    return np.stack([seen.real, seen.imag], axis=1)
