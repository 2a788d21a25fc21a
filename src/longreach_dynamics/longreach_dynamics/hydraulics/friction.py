"""
Friction of pistons, ends of their strokes, and transitions between sticking and sliding.

A piston slides outwards or inwards, sticks, or rests at an end of its stroke; modes change between
steps only. A sliding piston has viscous and Coulomb friction, Henikl 2015, (25); a piston at rest
is held by up to its static friction, (26), (27). An end of the stroke supports any force towards
it. A machine may use springs for the ends instead (:func:`stop_force`).

    net                to be held by friction, positive outwards [N]
    static             static friction [N]; 0: a piston reverses without sticking
    position, stroke   [m]
    velocity           [m/s]; of next_mode any number of the same sign
    stiffness, loss    of the springs [N/m]; damping per spring force and velocity [s/m]
"""

from __future__ import annotations

from numba import njit

# Modes. At an end of the stroke a piston is held as a sticking one, by a unilateral force: at the
# head end the cylinder is retracted, at the rod end extended.
INWARDS, STUCK, OUTWARDS = -1, 0, 1
AT_HEAD_END, AT_ROD_END = -2, 2


@njit
def is_held(mode):  # type: ignore[no-untyped-def]
    """Return whether a piston in a mode is at rest."""
    return mode != INWARDS and mode != OUTWARDS


@njit
def overload(net, mode, static):  # type: ignore[no-untyped-def]
    """Return by how much a force [N] exceeds what holds a piston at rest; 0.0 if it holds."""
    if net > static and mode != AT_ROD_END:
        return net - static
    if net < -static and mode != AT_HEAD_END:
        return net + static
    return 0.0


@njit
def next_mode(mode, velocity, position, stroke, static):  # type: ignore[no-untyped-def]
    """Return the mode after a step: a piston stops where it reverses or its stroke ends."""
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
    """Return force of end springs on the rod [N], their loss [W]; Hunt and Crossley 1975."""
    beyond = position - stroke if position > 0.5 * stroke else -position
    if beyond <= 0.0:
        return 0.0, 0.0
    way = 1.0 if position < 0.5 * stroke else -1.0
    spring = stiffness * beyond
    # The force increases with the velocity towards the end; it is unilateral.
    force = max(spring * (1.0 - loss * way * velocity), 0.0)
    return way * force, (spring - force) * way * velocity
