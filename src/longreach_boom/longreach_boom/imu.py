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
    pitching = 0.0 if truck is None else float(truck[3])
    return np.asarray(pitching + np.cumsum(parts.v[:N] + _tip_slopes(boom, parts.v)))


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
    truck = truck_of(state.y, boom)
    slopes = _tip_slopes(boom, StateParts.of(state.y, boom).q)
    tilt = 0.0 if truck is None else float(truck[1])
    inclinations = tilt + np.cumsum(state.y[: boom.size] + slopes)
    seen = felt * np.exp(-1j * (inclinations + mounting))
    return np.stack([seen.real, seen.imag], axis=1)


def _tip_slopes(boom: BoomParameters, q: np.ndarray) -> np.ndarray:
    """Return the slopes of the beams' tips (N,), or their rates, of coordinates or rates."""
    N = boom.size
    return np.asarray(np.sum(constants_of(boom).tip_slope * np.reshape(q[N:], (-1, N)).T, axis=1))
