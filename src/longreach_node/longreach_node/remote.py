"""What a command says to nodes that run: it comes among them for a moment, talks, and leaves."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import rclpy
from rcl_interfaces.msg import Log
from rclpy.context import Context
from rclpy.duration import Duration
from rclpy.exceptions import InvalidNamespaceException
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rclpy.validate_namespace import validate_namespace
from std_srvs.srv import Trigger

from longreach_dynamics.errors import InputError, LongreachError
from longreach_node import qos

__all__ = ['Remote', 'remote']

# What the middleware still takes as a duration [s].
_LONGEST = 1e6


class Remote:
    """
    A node that others find while a command runs; :func:`remote` makes it.

    Parameters
    ----------
    node : Node
    context : Context
        The node's own.
    timeout : float
        Longest wait for anything [s].
    start : str
        The command that starts whom it looks for, for error messages.
    """

    def __init__(self, node: Node, context: Context, timeout: float, start: str) -> None:
        self.node = node
        self.timeout = timeout
        self._start = start
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(node)

    def until(self, condition: Callable[[], object], missing: str, remedy: str = '') -> None:
        """
        Wait until a condition holds.

        Raises
        ------
        LongreachError
            When it does not within the timeout: what is missing, and what to do.
        """
        deadline = time.monotonic() + self.timeout
        while not condition():
            if time.monotonic() > deadline:
                advice = f'; {remedy}' if remedy else ''
                raise LongreachError(f'{missing} after {self.timeout:g} s{advice}')
            self._executor.spin_once(timeout_sec=0.05)

    def spin(self, seconds: float) -> None:
        """Let what comes be heard for some time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0.0:
            self._executor.spin_once(timeout_sec=left)

    def call(self, kind: Any, name: str, request: Any = None) -> str:
        """
        Call a service that answers with ``success`` and ``message``, and return the message.

        Raises
        ------
        LongreachError
            When nobody offers it, no answer comes, or the answer is a refusal.
        """
        client = self.node.create_client(kind, name)
        service = client.service_name
        self.until(client.service_is_ready, f'no service {service}', self._advice)
        future = client.call_async(kind.Request() if request is None else request)
        self.until(future.done, f'no answer from {service}')
        response = future.result()
        if not response.success:
            raise LongreachError(f'{service}: {response.message}')
        return str(response.message)

    def trigger(self, name: str) -> str:
        """Call a service without arguments; returns and raises as :meth:`call`."""
        return self.call(Trigger, name)

    def publisher(self, kind: Any, topic: str, profile: QoSProfile, listener: str) -> Publisher:
        """
        Return a publisher that a node, and not only a recorder, is connected to.

        Parameters
        ----------
        kind : type of message
        topic : str
        profile : QoSProfile
        listener : str
            Name of the node.

        Raises
        ------
        LongreachError
            When that node does not listen within the timeout.
        """
        publisher = self.node.create_publisher(kind, topic, profile)
        name = publisher.topic_name

        def connected() -> bool:
            known = self.node.get_subscriptions_info_by_topic(name)
            found = any(other.node_name == listener for other in known)
            return found and int(publisher.get_subscription_count()) >= len(known)

        self.until(connected, f'no {listener} listens to {name}', self._advice)
        return publisher

    def deliver(self, publisher: Publisher, message: Any) -> None:
        """
        Publish a message, and wait until whoever is connected has it.

        Raises
        ------
        LongreachError
            When somebody does not take it.
        """
        publisher.publish(message)
        if not publisher.wait_for_all_acked(Duration(seconds=min(self.timeout, _LONGEST))):
            raise LongreachError(
                f'{publisher.topic_name}: not everybody who listens took the message within'
                f' {self.timeout:g} s'
            )

    def log_of(self, name: str) -> list[str]:
        """
        Return a list to which all that a node of the namespace logs from now on is appended.

        Raises
        ------
        LongreachError
            When that node has no log on /rosout.
        """
        logger = f'{self.node.get_namespace()}/{name}'.strip('/').replace('/', '.')
        texts: list[str] = []

        def add(entry: Log) -> None:
            if entry.name == logger:
                texts.append(entry.msg)

        subscription = self.node.create_subscription(Log, '/rosout', add, qos.STREAM)

        def connected() -> bool:
            known = self.node.get_publishers_info_by_topic('/rosout')
            found = any(other.node_name == name for other in known)
            return found and int(subscription.get_publisher_count()) >= len(known)

        self.until(connected, f'no log of {name} on /rosout')
        return texts

    def close(self) -> None:
        """Leave."""
        self._executor.shutdown()
        self.node.destroy_node()

    @property
    def _advice(self) -> str:
        """What to do when nobody is there."""
        return f'start one with {self._start}, in the same ROS_DOMAIN_ID, or name its --namespace'


@contextlib.contextmanager
def remote(name: str, namespace: str, timeout: float, start: str) -> Iterator[Remote]:
    """
    Give a node in a context of its own, for as long as a command talks to others.

    Parameters
    ----------
    name : str
        The node's name.
    namespace : str
        Where the others are.
    timeout : float
        Longest wait for anything [s].
    start : str
        The command that starts the others, for error messages.

    Raises
    ------
    InputError
        For a namespace that ROS does not allow.
    """
    try:
        validate_namespace(f'/{namespace.removeprefix("/")}')
    except InvalidNamespaceException as error:
        reason = str(error).splitlines()[0].removeprefix('Invalid namespace: namespace ')
        raise InputError(f'namespace {namespace!r} {reason.rstrip(":")}') from error
    context = Context()
    rclpy.init(args=[], context=context)
    try:
        node = Node(
            name,
            namespace=namespace,
            context=context,
            enable_rosout=False,
            start_parameter_services=False,
        )
        far = Remote(node, context, timeout, start)
        try:
            yield far
        finally:
            far.close()
    finally:
        rclpy.shutdown(context=context)
