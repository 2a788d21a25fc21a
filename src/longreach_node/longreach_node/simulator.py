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
must not wait for it.

The part without ROS is in :mod:`~longreach_node.simulation`; start, end and the common topics of
all machines are in :mod:`~longreach_node.simulator_host`.
"""

from __future__ import annotations

import time
from typing import Any, Generic, TypeVar

from builtin_interfaces.msg import Time
from rclpy.event_handler import PublisherEventCallbacks
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.subscription import Subscription
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_msgs.msg import Header, String
from visualization_msgs.msg import MarkerArray

from longreach_dynamics.errors import InputError
from longreach_dynamics.machine import Machine
from longreach_node import qos
from longreach_node.frames import frame_name, header_at
from longreach_node.parameters import run_time_names
from longreach_node.services import add_services
from longreach_node.simulation import REFUSED, Simulation
from longreach_node.simulation_interfaces import add_standard_services
from longreach_node.simulator_host import SimulatorHost
from longreach_node.simulator_parameters import SimulatorParameters
from longreach_node.stamps import nanoseconds_of, stamp_of

State = TypeVar('State')
Command = TypeVar('Command')


class SimulatorNode(Node, Generic[State, Command]):
    """
    A machine as a node.

    A subclass creates its subscriptions, calls :meth:`accept` with each command, adds its own
    publishers to ``outputs`` and publishes in :meth:`publish_outputs`. It names in ``links`` what
    must be connected before the first sample: (publisher, subscription) of the closed loop. In
    ``watchers`` it names nodes that have to hear it from the first sample on, and may take longer
    than the simulation: (publisher, name of the node). The node ends when these have ended.

    Parameters
    ----------
    name : str
        The node's name.
    safe_command : Command
        Acts before the first command and after ``command_timeout``. A subclass that wants another
        one before the first sets ``initial_command``.
    """

    # The root of the machine's robot description.
    root_frame = 'world'

    def __init__(self, name: str, safe_command: Command) -> None:
        super().__init__(name)
        self.done = Future()
        self.safe_command = safe_command
        self.initial_command = safe_command
        self.links: list[tuple[Publisher, Subscription]] = []
        self.outputs: list[Publisher] = []
        self.watchers: list[tuple[Publisher, str]] = []
        self._command_topic = ''
        self._drawings: Publisher | None = None
        self._drawing_rate = 0.0
        # The present sample, when it was drawn.
        self.drawn = -1

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
        self.host = SimulatorHost(self, parameters, parameters.description(machine))
        self.simulation = Simulation(
            machine,
            parameters,
            self.initial_command,
            self.safe_command,
            self.host,
            self._command_topics,
        )
        add_services(self)
        self.standard = add_standard_services(self)
        self.add_post_set_parameters_callback(self._on_parameters)

    def create_publisher(self, *arguments: Any, **named: Any) -> Publisher:
        """
        Create a publisher without QoS events.

        Polling them would take a quarter of the time of a plant in real time. An incompatible
        subscriber reports the problem in its own log.
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
        Publish :meth:`drawing` on a topic.

        Parameters
        ----------
        topic : str
        rate : float
            Drawings per second of simulation, while there is a subscriber; 0: never.
        latched : bool
            Keep them for a recorder, as the samples.
        """
        self._drawings = self.create_publisher(MarkerArray, topic, qos.drawings(latched))
        self._drawing_rate = rate
        self.outputs.append(self._drawings)

    def accept(self, command: Command, nanoseconds: int) -> None:
        """
        Take a command; one that is ignored is counted, and a warning says why.

        Parameters
        ----------
        command : Command
        nanoseconds : int
            Stamp of the sample that it answers. In lockstep only the first answer to the present
            sample counts. Otherwise a command older than the one in force is ignored, and one for
            a sample that was not published yet; a stamp of zero, as of a message sent by hand,
            means now.
        """
        refusal = self.simulation.accept(command, nanoseconds)
        if refusal:
            self.refuse(f'its stamp is {nanoseconds * 1e-9:.6f} s, but {refusal}')

    def refuse(self, reason: str) -> None:
        """Count a command that is ignored, and warn why."""
        count = self.simulation.incidents.add(REFUSED, time.monotonic())
        self.host.warn(f'command on {self._command_topics()} ignored ({count} so far): {reason}')

    def take_commands(self, message: type, topic: str, what: str, advice: str) -> None:
        """
        Take commands, which :meth:`command_of` reads, from a topic.

        Of several nodes that send commands the latest acts, with a warning.

        Parameters
        ----------
        message : type of message
            With a header, whose stamp is that of the sample that it answers.
        topic : str
        what : str
            The commanded part, such as ``the valves``.
        advice : str
            Remedy for several senders, for the warning.
        """
        self._commanded = f'{what} on {{}}: {advice}'
        self._commands: Subscription = self.create_subscription(
            message, topic, self._on_command, qos.STREAM
        )
        self._command_topic = self._commands.topic_name

    def _on_command(self, message: Any) -> None:
        """Take a command; an invalid one is refused."""
        if (senders := self._commands.get_publisher_count()) > 1:
            what = self._commanded.format(self._command_topic)
            self.host.warn(f'{senders} senders command {what}', 5.0)
        try:
            command = self.command_of(message)
        except InputError as error:
            self.refuse(str(error))
            return
        self.accept(command, nanoseconds_of(message.header.stamp))

    def is_heard(self, publisher: Publisher) -> bool:
        """Return whether a message is needed: for a subscriber, or kept for later subscribers."""
        return self._latched or publisher.get_subscription_count() > 0

    def publish_drawing(self, nanoseconds: int) -> None:
        """Publish the drawing of the present state, unless that has been done."""
        if self._drawings and self._drawing_rate and self.drawn != self.sample:
            self.drawn = self.sample
            self._drawings.publish(self.drawing(header_at(nanoseconds, self.frame)))

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

    def publish_sample(self, nanoseconds: int) -> None:
        """Publish joints, drawing and outputs of the present state."""
        self.drawn = -1
        if self.is_heard(self._joints):
            self.publish_joints(stamp_of(nanoseconds))
        if self._is_drawn():
            self.publish_drawing(nanoseconds)
        # Last: in lockstep the answer to this may come before the next line runs.
        self.publish_outputs(nanoseconds)

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
        return self.simulation.run.time

    @property
    def sample(self) -> int:
        """Number of the present sample."""
        return self.simulation.run.sample

    @property
    def state(self) -> State:
        """The machine's present state; a subclass may replace it."""
        return self.simulation.run.state

    @state.setter
    def state(self, state: State) -> None:
        self.simulation.run.state = state

    @property
    def command(self) -> Command:
        """The command that acts."""
        return self.simulation.run.command

    @property
    def paused(self) -> bool:
        """Whether time stands still."""
        return self.simulation.paused

    @paused.setter
    def paused(self, paused: bool) -> None:
        self.simulation.paused = paused

    # --- from outside ------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Advance by one sample, unless paused."""
        self.simulation.go_on()

    def reset(self, state: bool = True, time: bool = True) -> None:
        """Go back to the initial state, or to time 0, or to both."""
        self.simulation.reset(state, time)

    def _on_parameters(self, parameters: list[Parameter]) -> None:
        """Follow parameters that were set at run time."""
        names = run_time_names(SimulatorParameters)
        changes = {p.name: p.value for p in parameters if p.name in names}
        if changes:
            self.settings = self.settings.replace(**changes)
            self.simulation.set_speed(self.settings)

    def _command_topics(self) -> str:
        """Return the topics on which commands come."""
        return self._command_topic or ', '.join(s.topic_name for _, s in self.links)
