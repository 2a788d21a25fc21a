"""
Units of the numbers in messages.

They are read from the comments of the message definitions, as in ``float64 force # [N]``: those in
the recording, or those installed here, where a recording has none. Messages of ROS, whose comments
have no such form, are in a table. Joints are in rad or m, as the machine's description says.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

from longreach_dynamics.errors import InputError
from longreach_tools.bag import Topic
from longreach_tools.bag._topics import definition_file

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
    ('sensor_msgs/JointState', 'position'): 0,
    ('sensor_msgs/JointState', 'velocity'): 1,
    ('sensor_msgs/JointState', 'effort'): 2,
    ('trajectory_msgs/JointTrajectoryPoint', 'positions'): 0,
    ('trajectory_msgs/JointTrajectoryPoint', 'velocities'): 1,
    ('trajectory_msgs/JointTrajectoryPoint', 'effort'): 2,
}


class Units:
    """
    Units of the fields of a recording.

    Parameters
    ----------
    joints : mapping
        Units of position, velocity and effort by the name of the joint.
    """

    def __init__(self, joints: Mapping[str, tuple[str, str, str]]) -> None:
        self._joints = joints

    def of(self, topic: Topic, field: str) -> str:
        """Return the unit of a field; '1' for a plain number, empty where it is not known."""
        own = _sections(str(topic.definition.data), topic.typename)
        typename, unit = _short(topic.typename), ''
        for name, labels in _STEP.findall(field):
            if (typename, name) in _OF_JOINTS:
                return self._of_joint(labels, _OF_JOINTS[typename, name])
            kind, stated = _described(typename, own).get(name, ('', ''))
            unit = _OF_ROS.get(f'{typename}.{name}', '') or stated or unit
            typename = kind
        return unit

    def _of_joint(self, labels: str, which: int) -> str:
        """Return the unit of the entry of a joint, such as '[car_joint]'."""
        units = self._joints.get(labels.strip('[]'))
        return units[which] if units else ''


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


def _described(typename: str, own: Mapping[str, str]) -> Mapping[str, tuple[str, str]]:
    """Return type and unit of the fields of a type, by name."""
    return _parsed(own[typename], typename) if typename in own else _installed(typename)


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
    """
    Return type and unit of the fields of a definition.

    The unit is that of the comment in the same line, or of the last comment lines before it.
    """
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
