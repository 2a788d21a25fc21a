"""What inertial sensors at the beams' tips measure: rates of turn, and specific forces."""

from __future__ import annotations

import numpy as np

from longreach_boom.kinematics import frames_of
from longreach_boom.model import constants_of, row_count
from longreach_boom.motion import evaluate
from longreach_boom.parameters import BoomParameters
from longreach_boom.state import BoomState, StateParts, truck_of

# Time over which velocities are differenced along the motion [s].
_APART = 1e-5


def tip_rates(boom: BoomParameters, state: BoomState) -> np.ndarray:
    """Return the rates of turn of the beams' tips (N,) [rad/s], positive lifts."""
    parts, N = StateParts.of(state.y, boom), boom.size
    truck = truck_of(state.y, boom)
    slopes = np.sum(constants_of(boom).tip_slope * np.reshape(parts.v[N:], (-1, N)).T, axis=1)
    pitching = 0.0 if truck is None else float(truck[3])
    return np.asarray(pitching + np.cumsum(parts.v[:N] + slopes))


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
    ahead, behind = (_tips(boom, state.y + way * _APART * dy)[0] for way in (1.0, -1.0))
    felt = (ahead - behind) / (2.0 * _APART) + 1j * boom.gravity
    seen = felt * np.exp(-1j * (_tips(boom, state.y)[1] + mounting))
    return np.stack([seen.real, seen.imag], axis=1)


def _tips(boom: BoomParameters, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return velocities (N,) of the tips [m/s], complex, and their inclinations (N,) [rad]."""
    parts, N, truck = StateParts.of(y, boom), boom.size, truck_of(y, boom)
    slopes = np.sum(constants_of(boom).tip_slope * np.reshape(parts.q[N:], (-1, N)).T, axis=1)
    tilt = 0.0 if truck is None else float(truck[1])
    velocities = np.array([frame.origin_rate for frame in frames_of(boom, y).frames[1:]])
    return velocities, tilt + np.cumsum(parts.q[:N] + slopes)
