"""
Publishers that hold their first messages back until those who must hear them are connected.

Discovery is mutual, but not simultaneous: a node may hear a sample before its own publisher knows
the subscriber that waits for the answer, and a volatile message sent then is lost.
"""

from __future__ import annotations

import time
from typing import Any

from rclpy.node import Node
from rclpy.publisher import Publisher

__all__ = ['HeldPublisher', 'Outbox']


class HeldPublisher:
    """A publisher whose messages pass through an :class:`Outbox`."""

    def __init__(self, outbox: Outbox, publisher: Publisher, subscribers: int) -> None:
        self._outbox = outbox
        self.publisher = publisher
        self.subscribers = subscribers

    def publish(self, message: Any) -> None:
        """Publish a message, or keep it until the outbox is open."""
        self._outbox.send(self, message)

    def is_connected(self) -> bool:
        """Tell whether as many subscribers as needed are there."""
        return int(self.publisher.get_subscription_count()) >= self.subscribers


class Outbox:
    """
    Holds the messages of several publishers, in their order, until all of them are connected.

    Parameters
    ----------
    node : Node
    patience : float
        After this time they are sent whoever listens [s].
    """

    def __init__(self, node: Node, patience: float) -> None:
        self._node = node
        self._patience = patience
        self._publishers: list[HeldPublisher] = []
        self._held: list[tuple[HeldPublisher, Any]] = []
        self._since = time.monotonic()
        self._open = False
        self._timer: Any = None

    def hold(self, publisher: Publisher, subscribers: int) -> HeldPublisher:
        """Let a publisher wait for a number of subscribers."""
        held = HeldPublisher(self, publisher, subscribers)
        self._publishers.append(held)
        return held

    def send(self, publisher: HeldPublisher, message: Any) -> None:
        """Publish or hold a message."""
        if not self._open and not self._held:
            self._since = time.monotonic()
            self._open = all(p.is_connected() for p in self._publishers)
        if self._open:
            publisher.publisher.publish(message)
            return
        self._held.append((publisher, message))
        if self._timer is None:
            self._timer = self._node.create_timer(0.005, self._try)

    def _try(self) -> None:
        """Send what is held once everyone is connected, or patience has ended."""
        missing = [p.publisher.topic_name for p in self._publishers if not p.is_connected()]
        waited = time.monotonic() - self._since
        if missing and waited < self._patience:
            return
        if missing:
            text = f'too few listeners to {", ".join(missing)} after {waited:.1f} s: sending'
            self._node.get_logger().warn(text)
        self._node.destroy_timer(self._timer)
        self._open = True
        for publisher, message in self._held:
            publisher.publisher.publish(message)
        self._held.clear()
