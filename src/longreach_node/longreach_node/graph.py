"""The ROS graph around a simulator: connections, duplicate nodes, waits for other nodes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from rclpy.node import Node
from rclpy.publisher import Publisher
from std_msgs.msg import String

from longreach_dynamics.errors import LongreachError
from longreach_node import qos

if TYPE_CHECKING:
    from longreach_node.plant_node import PlantNode

# Missing connections are reported after this time [s]; discovery usually takes less.
_REPORT_AFTER = 0.3


def is_subscriber(node: Node, name: str, publisher: Publisher) -> bool:
    """Return whether some node of this name subscribes to a publisher of ``node``."""
    known = node.get_subscriptions_info_by_topic(publisher.topic_name)
    return any(other.node_name == name for other in known)


def duplicates(node: Node, topic: str) -> str:
    """Return a text on nodes of the same name, and other publishers of a topic; '' for none."""
    own, problems = node.get_fully_qualified_name(), []
    publishers = [
        f'{info.node_namespace.rstrip("/")}/{info.node_name}'
        for info in (node.get_publishers_info_by_topic(topic) if topic else ())
    ]
    if own in publishers:
        publishers.remove(own)
    if publishers:
        problems.append(
            f'{topic} is also published by {", ".join(sorted(publishers))}, allowed: one node of a'
            ' graph; start the others with publish_clock:=false'
        )
    names = node.get_node_names_and_namespaces()
    if names.count((node.get_name(), node.get_namespace())) > 1:
        problems.append(
            f'another node has the name {own}; start it in its own namespace (a killed node'
            ' disappears after 10 s)'
        )
    return '; '.join(problems)


class StartBarrier:
    """The wait of a plant for other nodes before the first sample."""

    def __init__(self, plant: PlantNode[Any, Any]) -> None:
        self._plant, self._log = plant, plant.get_logger()
        self._description = plant.settings.description(plant.machine)
        self._begun = time.monotonic()
        self._reported = ''

    def is_open(self) -> bool:
        """Return whether nothing is missing, or the wait is over; an error in lockstep."""
        missing, settings = self._missing(), self._plant.settings
        waited, limit = time.monotonic() - self._begun, settings.start_timeout
        if missing and waited < limit:
            if missing != self._reported and waited > _REPORT_AFTER:
                self.log_description()
                self._reported = missing
                self._log.info(f'waiting for a {missing}, for {limit:g} s at most (start_timeout)')
            return False
        if missing and settings.lockstep:
            raise LongreachError(
                f'lockstep cannot begin: after {waited:.1f} s there is no {missing}. Start the'
                ' controller, in the same namespace and ROS_DOMAIN_ID'
            )
        if missing:
            self._log.warning(f'starting without {missing} after {waited:.1f} s')
        elif self._reported:
            self._log.info(f'started after {waited:.1f} s')
        return True

    def _missing(self) -> str:
        """Return a text on what is not connected yet, empty if all is."""
        plant, listeners = self._plant, self._plant.settings.listeners
        for publisher, subscription in plant.links:
            if publisher.get_subscription_count() < listeners + 1:
                return f'subscriber of {publisher.topic_name}'
            if subscription.get_publisher_count() < 1:
                return f'publisher of {subscription.topic_name}'
        for publisher in plant.outputs:
            if publisher.get_subscription_count() < listeners:
                return f'listener to {publisher.topic_name}'
        for publisher, name in plant.watchers:
            if not is_subscriber(plant, name, publisher):
                return f'node {name} that listens to {publisher.topic_name}'
        return ''

    def log_description(self) -> None:
        """Say what runs, once."""
        if self._description:
            self._log.info(self._description)
            self._description = ''


class FinishBarrier:
    """The wait for ``count`` other plants: a launch ends with the first one that ends."""

    def __init__(self, node: Node, count: int) -> None:
        self._name, self._count = node.get_fully_qualified_name(), count
        self._finished: set[str] = set()
        if count:
            topic = '/finished_simulations'
            self._publisher = node.create_publisher(String, topic, qos.LATCHED_STREAM)
            node.create_subscription(String, topic, self._on_finished, qos.LATCHED_STREAM)

    def _on_finished(self, message: String) -> None:
        """Note who has finished."""
        self._finished.add(message.data)

    def arrive(self) -> None:
        """Say that this node has finished."""
        if self._count:
            self._publisher.publish(String(data=self._name))

    def missing(self) -> int:
        """Return how many others have not finished yet."""
        return max(0, self._count - len(self._finished - {self._name}))
