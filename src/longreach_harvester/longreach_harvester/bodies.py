"""
Equations of motion: M q'' + V + G = tau, (A1) of Papadopoulos and Gonthier (2002).

Joints q = (swing about the vertical, boom from the horizontal, stick relative to the boom) [rad].
A head that hangs from the stick turns about a first axis parallel to those of boom and stick, and
a second one across the first and the head: its own axis has the angle q_2 + q_3 + q_4 in the plane
of the machine, and q_5 out of it.

    q, v        angles [rad] and rates [rad/s] of swing, boom, stick
    y           state (WIDTH,), see :mod:`longreach_harvester.model`
    b           Bodies
    t1, t2, t3  torques [N m]
    M, h        mass matrix (5, 5) [kg m^2] and V + G (5,) [N m] of the joints and of both axes of
                the head
    dy          time derivative of y
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from longreach_dynamics.kernels import kernel
from longreach_dynamics.linear_algebra import ldl_of, ldl_solve_of

# Where the state y has joint rates and pressures, and angles and rates of a head that hangs.
RATE, PRESSURE_1, HEAD, HEAD_RATE = 3, 6, 18, 20


class Bodies(NamedTuple):
    """Constants of the bodies, SI; the stick with the head and its log where these are points."""

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
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


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
    Write M and V + G with a head that hangs; return the height of its centre of gravity [m].

    Those of swing, boom and stick, and with the Jacobians J, W of the head's centre of gravity and
    its angular velocity M += m J^T J + W^T I W, h += J^T m (a + g) + W^T (I alpha + omega x I
    omega), with the accelerations a, alpha at q'' = 0. All vectors are in the frame that turns
    with the swing.
    """
    M11, M22, M23, M33 = masses(y, b)
    h[0], h[1], h[2] = bias(y, y[RATE:PRESSURE_1], b)
    c2, s2 = math.cos(y[1]), math.sin(y[1])
    c23, s23 = math.cos(y[1] + y[2]), math.sin(y[1] + y[2])
    pitch = y[1] + y[2] + y[HEAD]
    ct, st = math.cos(pitch), math.sin(pitch)
    cr, sr = math.cos(y[HEAD + 1]), math.sin(y[HEAD + 1])
    w1, w2 = y[RATE], y[RATE + 1]
    w3 = w2 + y[RATE + 2]
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
def accelerate_with_head(y, b, dy):  # type: ignore[no-untyped-def]
    """Write accelerations in place of torques in dy, and the head's rates; return its loss [W]."""
    M, h = np.empty((5, 5)), np.empty(5)
    hanging_terms(y, b, M, h)
    first, second = y[HEAD_RATE], y[HEAD_RATE + 1]
    h[0], h[1], h[2] = dy[3] - h[0], dy[4] - h[1], dy[5] - h[2]
    h[3], h[4] = -b.head_damping * first - h[3], -b.head_damping * second - h[4]
    ldl_of(M, 5)
    ldl_solve_of(M, h, 5)
    dy[3], dy[4], dy[5] = h[0], h[1], h[2]
    dy[HEAD], dy[HEAD + 1] = first, second
    dy[HEAD_RATE], dy[HEAD_RATE + 1] = h[3], h[4]
    return b.head_damping * (first * first + second * second)


@njit
def condensed(y, b, M, h):  # type: ignore[no-untyped-def]
    """
    Return M_11, M_12, M_13, M_22, M_23, M_33, h_1, h_2, h_3 with a head that moves freely.

    The head's equations are solved for its accelerations; its rows of M and h are left with what
    its rates need: the inverse of its block, and damping.
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
