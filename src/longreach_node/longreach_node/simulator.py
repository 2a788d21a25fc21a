"""
The node that drives any Machine through time.

Simulation time is a count of steps. The node advances sample by sample; a sample is a whole number
of steps, and all that is published carries the sample's time.

Three ways to run, chosen by parameters:

real time (``real_time_factor`` > 0)
    On each tick the simulation advances to the present. A delay that it cannot make up for is
    dropped from the schedule and reported as an overrun.
as fast as possible (``real_time_factor`` = 0)
    One sample after the other; commands act when they come.
lockstep (``lockstep`` = true, with either factor)
    After the sample of cycle k the node waits for the command with the same stamp. A closed loop
    is then deterministic and equal to the library's own simulation. A command that does not come
    within ``lockstep_timeout`` ends the node with an error.

The node ticks by the steady clock, whatever ``use_sim_time`` says: it makes simulation time, and
must not wait for it. When and by what the machine advances is in
:mod:`~longreach_node.simulation`; here is what a ROS graph sees of it.
"""

from __future__ import annotations

import functools
import time
from typing import Any, Generic, TypeVar

from builtin_interfaces.msg import Time
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

from longreach_dynamics.errors import InputError
from longreach_dynamics.machine import Machine
from longreach_node import diagnostics, graph, qos
from longreach_node.clock import steady_clock
from longreach_node.frames import frame_name, header_at
from longreach_node.parameters import run_time_names
from longreach_node.simulation import PAUSED_PERIOD, REFUSED, Simulation
from longreach_node.simulator_parameters import SimulatorParameters
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


class SimulatorNode(Node, Generic[State, Command]):
    """
    A machine as a node.

    A subclass takes commands with :meth:`take_commands`, adds its own publishers to ``outputs``,
    publishes in :meth:`publish_outputs`, and calls :meth:`start` at the end of its constructor.
    ``safe_command`` acts after ``command_timeout``, and before the first command unless the
    subclass sets ``initial_command``.

    Attributes
    ----------
    root_frame : str
        The root of the machine's robot description.
    links : list of (Publisher, Subscription)
        Topics of the closed loop, which must be connected before the first sample.
    outputs : list of Publisher
        Those that ``listeners`` must subscribe to.
    watchers : list of (Publisher, str)
        Other nodes by their names that must subscribe to a publisher from the first sample on, and
        may take longer than the simulation: the node ends when these have ended.
    simulation : Simulation
        From :meth:`start` on.
    drawn : int
        The present sample, when it was drawn; otherwise -1.
    done : Future
        Set when the process is to end, with an error where it failed.
    """

    root_frame = 'world'

    def __init__(self, name: str, safe_command: Command) -> None:
        super().__init__(name)
        self.done = Future()
        self.safe_command = safe_command
        self.initial_command = safe_command
        self.links: list[tuple[Publisher, Subscription]] = []
        self.outputs: list[Publisher] = []
        self.watchers: list[tuple[Publisher, str]] = []
        self.drawn = -1
        self._has_drawn = False
        self._command_topic = ''
        self._drawings: Publisher | None = None
        self._drawing_rate = 0.0
        self._duplicates = ''
        self._graph_checked = self._end_tried = 0.0
        self._throttle = diagnostics.Throttle()

    def start(self, machine: Machine[State, Command], parameters: SimulatorParameters) -> None:
        """Begin to run, once everything is created; the last call of a subclass's constructor."""
        self.machine = machine
        self.settings = parameters
        # As the publishers were made: it does not change with real_time_factor.
        self._latched = parameters.latched
        self.frame = frame_name(self, parameters, self.root_frame)
        self._joints = self.create_publisher(
            JointState, 'joint_states', qos.stream(parameters.latched)
        )
        self.outputs.append(self._joints)
        if description := self.robot_description(frame_name(self, parameters, '')):
            # Kept by the publisher for viewers and recorders that come later.
            self._description = self.create_publisher(String, 'robot_description', qos.VISUAL)
            self._description.publish(String(data=description))
        self._start = graph.StartBarrier(self, parameters, parameters.description(machine))
        self._finish = graph.FinishBarrier(self, parameters.companions)
        self._clock_publisher = (
            self.create_publisher(Clock, '/clock', qos.CLOCK) if parameters.publish_clock else None
        )
        self._diagnostics = diagnostics.Diagnostics(self, 'simulation')
        self.outputs.append(self._diagnostics.publisher)
        self._timer = self.create_timer(_START_PERIOD, self._tick, clock=steady_clock())
        self.simulation = Simulation(
            machine, parameters, self.initial_command, self.safe_command, self
        )
        for name in _SERVICES:
            callback: Any = functools.partial(self._on_service, name)
            self.create_service(Trigger, f'~/{name}', callback)
        self.standard = add_standard_services(self, self.simulation)
        self.add_post_set_parameters_callback(self._on_parameters)

    def create_publisher(self, *arguments: Any, **named: Any) -> Publisher:
        """
        Create a publisher without QoS events, whose polling takes a quarter of a plant's time.

        An incompatible subscriber reports the problem in its own log.
        """
        named.setdefault('event_callbacks', PublisherEventCallbacks(use_default_callbacks=False))
        return super().create_publisher(*arguments, **named)

    # --- what a subclass provides ------------------------------------------------------------

    def robot_description(self, prefix: str) -> str:  # noqa: ARG002
        """Return the URDF, its frame names with a prefix, to publish; empty for none, as here."""
        return ''

    def command_of(self, message: Any) -> Command:
        """Return the command of a message; InputError for one that is refused."""
        raise NotImplementedError

    def publish_outputs(self, nanoseconds: int) -> None:
        """Publish the machine's own messages for the present state, stamped; none here."""

    def publish_again(self, nanoseconds: int) -> None:
        """Publish the outputs again: in lockstep no answer to this sample has arrived."""
        self.publish_outputs(nanoseconds)

    def drawing(self, header: Header) -> MarkerArray:
        """Return the markers that show the present state; needed with :meth:`draw_on`."""
        raise NotImplementedError

    # --- what a subclass calls ---------------------------------------------------------------

    def draw_on(self, topic: str, rate: float, latched: bool) -> None:
        """
        Publish :meth:`drawing` on a topic, at a rate per second of simulation, for subscribers.

        A rate of 0: never. ``latched``: kept for a recorder, as the samples.
        """
        self._drawings = self.create_publisher(MarkerArray, topic, qos.drawings(latched))
        self._drawing_rate = rate
        self.outputs.append(self._drawings)

    def take_commands(self, message: type, topic: str, what: str, advice: str) -> None:
        """
        Take commands, which :meth:`command_of` reads, from a topic; the latest sender acts.

        The message has a header, whose stamp is that of the sample that it answers. ``what`` is
        the commanded part, such as ``the valves``, and ``advice`` the remedy for several senders,
        for the warning.
        """
        self._commanded = f'{what} on {{}}: {advice}'
        self._commands: Subscription = self.create_subscription(
            message, topic, self._on_command, qos.STREAM
        )
        self._command_topic = self._commands.topic_name

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
        """The machine's present state; a subclass may replace it."""
        return self.simulation.state

    @state.setter
    def state(self, state: State) -> None:
        self.simulation.state = state

    @property
    def command(self) -> Command:
        """The command that acts."""
        return self.simulation.command

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
        # Last: in lockstep the answer to this may come before the next line runs.
        self.publish_outputs(nanoseconds)

    def publish_paused(self, nanoseconds: int) -> None:
        """Publish time again, and the drawing for a viewer that comes during the pause."""
        self._publish_clock(nanoseconds)
        self.publish_drawing(nanoseconds)

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
        """Return the topics on which commands come."""
        return self._command_topic or ', '.join(s.topic_name for _, s in self.links)

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
            connections = (self.links, self.outputs, self.watchers, self.settings.listeners)
            if self._start.is_open(graph.missing_connection(self, *connections)):
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
        every = max(1, round(self.settings.publish_rate / self._drawing_rate))
        # The first one waits in the publisher for whoever comes later; a recorder needs them all,
        # also while it renews its subscription.
        return self.sample % every == 0 and (
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
            what = self._commanded.format(self._command_topic)
            self.warn(f'{senders} senders command {what}', 5.0)
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
