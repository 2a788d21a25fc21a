"""
The robot description of a boom, made from its boom file.

Frames: ``boom_base`` is the root, at joint 1, x forward, z up. The frame of a beam turns with its
joint, x along the unbent beam; ``<beam>_end`` follows the deflection of its tip, ``<beam>_tip``
its slope as well, and is the parent of the next beam. With ``rotation: exact`` the frames match
the bent boom; the rotation printed in the paper changes lengths, which frames cannot represent.

A cylinder of kind triangle swings about a pin of the link inboard of its joint. The boom file does
not define where a cylinder of kind rocker is mounted: it is drawn below the previous beam.
"""

from __future__ import annotations

import math
from xml.etree.ElementTree import Element

import numpy as np

from longreach_boom.kinematics import HOSE_JOINT, TRUCK_JOINTS, swing_angles, swinging_cylinders
from longreach_boom.model import Constants, constants_of
from longreach_boom.parameters import BeamParameters, BoomParameters, TruckParameters
from longreach_machine import urdf

ROOT_FRAME = 'boom_base'

_MATERIALS = ('steel', 'yellow', 'dark', 'chrome')
# Material, size and centre [m] of the parts of the truck. Joint 1 is 3.6 m above the ground.
_TRUCK = (
    ('steel', (1.3, 1.1, 2.4), (0.15, 0.0, -1.1)),
    ('dark', (10.5, 2.4, 0.5), (-2.25, 0.0, -2.55)),
    ('yellow', (1.9, 2.4, 1.5), (3.95, 0.0, -2.05)),
    ('dark', (1.0, 2.5, 1.0), (3.2, 0.0, -3.1)),
    ('dark', (1.0, 2.5, 1.0), (-4.4, 0.0, -3.1)),
    ('dark', (1.0, 2.5, 1.0), (-5.8, 0.0, -3.1)),
)
# Number of boxes of a drawn beam; ratio of its width to its height.
_PIECES, WIDTH = 4, 0.8
# Joint limits, larger than values in joint_states: deflection over beam length [1], slope [rad].
_DEFLECTION = 0.25
_SLOPE = 1.0
# Joint limits of a truck on springs [m, rad].
_TRUCK_HEAVE, _TRUCK_PITCH = 1.0, 0.5
# Frame at joint 1 on a truck on springs.
_TRUCK_FRAME = 'truck'
# Size of the end hose [m].
_HOSE = (0.14, 0.14, 2.5)


def half_height(beam: BeamParameters, x: np.ndarray | float) -> np.ndarray:
    """Return the distance of a beam's surface from its neutral line at positions x (...) [m]."""
    # The boom file has it at the strain gauge only, its gain; elsewhere it is scaled by the cube
    # root of the second moment of area, as for sections of constant width.
    gauge = beam.strain_gauge
    here = beam.second_moment.at(np.asarray(x, dtype=float), beam.length)
    there = beam.second_moment.at(np.asarray(gauge.position), beam.length)
    return np.asarray(gauge.gain * np.cbrt(here / there))


def robot_description(boom: BoomParameters, prefix: str = '') -> str:
    """Return the URDF of a boom, its joints those of joint_states, its frames with a prefix."""
    root = urdf.new_robot('boom', _MATERIALS)
    base = urdf.add_link(root, ROOT_FRAME)
    carrier = ROOT_FRAME
    if boom.truck is not None:
        base, carrier = _add_truck(root, boom.truck), _TRUCK_FRAME
    for material, size, centre in _TRUCK:
        urdf.add_box(base, material, size, centre)
    constants, inboard = constants_of(boom), carrier
    for index, (beam, cylinder) in enumerate(zip(boom.beams, boom.cylinders, strict=True)):
        _add_beam(root, boom, constants, index, inboard)
        if cylinder.linkage.kind == 'triangle':
            _add_swinging(root, boom, index, inboard)
        else:
            _add_along(root, boom, index, carrier)
        inboard = f'{beam.name}_tip'
    hose = urdf.add_link(root, 'end_hose')
    urdf.add_box(hose, 'dark', _HOSE, (0.0, 0.0, -_HOSE[2] / 2.0))
    urdf.add_joint(root, HOSE_JOINT, 'continuous', inboard, 'end_hose', axis=urdf.LIFT)
    return urdf.document(
        root,
        '`longreach boom urdf` makes this of a boom file. x forward, z up; a positive angle\n'
        'lifts. Cylinders and hose have no mass of their own, as in the model.',
        prefix,
    )


def _add_truck(root: Element, truck: TruckParameters) -> Element:
    """Add a truck on springs, with joints for heave and pitch; return the link at joint 1."""
    heave, pitch = TRUCK_JOINTS
    urdf.add_link(root, 'truck_lift')
    urdf.add_joint(
        root, heave, 'prismatic', ROOT_FRAME, 'truck_lift',
        origin=(truck.x, 0.0, truck.z), axis=(0.0, 0.0, 1.0),
        limit=urdf.Limit(-_TRUCK_HEAVE, _TRUCK_HEAVE, 0.0, 10.0),
    )  # fmt: skip
    centre = urdf.add_link(root, 'truck_centre')
    across = truck.inertia
    urdf.add_inertial(centre, truck.mass, (0.0, 0.0, 0.0), (across, across, across))
    urdf.add_joint(
        root, pitch, 'revolute', 'truck_lift', 'truck_centre',
        axis=urdf.LIFT, limit=urdf.Limit(-_TRUCK_PITCH, _TRUCK_PITCH, 0.0, 10.0),
    )  # fmt: skip
    link = urdf.add_link(root, _TRUCK_FRAME)
    urdf.add_joint(
        root, f'{_TRUCK_FRAME}_mount', 'fixed', 'truck_centre', _TRUCK_FRAME,
        origin=(-truck.x, 0.0, -truck.z),
    )  # fmt: skip
    return link


def _add_beam(
    root: Element, boom: BoomParameters, constants: Constants, index: int, inboard: str
) -> None:
    """Add a beam with its joint, and the frames of its tip."""
    beam, cylinder = boom.beams[index], boom.cylinders[index]
    link = urdf.add_link(root, beam.name)
    edges = np.linspace(0.0, beam.length, _PIECES + 1)
    heights = 2.0 * half_height(beam, (edges[:-1] + edges[1:]) / 2.0)
    mass = float(constants.mass[index])
    centre = float(constants.moment[index]) / mass
    across = float(constants.inertia[index]) - mass * centre**2
    height = float(heights.mean())
    along = mass * height**2 * (1.0 + WIDTH**2) / 12.0
    urdf.add_inertial(link, mass, (centre, 0.0, 0.0), (along, across, across))
    for left, right, high in zip(edges[:-1], edges[1:], heights, strict=True):
        size = (float(right - left), WIDTH * float(high), float(high))
        urdf.add_box(link, 'yellow', size, (float(left + right) / 2.0, 0.0, 0.0))
    force, speed = urdf.cylinder_strength(boom.oil, cylinder)
    low, high = cylinder.linkage.angles(cylinder.stroke)
    arm = max(cylinder.linkage.arm(angle) for angle in np.linspace(low, high, 101))
    urdf.add_joint(
        root, f'{beam.name}_joint', 'revolute', inboard, beam.name,
        axis=urdf.LIFT, limit=urdf.Limit(low, high, force * arm, speed / arm),
    )  # fmt: skip
    end, tip = f'{beam.name}_end', f'{beam.name}_tip'
    urdf.add_link(root, end)
    urdf.add_joint(
        root, f'{beam.name}_deflection', 'prismatic', beam.name, end,
        origin=(beam.length, 0.0, 0.0), axis=(0.0, 0.0, 1.0),
        limit=urdf.Limit(-_DEFLECTION * beam.length, _DEFLECTION * beam.length, 0.0, 10.0),
    )  # fmt: skip
    urdf.add_link(root, tip)
    urdf.add_joint(
        root, f'{beam.name}_slope', 'revolute', end, tip,
        axis=urdf.LIFT, limit=urdf.Limit(-_SLOPE, _SLOPE, 0.0, 10.0),
    )  # fmt: skip


def _add_swinging(root: Element, boom: BoomParameters, index: int, inboard: str) -> None:
    """Add a cylinder of kind triangle, from its pin on the link inboard to its eye on the beam."""
    cylinder = boom.cylinders[index]
    _, near, far, offset, retracted = cylinder.linkage.row().tolist()
    low, high = cylinder.linkage.angles(cylinder.stroke)
    angles = np.zeros((2, boom.size))
    angles[:, index] = low, high
    swung = swing_angles(boom, angles)[:, swinging_cylinders(boom).index(index)]
    _, speed = urdf.cylinder_strength(boom.oil, cylinder)
    urdf.add_piston(root, cylinder.name, boom.oil, cylinder, retracted)
    urdf.add_joint(
        root, f'{cylinder.name}_swing', 'revolute', inboard, f'{cylinder.name}_barrel',
        origin=(near * math.cos(offset), 0.0, -near * math.sin(offset)), axis=urdf.LIFT,
        limit=urdf.Limit(float(swung.min()), float(swung.max()), 0.0, speed / min(near, far)),
    )  # fmt: skip


def _add_along(root: Element, boom: BoomParameters, index: int, carrier: str) -> None:
    """Add a cylinder of kind rocker; its extended rod ends at the tip of the previous beam."""
    cylinder = boom.cylinders[index]
    retracted = 1.2 * cylinder.stroke
    reach = retracted + cylinder.stroke
    urdf.add_piston(root, cylinder.name, boom.oil, cylinder, retracted)
    name, barrel = f'{cylinder.name}_mount', f'{cylinder.name}_barrel'
    if index == 0:
        # The first beam has no previous one: upright in front of the slewing gear.
        place, upright = (1.0 + cylinder.bore, 0.0, -reach), (0.0, -math.pi / 2.0, 0.0)
        urdf.add_joint(root, name, 'fixed', carrier, barrel, place, turn=upright)
        return
    before = boom.beams[index - 1]
    below = float(half_height(before, 0.0)) + cylinder.bore
    urdf.add_joint(root, name, 'fixed', before.name, barrel, (before.length - reach, 0.0, -below))
