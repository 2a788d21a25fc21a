"""
Base of plant nodes: a declared machine driven through time.

Simulation time is a count of steps. The node advances sample by sample; a sample is a whole number
of steps, and all that is published carries the sample's time.

It runs in real time, as fast as possible, or in lockstep, in which a closed loop is equal to the
library's own simulation: see docs/explanations.md.

The node ticks by the steady clock, whatever ``use_sim_time`` says: it makes simulation time, and
must not wait for it. When and by what the machine advances is in
:mod:`~longreach_node.simulation`; here is what a ROS graph sees of it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import sys
import time
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from builtin_interfaces.msg import Time
from geometry_msgs.msg import InertiaStamped
from longreach_msgs.msg import HydraulicState, ValveCommand
from longreach_msgs.srv import AttachLoad
from rclpy.duration import Duration
from rclpy.event_handler import PublisherEventCallbacks
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.subscription import Subscription
from rclpy.task import Future
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Header, String
from std_srvs.srv import Trigger
from visualization_msgs.msg import Marker, MarkerArray

from longreach_dynamics.errors import InputError, LongreachError
from longreach_machine import MACHINE_GROUP, MachineSpec
from longreach_machine.machine import BY_SCENARIO
from longreach_node import diagnostics, graph, qos
from longreach_node.clock import steady_clock
from longreach_node.conversions import spools_from_message
from longreach_node.frames import frame_name, header_at
from longreach_node.parameters import declare, run_time_names
from longreach_node.simulation import PAUSED_PERIOD, REFUSED, Simulation
from longreach_node.simulator_parameters import (
    CycleParameters,
    MachineParameters,
    SimulatorParameters,
)
from longreach_node.stamps import nanoseconds_of, seconds_to_nanoseconds, stamp_of
from longreach_node.standard_interface import add_standard_services

State = TypeVar('State')
Command = TypeVar('Command')

# How often to look for connections before the first sample, and at the graph [s of wall time].
_START_PERIOD, _GRAPH_PERIOD = 0.02, 2.0
# Services, with what the simulation does and what is said.
_SERVICES = {
    'pause': ('pause', 'paused at'),
    'resume': ('resume', 'running from'),
    'step': ('step_once', 'at'),
    'reset': ('reset', 'at'),
}
# Longest wait for listeners to each topic [s].
_FLUSH_TIMEOUT = 2.0


class PlantNode(Node, Generic[State, Command]):
    """
    The plant of a declared machine.

    Until it is commanded the machine follows its scenario; after ``command_timeout`` without a
    command the safe command acts. A machine with ``hydraulic_sample`` is published as
    ``joint_states`` and ``hydraulics`` of one stamp; its commands are spool positions, and without
    any the valves close. A subclass sets the class attributes, and provides :meth:`safe_command`
    and :meth:`command_of` of another machine, and, where it publishes more, :meth:`add_topics` and
    :meth:`publish_own`.

    With ``loads`` of the declaration it provides :meth:`carried` and :meth:`attached`, and its
    machine has ``release``. There are the services ``~/attach_load`` and ``~/release_load``, and
    ``load`` with the mass of all loads, at the first sample and whenever it has changed: by a
    service with the present sample, by the scenario with the sample that follows the change.

    Attributes
    ----------
    spec : MachineSpec
        The machine's declaration.
    settings_type : type
        The node's parameters: SimulatorParameters and MachineParameters, with what it adds.
    command_type : type
        Message of commands; the stamp of its header is that of the sample that it answers.
    command_topic : str
        Topic of commands, of which the latest sender acts.
    drawing_topic : str
        Topic of :meth:`drawing`, at the settings' ``visual_rate``; empty for none.
    described : Parameters
        Those of the machine that is simulated.
    links : list of (Publisher, Subscription)
        Topics of the closed loop, which must be connected before the first sample.
    outputs : list of Publisher
        Those that ``listeners`` must subscribe to.
    watchers : list of (Publisher, str)
        Other nodes by their names that must subscribe to a publisher from the first sample on, and
        may take longer than the simulation: the node ends when these have ended.
    drawn : int
        The present sample, when it was drawn; otherwise -1.
    done : Future
        Set when the process is to end, with an error where it failed.
    """

    spec: ClassVar[MachineSpec[Any, Any, Any]]
    settings_type: ClassVar[type[Any]]
    command_type: ClassVar[type] = ValveCommand
    command_topic: ClassVar[str] = 'valve_command'
    drawing_topic: ClassVar[str] = ''

    def __init__(self) -> None:
        super().__init__('plant')
        self.done = Future()
        self.links: list[tuple[Publisher, Subscription]] = []
        self.outputs: list[Publisher] = []
        self.watchers: list[tuple[Publisher, str]] = []
        self.drawn = -1
        self._has_drawn = False
        self._duplicates = ''
        self._graph_checked = self._end_tried = 0.0
        self._throttle = diagnostics.Throttle()

        given = declare(self, self.settings_type, self.on_settings)
        self.described, scenario = given.read(self.spec)
        if scenario is None:
            scenario = self.spec.rest(self.described)
        self.machine = self.make_machine(scenario, given)
        # As the publishers are made: it does not change with real_time_factor.
        self._latched = given.latched
        self._hydraulics: Publisher | None = None
        if hasattr(self.machine, 'hydraulic_sample'):
            self._hydraulics = self.add_output(HydraulicState, 'hydraulics', given)
        self._loads: Publisher | None = None
        self._told_load = math.nan
        if self.spec.loads:
            self._loads = self.create_publisher(InertiaStamped, 'load', qos.CHANGES)
            self.outputs.append(self._loads)
            changes = {AttachLoad: ('attach', self.attached), Trigger: ('release', self.released)}
            for kind, (name, change) in changes.items():
                on_load: Any = functools.partial(self._on_load, change)
                self.create_service(kind, f'~/{name}_load', on_load)
        self.add_topics(given)
        self.on_settings(given)
        self._drawings: Publisher | None = None
        self._drawing_rate = given.visual_rate if self.drawing_topic else 0.0
        if self.drawing_topic:
            # Kept for a recorder, as the samples.
            self._drawings = self.create_publisher(
                MarkerArray, self.drawing_topic, qos.drawings(self._latched)
            )
            self.outputs.append(self._drawings)
        self._commands: Subscription = self.create_subscription(
            self.command_type, self.command_topic, self._on_command, qos.STREAM
        )

        settings = self.settings = self.sampled(self.machine, given)
        self.frame = frame_name(self, settings, self.spec.root_frame)
        self._joints = self.add_output(JointState, 'joint_states', settings)
        if description := self.spec.describe(self.described, frame_name(self, settings, '')):
            # Kept by the publisher for viewers and recorders that come later.
            self._description = self.create_publisher(String, 'robot_description', qos.VISUAL)
            self._description.publish(String(data=description))
        self._start = graph.StartBarrier(self)
        self._finish = graph.FinishBarrier(self, settings.companions)
        self._clock_publisher = (
            self.create_publisher(Clock, '/clock', qos.CLOCK) if settings.publish_clock else None
        )
        self._diagnostics = diagnostics.Diagnostics(self, 'simulation')
        self.outputs.append(self._diagnostics.publisher)
        self._timer = self.create_timer(_START_PERIOD, self._tick, clock=steady_clock())
        self.simulation: Simulation[State, Command] = Simulation(
            self.machine, settings, self.first_command(), self.safe_command(), self
        )
        for name in _SERVICES:
            callback: Any = functools.partial(self._on_service, name)
            self.create_service(Trigger, f'~/{name}', callback)
        self.standard = add_standard_services(self, self.simulation)
        self.add_post_set_parameters_callback(self._on_parameters)
        if settings.lockstep or self.waits(scenario):
            self.links += [(publisher, self._commands) for publisher in self.answered()]

    def create_publisher(self, *arguments: Any, **named: Any) -> Publisher:
        """Create a publisher without QoS events, which take a quarter of a plant's time."""
        named.setdefault('event_callbacks', PublisherEventCallbacks(use_default_callbacks=False))
        return super().create_publisher(*arguments, **named)

    # --- what a machine provides -------------------------------------------------------------

    def make_machine(self, scenario: Any, settings: Any) -> Any:
        """Return the machine of :attr:`described`, compiled."""
        machine = self.spec.machine(self.described, scenario, settings)
        safe, step = self.safe_command(), getattr(machine, 'step', settings.step)
        # What fails here fails again when time has begun.
        with contextlib.suppress(LongreachError):
            machine.joint_sample(machine.advance(machine.initial_state(), safe, 0.0, step), safe)
        return machine

    def safe_command(self) -> Any:
        """Return what acts when commands stop coming; by default all valves close."""
        return self.spec.command((0.0,) * len(self.actuators))

    def first_command(self) -> Any:
        """Return what acts before the first command."""
        return BY_SCENARIO

    def sampled(self, machine: Any, settings: Any) -> Any:
        """Return the settings with step and rate of the simulation."""
        if isinstance(settings, CycleParameters):
            return settings.following(machine.step)
        # A machine with a step steps by itself from sample to sample.
        own = hasattr(machine, 'step')
        return settings.replace(step=settings.sample_time) if own else settings

    def add_topics(self, settings: Any) -> None:
        """Create further publishers."""

    def on_settings(self, settings: Any) -> None:
        """Apply parameters, at the start and when they are set at run time."""

    def answered(self) -> list[Publisher]:
        """Return the publishers of what a command answers; :meth:`publish_own` has others."""
        return [self._hydraulics, self._joints] if self._hydraulics else [self._joints]

    def waits(self, scenario: Any) -> bool:  # noqa: ARG002
        """Return whether the first sample waits for who commands, also outside lockstep."""
        return False

    def command_of(self, message: Any) -> Any:
        """Return the command of a message; InputError for one that is refused."""
        return self.spec.command(spools_from_message(message, self.actuators, self.command_topic))

    def publish_own(self, header: Header) -> None:
        """Publish other messages about the present state; none here."""

    def drawing(self, header: Header) -> MarkerArray:
        """Return the markers that show the present state; with ``drawing_topic``."""
        raise NotImplementedError

    def carried(self) -> float:
        """Return the mass of all loads of the present state [kg]."""
        raise NotImplementedError

    def attached(self, request: AttachLoad.Request) -> tuple[State, str]:
        """Return the state with one more load, and what is said; InputError to refuse it."""
        raise NotImplementedError

    def released(self, request: Any) -> tuple[State, str]:  # noqa: ARG002
        """Return the state without loads, and what is said; InputError when there are none."""
        if not (mass := self.carried()):
            what = f'the {self.spec.name} holds nothing, allowed: {self.spec.loads}'
            raise InputError(f'{what}; attach one with ~/attach_load')
        return self.machine.release(self.state), f'{mass:g} kg released at {self.time:g} s'

    # --- what a machine calls ----------------------------------------------------------------

    def add_output(self, kind: type, topic: str, settings: SimulatorParameters) -> Publisher:
        """Return a publisher of an output for each sample."""
        publisher = self.create_publisher(kind, topic, qos.stream(settings.latched))
        self.outputs.append(publisher)
        return publisher

    def is_needed(self, publisher: Publisher) -> bool:
        """Return whether messages have subscribers, or are kept for later subscribers."""
        return self._latched or publisher.get_subscription_count() > 0

    def publish_joints(self, stamp: Time) -> None:
        """Publish the joints of the present state."""
        joints = self.machine.joint_sample(self.state, self.command)
        message = JointState(
            name=joints.names,
            position=joints.positions,
            velocity=joints.velocities,
            effort=joints.efforts,
        )
        message.header.stamp = stamp
        message.header.frame_id = self.frame
        self._joints.publish(message)

    @functools.cached_property
    def actuators(self) -> list[str]:
        """Names in messages about oil, and in commands to valves."""
        return self.spec.actuators(self.described)

    @property
    def time(self) -> float:
        """Simulation time [s]."""
        return self.simulation.time

    @property
    def sample(self) -> int:
        """Number of the present sample."""
        return self.simulation.sample

    @property
    def state(self) -> State:
        """The machine's present state."""
        return self.simulation.state

    @property
    def command(self) -> Command:
        """The command that acts."""
        return self.simulation.command

    @property
    def drawn_every(self) -> int:
        """Number of samples from one drawing to the next."""
        rate: float = self.settings.publish_rate
        return max(1, round(rate / self._drawing_rate))

    # --- what the simulation calls -----------------------------------------------------------

    def publish_sample(self, nanoseconds: int) -> None:
        """Publish time, diagnostics, joints, drawing and outputs of the present state."""
        self._publish_clock(nanoseconds)
        if self.sample % max(1, round(self.settings.publish_rate)) == 0:
            self._report(nanoseconds)
        self.drawn = -1
        if self.is_needed(self._joints):
            self.publish_joints(stamp_of(nanoseconds))
        if self._is_drawn():
            self.publish_drawing(nanoseconds)
        header = header_at(nanoseconds, self.frame)
        if self.sample == 0:
            # After a reset a recording begins anew.
            self._told_load = math.nan
        self._publish_load(header)
        self.publish_own(header)
        # Last: in lockstep the answer to this may come before the next line runs.
        self._publish_hydraulics(header)

    def publish_again(self, nanoseconds: int) -> None:
        """Publish again what a command answers: in lockstep no answer has arrived."""
        header, answered = header_at(nanoseconds, self.frame), self.answered()
        if self._joints in answered:
            self.publish_joints(header.stamp)
        if not {self._joints, self._hydraulics}.issuperset(answered):
            self.publish_own(header)
        self._publish_hydraulics(header)

    def publish_paused(self, nanoseconds: int) -> None:
        """Publish time again, and the drawing for a viewer that comes during the pause."""
        self._publish_clock(nanoseconds)
        self.publish_drawing(nanoseconds)

    def _publish_load(self, header: Header) -> None:
        """Publish the mass of all loads, if it has changed; not where they are."""
        if self._loads is not None and (mass := self.carried()) != self._told_load:
            self._told_load = mass
            message = InertiaStamped(header=header)
            place = message.inertia.com
            message.inertia.m, place.x, place.y, place.z = mass, *(math.nan,) * 3
            self._loads.publish(message)

    def _publish_hydraulics(self, header: Header) -> None:
        """Publish cylinders and valves, for whoever listens."""
        if self._hydraulics is not None and self.is_needed(self._hydraulics):
            sample = self.machine.hydraulic_sample(self.state, self.command)
            self._hydraulics.publish(HydraulicState(header=header, **sample._asdict()))

    def _publish_clock(self, nanoseconds: int) -> None:
        """Publish simulation time, unless ``publish_clock`` is false."""
        if self._clock_publisher is not None:
            self._clock_publisher.publish(Clock(clock=stamp_of(nanoseconds)))

    def publish_drawing(self, nanoseconds: int) -> None:
        """Publish the drawing of the present state, unless that has been done."""
        if self._drawings and self._drawing_rate and self.drawn != self.sample:
            self.drawn = self.sample
            header = header_at(nanoseconds, self.frame)
            drawing = self.drawing(header)
            if not self._has_drawn:
                # Parts of a plant that ran here before.
                drawing.markers.insert(0, Marker(header=header, action=Marker.DELETEALL))
                self._has_drawn = True
            self._drawings.publish(drawing)

    def flush(self) -> None:
        """Wait until everything has been received, but not for long."""
        for publisher in (*self.outputs, *(p for p, _ in self.links)):
            publisher.wait_for_all_acked(Duration(seconds=_FLUSH_TIMEOUT))

    def set_period(self, period: float) -> None:
        """Tick every ``period`` seconds of wall time from now on."""
        self._timer.timer_period_ns = seconds_to_nanoseconds(period)
        self._timer.reset()

    def is_shut_down(self) -> bool:
        """Return whether the process was asked to end."""
        return not self.context.ok()

    def warn(self, text: str, interval: float = 1.0) -> None:
        """Warn, unless a warning that begins alike was written less than an interval [s] ago."""
        if self._throttle.lets(text, interval):
            self.get_logger().warning(text)

    def on_end(self) -> None:
        """End after the last sample."""
        self.set_period(PAUSED_PERIOD)
        self._finish.arrive()
        missing = self._finish.missing()
        waits = f'; waiting for {missing} other simulations' if missing else ''
        self.get_logger().info(f'finished at {self.time:g} s{waits}')
        self._end_after_others(time.monotonic())

    def command_topics(self) -> str:
        """Return the topic on which commands come."""
        return str(self._commands.topic_name)

    # --- start, ticks, end -------------------------------------------------------------------

    def _tick(self) -> None:
        """Begin, go on or end."""
        simulation, now = self.simulation, time.monotonic()
        if self.done.done():
            return
        if now - self._graph_checked > _GRAPH_PERIOD:
            self._graph_checked = now
            self._check_graph()
        if simulation.quitting:
            self._end()
        elif not simulation.started:
            if self._start.is_open():
                simulation.start()
                self._start.log_description()
        elif not simulation.finished:
            simulation.tick(now)
        elif now - self._end_tried > PAUSED_PERIOD:
            self._end_after_others(now)

    def _check_graph(self) -> None:
        """Warn of a second publisher of /clock, and of a node of the same name."""
        found = graph.duplicates(self, '' if self._clock_publisher is None else '/clock')
        if found and found != self._duplicates:
            self.get_logger().warning(found)
        self._duplicates = found

    def _report(self, nanoseconds: int) -> None:
        """Publish diagnostics."""
        incidents = self.simulation.incidents
        problems = [p for p in (self._duplicates, incidents.recent(time.monotonic())) if p]
        level = diagnostics.WARN if problems else diagnostics.OK
        values = {'time': self.time, 'sample': self.sample, **incidents.counts}
        text = '; '.join(problems) or 'running'
        self._diagnostics.publish(stamp_of(nanoseconds), level, text, values)

    def _is_drawn(self) -> bool:
        """Return whether a drawing is due at this sample and needed."""
        if not self._drawings or not self._drawing_rate:
            return False
        # The first one waits in the publisher for whoever comes later; a recorder needs them all,
        # also while it renews its subscription.
        return self.sample % self.drawn_every == 0 and (
            self.sample == 0
            or self.settings.listeners > 0
            or self._drawings.get_subscription_count() > 0
        )

    def _end_after_others(self, now: float) -> None:
        """End unless others still simulate, or work on what was simulated."""
        self._end_tried = now
        if not self._finish.missing() and not any(
            graph.is_subscriber(self, name, publisher) for publisher, name in self.watchers
        ):
            self._end()

    def _end(self) -> None:
        """End the process, unless a response is still to be sent: it is tried again."""
        if self.standard is not None and self.standard.answering:
            return
        if self.simulation.error is not None:
            self.done.set_exception(self.simulation.error)
        else:
            self.done.set_result(None)

    # --- from outside ------------------------------------------------------------------------

    def _on_command(self, message: Any) -> None:
        """Take a command; an invalid one is refused."""
        if (senders := self._commands.get_publisher_count()) > 1:
            self.warn(
                f'{senders} senders command the {self.spec.name} on {self._commands.topic_name}:'
                f' start with {self.spec.by_hand} to send commands by hand',
                5.0,
            )
        try:
            command = self.command_of(message)
        except InputError as error:
            self._refuse(str(error))
            return
        nanoseconds = nanoseconds_of(message.header.stamp)
        if refusal := self.simulation.accept(command, nanoseconds):
            self._refuse(f'its stamp is {nanoseconds * 1e-9:.6f} s, but {refusal}')

    def _refuse(self, reason: str) -> None:
        """Count a command that is ignored, and warn why."""
        count = self.simulation.incidents.add(REFUSED, time.monotonic())
        self.warn(f'command on {self.command_topics()} ignored ({count} so far): {reason}')

    def _on_parameters(self, parameters: list[Parameter]) -> None:
        """Follow parameters that were set at run time."""
        names = run_time_names(SimulatorParameters)
        changes = {p.name: p.value for p in parameters if p.name in names}
        if changes:
            self.settings = self.settings.replace(**changes)
            self.simulation.set_speed(self.settings)

    def _on_service(
        self, name: str, _: Trigger.Request, response: Trigger.Response
    ) -> Trigger.Response:
        """Do what the service of a name asks for; the response says since when, or why not."""
        method, text = _SERVICES[name]
        before = self.time
        if self.simulation.ended and name != 'reset':
            refusal = 'the simulation has ended'
        else:
            refusal = getattr(self.simulation, method)() or ''
        now = before if name == 'resume' else self.time
        response.success, response.message = not refusal, refusal or f'{text} {now:g} s'
        return response

    def _on_load(self, change: Callable[[Any], Any], request: Any, response: Any) -> Any:
        """Change the loads, and return the response that says so."""
        try:
            self.simulation.state, response.message = change(request)
        except InputError as error:
            response.message = str(error)
            return response
        response.success = True
        if self.simulation.started:
            self._publish_load(header_at(seconds_to_nanoseconds(self.time), self.frame))
        return response


@dataclasses.dataclass(frozen=True)
class DeclaredParameters(CycleParameters, MachineParameters):
    """Parameters of a plant that is made of a declaration."""


def declared_plant() -> Node:
    """Return the plant of the machine in whose package the running console script is."""
    package = Path(sys.argv[0]).absolute().parent.name
    machines = entry_points(group=MACHINE_GROUP)

    class DeclaredPlantNode(PlantNode[Any, Any]):
        spec = next(one.load() for one in machines if one.module.partition('.')[0] == package)
        settings_type = DeclaredParameters

    return DeclaredPlantNode()
