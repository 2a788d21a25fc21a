"""
Friction of pistons, ends of their strokes, and when a piston sticks or comes loose.

A piston slides outwards or inwards, sticks, or rests against an end of its stroke; modes change
between steps only. Sliding, it feels viscous and Coulomb friction, Henikl 2015, (25); standing, it
is held by up to its static friction, (26), (27). An end of the stroke holds any force that presses
against it. A machine may take springs for the ends instead (:func:`stop_force`).
"""

from __future__ import annotations

from numba import njit

__all__ = [
    'AT_HEAD_END',
    'AT_ROD_END',
    'INWARDS',
    'OUTWARDS',
    'STUCK',
    'is_held',
    'next_mode',
    'overload',
    'stop_force',
]

# Modes. At an end of the stroke a piston is held like a stuck one, by a force that only pushes:
# run in with the head side empty, run out with the rod side empty.
INWARDS, STUCK, OUTWARDS = -1, 0, 1
AT_HEAD_END, AT_ROD_END = -2, 2


@njit
def is_held(mode):  # type: ignore[no-untyped-def]
    """Tell whether a piston in a mode stands."""
    return mode != INWARDS and mode != OUTWARDS


@njit
def overload(net, mode, static):  # type: ignore[no-untyped-def]
    """
    Return by how much the force on a standing piston is more than holds it [N]; 0.0 if it holds.

    Parameters
    ----------
    net : float
        Force that friction has to hold, positive outwards [N].
    mode : int
    static : float
        Static friction [N].
    """
    if net > static and mode != AT_ROD_END:
        return net - static
    if net < -static and mode != AT_HEAD_END:
        return net + static
    return 0.0


@njit
def next_mode(mode, velocity, position, stroke, static):  # type: ignore[no-untyped-def]
    """
    Return the mode of a piston after a step: it stops where it has turned, or its stroke ends.

    Parameters
    ----------
    mode : int
    velocity : float
        Of the piston, or anything of its sign.
    position, stroke : float
        [m].
    static : float
        Static friction [N]; 0: the piston turns and does not stick.
    """
    if is_held(mode):
        return mode
    if velocity > 0.0 and position >= stroke:
        return AT_ROD_END
    if velocity < 0.0 and position <= 0.0:
        return AT_HEAD_END
    if velocity * mode < 0.0:
        return STUCK if static > 0.0 else -mode
    return mode


@njit
def stop_force(position, velocity, stroke, stiffness, loss):  # type: ignore[no-untyped-def]
    """
    Return the force of springs at the ends of a stroke on the rod [N], and their loss [W].

    Parameters
    ----------
    position, velocity : float
        Of the piston [m], [m/s].
    stroke : float
        [m].
    stiffness : float
        [N/m].
    loss : float
        Damping force over spring force and velocity [s/m] (Hunt and Crossley 1975).
    """
    beyond = position - stroke if position > 0.5 * stroke else -position
    if beyond <= 0.0:
        return 0.0, 0.0
    way = 1.0 if position < 0.5 * stroke else -1.0
    spring = stiffness * beyond
    # Towards the end it grows with the speed; a stop does not pull.
    force = max(spring * (1.0 - loss * way * velocity), 0.0)
    return way * force, (spring - force) * way * velocity
