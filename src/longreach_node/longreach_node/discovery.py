"""Checks of the ROS graph for simulator nodes: missing connections, duplicate nodes."""

from __future__ import annotations

import time
from collections.abc import Iterable

from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.subscription import Subscription

from longreach_dynamics.errors import LongreachError
from longreach_node.simulator_parameters import SimulatorParameters

# Missing connections are reported after this time [s]; discovery usually takes less.
_SOON = 0.3


class Discovery:
    """
    The graph around a node.

    Parameters
    ----------
    node : Node
    """

    def __init__(self, node: Node) -> None:
        self._node = node

    def missing(
        self,
        links: Iterable[tuple[Publisher, Subscription]],
        outputs: Iterable[Publisher],
        watchers: Iterable[tuple[Publisher, str]],
        listeners: int,
    ) -> str:
        """
        Return a text on missing connections, empty if there are none.

        Parameters
        ----------
        links : iterable of (Publisher, Subscription)
            The two topics of a closed loop.
        outputs : iterable of Publisher
        watchers : iterable of (Publisher, str)
            Nodes by their names, and what they have to hear.
        listeners : int
            Subscribers that each output must have; those of links one more.
        """
        for publisher, subscription in links:
            if publisher.get_subscription_count() < listeners + 1:
                return f'subscriber of {publisher.topic_name}'
            if subscription.get_publisher_count() < 1:
                return f'publisher of {subscription.topic_name}'
        for publisher in outputs:
            if publisher.get_subscription_count() < listeners:
                return f'listener to {publisher.topic_name}'
        for publisher, name in watchers:
            if not self.hears(name, publisher):
                return f'node {name} that listens to {publisher.topic_name}'
        return ''

    def hears(self, name: str, publisher: Publisher) -> bool:
        """Return whether a node of some name listens to a publisher."""
        known = self._node.get_subscriptions_info_by_topic(publisher.topic_name)
        return any(other.node_name == name for other in known)

    def other_publishers(self, topic: str) -> list[str]:
        """Return the full names of the other nodes that publish a topic, sorted."""
        names = [
            f'{info.node_namespace.rstrip("/")}/{info.node_name}'
            for info in self._node.get_publishers_info_by_topic(topic)
        ]
        own = self._node.get_fully_qualified_name()
        if own in names:
            names.remove(own)
        return sorted(names)

    def namesakes(self) -> int:
        """Return how many other nodes have the full name of this one."""
        own = (self._node.get_name(), self._node.get_namespace())
        return max(0, self._node.get_node_names_and_namespaces().count(own) - 1)

    def doubled(self, topic: str) -> str:
        """
        Return a text on duplicates in the graph with the remedy, empty if there are none.

        Parameters
        ----------
        topic : str
            A topic of which this node must be the only publisher, ``/clock``; empty: none.

        Returns
        -------
        str
        """
        problems = []
        others = self.other_publishers(topic) if topic else []
        if others:
            problems.append(
                f'{topic} is also published by {", ".join(others)}, allowed: one node of a graph;'
                ' start the others with publish_clock:=false'
            )
        if self.namesakes():
            problems.append(
                f'another node has the name {self._node.get_fully_qualified_name()}; start it in'
                ' its own namespace (a killed node disappears after 10 s)'
            )
        return '; '.join(problems)


class Start:
    """
    The wait for other nodes before the first sample.

    Parameters
    ----------
    node : Node
    discovery : Discovery
    settings : SimulatorParameters
    description : str
        Machine and settings. Logged after the first sample, or when that has to wait, because the
        first log message takes 0.1 s.
    """

    def __init__(
        self, node: Node, discovery: Discovery, settings: SimulatorParameters, description: str
    ) -> None:
        self._log = node.get_logger()
        self._description = description
        self._discovery = discovery
        self._settings = settings
        self._begun = time.monotonic()
        self._told = ''

    def is_due(
        self,
        now: float,
        links: Iterable[tuple[Publisher, Subscription]],
        outputs: Iterable[Publisher],
        watchers: Iterable[tuple[Publisher, str]],
    ) -> bool:
        """
        Return whether everything is connected, or the waiting time is over.

        Parameters
        ----------
        now : float
            Wall time [s].
        links, outputs, watchers
            As of :meth:`Discovery.missing`.

        Raises
        ------
        LongreachError
            When in lockstep something is missing after ``start_timeout``.
        """
        waited, limit = now - self._begun, self._settings.start_timeout
        missing = self._discovery.missing(links, outputs, watchers, self._settings.listeners)
        if missing and waited < limit:
            if missing != self._told and waited > _SOON:
                self.tell()
                self._told = missing
                self._log.info(f'waiting for a {missing}, for {limit:g} s at most (start_timeout)')
            return False
        if missing and self._settings.lockstep:
            raise LongreachError(
                f'lockstep cannot begin: after {waited:.1f} s there is no {missing}. Start the'
                ' controller, in the same namespace and ROS_DOMAIN_ID'
            )
        if missing:
            self._log.warning(f'starting without {missing} after {waited:.1f} s')
        elif self._told:
            self._log.info(f'started after {waited:.1f} s')
        return True

    def tell(self) -> None:
        """Say what runs, once."""
        if self._description:
            self._log.info(self._description)
            self._description = ''
