"""
The robot description of an excavator, made from its excavator file.

Frames: ``excavator_base`` is the root, at the boom's foot pin A, x forward, z up. Those of boom,
arm and bucket are at the joints A, C and D, with x along the link's line; ``tooth`` is at N.
Cylinders swing about their pins E, I and J, the lever about L, the rod PK about K on the lever.
URDF describes trees only: where the loops close, at B, F, P and the bucket cylinder's K, there is
no joint; the two links meet because all joint positions come from the same linkage.

Pins and cylinders are placed as in the excavator file. The other shapes are those of a typical
machine, scaled with the length of the boom.
"""

from __future__ import annotations

import cmath
import math
from xml.etree.ElementTree import Element

import numpy as np

from longreach_excavator.kinematics import (
    ARM,
    BOOM,
    BUCKET,
    DRIVER,
    JOINTS,
    LEVER,
    PISTON,
    ROD,
    SWING,
    joint_table,
)
from longreach_excavator.parameters import ExcavatorParameters, LinkParameters
from longreach_excavator.terrain import SHELL
from longreach_machine import urdf

ROOT_FRAME = 'excavator_base'
TOOTH_FRAME = 'tooth'

_MATERIALS = ('yellow', 'steel', 'dark', 'chrome', 'glass')
# Sizes below [m] are for a boom of this length [m].
_DRAWN_BOOM = 5.648
# Material, intervals in x and y, and in z as shares of the height of A above the ground.
_CHASSIS = (
    ('dark', (-2.00, 1.40), (0.80, 1.40), (0.00, 0.50)),
    ('dark', (-2.00, 1.40), (-1.40, -0.80), (0.00, 0.50)),
    ('steel', (-1.30, 0.70), (-0.80, 0.80), (0.22, 0.52)),
    ('dark', (-0.90, 0.30), (-0.60, 0.60), (0.52, 0.62)),
    ('yellow', (-2.10, 0.25), (-1.30, 1.30), (0.62, 0.78)),
    ('yellow', (-2.10, -0.75), (-1.25, 1.25), (0.78, 1.25)),
    ('yellow', (-0.75, 0.25), (-1.25, -0.50), (0.78, 1.12)),
    ('dark', (-2.90, -2.10), (-1.30, 1.30), (0.66, 1.28)),
    ('yellow', (-0.65, 1.05), (0.48, 1.32), (0.70, 1.15)),
    ('glass', (-0.58, 1.00), (0.52, 1.28), (1.15, 1.66)),
    ('yellow', (-0.65, 0.95), (0.48, 1.32), (1.66, 1.70)),
)
# Ends of the tracks, x.
_TRACK_ENDS = (-2.00, 1.40)
# Heights of boom and arm in their parts from root to tip, and their widths.
_BOOM_HEIGHTS, _BOOM_WIDTH = (0.46, 0.56, 0.44), 0.42
_ARM_HEIGHTS, _ARM_WIDTH = (0.40, 0.48, 0.34), 0.32
# Depth of the bucket's side plates from each part of its shell.
_SIDES = (0.30, 0.22, 0.48, 0.44, 0.26)
_PLATE = 0.04
_TEETH = 5
# Distance of the outermost of several cylinders from the middle, of boom, arm, bucket.
_APART = (0.30, 0.14, 0.14)


def robot_description(excavator: ExcavatorParameters, prefix: str = '') -> str:
    """Return the URDF of an excavator with the joints of kinematics, frame names with a prefix."""
    robot = _Robot(excavator)
    robot.add_chassis()
    robot.add_boom()
    robot.add_arm()
    robot.add_bucket()
    robot.add_lever_and_rod()
    for k, (link, pin) in enumerate(((ROOT_FRAME, 'e'), ('boom', 'i'), ('arm', 'j'))):
        robot.add_cylinder(k, link, getattr(robot.pins, pin))
    return urdf.document(
        robot.root,
        '`longreach excavator urdf` makes this of an excavator file. x forward, z up; a\n'
        'positive angle lifts. Cylinders, lever and rod have no mass of their own, as in\n'
        'the model.',
        prefix,
    )


def _bar(
    link: Element,
    material: str,
    ends: tuple[complex, complex],
    height: float,
    width: float,
    side: float = 0.0,
) -> None:
    """Add a box from one place in the link's plane to another, ``side`` to the left of it [m]."""
    along, middle = ends[1] - ends[0], 0.5 * (ends[0] + ends[1])
    # A positive pitch lowers x.
    turn = (0.0, -cmath.phase(along), 0.0)
    size, centre = (abs(along), width, height), (middle.real, side, middle.imag)
    urdf.add_box(link, material, size, centre, turn)


def _boss(
    link: Element, material: str, pin: complex, radius: float, width: float, side: float = 0.0
) -> None:
    """Add a cylinder across the link's plane, where a pin is [m]."""
    turn = (math.pi / 2.0, 0.0, 0.0)
    urdf.add_cylinder(link, material, radius, width, (pin.real, side, pin.imag), turn)


def _add_mass(link: Element, parameters: LinkParameters, height: float, width: float) -> None:
    """Add mass, centre of gravity and inertia; the model has the inertia about y only."""
    centre = cmath.rect(parameters.center, math.radians(parameters.center_deg))
    across = parameters.inertia
    # Inertia of a bar, at most that about y.
    along = min(parameters.mass * (height**2 + width**2) / 12.0, across)
    place = (centre.real, 0.0, centre.imag)
    urdf.add_inertial(link, parameters.mass, place, (along, across, across))


class _Robot:
    """A description with its sizes; ``s`` is the scale of what is drawn."""

    def __init__(self, excavator: ExcavatorParameters) -> None:
        self.root = urdf.new_robot('excavator', _MATERIALS)
        self.machine, self.pins = excavator, excavator.pins()
        self.s = excavator.boom.length / _DRAWN_BOOM

    def _add_bars(
        self, link: Element, corners: tuple[complex, ...], heights: tuple[float, ...], width: float
    ) -> None:
        """Add boxes along a line with corners [m]."""
        for begin, end, height in zip(corners[:-1], corners[1:], heights, strict=True):
            _bar(link, 'yellow', (begin, end), height * self.s, width)

    def _add_bracket(self, link: Element, foot: complex, pin: complex) -> None:
        """Add two plates that hold a cylinder's pin above a link."""
        for side in (-0.13 * self.s, 0.13 * self.s):
            _bar(link, 'yellow', (foot, pin), 0.4 * self.s, 0.04 * self.s, side)
        _boss(link, 'dark', pin, 0.08 * self.s, 0.36 * self.s)

    def _add_moving(self, index: int, parent: str, child: str, pin: complex) -> None:
        """Add a revolute joint of JOINTS, with its limits."""
        table, driver = joint_table(self.machine), DRIVER[index]
        force, speed = urdf.cylinder_strength(self.machine.oil, self.machine.cylinders[driver])
        lever, least = table.largest[PISTON + driver], table.least[PISTON + driver]
        effort = force * lever if index < PISTON else 0.0
        rate = speed / least * table.largest[index]
        urdf.add_joint(
            self.root, JOINTS[index], 'revolute', parent, child, (pin.real, 0.0, pin.imag),
            axis=urdf.LIFT, limit=urdf.Limit(*table.limits[index], effort, rate),
        )  # fmt: skip

    def add_chassis(self) -> None:
        """Add the chassis, with its tracks on the ground."""
        s, foot, pin = self.s, self.machine.chassis.foot_height, self.pins.e
        base = urdf.add_link(self.root, ROOT_FRAME)
        for side in (-0.24 * s, 0.24 * s):
            # Plates that hold A and E.
            _bar(base, 'steel', (complex(-0.3 * s, -0.1 * s), 0j), 0.3 * s, 0.05 * s, side)
            _bar(base, 'steel', (complex(0.0, pin.imag), pin), 0.24 * s, 0.05 * s, side)
        _boss(base, 'dark', 0j, 0.11 * s, 0.62 * s)
        _boss(base, 'dark', pin, 0.08 * s, 0.84 * s)
        if foot == 0.0:
            # No room for a chassis.
            return
        for material, *spans in _CHASSIS:
            low, high = (np.array(edge) * (s, s, foot) for edge in zip(*spans, strict=True))
            x, y, z = (0.5 * (low + high)).tolist()
            urdf.add_box(base, material, tuple((high - low).tolist()), (x, y, z - foot))
        for side in (-1.1 * s, 1.1 * s):
            for x in _TRACK_ENDS:
                _boss(base, 'dark', complex(x * s, -0.75 * foot), 0.25 * foot, 0.6 * s, side)

    def add_boom(self) -> None:
        """Add the boom: bent at the pin of its cylinder, with a bracket for the arm's cylinder."""
        s, pins = self.s, self.pins
        link = urdf.add_link(self.root, 'boom')
        width, knee, tip = _BOOM_WIDTH * s, pins.b, complex(pins.c)
        _add_mass(link, self.machine.boom, _BOOM_HEIGHTS[1] * s, width)
        middle = knee + 0.35 * (tip - knee)
        self._add_bars(link, (0j, knee, middle, tip), _BOOM_HEIGHTS, width)
        _boss(link, 'yellow', knee, 0.5 * _BOOM_HEIGHTS[1] * s, width)
        _boss(link, 'yellow', tip, 0.5 * _BOOM_HEIGHTS[2] * s, 1.04 * width)
        self._add_bracket(link, middle, pins.i)
        _boss(link, 'dark', knee, 0.1 * s, 0.84 * s)
        _boss(link, 'dark', tip, 0.1 * s, 1.2 * width)
        self._add_moving(BOOM, ROOT_FRAME, 'boom', 0j)

    def add_arm(self) -> None:
        """Add the arm, from its cylinder's pin past C to the bucket, with a bracket for J."""
        s, pins = self.s, self.pins
        link = urdf.add_link(self.root, 'arm')
        width, tip, crown = _ARM_WIDTH * s, complex(pins.d), 0.45 * pins.j
        _add_mass(link, self.machine.arm, _ARM_HEIGHTS[1] * s, width)
        self._add_bars(
            link, (pins.f, crown, crown + 0.4 * (tip - crown), tip), _ARM_HEIGHTS, width
        )
        _bar(link, 'yellow', (0j, crown), _BOOM_HEIGHTS[2] * s, width)
        self._add_bracket(link, crown, pins.j)
        for pin in (pins.f, pins.l, tip):
            _boss(link, 'dark', pin, 0.08 * s, 1.2 * width)
        self._add_moving(ARM, 'boom', 'arm', complex(pins.c))

    def add_bucket(self) -> None:
        """Add the bucket: a shell with sides, ears for D and P, and teeth that end at N."""
        s, pins, excavator = self.s, self.pins, self.machine
        n = excavator.bucket.length
        link = urdf.add_link(self.root, 'bucket')
        width, plate = excavator.soil.earthmoving.width, _PLATE * s
        _add_mass(link, excavator.bucket, 0.5 * n, width)
        corners = [n * place for place in SHELL]
        for begin, end, depth in zip(corners[:-1], corners[1:], _SIDES, strict=True):
            _bar(link, 'steel', (begin, end), plate, width)
            # The shell has the inside to its right.
            inside = -0.5j * depth * n * (end - begin) / abs(end - begin)
            for side in (-0.5 * width, 0.5 * width):
                _bar(link, 'steel', (begin + inside, end + inside), depth * n, plate, side)
        for side in (-0.2 * s, 0.2 * s):
            for pin, depth in ((0j, 0.3), (pins.p, 0.8)):
                held = corners[0] + depth * (corners[1] - corners[0])
                _bar(link, 'steel', (pin, held), 0.2 * s, plate, side)
        for pin in (0j, pins.p):
            _boss(link, 'dark', pin, 0.09 * s, 0.46 * s)
        tooth = (n * (0.92 + 0.15j), complex(n))
        for side in (np.linspace(-0.44, 0.44, _TEETH) * width).tolist():
            _bar(link, 'dark', tooth, 1.6 * plate, 0.10 * width, side)
        self._add_moving(BUCKET, 'arm', 'bucket', complex(pins.d))
        urdf.add_link(self.root, TOOTH_FRAME)
        urdf.add_joint(
            self.root, f'{TOOTH_FRAME}_mount', 'fixed', 'bucket', TOOTH_FRAME, (n, 0.0, 0.0)
        )

    def add_lever_and_rod(self) -> None:
        """Add LK, which turns about L, and KP, which turns about K."""
        s, pins = self.s, self.pins
        for index, name, parent, pin, length, side in (
            (LEVER, 'lever', 'arm', pins.l, pins.lk, 0.22 * s),
            (ROD, 'rod', 'lever', complex(pins.lk), pins.pk, 0.14 * s),
        ):
            link = urdf.add_link(self.root, name)
            for place in (-side, side):
                _bar(link, 'steel', (0j, complex(length)), 0.13 * s, 0.05 * s, place)
            for end in (0j, complex(length)):
                _boss(link, 'dark', end, 0.07 * s, 2.4 * side)
            self._add_moving(index, parent, name, pin)

    def add_cylinder(self, k: int, carrier: str, pin: complex) -> None:
        """Add the barrels and the rods of a cylinder; all side by side are one link each."""
        excavator = self.machine
        cylinder, s = excavator.cylinders[k], self.s
        name = f'{cylinder.name}_cylinder'
        apart = _APART[k] * s if cylinder.count > 1 else 0.0
        sides = np.linspace(apart, -apart, cylinder.count).tolist()
        barrel, rod = urdf.add_piston(
            self.root, name, excavator.oil, cylinder, cylinder.retracted, sides
        )
        for side in sides:
            _boss(barrel, 'steel', 0j, 0.6 * cylinder.bore, cylinder.bore, side)
            _boss(rod, 'steel', 0j, 0.8 * cylinder.rod, cylinder.bore, side)
        self._add_moving(SWING + k, carrier, f'{name}_barrel', pin)
