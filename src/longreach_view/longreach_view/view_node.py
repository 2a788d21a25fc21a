"""Running nodes as the source of a view: subscriptions to all topics, calls of services."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import rclpy
from longreach_msgs.msg import ValveCommand
from longreach_msgs.srv import AttachLoad
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import Image
from std_msgs.msg import Float64
from std_srvs.srv import Trigger

from longreach_machine.markers import KIND, read_markers
from longreach_node import qos
from longreach_tools.bag import Subscriptions
from longreach_view.drawing import array_of
from longreach_view.launch_files import Started
from longreach_view.loop import Source
from longreach_view.page import ALL, TRANSPORT, Control, Request
from longreach_view.world import Sample, World

_TRIGGER, _ATTACH = 'std_srvs/srv/Trigger', 'longreach_msgs/srv/AttachLoad'
_VALVES, _NUMBER = 'longreach_msgs/msg/ValveCommand', 'std_msgs/msg/Float64'
_IMAGE = 'sensor_msgs/msg/Image'
# Not shown, and of every node.
_LEFT_OUT = ('/rosout', '/parameter_events')
# Of these types each message counts, of other topics that are not plotted only the latest.
_EACH = ('MarkerArray', 'InertiaStamped')
# How often new topics and services are looked for [s].
_LOOK = 0.5
# A slider of a valve goes back to 0 when it was not moved for this long; until then, and a moment
# longer, its command is sent with this period [s].
_SPRING, _SENDING, _PERIOD = 1.0, 0.2, 0.02
# A failure is shown for this long, and a service has this long to answer [s].
_SHOWN, _PATIENCE = 6.0, 5.0
_LOAD = 90.0


class LiveSource(Source):
    """Running nodes, launches of the view, and ``durations`` [s] after which scenarios repeat."""

    def __init__(
        self, started: Started | None = None, durations: Mapping[str, float] | None = None
    ) -> None:
        self._started = started
        # Of scenarios that begin again when they have ended [s], and when they were started again.
        self._durations, self._begun = durations or {}, dict[str, float]()
        self._context = Context()
        rclpy.init(args=[], context=self._context)
        options: dict[str, Any] = {
            'context': self._context,
            'enable_rosout': False,
            'start_parameter_services': False,
        }
        # The listening node is not spun: its queues are read directly, which costs a fraction.
        self._ears: Any = Node('view', **options)
        self._node: Any = Node('view_controls', **options)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._images: set[str] = set()
        self._pictures: dict[str, Any] = {}
        self._notes: deque[tuple[float, str]] = deque(maxlen=3)
        self._ended: list[str] = []
        self._subscriptions = Subscriptions(self._ears, self._wants, self._say)
        self._looked = -_LOOK
        self._services: dict[str, str] = {}
        self._listened: dict[str, str] = {}
        self._clients: dict[str, Any] = {}
        # Calls that wait for an answer: when, service and future; and those to come.
        self._calls: list[tuple[float, str, Any]] = []
        self._due: list[tuple[str, Any, Any]] = []
        self._publishers: dict[str, Any] = {}
        # Of valves by topic and cylinder what was wanted, and when; when it was sent last.
        self._spools: dict[str, dict[str, tuple[float, float]]] = {}
        self._sent: dict[str, float] = {}

    # --- listening ---------------------------------------------------------------------------

    def _wants(self, name: str) -> bool:
        """Return whether a topic is subscribed to; images are, one by one, elsewhere."""
        return name not in _LEFT_OUT and name not in self._images and '/_' not in name

    def _say(self, line: str) -> None:
        """Take a line of the subscriptions: of interest is only what fails."""
        if ': not recorded: ' in line or ': recorded in part: ' in line:
            topic, _, reason = line.partition(': ')
            self._note(f'{topic}: not shown: {reason.partition(": ")[2]}')

    def _note(self, text: str) -> None:
        """Show a line for some seconds."""
        self._notes.append((time.monotonic(), text))

    def poll(self, world: World, now: float) -> Sequence[Sample]:
        """Return the messages that have come; of topics that are not plotted, the latest."""
        if now - self._looked > _LOOK:
            self._looked = now
            self._look(world)
        self._executor.spin_once(timeout_sec=0.0)
        self._send(now)
        self._follow_calls(world, now)
        self._repeat(world, now)
        taken = self._subscriptions.take()
        last = {topic.name: k for k, (_, topic, _, _) in enumerate(taken)}
        samples = []
        for k, (_, topic, _, data) in enumerate(taken):
            kind = topic.typename.rpartition('/')[2]
            if last[topic.name] != k and kind not in _EACH and not world.is_plotted(topic.name):
                continue
            nanoseconds = None if topic.read_stamp is None else topic.read_stamp(data)
            stamp = None if nanoseconds is None else 1e-9 * nanoseconds
            drawn = topic.typename == KIND
            message = read_markers(data) if drawn else deserialize_message(data, topic.message)
            samples.append(Sample(topic.name, topic.typename, message, stamp, topic.lost))
        return samples

    def _look(self, world: World) -> None:
        """Look for new topics, services and subscribers."""
        for name, types in self._node.get_topic_names_and_types():
            if types == [_IMAGE] and name not in self._images:
                self._images.add(name)
                if name.endswith('/overlay'):
                    take = partial(self._pictures.__setitem__, name)
                    self._node.create_subscription(Image, name, take, qos.LATEST_IMAGES)
        self._subscriptions.discover()
        self._subscriptions.follow_publishers()
        self._subscriptions.collect_losses()
        heard = [name for name, machine in world.machines.items() if machine.time > 0.0]
        self._ended = self._started.follow(heard) if self._started is not None else []
        self._ended += [
            f'{topic.name}: its publisher has ended; this is what it sent last'
            for topic in self._subscriptions.topics.values()
            if topic.name.endswith('/joint_states') and topic.offers and not topic.publishers
        ]
        found = self._node.get_service_names_and_types()
        self._services = {name: types[0] for name, types in found if len(types) == 1}
        self._listened = {
            name: types[0]
            for name, types in self._node.get_topic_names_and_types()
            if types[0] in (_VALVES, _NUMBER) and self._is_free(name, types[0])
        }

    def _is_free(self, topic: str, kind: str) -> bool:
        """Return whether a node listens to a topic; of valves, whether none commands them."""
        listening = self._node.get_subscriptions_info_by_topic(topic)
        others = self._node.get_publishers_info_by_topic(topic) if kind == _VALVES else ()
        return any(one.node_name != 'view' for one in listening) and all(
            one.node_name == 'view_controls' for one in others
        )

    def pictures(self) -> dict[str, np.ndarray]:
        """Return new pictures."""
        found = {name.lstrip('/'): array_of(one) for name, one in self._pictures.items()}
        self._pictures.clear()
        return {name: picture for name, picture in found.items() if picture is not None}

    def notes(self) -> Sequence[str]:
        """Return what failed in the last seconds, and what has ended."""
        now = time.monotonic()
        return [text for when, text in self._notes if now - when < _SHOWN] + self._ended

    # --- controls ----------------------------------------------------------------------------

    def controls(self, machine: str, world: World) -> list[Control]:
        """Return the own controls of a machine, by the services and topics of its nodes."""
        prefix = f'/{machine}/' if machine else '/'
        robot, found = world.machines[machine].robot, []
        for name, kind in sorted(self._services.items()):
            if not name.startswith(f'{prefix}plant/'):
                continue
            word = name.rpartition('/')[2]
            label = word.replace('_', ' ').capitalize()
            if kind == _TRIGGER and word not in TRANSPORT:
                found.append(Control(name, label, 'button'))
            elif kind == _ATTACH:
                found.append(Control(name, f'{label} [kg]', 'number', 1.0, 1000.0, _LOAD))
        for name, kind in sorted(self._listened.items()):
            if world.owner_of(name) is not world.machines[machine]:
                continue
            if kind == _NUMBER and name.endswith('/set_point') and robot is not None:
                limits = [
                    j.limits for j in robot.joints.values() if j.kind == 'prismatic' and j.limits
                ]
                low, high = limits[0] if limits else (0.0, 0.0)
                if low < high:
                    begin = min(max(0.0, low), high)
                    found.append(Control(name, 'Set point [m]', 'slider', low, high, begin))
            elif kind == _VALVES:
                spools = f'{name.rpartition("/")[0]}/hydraulics.spool['
                found += [
                    Control(f'{name} {one}', f'Valve {one.replace("_", " ")}', 'valve', -1.0, 1.0)
                    for one in (s[len(spools) : -1] for s in world.signals() if spools in s)
                ]
        return found

    def handle(self, request: Request, world: World, now: float) -> None:
        """Call a service, send a set point, move a valve, restart."""
        if request.name == 'restart' and self._started is not None:
            self._started.restart(request.value)
        elif request.name in TRANSPORT:
            machines = world.machines if request.machine == ALL else [request.machine]
            for machine in machines:
                service = f'/{machine}/plant/{request.name}'.replace('//', '/')
                if service in self._services:
                    self._call(service, Trigger, Trigger.Request(), now)
        elif ' ' in request.name:
            topic, _, cylinder = request.name.partition(' ')
            self._spools.setdefault(topic, {})[cylinder] = (float(request.value), now)
        elif request.name in self._services:
            if self._services[request.name] == _ATTACH:
                load = AttachLoad.Request(mass=float(request.value))
                self._call(request.name, AttachLoad, load, now)
            else:
                self._call(request.name, Trigger, Trigger.Request(), now)
        elif request.name in self._listened:
            publisher = self._publisher(request.name, Float64, qos.SET_POINT)
            publisher.publish(Float64(data=float(request.value)))

    def _repeat(self, world: World, now: float) -> None:
        """Reset machines whose scenario has ended."""
        for name, duration in self._durations.items():
            machine, service = world.machines.get(name), f'/{name}/plant/reset'
            waits = now - self._begun.get(name, -math.inf) < _PATIENCE
            if machine is None or service not in self._services or waits:
                continue
            if machine.time > duration:
                self._begun[name] = now
                self._call(service, Trigger, Trigger.Request(), now)
                self._note(f'{name}: the scenario begins again')

    def _publisher(self, topic: str, kind: Any, profile: Any) -> Any:
        """Return a publisher, made when it is first needed."""
        if topic not in self._publishers:
            self._publishers[topic] = self._node.create_publisher(kind, topic, profile)
        return self._publishers[topic]

    def _send(self, now: float) -> None:
        """Send the commands of valves that were moved lately, and a moment longer closed ones."""
        for topic, spools in self._spools.items():
            last = max(when for _, when in spools.values())
            if now - last <= _SPRING + _SENDING and now - self._sent.get(topic, 0.0) >= _PERIOD:
                self._sent[topic] = now
                values = [v if now - when <= _SPRING else 0.0 for v, when in spools.values()]
                message = ValveCommand(name=list(spools), spool=values)
                self._publisher(topic, ValveCommand, qos.STREAM).publish(message)

    def springs(self, now: float) -> Sequence[str]:
        """Return the sliders that were not moved for a while: their valves close."""
        found = []
        for topic, spools in self._spools.items():
            for cylinder, (spool, when) in spools.items():
                if spool != 0.0 and now - when > _SPRING:
                    spools[cylinder] = (0.0, when)
                    found.append(f'{topic} {cylinder}')
        return found

    def _call(self, name: str, kind: Any, request: Any, now: float) -> None:
        """Call a service without waiting, after those of the same node have answered."""
        self._due.append((name, kind, request))
        self._call_due(now)

    def _call_due(self, now: float) -> None:
        """Call what is due: of calls that come together a node chooses the order itself."""
        busy = {name.rpartition('/')[0] for _, name, _ in self._calls}
        due, self._due = self._due, []
        for name, kind, request in due:
            node = name.rpartition('/')[0]
            if node in busy:
                self._due.append((name, kind, request))
                continue
            busy.add(node)
            if name not in self._clients:
                self._clients[name] = self._node.create_client(kind, name)
            self._calls.append((now, name, self._clients[name].call_async(request)))

    def _follow_calls(self, world: World, now: float) -> None:
        """Show what services refuse, and that they do not answer; note what is paused."""
        kept = []
        for when, name, future in self._calls:
            if not future.done() and now - when < _PATIENCE:
                kept.append((when, name, future))
                continue
            if not future.done():
                self._note(f'{name}: no answer')
            elif not future.result().success:
                self._note(f'{name}: {future.result().message}')
            else:
                machine, _, word = name.strip('/').rpartition('plant/')
                known = world.machines.get(machine.strip('/'))
                if known is not None and word in ('pause', 'step', 'resume'):
                    known.halted = math.inf if word == 'resume' else now
        self._calls = kept
        self._call_due(now)

    def close(self) -> None:
        """Close the valves, and destroy the nodes."""
        for topic, spools in self._spools.items():
            closed = ValveCommand(name=list(spools), spool=[0.0] * len(spools))
            self._publisher(topic, ValveCommand, qos.STREAM).publish(closed)
        self._executor.shutdown()
        self._node.destroy_node()
        self._ears.destroy_node()
        rclpy.shutdown(context=self._context)
