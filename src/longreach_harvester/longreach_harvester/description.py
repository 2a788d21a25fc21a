"""
The robot description of a harvester, made from its harvester file.

Frames: ``harvester_base`` is the root, on the swing axis at the height of the boom's pivot, x
forward, z up. Boom and stick have their frames at their inner pins, x along them; ``tip`` is the
end of the stick, where the head is. Cylinders swing about the pins of their barrels; their rods
meet the links because all joint positions come from the same linkage. A linkage that is no
triangle has no drawn cylinder.
"""

from __future__ import annotations

import math
from xml.etree.ElementTree import Element

import numpy as np

from longreach_dynamics.hydraulics.lines import LinedCylinder
from longreach_harvester.bodies import HEAD, HEAD_RATE
from longreach_harvester.kinematics import cylinder_place
from longreach_harvester.parameters import HEAD_JOINTS, JOINTS, HarvesterParameters
from longreach_machine import urdf
from longreach_machine.machine import JointSample

ROOT_FRAME, TIP_FRAME = 'harvester_base', 'tip'
# Pins of the rods, as angles from the axes of boom and stick [rad].
ROD_ANGLES = {'boom': 0.0, 'stick': -0.4}
# What carries the machine, below the pivot of the boom: sizes and centres [m].
_CARRIER = (
    ('dark', (2.6, 0.5, 0.9), (-0.4, 0.85, -1.35)),
    ('dark', (2.6, 0.5, 0.9), (-0.4, -0.85, -1.35)),
    ('steel', (2.2, 1.2, 0.4), (-0.4, 0.0, -1.2)),
)
_PLATFORM = (
    ('yellow', (2.4, 1.8, 0.5), (-0.7, 0.0, -0.7)),
    ('yellow', (0.9, 1.7, 0.5), (-1.4, 0.0, -0.2)),
    ('glass', (1.0, 0.8, 1.0), (0.0, 0.6, 0.05)),
)
# Widths of boom and stick, and of barrels and rods over their length [m].
_WIDTHS, _BARREL, _ROD = (0.28, 0.22), 0.07, 0.04
# Mass of the platform, on the swing axis, where only its inertia counts [kg].
_PLATFORM_MASS = 1000.0
_EFFORT, _RATE = 1e6, 10.0


def drawn_cylinders(p: HarvesterParameters) -> tuple[str, ...]:
    """Return the joints whose cylinders are in the description."""
    return tuple(
        name
        for name, actuator in zip(JOINTS[1:], p.actuators[1:], strict=True)
        if actuator.linkage.kind == 'triangle'
    )


def moving_joints(
    p: HarvesterParameters, y: np.ndarray, efforts: np.ndarray, forces: np.ndarray
) -> JointSample:
    """Return all joints of a state, with torques of joints, forces of motor and cylinders."""
    names, places = list(JOINTS), y[:3].tolist()
    rates, shown = y[3:6].tolist(), efforts.tolist()
    if p.head.pendulum:
        turning = y[HEAD_RATE : HEAD_RATE + 2]
        names += HEAD_JOINTS
        places += y[HEAD : HEAD + 2].tolist()
        rates += turning.tolist()
        shown += (-p.head.pendulum.damping * turning).tolist()
    for name in drawn_cylinders(p):
        i = JOINTS.index(name)
        cylinder = p.actuators[i]
        angle, rate, rod = float(y[i]), float(y[3 + i]), ROD_ANGLES[name]
        place = cylinder_place(cylinder, angle, rod)  # type: ignore[arg-type]
        linkage = cylinder.linkage  # type: ignore[union-attr]
        arm, far = linkage.arm(angle), float(linkage.row()[2])
        # Of the rod's pin, the motion across the cylinder turns it.
        across = far * math.cos(angle + rod - place.angle)
        names += [f'{name}_barrel', f'{name}_cylinder']
        places += [place.angle, place.length - float(linkage.row()[4])]
        rates += [across * rate / place.length, arm * rate]
        shown += [0.0, float(forces[i])]
    return JointSample(tuple(names), tuple(places), tuple(rates), tuple(shown))


def robot_description(p: HarvesterParameters, prefix: str = '') -> str:
    """Return the URDF with the joints of :func:`moving_joints`, and a prefix of frame names."""
    root = urdf.new_robot('harvester', ('yellow', 'steel', 'dark', 'chrome', 'glass'))
    base = urdf.add_link(root, ROOT_FRAME)
    for material, size, centre in _CARRIER:
        urdf.add_box(base, material, size, centre)
    platform = urdf.add_link(root, 'platform')
    for material, size, centre in _PLATFORM:
        urdf.add_box(platform, material, size, centre)
    # It turns about z only; the other two moments are those of a flat plate.
    moments = (0.5 * p.swing.inertia, 0.5 * p.swing.inertia, p.swing.inertia)
    urdf.add_inertial(platform, _PLATFORM_MASS, (0.0, 0.0, 0.0), moments)
    urdf.add_joint(root, 'swing', 'continuous', ROOT_FRAME, 'platform', axis=(0.0, 0.0, 1.0))
    inner = {'boom': ('platform', p.swing.offset), 'stick': ('boom', p.boom.length)}
    for name, (parent, pivot) in inner.items():
        _add_beam(root, p, name, parent, pivot)
    _add_head(root, p)
    for name in drawn_cylinders(p):
        _add_cylinder(root, p, name, *inner[name])
    return urdf.document(
        root,
        '`longreach harvester urdf` makes this of a harvester file. x forward, z up; a positive\n'
        'angle lifts. Cylinders have no mass of their own; the head is a point mass, or hangs.',
        prefix,
    )


def _add_head(root: Element, p: HarvesterParameters) -> None:
    """Add the head: a point mass at the tip, or a body that turns about two axes there."""
    tip, end = urdf.add_link(root, TIP_FRAME), (p.stick.length, 0.0, 0.0)
    urdf.add_joint(root, 'head', 'fixed', 'stick', TIP_FRAME, end)
    if p.head.pendulum is None:
        urdf.add_box(tip, 'dark', (0.5, 0.6, 0.9), (0.0, 0.0, -0.45))
        urdf.add_cylinder(tip, 'steel', 0.25, 0.5, (0.0, 0.0, -1.0), (math.pi / 2.0, 0.0, 0.0))
        urdf.add_inertial(tip, p.head.mass, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
        return
    hangs = p.head.pendulum
    hanger = urdf.add_link(root, 'hanger')
    urdf.add_cylinder(hanger, 'steel', 0.12, 0.3, (0.0, 0.0, 0.0), (math.pi / 2.0, 0.0, 0.0))
    urdf.add_joint(root, HEAD_JOINTS[0], 'continuous', 'stick', 'hanger', end, axis=urdf.LIFT)
    # Its x axis is its own, downwards at rest.
    head = urdf.add_link(root, 'hanging_head')
    length = 2.0 * hangs.centre
    urdf.add_box(head, 'dark', (length, 0.6, 0.5), (hangs.centre, 0.0, 0.0))
    urdf.add_cylinder(head, 'steel', 0.25, 0.5, (length, 0.0, 0.0), (math.pi / 2.0, 0.0, 0.0))
    moments = (hangs.axial_inertia, hangs.transverse_inertia, hangs.transverse_inertia)
    urdf.add_inertial(head, p.head.mass, (hangs.centre, 0.0, 0.0), moments)
    ends = ('hanger', 'hanging_head', (0.0, 0.0, 0.0))
    urdf.add_joint(root, HEAD_JOINTS[1], 'continuous', *ends, axis=(0.0, 0.0, 1.0))


def _add_beam(root: Element, p: HarvesterParameters, name: str, parent: str, pivot: float) -> None:
    """Add boom or stick with its joint, on the x axis of the link before it [m]."""
    link, index = urdf.add_link(root, name), JOINTS.index(name)
    beam, width = getattr(p, name), _WIDTHS[index - 1]
    urdf.add_box(link, 'yellow', (beam.length, width, width), (beam.length / 2.0, 0.0, 0.0))
    moments = (beam.axial_inertia, beam.transverse_inertia, beam.transverse_inertia)
    urdf.add_inertial(link, beam.mass, (beam.centre, 0.0, 0.0), moments)
    low, high = p.joint_limits()[index].tolist()
    limit = urdf.Limit(low, high, _EFFORT, _RATE)
    ends = (parent, name, (pivot, 0.0, 0.0))
    urdf.add_joint(root, name, 'revolute', *ends, axis=urdf.LIFT, limit=limit)


def _add_cylinder(
    root: Element, p: HarvesterParameters, name: str, parent: str, pivot: float
) -> None:
    """Add barrel and rod of a cylinder."""
    cylinder: LinedCylinder = p.actuators[JOINTS.index(name)]  # type: ignore[assignment]
    retracted = float(cylinder.linkage.row()[4])
    barrel = cylinder_place(cylinder, 0.0, ROD_ANGLES[name]).barrel
    links = f'{name}_barrel_link', f'{name}_rod_link'
    body, rod = (urdf.add_link(root, link) for link in links)
    urdf.add_tube(body, 'steel', _BARREL, 0.0, retracted)
    urdf.add_tube(rod, 'chrome', _ROD, -cylinder.stroke, 0.0)
    origin = (pivot + barrel.real, 0.0, barrel.imag)
    urdf.add_joint(root, f'{name}_barrel', 'continuous', parent, links[0], origin, axis=urdf.LIFT)
    limit = urdf.Limit(0.0, cylinder.stroke, _EFFORT, _RATE)
    ends = (*links, (retracted, 0.0, 0.0))
    urdf.add_joint(root, f'{name}_cylinder', 'prismatic', *ends, axis=urdf.FORWARD, limit=limit)
