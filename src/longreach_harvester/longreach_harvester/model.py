"""
Equations of a forestry machine with hoses: Papadopoulos and Gonthier (2002), corrected.

Joints q = (swing about the vertical, boom from the horizontal, stick relative to the boom) [rad].
The state of the full model is y = (q, q', P_1, P_2, Q_1, Q_2), 18 numbers in the order swing,
boom, stick: pressures of the lines' capacitances [Pa] and flows through orifices and inertances
[m^3/s], see :mod:`longreach_dynamics.hydraulics.lines`. In the reduced model, section 4 of the
paper, P and Q of an open valve follow from the motion; those of a closed one are the oil's that is
locked in.

(A1) M q'' + V + G = tau; (A2) tau = J^T (F_Act - B x'); J is diagonal. Corrected in the paper:
(A6a) has -P_S2 in the return lines, each orifice its C_R, and resistances of the cylinders' lines;
(17) has the root over the whole quotient; (26b) has A_2 / C_2.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from longreach_dynamics.hydraulics.lines import (
    AREA_1,
    AREA_2,
    CAPACITANCE,
    DEAD_BAND,
    INERTANCE,
    LEAK_ACROSS,
    LEAK_TANK,
    MOTOR,
    RESIDUAL_TIME,
    RESISTANCE,
    TANK,
    VISCOUS,
    orifice_resistances,
    orifice_response,
    orifice_step,
    ports,
    residual_flow,
    sources,
)
from longreach_dynamics.linkages import arm_slope, piston_and_arm

__all__ = [
    'BOOK',
    'DEAD_POINT',
    'DONE',
    'NOT_FINITE',
    'SIZE',
    'UNSOLVED',
    'Bodies',
    'Model',
    'accelerations',
    'actuator_space',
    'bias',
    'derivatives',
    'energies',
    'full_step',
    'is_closed',
    'masses',
    'rates',
    'reduced_step',
    'switch',
    'weights',
]

DONE, NOT_FINITE, DEAD_POINT, UNSOLVED = range(4)
# Energy since time 0 [J]: from the pump, lost in orifices, in lines and leakages, in friction, and
# that of the moving oil that a closing valve stops.
BOOK = ('supply', 'orifices', 'lines', 'friction', 'switching')
_SUPPLIED, _ORIFICES, _LINES, _FRICTION, _SWITCHING = range(5)
_RATE, _P1, _P2, _Q1, _Q2, SIZE = 3, 6, 9, 12, 15, 18


# Rounds of Newton's method in a step of the reduced model, from its first guess two to four; and
# the last change [1], whose square is what is left.
_MOST_ROUNDS, _SOLVED = 50, 1e-6


class Bodies(NamedTuple):
    """Constants of the bodies, SI; stick with head."""

    gravity: float
    offset: float  # of the boom's pivot from the swing axis
    length: float  # of the boom
    swing: float  # moment of inertia about the vertical
    boom_mass: float
    boom_centre: float
    boom_across: float  # moments of inertia about transverse axes and its own
    boom_along: float
    stick_mass: float
    stick_moment: float  # first and second moment of mass about the stick's pivot
    stick_second: float
    stick_across: float
    stick_along: float


class Model(NamedTuple):
    """What compiled code knows of a machine."""

    bodies: Bodies
    lines: tuple[np.ndarray, np.ndarray]
    switching: bool  # closed valves by (14), (15), else by the greatest resistance
    reduced: bool
    as_printed: bool  # +P_S2 in the return lines, as (A6a) has it


@njit
def masses(q, b):  # type: ignore[no-untyped-def]
    """Return M_11, M_22, M_23, M_33 of the mass matrix [kg m^2]; M_12 = M_13 = 0."""
    c2, s2 = math.cos(q[1]), math.sin(q[1])
    c23, s23 = math.cos(q[1] + q[2]), math.sin(q[1] + q[2])
    boom, root = b.offset + b.boom_centre * c2, b.offset + b.length * c2
    M11 = (
        b.swing
        + b.boom_mass * boom * boom
        + b.boom_across * c2 * c2
        + b.boom_along * s2 * s2
        + b.stick_mass * root * root
        + 2.0 * b.stick_moment * root * c23
        + (b.stick_second + b.stick_across) * c23 * c23
        + b.stick_along * s23 * s23
    )
    M33 = b.stick_second + b.stick_across
    coupling = b.length * b.stick_moment * math.cos(q[2])
    M22 = (
        b.boom_mass * b.boom_centre**2
        + b.boom_across
        + b.stick_mass * b.length**2
        + M33
        + 2.0 * coupling
    )
    return M11, M22, M33 + coupling, M33


@njit
def weights(q, b):  # type: ignore[no-untyped-def]
    """Return G_2 and G_3 [N m]; G_1 = 0."""
    stick = b.gravity * b.stick_moment * math.cos(q[1] + q[2])
    boom = b.boom_mass * b.boom_centre + b.stick_mass * b.length
    return b.gravity * boom * math.cos(q[1]) + stick, stick


@njit
def bias(q, v, b):  # type: ignore[no-untyped-def]
    """Return V + G [N m] of joint angles [rad] and rates [rad/s]."""
    c2, s2 = math.cos(q[1]), math.sin(q[1])
    c23, s23 = math.cos(q[1] + q[2]), math.sin(q[1] + q[2])
    boom, root = b.offset + b.boom_centre * c2, b.offset + b.length * c2
    # Halves of dM_11/dq_2 and dM_11/dq_3.
    of_stick = -s23 * (
        b.stick_moment * root + (b.stick_second + b.stick_across - b.stick_along) * c23
    )
    of_boom = of_stick - s2 * (
        b.boom_mass * boom * b.boom_centre
        + (b.boom_across - b.boom_along) * c2
        + b.stick_mass * root * b.length
        + b.stick_moment * b.length * c23
    )
    bent = b.length * b.stick_moment * math.sin(q[2])
    G2, G3 = weights(q, b)
    return (
        2.0 * (of_boom * v[1] + of_stick * v[2]) * v[0],
        G2 - of_boom * v[0] * v[0] - bent * (2.0 * v[1] + v[2]) * v[2],
        G3 - of_stick * v[0] * v[0] + bent * v[1] * v[1],
    )


@njit
def accelerations(q, v, t1, t2, t3, b):  # type: ignore[no-untyped-def]
    """Return the joint accelerations [rad/s^2] under torques [N m]."""
    M11, M22, M23, M33 = masses(q, b)
    h1, h2, h3 = bias(q, v, b)
    r2, r3 = t2 - h2, t3 - h3
    determinant = M22 * M33 - M23 * M23
    return (
        (t1 - h1) / M11,
        (M33 * r2 - M23 * r3) / determinant,
        (M22 * r3 - M23 * r2) / determinant,
    )


def actuator_space(
    q: np.ndarray, v: np.ndarray, a: np.ndarray, model: Model
) -> tuple[np.ndarray, np.ndarray]:
    """
    Return the terms of M_Eq x'' + B x' + F_S = F_Act, (9) to (12), for joint accelerations a.

    Parameters
    ----------
    q, v, a : ndarray, shape (3,)
        [rad], [rad/s], [rad/s^2].
    model : Model

    Returns
    -------
    M_Eq, F_S : ndarray, shape (3,)
        Equivalent inertia [kg m^2], masses [kg]; coupling torque [N m], forces [N].
    """
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


@njit
def rates(y, f1, f2, model, dy, powers):  # type: ignore[no-untyped-def]
    """
    Write the time derivatives of q, q', P_1, P_2 for flows that the valves let through.

    Parameters
    ----------
    y : ndarray, shape (12 or more,)
    f1, f2 : ndarray, shape (3,)
        Flows into lines 1 and out of lines 2 [m^3/s].
    model : Model
    dy : ndarray, shape (12,)
        Written.
    powers : ndarray, shape (5,)
        Written: losses in lines and in friction, see BOOK [W].

    Returns
    -------
    bool
        Whether all linkages have a lever.
    """
    b, table = model.bodies, model.lines[0]
    q, v = y[:_RATE], y[_RATE:_P1]
    lost, rubbed, valid = 0.0, 0.0, True
    t1, t2, t3 = 0.0, 0.0, 0.0
    for i in range(3):
        _, arm = piston_and_arm(table, i, q[i])
        valid = valid and arm > 0.0
        speed = arm * v[i]
        p1, p2 = y[_P1 + i], y[_P2 + i]
        port_1, port_2, into, out = ports(p1, p2, speed, i, table)
        force = table[i, AREA_1] * port_1 - table[i, AREA_2] * port_2
        torque = arm * (force - table[i, VISCOUS] * speed)
        if i == 0:
            t1 = torque
        elif i == 1:
            t2 = torque
        else:
            t3 = torque
        dy[_P1 + i] = (f1[i] - into) / table[i, CAPACITANCE]
        dy[_P2 + i] = (out - f2[i]) / table[i, CAPACITANCE]
        lost += p1 * into - p2 * out - force * speed
        rubbed += table[i, VISCOUS] * speed * speed
    dy[0], dy[1], dy[2] = v[0], v[1], v[2]
    dy[3], dy[4], dy[5] = accelerations(q, v, t1, t2, t3, b)
    powers[_LINES], powers[_FRICTION] = lost, rubbed
    return valid


@njit
def energies(y, closed, model):  # type: ignore[no-untyped-def]
    """Return kinetic, potential energy, that of compressed and of moving oil [J]."""
    b, table = model.bodies, model.lines[0]
    M11, M22, M23, M33 = masses(y, b)
    v = y[_RATE:_P1]
    kinetic = 0.5 * (M11 * v[0] ** 2 + M22 * v[1] ** 2 + M33 * v[2] ** 2) + M23 * v[1] * v[2]
    boom = b.boom_mass * b.boom_centre + b.stick_mass * b.length
    potential = b.gravity * (boom * math.sin(y[1]) + b.stick_moment * math.sin(y[1] + y[2]))
    oil, moving = 0.0, 0.0
    for i in range(3):
        if closed[i] or not model.reduced:
            oil += 0.5 * table[i, CAPACITANCE] * (y[_P1 + i] ** 2 + y[_P2 + i] ** 2)
        if not (closed[i] or model.reduced):
            moving += 0.5 * table[i, INERTANCE] * (y[_Q1 + i] ** 2 + y[_Q2 + i] ** 2)
    return kinetic, potential, oil, moving


@njit
def _through_valves(y, u, closed, duration, model, book):  # type: ignore[no-untyped-def]
    """Let the flows change for a while at constant pressures, spools and modes."""
    table = model.lines[0]
    for i in range(3):
        side_1, side_2 = sources(u[i], i, table)
        C_1, C_2 = orifice_resistances(u[i], i, model.lines)
        p1, p2, inertance = y[_P1 + i], y[_P2 + i], table[i, INERTANCE]
        drop_1 = side_1 - p1
        drop_2 = p2 + side_2 if model.as_printed else p2 - side_2
        if closed[i]:
            share = -math.expm1(-duration / table[i, RESIDUAL_TIME])
            y[_Q1 + i] += share * (residual_flow(drop_1, C_1) - y[_Q1 + i])
            y[_Q2 + i] += share * (residual_flow(drop_2, C_2) - y[_Q2 + i])
            continue
        Q1, Q2 = y[_Q1 + i], y[_Q2 + i]
        y[_Q1 + i], V1 = orifice_step(Q1, drop_1, C_1, inertance, duration)
        y[_Q2 + i], V2 = orifice_step(Q2, drop_2, C_2, inertance, duration)
        book[_SUPPLIED] += side_1 * V1 - (p2 - drop_2) * V2
        gained = 0.5 * inertance * (y[_Q1 + i] ** 2 - Q1 * Q1 + y[_Q2 + i] ** 2 - Q2 * Q2)
        book[_ORIFICES] += drop_1 * V1 + drop_2 * V2 - gained


@njit
def full_step(y, u, closed, h, model, work, book):  # type: ignore[no-untyped-def]
    """
    Take a step of the full model in place: half of the flows, the rest, half of the flows.

    Strang's splitting, of order 2. At constant pressures each flow has a closed form, so that the
    orifices set no limit to the step; the rest is an explicit midpoint step, in whose middle the
    flows have followed the pressures. Without that the order would fall to 1 where valves are
    nearly closed, because a flow follows its pressures there at once.

    Parameters
    ----------
    y : ndarray, shape (18,)
    u : ndarray, shape (3,)
        Spools in the middle of the step.
    closed : ndarray of bool, shape (3,)
        Modes of the valves, which do not change within the step.
    h : float
        [s].
    model : Model
    work : ndarray, shape (4, 18)
        For intermediate results.
    book : ndarray, shape (5,)
        Energies of BOOK, which the step adds to.

    Returns
    -------
    int
        DONE or DEAD_POINT; :func:`reduced_step`: UNSOLVED, too, when its iteration did not
        converge.
    """
    _through_valves(y, u, closed, 0.5 * h, model, book)
    f1, f2, dy, middle = work[0], work[1], work[2], work[3]
    for i in range(3):
        f1[i] = 0.0 if closed[i] else y[_Q1 + i]
        f2[i] = 0.0 if closed[i] else y[_Q2 + i]
    valid = rates(y, f1, f2, model, dy, f1[3:])
    for k in range(_Q1):
        middle[k] = y[k] + 0.5 * h * dy[k]
    for i in range(3):
        if not closed[i]:
            C_1, C_2 = orifice_resistances(u[i], i, model.lines)
            inertance = model.lines[0][i, INERTANCE]
            slope_1 = orifice_response(f1[i], C_1, inertance, 0.5 * h)
            slope_2 = orifice_response(f2[i], C_2, inertance, 0.5 * h)
            f1[i] -= slope_1 * (middle[_P1 + i] - y[_P1 + i])
            f2[i] += slope_2 * (middle[_P2 + i] - y[_P2 + i])
    valid = rates(middle, f1, f2, model, dy, f1[3:]) and valid
    for k in range(_Q1):
        y[k] += h * dy[k]
    book[_LINES] += h * f1[3 + _LINES]
    book[_FRICTION] += h * f1[3 + _FRICTION]
    _through_valves(y, u, closed, 0.5 * h, model, book)
    return DONE if valid else DEAD_POINT


@njit
def derivatives(y, u, closed, model, dy):  # type: ignore[no-untyped-def]
    """
    Write the time derivatives of the full model, (A6) corrected, for general integrators.

    Parameters
    ----------
    y : ndarray, shape (18,)
    u : ndarray, shape (3,)
        Spools.
    closed : ndarray of bool, shape (3,)
        Modes of the valves.
    model : Model
    dy : ndarray, shape (18,)
    """
    table = model.lines[0]
    f1, f2 = np.zeros(3), np.zeros(3)
    for i in range(3):
        side_1, side_2 = sources(u[i], i, table)
        C_1, C_2 = orifice_resistances(u[i], i, model.lines)
        Q1, Q2 = y[_Q1 + i], y[_Q2 + i]
        drop_1 = side_1 - y[_P1 + i]
        drop_2 = y[_P2 + i] + side_2 if model.as_printed else y[_P2 + i] - side_2
        if closed[i]:
            dy[_Q1 + i] = (residual_flow(drop_1, C_1) - Q1) / table[i, RESIDUAL_TIME]
            dy[_Q2 + i] = (residual_flow(drop_2, C_2) - Q2) / table[i, RESIDUAL_TIME]
        else:
            f1[i], f2[i] = Q1, Q2
            dy[_Q1 + i] = (drop_1 - C_1 * Q1 * abs(Q1)) / table[i, INERTANCE]
            dy[_Q2 + i] = (drop_2 - C_2 * Q2 * abs(Q2)) / table[i, INERTANCE]
    return rates(y, f1, f2, model, dy, np.empty(len(BOOK)))


@njit
def switch(y, closed, now, u, model, book):  # type: ignore[no-untyped-def]
    """
    Set the modes of the valves, and enter the energy that the model loses or gains by that.

    A closing valve of the full model stops the oil in its inertances. The reduced model knows the
    energy of compressed oil only while a valve is closed; the pressures that it locks in carry the
    load, (16), and share it as at the greatest resistance, (17).

    Parameters
    ----------
    y : ndarray, shape (18,)
        Pressures that are locked in are written.
    closed : ndarray of bool, shape (3,)
        Written.
    now : ndarray of bool, shape (3,)
        New modes.
    u : ndarray, shape (3,)
        Spools.
    model : Model
    book : ndarray, shape (5,)
        Energies of BOOK.
    """
    table = model.lines[0]
    for i in range(3):
        if closed[i] == now[i]:
            continue
        if model.reduced:
            if now[i]:
                _lock(y, u[i], i, model)
            lost = -0.5 * table[i, CAPACITANCE] * (y[_P1 + i] ** 2 + y[_P2 + i] ** 2)
        else:
            lost = 0.5 * table[i, INERTANCE] * (y[_Q1 + i] ** 2 + y[_Q2 + i] ** 2)
        book[_SWITCHING] += lost if now[i] else -lost
        closed[i] = now[i]


@njit
def _lock(y, spool, i, model):  # type: ignore[no-untyped-def]
    """Write pressures and residual flows of an actuator of the reduced model as it is locked."""
    table = model.lines[0]
    C_1, C_2 = orifice_resistances(spool, i, model.lines)
    side_1, side_2 = sources(spool, i, table)
    side_2 = -side_2 if model.as_printed else side_2
    _, arm = piston_and_arm(table, i, y[i])
    load = bias(y[:_RATE], y[_RATE:_P1], model.bodies)[i] / arm
    A_1, A_2 = table[i, AREA_1], table[i, AREA_2]
    # x' |x'| of the residual motion.
    square = (A_1 * side_1 - A_2 * side_2 - load) / (C_1 * A_1**3 + C_2 * A_2**3)
    y[_P1 + i], y[_P2 + i] = side_1 - C_1 * A_1**2 * square, side_2 + C_2 * A_2**2 * square
    y[_Q1 + i] = residual_flow(side_1 - y[_P1 + i], C_1)
    y[_Q2 + i] = residual_flow(y[_P2 + i] - side_2, C_2)


@njit
def _open_motor(speed, flow_1, flow_2, side_1, side_2, C_1, C_2, i, table):  # type: ignore[no-untyped-def]
    """
    Return what a motor does whose oil only meets resistances, linear about two flows.

    Returns
    -------
    torque, slope : float
        At the speed [N m], and what it loses per speed [N m s/rad].
    flow_1, flow_2 : float
        Flows of the linear equations at the speed, for the next iteration [m^3/s].
    """
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
    between = D * speed + across * (e - f)
    return D * (e - f), slope, between + leak * (e - tank), between - leak * (f - tank)


@njit
def _locked(speed, h, y, i, table):  # type: ignore[no-untyped-def]
    """Return force and flows of an actuator on locked oil, (18) to (20), amid a step."""
    half = 0.5 * h / table[i, CAPACITANCE]
    p1, p2 = y[_P1 + i], y[_P2 + i]
    _, _, into, out = ports(p1, p2, speed, i, table)
    port_1, port_2, into, out = ports(p1 - half * into, p2 + half * out, speed, i, table)
    return table[i, AREA_1] * port_1 - table[i, AREA_2] * port_2, into, out


@njit
def _root(rate, gain):  # type: ignore[no-untyped-def]
    """Return x of x + gain x |x| = rate."""
    return 2.0 * rate / (1.0 + math.sqrt(1.0 + 4.0 * gain * abs(rate)))


@njit
def reduced_step(y, u, closed, h, model, work, book):  # type: ignore[no-untyped-def]
    """
    Take a step of the reduced model in place, implicit in all that damps and in locked oil.

    Open valves: the orifices' damping at the end of the step, by Newton's method from the root of
    each joint by itself, because C_R Q |Q| has no slope at rest. Closed valves: oil and lines in
    the middle of the step.

    Parameters and result are those of :func:`full_step`, but u is that at the end of the step.
    """
    b, table = model.bodies, model.lines[0]
    # The oil of an actuator gives drives - damps s' - gains s' |s'|.
    middle, w, arms = work[0, :3], work[0, 3:6], work[0, 6:9]
    drives, damps, gains = work[3, :3], work[3, 3:6], work[3, 6:9]
    sides_1, sides_2, C_1, C_2 = work[1, :3], work[1, 3:6], work[1, 6:9], work[1, 9:12]
    flows_1, flows_2, forces, slopes = work[2, :3], work[2, 3:6], work[2, 6:9], work[2, 9:12]
    for k in range(3):
        middle[k] = y[k] + 0.5 * h * y[_RATE + k]
    v = y[_RATE:_P1]
    M11, M22, M23, M33 = masses(middle, b)
    h1, h2, h3 = bias(middle, v, b)
    valid = True
    for i in range(3):
        _, arms[i] = piston_and_arm(table, i, middle[i])
        valid = valid and arms[i] > 0.0
        inertia, load = (
            M11 if i == 0 else (M22 if i == 1 else M33),
            h1 if i == 0 else (h2 if i == 1 else h3),
        )
        w[i] = v[i]
        C_1[i], C_2[i] = orifice_resistances(u[i], i, model.lines)
        sides_1[i], side = sources(u[i], i, table)
        sides_2[i] = -side if model.as_printed else side
        A_1, A_2, R = table[i, AREA_1], table[i, AREA_2], table[i, RESISTANCE]
        R, damps[i] = R if table[i, MOTOR] == 0.0 else 0.0, table[i, VISCOUS]
        if closed[i]:
            # The mean of both ends counts, which has (20) as its spring.
            drives[i], _, _ = _locked(0.0, h, y, i, table)
            gains[i] = R * (A_1**3 + A_2**3)
            damps[i] += drives[i] - _locked(1.0, h, y, i, table)[0] - gains[i]
        else:
            drives[i] = A_1 * sides_1[i] - A_2 * sides_2[i]
            gains[i] = (C_1[i] + R) * A_1**3 + (C_2[i] + R) * A_2**3
            rate = v[i] + h * (arms[i] * drives[i] - load) / inertia
            w[i] = _root(rate, h * gains[i] * arms[i] ** 3 / inertia)
            flows_1[i] = flows_2[i] = A_1 * arms[i] * w[i]
    solved = False
    for _ in range(_MOST_ROUNDS):
        # Torques at w, and what they lose per rate.
        for i in range(3):
            a, part = arms[i], 1.0
            speed = a * w[i]
            if closed[i]:
                speed, part = 0.5 * a * (v[i] + w[i]), 0.5
            if closed[i] or table[i, MOTOR] == 0.0:
                force = drives[i] - (damps[i] + gains[i] * abs(speed)) * speed
                slope = part * (damps[i] + 2.0 * gains[i] * abs(speed))
            else:
                ends = (sides_1[i], sides_2[i], C_1[i], C_2[i], i, table)
                force, slope, flows_1[i], flows_2[i] = _open_motor(
                    speed, flows_1[i], flows_2[i], *ends
                )
                force -= damps[i] * speed
                slope += damps[i]
            forces[i], slopes[i] = a * force, a * a * slope
        # Newton: (M + h slopes) dw = M (v - w) + h (torques - bias).
        r1 = M11 * (v[0] - w[0]) + h * (forces[0] - h1)
        r2 = M22 * (v[1] - w[1]) + M23 * (v[2] - w[2]) + h * (forces[1] - h2)
        r3 = M23 * (v[1] - w[1]) + M33 * (v[2] - w[2]) + h * (forces[2] - h3)
        D22, D33 = M22 + h * slopes[1], M33 + h * slopes[2]
        determinant = D22 * D33 - M23 * M23
        d1 = r1 / (M11 + h * slopes[0])
        d2, d3 = (D33 * r2 - M23 * r3) / determinant, (D22 * r3 - M23 * r2) / determinant
        w[0] += d1
        w[1] += d2
        w[2] += d3
        change = abs(d1) + abs(d2) + abs(d3)
        solved = change <= _SOLVED * (1e-3 + abs(w[0]) + abs(w[1]) + abs(w[2]))
        if solved:
            break
    for i in range(3):
        mean = 0.5 * (v[i] + w[i])
        y[i] += h * mean
        side_1, outside = sides_1[i], sides_2[i]
        if closed[i]:
            speed = arms[i] * mean
            force, into, out = _locked(speed, h, y, i, table)
            book[_LINES] += h * (
                (y[_P1 + i] - 0.5 * h * into / table[i, CAPACITANCE]) * into
                - (y[_P2 + i] + 0.5 * h * out / table[i, CAPACITANCE]) * out
                - force * speed
            )
            y[_P1 + i] -= h * into / table[i, CAPACITANCE]
            y[_P2 + i] += h * out / table[i, CAPACITANCE]
            share = -math.expm1(-h / table[i, RESIDUAL_TIME])
            y[_Q1 + i] += share * (residual_flow(side_1 - y[_P1 + i], C_1[i]) - y[_Q1 + i])
            y[_Q2 + i] += share * (residual_flow(y[_P2 + i] - outside, C_2[i]) - y[_Q2 + i])
        else:
            speed = arms[i] * w[i]
            Q1, Q2 = table[i, AREA_1] * speed, table[i, AREA_2] * speed
            if table[i, MOTOR] != 0.0:
                Q1, Q2 = flows_1[i], flows_2[i]
            y[_Q1 + i], y[_Q2 + i] = Q1, Q2
            p1, p2 = side_1 - C_1[i] * Q1 * abs(Q1), outside + C_2[i] * Q2 * abs(Q2)
            y[_P1 + i], y[_P2 + i] = p1, p2
            # The forces are those of the end, and work along the mean motion.
            force = forces[i] / arms[i] + table[i, VISCOUS] * speed
            Q1 -= table[i, AREA_1] * (speed - arms[i] * mean)
            Q2 -= table[i, AREA_2] * (speed - arms[i] * mean)
            book[_SUPPLIED] += h * (side_1 * Q1 - outside * Q2)
            book[_ORIFICES] += h * ((side_1 - p1) * Q1 + (p2 - outside) * Q2)
            book[_LINES] += h * (p1 * Q1 - p2 * Q2 - force * arms[i] * mean)
        book[_FRICTION] += h * table[i, VISCOUS] * speed * arms[i] * mean
    for k in range(3):
        y[_RATE + k] = w[k]
    if not valid:
        return DEAD_POINT
    return DONE if solved else UNSOLVED


@njit
def is_closed(u, i, model):  # type: ignore[no-untyped-def]
    """Tell whether a valve is closed at a spool position."""
    return model.switching and abs(u) <= model.lines[0][i, DEAD_BAND]
