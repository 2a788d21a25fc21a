"""
Robot descriptions: the URDF of a machine, built link by link and joint by joint.

Positions and sizes are in m, in the frame of the link or of the joint's parent, x forward and z
up. Turns are roll, pitch, yaw [rad] about the fixed axes x, y, z in this order, as URDF has them.
Every number must be finite, else :func:`numbers` raises an InputError.

Each shape is both visual and collision geometry; all are boxes and cylinders, which planners check
fastest.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple
from xml.etree.ElementTree import Element, SubElement

from longreach_dynamics.errors import InputError, check_distinct

if TYPE_CHECKING:
    # A crane's description does without, and without numba.
    from longreach_dynamics.hydraulics import Cylinder, OilParameters

Vector = tuple[float, float, float]

# Red, green, blue and opacity of the materials that machines are drawn in.
COLORS = {
    'yellow': '0.95 0.75 0.10 1.0',
    'steel': '0.45 0.48 0.52 1.0',
    'dark': '0.18 0.19 0.21 1.0',
    'chrome': '0.80 0.82 0.85 1.0',
    'concrete': '0.70 0.68 0.64 1.0',
    'glass': '0.55 0.70 0.80 1.0',
}
# Axes of joints: a positive position moves forward, or lifts.
FORWARD: Vector = (1.0, 0.0, 0.0)
LIFT: Vector = (0.0, -1.0, 0.0)

_NOWHERE: Vector = (0.0, 0.0, 0.0)
# Shares of the length of a retracted cylinder: its barrel, and what its rod leaves in it at least.
_BARREL = 0.93
_OVERLAP = 0.1


class Limit(NamedTuple):
    """Limits of a joint: of a revolute one in rad, N m, rad/s, of a prismatic one in m, N, m/s."""

    lower: float
    upper: float
    effort: float
    velocity: float


def numbers(*values: float) -> str:
    """Return numbers as URDF writes them, to 12 digits; InputError for one that is not finite."""
    for value in values:
        if not math.isfinite(value):
            raise InputError(
                f'a number of the robot description = {value}, allowed: finite;'
                ' correct the machine file'
            )
    return ' '.join(f'{value:.12g}' for value in values)


def new_robot(name: str, materials: Iterable[str]) -> Element:
    """Return a robot without links, with materials of COLORS."""
    root = Element('robot', name=name)
    for material in materials:
        SubElement(SubElement(root, 'material', name=material), 'color', rgba=COLORS[material])
    return root


def add_link(root: Element, name: str) -> Element:
    """Add a link without mass or shape to a robot, and return it."""
    return SubElement(root, 'link', name=name)


def add_box(
    link: Element, material: str, size: Vector, centre: Vector, turn: Vector = _NOWHERE
) -> None:
    """Add a box to a link: size [m] along its own axes, centre [m], turn [rad]."""
    _add_shape(link, material, 'box', {'size': numbers(*size)}, centre, turn)


def add_cylinder(
    link: Element,
    material: str,
    radius: float,
    length: float,
    centre: Vector,
    turn: Vector = _NOWHERE,
) -> None:
    """Add a cylinder to a link: along its z axis [m], turned by turn [rad]."""
    sizes = {'radius': numbers(radius), 'length': numbers(length)}
    _add_shape(link, material, 'cylinder', sizes, centre, turn)


def add_tube(
    link: Element, material: str, radius: float, begin: float, end: float, side: float = 0.0
) -> None:
    """Add a cylinder along x from begin to end, ``side`` to the left of the x axis [m]."""
    centre, turn = ((begin + end) / 2.0, side, 0.0), (0.0, math.pi / 2.0, 0.0)
    add_cylinder(link, material, radius, end - begin, centre, turn)


def cylinder_strength(oil: OilParameters, cylinder: Cylinder) -> tuple[float, float]:
    """Return the force at supply pressure [N] and the speed with an open valve [m/s]."""
    drop = oil.supply_pressure - oil.tank_pressure
    flow = oil.contraction * math.sqrt(2.0 / oil.density * drop) * cylinder.valve.area
    per_flow = max(1.0 / cylinder.head_area, cylinder.valve.area_ratio / cylinder.rod_area)
    return oil.supply_pressure * cylinder.head_area, flow * per_flow


def add_piston(
    root: Element,
    name: str,
    oil: OilParameters,
    cylinder: Cylinder,
    retracted: float,
    sides: Iterable[float] = (0.0,),
) -> tuple[Element, Element]:
    """
    Add the links NAME_barrel and NAME_rod of a hydraulic cylinder, and the joint NAME between.

    ``retracted`` is the distance of the pins when the cylinder is retracted, ``sides`` are the
    places of cylinders side by side, to the left of the x axis [m]. Returns both links: the frame
    of the barrel is at its pin, x along the cylinder, that of the rod at its own pin.
    """
    barrel, rod = add_link(root, f'{name}_barrel'), add_link(root, f'{name}_rod')
    length = min(retracted, cylinder.stroke + _OVERLAP * retracted)
    for side in sides:
        add_tube(barrel, 'steel', 0.6 * cylinder.bore, 0.0, _BARREL * retracted, side)
        add_tube(rod, 'chrome', 0.5 * cylinder.rod, -length, 0.0, side)
    limit = Limit(0.0, cylinder.stroke, *cylinder_strength(oil, cylinder))
    ends = (f'{name}_barrel', f'{name}_rod')
    add_joint(root, name, 'prismatic', *ends, (retracted, 0.0, 0.0), axis=FORWARD, limit=limit)
    return barrel, rod


def box_inertia(mass: float, size: Vector) -> Vector:
    """Return the principal moments of inertia [kg m^2] of a uniform box of a size [m]."""
    x, y, z = (length**2 * mass / 12.0 for length in size)
    return y + z, x + z, x + y


def add_inertial(link: Element, mass: float, centre: Vector, moments: Vector) -> None:
    """
    Add mass [kg], centre of gravity [m] and moments of inertia [kg m^2] to a link.

    The moments are about axes through the centre of gravity, parallel to those of the link.
    Products of inertia are zero.
    """
    inertial = SubElement(link, 'inertial')
    SubElement(inertial, 'origin', xyz=numbers(*centre))
    SubElement(inertial, 'mass', value=numbers(mass))
    ixx, iyy, izz = map(numbers, moments)
    SubElement(inertial, 'inertia', ixx=ixx, ixy='0', ixz='0', iyy=iyy, iyz='0', izz=izz)


def add_joint(
    root: Element,
    name: str,
    kind: str,
    parent: str,
    child: str,
    origin: Vector = _NOWHERE,
    *,
    turn: Vector = _NOWHERE,
    axis: Vector | None = None,
    limit: Limit | None = None,
) -> None:
    """
    Add a joint to a robot: ``fixed``, ``continuous``, ``revolute`` or ``prismatic``.

    ``origin`` [m] and ``turn`` (roll, pitch, yaw) [rad] are where the child link is at position 0,
    in the frame of the parent; ``axis`` is a unit vector in the frame of the child, by default
    URDF's x axis. The last two kinds need a limit.
    """
    joint = SubElement(root, 'joint', name=name, type=kind)
    SubElement(joint, 'parent', link=parent)
    SubElement(joint, 'child', link=child)
    _add_origin(joint, origin, turn)
    if axis is not None:
        SubElement(joint, 'axis', xyz=numbers(*axis))
    if limit is not None:
        SubElement(joint, 'limit', {key: numbers(value) for key, value in limit._asdict().items()})


def document(root: Element, comment: str, prefix: str = '') -> str:
    """
    Return the text of a robot's URDF file, indented, with a newline at its end.

    ``comment`` has lines for people; XML forbids ``--`` in it. ``prefix`` is put before the names
    of links, which are those of frames, without a leading slash; it changes the robot. InputError
    when two links, or two joints, have one name.
    """
    for kind in ('link', 'joint'):
        names = [element.attrib['name'] for element in root.findall(kind)]
        check_distinct(f'a {kind} of the robot description', names)
    for path, attribute in (('link', 'name'), ('joint/parent', 'link'), ('joint/child', 'link')):
        for element in root.findall(path):
            element.set(attribute, (prefix + element.attrib[attribute]).lstrip('/'))
    ElementTree.indent(root)
    lines = comment.replace('\n', '\n     ')
    text = ElementTree.tostring(root, encoding='unicode')
    return f'<?xml version="1.0"?>\n<!-- {lines} -->\n{text}\n'


def _add_shape(
    link: Element, material: str, kind: str, sizes: dict[str, str], centre: Vector, turn: Vector
) -> None:
    """Add a shape to a link, as visual and collision geometry."""
    for purpose in ('visual', 'collision'):
        element = SubElement(link, purpose)
        _add_origin(element, centre, turn)
        SubElement(SubElement(element, 'geometry'), kind, sizes)
        if purpose == 'visual':
            SubElement(element, 'material', name=material)


def _add_origin(element: Element, place: Vector, turn: Vector) -> None:
    """Add a place [m], and a turn [rad] where there is one."""
    origin = SubElement(element, 'origin', xyz=numbers(*place))
    if any(turn):
        origin.set('rpy', numbers(*turn))
