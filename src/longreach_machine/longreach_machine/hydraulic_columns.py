"""Columns of a run for relief, make-up and counterbalance valves, and for a limited pump."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from longreach_dynamics.hydraulics.actuators import (
    DEAD_BAND,
    HEAD_HOLDING,
    HEAD_RELIEF,
    HOLDING_AREA,
    MAKE_UP_AREA,
    PUMP_FLOW,
    RELIEF_AREA,
    ROD_HOLDING,
    ROD_RELIEF,
    TANK,
    VAPOUR,
    Actuators,
    poppet_opening,
    port_flows,
    rail_pressure,
    spool_flows,
)
from longreach_dynamics.hydraulics.valves import chamber_pressure
from longreach_dynamics.kernels import kernel
from longreach_machine.runs import Column, each


def port_columns(a: Actuators, keys: Sequence[object], mark: str = '*') -> list[Column]:
    """Return the columns of :func:`port_series`; ``mark`` is the placeholder of keys."""
    columns: list[Column] = []
    has_ports, has_pump, has_holding = _parts(a)
    if has_ports:
        for side in ('head', 'rod'):
            meaning = f'through relief (negative) and make-up valve into the {side} side'
            columns += each(f'port_{side}_{mark}', keys, 'm^3/s', meaning, mark=mark)
    if has_pump:
        columns += [
            Column('rail_pressure', 'Pa', 'with which the pump feeds the valves'),
            Column('rail_flow', 'm^3/s', 'what the pump gives'),
        ]
    if has_holding:
        for side in ('head', 'rod'):
            meaning = (
                f'opening of the counterbalance valve of the {side} side: 0 closed, 1 fully open'
            )
            columns += each(f'counterbalance_{side}_{mark}', keys, '1', meaning, mark=mark)
    return columns


def port_series(a: Actuators, states: np.ndarray) -> np.ndarray:
    """
    Return what relief, make-up and counterbalance valves and the rail do, (rows, columns).

    ``states`` (rows, 3 N). An opening is that of the poppet for oil that leaves the chamber, 1
    where it has no valve. While the directional valve is in its dead band, its lines are taken as
    relieved.
    """
    N = len(a.table)
    seen = np.empty((len(states), 4 * N + 2))
    _observe(np.ascontiguousarray(states), a.table, seen)
    shown = np.repeat(_parts(a), [2 * N, 2, 2 * N])
    return np.asarray(seen[:, shown])


def _parts(a: Actuators) -> tuple[bool, bool, bool]:
    """Return whether there are relief or make-up valves, a limited pump, counterbalance valves."""
    ports = (a.table[:, [RELIEF_AREA, MAKE_UP_AREA]] > 0.0).any()
    pump = np.isfinite(a.table[0, PUMP_FLOW])
    return bool(ports), bool(pump), bool((a.table[:, HOLDING_AREA] > 0.0).any())


@kernel
def _observe(states, table, seen):  # type: ignore[no-untyped-def]
    """Write flows into chambers, the rail's pressure and flow, and openings of poppets by row."""
    N = table.shape[0]
    for row in range(states.shape[0]):
        y = states[row]
        rail, flow = rail_pressure(y, 0, table), 0.0
        for i in range(N):
            for side, relief in ((0, HEAD_RELIEF), (1, ROD_RELIEF)):
                p = chamber_pressure(y[side * N + i], table[i, VAPOUR])
                seen[row, side * N + i] = port_flows(p, relief, i, table)
            _observe_holding(y, i, rail, table, seen[row, 2 * N + 2 :])
            q1, q2, _, _ = spool_flows(y, 0, i, rail, table)
            # A retracting piston is fed through the rod side.
            flow += q1 if y[2 * N + i] >= 0.0 else -q2
        seen[row, 2 * N], seen[row, 2 * N + 1] = rail, flow


@njit
def _observe_holding(y, i, rail, table, seen):  # type: ignore[no-untyped-def]
    """Write the openings (2 N,) of the poppets of cylinder i as shares of the fully open ones."""
    N, spool = table.shape[0], y[2 * table.shape[0] + i]
    head = chamber_pressure(y[i], table[i, VAPOUR])
    rod = chamber_pressure(y[N + i], table[i, VAPOUR])
    tank = table[i, TANK]
    for side, setting in ((0, table[i, HEAD_HOLDING]), (1, table[i, ROD_HOLDING])):
        load, other = (head, rod) if side == 0 else (rod, head)
        # The line of the other chamber is fed while this chamber empties.
        leaves = spool < -table[i, DEAD_BAND] if side == 0 else spool > table[i, DEAD_BAND]
        pilot = min(other, rail) if leaves else tank
        share = 1.0
        if setting > 0.0:
            share = poppet_opening(load, pilot, setting, i, table) / table[i, HOLDING_AREA]
        seen[side * N + i] = share
