"""A temporary node with which a command calls, publishes to and listens to running nodes."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import rclpy
from longreach_msgs.srv import AttachLoad
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
from longreach_node.stamps import nanoseconds_of

# Longest duration that the middleware accepts [s].
_LONGEST = 1e6
# Between commands that are repeated [s]: a fraction of a plant's usual command_timeout.
_PERIOD = 0.02
# Discovery of the other publishers of a topic takes this long after the first one [s].
_DISCOVERY = 0.5


class Remote:
    """
    The node of a running command; :func:`remote` creates it.

    Methods raise LongreachError for what does not happen within ``timeout`` [s]; ``start`` is the
    command that starts the nodes it looks for, for error messages.
    """

    def __init__(self, node: Node, context: Context, timeout: float, start: str) -> None:
        self.node = node
        self.timeout = timeout
        self._advice = (
            f'start one with {start}, in the same ROS_DOMAIN_ID, or name its --namespace'
        )
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(node)

    def until(self, condition: Callable[[], object], missing: str, remedy: str = '') -> None:
        """Wait until a condition holds; ``missing`` and ``remedy`` are for the error."""
        deadline = time.monotonic() + self.timeout
        while not condition():
            if time.monotonic() > deadline:
                advice = f'; {remedy}' if remedy else ''
                raise LongreachError(f'{missing} after {self.timeout:g} s{advice}')
            self._executor.spin_once(timeout_sec=0.05)

    def spin(self, seconds: float) -> None:
        """Process messages for some time [s]."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0.0:
            self._executor.spin_once(timeout_sec=left)

    def call(self, kind: Any, name: str, request: Any = None) -> str:
        """
        Call a service that answers with ``success`` and ``message``, and return the message.

        Raises LongreachError also when the service refuses.
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

    def publisher(self, kind: Any, topic: str, profile: QoSProfile, listener: str) -> Publisher:
        """Return a publisher to which a node named ``listener``, not only a recorder, listens."""
        publisher = self.node.create_publisher(kind, topic, profile)
        name = publisher.topic_name

        def connected() -> bool:
            known = self.node.get_subscriptions_info_by_topic(name)
            found = any(other.node_name == listener for other in known)
            return found and int(publisher.get_subscription_count()) >= len(known)

        self.until(connected, f'no {listener} listens to {name}', self._advice)
        return publisher

    def deliver(self, publisher: Publisher, message: Any) -> None:
        """Publish a message, and wait until all connected subscribers have received it."""
        publisher.publish(message)
        if not publisher.wait_for_all_acked(Duration(seconds=min(self.timeout, _LONGEST))):
            raise LongreachError(
                f'{publisher.topic_name}: not all subscribers received the message within'
                f' {self.timeout:g} s'
            )

    def check_alone(self, publisher: Publisher, others: str) -> None:
        """
        Raise LongreachError when other nodes publish on a topic, or it has no subscriber.

        ``others`` is the message for the former, with ``{topic}`` for the topic. Other publishers
        are discovered some time after the first one: :meth:`sole_publisher` waits for that.
        """
        topic = publisher.topic_name
        senders = [other.node_name for other in self.node.get_publishers_info_by_topic(topic)]
        if len(senders) > 1:
            senders.remove(self.node.get_name())
            raise LongreachError(f'{", ".join(senders)} {others.format(topic=topic)}')
        if not publisher.get_subscription_count():
            raise LongreachError(f'{topic}: the plant has gone')

    def sole_publisher(self, kind: Any, topic: str, others: str) -> Publisher:
        """Return a publisher to the plant, checked by :meth:`check_alone`."""
        publisher = self.publisher(kind, topic, qos.STREAM, 'plant')
        self.spin(min(_DISCOVERY, self.timeout))
        self.check_alone(publisher, others)
        return publisher

    def repeat(
        self, publisher: Publisher, message: Any, duration: float, last: Any, others: str
    ) -> None:
        """
        Send a command repeatedly for some real time [s], then a last one, also when interrupted.

        ``publisher`` is that of :meth:`sole_publisher`; raises as :meth:`check_alone`.
        """
        begun = time.monotonic()
        try:
            for count in range(math.ceil(duration / _PERIOD)):
                self.check_alone(publisher, others)
                publisher.publish(message)
                until = begun + min(duration, (count + 1) * _PERIOD)
                self.spin(until - time.monotonic())
        finally:
            self.deliver(publisher, last)

    def moving_sample(self, kind: Any, topic: str, machine: str, remedy: str) -> Any:
        """
        Return a message of a topic, once its stamps increase.

        ``machine`` is its name and ``remedy`` what to do when simulation time has stopped, for the
        error.
        """
        samples: dict[int, Any] = {}

        def add(message: Any) -> None:
            samples[nanoseconds_of(message.header.stamp)] = message

        subscription = self.node.create_subscription(kind, topic, add, qos.STREAM)
        missing = f'{subscription.topic_name}: the time of the {machine} stands still'
        self.until(lambda: len(samples) > 1, missing, remedy)
        self.node.destroy_subscription(subscription)
        return next(iter(samples.values()))

    def log_of(self, name: str) -> list[str]:
        """Return a list that collects what a node of the namespace logs from now on."""
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
        """Destroy the node."""
        self._executor.shutdown()
        self.node.destroy_node()


@contextlib.contextmanager
def remote(name: str, namespace: str, timeout: float, start: str) -> Iterator[Remote]:
    """
    Create a node in a context of its own, and destroy it at the end.

    Parameters
    ----------
    name : str
        The node's name.
    namespace : str
        Namespace of the other nodes.
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


def call_plant(service: str, namespace: str, timeout: float, start: str) -> str:
    """
    Call a service of the plant that takes no arguments, such as ``pause``; return its answer.

    Parameters and errors are those of :func:`remote`; raises LongreachError when there is no
    plant, or it refuses the call.
    """
    with remote(service, namespace, timeout, start) as far:
        return far.call(Trigger, f'plant/{service}')


def attach_load(fields: Mapping[str, Any], namespace: str, timeout: float, start: str) -> str:
    """
    Attach a load to the machine of a running plant, and return the plant's answer.

    ``fields`` are those of the request, AttachLoad; the rest is as of :func:`call_plant`.
    """
    with remote('attach_load', namespace, timeout, start) as far:
        return far.call(AttachLoad, 'plant/attach_load', AttachLoad.Request(**fields))
