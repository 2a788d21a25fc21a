"""
Names of coordinate frames, and transforms between them on /tf and /tf_static.

All machines on one graph share ``/tf``, so that the frames of each begin with a prefix: by default
its namespace and a slash, as in ``north/track``. The prefix belongs to the frames, which are the
links of the robot description; joints keep their names, because ``joint_states`` lies in the
machine's namespace already.

Without ROS's own installation, ``tf2_msgs`` does not exist: a node then works without transforms,
and its log says so once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from geometry_msgs.msg import TransformStamped
from rclpy.node import Node
from std_msgs.msg import Header

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, quantity
from longreach_node.qos import STATIC_TRANSFORMS, TRANSFORMS
from longreach_node.stamps import stamp_of

# In a prefix this stands for the node's namespace.
_NAMESPACE = '{namespace}'


@dataclasses.dataclass(frozen=True, kw_only=True)
class FrameParameters(Parameters):
    """The parameter of every node whose messages have a frame."""

    frame_prefix: str = quantity(
        'prefix of frame names; {namespace} stands for the namespace of the node',
        '',
        default=f'{_NAMESPACE}/',
    )

    def check(self) -> None:
        """Raise InputError for a prefix with white space."""
        super().check()
        if any(character.isspace() for character in self.frame_prefix):
            raise InputError(
                f'frame_prefix = {self.frame_prefix!r}, allowed: a text without white space'
            )


def frame_name(node: Node, parameters: FrameParameters, frame: str) -> str:
    """
    Return the name of a frame of the machine's robot description, such as ``track``, on the graph.

    With the prefix of the node's namespace; without a leading slash, which tf2 refuses.
    """
    namespace = node.get_namespace().strip('/')
    return (parameters.frame_prefix.replace(_NAMESPACE, namespace) + frame).lstrip('/')


def header_at(nanoseconds: int, frame: str) -> Header:
    """Return a message's header: a time since the epoch of the clock [ns], and a frame."""
    return Header(stamp=stamp_of(nanoseconds), frame_id=frame)


def optional_message(node: Node, name: str, without: str) -> Any:
    """
    Return a message type of a package that need not be installed, or None; the log says so.

    ``name`` is such as ``tf2_msgs/TFMessage``, ``without`` what does not work without it.
    """
    package, _, kind = name.partition('/')
    try:
        return getattr(import_module(f'{package}.msg'), kind)
    except ImportError:
        node.get_logger().info(f'{package} is not installed: {without}')
        return None


class Transforms:
    """Publisher of transforms on a node; without ``tf2_msgs`` it does nothing."""

    def __init__(self, node: Node) -> None:
        self._kind = optional_message(node, 'tf2_msgs/TFMessage', 'no transforms on /tf')
        if self._kind is not None:
            self._static = node.create_publisher(self._kind, '/tf_static', STATIC_TRANSFORMS)
            self._moving = node.create_publisher(self._kind, '/tf', TRANSFORMS)

    def hold(self, transforms: Sequence[TransformStamped]) -> None:
        """Publish transforms that do not change; they replace those of the previous call."""
        if self._kind is not None:
            self._static.publish(self._kind(transforms=list(transforms)))

    def send(self, transforms: Sequence[TransformStamped]) -> None:
        """Publish transforms of one time, if there are any."""
        if self._kind is not None and transforms:
            self._moving.publish(self._kind(transforms=list(transforms)))
