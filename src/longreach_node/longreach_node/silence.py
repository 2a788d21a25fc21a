"""A warning when a topic that a node works on has nothing to say."""

from __future__ import annotations

import time

from rclpy.node import Node
from rclpy.subscription import Subscription

from longreach_node.clock import steady_clock

# Silence that is worth a line in the log [s of wall time], and how often it is looked for.
_SILENCE = 5.0
_PERIOD = 1.0


class SilenceWatch:
    """
    Warns once when no messages of a topic arrive, and logs when they arrive again.

    This is not an error: a paused simulation publishes no samples either.

    Parameters
    ----------
    node : Node
    subscription : Subscription
        The node calls :meth:`heard` with each message.
    """

    def __init__(self, node: Node, subscription: Subscription) -> None:
        self._node = node
        self._subscription = subscription
        self._heard = time.monotonic()
        self._warned = self._begun = False
        node.create_timer(_PERIOD, self._check, clock=steady_clock())

    def heard(self) -> None:
        """Note that a message has come."""
        topic = self._subscription.topic_name
        if not self._begun:
            self._node.get_logger().info(f'first message on {topic}')
        elif self._warned:
            silent = time.monotonic() - self._heard
            self._node.get_logger().info(f'{topic} again, after {silent:.1f} s of silence')
        self._begun, self._warned = True, False
        self._heard = time.monotonic()

    def _check(self) -> None:
        """Warn when the silence is long."""
        silent = time.monotonic() - self._heard
        if self._warned or silent < _SILENCE:
            return
        self._warned = True
        publishers = self._subscription.get_publisher_count()
        reason = (
            f'{publishers} publisher(s); is the simulation paused or waiting?'
            if publishers
            else 'no publisher; is the plant running, in this namespace and ROS_DOMAIN_ID?'
        )
        self._node.get_logger().warning(
            f'nothing on {self._subscription.topic_name} for {silent:.0f} s: {reason}'
        )
