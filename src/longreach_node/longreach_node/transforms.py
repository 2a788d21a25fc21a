"""
Transforms on /tf and /tf_static, and other messages of packages that need not be installed.

Without ROS's own installation, ``tf2_msgs`` does not exist: a node then works without transforms,
and its log says so once.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from geometry_msgs.msg import TransformStamped
from rclpy.node import Node

from longreach_node.qos import STATIC_TRANSFORMS, TRANSFORMS


def optional_message(node: Node, name: str, without: str) -> Any:
    """
    Return a message type of a package that need not be installed; the log says when it is not.

    Parameters
    ----------
    node : Node
    name : str
        Such as ``tf2_msgs/TFMessage``.
    without : str
        What does not work without it.

    Returns
    -------
    type or None
        None if it is not installed.
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
