"""State and command of a boom, and quantities computed from one state or a table of states."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from longreach_boom.model import Constants, Load
from longreach_boom.parameters import BoomParameters
from longreach_dynamics.linkages import pistons_and_arms


class BoomCommand(NamedTuple):
    """Commands of the valves."""

    spools: tuple[float, ...]  # in [-1, 1], positive extends the piston


def closed_valves(size: int) -> BoomCommand:
    """Return the command that closes all valves of a boom with ``size`` cylinders."""
    return BoomCommand((0.0,) * size)


class BoomState(NamedTuple):
    """
    State of a boom: continuous part, modes of the pistons, loads, forces. Never changed in place.

    Where documented, functions also accept a table of states with the same loads.
    """

    y: np.ndarray  # (2 n + 3 N,) or 4 more: q, q', p_1, p_2, s_v, truck; see longreach_boom.motion
    modes: np.ndarray  # (N,) of int64
    loads: tuple[Load, ...] = ()
    forces: np.ndarray | None = None  # (N, 2) external ones at the tips, x and z [N]; None: none


class StateParts(NamedTuple):
    """The parts of one or many states y (..., 2 n + 3 N), or 4 more with the truck's."""

    q: np.ndarray  # (..., n)
    v: np.ndarray  # (..., n)
    head_pressures: np.ndarray  # (..., N) [Pa]
    rod_pressures: np.ndarray  # (..., N) [Pa]
    spools: np.ndarray  # (..., N)

    @classmethod
    def of(cls, y: np.ndarray, boom: BoomParameters) -> StateParts:
        """Return the parts of states; pressures of missing oil are the vapour pressure."""
        N = boom.size
        n = N * (1 + boom.ritz.functions)
        vapour = boom.oil.vapour_pressure
        return cls(
            y[..., :n],
            y[..., n : 2 * n],
            np.maximum(y[..., 2 * n : 2 * n + N], vapour),
            np.maximum(y[..., 2 * n + N : 2 * n + 2 * N], vapour),
            y[..., 2 * n + 2 * N : 2 * n + 3 * N],
        )


def truck_of(y: np.ndarray, boom: BoomParameters) -> np.ndarray | None:
    """Return heave [m], pitch [rad] and their rates (..., 4); None for a fixed truck."""
    return None if boom.truck is None else y[..., -4:]


def hydraulic_forces(parts: StateParts, constants: Constants) -> np.ndarray:
    """Return p_1 A_1 - p_2 A_2 [N], shape (..., N)."""
    a = constants.actuators
    return np.asarray(parts.head_pressures * a.head_area - parts.rod_pressures * a.rod_area)


def piston_positions(angles: np.ndarray, constants: Constants) -> np.ndarray:
    """Return the piston positions [m] at joint angles (..., N) [rad]."""
    flat = np.ascontiguousarray(np.reshape(angles, (-1, angles.shape[-1])))
    return np.reshape(pistons_and_arms(constants.linkage, flat)[0], angles.shape)
