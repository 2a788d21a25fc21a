"""Forms of the harvester's equations for tests and benchmarks: derivatives, actuator space."""

import numpy as np
from numba import njit

from longreach_dynamics.hydraulics.lines import (
    INERTANCE,
    RELIEF_1,
    RELIEF_2,
    RESIDUAL_TIME,
    SUPPLY,
    TANK,
    orifice_resistances,
    rail_of,
    relief_and_make_up,
    residual_flow,
    sources,
)
from longreach_dynamics.hydraulics.valves import chamber_pressure
from longreach_dynamics.linkages import arm_slope, piston_and_arm
from longreach_harvester.bodies import PRESSURE_1, bias, masses
from longreach_harvester.model import BALANCE, FLOW_1, FLOW_2, PRESSURE_2, rates


@njit
def derivatives(y, u, closed, model, dy):  # type: ignore[no-untyped-def]
    """Write the time derivatives of the full model, (A6) corrected; return if all have a lever."""
    table = model.lines[0]
    f1, f2 = np.zeros(3), np.zeros(3)
    rail = table[0, SUPPLY]
    if model.pump:
        total = 0.0
        for i in range(3):
            if not closed[i]:
                total += y[FLOW_1 + i] if u[i] > 0.0 else -y[FLOW_2 + i]
        rail, _ = rail_of(total, table)
    for i in range(3):
        side_1, side_2 = sources(u[i], rail, table[i, TANK])
        C_1, C_2 = orifice_resistances(u[i], i, model.lines)
        p1 = chamber_pressure(y[PRESSURE_1 + i], model.vapour)
        p2 = chamber_pressure(y[PRESSURE_2 + i], model.vapour)
        drop_1 = side_1 - p1
        drop_2 = p2 + side_2 if model.as_printed else p2 - side_2
        Q1, Q2 = y[FLOW_1 + i], y[FLOW_2 + i]
        if closed[i]:
            dy[FLOW_1 + i] = (residual_flow(drop_1, C_1) - Q1) / table[i, RESIDUAL_TIME]
            dy[FLOW_2 + i] = (residual_flow(drop_2, C_2) - Q2) / table[i, RESIDUAL_TIME]
        else:
            f1[i], f2[i] = Q1, Q2
            dy[FLOW_1 + i] = (drop_1 - C_1 * Q1 * abs(Q1)) / table[i, INERTANCE]
            dy[FLOW_2 + i] = (drop_2 - C_2 * Q2 * abs(Q2)) / table[i, INERTANCE]
        f1[i] += relief_and_make_up(p1, RELIEF_1, i, table)
        f2[i] -= relief_and_make_up(p2, RELIEF_2, i, table)
    return rates(y, f1, f2, model, dy, np.empty(len(BALANCE)))


def actuator_space(q, v, a, model):
    """Return M_Eq, F_S of M_Eq x'' + B x' + F_S = F_Act, (9) to (12), for accelerations a."""
    M11, M22, M23, M33 = masses(q, model.bodies)
    rows = model.lines[0]
    arms = np.array([piston_and_arm(rows, i, q[i])[1] for i in range(3)])
    slopes = np.array([arm_slope(rows, i, q[i]) for i in range(3)])
    diagonal = np.array([M11, M22, M33])
    # x'' = J q'' + J' q', so that d(J^-1)/dt x' = -J^-1 J' q'.
    accelerated = arms * a + slopes * v * v
    turned = -slopes * v * v / arms
    M = np.diag(diagonal)
    M[1, 2] = M[2, 1] = M23
    coupled = (M - np.diag(diagonal)) @ (accelerated / arms)
    return diagonal / arms**2, (coupled + M @ turned + np.array(bias(q, v, model.bodies))) / arms
