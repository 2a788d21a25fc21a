"""
Units of the numbers in messages, and descriptions of the machines whose joints have them.

From comments of message definitions, as in ``float64 force # [N]``; of ROS from a table.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from longreach_dynamics.errors import InputError
from longreach_dynamics.resources import open_text
from longreach_machine import MACHINE_GROUP, MachineSpec
from longreach_machine.description import Robot, parse_description
from longreach_tools.bag import Topic, open_bag
from longreach_tools.bag._reading import first_messages
from longreach_tools.bag._topics import definition_file

JOINT_STATES = 'sensor_msgs/msg/JointState'

_FIELD = re.compile(r'^(?P<type>[\w/]+)(?:<=\d+)?(?P<list>\[[^\]]*\])?\s+(?P<name>[A-Za-z]\w*)')
_UNIT = re.compile(r'\[([A-Za-z%][^\[\]]*)\]')
_STEP = re.compile(r'\.?([A-Za-z]\w*)((?:\[[^\[\]]+\])*)')
# Units of messages of ROS by type and field; those of the outer field hold for what is not here.
_OF_ROS = {
    'geometry_msgs/Accel.linear': 'm/s^2',
    'geometry_msgs/Accel.angular': 'rad/s^2',
    'geometry_msgs/Inertia.m': 'kg',
    'geometry_msgs/Inertia.com': 'm',
    'geometry_msgs/Pose.position': 'm',
    'geometry_msgs/Pose.orientation': '1',
    'geometry_msgs/PointStamped.point': 'm',
    'geometry_msgs/Transform.translation': 'm',
    'geometry_msgs/Transform.rotation': '1',
    'geometry_msgs/Twist.linear': 'm/s',
    'geometry_msgs/Twist.angular': 'rad/s',
    'geometry_msgs/Wrench.force': 'N',
    'geometry_msgs/Wrench.torque': 'N m',
    'sensor_msgs/FluidPressure.fluid_pressure': 'Pa',
    'sensor_msgs/Imu.angular_velocity': 'rad/s',
    'sensor_msgs/Imu.linear_acceleration': 'm/s^2',
    'sensor_msgs/Range.range': 'm',
    'sensor_msgs/Temperature.temperature': 'deg C',
    'rosgraph_msgs/Clock.clock': 's',
    'trajectory_msgs/JointTrajectoryPoint.time_from_start': 's',
    'visualization_msgs/Marker.scale': 'm',
    'visualization_msgs/Marker.points': 'm',
}
# Fields of joints: position, velocity, effort, by the type of the message.
_OF_JOINTS = {
    'sensor_msgs/JointState': ('position', 'velocity', 'effort'),
    'trajectory_msgs/JointTrajectoryPoint': ('positions', 'velocities', 'effort'),
}


class Units:
    """Units of the fields of a recording; ``robots`` as :func:`describe` returns them."""

    def __init__(self, robots: Mapping[str, tuple[str, Robot]]) -> None:
        # Position, velocity and effort by the namespace and name of the joint.
        self._joints = {
            (topic.rpartition('/')[0], name): joint.units
            for topic, (_, robot) in robots.items()
            for name, joint in robot.joints.items()
        }

    def of_joint(self, topic: str, joint: str) -> tuple[str, str, str] | None:
        """Return the units of a joint of a topic's machine; of another one if all are alike."""
        found = {space: units for (space, name), units in self._joints.items() if name == joint}
        near = [space for space in found if topic.startswith(f'{space}/')]
        if near:
            return found[max(near, key=len)]
        return next(iter(found.values())) if len({*found.values()}) == 1 else None

    def of(self, topic: Topic, field: str) -> str:
        """Return the unit of a field; '1' for a plain number, empty where it is not known."""
        own = _sections(str(topic.definition.data), topic.typename)
        typename, unit = _short(topic.typename), ''
        for name, labels in _STEP.findall(field):
            if name in (fields := _OF_JOINTS.get(typename, ())):
                # The entry of a joint, such as '[car_joint]'.
                units = self.of_joint(topic.name, labels.strip('[]'))
                return units[fields.index(name)] if units else ''
            described = _parsed(own[typename], typename) if typename in own else None
            kind, stated = (described or _installed(typename)).get(name, ('', ''))
            unit = _OF_ROS.get(f'{typename}.{name}', '') or stated or unit
            typename = kind
        return unit


def _short(typename: str) -> str:
    """Return a type's name without /msg/."""
    return typename.replace('/msg/', '/')


@functools.lru_cache(maxsize=256)
def _sections(text: str, typename: str) -> Mapping[str, str]:
    """Return the definitions in a recording by type, if they have comments."""
    if '#' not in text:
        return {}
    parts = re.split(r'^=+\nMSG: (\S+)\n', text, flags=re.MULTILINE)
    return {_short(typename): parts[0]} | {
        _short(name): body for name, body in zip(parts[1::2], parts[2::2], strict=True)
    }


@functools.lru_cache(maxsize=256)
def _installed(typename: str) -> Mapping[str, tuple[str, str]]:
    """Return type and unit of the fields of an installed type; empty if it is not installed."""
    try:
        file = definition_file(typename.replace('/', '/msg/'))
        return _parsed(file.read_text(encoding='utf-8'), typename)
    except (InputError, OSError, UnicodeDecodeError):
        return {}


@functools.lru_cache(maxsize=256)
def _parsed(text: str, typename: str) -> Mapping[str, tuple[str, str]]:
    """Return type and unit of fields; the unit of the comment in the line, or before it."""
    package = typename.partition('/')[0]
    found = {}
    above = ''
    for line in text.splitlines():
        code, _, comment = line.partition('#')
        if not code.strip():
            # An empty line ends the comment on the next field.
            above = f'{above} {comment}' if comment else ''
            continue
        field = _FIELD.match(code.strip())
        if field is not None and '=' not in code:
            units = _UNIT.findall(comment or above)
            kind = field['type'] if '/' in field['type'] else f'{package}/{field["type"]}'
            found[field['name']] = (kind, units[-1] if units else '')
        above = ''
    return found


# --- descriptions of machines ---------------------------------------------------------------


def describe(
    path: Path, names: Sequence[str], urdf: Path | None = None
) -> dict[str, tuple[str, Robot]]:
    """Return the descriptions of the machines of topics with joint states, and their sources."""
    found: dict[str, tuple[str, Robot]] = {}
    if not names:
        return found
    with open_bag(path) as bag:
        texts = [name for name in bag.topics if name.endswith('/robot_description')]
    messages = first_messages(path, [*names, *texts])
    for name in names:
        beside = f'{name.rpartition("/")[0]}/robot_description'
        if urdf is not None:
            with open_text(urdf) as file:
                found[name] = (str(urdf), parse_description(file.read(), str(urdf)))
        elif beside in messages:
            source = f'{beside} of {path}'
            found[name] = (source, parse_description(messages[beside].data, source))
        elif name in messages:
            installed = installed_description(list(messages[name].name))
            if installed is not None:
                found[name] = installed
    return found


def installed_description(joints: Collection[str]) -> tuple[str, Robot] | None:
    """Return which installed machine has all these joints, and its description."""
    for point in sorted(metadata.entry_points(group=MACHINE_GROUP)) if joints else ():
        spec: MachineSpec[Any, Any, Any] = point.load()
        if text := spec.describe(spec.load(None, spec.options()), ''):
            robot = parse_description(text, point.name)
            if set(joints) <= set(robot.joints):
                return f'the installed {point.name}', robot
    return None
