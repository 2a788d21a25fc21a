"""
Robot descriptions (URDF): links, joints and simple shapes, and where they are in a pose.

Boxes, cylinders and spheres are read; meshes are left out. Lengths are in m, angles in rad.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_dynamics.resources import data_directory

__all__ = ['Joint', 'Robot', 'Shape', 'installed_description', 'parse_description']

# Corners of the polygon that stands for a circle.
_CORNERS = 16
_KINDS = ('fixed', 'continuous', 'revolute', 'prismatic')


class Joint(NamedTuple):
    """A joint of kind fixed, continuous, revolute or prismatic."""

    name: str
    kind: str
    parent: str
    child: str
    origin: np.ndarray  # (4, 4), T_parent_child at position 0
    axis: np.ndarray  # (3,), unit vector in the frame of the child
    mimic: tuple[str, float, float] | None  # name of the joint it follows, factor, offset

    @property
    def units(self) -> tuple[str, str, str]:
        """Units of position, velocity and effort."""
        return ('m', 'm/s', 'N') if self.kind == 'prismatic' else ('rad', 'rad/s', 'N m')


class Shape(NamedTuple):
    """A visual shape of a link."""

    link: str
    points: np.ndarray  # (K, 3) corners of its convex hull, in the frame of the link [m]
    color: tuple[float, float, float, float]  # red, green, blue, opacity, 0 to 1


class Robot:
    """
    A machine of links and joints.

    Attributes
    ----------
    name : str
    joints : dict of str to Joint
    shapes : tuple of Shape
    root : str
        The link without a parent.
    """

    def __init__(self, name: str, joints: dict[str, Joint], shapes: tuple[Shape, ...]) -> None:
        self.name, self.joints, self.shapes = name, joints, shapes
        children = {joint.child for joint in joints.values()}
        links = [joint.parent for joint in joints.values()] + [shape.link for shape in shapes]
        roots = dict.fromkeys(link for link in links if link not in children)
        if len(roots) != 1:
            raise InputError(
                f'robot description {name}: {len(roots)} links without a parent, allowed: 1'
            )
        self.root = next(iter(roots))
        self._order = tuple(self._from_root())
        if len(self._order) != len(joints):
            raise InputError(f'robot description {name}: its joints form a loop')

    def _from_root(self) -> Iterator[Joint]:
        """Yield the joints so that parents come first."""
        waiting = [self.root]
        while waiting:
            link = waiting.pop()
            for joint in self.joints.values():
                if joint.parent == link:
                    yield joint
                    waiting.append(joint.child)

    def place(self, positions: Mapping[str, float]) -> dict[str, np.ndarray]:
        """
        Return T_root_link of all links, shape (4, 4) each, for positions of joints [rad or m].

        Joints without a position are at 0, or where the joint that they follow puts them.
        """
        placed = {self.root: np.eye(4)}
        for joint in self._order:
            position = positions.get(joint.name, 0.0)
            if joint.mimic is not None and joint.name not in positions:
                leader, factor, offset = joint.mimic
                position = factor * positions.get(leader, 0.0) + offset
            placed[joint.child] = placed[joint.parent] @ joint.origin @ _motion(joint, position)
        return placed


def parse_description(text: str, source: str = 'robot description') -> Robot:
    """
    Return the machine of a URDF text; ``source`` names it in errors.

    Raises
    ------
    InputError
        If the text is not a URDF.
    """
    try:
        root = ElementTree.fromstring(text)
        if root.tag != 'robot':
            raise InputError(f'{source}: root element <{root.tag}>, allowed: <robot>')
        colors = {
            material.attrib['name']: _color(color)
            for material in root.findall('material')
            if (color := material.find('color')) is not None
        }
        joints = {one.attrib['name']: _joint(one) for one in root.findall('joint')}
        shapes = tuple(shape for link in root.findall('link') for shape in _shapes(link, colors))
        return Robot(root.attrib.get('name', source), joints, shapes)
    except (ElementTree.ParseError, KeyError, ValueError, AttributeError) as error:
        raise InputError(f'{source}: not a URDF: {error or type(error).__name__}') from error


def installed_description(joints: Collection[str]) -> tuple[Path, Robot] | None:
    """
    Return the installed description that has all these joints, and its file; None without.

    Descriptions are those in ``urdf/`` of the packages with commands of ``longreach``.
    """
    points = metadata.entry_points(group='longreach.commands')
    for package in sorted({point.module.partition('.')[0] for point in points}):
        try:
            directory = data_directory(package) / 'urdf'
        except InputError:
            continue
        for file in sorted(directory.glob('*.urdf')):
            robot = parse_description(file.read_text(encoding='utf-8'), str(file))
            if joints and set(joints) <= set(robot.joints):
                return file, robot
    return None


def _numbers(text: str | None, count: int) -> np.ndarray:
    """Return the numbers of an attribute; zeros for None."""
    values = np.array((text or '0 ' * count).split(), dtype=float)
    if values.shape != (count,) or not np.isfinite(values).all():
        raise ValueError(f'{text!r}, allowed: {count} finite numbers')
    return values


def _color(element: ElementTree.Element) -> tuple[float, float, float, float]:
    """Return the colour of an element ``color``."""
    red, green, blue, opacity = _numbers(element.attrib['rgba'], 4).tolist()
    return red, green, blue, opacity


def _origin(element: ElementTree.Element) -> np.ndarray:
    """Return the transform of the element ``origin`` of an element, shape (4, 4)."""
    found = element.find('origin')
    values = {} if found is None else found.attrib
    roll, pitch, yaw = _numbers(values.get('rpy'), 3)
    transform = np.eye(4)
    transform[:3, :3] = (
        _turn(np.array([0.0, 0.0, 1.0]), yaw)
        @ _turn(np.array([0.0, 1.0, 0.0]), pitch)
        @ _turn(np.array([1.0, 0.0, 0.0]), roll)
    )
    transform[:3, 3] = _numbers(values.get('xyz'), 3)
    return transform


def _turn(axis: np.ndarray, angle: float) -> np.ndarray:
    """Return the rotation about a unit vector, shape (3, 3); Rodrigues' formula."""
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    turned = np.eye(3) + math.sin(angle) * cross + (1.0 - math.cos(angle)) * cross @ cross
    return np.asarray(turned)


def _motion(joint: Joint, position: float) -> np.ndarray:
    """Return the transform of a joint's motion, shape (4, 4)."""
    transform = np.eye(4)
    if joint.kind == 'prismatic':
        transform[:3, 3] = position * joint.axis
    elif joint.kind != 'fixed':
        transform[:3, :3] = _turn(joint.axis, position)
    return transform


def _joint(element: ElementTree.Element) -> Joint:
    """Return the joint of an element."""
    name, kind = element.attrib['name'], element.attrib['type']
    if kind not in _KINDS:
        raise ValueError(f'joint {name} of type {kind!r}, allowed: {", ".join(_KINDS)}')
    ends = [_child(element, tag).attrib['link'] for tag in ('parent', 'child')]
    found = element.find('axis')
    axis = _numbers('1 0 0' if found is None else found.attrib['xyz'], 3)
    length = float(np.linalg.norm(axis))
    if not length:
        raise ValueError(f'joint {name}: its axis has no length')
    follows = element.find('mimic')
    mimic = None
    if follows is not None:
        factor = float(follows.attrib.get('multiplier', 1.0))
        mimic = (follows.attrib['joint'], factor, float(follows.attrib.get('offset', 0.0)))
    return Joint(name, kind, ends[0], ends[1], _origin(element), axis / length, mimic)


def _child(element: ElementTree.Element, tag: str) -> ElementTree.Element:
    """Return a child that must exist."""
    found = element.find(tag)
    if found is None:
        raise ValueError(f'<{element.tag}> {element.attrib.get("name", "")} has no <{tag}>')
    return found


def _shapes(
    link: ElementTree.Element, colors: Mapping[str, tuple[float, float, float, float]]
) -> Iterator[Shape]:
    """Yield the visual shapes of a link that are no meshes."""
    for visual in link.findall('visual'):
        geometry = _child(visual, 'geometry')
        corners = _corners(geometry)
        if corners is None:
            continue
        material = visual.find('material')
        color = None if material is None else material.find('color')
        name = '' if material is None else material.attrib.get('name', '')
        shade = _color(color) if color is not None else colors.get(name, (0.6, 0.6, 0.6, 1.0))
        transform = _origin(visual)
        points = corners @ transform[:3, :3].T + transform[:3, 3]
        yield Shape(link.attrib['name'], points, shade)


def _corners(geometry: ElementTree.Element) -> np.ndarray | None:
    """Return points (K, 3) whose convex hull is a shape around its origin; None for a mesh."""
    circle = 2.0 * np.pi * np.arange(_CORNERS) / _CORNERS
    if (box := geometry.find('box')) is not None:
        half = _numbers(box.attrib['size'], 3) / 2.0
        return np.array(list(itertools.product((-1.0, 1.0), repeat=3))) * half
    if (cylinder := geometry.find('cylinder')) is not None:
        radius, length = (float(cylinder.attrib[key]) for key in ('radius', 'length'))
        ring = radius * np.stack([np.cos(circle), np.sin(circle)], axis=1)
        return np.concatenate(
            [np.insert(ring, 2, side * length / 2.0, axis=1) for side in (-1.0, 1.0)]
        )
    if (sphere := geometry.find('sphere')) is not None:
        # Three great circles: one of them is the outline in each plane of the axes.
        radius = float(sphere.attrib['radius'])
        ring = radius * np.stack([np.cos(circle), np.sin(circle)], axis=1)
        return np.concatenate([np.insert(ring, axis, 0.0, axis=1) for axis in range(3)])
    return None
