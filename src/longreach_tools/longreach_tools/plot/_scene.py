"""A machine from the side, in the plane x-z of its root link; bent beams replace their links."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.spatial import ConvexHull

from longreach_dynamics.errors import InputError
from longreach_machine.description import Robot, placed
from longreach_machine.markers import Marker, read_markers
from longreach_tools.bag import Bag, open_bag
from longreach_tools.bag._reading import messages_of, store_of
from longreach_tools.fields import Signal
from longreach_tools.signals import NANOSECONDS, Restart, TopicData, find_topic, read_signals

from ._units import JOINT_STATES, describe

# Type of visualization_msgs/Marker that is drawn, a list of triangles.
_TRIANGLES = 11
_TERRAIN = 'longreach_msgs/msg/Terrain'
# Colours of undisturbed and loose soil, and how far it is drawn below its lowest point [m].
_FIRM, _LOOSE = (0.66, 0.54, 0.40, 1.0), (0.80, 0.70, 0.55, 1.0)
_BELOW = 0.5
# Points as far from who looks along y [m].
_SAME = 1e-9
# States of joints are missing where none came for this long [s], and for so many usual intervals.
_GAP, _STEPS = 0.5, 5.0


# Corners (K, 2) of a part in the plane, its colour, and whether its edge is drawn.
Part = tuple[np.ndarray, tuple[float, ...], bool]


class Drawn(NamedTuple):
    """A bent part: ``link`` that it replaces, or None; corners (K, 3, 3) [m] in a link's frame."""

    link: str | None
    frame: str
    triangles: np.ndarray
    colors: np.ndarray  # (K, 3), 0 to 1

    def outlines(self, place: np.ndarray) -> list[Part]:
        """Return the triangles, of the two sides of a beam the near one; T_root_frame (4, 4)."""
        corners = placed(self.triangles, place)
        near = corners[:, :, 1].max(axis=1) <= corners[:, :, 1].mean() + _SAME
        return [
            (triangle, (*color, 1.0), False)
            for triangle, color in zip(
                corners[near][:, :, [0, 2]], self.colors[near].tolist(), strict=True
            )
        ]


T = TypeVar('T')
# What is drawn from each time on [s], in their order.
Timed = list[tuple[float, list[T]]]


class Scene(NamedTuple):
    """A machine that moves, its bent parts, and the ground in the plane."""

    robot: Robot
    source: str  # of its description
    topic: str  # of the states of its joints
    time: np.ndarray  # (samples,) [s]
    positions: dict[str, np.ndarray]  # (samples,) by joint [rad or m]
    bent: Timed[Drawn]
    ground: Timed[Part]
    ignored: Sequence[str]  # entries of the topic that are none of its joints

    def moved(self, origin: int) -> Scene:
        """Return the scene with times from a stamp on [ns]."""
        shift = origin / NANOSECONDS
        bent = [(time - shift, parts) for time, parts in self.bent]
        ground = [(time - shift, parts) for time, parts in self.ground]
        return self._replace(time=self.time - shift, bent=bent, ground=ground)

    def gaps(self) -> list[tuple[float, float]]:
        """Return times [s] between which states of the joints are missing."""
        steps = np.diff(self.time)
        usual = np.median(steps) if len(steps) else 0.0
        missing = np.flatnonzero(steps > max(_GAP, _STEPS * usual))
        return [(float(self.time[k]), float(self.time[k + 1])) for k in missing]

    def outlines(self, time: float) -> list[Part]:
        """Return the outlines of all parts at a time [s], from the back to the front."""
        pose = {
            name: float(np.interp(time, self.time, values))
            for name, values in self.positions.items()
        }
        places = self.robot.place(pose)
        bent = _latest(self.bent, time)
        replaced = {part.link for part in bent}
        # The far side first: y points to the left, away from who looks along it.
        shapes = [shape for shape in self.robot.shapes if shape.link not in replaced]
        parts = [(placed(shape.points, places[shape.link]), shape.color) for shape in shapes]
        parts.sort(key=lambda one: float(one[0][:, 1].max()), reverse=True)
        found: list[Part] = [(outline(points[:, [0, 2]]), color, True) for points, color in parts]
        # Over the machine: what is in the soil is hidden.
        found += _latest(self.ground, time)
        for part in bent:
            found += part.outlines(places[part.frame])
        return found


def _latest(states: Timed[T], time: float) -> list[T]:
    """Return what is drawn at a time [s]; before the first one that of the first."""
    place = bisect.bisect_right(states, time, key=itemgetter(0)) - 1
    return states[max(place, 0)][1] if states else []


def outline(points: np.ndarray) -> np.ndarray:
    """Return the convex hull of points in a plane (n, 2), shape (corners, 2)."""
    # QJ, because seen from the side flat parts are lines.
    corners: np.ndarray = points[ConvexHull(points, qhull_options='QJ').vertices]
    return corners


def read_scene(path: Path, topic: str, urdf: Path | None = None) -> Scene:
    """Return the machine of a recording."""
    with open_bag(path) as bag:
        if not bag.message_count:
            raise InputError(f'{path}: no messages: an empty recording')
        joints = [
            name for name, one in bag.topics.items() if one.typename == JOINT_STATES and one.count
        ]
        if topic:
            name = find_topic(bag, topic)
            if name not in joints:
                raise InputError(f'{path}: {name} has no states of joints; allowed: {joints}')
        elif len(states := [n for n in joints if n.endswith('/joint_states')] or joints) == 1:
            (name,) = states
        else:
            raise InputError(
                f'{path}: {len(joints)} topics with states of joints'
                f' ({", ".join(joints) or "sensor_msgs/msg/JointState is required"});'
                ' give one: --joints-topic TOPIC'
            )
    recorded = read_signals(path, [Signal(name, 'position')])
    data = recorded.topics[name]
    if not len(data.time):
        raise InputError(f'{path}: no message of {name} since time began anew')
    entries = {field[len('position[') : -1]: field for field in data.values}
    found = describe(path, [name], urdf)
    if name not in found:
        raise InputError(
            f'{path}: no description of the machine with the joints {", ".join(entries)};'
            ' give its URDF: --urdf FILE'
        )
    source, robot = found[name]
    ignored = [joint for joint in entries if joint not in robot.joints]
    if len(ignored) == len(entries):
        raise InputError(
            f'{source}: no joint {", ".join(ignored)}, which {name} has; give the URDF of this'
            ' machine: --urdf FILE'
        )
    positions = {
        joint: _known(data, field, f'{path}: {name}')
        for joint, field in entries.items()
        if joint in robot.joints
    }
    space = name.rpartition('/')[0]
    with open_bag(path) as bag:
        bent = _read_bent(bag, f'{space}/shape', robot, recorded.restart)
        ground = _read_ground(bag, f'{space}/terrain', robot, recorded.restart)
    return Scene(robot, source, name, data.time / NANOSECONDS, positions, bent, ground, ignored)


def _known(data: TopicData, field: str, where: str) -> np.ndarray:
    """Return a field at all times of a topic, interpolated where it is not known (samples,)."""
    time, values = data.samples(field)
    known = np.isfinite(values)
    if not known.any():
        raise InputError(f'{where} has no known {field}; the machine cannot be drawn')
    return np.asarray(np.interp(data.time, time[known], values[known]))


def _read_bent(bag: Bag, topic: str, robot: Robot, restart: Restart) -> Timed[Drawn]:
    """Return the drawings of a topic by time; empty if it was not recorded."""
    found: Timed[Drawn] = []
    if topic not in bag.topics:
        return found
    # Links have a prefix in a robot description that a plant has published.
    links = {link.rpartition('/')[2]: link for link in robot.place({})}
    shown: dict[tuple[str, int], Marker] = {}
    for _, received, data in bag.messages([topic]):
        message = read_markers(data)
        stamps = [marker.stamp for marker in message.markers[:1]]
        if stamps and restart.keeps(received, stamps[0]):
            message.apply_to(shown)
            parts = [part for marker in shown.values() if (part := _drawn(marker, links))]
            found.append((stamps[0] / NANOSECONDS, parts))
    return sorted(found, key=itemgetter(0))


def _read_ground(bag: Bag, topic: str, robot: Robot, restart: Restart) -> Timed[Part]:
    """Return the ground of a topic by time; empty if there is none, or in another frame."""
    found: Timed[Part] = []
    if topic not in bag.topics or bag.topics[topic].typename != _TERRAIN:
        return found
    for _, received, message, _ in messages_of(bag, store_of(bag, [topic])):
        if message.header.frame_id.rpartition('/')[2] != robot.root.rpartition('/')[2]:
            return []
        stamp = message.header.stamp.sec * NANOSECONDS + message.header.stamp.nanosec
        if restart.keeps(received, stamp):
            firm = np.asarray(message.firm)
            surface = firm + np.asarray(message.loose)
            x = message.start + message.cell * np.arange(len(firm))
            floor = np.full(len(x), firm.min() - _BELOW)
            soil: list[Part] = [
                (_between(x, firm, surface), _LOOSE, False),
                (_between(x, floor, firm), _FIRM, False),
            ]
            found.append((stamp / NANOSECONDS, soil))
    return sorted(found, key=itemgetter(0))


def _between(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the corners of the area between two lines, shape (2 K, 2)."""
    return np.concatenate([np.stack([x, high], axis=1), np.stack([x, low], axis=1)[::-1]])


def _drawn(marker: Marker, links: dict[str, str]) -> Drawn | None:
    """Return the triangles of a marker in a frame of the machine; None if there are none."""
    frame = links.get(marker.frame.rpartition('/')[2])
    corners, colors = marker.triangles()
    is_drawn = marker.kind == _TRIANGLES and len(corners) and np.isfinite(corners).all()
    if frame is None or not is_drawn:
        return None
    return Drawn(links.get(marker.name), frame, corners, colors[:, :3])
