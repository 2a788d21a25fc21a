"""State of a boom, and quantities computed from one state or a table of states."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from longreach_boom.model import Constants, Load, constants_of
from longreach_boom.parameters import BoomParameters
from longreach_dynamics.hydraulics import fastest_pistons, rail_pressure, spool_flows
from longreach_dynamics.kernels import kernel
from longreach_dynamics.linkages import pistons_and_arms


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


def truck_of(y: np.ndarray, boom: BoomParameters) -> np.ndarray:
    """Return heave [m], pitch [rad] and their rates (..., 4); zeros for a fixed truck."""
    return np.zeros((*y.shape[:-1], 4)) if boom.truck is None else y[..., -4:]


def hydraulic_forces(parts: StateParts, constants: Constants) -> np.ndarray:
    """Return p_1 A_1 - p_2 A_2 [N], shape (..., N)."""
    a = constants.actuators
    return np.asarray(parts.head_pressures * a.head_area - parts.rod_pressures * a.rod_area)


def piston_positions(angles: np.ndarray, constants: Constants) -> np.ndarray:
    """Return the piston positions [m] at joint angles (..., N) [rad]."""
    flat = np.ascontiguousarray(np.reshape(angles, (-1, angles.shape[-1])))
    return np.reshape(pistons_and_arms(constants.linkage, flat)[0], angles.shape)


@kernel
def fill_flows(rows, pistons, table, head, rod):  # type: ignore[no-untyped-def]
    """Compute flows (rows, N) from rows (p_1, p_2, s_v) (rows, 3 N) and pistons (rows, N) [m]."""
    for row in range(rows.shape[0]):
        rail = rail_pressure(rows[row], 0, table)
        for i in range(head.shape[1]):
            head[row, i], rod[row, i], _, _ = spool_flows(
                rows[row], 0, i, rail, table, pistons[row, i]
            )


def flows_of(parts: StateParts, constants: Constants) -> tuple[np.ndarray, np.ndarray]:
    """Return q_1 into head sides and q_2 out of rod sides, Henikl 2015, (24) (..., N) [m^3/s]."""
    rows = np.concatenate([parts.head_pressures, parts.rod_pressures, parts.spools], axis=-1)
    shape, N = rows.shape[:-1], rows.shape[-1] // 3
    head, rod = np.empty((2, math.prod(shape), N))
    flat = np.ascontiguousarray(rows, dtype=float).reshape(-1, 3 * N)
    pistons = piston_positions(parts.q[..., :N], constants).reshape(-1, N)
    fill_flows(flat, pistons, constants.actuators.table, head, rod)
    return head.reshape(*shape, N), rod.reshape(*shape, N)


def rate_limits(boom: BoomParameters, angles: np.ndarray) -> np.ndarray:
    """Return lowest and highest joint rates (M, N, 2) [rad/s] at angles (M, N) [rad]."""
    actuators, most = constants_of(boom).actuators, boom.controller.maximum_velocity
    _, arms = pistons_and_arms(actuators.linkage, np.ascontiguousarray(angles))
    return np.asarray(np.clip(fastest_pistons(actuators), -most, most) / arms[..., None])
