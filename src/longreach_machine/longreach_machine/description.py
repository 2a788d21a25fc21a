"""
Robot descriptions (URDF): links, joints and simple shapes, and where they are in a pose.

Boxes, cylinders and spheres are read; links with meshes are named in ``skipped``. Lengths are in
m, angles in rad.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np

from longreach_dynamics.errors import InputError

# Corners of the polygon that stands for a circle.
_CORNERS = 16
_KINDS = ('fixed', 'continuous', 'revolute', 'prismatic')
_GREY = (0.6, 0.6, 0.6, 1.0)


class Joint(NamedTuple):
    """A joint of kind fixed, continuous, revolute or prismatic."""

    name: str
    kind: str
    parent: str
    child: str
    origin: np.ndarray  # (4, 4), T_parent_child at position 0
    axis: np.ndarray  # (3,), unit vector in the frame of the child
    mimic: tuple[str, float, float] | None = None  # name of the joint it follows, factor, offset
    limits: tuple[float, float] | None = None

    @property
    def units(self) -> tuple[str, str, str]:
        """Units of position, velocity and effort."""
        return ('m', 'm/s', 'N') if self.kind == 'prismatic' else ('rad', 'rad/s', 'N m')

    @property
    def leader(self) -> str:
        """The joint that it follows, or itself."""
        return self.name if self.mimic is None else self.mimic[0]

    def position(self, positions: Mapping[str, float]) -> float:
        """Return its own position, that by the joint that it follows, or 0 [rad or m]."""
        if self.mimic is not None and self.name not in positions:
            leader, factor, offset = self.mimic
            return factor * positions.get(leader, 0.0) + offset
        return positions.get(self.name, 0.0)


class Shape(NamedTuple):
    """A visual shape of a link: a box, cylinder or sphere."""

    link: str
    kind: str
    size: tuple[float, ...]  # box: x, y, z; cylinder: radius, length along z; sphere: radius
    pose: np.ndarray  # (4, 4), T_link_shape
    color: tuple[float, float, float, float]  # red, green, blue, opacity, 0 to 1

    @property
    def points(self) -> np.ndarray:
        """Corners of its convex hull, in the frame of the link, shape (K, 3)."""
        return placed(_corners(self.kind, self.size), self.pose)


class Robot:
    """Links, joints (parents before children) and shapes; ``skipped``: links with other shapes."""

    def __init__(
        self,
        name: str,
        links: Iterable[str],
        joints: Sequence[Joint],
        shapes: tuple[Shape, ...],
        skipped: tuple[str, ...] = (),
    ) -> None:
        self.name, self.shapes, self.skipped = name, shapes, skipped
        self.joints = {joint.name: joint for joint in joints}
        children = [joint.child for joint in joints]
        for what, used in (('name', [joint.name for joint in joints]), ('child', children)):
            for one, count in Counter(used).most_common(1):
                if count > 1:
                    raise InputError(
                        f'robot description {name}: {count} joints have the {what} {one},'
                        ' allowed: 1'
                    )
        parents = [joint.parent for joint in joints]
        roots = dict.fromkeys(link for link in (*links, *parents) if link not in children)
        if len(roots) != 1:
            raise InputError(
                f'robot description {name}: {len(roots)} links without a parent, allowed: 1'
            )
        self.root = next(iter(roots))
        self.joints = {joint.name: self._led(joint) for joint in self._from_root()}
        if len(self.joints) != len(joints):
            raise InputError(f'robot description {name}: its joints form a loop')

    def _led(self, joint: Joint) -> Joint:
        """Return a joint that mimics one that mimics no other; InputError for a circle of them."""
        for _ in self.joints:
            leader = None if joint.mimic is None else self.joints.get(joint.mimic[0])
            if joint.mimic is None or leader is None or leader.mimic is None:
                return joint
            _, factor, offset = joint.mimic
            first, before, moved = leader.mimic
            joint = joint._replace(mimic=(first, factor * before, factor * moved + offset))
        raise InputError(f'robot description {self.name}: joint {joint.name} mimics itself')

    def _from_root(self) -> Iterator[Joint]:
        """Yield the joints so that parents come first."""
        waiting, joints = [self.root], self.joints
        while waiting:
            link = waiting.pop()
            for joint in joints.values():
                if joint.parent == link:
                    yield joint
                    waiting.append(joint.child)

    def place(self, positions: Mapping[str, float]) -> dict[str, np.ndarray]:
        """Return T_root_link (4, 4) of all links; joints without a position are at 0 or mimic."""
        placed = {self.root: np.eye(4)}
        for joint in self.joints.values():
            motion = _motion(joint, joint.position(positions))
            placed[joint.child] = placed[joint.parent] @ joint.origin @ motion
        return placed

    def bounds(self, positions: Mapping[str, float]) -> tuple[np.ndarray, np.ndarray]:
        """Return the lowest and highest coordinates of its shapes in the root's frame [m]."""
        places = self.place(positions)
        found = [placed(shape.points, places[shape.link]) for shape in self.shapes]
        corners = np.concatenate(found or [place[None, :3, 3] for place in places.values()])
        return corners.min(axis=0), corners.max(axis=0)


def placed(points: np.ndarray, transform: np.ndarray) -> np.ndarray:
    """Return points (..., 3) in the frame into which a transform (4, 4) takes them."""
    return np.asarray(points @ transform[:3, :3].T + transform[:3, 3])


def parse_description(text: str, source: str = 'robot description') -> Robot:
    """Return the machine of a URDF text; ``source`` names it in errors."""
    try:
        root = ElementTree.fromstring(text)
        if root.tag != 'robot':
            raise InputError(f'{source}: root element <{root.tag}>, allowed: <robot>')
        colors = {
            material.attrib['name']: _color(color)
            for material in root.findall('material')
            if (color := material.find('color')) is not None
        }
        joints = [_joint(one) for one in root.findall('joint')]
        links = [link.attrib['name'] for link in root.findall('link')]
        shapes = [shape for link in root.findall('link') for shape in _shapes(link, colors)]
        skipped = tuple(dict.fromkeys(shape.link for shape in shapes if not shape.kind))
        shown = tuple(shape for shape in shapes if shape.kind)
        return Robot(root.attrib.get('name', source), links, joints, shown, skipped)
    except (ElementTree.ParseError, KeyError, ValueError, AttributeError) as error:
        raise InputError(f'{source}: not a URDF: {error or type(error).__name__}') from error


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
        factor = _numbers(follows.attrib.get('multiplier', '1'), 1).item()
        mimic = (follows.attrib['joint'], factor, _numbers(follows.attrib.get('offset'), 1).item())
    bounds, limits = element.find('limit'), None
    if bounds is not None:
        limits = tuple(_numbers(bounds.attrib.get(key), 1).item() for key in ('lower', 'upper'))
    return Joint(name, kind, ends[0], ends[1], _origin(element), axis / length, mimic, limits)


def _child(element: ElementTree.Element, tag: str) -> ElementTree.Element:
    """Return a child that must exist."""
    found = element.find(tag)
    if found is None:
        raise ValueError(f'<{element.tag}> {element.attrib.get("name", "")} has no <{tag}>')
    return found


def _shapes(
    link: ElementTree.Element, colors: Mapping[str, tuple[float, float, float, float]]
) -> Iterator[Shape]:
    """Yield the visual shapes of a link; one that is not read has no kind."""
    for visual in link.findall('visual'):
        kind, size = _kind(_child(visual, 'geometry'))
        material = visual.find('material')
        color = None if material is None else material.find('color')
        name = '' if material is None else material.attrib.get('name', '')
        shade = _color(color) if color is not None else colors.get(name, _GREY)
        yield Shape(link.attrib['name'], kind, size, _origin(visual), shade)


def _kind(geometry: ElementTree.Element) -> tuple[str, tuple[float, ...]]:
    """Return kind and size of a shape; an empty kind for a mesh."""
    if (box := geometry.find('box')) is not None:
        return 'box', tuple(_numbers(box.attrib['size'], 3).tolist())
    for kind, keys in (('cylinder', ('radius', 'length')), ('sphere', ('radius',))):
        if (found := geometry.find(kind)) is not None:
            return kind, tuple(_numbers(found.attrib[key], 1).item() for key in keys)
    return '', ()


def _corners(kind: str, size: tuple[float, ...]) -> np.ndarray:
    """Return points (K, 3) whose convex hull is a shape around its origin."""
    if kind == 'box':
        return np.array(list(itertools.product(*((-0.5 * side, 0.5 * side) for side in size))))
    circle = 2.0 * np.pi * np.arange(_CORNERS) / _CORNERS
    ring = size[0] * np.stack([np.cos(circle), np.sin(circle)], axis=1)
    if kind == 'cylinder':
        ends = [np.insert(ring, 2, side * size[1] / 2.0, axis=1) for side in (-1.0, 1.0)]
        return np.concatenate(ends)
    # Three great circles: one of them is the outline in each plane of the axes.
    return np.concatenate([np.insert(ring, axis, 0.0, axis=1) for axis in range(3)])
