"""
Kinematics of the excavator: positions of all joints of its linkage from the three joint angles.

These are the joints of joint_states and of the robot description: links, pistons, and the
cylinders, lever and rod that turn about their pins.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numba import njit

from longreach_dynamics.kernels import kernel, read_only
from longreach_dynamics.kinematics import joint_places
from longreach_excavator.linkage import (
    CYLINDERS,
    Pins,
    arm_cylinder,
    boom_cylinder,
    bucket_cylinder,
    lever_pin,
)
from longreach_excavator.motion import RATE
from longreach_excavator.parameters import ExcavatorParameters
from longreach_machine.machine import JointSample

# In the order of joint_states: links, pistons, turning parts of the linkage.
JOINTS = (
    *(f'{name}_joint' for name in CYLINDERS),
    *(f'{name}_cylinder' for name in CYLINDERS),
    *(f'{name}_cylinder_swing' for name in CYLINDERS),
    'lever_joint',
    'rod_joint',
)
PISTON, SWING, LEVER, ROD = 3, 6, 9, 10
BOOM, ARM, BUCKET = range(3)
# Index of the theta that moves each joint.
DRIVER = (0, 1, 2, 0, 1, 2, 0, 1, 2, 2, 2)
# Number of points along each stroke at which the linkage is evaluated.
_PLACES = 201
# The stops are elastic: margin of the limits of the turning parts of the linkage [rad].
_MARGIN = 0.01


@njit
def _turned(way, change, origin):  # type: ignore[no-untyped-def]
    """Return a vector's angle within half a turn of ``origin``, and what a change of it gives."""
    back = way * complex(math.cos(origin), -math.sin(origin))
    square = way.real * way.real + way.imag * way.imag
    ratio = (way.real * change.imag - way.imag * change.real) / square
    return origin + math.atan2(back.imag, back.real), ratio


@kernel
def _linkage_motion(y, pins, origins, rows):  # type: ignore[no-untyped-def]
    """
    Compute positions, velocities and d position / d theta of JOINTS, rows (3, 11).

    y: angles [rad] and rates [rad/s]; origins (11,): 0 for links, lengths of the retracted
    cylinders [m], for turning parts an angle within half a turn of all of their positions [rad].
    """
    position, velocity, ratio = rows[0], rows[1], rows[2]
    for k in range(3):
        position[k], ratio[k] = y[k], 1.0
    along, ratio[PISTON + BOOM] = boom_cylinder(y[BOOM], pins)
    position[PISTON + BOOM] = abs(along) - origins[PISTON + BOOM]
    # E -> B turns as A -> B does, I -> F as C -> F, J -> K as L -> K.
    position[SWING + BOOM], ratio[SWING + BOOM] = _turned(
        along, 1j * (along + pins.e), origins[SWING + BOOM]
    )
    along, ratio[PISTON + ARM] = arm_cylinder(y[ARM], pins)
    position[PISTON + ARM] = abs(along) - origins[PISTON + ARM]
    position[SWING + ARM], ratio[SWING + ARM] = _turned(
        along, 1j * (along + pins.i - pins.c), origins[SWING + ARM]
    )
    along, lever, rod, ratio[PISTON + BUCKET] = bucket_cylinder(y[BUCKET], pins)
    _, _, turning = lever_pin(y[BUCKET], pins)
    moved = 1j * turning * lever
    position[PISTON + BUCKET] = abs(along) - origins[PISTON + BUCKET]
    position[SWING + BUCKET], ratio[SWING + BUCKET] = _turned(
        along, moved, origins[SWING + BUCKET]
    )
    position[LEVER], ratio[LEVER] = _turned(lever, moved, origins[LEVER])
    # K -> P relative to LK: its rotation in the arm, from the motion of P and K, less that of LK.
    arm = pins.l + lever - rod - pins.d
    seen = -rod * complex(lever.real, -lever.imag)
    position[ROD], _ = _turned(seen, 0j, origins[ROD])
    _, whole = _turned(-rod, 1j * arm - moved, 0.0)
    ratio[ROD] = whole - turning
    for k in range(len(DRIVER)):
        velocity[k] = ratio[k] * y[RATE + DRIVER[k]]


class JointTable(NamedTuple):
    """Constants of the joints of an excavator, in the order of JOINTS."""

    pins: Pins
    origins: np.ndarray  # see _linkage_motion
    limits: tuple[tuple[float, float], ...]  # [rad], [m]
    largest: tuple[float, ...]  # |d position / d theta|
    least: tuple[float, ...]


@functools.lru_cache(maxsize=16)
def joint_table(excavator: ExcavatorParameters) -> JointTable:
    """Return the joint constants of an excavator; cached."""
    pins, joints, pistons = excavator.pins(), excavator.joint_limits(), slice(PISTON, SWING)
    (from_zero,), rows = read_only((np.zeros(len(JOINTS)),)), np.empty((3, len(JOINTS)))
    positions, ratios = np.empty((2, _PLACES, len(JOINTS)))
    y = np.zeros(2 * RATE)
    for row, y[:RATE] in enumerate(np.linspace(joints[:, 0], joints[:, 1], _PLACES)):
        _linkage_motion(y, pins, from_zero, rows)
        positions[row], ratios[row] = rows[0], np.abs(rows[2])
    turns = np.unwrap(positions, axis=0)
    low, high = turns.min(axis=0), turns.max(axis=0)
    # Unwrapped angles may be off by whole turns.
    whole = 2.0 * math.pi * np.round((low + high) / (4.0 * math.pi))
    low, high = low - whole - _MARGIN, high - whole + _MARGIN
    origins = np.zeros(len(JOINTS))
    origins[SWING:] = 0.5 * (low + high)[SWING:]
    origins[pistons] = [cylinder.retracted for cylinder in excavator.cylinders]
    low[:PISTON], high[:PISTON] = joints.T
    low[pistons], high[pistons] = 0.0, [cylinder.stroke for cylinder in excavator.cylinders]
    table = JointTable(
        pins,
        origins,
        tuple(zip(low.tolist(), high.tolist(), strict=True)),
        tuple(ratios.max(axis=0).tolist()),
        tuple(ratios.min(axis=0).tolist()),
    )
    return read_only(table)


def pin_places(excavator: ExcavatorParameters, angles: np.ndarray) -> np.ndarray:
    """Return A, C, D and the tooth N, x + j z (..., 4) [m], at joint angles (..., 3) [rad]."""
    links = (excavator.boom, excavator.arm, excavator.bucket)
    return joint_places([link.length for link in links], angles)


def moving_joints(
    excavator: ExcavatorParameters, y: np.ndarray, observed: Mapping[str, float]
) -> JointSample:
    """
    Return positions, velocities and efforts of JOINTS, for the state y.

    Joint angles [rad] with the cylinders' torques [N m]; piston positions from the retracted end
    [m] with the total forces of cylinders side by side [N], from ``observed``; angles of cylinders
    and lever from the x axis of the link that carries their pin; of the rod, from LK to KP [rad].
    """
    table, rows = joint_table(excavator), np.empty((3, len(JOINTS)))
    _linkage_motion(y, table.pins, table.origins, rows)
    positions, velocities, ratios = rows.tolist()
    forces = [observed[f'force_{name}'] for name in CYLINDERS]
    torques = [F * arm for F, arm in zip(forces, ratios[PISTON:SWING], strict=True)]
    passive = [0.0] * (len(JOINTS) - SWING)
    return JointSample(JOINTS, tuple(positions), tuple(velocities), (*torques, *forces, *passive))
