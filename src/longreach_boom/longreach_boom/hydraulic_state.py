"""
Flows through the valves of a boom, for one state or a table of states.

The state contains pressures and spool positions; the flows are computed from them, Henikl 2015,
(24).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from longreach_boom.model import Constants, constants_of
from longreach_boom.parameters import load_boom
from longreach_boom.state import StateParts, piston_positions
from longreach_dynamics.hydraulics import rail_pressure, spool_flows
from longreach_dynamics.kernels import kernel


class Flows(NamedTuple):
    """Flows through the valves."""

    head: np.ndarray  # (..., N) q_1 into the head sides [m^3/s]
    rod: np.ndarray  # (..., N) q_2 out of the rod sides [m^3/s]


@kernel
def fill_flows(rows, pistons, table, head, rod):  # type: ignore[no-untyped-def]
    """Compute flows (rows, N) from rows (p_1, p_2, s_v) (rows, 3 N) and pistons (rows, N) [m]."""
    for row in range(rows.shape[0]):
        rail = rail_pressure(rows[row], 0, table)
        for i in range(head.shape[1]):
            head[row, i], rod[row, i], _, _ = spool_flows(
                rows[row], 0, i, rail, table, pistons[row, i]
            )


def flows_of(parts: StateParts, constants: Constants) -> Flows:
    """Return the flows through the valves for one or many states of a boom."""
    rows = np.concatenate([parts.head_pressures, parts.rod_pressures, parts.spools], axis=-1)
    shape, N = rows.shape[:-1], rows.shape[-1] // 3
    head, rod = np.empty((2, math.prod(shape), N))
    flat = np.ascontiguousarray(rows, dtype=float).reshape(-1, 3 * N)
    pistons = piston_positions(parts.q[..., :N], constants).reshape(-1, N)
    fill_flows(flat, pistons, constants.actuators.table, head, rod)
    return Flows(head.reshape(*shape, N), rod.reshape(*shape, N))


def warm_up() -> None:
    """Compile the kernel, or load it from the cache."""
    constants = constants_of(load_boom())
    zeros = np.zeros(constants.length.size)
    flows_of(StateParts(zeros, zeros, zeros, zeros, zeros), constants)
