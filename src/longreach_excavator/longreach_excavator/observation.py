"""What is observed of an excavator's states: lengths, forces, reactions, flows, energies."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from longreach_dynamics.hydraulics import stop_force
from longreach_dynamics.hydraulics.actuators import (
    COULOMB,
    STROKE,
    VISCOUS,
    actuator_force,
    rail_pressure,
    spool_flows,
)
from longreach_dynamics.kernels import kernel
from longreach_dynamics.planar_chain import (
    CENTER,
    CENTER_IM,
    FORCE,
    FORCE_IM,
    GRAVITY,
    INERTIA,
    LENGTH,
    MASS,
    Z_IM,
    Z,
    add_wrench,
    newton_euler,
    place_links,
)
from longreach_excavator.columns import OBSERVED
from longreach_excavator.constants import HIGHEST, LOWEST, LUG, RETRACTED
from longreach_excavator.linkage import (
    arm_cylinder,
    boom_cylinder,
    bucket_cylinder,
    cylinders,
    rod_forces,
)
from longreach_excavator.motion import (
    HEAD,
    RATE,
    SEAL,
    SIZE,
    SOIL,
    derivative,
    fixed_direction,
    room_for,
    terrain_force,
    tooth_motion,
)
from longreach_excavator.terrain import VOLUME

# What acts from outside in runs.
NOTHING = np.zeros(5)
# Indices of OBSERVED; of a group the first one.
_at = OBSERVED.index
_ALPHA, _LENGTH, _FORCE = _at('alpha_2'), _at('length_boom'), _at('force_boom')
_PIN_FORCE, _TENSION_LK, _TENSION_PK = _at('pin_force_boom'), _at('force_lk'), _at('force_pk')
_JOINTS, _PUSH_BOOM, _PUSH_ARM = _at('boom_chassis_x'), _at('boom_x'), _at('arm_x')
_PUSH_BUCKET, _PUSH_LK, _PUSH_PK = _at('bucket_x'), _at('lk_x'), _at('pk_x')
_PUSH_SOIL, _DEPTH, _TIP = _at('soil_x'), _at('depth'), _at('tip_x')
_HEAD_FLOW, _ROD_FLOW = _at('head_flow_boom'), _at('rod_flow_boom')
_MOMENT, _VOLUME = _at('soil_moment'), _at('bucket_volume')


@njit
def _spread(value, row, k):  # type: ignore[no-untyped-def]
    """Store x and z of a complex number in ``row[k]`` and ``row[k + 1]``."""
    row[k], row[k + 1] = value.real, value.imag


@njit
def load_links(q, pushes, chain, pins):  # type: ignore[no-untyped-def]
    """
    Add the forces of cylinders and rods to the links, which are placed in the chain.

    ``pushes``: forces of the cylinders at their pins. Return those on boom, arm and K, and those
    of LK and PK on L and P, in the world's axes, and the tensions of LK and PK [N].
    """
    z2 = complex(chain[Z, 0], chain[Z_IM, 0])
    z23 = complex(chain[Z, 1], chain[Z_IM, 1])
    along, _ = boom_cylinder(q[0], pins)
    boom = pushes[0] * along / abs(along)
    along, _ = arm_cylinder(q[1], pins)
    arm = pushes[1] * along / abs(along) * z2
    along, lever, rod, _ = bucket_cylinder(q[2], pins)
    bucket = pushes[2] * along / abs(along) * z23
    tension_lk, tension_pk = rod_forces(pushes[2], along, lever, rod)
    lk = tension_lk * lever / abs(lever) * z23
    pk = tension_pk * rod / abs(rod) * z23
    add_wrench(0, pins.b.real, pins.b.imag, boom.real, boom.imag, 0.0, chain)
    add_wrench(0, pins.i.real, pins.i.imag, -arm.real, -arm.imag, 0.0, chain)
    add_wrench(1, pins.f.real, pins.f.imag, arm.real, arm.imag, 0.0, chain)
    add_wrench(1, pins.j.real, pins.j.imag, -bucket.real, -bucket.imag, 0.0, chain)
    add_wrench(1, pins.l.real, pins.l.imag, lk.real, lk.imag, 0.0, chain)
    add_wrench(2, pins.p.real, pins.p.imag, pk.real, pk.imag, 0.0, chain)
    return boom, arm, bucket, lk, pk, tension_lk, tension_pk


@kernel
def observe(states, forces, acting, p, rows):  # type: ignore[no-untyped-def]
    """
    Compute the quantities of OBSERVED, a row for each state; forces (1 or rows, 3).

    ``acting`` (5,): what acts from outside: accelerations of the joints that it adds [rad/s^2],
    and a force on the tooth, x and z [N].
    Forces on the links in A, C and D, of the cylinders on boom, arm and K, of LK and PK on L and
    P, and of the soil on the tooth are in the world's axes; without soil the depth is 0.
    """
    table, pins, medium = p.actuators.table, p.pins, p.medium
    dy, spools, pushes, acceleration = np.empty(SIZE), np.zeros(3), np.empty(3), np.empty(3)
    for k in range(states.shape[0]):
        y, row = states[k], rows[k]
        room = room_for(p, y)
        chain, lengths, levers = room.chain, room.lengths, room.levers
        prescribed = forces[k if forces.shape[0] > 1 else 0]
        derivative(y, spools, prescribed, p, room, dy)
        rail = rail_pressure(y, HEAD, table)
        for i in range(3):
            acceleration[i] = row[_ALPHA + i] = dy[RATE + i] + acting[i]
            row[_LENGTH + i] = lengths[i]
            velocity = levers[i] * y[RATE + i]
            q1, q2, _, _ = spool_flows(y, HEAD, i, rail, table)
            oil = math.isnan(prescribed[i])
            force = actuator_force(y, HEAD, i, table) if oil else prescribed[i]
            row[_HEAD_FLOW + i] = q1 if oil else 0.0
            row[_ROD_FLOW + i] = q2 if oil else 0.0
            stop, _ = stop_force(
                lengths[i] - table[i, RETRACTED],
                velocity,
                table[i, STROKE],
                medium.stop_stiffness,
                medium.stop_loss,
            )
            pushes[i] = force + stop - table[i, VISCOUS] * velocity
            pushes[i] -= table[i, COULOMB] * y[SEAL + i]
            row[_FORCE + i], row[_PIN_FORCE + i] = force, pushes[i]
        place_links(y[:RATE], y[RATE:HEAD], chain)
        boom, arm, bucket, lk, pk, tension_lk, tension_pk = load_links(y, pushes, chain, pins)
        row[_TENSION_LK], row[_TENSION_PK] = tension_lk, tension_pk
        place, velocity, depth, push = tooth_motion(y, pins, medium, chain)
        sx, sz, moment = y[SOIL], y[SOIL + 1], 0.0
        if not math.isnan(medium.along.real):
            sx, sz, moment = fixed_direction(push, medium, chain)
        soil = complex(-push * sx, -push * sz)
        row[_VOLUME], row[_VOLUME + 1] = 0.0, 0.0
        if p.ground.cells > 0:
            fx, fz, moment, _, depth, _, _, _ = terrain_force(y, place, velocity, p, room)
            soil = complex(fx, fz)
            row[_VOLUME] = room.ground[VOLUME]
            row[_VOLUME + 1] = p.ground.density * room.ground[VOLUME]
        row[_MOMENT] = moment
        add_wrench(2, pins.n, 0.0, soil.real + acting[3], soil.imag + acting[4], moment, chain)
        newton_euler(acceleration, chain)
        for i in range(3):
            _spread(complex(chain[FORCE, i], chain[FORCE_IM, i]), row, _JOINTS + 2 * i)
        _spread(boom, row, _PUSH_BOOM)
        _spread(arm, row, _PUSH_ARM)
        _spread(bucket, row, _PUSH_BUCKET)
        _spread(lk, row, _PUSH_LK)
        _spread(pk, row, _PUSH_PK)
        _spread(soil, row, _PUSH_SOIL)
        row[_DEPTH] = depth if medium.surface > -np.inf or p.ground.cells > 0 else 0.0
        _spread(place, row, _TIP)


@kernel
def energy(states, p, rows):  # type: ignore[no-untyped-def]
    """Compute kinetic, potential and spring energy (rows, 3) [J] of states."""
    table, medium = p.actuators.table, p.medium
    for k in range(states.shape[0]):
        y = states[k]
        room = room_for(p, y)
        chain, lengths = room.chain, room.lengths
        place_links(y[:RATE], y[RATE:HEAD], chain)
        cylinders(y, p.pins, lengths, room.levers)
        kinetic, potential, spring = 0.0, 0.0, 0.0
        joint, speed, rate = complex(0.0, 0.0), complex(0.0, 0.0), 0.0
        for i in range(3):
            rate += y[RATE + i]
            z = complex(chain[Z, i], chain[Z_IM, i])
            arm = z * complex(chain[CENTER, i], chain[CENTER_IM, i])
            moving = speed + complex(-arm.imag, arm.real) * rate
            square = moving.real * moving.real + moving.imag * moving.imag
            kinetic += 0.5 * (chain[MASS, i] * square + chain[INERTIA, i] * rate * rate)
            potential += chain[MASS, i] * chain[GRAVITY, 0] * (joint + arm).imag
            joint += z * chain[LENGTH, i]
            speed += z * complex(0.0, rate) * chain[LENGTH, i]
            position = lengths[i] - table[i, RETRACTED]
            beyond = max(position - table[i, STROKE], -position, 0.0)
            turned = table[i, LUG] * max(y[i] - table[i, HIGHEST], table[i, LOWEST] - y[i], 0.0)
            spring += 0.5 * medium.stop_stiffness * beyond * beyond
            spring += 0.5 * medium.stop_stiffness * turned * turned
        rows[k, 0], rows[k, 1], rows[k, 2] = kinetic, potential, spring
