"""Commands to running nodes: a temporary node that calls, publishes and listens."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import rclpy
from longreach_msgs.msg import HydraulicState, ValveCommand
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
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from longreach_dynamics.errors import InputError, LongreachError, check_count, check_within
from longreach_machine import MachineSpec
from longreach_node import qos
from longreach_node.stamps import duration_of, nanoseconds_of

# Longest duration that the middleware accepts, and of a trajectory, as in a scenario [s].
_LONGEST = 1e6
# Between commands that are repeated [s]: a fraction of a plant's usual command_timeout.
_PERIOD = 0.02
# Discovery of the other publishers of a topic takes this long after the first one [s].
_DISCOVERY = 0.5


class Remote:
    """The node of a running command, see :func:`remote`; LongreachError after ``timeout`` [s]."""

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
        """Return the message of a service with ``success``; LongreachError when it refuses."""
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
        """Raise LongreachError, ``others`` if others publish on a topic, or if nobody listens."""
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
        # The others are discovered some time after the first one.
        self.spin(min(_DISCOVERY, self.timeout))
        self.check_alone(publisher, others)
        return publisher

    def repeat(
        self, publisher: Publisher, message: Any, duration: float, last: Any, others: str
    ) -> None:
        """Send a command for some real time [s], then a last one, also when interrupted."""
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
        """Return a message of a topic, once its stamps increase; the rest is for the error."""
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

        subscription = self.node.create_subscription(Log, '/rosout', add, qos.LATCHED_STREAM)

        def connected() -> bool:
            known = self.node.get_publishers_info_by_topic('/rosout')
            found = any(other.node_name == name for other in known)
            return found and int(subscription.get_publisher_count()) >= len(known)

        self.until(connected, f'no log of {name} on /rosout')
        # Older lines are sent again to those that come later. Their stamps do not tell: the clock
        # may be another computer's.
        self.spin(min(_DISCOVERY, self.timeout))
        texts.clear()
        return texts

    def close(self) -> None:
        """Destroy the node."""
        self._executor.shutdown()
        self.node.destroy_node()


@contextlib.contextmanager
def remote(name: str, namespace: str, timeout: float, start: str) -> Iterator[Remote]:
    """
    Create a node in a context of its own for the nodes of a namespace; destroy it at the end.

    ``timeout`` is the longest wait for anything [s], ``start`` the command that starts the others,
    for errors. InputError for a namespace that ROS does not allow.
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
    """Call a service of the plant without arguments, such as ``pause``; return its answer."""
    with remote(service, namespace, timeout, start) as far:
        return far.call(Trigger, f'plant/{service}')


def attach_load(fields: Mapping[str, Any], namespace: str, timeout: float, start: str) -> str:
    """Attach a load, fields of AttachLoad, to a running machine; return the plant's answer."""
    with remote('attach_load', namespace, timeout, start) as far:
        return far.call(AttachLoad, 'plant/attach_load', AttachLoad.Request(**fields))


def command_valves(
    spec: MachineSpec[Any, Any, Any],
    spools: Sequence[float],
    duration: float,
    namespace: str,
    timeout: float,
) -> str:
    """
    Command the valves for some time [s of real time], close them, and return the topic.

    They are also closed when the function is interrupted. ``spools`` has a value in [-1, 1] for
    each cylinder, InputError for another number. LongreachError when there is no plant, its time
    has stopped, or another node commands the valves.
    """
    with remote('valves', namespace, timeout, spec.launch) as far:
        publisher = far.sole_publisher(ValveCommand, spec.valves, spec.other_senders)
        sample = far.moving_sample(HydraulicState, 'hydraulics', spec.name, spec.stands_still)
        names = list(sample.name)
        check_count('command', spools, len(names), f'one for each of {", ".join(names)}')
        # A stamp of zero is now.
        command = ValveCommand(name=names, spool=spools)
        closed = ValveCommand(name=names, spool=[0.0] * len(names))
        far.repeat(publisher, command, duration, closed, spec.other_senders)
        return str(publisher.topic_name)


def send_trajectory(
    angles: Sequence[float],
    duration: float,
    joints: Sequence[str],
    namespace: str,
    timeout: float,
    start: str,
) -> str:
    """
    Let the controller move joints to angles [rad], and return the topic.

    They are there after ``duration`` [s of simulation]; without names all joints move. ``start``
    is the command that starts a controller, for errors. LongreachError when there is no
    controller, or it refuses the trajectory.
    """
    if joints and len(joints) != len(angles):
        raise InputError(f'{len(angles)} angles, allowed: {len(joints)}, one for each joint named')
    check_within('time', duration, f'(0, {_LONGEST:g}] s')
    point = JointTrajectoryPoint(positions=angles, time_from_start=duration_of(duration))
    message = JointTrajectory(joint_names=joints, points=[point])
    with remote('move', namespace, timeout, start) as far:
        publisher = far.publisher(JointTrajectory, 'trajectory', qos.SET_POINT, 'controller')
        # The topic brings no answer back; what the controller thinks of it stands in its log.
        log = far.log_of('controller')
        far.deliver(publisher, message)
        answers: list[str] = []

        def answered() -> bool:
            answers.extend(text for text in log if text.startswith('trajectory'))
            return bool(answers)

        far.until(answered, f'{publisher.topic_name}: no answer in the log of the controller')
        if answers[0].startswith('trajectory ignored'):
            raise LongreachError(f'{publisher.topic_name}: {answers[0]}')
        return str(publisher.topic_name)
