"""
Robot descriptions as a viewer needs them: links with shapes, joints with their motion.

Rotations are quaternions w, x, y, z. A pose is that of a child in its parent's frame, x forward
and z up [m]. Shapes are boxes, cylinders and spheres; meshes are left out and named in
``skipped``.
"""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from typing import NamedTuple
from xml.etree.ElementTree import Element

import numpy as np

from longreach_dynamics.errors import InputError

__all__ = ['Joint', 'Pose', 'Robot', 'Shape', 'parse_robot', 'quaternion_product', 'rotated']

_GREY = (0.6, 0.6, 0.6, 1.0)
_ROTATING = ('revolute', 'continuous')


class Pose(NamedTuple):
    """Position [m] and rotation (w, x, y, z) of a child in its parent's frame."""

    position: np.ndarray
    rotation: np.ndarray


@dataclasses.dataclass(frozen=True)
class Shape:
    """A visible body of a link: kind ``box``, ``cylinder`` or ``sphere``, and its size [m]."""

    kind: str
    size: tuple[float, ...]  # box: x, y, z; cylinder: radius, length along z; sphere: radius
    pose: Pose
    color: tuple[float, float, float, float]


@dataclasses.dataclass(frozen=True)
class Joint:
    """A joint: ``name``, its links, its type as in URDF, pose at position 0, axis and limits."""

    name: str
    kind: str
    parent: str
    child: str
    origin: Pose
    axis: np.ndarray
    limits: tuple[float, float] | None = None  # [rad or m]

    @property
    def moves(self) -> bool:
        """Whether a position of this joint can be shown."""
        return self.kind in (*_ROTATING, 'prismatic')

    def at(self, position: float) -> Pose:
        """Return the child's pose at a position [rad or m]; that of a fixed joint is constant."""
        place, turn = self.origin
        if self.kind == 'prismatic':
            return Pose(place + rotated(turn, position * self.axis), turn)
        if self.kind in _ROTATING:
            half = 0.5 * position
            own = np.array([np.cos(half), *(np.sin(half) * self.axis)])
            return Pose(place, quaternion_product(turn, own))
        return self.origin


@dataclasses.dataclass(frozen=True)
class Robot:
    """
    A robot description.

    Attributes
    ----------
    name : str
    root : str
        The link without a parent.
    shapes : dict of str to tuple of Shape
        By link.
    joints : tuple of Joint
        Parents before children.
    skipped : tuple of str
        Links with shapes that cannot be shown.
    """

    name: str
    root: str
    shapes: dict[str, tuple[Shape, ...]]
    joints: tuple[Joint, ...]
    skipped: tuple[str, ...] = ()

    def poses(self, positions: Mapping[str, float]) -> dict[str, Pose]:
        """Return the poses of all links in the root's frame; joints not named are at 0."""
        found = {self.root: Pose(np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))}
        for joint in self.joints:
            here, own = found[joint.parent], joint.at(positions.get(joint.name, 0.0))
            found[joint.child] = Pose(
                here.position + rotated(here.rotation, own.position),
                quaternion_product(here.rotation, own.rotation),
            )
        return found

    def bounds(self, positions: Mapping[str, float]) -> tuple[np.ndarray, np.ndarray]:
        """Return the lowest and highest coordinates of its shapes in the root's frame [m]."""
        poses, corners = self.poses(positions), []
        for link, shapes in self.shapes.items():
            for shape in shapes:
                half = 0.5 * np.array(_box_around(shape))
                for sign in np.ndindex(2, 2, 2):
                    corner = shape.pose.position + rotated(
                        shape.pose.rotation, half * (2.0 * np.array(sign) - 1.0)
                    )
                    corners.append(poses[link].position + rotated(poses[link].rotation, corner))
        if not corners:
            corners = [pose.position for pose in poses.values()]
        return np.min(corners, axis=0), np.max(corners, axis=0)


def quaternion_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the rotation b followed by a, both in the same frame."""
    aw, ax, ay, az = a.tolist()
    bw, bx, by, bz = b.tolist()
    return np.array(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ]
    )


def rotated(rotation: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Return a vector, shape (3,), turned by a rotation."""
    w, v = rotation[0], rotation[1:]
    across = 2.0 * np.cross(v, vector)
    turned: np.ndarray = vector + w * across + np.cross(v, across)
    return turned


def parse_robot(text: str) -> Robot:
    """
    Return the robot of a URDF.

    Raises
    ------
    InputError
        When the text is no URDF, has numbers that are not finite, or its joints form no tree.
    """
    try:
        # Fixed entities only: ElementTree's parser reads no external ones.
        root = ElementTree.fromstring(text.encode())
    except ElementTree.ParseError as error:
        raise InputError(f'robot_description is no XML: {error}') from error
    if root.tag != 'robot':
        raise InputError(f'robot_description has root <{root.tag}>, allowed: <robot> of a URDF')
    colors = {
        material.get('name', ''): _color(material)
        for material in root.findall('material')
        if material.find('color') is not None
    }
    shapes: dict[str, tuple[Shape, ...]] = {}
    skipped = []
    for link in root.findall('link'):
        found = [_shape(visual, colors) for visual in link.findall('visual')]
        shapes[link.get('name', '')] = tuple(shape for shape in found if shape is not None)
        if None in found:
            skipped.append(link.get('name', ''))
    joints, top = _sorted([_joint(element) for element in root.findall('joint')], list(shapes))
    return Robot(root.get('name', ''), top, shapes, joints, tuple(skipped))


def _sorted(joints: list[Joint], links: list[str]) -> tuple[tuple[Joint, ...], str]:
    """Return joints with parents before children, and the root."""
    children = {joint.child for joint in joints}
    tops = [link for link in links if link not in children]
    if len(tops) != 1:
        raise InputError(f'robot_description has {len(tops)} links without parent, allowed: one')
    known, waiting, ordered = {tops[0]}, joints, []
    while waiting:
        ready = [joint for joint in waiting if joint.parent in known]
        if not ready:
            raise InputError(
                f'robot_description: joint {waiting[0].name} hangs on link {waiting[0].parent},'
                ' which the root does not reach'
            )
        ordered += ready
        known |= {joint.child for joint in ready}
        waiting = [joint for joint in waiting if joint.child not in known]
    return tuple(ordered), tops[0]


def _numbers(element: Element | None, key: str, default: str) -> np.ndarray:
    """Return the numbers of an attribute, or those of a default."""
    text = default if element is None else element.get(key, default)
    try:
        values = np.array([float(word) for word in text.split()])
    except ValueError as error:
        raise InputError(f'robot_description: {key} = {text!r}, allowed: numbers') from error
    if len(values) != len(default.split()) or not np.isfinite(values).all():
        raise InputError(
            f'robot_description: {key} = {text!r}, allowed: {len(default.split())} finite numbers'
        )
    return values


def _pose(element: Element | None) -> Pose:
    """Return the pose of an <origin>; URDF turns about fixed x, then y, then z."""
    half = 0.5 * _numbers(element, 'rpy', '0 0 0')
    turn = np.array([1.0, 0.0, 0.0, 0.0])
    for k in range(3):
        own = np.zeros(4)
        own[0], own[1 + k] = np.cos(half[k]), np.sin(half[k])
        turn = quaternion_product(own, turn)
    return Pose(_numbers(element, 'xyz', '0 0 0'), turn)


def _joint(element: Element) -> Joint:
    """Return the joint of a <joint>."""
    parent, child = element.find('parent'), element.find('child')
    axis = _numbers(element.find('axis'), 'xyz', '1 0 0')
    length = np.linalg.norm(axis)
    name = element.get('name', '')
    if parent is None or child is None or length == 0.0:
        raise InputError(f'robot_description: joint {name} needs parent, child, and an axis')
    limits, bounds = element.find('limit'), None
    if limits is not None:
        bounds = tuple(_numbers(limits, key, '0').item() for key in ('lower', 'upper'))
    return Joint(
        name,
        element.get('type', ''),
        parent.get('link', ''),
        child.get('link', ''),
        _pose(element.find('origin')),
        axis / length,
        bounds,
    )


def _color(material: Element) -> tuple[float, float, float, float]:
    """Return the colour of a <material>."""
    r, g, b, a = _numbers(material.find('color'), 'rgba', '0.6 0.6 0.6 1').tolist()
    return (r, g, b, a)


def _shape(
    visual: Element, colors: Mapping[str, tuple[float, float, float, float]]
) -> Shape | None:
    """Return the shape of a <visual>, None when it cannot be shown."""
    color, material = _GREY, visual.find('material')
    if material is not None:
        own = material.find('color') is not None
        color = _color(material) if own else colors.get(material.get('name', ''), _GREY)
    pose, geometry = _pose(visual.find('origin')), visual.find('geometry')
    if geometry is None:
        return None
    box, cylinder, sphere = (geometry.find(kind) for kind in ('box', 'cylinder', 'sphere'))
    if box is not None:
        return Shape('box', tuple(_numbers(box, 'size', '0 0 0').tolist()), pose, color)
    if cylinder is not None:
        radius, length = (_numbers(cylinder, key, '0').item() for key in ('radius', 'length'))
        return Shape('cylinder', (radius, length), pose, color)
    if sphere is not None:
        return Shape('sphere', (_numbers(sphere, 'radius', '0').item(),), pose, color)
    return None


def _box_around(shape: Shape) -> tuple[float, float, float]:
    """Return the size of the box around a shape along its own axes."""
    if shape.kind == 'box':
        x, y, z = shape.size
        return (x, y, z)
    radius = shape.size[0]
    return (2.0 * radius, 2.0 * radius, shape.size[1] if shape.kind == 'cylinder' else 2 * radius)
