"""
Equations of a forestry machine with hoses: Papadopoulos and Gonthier (2002), corrected.

The state of the full model is y = (q, q', P_1, P_2, Q_1, Q_2), 18 numbers in the order swing,
boom, stick: joints [rad], see :mod:`longreach_harvester.bodies`, pressures of the lines'
capacitances [Pa] and flows through orifices and inertances [m^3/s], see
:mod:`longreach_dynamics.hydraulics.lines`. Behind them, in WIDTH numbers, are those beyond the
paper: angles of the head about its two axes [rad], their rates [rad/s], the pressure of the pump's
rail [Pa] and the mass of the log in the grapple [kg].

(A1) M q'' + V + G = tau; (A2) tau = J^T (F_Act - B x'); J is diagonal. Corrected in the paper:
(A6a) has -P_S2 in the return lines, each orifice its C_R, and resistances of the cylinders' lines.

    y, dy     state and its time derivative (WIDTH,), or (SIZE,) without what is beyond the paper
    u         spools (3,) in [-1, 1]
    closed    modes of the valves (3,) of bool, which do not change within a step
    h         step, duration: part of it [s]
    model     Model; table: that of its actuators, one row i for each
    f1, f2    flows into lines 1 and out of lines 2 (3,) [m^3/s]
    p1, p2    pressures of the lines of an actuator [Pa]
    fed       of the lines that a limited pump feeds (3,): C_R, responses or flows, pressures
    balance   energies (len(BALANCE),) since time 0 [J], which a step adds to
    work      for intermediate results (4, WIDTH)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from longreach_dynamics.hydraulics.friction import stop_force
from longreach_dynamics.hydraulics.lines import (
    AREA_1,
    AREA_2,
    CAPACITANCE,
    INERTANCE,
    MAKE_UP_AREA,
    PUMP_FLOW,
    RELIEF_1,
    RELIEF_2,
    RELIEF_AREA,
    RESIDUAL_TIME,
    STOP_LOSS,
    STOP_STIFFNESS,
    STROKE,
    SUPPLY,
    TANK,
    VISCOUS,
    orifice_resistances,
    orifice_response,
    orifice_step,
    port_step,
    ports,
    rail_of,
    rail_step,
    relief_and_make_up,
    residual_flow,
    sources,
)
from longreach_dynamics.hydraulics.valves import chamber_pressure
from longreach_dynamics.linkages import piston_and_arm
from longreach_harvester.bodies import (
    HEAD,
    HEAD_RATE,
    PRESSURE_1,
    RATE,
    Bodies,
    accelerate_with_head,
    accelerations,
    hanging_terms,
    masses,
)

PRESSURE_2, FLOW_1, FLOW_2, SIZE, RAIL, LOG, WIDTH = 9, 12, 15, 18, 22, 23, 24
DONE, NOT_FINITE, DEAD_POINT, UNSOLVED = range(4)
# Energies since time 0: from pump, tank and charge line, lost in orifices, in lines and leakages,
# in friction, that of the moving oil that a closing valve stops, and lost in the stops at the ends
# of the strokes. Beyond the paper: lost in relief and make-up valves, in the pump below its supply
# pressure, in the axes of the head; that of logs taken less that of those released.
PAPER_BALANCE = ('supply', 'orifices', 'lines', 'friction', 'switching', 'stops')
BALANCE = (*PAPER_BALANCE, 'ports', 'pump', 'head', 'log')
SUPPLIED, ORIFICES, LINES, FRICTION, SWITCHING, STOPS, PORTS, PUMP, HANGING = range(9)

# Parts of a step with a piston of some speed [m/s] at its stop or that many steps before it, a
# line that lacks oil, or a relief or make-up valve that changes a pressure by some [Pa] in a step:
# kinks that cost up to 1e-3 of the energy in a whole step.
_PARTS, _SLOW, _AHEAD, _CHANGE = 4, 1e-3, 2.0, 1e5


class Model(NamedTuple):
    """What compiled code knows of a machine."""

    bodies: Bodies
    lines: tuple[np.ndarray, np.ndarray]
    switching: bool  # closed valves by (14), (15), else by the greatest resistance
    reduced: bool
    as_printed: bool  # +P_S2 in the return lines, as (A6a) has it
    vapour: float  # pressure below which no line falls [Pa]; as printed: -inf
    # Beyond the paper. Flags, because numba counts references to arrays of a tuple at each use.
    pump: bool  # of limited flow
    ports: bool  # relief or make-up valves
    lags: bool  # of spools


@njit
def stop(position, speed, i, table):  # type: ignore[no-untyped-def]
    """Return force [N] and loss [W] of the stops of an actuator; of a motor 0.0."""
    stroke, stiffness, loss = table[i, STROKE], table[i, STOP_STIFFNESS], table[i, STOP_LOSS]
    return stop_force(position, speed, stroke, stiffness, loss)


@njit
def rates(y, f1, f2, model, dy, powers):  # type: ignore[no-untyped-def]
    """Write derivatives of q, q', P_1, P_2 and losses [W]; return whether all levers are left."""
    b, table = model.bodies, model.lines[0]
    q, v = y[:RATE], y[RATE:PRESSURE_1]
    lost, rubbed, stopped, valid = 0.0, 0.0, 0.0, True
    for i in range(3):
        position, arm = piston_and_arm(table, i, q[i])
        valid = valid and arm > 0.0
        speed = arm * v[i]
        p1 = chamber_pressure(y[PRESSURE_1 + i], model.vapour)
        p2 = chamber_pressure(y[PRESSURE_2 + i], model.vapour)
        port_1, port_2, into, out = ports(p1, p2, speed, i, table)
        force = table[i, AREA_1] * port_1 - table[i, AREA_2] * port_2
        push, loss = stop(position, speed, i, table)
        dy[RATE + i] = arm * (force + push - table[i, VISCOUS] * speed)
        dy[PRESSURE_1 + i] = (f1[i] - into) / table[i, CAPACITANCE]
        dy[PRESSURE_2 + i] = (out - f2[i]) / table[i, CAPACITANCE]
        lost += p1 * into - p2 * out - force * speed
        rubbed += table[i, VISCOUS] * speed * speed
        stopped += loss
    dy[0], dy[1], dy[2] = v[0], v[1], v[2]
    if b.head_mass > 0.0:
        powers[HANGING] = accelerate_with_head(y, b, dy)
    else:
        dy[3], dy[4], dy[5] = accelerations(q, v, dy[3], dy[4], dy[5], b)
        powers[HANGING] = 0.0
    powers[LINES], powers[FRICTION], powers[STOPS] = lost, rubbed, stopped
    return valid


@njit
def energies(y, closed, model):  # type: ignore[no-untyped-def]
    """Return kinetic, potential energy, that of compressed, of moving oil and of stops [J]."""
    b, table = model.bodies, model.lines[0]
    M11, M22, M23, M33 = masses(y, b)
    v = y[RATE:PRESSURE_1]
    kinetic = 0.5 * (M11 * v[0] ** 2 + M22 * v[1] ** 2 + M33 * v[2] ** 2) + M23 * v[1] * v[2]
    boom = b.boom_mass * b.boom_centre + b.stick_mass * b.length
    potential = b.gravity * (boom * math.sin(y[1]) + b.stick_moment * math.sin(y[1] + y[2]))
    if b.head_mass > 0.0:
        M, h = np.empty((5, 5)), np.empty(5)
        potential += b.gravity * b.head_mass * hanging_terms(y, b, M, h)
        h[0], h[1], h[2], h[3], h[4] = v[0], v[1], v[2], y[HEAD_RATE], y[HEAD_RATE + 1]
        kinetic = 0.0
        for j in range(5):
            for k in range(5):
                kinetic += 0.5 * M[j, k] * h[j] * h[k]
    oil, moving, stops = 0.0, 0.0, 0.0
    for i in range(3):
        if closed[i] or not model.reduced:
            oil += compressed(y, i, model)
        if not (closed[i] or model.reduced):
            moving += 0.5 * table[i, INERTANCE] * (y[FLOW_1 + i] ** 2 + y[FLOW_2 + i] ** 2)
        position, _ = piston_and_arm(table, i, y[i])
        beyond = max(position - table[i, STROKE], -position, 0.0)
        stops += 0.5 * table[i, STOP_STIFFNESS] * beyond * beyond
    return kinetic, potential, oil, moving, stops


@njit
def compressed(y, i, model):  # type: ignore[no-untyped-def]
    """Return the energy of the oil in both capacitances of an actuator [J]."""
    p1 = chamber_pressure(y[PRESSURE_1 + i], model.vapour)
    p2 = chamber_pressure(y[PRESSURE_2 + i], model.vapour)
    return 0.5 * model.lines[0][i, CAPACITANCE] * (p1 * p1 + p2 * p2)


@njit
def _set_rail(y, u, duration, model, fed):  # type: ignore[no-untyped-def]
    """Write and return the pressure with which a limited pump feeds the valves for a while."""
    flows, pressures = fed[3:6], fed[6:9]
    for i in range(3):
        positive = u[i] > 0.0
        flows[i] = y[FLOW_1 + i] if positive else -y[FLOW_2 + i]
        pressures[i] = chamber_pressure(
            y[PRESSURE_1 + i] if positive else y[PRESSURE_2 + i], model.vapour
        )
    y[RAIL] = rail_step(y[RAIL], flows, pressures, fed[:3], duration, model.lines[0])
    return y[RAIL]


@njit
def _through_valves(y, u, closed, duration, model, balance, fed):  # type: ignore[no-untyped-def]
    """Let the flows change for a while at constant pressures, spools and modes."""
    table = model.lines[0]
    rail = table[0, SUPPLY]
    if model.pump:
        rail = _set_rail(y, u, duration, model, fed[3:12])
    pumped = 0.0
    for i in range(3):
        side_1, side_2 = sources(u[i], rail, table[i, TANK])
        C_1, C_2 = orifice_resistances(u[i], i, model.lines)
        p1 = chamber_pressure(y[PRESSURE_1 + i], model.vapour)
        p2 = chamber_pressure(y[PRESSURE_2 + i], model.vapour)
        drop_1 = side_1 - p1
        drop_2 = p2 + side_2 if model.as_printed else p2 - side_2
        inertance = table[i, INERTANCE]
        if closed[i]:
            share = -math.expm1(-duration / table[i, RESIDUAL_TIME])
            y[FLOW_1 + i] += share * (residual_flow(drop_1, C_1) - y[FLOW_1 + i])
            y[FLOW_2 + i] += share * (residual_flow(drop_2, C_2) - y[FLOW_2 + i])
            continue
        Q1, Q2 = y[FLOW_1 + i], y[FLOW_2 + i]
        y[FLOW_1 + i], V1 = orifice_step(Q1, drop_1, C_1, inertance, duration)
        y[FLOW_2 + i], V2 = orifice_step(Q2, drop_2, C_2, inertance, duration)
        balance[SUPPLIED] += side_1 * V1 - (p2 - drop_2) * V2
        gained = 0.5 * inertance * (y[FLOW_1 + i] ** 2 - Q1 * Q1 + y[FLOW_2 + i] ** 2 - Q2 * Q2)
        balance[ORIFICES] += drop_1 * V1 + drop_2 * V2 - gained
        pumped += V1 if u[i] > 0.0 else -V2
    if model.pump:
        lost = (table[0, SUPPLY] - rail) * pumped
        balance[SUPPLIED] += lost
        balance[PUMP] += lost


@njit
def _set_ports(y, model, counted):  # type: ignore[no-untyped-def]
    """Write the flows through relief and make-up valves into the lines (6,)."""
    table = model.lines[0]
    for i in range(3):
        for k, side in ((i, RELIEF_1), (3 + i, RELIEF_2)):
            p = chamber_pressure(y[PRESSURE_1 + k], model.vapour)
            counted[k] = relief_and_make_up(p, side, i, table)


@njit
def _through_ports(y, duration, model, balance, counted):  # type: ignore[no-untyped-def]
    """Let oil through relief and make-up valves for a while, at constant flows."""
    table = model.lines[0]
    for i in range(3):
        if table[i, RELIEF_AREA] > 0.0 or table[i, MAKE_UP_AREA] > 0.0:
            for k, side in ((i, RELIEF_1), (3 + i, RELIEF_2)):
                at = PRESSURE_1 + k
                y[at], given, lost = port_step(y[at], side, i, table, duration, counted[k])
                balance[SUPPLIED] += given
                balance[PORTS] += lost


@njit
def _add_ports(dy, model, counted):  # type: ignore[no-untyped-def]
    """Add flows of :func:`_set_ports` to the rates of pressures."""
    for i in range(3):
        for k in (i, 3 + i):
            dy[PRESSURE_1 + k] += counted[k] / model.lines[0][i, CAPACITANCE]


@njit
def parts_of_step(y, h, model):  # type: ignore[no-untyped-def]
    """Return in how many parts to take a step of the full model: many where a force has a kink."""
    table = model.lines[0]
    for i in range(3):
        if table[i, STOP_STIFFNESS] > 0.0:
            position, arm = piston_and_arm(table, i, y[i])
            speed = abs(arm * y[RATE + i])
            reach = _AHEAD * h * speed
            if speed > _SLOW and not reach < position < table[i, STROKE] - reach:
                return _PARTS
        for p, side in ((y[PRESSURE_1 + i], RELIEF_1), (y[PRESSURE_2 + i], RELIEF_2)):
            flow = relief_and_make_up(p, side, i, table)
            if p < model.vapour or h * abs(flow) > _CHANGE * table[i, CAPACITANCE]:
                return _PARTS
    return 1


@njit
def full_step(y, u, closed, h, model, work, balance):  # type: ignore[no-untyped-def]
    """
    Take a step of the full model; DONE, or DEAD_POINT.

    Half a step of the flows, one of the rest, half a step of the flows: Strang's splitting, of
    order 2. Relief and make-up valves act for half of the step before and after that, by what
    their flows differ from those at its beginning: with the whole flows, a line that is fed
    through one would have a pressure that depends on the step (Speth et al. 2013). At constant
    pressures each flow has a closed form, so that the orifices set no limit to the step; the rest
    is an explicit midpoint step, in whose middle the flows have followed the pressures. Without
    that the order would fall to 1 where valves are nearly closed, because a flow follows its
    pressures there at once. u is that of the middle.
    """
    f1, f2, dy, middle = work[0], work[1], work[2], work[3]
    if model.pump:
        # C_R between its rail and the lines that it feeds; 0: closed.
        for i in range(3):
            C_1, C_2 = orifice_resistances(u[i], i, model.lines)
            f2[3 + i] = 0.0 if closed[i] else (C_1 if u[i] > 0.0 else C_2)
    counted = f2[12:18]
    if model.ports:
        _set_ports(y, model, counted)
        _through_ports(y, 0.5 * h, model, balance, counted)
    _through_valves(y, u, closed, 0.5 * h, model, balance, f2)
    hanging = model.bodies.head_mass > 0.0
    for i in range(3):
        f1[i] = 0.0 if closed[i] else y[FLOW_1 + i]
        f2[i] = 0.0 if closed[i] else y[FLOW_2 + i]
    valid = rates(y, f1, f2, model, dy, f1[3:])
    if model.ports:
        _add_ports(dy, model, counted)
    for k in range(FLOW_1):
        middle[k] = y[k] + 0.5 * h * dy[k]
    if hanging:
        for k in range(HEAD, RAIL):
            middle[k] = y[k] + 0.5 * h * dy[k]
    if model.pump:
        _follow_pump(y, middle, u, h, model, f1, f2, f2[3:12])
    for i in range(3):
        if not closed[i]:
            C_1, C_2 = orifice_resistances(u[i], i, model.lines)
            inertance = model.lines[0][i, INERTANCE]
            slope_1 = orifice_response(f1[i], C_1, inertance, 0.5 * h)
            slope_2 = orifice_response(f2[i], C_2, inertance, 0.5 * h)
            f1[i] -= slope_1 * _rise(y, middle, PRESSURE_1 + i, model)
            f2[i] += slope_2 * _rise(y, middle, PRESSURE_2 + i, model)
    valid = rates(middle, f1, f2, model, dy, f1[3:]) and valid
    if model.ports:
        _add_ports(dy, model, counted)
    for k in range(FLOW_1):
        y[k] += h * dy[k]
    if hanging:
        for k in range(HEAD, RAIL):
            y[k] += h * dy[k]
        balance[HANGING] += h * f1[3 + HANGING]
    balance[LINES] += h * f1[3 + LINES]
    balance[FRICTION] += h * f1[3 + FRICTION]
    balance[STOPS] += h * f1[3 + STOPS]
    _through_valves(y, u, closed, 0.5 * h, model, balance, f2)
    if model.ports:
        _through_ports(y, 0.5 * h, model, balance, counted)
    return DONE if valid else DEAD_POINT


@njit
def _rise(y, middle, at, model):  # type: ignore[no-untyped-def]
    """Return by how much the pressure of a capacitance rises to the middle of a step [Pa]."""
    return chamber_pressure(middle[at], model.vapour) - chamber_pressure(y[at], model.vapour)


@njit
def _follow_pump(y, middle, u, h, model, f1, f2, fed):  # type: ignore[no-untyped-def]
    """
    Add to flows what a pump of limited flow makes of them when pressures change.

    The rail falls with the sum of the flows, dp = -k sum(dQ), and each fed flow follows rail and
    line by its response r: sum(dQ) = -sum(r dP) / (1 + k sum(r)).
    """
    table = model.lines[0]
    follows, total = 0.0, 0.0
    responses = fed[3:6]
    for i in range(3):
        responses[i] = 0.0
        if fed[i] > 0.0:
            flow, at = (f1[i], PRESSURE_1 + i) if u[i] > 0.0 else (-f2[i], PRESSURE_2 + i)
            responses[i] = orifice_response(flow, fed[i], table[i, INERTANCE], 0.5 * h)
            follows -= responses[i] * _rise(y, middle, at, model)
            total += flow
    if not 0.0 < abs(total) < table[0, PUMP_FLOW]:
        return
    _, steep = rail_of(total, table)
    change = -steep * follows / (1.0 + steep * responses.sum())
    for i in range(3):
        if u[i] > 0.0:
            f1[i] += responses[i] * change
        else:
            f2[i] -= responses[i] * change
