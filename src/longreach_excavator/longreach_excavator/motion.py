"""
The excavator's equations of motion, and the compiled kernels that integrate them.

Three rigid links by recursive Newton-Euler (:mod:`longreach_dynamics.planar_chain`), driven by
cylinders through their linkage; the soil acts on the tooth. The state y has 25 numbers, followed
with terrain by those of the ground (:mod:`longreach_excavator.terrain`), which change after each
step:

    theta_2..4 (3), their rates (3)            [rad], [rad/s]
    p_1 (3), p_2 (3), spool positions (3)      of the cylinders, [Pa], a share of the travel
    s (2)                                      mobilisation of the soil, see soil
    b (3)                                      friction of the seals over that of sliding ones
    work of the cylinders (3), on the soil (1), losses (1)         [J], since time 0

Other symbols of the kernels, which do not check their arguments:

    spools          (3,) commanded spool positions, -1 to 1
    forces, prescribed    forces of the cylinders, positive extends [N]; NaN: those with oil
    p, table, pins  Constants, their table of the actuators, their pins
    chain           table of the links, see planar_chain
    room            Room, work space
    z4              unit vector along the bucket's DN in the world; complex numbers are x + j z

A cylinder's force is that of its oil, p_1 A_1 - p_2 A_2, or prescribed. The stops at the ends of
the stroke are springs. The piston has viscous friction, and that of its seals F b, which builds up
as they shear, b' = (v - |v| b) / K (Dahl 1968): a piston at rest is held by up to F, and small
oscillations lose energy. The pins carry the sum of these forces. Before a dead point of a linkage
the lugs of both links meet; they are stops like those of the strokes, with a constant lever.
The joint's torque is this sum times d length / d theta, by virtual work; the forces in all pins
follow from the same recursion with cylinders and rods as forces on the links, see :func:`observe`.

The integrals of power are part of the state: the energy balance holds to the integration error,
work of the cylinders = change of kinetic, potential and spring energy + soil + losses.

Steps are classical Runge-Kutta, as in the thesis (C.8) to (C.11), but of the whole state at once;
a step in which a piston meets its stop, a chamber runs empty, a valve opens, or the tooth is in
stiff soil is divided into parts. :func:`advance_adaptive` integrates the same derivative with
DOP853, as the other machines do.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from longreach_dynamics.hydraulics import stop_force
from longreach_dynamics.hydraulics.actuators import (
    COULOMB,
    DEAD_BAND,
    STROKE,
    VAPOUR,
    VISCOUS,
    actuator_rates,
    rail_pressure,
)
from longreach_dynamics.kernels import kernel
from longreach_dynamics.planar_chain import (
    CENTER,
    CENTER_IM,
    GRAVITY,
    INERTIA,
    LENGTH,
    MASS,
    Z_IM,
    Z,
    accelerations,
    add_wrench,
    place_links,
)
from longreach_dynamics.stepping import nonstiff_integrator
from longreach_excavator.constants import HIGHEST, LOWEST, LUG, RETRACTED, TRAVEL
from longreach_excavator.excavation import (
    bearing_of_edge,
    carry,
    contact_of_shell,
    depth_ahead,
    move_soil,
)
from longreach_excavator.linkage import cylinders
from longreach_excavator.soil import mobilisation_rate, resistance
from longreach_excavator.terrain import VOLUME

# Start indices of the parts of the state; the angles start at 0.
RATE, HEAD, ROD, SPOOL, SOIL, SEAL = 3, 6, 9, 12, 15, 17
WORK, SOIL_WORK, LOSS, SIZE = 20, 23, 24, 25

# Bound of angles and rates beyond which a run has diverged [rad, rad/s]; printed forces: 30 rad/s.
_RUNAWAY = 1e3
# Number of parts of a step with a kink in the derivative, which would cause errors of up to 1e-5
# of the energy in a whole step: a piston faster than _SLOW [m/s] meets its stop, or comes
# closer than _CLEARANCE [m]; a chamber runs empty; a spool leaves its dead band.
_PARTS, _SLOW, _CLEARANCE = 16, 1e-3, 1e-4
# In stiff soil, or with seals that slide fast: length of the parts over the shortest time
# constant, and maximum number of parts.
_SOIL_SHARE, _MOST_PARTS = 0.5, 256


class Room(NamedTuple):
    """Work space of a kernel; holds no state between steps."""

    chain: np.ndarray  # table of the chain
    lengths: np.ndarray  # (3,) of the cylinders [m]
    levers: np.ndarray  # (3,) d length / d theta [m]
    torque: np.ndarray  # (3,) joint torques [N m], then joint accelerations [rad/s^2]
    ground: np.ndarray  # state of the ground, a view of y; not changed


@njit
def room_for(p, y):  # type: ignore[no-untyped-def]
    """Return the work space of a kernel, with a view of the ground in y and the bucket's load."""
    room = Room(p.chain.copy(), np.empty(3), np.empty(3), np.empty(3), y[SIZE:])
    if p.ground.cells > 0:
        carry(p.ground, room.ground, room.chain)
    return room


@njit
def tooth_motion(y, pins, medium, chain):  # type: ignore[no-untyped-def]
    """Return place, velocity, depth of the tooth, and the largest resistance; links are placed."""
    place, velocity, rate = complex(0.0, 0.0), complex(0.0, 0.0), 0.0
    for i in range(3):
        rate += y[RATE + i]
        reach = pins.n if i == 2 else chain[LENGTH, i]
        arm = complex(chain[Z, i], chain[Z_IM, i]) * reach
        place += arm
        velocity += complex(-arm.imag, arm.real) * rate
    joint = place.imag - pins.n * chain[Z_IM, 2] if math.isnan(medium.joint) else medium.joint
    depth = medium.surface - joint - medium.radius * chain[Z_IM, 2]
    force = resistance(depth, medium.linear, medium.quadratic, medium.power, medium.exponent)
    return place, velocity, depth, force


@njit
def fixed_direction(push, medium, chain):  # type: ignore[no-untyped-def]
    """Return the unit vector against the soil's force in mode thesis, and the moment [N m]."""
    against = -medium.along * complex(chain[Z, 2], chain[Z_IM, 2])
    return against.real, against.imag, medium.moment if push > 0.0 else 0.0


@njit
def terrain_force(y, place, velocity, p, room):  # type: ignore[no-untyped-def]
    """Return force, moment and power at the tooth, depth, resistance, stiffness, damping."""
    chain, medium, ground = room.chain, p.medium, p.ground
    z4 = complex(chain[Z, 2], chain[Z_IM, 2])
    rate = y[RATE] + y[RATE + 1] + y[RATE + 2]
    fx, fz, moment, power, stiffness, damping = contact_of_shell(
        place, velocity, rate, z4, ground, room.ground
    )
    cut = ground.cut * z4
    depth = depth_ahead(place, cut.real, ground, room.ground)
    push = resistance(depth, medium.linear, medium.quadratic, medium.power, medium.exponent)
    share = y[SOIL] * cut.real + y[SOIL + 1] * cut.imag
    if push > 0.0 and share > 0.0:
        px, pz = -push * share * cut.real, -push * share * cut.imag
        fx += px
        fz += pz
        power -= px * velocity.real + pz * velocity.imag
    share = y[SOIL] * z4.real + y[SOIL + 1] * z4.imag
    if share > 0.0:
        bearing = bearing_of_edge(place, z4, ground, room.ground)
        fx -= bearing * share * z4.real
        fz -= bearing * share * z4.imag
        power += bearing * share * (z4.real * velocity.real + z4.imag * velocity.imag)
        push += bearing
    return fx, fz, moment, power, depth, push, stiffness, damping


@njit
def _change_ground(y, before, p, room):  # type: ignore[no-untyped-def]
    """Move the soil after a step, in place, and return the tooth; ``before``: that before it."""
    ground, chain, state = p.ground, room.chain, y[SIZE:]
    place_links(y[:RATE], y[RATE:HEAD], chain)
    place, velocity, _, _ = tooth_motion(y, p.pins, p.medium, chain)
    z4 = complex(chain[Z, 2], chain[Z_IM, 2])
    attitude, rate = y[0] + y[1] + y[2], y[RATE] + y[RATE + 1] + y[RATE + 2]
    held = state[VOLUME]
    joint = place - p.pins.n * z4
    move_soil(joint, before, place, z4, attitude, ground, state)
    if state[VOLUME] != held:
        arm = z4 * (ground.middle - p.pins.n)
        moving = velocity + complex(-arm.imag, arm.real) * rate
        square = moving.real * moving.real + moving.imag * moving.imag
        own = chain[GRAVITY, 0] * (place + arm).imag
        own += 0.5 * (square + ground.gyration * rate * rate)
        # The energy of soil that enters or leaves the bucket counts as work on the soil.
        y[SOIL_WORK] -= ground.density * (state[VOLUME] - held) * own
        carry(ground, state, chain)
    return place


@njit
def derivative(y, spools, forces, p, room, dy):  # type: ignore[no-untyped-def]
    """Compute dy / dt of the first SIZE elements; return whether the mass matrix is definite."""
    chain, lengths, levers, torque = room.chain, room.lengths, room.levers, room.torque
    table, pins, medium = p.actuators.table, p.pins, p.medium
    place_links(y[:RATE], y[RATE:HEAD], chain)
    cylinders(y, pins, lengths, levers)
    rail = rail_pressure(y, HEAD, table)
    lost = 0.0
    for i in range(3):
        velocity = levers[i] * y[RATE + i]
        position = lengths[i] - table[i, RETRACTED]
        if math.isnan(forces[i]):
            force = actuator_rates(y, HEAD, i, position, velocity, spools[i], rail, table, dy)
        else:
            force = forces[i]
            dy[HEAD + i] = dy[ROD + i] = dy[SPOOL + i] = 0.0
        springs = (medium.stop_stiffness, medium.stop_loss)
        stop, stop_loss = stop_force(position, velocity, table[i, STROKE], *springs)
        friction = table[i, VISCOUS] * velocity + table[i, COULOMB] * y[SEAL + i]
        dy[SEAL + i] = (velocity - abs(velocity) * y[SEAL + i]) / table[i, TRAVEL]
        reach, low, high = table[i, LUG], table[i, LOWEST], table[i, HIGHEST]
        turned, moving = reach * (y[i] - low), reach * y[RATE + i]
        lug, lug_loss = stop_force(turned, moving, reach * (high - low), *springs)
        torque[i] = levers[i] * (force + stop - friction) + reach * lug
        dy[WORK + i] = force * velocity
        lost += friction * velocity + stop_loss + lug_loss
    place, velocity, _, push = tooth_motion(y, pins, medium, chain)
    if math.isnan(medium.along.real):
        sx, sz, moment = y[SOIL], y[SOIL + 1], 0.0
        dy[SOIL], dy[SOIL + 1] = mobilisation_rate(
            velocity.real, velocity.imag, sx, sz, medium.shear
        )
    else:
        sx, sz, moment = fixed_direction(push, medium, chain)
        dy[SOIL] = dy[SOIL + 1] = 0.0
    if push > 0.0:
        add_wrench(2, pins.n, 0.0, -push * sx, -push * sz, moment, chain)
    dy[SOIL_WORK] = push * (sx * velocity.real + sz * velocity.imag)
    if moment != 0.0:
        dy[SOIL_WORK] -= moment * (y[RATE] + y[RATE + 1] + y[RATE + 2])
    if p.ground.cells > 0:
        fx, fz, moment, dy[SOIL_WORK], _, _, _, _ = terrain_force(y, place, velocity, p, room)
        add_wrench(2, pins.n, 0.0, fx, fz, moment, chain)
    dy[LOSS] = lost
    definite = accelerations(torque, chain)
    for i in range(3):
        dy[i] = y[RATE + i]
        dy[RATE + i] = torque[i]
    return definite


@njit
def _parts(y, step, p, room):  # type: ignore[no-untyped-def]
    """Return the number of parts of a step [s] from y on; the room is overwritten."""
    if not math.isnan(p.medium.along.real):
        # The thesis has no stops, and its soil no shear displacement.
        return 1
    parts, chain, table, sliding = 1, room.chain, p.actuators.table, 0.0
    cylinders(y, p.pins, room.lengths, room.levers)
    for i in range(3):
        speed = abs(room.levers[i] * y[RATE + i])
        if table[i, COULOMB] > 0.0:
            sliding = max(sliding, speed / table[i, TRAVEL])
        position = room.lengths[i] - table[i, RETRACTED]
        way = speed * step + _CLEARANCE
        if speed > _SLOW and (position < way or position + way > table[i, STROKE]):
            parts = _PARTS
    place_links(y[:RATE], y[RATE:HEAD], chain)
    place, velocity, _, push = tooth_motion(y, p.pins, p.medium, chain)
    rate, stiffness, damping = abs(velocity) / p.medium.shear, 0.0, 0.0
    if p.ground.cells > 0:
        _, _, _, _, _, push, stiffness, damping = terrain_force(y, place, velocity, p, room)
    if push > 0.0 or stiffness > 0.0:
        # The soil is a spring F / K under the tooth; the bucket alone on it is fastest.
        arm = complex(chain[CENTER, 2] - p.pins.n, chain[CENTER_IM, 2])
        mobility = 1.0 / chain[MASS, 2] + abs(arm) ** 2 / chain[INERTIA, 2]
        rate = max(rate, math.sqrt((push / p.medium.shear + stiffness) * mobility))
        rate = max(rate, damping * mobility)
    finest = step * max(rate, sliding) / _SOIL_SHARE
    # Written so that NaN leaves the step undivided; it then ends in an error.
    if finest > parts:
        parts = math.ceil(finest) if finest < _MOST_PARTS else _MOST_PARTS
    return parts


@njit
def _has_kink(before, after, table):  # type: ignore[no-untyped-def]
    """Return whether a chamber ran empty or filled, or a spool crossed its dead band."""
    for i in range(3):
        for k in (HEAD + i, ROD + i):
            if (before[k] < table[i, VAPOUR]) != (after[k] < table[i, VAPOUR]):
                return True
        band, k = table[i, DEAD_BAND], SPOOL + i
        if (abs(before[k]) < band) != (abs(after[k]) < band):
            return True
    return False


@njit
def _drives(levers):  # type: ignore[no-untyped-def]
    """Return whether no linkage is past a dead point; False for NaN."""
    return levers[0] > 0.0 and levers[1] < 0.0 and levers[2] < 0.0


@njit
def _between(forces, taken, share, prescribed):  # type: ignore[no-untyped-def]
    """Compute ``prescribed``: ``forces`` at a share of a step, by a parabola through three."""
    first, last = (1.0 - share) * (1.0 - 2.0 * share), share * (2.0 * share - 1.0)
    middle = 4.0 * share * (1.0 - share)
    for i in range(3):
        prescribed[i] = first * forces[2 * taken, i] + middle * forces[2 * taken + 1, i]
        prescribed[i] += last * forces[2 * taken + 2, i]


@kernel
def advance_motion(y, spools, forces, p, step, first, steps, every, table):  # type: ignore[no-untyped-def]
    """
    Take steps of order 4 with constant commands, in place; return how many were taken.

    y becomes the state after the last step, or before one that failed: the state diverged, or a
    linkage passed a dead point. Forces are constant (1, 3), or (2 steps + 1, 3) at the start, in
    the middle and at the end of each step. ``first``: number of steps before; ``table`` receives y
    after each ``every``-th step, counted from step 0; 0: no rows.
    """
    room, actuators = room_for(p, y), p.actuators.table
    tooth = complex(0.0, 0.0)
    if p.ground.cells > 0:
        place_links(y[:RATE], y[RATE:HEAD], room.chain)
        tooth, _, _, _ = tooth_motion(y, p.pins, p.medium, room.chain)
    trial, total, rate = np.empty(SIZE), np.empty(SIZE), np.empty(SIZE)
    varies, prescribed, before = forces.shape[0] > 1, forces[0].copy(), np.empty(SIZE)
    for taken in range(steps):
        for k in range(SIZE):
            before[k] = y[k]
        parts = _parts(y, step, p, room)
        good, again = True, True
        while again:
            part = step / parts
            for begin in range(parts):
                for stage in range(4):
                    share = (begin + 0.5 * ((stage + 1) // 2)) / parts
                    if varies:
                        _between(forces, taken, share, prescribed)
                    ahead = part if stage == 3 else 0.5 * part
                    weight = part / 6.0 if stage in (0, 3) else part / 3.0
                    for k in range(SIZE):
                        trial[k] = y[k] if stage == 0 else y[k] + ahead * rate[k]
                    good &= derivative(trial, spools, prescribed, p, room, rate)
                    good &= _drives(room.levers)
                    for k in range(SIZE):
                        total[k] = weight * rate[k] if stage == 0 else total[k] + weight * rate[k]
                for k in range(SIZE):
                    y[k] += total[k]
                    # Written so that NaN fails, too; pressures and work have no such bound.
                    good &= abs(y[k]) < (_RUNAWAY if k < HEAD else np.inf)
                if not good:
                    break
            again = good and parts < _PARTS and _has_kink(before, y, actuators)
            if again or not good:
                for k in range(SIZE):
                    y[k] = before[k]
            parts = _PARTS
        if not good:
            return taken
        if p.ground.cells > 0:
            tooth = _change_ground(y, tooth, p, room)
        if every > 0 and (first + taken + 1) % every == 0:
            row = (first + taken + 1) // every - first // every - 1
            for k in range(y.shape[0]):
                table[row, k] = y[k]
    return steps


class _Inputs(NamedTuple):
    """Commands of one step, and work space."""

    spools: np.ndarray  # (3,) in [-1, 1]
    forces: np.ndarray  # (1, 3), or (3, 3) at the start, in the middle and at the end [N]
    step: float  # [s]
    prescribed: np.ndarray  # (3,) forces at an instant [N], work space
    room: Room


@njit
def _right_hand_side(t, y, u, p, dy):  # type: ignore[no-untyped-def]
    """Compute the derivative of the state at a time t since the start of the step [s]."""
    if u.forces.shape[0] > 1:
        _between(u.forces, 0, t / u.step, u.prescribed)
    derivative(y, u.spools, u.prescribed, p, u.room, dy)


_integrate = nonstiff_integrator(_right_hand_side)


@kernel
def advance_adaptive(y, spools, forces, p, step, first, steps, every, table, tolerance):  # type: ignore[no-untyped-def]
    """Take steps as :func:`advance_motion`, each by adaptive ones of order 8, to a tolerance."""
    guess, room = step, room_for(p, y)
    tooth = complex(0.0, 0.0)
    if p.ground.cells > 0:
        place_links(y[:RATE], y[RATE:HEAD], room.chain)
        tooth, _, _, _ = tooth_motion(y, p.pins, p.medium, room.chain)
    for taken in range(steps):
        given = forces[2 * taken : 2 * taken + 3] if forces.shape[0] > 1 else forces
        inputs = _Inputs(spools, given, step, given[0].copy(), room)
        guess = min(max(guess, 1e-3 * step), step)
        after, _, guess, status = _integrate(
            0.0, step, y[:SIZE], inputs, p, tolerance, tolerance, guess
        )
        good = status == 0
        for k in range(HEAD):
            good &= abs(after[k]) < _RUNAWAY
        cylinders(after, p.pins, room.lengths, room.levers)
        if not (good and _drives(room.levers)):
            return taken
        for k in range(SIZE):
            y[k] = after[k]
        if p.ground.cells > 0:
            tooth = _change_ground(y, tooth, p, room)
        if every > 0 and (first + taken + 1) % every == 0:
            row = (first + taken + 1) // every - first // every - 1
            for k in range(y.shape[0]):
                table[row, k] = y[k]
    return steps


@kernel
def evaluate(y, spools, forces, p, dy):  # type: ignore[no-untyped-def]
    """Compute the derivative dy (SIZE,) of one state."""
    derivative(y, spools, forces, p, room_for(p, y), dy)
