"""Columns of a run for relief and make-up valves and for a pump of limited flow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from longreach_dynamics.hydraulics.actuators import (
    HEAD_RELIEF,
    MAKE_UP_AREA,
    PUMP_FLOW,
    RELIEF_AREA,
    ROD_RELIEF,
    VAPOUR,
    Actuators,
    port_flows,
    rail_pressure,
    spool_flows,
)
from longreach_dynamics.hydraulics.valves import chamber_pressure
from longreach_dynamics.kernels import kernel
from longreach_dynamics.runs import Column, each

__all__ = ['port_columns', 'port_series']


def port_columns(a: Actuators, keys: Sequence[object], mark: str = '*') -> list[Column]:
    """
    Return the columns of :func:`port_series`; none for a machine without such parts.

    Parameters
    ----------
    a : Actuators
    keys : sequence
        Of the cylinders, for names.
    mark : str
        Placeholder of a key in documents.
    """
    columns: list[Column] = []
    if _has_ports(a):
        for side in ('head', 'rod'):
            meaning = f'through relief (negative) and make-up valve into the {side} side'
            columns += each(f'port_{side}_{mark}', keys, 'm^3/s', meaning, mark=mark)
    if _has_pump(a):
        columns += [
            Column('rail_pressure', 'Pa', 'with which the pump feeds the valves'),
            Column('rail_flow', 'm^3/s', 'what the pump gives'),
        ]
    return columns


def port_series(a: Actuators, states: np.ndarray) -> np.ndarray:
    """
    Return the flows through relief and make-up valves, and pressure and flow of the pump's rail.

    Parameters
    ----------
    a : Actuators
    states : ndarray, shape (rows, 3 N)
        Pressures of head sides and of rod sides [Pa], and spool positions.

    Returns
    -------
    ndarray, shape (rows, columns)
        Columns as in :func:`port_columns`.
    """
    N = len(a.table)
    seen = np.empty((len(states), 2 * N + 2))
    _observe(np.ascontiguousarray(states), a.table, seen)
    shown = np.repeat([_has_ports(a), _has_pump(a)], [2 * N, 2])
    return np.asarray(seen[:, shown])


def _has_ports(a: Actuators) -> bool:
    """Return whether a cylinder has a relief or a make-up valve."""
    return bool((a.table[:, [RELIEF_AREA, MAKE_UP_AREA]] > 0.0).any())


def _has_pump(a: Actuators) -> bool:
    """Return whether the flow of the pump is limited."""
    return bool(np.isfinite(a.table[0, PUMP_FLOW]))


@kernel
def _observe(states, table, seen):  # type: ignore[no-untyped-def]
    """Write flows into head and rod sides, the rail's pressure and flow, row by row."""
    N = table.shape[0]
    for row in range(states.shape[0]):
        y = states[row]
        rail, flow = rail_pressure(y, 0, table), 0.0
        for i in range(N):
            for side, relief in ((0, HEAD_RELIEF), (1, ROD_RELIEF)):
                p = chamber_pressure(y[side * N + i], table[i, VAPOUR])
                seen[row, side * N + i] = port_flows(p, relief, i, table)
            q1, q2, _, _ = spool_flows(y, 0, i, rail, table)
            # A retracting piston is fed through the rod side.
            flow += q1 if y[2 * N + i] >= 0.0 else -q2
        seen[row, 2 * N], seen[row, 2 * N + 1] = rail, flow
