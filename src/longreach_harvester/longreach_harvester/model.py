"""
Equations of a forestry machine with hoses: Papadopoulos and Gonthier (2002), corrected.

Joints q = (swing about the vertical, boom from the horizontal, stick relative to the boom) [rad].
The state of the full model is y = (q, q', P_1, P_2, Q_1, Q_2), 18 numbers in the order swing,
boom, stick: pressures of the lines' capacitances [Pa] and flows through orifices and inertances
[m^3/s], see :mod:`longreach_dynamics.hydraulics.lines`. Behind them, in WIDTH numbers, are those
beyond the paper: angles of the head about its two axes [rad], their rates [rad/s], the pressure of
the pump's rail [Pa] and the mass of the log in the grapple [kg]. In the reduced model, section 4
of the paper, P and Q of an open valve follow from the motion; those of a closed one are the oil's
that is locked in.

(A1) M q'' + V + G = tau; (A2) tau = J^T (F_Act - B x'); J is diagonal. Corrected in the paper:
(A6a) has -P_S2 in the return lines, each orifice its C_R, and resistances of the cylinders' lines;
(17) has the root over the whole quotient; (26b) has A_2 / C_2.

A head that hangs from the stick turns about a first axis parallel to those of boom and stick, and
a second one across the first and the head: its own axis has the angle q_2 + q_3 + q_4 in the plane
of the machine, and q_5 out of it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from longreach_dynamics.errors import InputError
from longreach_dynamics.hydraulics.friction import stop_force
from longreach_dynamics.hydraulics.lines import (
    AREA_1,
    AREA_2,
    CAPACITANCE,
    DEAD_BAND,
    INERTANCE,
    LEAK_ACROSS,
    LEAK_TANK,
    MAKE_UP_AREA,
    MOTOR,
    PUMP_FLOW,
    RELIEF_1,
    RELIEF_2,
    RELIEF_AREA,
    RESIDUAL_TIME,
    RESISTANCE,
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
from longreach_dynamics.kernels import kernel
from longreach_dynamics.linear_algebra import ldl_of, ldl_solve_of
from longreach_dynamics.linkages import arm_slope, piston_and_arm

DONE, NOT_FINITE, DEAD_POINT, UNSOLVED = range(4)
# Energy since time 0 [J]: from pump, tank and charge line, lost in orifices, in lines and
# leakages, in friction, that of the moving oil that a closing valve stops, and lost in the stops
# at the ends of the strokes. Beyond the paper: lost in relief and make-up valves, in the pump
# below its supply pressure, in the axes of the head; that of logs taken less that of those
# released.
_PAPER = ('supply', 'orifices', 'lines', 'friction', 'switching', 'stops')
BOOK = (*_PAPER, 'ports', 'pump', 'head', 'log')
_SUPPLIED, _ORIFICES, _LINES, _FRICTION, _SWITCHING, _STOPS, _PORTS, _PUMP, _HANGING = range(9)
_RATE, _P1, _P2, _Q1, _Q2, SIZE = 3, 6, 9, 12, 15, 18
HEAD, HEAD_RATE, RAIL, LOG, WIDTH = 18, 20, 22, 23, 24


# Rounds of Newton's method in a step of the reduced model, from its first guess two to four;
# after how many of them it takes half its way, as stops and lines that lack oil are kinks; and the
# last change [1], whose square is what is left.
_MOST_ROUNDS, _CAREFUL, _SOLVED = 60, 15, 1e-6
# Parts of a step with a piston of some speed [m/s] at its stop or that many steps before it, a
# line that lacks oil, or a relief or make-up valve that changes a pressure by some [Pa] in a step:
# kinks that cost up to 1e-3 of the energy in a whole step.
_PARTS, _SLOW, _AHEAD, _CHANGE = 4, 1e-3, 2.0, 1e5
# Speed over which the slope of a stop is taken [m/s].
_SLIGHT = 1e-6


class Bodies(NamedTuple):
    """Constants of the bodies, SI; stick with the head and its log where these are points."""

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
    # A head that hangs, with its log.
    stick_length: float = 0.0
    head_mass: float = 0.0  # 0.0: it does not hang
    head_centre: float = 0.0  # from its pin
    head_across: float = 0.0  # moments of inertia through its centre
    head_along: float = 0.0
    head_damping: float = 0.0  # torque per rate of each axis


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


@kernel
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


@kernel
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


@njit
def _cross(a, b):  # type: ignore[no-untyped-def]
    """Return the vector product of two vectors."""
    return (
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    )


@njit
def _dot(a, b):  # type: ignore[no-untyped-def]
    """Return the scalar product of two vectors."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@njit
def _turning(start, turned, spin, span):  # type: ignore[no-untyped-def]
    """Return the acceleration at the end of a span of a body, from that at its start."""
    tangential, centripetal = _cross(turned, span), _cross(spin, _cross(spin, span))
    return (
        start[0] + tangential[0] + centripetal[0],
        start[1] + tangential[1] + centripetal[1],
        start[2] + tangential[2] + centripetal[2],
    )


@njit
def hanging_terms(y, b, M, h):  # type: ignore[no-untyped-def]
    """
    Write the mass matrix and V + G of the machine with a head that hangs.

    Those of swing, boom and stick, and with the Jacobians J, W of the head's centre of gravity and
    its angular velocity M += m J^T J + W^T I W, h += J^T m (a + g) + W^T (I alpha + omega x I
    omega), with the accelerations a, alpha at q'' = 0. All vectors are in the frame that turns
    with the swing.

    Parameters
    ----------
    y : ndarray, shape (WIDTH,)
    b : Bodies
    M : ndarray, shape (5, 5)
        [kg m^2], of swing, boom, stick, and both axes of the head.
    h : ndarray, shape (5,)
        [N m].

    Returns
    -------
    float
        Height of the head's centre of gravity above the boom's pivot [m].
    """
    M11, M22, M23, M33 = masses(y, b)
    h[0], h[1], h[2] = bias(y, y[_RATE:_P1], b)
    c2, s2 = math.cos(y[1]), math.sin(y[1])
    c23, s23 = math.cos(y[1] + y[2]), math.sin(y[1] + y[2])
    pitch = y[1] + y[2] + y[HEAD]
    ct, st = math.cos(pitch), math.sin(pitch)
    cr, sr = math.cos(y[HEAD + 1]), math.sin(y[HEAD + 1])
    w1, w2 = y[_RATE], y[_RATE + 1]
    w3 = w2 + y[_RATE + 2]
    w4, w5 = w3 + y[HEAD_RATE], y[HEAD_RATE + 1]
    along, normal = (ct * cr, sr, st * cr), (-st, 0.0, ct)
    mass, centre, across = b.head_mass, b.head_centre, b.head_across
    more = b.head_along - across
    boom = (b.length * c2, 0.0, b.length * s2)
    stick = (b.stick_length * c23, 0.0, b.stick_length * s23)
    span = (centre * along[0], centre * along[1], centre * along[2])
    x, z = boom[0] + stick[0] + span[0], boom[2] + stick[2] + span[2]
    lift, up = (0.0, -1.0, 0.0), (0.0, 0.0, 1.0)
    J = (
        (-span[1], b.offset + x, 0.0),
        (-z, 0.0, x),
        (boom[2] - z, 0.0, x - boom[0]),
        (-span[2], 0.0, span[0]),
        _cross(normal, span),
    )
    W = (up, lift, lift, lift, normal)
    a = (-w1 * w1 * b.offset, 0.0, 0.0)
    a = _turning(a, (w1 * w2, 0.0, 0.0), (0.0, -w2, w1), boom)
    a = _turning(a, (w1 * w3, 0.0, 0.0), (0.0, -w3, w1), stick)
    spin = (0.0, -w4, w1)
    turned = _cross(spin, (w5 * normal[0], 0.0, w5 * normal[2]))
    turned = (w1 * w4 + turned[0], turned[1], turned[2])
    spin = (w5 * normal[0], -w4, w1 + w5 * normal[2])
    a = _turning(a, turned, spin, span)
    force = (mass * a[0], mass * a[1], mass * (a[2] + b.gravity))
    # I x = across x + more (along . x) along, and omega x omega = 0.
    share, gyro = more * _dot(along, turned), more * _dot(along, spin)
    gyration = _cross(spin, along)
    torque = (
        across * turned[0] + share * along[0] + gyro * gyration[0],
        across * turned[1] + share * along[1] + gyro * gyration[1],
        across * turned[2] + share * along[2] + gyro * gyration[2],
    )
    h[3], h[4] = 0.0, 0.0
    for j in range(5):
        h[j] += _dot(J[j], force) + _dot(W[j], torque)
        for k in range(j + 1):
            M[j, k] = mass * _dot(J[j], J[k]) + across * _dot(W[j], W[k])
            M[j, k] += more * _dot(along, W[j]) * _dot(along, W[k])
    M[0, 0] += M11
    M[1, 1] += M22
    M[2, 1] += M23
    M[2, 2] += M33
    for j in range(5):
        for k in range(j):
            M[k, j] = M[j, k]
    return z


@njit
def _with_head(y, t1, t2, t3, b, dy):  # type: ignore[no-untyped-def]
    """Write the derivatives of a machine whose head hangs; return what its axes lose [W]."""
    M, h = np.empty((5, 5)), np.empty(5)
    hanging_terms(y, b, M, h)
    first, second = y[HEAD_RATE], y[HEAD_RATE + 1]
    h[0], h[1], h[2] = t1 - h[0], t2 - h[1], t3 - h[2]
    h[3], h[4] = -b.head_damping * first - h[3], -b.head_damping * second - h[4]
    ldl_of(M, 5)
    ldl_solve_of(M, h, 5)
    dy[3], dy[4], dy[5] = h[0], h[1], h[2]
    dy[HEAD], dy[HEAD + 1] = first, second
    dy[HEAD_RATE], dy[HEAD_RATE + 1] = h[3], h[4]
    return b.head_damping * (first * first + second * second)


@njit
def _condensed(y, b, M, h):  # type: ignore[no-untyped-def]
    """
    Return M and V + G of swing, boom and stick with a head that hangs and moves freely.

    The head's equations are solved for its accelerations. M, h: see :func:`hanging_terms`; the
    rows of the head are left with what its rates need, with damping and the inverse of its block.

    Returns
    -------
    tuple of 9 floats
        M_11, M_12, M_13, M_22, M_23, M_33 [kg m^2], h_1, h_2, h_3 [N m].
    """
    hanging_terms(y, b, M, h)
    h[3] += b.head_damping * y[HEAD_RATE]
    h[4] += b.head_damping * y[HEAD_RATE + 1]
    determinant = M[3, 3] * M[4, 4] - M[3, 4] * M[3, 4]
    i33, i34, i44 = M[4, 4] / determinant, -M[3, 4] / determinant, M[3, 3] / determinant
    M[3, 3], M[3, 4], M[4, 3], M[4, 4] = i33, i34, i34, i44
    for j in range(3):
        first, second = M[j, 3] * i33 + M[j, 4] * i34, M[j, 3] * i34 + M[j, 4] * i44
        h[j] -= first * h[3] + second * h[4]
        for k in range(j, 3):
            M[j, k] -= first * M[3, k] + second * M[4, k]
    return M[0, 0], M[0, 1], M[0, 2], M[1, 1], M[1, 2], M[2, 2], h[0], h[1], h[2]


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

    Raises
    ------
    InputError
        For a head that hangs, whose motion the paper's form does not have.
    """
    if model.bodies.head_mass > 0.0:
        raise InputError('head = pendulum, allowed in actuator space: a point mass')
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
def _stop(position, speed, i, table):  # type: ignore[no-untyped-def]
    """Return force [N] and loss [W] of the stops of an actuator; of a motor 0.0."""
    stroke, stiffness, loss = table[i, STROKE], table[i, STOP_STIFFNESS], table[i, STOP_LOSS]
    return stop_force(position, speed, stroke, stiffness, loss)


@njit
def rates(y, f1, f2, model, dy, powers):  # type: ignore[no-untyped-def]
    """
    Write the time derivatives of q, q', P_1, P_2 for flows that the valves let through.

    Parameters
    ----------
    y : ndarray, shape (12 or more,); of a machine whose head hangs (WIDTH,)
    f1, f2 : ndarray, shape (3,)
        Flows into lines 1 and out of lines 2 [m^3/s].
    model : Model
    dy : ndarray, as y
        Written.
    powers : ndarray, shape (len(BOOK),)
        Written: losses in lines, friction, stops and the axes of the head, see BOOK [W].

    Returns
    -------
    bool
        Whether all linkages have a lever.
    """
    b, table = model.bodies, model.lines[0]
    q, v = y[:_RATE], y[_RATE:_P1]
    lost, rubbed, stopped, valid = 0.0, 0.0, 0.0, True
    t1, t2, t3 = 0.0, 0.0, 0.0
    for i in range(3):
        position, arm = piston_and_arm(table, i, q[i])
        valid = valid and arm > 0.0
        speed = arm * v[i]
        p1 = chamber_pressure(y[_P1 + i], model.vapour)
        p2 = chamber_pressure(y[_P2 + i], model.vapour)
        port_1, port_2, into, out = ports(p1, p2, speed, i, table)
        force = table[i, AREA_1] * port_1 - table[i, AREA_2] * port_2
        push, loss = _stop(position, speed, i, table)
        torque = arm * (force + push - table[i, VISCOUS] * speed)
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
        stopped += loss
    dy[0], dy[1], dy[2] = v[0], v[1], v[2]
    if b.head_mass > 0.0:
        powers[_HANGING] = _with_head(y, t1, t2, t3, b, dy)
    else:
        dy[3], dy[4], dy[5] = accelerations(q, v, t1, t2, t3, b)
        powers[_HANGING] = 0.0
    powers[_LINES], powers[_FRICTION], powers[_STOPS] = lost, rubbed, stopped
    return valid


@njit
def energies(y, closed, model):  # type: ignore[no-untyped-def]
    """Return kinetic, potential energy, that of compressed, of moving oil and of stops [J]."""
    b, table = model.bodies, model.lines[0]
    M11, M22, M23, M33 = masses(y, b)
    v = y[_RATE:_P1]
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
            oil += _compressed(y, i, model)
        if not (closed[i] or model.reduced):
            moving += 0.5 * table[i, INERTANCE] * (y[_Q1 + i] ** 2 + y[_Q2 + i] ** 2)
        position, _ = piston_and_arm(table, i, y[i])
        beyond = max(position - table[i, STROKE], -position, 0.0)
        stops += 0.5 * table[i, STOP_STIFFNESS] * beyond * beyond
    return kinetic, potential, oil, moving, stops


@njit
def _compressed(y, i, model):  # type: ignore[no-untyped-def]
    """Return the energy of the oil in both capacitances of an actuator [J]."""
    p1 = chamber_pressure(y[_P1 + i], model.vapour)
    p2 = chamber_pressure(y[_P2 + i], model.vapour)
    return 0.5 * model.lines[0][i, CAPACITANCE] * (p1 * p1 + p2 * p2)


@njit
def _set_fed(u, closed, model, fed):  # type: ignore[no-untyped-def]
    """Write C_R between a limited pump's rail and the lines that it feeds; 0: closed."""
    for i in range(3):
        C_1, C_2 = orifice_resistances(u[i], i, model.lines)
        fed[i] = 0.0 if closed[i] else (C_1 if u[i] > 0.0 else C_2)


@njit
def _set_rail(y, u, duration, model, fed):  # type: ignore[no-untyped-def]
    """Write and return the pressure with which a limited pump feeds the valves for a while."""
    flows, pressures = fed[3:6], fed[6:9]
    for i in range(3):
        positive = u[i] > 0.0
        flows[i] = y[_Q1 + i] if positive else -y[_Q2 + i]
        pressures[i] = chamber_pressure(y[_P1 + i] if positive else y[_P2 + i], model.vapour)
    y[RAIL] = rail_step(y[RAIL], flows, pressures, fed[:3], duration, model.lines[0])
    return y[RAIL]


@njit
def _through_valves(y, u, closed, duration, model, book, fed):  # type: ignore[no-untyped-def]
    """Let the flows change for a while at constant pressures, spools and modes."""
    table = model.lines[0]
    rail = table[0, SUPPLY]
    if model.pump:
        rail = _set_rail(y, u, duration, model, fed[3:12])
    pumped = 0.0
    for i in range(3):
        side_1, side_2 = sources(u[i], rail, table[i, TANK])
        C_1, C_2 = orifice_resistances(u[i], i, model.lines)
        p1 = chamber_pressure(y[_P1 + i], model.vapour)
        p2 = chamber_pressure(y[_P2 + i], model.vapour)
        inertance = table[i, INERTANCE]
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
        pumped += V1 if u[i] > 0.0 else -V2
    if model.pump:
        lost = (table[0, SUPPLY] - rail) * pumped
        book[_SUPPLIED] += lost
        book[_PUMP] += lost


@njit
def _through_ports(y, duration, model, book):  # type: ignore[no-untyped-def]
    """Let oil through relief and make-up valves for a while, at constant flows."""
    table = model.lines[0]
    for i in range(3):
        if table[i, RELIEF_AREA] > 0.0 or table[i, MAKE_UP_AREA] > 0.0:
            for at, side in ((_P1 + i, RELIEF_1), (_P2 + i, RELIEF_2)):
                y[at], given, lost = port_step(y[at], side, i, table, duration)
                book[_SUPPLIED] += given
                book[_PORTS] += lost


@njit
def parts_of_step(y, h, model):  # type: ignore[no-untyped-def]
    """Return in how many parts to take a step of the full model: many where a force has a kink."""
    table = model.lines[0]
    for i in range(3):
        if table[i, STOP_STIFFNESS] > 0.0:
            position, arm = piston_and_arm(table, i, y[i])
            speed = abs(arm * y[_RATE + i])
            reach = _AHEAD * h * speed
            if speed > _SLOW and not reach < position < table[i, STROKE] - reach:
                return _PARTS
        for p, side in ((y[_P1 + i], RELIEF_1), (y[_P2 + i], RELIEF_2)):
            flow = relief_and_make_up(p, side, i, table)
            if p < model.vapour or h * abs(flow) > _CHANGE * table[i, CAPACITANCE]:
                return _PARTS
    return 1


@njit
def full_step(y, u, closed, h, model, work, book):  # type: ignore[no-untyped-def]
    """
    Take a step of the full model in place: half of the flows, the rest, half of the flows.

    Relief and make-up valves act for half of the step before and after that.

    Strang's splitting, of order 2. At constant pressures each flow has a closed form, so that the
    orifices set no limit to the step; the rest is an explicit midpoint step, in whose middle the
    flows have followed the pressures. Without that the order would fall to 1 where valves are
    nearly closed, because a flow follows its pressures there at once.

    Parameters
    ----------
    y : ndarray, shape (SIZE,), or (WIDTH,) with what is beyond the paper
    u : ndarray, shape (3,)
        Spools in the middle of the step.
    closed : ndarray of bool, shape (3,)
        Modes of the valves, which do not change within the step.
    h : float
        [s].
    model : Model
    work : ndarray, shape (4, size of y)
        For intermediate results.
    book : ndarray, shape (len(BOOK),)
        Energies of BOOK, which the step adds to.

    Returns
    -------
    int
        DONE or DEAD_POINT; :func:`reduced_step`: UNSOLVED, too, when its iteration did not
        converge.
    """
    f1, f2, dy, middle = work[0], work[1], work[2], work[3]
    if model.pump:
        _set_fed(u, closed, model, f2[3:12])
    if model.ports:
        _through_ports(y, 0.5 * h, model, book)
    _through_valves(y, u, closed, 0.5 * h, model, book, f2)
    hanging = model.bodies.head_mass > 0.0
    for i in range(3):
        f1[i] = 0.0 if closed[i] else y[_Q1 + i]
        f2[i] = 0.0 if closed[i] else y[_Q2 + i]
    valid = rates(y, f1, f2, model, dy, f1[3:])
    for k in range(_Q1):
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
            f1[i] -= slope_1 * _rise(y, middle, _P1 + i, model)
            f2[i] += slope_2 * _rise(y, middle, _P2 + i, model)
    valid = rates(middle, f1, f2, model, dy, f1[3:]) and valid
    for k in range(_Q1):
        y[k] += h * dy[k]
    if hanging:
        for k in range(HEAD, RAIL):
            y[k] += h * dy[k]
        book[_HANGING] += h * f1[3 + _HANGING]
    book[_LINES] += h * f1[3 + _LINES]
    book[_FRICTION] += h * f1[3 + _FRICTION]
    book[_STOPS] += h * f1[3 + _STOPS]
    _through_valves(y, u, closed, 0.5 * h, model, book, f2)
    if model.ports:
        _through_ports(y, 0.5 * h, model, book)
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
            flow, at = (f1[i], _P1 + i) if u[i] > 0.0 else (-f2[i], _P2 + i)
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


@njit
def derivatives(y, u, closed, model, dy):  # type: ignore[no-untyped-def]
    """
    Write the time derivatives of the full model, (A6) corrected, for general integrators.

    Parameters
    ----------
    y : ndarray, shape (SIZE,), or (WIDTH,) with what is beyond the paper
    u : ndarray, shape (3,)
        Spools.
    closed : ndarray of bool, shape (3,)
        Modes of the valves.
    model : Model
    dy : ndarray, as y
    """
    table = model.lines[0]
    f1, f2 = np.zeros(3), np.zeros(3)
    rail = table[0, SUPPLY]
    if model.pump:
        total = 0.0
        for i in range(3):
            if not closed[i]:
                total += y[_Q1 + i] if u[i] > 0.0 else -y[_Q2 + i]
        rail, _ = rail_of(total, table)
    for i in range(3):
        side_1, side_2 = sources(u[i], rail, table[i, TANK])
        C_1, C_2 = orifice_resistances(u[i], i, model.lines)
        Q1, Q2 = y[_Q1 + i], y[_Q2 + i]
        p1 = chamber_pressure(y[_P1 + i], model.vapour)
        p2 = chamber_pressure(y[_P2 + i], model.vapour)
        drop_1 = side_1 - p1
        drop_2 = p2 + side_2 if model.as_printed else p2 - side_2
        if closed[i]:
            dy[_Q1 + i] = (residual_flow(drop_1, C_1) - Q1) / table[i, RESIDUAL_TIME]
            dy[_Q2 + i] = (residual_flow(drop_2, C_2) - Q2) / table[i, RESIDUAL_TIME]
        else:
            f1[i], f2[i] = Q1, Q2
            dy[_Q1 + i] = (drop_1 - C_1 * Q1 * abs(Q1)) / table[i, INERTANCE]
            dy[_Q2 + i] = (drop_2 - C_2 * Q2 * abs(Q2)) / table[i, INERTANCE]
        f1[i] += relief_and_make_up(p1, RELIEF_1, i, table)
        f2[i] -= relief_and_make_up(p2, RELIEF_2, i, table)
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
    y : ndarray, as in :func:`full_step`
        Pressures that are locked in are written.
    closed : ndarray of bool, shape (3,)
        Written.
    now : ndarray of bool, shape (3,)
        New modes.
    u : ndarray, shape (3,)
        Spools.
    model : Model
    book : ndarray, shape (len(BOOK),)
        Energies of BOOK.
    """
    table = model.lines[0]
    for i in range(3):
        if closed[i] == now[i]:
            continue
        if model.reduced:
            if now[i]:
                _lock(y, u[i], i, model)
            lost = -_compressed(y, i, model)
        else:
            lost = 0.5 * table[i, INERTANCE] * (y[_Q1 + i] ** 2 + y[_Q2 + i] ** 2)
        book[_SWITCHING] += lost if now[i] else -lost
        closed[i] = now[i]


@njit
def _lock(y, spool, i, model):  # type: ignore[no-untyped-def]
    """Write pressures and residual flows of an actuator of the reduced model as it is locked."""
    table = model.lines[0]
    C_1, C_2 = orifice_resistances(spool, i, model.lines)
    side_1, side_2 = sources(spool, table[i, SUPPLY], table[i, TANK])
    side_2 = -side_2 if model.as_printed else side_2
    position, arm = piston_and_arm(table, i, y[i])
    if model.bodies.head_mass > 0.0:
        load = _condensed(y, model.bodies, np.empty((5, 5)), np.empty(5))[6 + i] / arm
    else:
        load = bias(y[:_RATE], y[_RATE:_P1], model.bodies)[i] / arm
    load -= _stop(position, arm * y[_RATE + i], i, table)[0]
    A_1, A_2 = table[i, AREA_1], table[i, AREA_2]
    # x' |x'| of the residual motion.
    square = (A_1 * side_1 - A_2 * side_2 - load) / (C_1 * A_1**3 + C_2 * A_2**3)
    p1, p2 = side_1 - C_1 * A_1**2 * square, side_2 + C_2 * A_2**2 * square
    if min(p1, p2) < model.vapour:
        # One side runs empty: the other carries the load.
        p1, p2 = max(load / A_1, 0.0), max(-load / A_2, 0.0)
    y[_P1 + i], y[_P2 + i] = p1, p2
    y[_Q1 + i] = residual_flow(side_1 - y[_P1 + i], C_1)
    y[_Q2 + i] = residual_flow(y[_P2 + i] - side_2, C_2)


@njit
def _open_motor(speed, flow_1, flow_2, side_1, side_2, C_1, C_2, i, table, vapour):  # type: ignore[no-untyped-def]
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
    p1, p2 = y[_P1 + i], y[_P2 + i]
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
    square, R, A_1, A_2 = (
        speed * abs(speed),
        table[i, RESISTANCE],
        table[i, AREA_1],
        table[i, AREA_2],
    )
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
    middle, w, arms, starts = work[0, :3], work[0, 3:6], work[0, 6:9], work[0, 9:12]
    drives, damps, gains = work[3, :3], work[3, 3:6], work[3, 6:9]
    sides_1, sides_2, C_1, C_2 = work[1, :3], work[1, 3:6], work[1, 6:9], work[1, 9:12]
    flows_1, flows_2, forces, slopes = work[2, :3], work[2, 3:6], work[2, 6:9], work[2, 9:12]
    for k in range(3):
        middle[k] = y[k] + 0.5 * h * y[_RATE + k]
    v = y[_RATE:_P1]
    hanging, M12, M13 = b.head_mass > 0.0, 0.0, 0.0
    if hanging:
        M, terms, state = np.empty((5, 5)), np.empty(5), y.copy()
        state[:3] = middle
        for k in range(2):
            state[HEAD + k] = y[HEAD + k] + 0.5 * h * y[HEAD_RATE + k]
        M11, M12, M13, M22, M23, M33, h1, h2, h3 = _condensed(state, b, M, terms)
    else:
        M11, M22, M23, M33 = masses(middle, b)
        h1, h2, h3 = bias(middle, v, b)
    valid = True
    for i in range(3):
        _, arms[i] = piston_and_arm(table, i, middle[i])
        starts[i], _ = piston_and_arm(table, i, y[i])
        valid = valid and arms[i] > 0.0
        inertia, load = (
            M11 if i == 0 else (M22 if i == 1 else M33),
            h1 if i == 0 else (h2 if i == 1 else h3),
        )
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
            rate = v[i] + h * (arms[i] * drives[i] - load) / inertia
            w[i] = _root(rate, h * gains[i] * arms[i] ** 3 / inertia)
            flows_1[i] = flows_2[i] = A_1 * arms[i] * w[i]
    solved = False
    for n in range(_MOST_ROUNDS):
        if hanging:
            # The rates of a head that swings are not slow: the bias is that of the mean rates.
            for k in range(3):
                state[_RATE + k] = 0.5 * (v[k] + w[k])
            M11, M12, M13, M22, M23, M33, h1, h2, h3 = _condensed(state, b, M, terms)
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
            push, _ = _stop(starts[i] + 0.5 * h * mean, mean, i, table)
            if push != 0.0:
                # The mean of both ends, which takes the energy of the spring.
                faster = mean + _SLIGHT
                more, _ = _stop(starts[i] + 0.5 * h * faster, faster, i, table)
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
        push, loss = _stop(starts[i] + 0.5 * h * arms[i] * mean, arms[i] * mean, i, table)
        book[_STOPS] += h * loss
        if closed[i]:
            speed = arms[i] * mean
            force, into, out, p1, p2 = _locked(speed, h, y, i, table, model.vapour)
            book[_LINES] += h * (p1 * into - p2 * out - force * speed)
            y[_P1 + i] -= h * into / table[i, CAPACITANCE]
            y[_P2 + i] += h * out / table[i, CAPACITANCE]
            share = -math.expm1(-h / table[i, RESIDUAL_TIME])
            p1 = chamber_pressure(y[_P1 + i], model.vapour)
            p2 = chamber_pressure(y[_P2 + i], model.vapour)
            y[_Q1 + i] += share * (residual_flow(side_1 - p1, C_1[i]) - y[_Q1 + i])
            y[_Q2 + i] += share * (residual_flow(p2 - outside, C_2[i]) - y[_Q2 + i])
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
            y[_Q1 + i], y[_Q2 + i] = Q1, Q2
            p1, p2 = side_1 - C_1[i] * Q1 * abs(Q1), outside + C_2[i] * Q2 * abs(Q2)
            y[_P1 + i], y[_P2 + i] = p1, p2
            # The forces are those of the end, and work along the mean motion.
            force = forces[i] / arms[i] - push + table[i, VISCOUS] * speed
            Q1 -= table[i, AREA_1] * (speed - arms[i] * mean)
            Q2 -= table[i, AREA_2] * (speed - arms[i] * mean)
            book[_SUPPLIED] += h * (side_1 * Q1 - outside * Q2)
            book[_ORIFICES] += h * ((side_1 - p1) * Q1 + (p2 - outside) * Q2)
            book[_LINES] += h * (p1 * Q1 - p2 * Q2 - force * arms[i] * mean)
        book[_FRICTION] += h * table[i, VISCOUS] * speed * arms[i] * mean
    y[_RATE:_P1] = w
    if hanging:
        for k in range(2):
            mean = state[HEAD_RATE + k]
            y[HEAD + k] += h * mean
            y[HEAD_RATE + k] = 2.0 * mean - y[HEAD_RATE + k]
            book[_HANGING] += h * b.head_damping * mean * mean
    if not valid:
        return DEAD_POINT
    return DONE if solved else UNSOLVED


@njit
def is_closed(u, i, model):  # type: ignore[no-untyped-def]
    """Tell whether a valve is closed at a spool position."""
    return model.switching and abs(u) <= model.lines[0][i, DEAD_BAND]
