"""
Nodes that end together, such as simulations.

A launch ends with the first plant, or video, that ends. Where several share it, each says on a
latched topic that it has finished, and stays until as many others have said so.
"""

from __future__ import annotations

from rclpy.node import Node
from std_msgs.msg import String

from longreach_node import qos

_TOPIC = '/finished_simulations'


class Companions:
    """
    Other nodes on the graph that have to finish, too.

    Parameters
    ----------
    node : Node
        Its full name is what the others hear.
    count : int
        How many must finish before this node ends.
    topic : str
    """

    def __init__(self, node: Node, count: int, topic: str = _TOPIC) -> None:
        self._name, self._count = node.get_fully_qualified_name(), count
        self._finished: set[str] = set()
        if count:
            self._publisher = node.create_publisher(String, topic, qos.LATCHED_STREAM)
            node.create_subscription(String, topic, self._on_finished, qos.LATCHED_STREAM)

    def _on_finished(self, message: String) -> None:
        """Note who has finished."""
        self._finished.add(message.data)

    def tell(self) -> None:
        """Say that this simulation has finished."""
        if self._count:
            self._publisher.publish(String(data=self._name))

    def missing(self) -> int:
        """Return how many others have not finished yet."""
        return max(0, self._count - len(self._finished - {self._name}))
