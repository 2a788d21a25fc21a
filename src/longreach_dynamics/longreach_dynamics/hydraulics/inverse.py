"""
Inverse problems of cylinders: pressures for a force, spool positions for a velocity.

Also the quantities that limit the step length: the stiffness of the oil column, and the rates at
which the flows through open valves change the pressures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np
from numba import njit

from longreach_dynamics.hydraulics.actuators import (
    BULK_MODULUS,
    CUSHION_AREA,
    DEAD_BAND,
    HEAD_AREA,
    HEAD_HOLDING,
    HEAD_OPENING,
    HEAD_RELIEF,
    HEAD_VOLUME,
    HOLDING_AREA,
    HOLDING_OVERRIDE,
    HOSE_LOSS,
    MAKE_UP_AREA,
    MAKE_UP_OVERRIDE,
    MAKE_UP_PRESSURE,
    MAKE_UP_SUPPLY,
    PUMP_FLOW,
    RELIEF_AREA,
    RELIEF_OVERRIDE,
    RETRACTING,
    ROD_AREA,
    ROD_HOLDING,
    ROD_OPENING,
    ROD_RELIEF,
    ROD_VOLUME,
    SUPPLY,
    Actuators,
    spool_flows,
)
from longreach_dynamics.hydraulics.parameters import Cylinder, OilParameters
from longreach_dynamics.kernels import kernel

# Classical Runge-Kutta steps are stable up to 2.78 over the fastest rate; poses differ a little.
STABILITY = 2.3
# Rounds of the search for an opening; it needs about eight.
_MOST_ROUNDS = 60


def holding_pressures(
    forces: np.ndarray, cylinders: Sequence[Cylinder], oil: OilParameters
) -> tuple[np.ndarray, np.ndarray]:
    """Return pressures of head and rod sides (N,) [Pa] that give cylinder forces (N,) [N]."""
    # Without friction; a positive force pushes the piston out. The rod side has the preload, a
    # pulling cylinder relieves the head side to the tank; a charge line fills both sides.
    head_areas, rod_areas = np.array([[c.head_area, c.rod_area] for c in cylinders]).T
    valves = [c.make_up for c in cylinders]
    filled = np.array([v.supply - v.cracking if v and v.supply else 0.0 for v in valves])
    rod = np.maximum(oil.preload, filled)
    head = (forces + rod * rod_areas) / head_areas
    relieved = np.maximum(oil.tank_pressure, filled)
    pulled = head < relieved
    head = np.where(pulled, relieved, head)
    rod = np.where(pulled, (head * head_areas - forces) / rod_areas, rod)
    return head, rod


def oil_stiffness(a: Actuators, pistons: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return k_1 and k_2, beta A^2 / V of closed chambers, at positions [m], each (N,) [N/m]."""
    stiffness = stiffness_of_oil.py_func(pistons, slice(None), a.table)
    return cast('tuple[np.ndarray, np.ndarray]', stiffness)


def spool_positions(
    a: Actuators,
    velocities: np.ndarray,
    pistons: np.ndarray,
    head_pressures: np.ndarray,
    rod_pressures: np.ndarray,
) -> np.ndarray:
    """Return spool positions (N,) that give piston velocities (N,); Henikl 2015, (23), (24)."""
    # The valve equation solved for A_v, at the measured pressures and the supply pressure. Beyond
    # [-1, 1] where the valve is too small, infinite where oil would drive the piston the other
    # way.
    state = np.concatenate([head_pressures, rod_pressures, np.zeros(len(velocities))])
    spools = np.zeros(len(velocities))
    _fill_spools(np.asarray(velocities, dtype=float), pistons, state, a.table, spools)
    return spools


@kernel
def _fill_spools(velocities, pistons, y, table, spools):  # type: ignore[no-untyped-def]
    """Write the spool positions of :func:`spool_positions`."""
    for i in range(velocities.size):
        spools[i] = spool_of(velocities[i], pistons[i], y, i, table)


@njit
def stiffness_of_oil(piston, i, table):  # type: ignore[no-untyped-def]
    """Return k_1 and k_2 of :func:`oil_stiffness` of cylinder i."""
    head, rod, bulk_modulus = table[i, HEAD_AREA], table[i, ROD_AREA], table[i, BULK_MODULUS]
    head_volume = table[i, HEAD_VOLUME] + head * piston
    rod_volume = table[i, ROD_VOLUME] - rod * piston
    return bulk_modulus * (head * head) / head_volume, bulk_modulus * (rod * rod) / rod_volume


@njit
def spool_of(velocity, piston, y, i, table):  # type: ignore[no-untyped-def]
    """Return one of :func:`spool_positions`; y (3 N,): pressures and room for spools."""
    if velocity == 0.0:
        return 0.0
    sign = math.copysign(1.0, velocity)
    band = table[i, DEAD_BAND]
    fastest = _velocity(sign, piston, y, i, table)
    share = velocity / fastest if sign * fastest > 0.0 else math.inf
    apart = table[i, HOSE_LOSS] + table[i, HOLDING_AREA] + table[i, CUSHION_AREA]
    if apart > 0.0 and share < 1.0:
        # With any of these the velocity is not proportional to the opening: regula falsi,
        # Illinois variant.
        low, high, below, above = 0.0, 1.0, -abs(velocity), abs(fastest) - abs(velocity)
        for _ in range(_MOST_ROUNDS):
            share = (low * above - high * below) / (above - below)
            speed = _velocity(sign * (band + (1.0 - band) * share), piston, y, i, table)
            error = sign * speed - abs(velocity)
            if abs(error) <= 1e-13 * abs(velocity) or high - low <= 1e-15:
                break
            if error < 0.0:
                low, below, above = share, error, 0.5 * above
            else:
                high, above, below = share, error, 0.5 * below
    return sign * (band + (1.0 - band) * share)


@njit
def _velocity(spool, position, y, i, table):  # type: ignore[no-untyped-def]
    """Return the velocity at which the cylinder's force is constant; writes ``spool`` into y."""
    y[2 * table.shape[0] + i] = spool
    k1, k2 = stiffness_of_oil(position, i, table)
    q1, q2, _, _ = spool_flows(y, 0, i, table[i, SUPPLY], table, position)
    return (k1 * q1 / table[i, HEAD_AREA] + k2 * q2 / table[i, ROD_AREA]) / (k1 + k2)


def fastest_pistons(a: Actuators) -> np.ndarray:
    """Return the largest velocities of pistons inwards (negative) and outwards, (N, 2) [m/s]."""
    # Faster than this, the open valve, or the pump, does not fill a chamber.
    table, drop = a.table, math.sqrt(a.supply - a.vapour)
    found = []
    for opening, area in (
        (a.rod_opening * table[:, RETRACTING], -a.rod_area),
        (a.head_opening, a.head_area),
    ):
        behind_hose = opening / np.sqrt(1.0 + table[:, HOSE_LOSS] * opening**2)
        flow = a.flow_coefficient * behind_hose * drop
        found.append(np.minimum(flow, table[:, PUMP_FLOW]) / area)
    return np.stack(found, axis=-1)


def smallest_volumes(a: Actuators) -> tuple[np.ndarray, np.ndarray]:
    """Return the volumes of head and rod sides at the ends of the strokes, each (N,) [m^3]."""
    return a.head_volume, a.rod_volume - a.rod_area * a.stroke


def spool_rates(a: Actuators) -> np.ndarray:
    """Return the fastest rates (N,) [1/s] of pressures by open valves, in laminar flow."""
    opening = np.maximum(a.head_opening, a.rod_opening)
    per_pressure = a.flow_coefficient / math.sqrt(a.laminar) * opening
    return np.asarray(per_pressure * a.bulk_modulus / np.minimum(*smallest_volumes(a)))


def port_rates(a: Actuators) -> np.ndarray:
    """Return the fastest rates (N,) [1/s] by relief, make-up and counterbalance valves."""
    table = a.table
    rates = np.zeros(len(table))
    share = np.linspace(0.0, 1.0, 101)
    opening = share**2 * (3.0 - 2.0 * share)
    for k, row in enumerate(table):
        # Pressure drops across each valve while it opens.
        valves = [
            (row[RELIEF_AREA], row[setting] - a.tank + share * row[RELIEF_OVERRIDE])
            for setting in (HEAD_RELIEF, ROD_RELIEF)
        ]
        cracking = row[MAKE_UP_SUPPLY] - row[MAKE_UP_PRESSURE]
        valves.append((row[MAKE_UP_AREA], cracking + share * row[MAKE_UP_OVERRIDE]))
        for area, drops in valves:
            if area > 0.0:
                flows = area * opening * drops / (drops**2 + a.laminar**2) ** 0.25
                # The slope of a secant is slightly below that of the steepest tangent.
                steepest = 1.01 * np.max(np.diff(flows) / np.diff(drops))
                # Fully open, it is an orifice.
                orifice = area / (drops[-1] ** 2 + a.laminar**2) ** 0.25
                rates[k] = max(rates[k], a.flow_coefficient * max(steepest, orifice))
    fastest = np.asarray(rates * a.bulk_modulus / np.minimum(*smallest_volumes(a)))
    return np.asarray(np.maximum(fastest, counterbalance_rates(a)))


def counterbalance_rates(a: Actuators) -> np.ndarray:
    """Return the fastest rates (N,) [1/s] at which counterbalance valves change pressures."""
    # Of the poppet behind the open valve, without a pilot: its pressure depends on the load
    # pressure through the piston's motion only, part of the oil's stiffness.
    table = a.table
    rates = np.zeros(len(table))
    share = np.linspace(0.0, 1.0, 101)
    opening, slope = share**2 * (3.0 - 2.0 * share), 6.0 * share * (1.0 - share)
    sides = ((HEAD_HOLDING, HEAD_OPENING), (ROD_HOLDING, ROD_OPENING))
    for (setting, valve), volume in zip(sides, smallest_volumes(a), strict=True):
        for k, row in enumerate(table):
            if row[setting] > 0.0:
                ratio = row[HOLDING_AREA] * opening / row[valve]
                # d/dA of A / sqrt(1 + (A / A_v)^2).
                steep = row[HOLDING_AREA] * slope / (1.0 + ratio**2) ** 1.5
                flow = np.sqrt(row[setting] + row[HOLDING_OVERRIDE])
                per_pressure = steep.max() * flow / row[HOLDING_OVERRIDE]
                rate = a.flow_coefficient * per_pressure * a.bulk_modulus / volume[k]
                rates[k] = max(rates[k], rate)
    return rates
