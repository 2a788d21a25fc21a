"""
Steps of the reduced model, section 4 of Papadopoulos and Gonthier (2002).

P and Q of an open valve follow from the motion; those of a closed one are the oil's that is locked
in. Corrected in the paper: (17) has the root over the whole quotient; (26b) has A_2 / C_2. Symbols
are those of :mod:`longreach_harvester.model`, and

    side_1, side_2  pressures of the sources [Pa]
    C_1, C_2        C_R of the orifices [Pa s^2/m^6]
    speed           of a piston or the motor [m/s], [rad/s]
    v, w            joint rates at the beginning and at the end of the step [rad/s]
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from longreach_dynamics.hydraulics.lines import (
    AREA_1,
    AREA_2,
    CAPACITANCE,
    LEAK_ACROSS,
    LEAK_TANK,
    MOTOR,
    RESIDUAL_TIME,
    RESISTANCE,
    SUPPLY,
    TANK,
    VISCOUS,
    orifice_resistances,
    ports,
    residual_flow,
    sources,
)
from longreach_dynamics.hydraulics.valves import chamber_pressure
from longreach_dynamics.linkages import piston_and_arm
from longreach_harvester.bodies import HEAD, HEAD_RATE, PRESSURE_1, RATE, bias, condensed, masses
from longreach_harvester.model import (
    DEAD_POINT,
    DONE,
    FLOW_1,
    FLOW_2,
    FRICTION,
    HANGING,
    LINES,
    ORIFICES,
    PRESSURE_2,
    STOPS,
    SUPPLIED,
    UNSOLVED,
    stop,
)

# Rounds of Newton's method in a step, from its first guess two to four; after how many of them it
# takes half its way, as stops and lines that lack oil are kinks; and the last change [1], whose
# square is what is left.
_MOST_ROUNDS, _CAREFUL, _SOLVED = 60, 15, 1e-6
# Speed over which the slope of a stop is taken [m/s].
_SLIGHT = 1e-6


@njit
def lock(y, spool, i, model):  # type: ignore[no-untyped-def]
    """Write pressures and residual flows of an actuator of the reduced model as it is locked."""
    table = model.lines[0]
    C_1, C_2 = orifice_resistances(spool, i, model.lines)
    side_1, side_2 = sources(spool, table[i, SUPPLY], table[i, TANK])
    side_2 = -side_2 if model.as_printed else side_2
    position, arm = piston_and_arm(table, i, y[i])
    if model.bodies.head_mass > 0.0:
        load = condensed(y, model.bodies, np.empty((5, 5)), np.empty(5))[6 + i] / arm
    else:
        load = bias(y[:RATE], y[RATE:PRESSURE_1], model.bodies)[i] / arm
    load -= stop(position, arm * y[RATE + i], i, table)[0]
    A_1, A_2 = table[i, AREA_1], table[i, AREA_2]
    # x' |x'| of the residual motion.
    square = (A_1 * side_1 - A_2 * side_2 - load) / (C_1 * A_1**3 + C_2 * A_2**3)
    p1, p2 = side_1 - C_1 * A_1**2 * square, side_2 + C_2 * A_2**2 * square
    if min(p1, p2) < model.vapour:
        # One side runs empty: the other carries the load.
        p1, p2 = max(load / A_1, 0.0), max(-load / A_2, 0.0)
    y[PRESSURE_1 + i], y[PRESSURE_2 + i] = p1, p2
    y[FLOW_1 + i] = residual_flow(side_1 - y[PRESSURE_1 + i], C_1)
    y[FLOW_2 + i] = residual_flow(y[PRESSURE_2 + i] - side_2, C_2)


@njit
def _open_motor(speed, flow_1, flow_2, side_1, side_2, C_1, C_2, i, table, vapour):  # type: ignore[no-untyped-def]
    """Return a motor's torque, its loss per speed and flows, linear about two flows."""
    D, R, tank = table[i, AREA_1], table[i, RESISTANCE], table[i, TANK]
    across, leak = 1.0 / table[i, LEAK_ACROSS], 1.0 / table[i, LEAK_TANK]
    # e = E - r_1 Q_1 and f = F + r_2 Q_2, with Q of each port as in ports().
    r_1, r_2 = 2.0 * C_1 * abs(flow_1) + R, 2.0 * C_2 * abs(flow_2) + R
    E = side_1 + C_1 * flow_1 * abs(flow_1)
    F = side_2 - C_2 * flow_2 * abs(flow_2)
    a, b = 1.0 + r_1 * (across + leak), -r_1 * across
    c, d = -r_2 * across, 1.0 + r_2 * (across + leak)
    determinant = a * d - b * c
    x, y = E - r_1 * (D * speed - leak * tank), F + r_2 * (D * speed + leak * tank)
    e, f = (d * x - b * y) / determinant, (a * y - c * x) / determinant
    slope = D * D * ((d + c) * r_1 + (a + b) * r_2) / determinant
    if min(e, f) >= vapour:
        between = D * speed + across * (e - f)
        return D * (e - f), slope, between + leak * (e - tank), between - leak * (f - tank)
    # A port that runs empty, and the other one by its own equation.
    slope = 0.0
    if e < vapour:
        e = vapour
        f = (y - c * e) / d
        slope = D * D * r_2 / d
        if f < vapour:
            f, slope = vapour, 0.0
    else:
        f = vapour
        e = (x - b * f) / a
        slope = D * D * r_1 / a
        if e < vapour:
            e, slope = vapour, 0.0
    return D * (e - f), slope, (E - e) / r_1, (f - F) / r_2


@njit
def _locked(speed, h, y, i, table, vapour):  # type: ignore[no-untyped-def]
    """Return force, flows, pressures of an actuator on locked oil, (18) to (20), amid a step."""
    half = 0.5 * h / table[i, CAPACITANCE]
    p1, p2 = y[PRESSURE_1 + i], y[PRESSURE_2 + i]
    above = chamber_pressure(p1, vapour), chamber_pressure(p2, vapour)
    _, _, into, out = ports(above[0], above[1], speed, i, table)
    p1, p2 = (
        chamber_pressure(p1 - half * into, vapour),
        chamber_pressure(p2 + half * out, vapour),
    )
    port_1, port_2, into, out = ports(p1, p2, speed, i, table)
    return table[i, AREA_1] * port_1 - table[i, AREA_2] * port_2, into, out, p1, p2


@njit
def _root(rate, gain):  # type: ignore[no-untyped-def]
    """Return x of x + gain x |x| = rate."""
    return 2.0 * rate / (1.0 + math.sqrt(1.0 + 4.0 * gain * abs(rate)))


@njit
def _above_vapour(force, slope, speed, side_1, side_2, C_1, C_2, i, table, vapour):  # type: ignore[no-untyped-def]
    """Return force and slope of an actuator with no pressure below that of vapour."""
    A_1, A_2, R = table[i, AREA_1], table[i, AREA_2], table[i, RESISTANCE]
    square = speed * abs(speed)
    p1, p2 = side_1 - (C_1 + R) * A_1 * A_1 * square, side_2 + (C_2 + R) * A_2 * A_2 * square
    if p1 < vapour:
        force += A_1 * (vapour - p1)
        slope -= 2.0 * (C_1 + R) * A_1**3 * abs(speed)
    if p2 < vapour:
        force -= A_2 * (vapour - p2)
        slope -= 2.0 * (C_2 + R) * A_2**3 * abs(speed)
    return force, slope


@njit
def _possible_flows(Q1, Q2, side_1, side_2, C_1, C_2, vapour):  # type: ignore[no-untyped-def]
    """Return the flows that leave no pressure below that of vapour."""
    if side_1 - C_1 * Q1 * abs(Q1) < vapour:
        Q1 = residual_flow(side_1 - vapour, C_1)
    if side_2 + C_2 * Q2 * abs(Q2) < vapour:
        Q2 = residual_flow(vapour - side_2, C_2)
    return Q1, Q2


@njit
def _head_rates(y, state, M, terms, v, w, h):  # type: ignore[no-untyped-def]
    """Set the mean rates of a head that hangs, and return by how much they change."""
    change = 0.0
    for k in range(2):
        before, gained = state[HEAD_RATE + k], 0.0
        for j in range(2):
            force = -h * terms[3 + j]
            for i in range(3):
                force -= M[i, 3 + j] * (w[i] - v[i])
            gained += M[3 + k, 3 + j] * force
        state[HEAD_RATE + k] = y[HEAD_RATE + k] + 0.5 * gained
        change += abs(state[HEAD_RATE + k] - before)
    return change


@njit
def reduced_step(y, u, closed, h, model, work, balance):  # type: ignore[no-untyped-def]
    """
    Take a step of the reduced model, implicit in damping and in locked oil; DONE and so on.

    Open valves: the orifices' damping at the end of the step, by Newton's method from the root of
    each joint by itself, because C_R Q |Q| has no slope at rest. Closed valves: oil and lines in
    the middle of the step. u is that at the end of the step.
    """
    b, table = model.bodies, model.lines[0]
    # The oil of an actuator gives drives - damps s' - gains s' |s'|.
    middle, w, arms, starts = work[0, :3], work[0, 3:6], work[0, 6:9], work[0, 9:12]
    drives, damps, gains = work[3, :3], work[3, 3:6], work[3, 6:9]
    sides_1, sides_2, C_1, C_2 = work[1, :3], work[1, 3:6], work[1, 6:9], work[1, 9:12]
    flows_1, flows_2, forces, slopes = work[2, :3], work[2, 3:6], work[2, 6:9], work[2, 9:12]
    for k in range(3):
        middle[k] = y[k] + 0.5 * h * y[RATE + k]
    v = y[RATE:PRESSURE_1]
    hanging, M12, M13 = b.head_mass > 0.0, 0.0, 0.0
    if hanging:
        M, terms, state = np.empty((5, 5)), np.empty(5), y.copy()
        state[:3] = middle
        for k in range(2):
            state[HEAD + k] = y[HEAD + k] + 0.5 * h * y[HEAD_RATE + k]
        M11, M12, M13, M22, M23, M33, h1, h2, h3 = condensed(state, b, M, terms)
    else:
        M11, M22, M23, M33 = masses(middle, b)
        h1, h2, h3 = bias(middle, v, b)
    inertias, loads, valid = (M11, M22, M33), (h1, h2, h3), True
    for i in range(3):
        _, arms[i] = piston_and_arm(table, i, middle[i])
        starts[i], _ = piston_and_arm(table, i, y[i])
        valid = valid and arms[i] > 0.0
        w[i] = v[i]
        C_1[i], C_2[i] = orifice_resistances(u[i], i, model.lines)
        sides_1[i], side = sources(u[i], table[i, SUPPLY], table[i, TANK])
        sides_2[i] = -side if model.as_printed else side
        A_1, A_2, R = table[i, AREA_1], table[i, AREA_2], table[i, RESISTANCE]
        R, damps[i] = R if table[i, MOTOR] == 0.0 else 0.0, table[i, VISCOUS]
        if closed[i]:
            # The mean of both ends counts, which has (20) as its spring.
            drives[i] = _locked(0.0, h, y, i, table, -np.inf)[0]
            gains[i] = R * (A_1**3 + A_2**3)
            damps[i] += drives[i] - _locked(1.0, h, y, i, table, -np.inf)[0] - gains[i]
        else:
            drives[i] = A_1 * sides_1[i] - A_2 * sides_2[i]
            gains[i] = (C_1[i] + R) * A_1**3 + (C_2[i] + R) * A_2**3
            rate = v[i] + h * (arms[i] * drives[i] - loads[i]) / inertias[i]
            w[i] = _root(rate, h * gains[i] * arms[i] ** 3 / inertias[i])
            flows_1[i] = flows_2[i] = A_1 * arms[i] * w[i]
    solved = False
    for n in range(_MOST_ROUNDS):
        if hanging:
            # The rates of a head that swings are not slow: the bias is that of the mean rates.
            for k in range(3):
                state[RATE + k] = 0.5 * (v[k] + w[k])
            M11, M12, M13, M22, M23, M33, h1, h2, h3 = condensed(state, b, M, terms)
        # Torques at w, and what they lose per rate.
        for i in range(3):
            a, part = arms[i], 1.0
            speed, mean = a * w[i], 0.5 * a * (v[i] + w[i])
            if closed[i]:
                speed, part = mean, 0.5
            if closed[i] or table[i, MOTOR] == 0.0:
                force = drives[i] - (damps[i] + gains[i] * abs(speed)) * speed
                slope = part * (damps[i] + 2.0 * gains[i] * abs(speed))
                if closed[i]:
                    held, _, _, p1, p2 = _locked(speed, h, y, i, table, model.vapour)
                    if min(p1, p2) <= model.vapour:
                        force = held - table[i, VISCOUS] * speed
                else:
                    ends = (sides_1[i], sides_2[i], C_1[i], C_2[i], i, table, model.vapour)
                    force, slope = _above_vapour(force, slope, speed, *ends)
            else:
                ends = (sides_1[i], sides_2[i], C_1[i], C_2[i], i, table, model.vapour)
                force, slope, flows_1[i], flows_2[i] = _open_motor(
                    speed, flows_1[i], flows_2[i], *ends
                )
                force -= damps[i] * speed
                slope += damps[i]
            push, _ = stop(starts[i] + 0.5 * h * mean, mean, i, table)
            if push != 0.0:
                # The mean of both ends, which takes the energy of the spring.
                faster = mean + _SLIGHT
                more, _ = stop(starts[i] + 0.5 * h * faster, faster, i, table)
                slope += 0.5 * (push - more) / _SLIGHT
            force += push
            forces[i], slopes[i] = a * force, a * a * slope
        # Newton: (M + h slopes) dw = M (v - w) + h (torques - bias).
        r1 = M11 * (v[0] - w[0]) + h * (forces[0] - h1)
        r2 = M22 * (v[1] - w[1]) + M23 * (v[2] - w[2]) + h * (forces[1] - h2)
        r3 = M23 * (v[1] - w[1]) + M33 * (v[2] - w[2]) + h * (forces[2] - h3)
        D11, D22, D33, D23 = M11 + h * slopes[0], M22 + h * slopes[1], M33 + h * slopes[2], M23
        if hanging:
            r1 += M12 * (v[1] - w[1]) + M13 * (v[2] - w[2])
            r2 += M12 * (v[0] - w[0]) - M12 / D11 * r1
            r3 += M13 * (v[0] - w[0]) - M13 / D11 * r1
            D22, D33 = D22 - M12 / D11 * M12, D33 - M13 / D11 * M13
            D23 -= M12 / D11 * M13
        determinant = D22 * D33 - D23 * D23
        d2, d3 = (D33 * r2 - D23 * r3) / determinant, (D22 * r3 - D23 * r2) / determinant
        d1 = (r1 - M12 * d2 - M13 * d3) / D11 if hanging else r1 / D11
        if n >= _CAREFUL:
            d1, d2, d3 = 0.5 * d1, 0.5 * d2, 0.5 * d3
        w[0] += d1
        w[1] += d2
        w[2] += d3
        change = abs(d1) + abs(d2) + abs(d3)
        if hanging:
            change += _head_rates(y, state, M, terms, v, w, h)
        solved = change <= _SOLVED * (1e-3 + abs(w[0]) + abs(w[1]) + abs(w[2]))
        if solved:
            break
    for i in range(3):
        mean = 0.5 * (v[i] + w[i])
        y[i] += h * mean
        side_1, outside = sides_1[i], sides_2[i]
        push, loss = stop(starts[i] + 0.5 * h * arms[i] * mean, arms[i] * mean, i, table)
        balance[STOPS] += h * loss
        if closed[i]:
            speed = arms[i] * mean
            force, into, out, p1, p2 = _locked(speed, h, y, i, table, model.vapour)
            balance[LINES] += h * (p1 * into - p2 * out - force * speed)
            y[PRESSURE_1 + i] -= h * into / table[i, CAPACITANCE]
            y[PRESSURE_2 + i] += h * out / table[i, CAPACITANCE]
            share = -math.expm1(-h / table[i, RESIDUAL_TIME])
            p1 = chamber_pressure(y[PRESSURE_1 + i], model.vapour)
            p2 = chamber_pressure(y[PRESSURE_2 + i], model.vapour)
            y[FLOW_1 + i] += share * (residual_flow(side_1 - p1, C_1[i]) - y[FLOW_1 + i])
            y[FLOW_2 + i] += share * (residual_flow(p2 - outside, C_2[i]) - y[FLOW_2 + i])
        else:
            speed = arms[i] * w[i]
            Q1, Q2 = table[i, AREA_1] * speed, table[i, AREA_2] * speed
            if table[i, MOTOR] != 0.0:
                Q1, Q2 = flows_1[i], flows_2[i]
            else:
                # What the lines give a side that runs empty.
                R = table[i, RESISTANCE]
                Q1, Q2 = _possible_flows(
                    Q1, Q2, side_1, outside, C_1[i] + R, C_2[i] + R, model.vapour
                )
            y[FLOW_1 + i], y[FLOW_2 + i] = Q1, Q2
            p1, p2 = side_1 - C_1[i] * Q1 * abs(Q1), outside + C_2[i] * Q2 * abs(Q2)
            y[PRESSURE_1 + i], y[PRESSURE_2 + i] = p1, p2
            # The forces are those of the end, and work along the mean motion.
            force = forces[i] / arms[i] - push + table[i, VISCOUS] * speed
            Q1 -= table[i, AREA_1] * (speed - arms[i] * mean)
            Q2 -= table[i, AREA_2] * (speed - arms[i] * mean)
            balance[SUPPLIED] += h * (side_1 * Q1 - outside * Q2)
            balance[ORIFICES] += h * ((side_1 - p1) * Q1 + (p2 - outside) * Q2)
            balance[LINES] += h * (p1 * Q1 - p2 * Q2 - force * arms[i] * mean)
        balance[FRICTION] += h * table[i, VISCOUS] * speed * arms[i] * mean
    y[RATE:PRESSURE_1] = w
    if hanging:
        for k in range(2):
            mean = state[HEAD_RATE + k]
            y[HEAD + k] += h * mean
            y[HEAD_RATE + k] = 2.0 * mean - y[HEAD_RATE + k]
            balance[HANGING] += h * b.head_damping * mean * mean
    if not valid:
        return DEAD_POINT
    return DONE if solved else UNSOLVED
