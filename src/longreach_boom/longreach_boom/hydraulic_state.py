"""
Flows through the valves of a boom, for states as tables or one by one.

What a simulation keeps of the hydraulics are pressures and spool positions; the flows follow from
them, Henikl 2015, (24).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from longreach_boom.model import Constants, constants_of
from longreach_boom.parameters import load_boom
from longreach_boom.state import StateParts
from longreach_dynamics.hydraulics import valve_flows, valve_opening
from longreach_dynamics.kernels import kernel

__all__ = ['Flows', 'flows_of', 'warm_up']


class Flows(NamedTuple):
    """Flows through the valves."""

    head: np.ndarray  # (..., N) q_1 into the head sides [m^3/s]
    rod: np.ndarray  # (..., N) q_2 out of the rod sides [m^3/s]


@kernel
def fill_flows(  # type: ignore[no-untyped-def]
    spools,
    head_pressures,
    rod_pressures,
    supply,
    tank,
    dead_band,
    head_opening,
    rod_opening,
    coefficient,
    laminar,
    head,
    rod,
):
    """Write the flows of states (rows, N) into ``head`` and ``rod``; unchecked."""
    for row in range(spools.shape[0]):
        for i in range(spools.shape[1]):
            spool = spools[row, i]
            head[row, i], rod[row, i] = valve_flows(
                spool,
                head_pressures[row, i],
                rod_pressures[row, i],
                supply,
                tank,
                valve_opening(spool, dead_band[i], head_opening[i]),
                valve_opening(spool, dead_band[i], rod_opening[i]),
                coefficient,
                laminar,
            )


def flows_of(parts: StateParts, constants: Constants) -> Flows:
    """
    Return the flows through the valves of states of a boom.

    Parameters
    ----------
    parts : StateParts
        Of one state, or of many: pressures [Pa] and spool positions, shape (..., N).
    constants : Constants
        Of the same boom.
    """
    shape = np.shape(parts.spools)
    p = constants
    head, rod = np.empty((2, int(np.prod(shape[:-1])), shape[-1]))
    spools, head_pressures, rod_pressures = (
        np.ascontiguousarray(values, dtype=float).reshape(head.shape)
        for values in (parts.spools, parts.head_pressures, parts.rod_pressures)
    )
    fill_flows(
        spools,
        head_pressures,
        rod_pressures,
        p.supply,
        p.tank,
        p.dead_band,
        p.head_opening,
        p.rod_opening,
        p.flow_coefficient,
        p.laminar,
        head,
        rod,
    )
    return Flows(head.reshape(shape), rod.reshape(shape))


def warm_up() -> None:
    """Compile the kernel, or load it from the cache."""
    constants = constants_of(load_boom())
    zeros = np.zeros(constants.length.size)
    flows_of(StateParts(zeros, zeros, zeros, zeros, zeros), constants)
