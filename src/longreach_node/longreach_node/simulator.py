"""
The node that drives any Machine through time.

Simulation time is a count of steps. The node advances sample by sample; a sample is a whole number
of steps, and all that is published carries the sample's time.

Three ways to run, chosen by parameters:

real time (``real_time_factor`` > 0)
    On each tick the simulation advances to the present. What it cannot make up for is dropped
    from the schedule and reported as an overrun, so that it never spirals.
as fast as possible (``real_time_factor`` = 0)
    One sample after the other; commands act when they come.
lockstep (``lockstep`` = true, with either factor)
    After the sample of cycle k the node waits for the command with the same stamp. A closed loop
    is then deterministic and equal to the library's own simulation. A command that does not come
    within ``lockstep_timeout`` ends the node with an error.
"""

from __future__ import annotations

import dataclasses
import math
import time
from typing import Any, Generic, TypeVar

from builtin_interfaces.msg import Time
from rclpy.duration import Duration
from rclpy.event_handler import PublisherEventCallbacks
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.subscription import Subscription
from rclpy.task import Future
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.machine import Machine, step_time
from longreach_dynamics.parameters import quantity
from longreach_node import diagnostics, qos
from longreach_node.frames import FrameParameters, frame_name
from longreach_node.stamps import seconds_to_nanoseconds, stamp_of

__all__ = ['SimulatorNode', 'SimulatorParameters']

State = TypeVar('State')
Command = TypeVar('Command')

# A tick that finds more than this left to do drops it [s of wall time].
_BACKLOG = 0.2
# In lockstep a sample is sent again when no answer came for this long [s of wall time]: the first
# one, which the other side may not have been able to hear yet, and later ones. Between two turns
# no more than that counts: a node that did not run itself has not listened either.
_ASK_AGAIN_FIRST, _ASK_AGAIN, _LONGEST_TURN = 1.0, 3.0, 0.1
# While paused, time is told this often [s of wall time].
_PAUSED_CLOCK = 0.05
# As fast as possible: so long at a time [s of wall time]. After so many samples, half of what
# publishers keep for listeners, these are waited for, for so long [s]: a recorder that the
# scheduler has set aside shall miss nothing.
_RUSH = 2e-3
_UNHEARD = 500
_PATIENCE = 2.0


@dataclasses.dataclass(frozen=True)
class SimulatorParameters(FrameParameters):
    """How a simulator node runs; a machine's node adds its own fields."""

    step: float = quantity('length of a simulation step', 's', above=0.0, default=0.01)
    publish_rate: float = quantity(
        'samples per second of simulation', 'Hz', above=0.0, at_most=1e5, default=100.0
    )
    real_time_factor: float = quantity(
        'speed against real time; 0 is as fast as possible',
        at_least=0.0,
        at_most=1e4,
        default=1.0,
    )
    lockstep: bool = quantity('wait for the command to each sample', default=False)
    lockstep_timeout: float = quantity(
        'longest wait for a command in lockstep', 's', above=0.0, default=10.0
    )
    start_timeout: float = quantity(
        'longest wait for the others before the first sample', 's', at_least=0.0, default=10.0
    )
    listeners: int = quantity(
        'subscribers of each output to wait for, such as a recorder', at_least=0, default=0
    )
    command_timeout: float = quantity(
        'time without a command after which the safe command acts, in simulation time; 0 is never',
        's',
        at_least=0.0,
        default=0.5,
    )
    duration: float = quantity('end of the simulation; 0 is never', 's', at_least=0.0, default=0.0)
    start_paused: bool = quantity('wait for ~/resume or ~/step', default=False)
    publish_clock: bool = quantity('publish simulation time on /clock', default=True)

    def check(self) -> None:
        """Raise InputError when samples or the end do not fall on steps."""
        super().check()
        if 0.0 < self.real_time_factor < 1e-4:
            raise InputError(
                f'real_time_factor = {self.real_time_factor}, allowed: 0, or [0.0001, 10000]'
            )
        if self.publish_rate and self.step:
            _whole(1.0 / (self.publish_rate * self.step), '1 / (publish_rate step)', at_least=1)
        if self.publish_rate:
            _whole(self.duration * self.publish_rate, 'duration times publish_rate', at_least=0)

    @property
    def steps_per_sample(self) -> int:
        """Number of steps from one sample to the next."""
        return round(1.0 / (self.publish_rate * self.step))

    @property
    def latched(self) -> bool:
        """
        Whether outputs are kept for those who are discovered late.

        So it is wherever nothing of a run may be missing: in lockstep, as fast as possible, and
        where listeners are waited for.
        """
        return self.lockstep or self.real_time_factor == 0.0 or self.listeners > 0


def _whole(value: float, what: str, at_least: int) -> None:
    """Raise InputError for what is no whole number."""
    whole = math.isfinite(value) and abs(value - round(value)) <= 1e-6 * max(1.0, value)
    if not whole or round(value) < at_least:
        raise InputError(f'{what} = {value:g}, allowed: whole numbers from {at_least} on')


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

    def start(self, machine: Machine[State, Command], parameters: SimulatorParameters) -> None:
        """Begin to run, once everything is created; the last call of a subclass's constructor."""
        self.machine = machine
        self.settings = parameters
        self.frame = frame_name(self, parameters, self.root_frame)
        self.state = machine.initial_state()
        self.command = self.initial_command
        self.paused = parameters.start_paused
        self.sample = 0
        self.overruns = 0
        self._command_sample = 0
        self._answered = False
        self._listened = self._turned = 0.0
        self._started = self._finished = False
        self._born = time.monotonic()
        self._joints = self.create_publisher(
            JointState, 'joint_states', qos.stream(parameters.latched)
        )
        self.outputs.append(self._joints)
        self._clock_publisher = (
            self.create_publisher(Clock, '/clock', qos.CLOCK) if parameters.publish_clock else None
        )
        self._diagnostics = diagnostics.Diagnostics(self, 'simulation')
        self.outputs.append(self._diagnostics.publisher)
        for service, callback in (
            ('pause', self._pause),
            ('resume', self._resume),
            ('reset', self._reset),
            ('step', self._step),
        ):
            self.create_service(Trigger, f'~/{service}', callback)
        factor = parameters.real_time_factor
        period = 1e-3 if factor == 0.0 else max(1e-3, 1.0 / (parameters.publish_rate * factor))
        if parameters.lockstep and factor == 0.0:
            # Each answer drives the loop; the tick only watches the deadline.
            period = 0.05
        self._period = period
        self._tick_timer = self.create_timer(period, self._tick)
        self._start_timer = self.create_timer(0.02, self._try_to_start)
        self._tick_timer.cancel()

    def create_publisher(self, *arguments: Any, **named: Any) -> Publisher:
        """
        Create a publisher that is not asked for QoS events at each turn.

        They would take a quarter of the time of a plant in real time. Who subscribes with another
        QoS reads about it at his side.
        """
        named.setdefault('event_callbacks', PublisherEventCallbacks(use_default_callbacks=False))
        return super().create_publisher(*arguments, **named)

    # --- what a subclass provides or calls ---------------------------------------------------

    def publish_outputs(self, nanoseconds: int) -> None:
        """
        Publish the machine's own messages for the present state, stamped with its time.

        Called again for the same sample when in lockstep no answer comes.
        """
        raise NotImplementedError

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

    def accept(self, command: Command, nanoseconds: int) -> None:
        """
        Take a command.

        Parameters
        ----------
        command : Command
        nanoseconds : int
            Stamp of the sample that it answers. In lockstep only an answer to the present sample
            counts; otherwise a command older than the one in force is dropped, and one for a
            sample that was not published yet, such as an answer from before a reset. There a stamp
            of zero, as of a message sent by hand, stands for now.
        """
        sample = round(nanoseconds * 1e-9 * self.settings.publish_rate)
        if nanoseconds == 0 and not self.settings.lockstep:
            sample = self.sample
        if self.settings.lockstep:
            if sample != self.sample or self._answered or not self._started:
                self.get_logger().warn(
                    f'command for {nanoseconds * 1e-9:.6f} s ignored: the present sample is of'
                    f' {self.time:.6f} s',
                    throttle_duration_sec=1.0,
                )
                return
            self.command = command
            self._answered = True
            if self.settings.real_time_factor == 0.0:
                self._go_on()
        elif self._command_sample <= sample <= self.sample:
            self.command = command
            self._command_sample = sample

    def warn_of_others(self, commands: Subscription, what: str, advice: str) -> None:
        """
        Warn when several nodes send commands, which then act in turn.

        Parameters
        ----------
        commands : Subscription
        what : str
            What they command, such as ``the valves``.
        advice : str
            What to do about it.
        """
        senders = commands.get_publisher_count()
        if senders > 1:
            self.get_logger().warn(
                f'{senders} senders command {what} on {commands.topic_name}: {advice}',
                throttle_duration_sec=5.0,
            )

    def is_looked_at(self, publisher: Publisher, rate: float) -> bool:
        """
        Tell whether it is time for a drawing at this sample, and somebody looks.

        Parameters
        ----------
        publisher : Publisher
        rate : float
            Drawings per second of simulation; 0: none.
        """
        every = max(1, round(self.settings.publish_rate / rate)) if rate else 0
        if not every or self.sample % every:
            return False
        # The first one waits in the publisher for whoever comes later.
        return self.sample == 0 or publisher.get_subscription_count() > 0

    @property
    def time(self) -> float:
        """Simulation time [s]."""
        return step_time(self.sample * self.settings.steps_per_sample, self.settings.step)

    # --- start -------------------------------------------------------------------------------

    def _try_to_start(self) -> None:
        """Publish the first sample once everyone who must hear it is connected."""
        waited = time.monotonic() - self._born
        missing = self._missing()
        if missing and waited < self.settings.start_timeout:
            return
        if missing and self.settings.lockstep:
            raise LongreachError(
                f'lockstep cannot begin: after {waited:.1f} s there is no {missing}. Start the'
                ' controller, in the same namespace and ROS_DOMAIN_ID'
            )
        if missing:
            self.get_logger().warn(f'starting without {missing} after {waited:.1f} s')
        self.destroy_timer(self._start_timer)
        self._started = True
        self._publish()
        self._restart_schedule()
        self._tick_timer.reset()

    def _missing(self) -> str:
        """Return what is not connected yet, or nothing."""
        n = self.settings.listeners
        for publisher, subscription in self.links:
            if publisher.get_subscription_count() < n + 1:
                return f'subscriber of {publisher.topic_name}'
            if subscription.get_publisher_count() < 1:
                return f'publisher of {subscription.topic_name}'
        for publisher in self.outputs:
            if publisher.get_subscription_count() < n:
                return f'listener to {publisher.topic_name}'
        for publisher, name in self.watchers:
            if not self._hears(name, publisher):
                return f'{name} that listens to {publisher.topic_name}'
        return ''

    def _hears(self, name: str, publisher: Publisher) -> bool:
        """Tell whether a node of some name listens to a publisher."""
        known = self.get_subscriptions_info_by_topic(publisher.topic_name)
        return any(other.node_name == name for other in known)

    # --- running -----------------------------------------------------------------------------

    def _restart_schedule(self) -> None:
        """Let simulation time and wall time meet here and now."""
        self._origin = time.monotonic()
        self._origin_sample = self.sample
        self._waiting_since = self._origin

    def _due(self) -> int:
        """Return how many samples real time is ahead of the simulation."""
        elapsed = (time.monotonic() - self._origin) * self.settings.real_time_factor
        target = self._origin_sample + int(elapsed * self.settings.publish_rate)
        return target - self.sample

    def _tick(self) -> None:
        """Advance as far as the way of running allows."""
        if self.done.done():
            return
        if self._finished:
            self._end_after_watchers()
        elif self.paused:
            # Time stands still, and those who follow it see that the simulation lives.
            if time.monotonic() - self._waiting_since > _PAUSED_CLOCK:
                self._publish_clock()
                self._waiting_since = time.monotonic()
        elif self.settings.lockstep and not self._answered:
            self._check_deadline()
        elif self.settings.real_time_factor == 0.0:
            if not self.settings.lockstep:
                self._rush()
        elif self.settings.lockstep:
            # Lockstep in real time: an answer lets time pass, one sample at most.
            if self._due() > 0:
                self._go_on()
        else:
            self._catch_up()

    def _rush(self) -> None:
        """Advance as fast as possible, with pauses in which commands and services come through."""
        begun = time.monotonic()
        while time.monotonic() - begun < _RUSH and not (self.paused or self._finished):
            self._go_on()
            if self.sample % _UNHEARD == 0:
                self._wait_for_listeners(_PATIENCE)

    def _catch_up(self) -> None:
        """Advance to the present, but not for longer than the backlog that is worth making up."""
        begun = time.monotonic()
        while self._due() > 0 and not self._finished:
            if time.monotonic() - begun > _BACKLOG or self._late() > _BACKLOG:
                self.overruns += 1
                self.get_logger().warn(
                    f'overrun {self.overruns}: {self._late():.3f} s behind real time, dropped from'
                    ' the schedule; use a lower real_time_factor or a larger step',
                    throttle_duration_sec=1.0,
                )
                self._restart_schedule()
                return
            self._go_on()

    def _late(self) -> float:
        """Return how far the simulation is behind real time [s of wall time]."""
        return self._due() / (self.settings.publish_rate * self.settings.real_time_factor)

    def _check_deadline(self) -> None:
        """Ask again for an answer that does not come; end the node when it is overdue."""
        now = time.monotonic()
        waited = now - self._waiting_since
        self._listened += min(now - self._turned, max(_LONGEST_TURN, 2.0 * self._period))
        self._turned = now
        if self._listened > (_ASK_AGAIN if self.sample else _ASK_AGAIN_FIRST):
            # Discovery is not simultaneous on both sides: the sample, or the answer, may have
            # been sent before the other side could hear it.
            self._listened = 0.0
            self.publish_outputs(seconds_to_nanoseconds(self.time))
        limit = self.settings.lockstep_timeout
        if self.sample == 0:
            # The first answer may have to wait for discovery, too.
            limit += self.settings.start_timeout
        if waited > limit:
            topics = ', '.join(s.topic_name for _, s in self.links)
            raise LongreachError(
                f'no command on {topics} with the stamp {self.time:.9f} s within'
                f' {limit:g} s (lockstep_timeout). Does the controller'
                ' still run, and with the same sample time?'
            )

    def _go_on(self) -> None:
        """Advance to the next sample and publish it, or end after the last one."""
        if self.paused or self._finished:
            return
        parameters = self.settings
        if parameters.duration and self.time >= parameters.duration - 0.5 * parameters.step:
            self._finish()
            return
        if not parameters.lockstep and parameters.command_timeout:
            silent = (self.sample - self._command_sample) / parameters.publish_rate
            commanded = self.command not in (self.safe_command, self.initial_command)
            if silent > parameters.command_timeout and commanded:
                self.get_logger().warn(
                    f'no command for {silent:.2f} s (command_timeout ='
                    f' {parameters.command_timeout:g} s): {self.safe_command} acts',
                    throttle_duration_sec=1.0,
                )
                self.command = self.safe_command
        first = self.sample * parameters.steps_per_sample
        for count in range(first, first + parameters.steps_per_sample):
            self.state = self.machine.advance(
                self.state, self.command, step_time(count, parameters.step), parameters.step
            )
        self.sample += 1
        self._publish()

    def _publish(self) -> None:
        """Publish everything about the present sample."""
        nanoseconds = seconds_to_nanoseconds(self.time)
        stamp = stamp_of(nanoseconds)
        self._answered = False
        self._waiting_since = self._turned = time.monotonic()
        self._listened = 0.0
        self._publish_clock()
        self.publish_joints(stamp)
        if self.sample % max(1, round(self.settings.publish_rate)) == 0:
            level = diagnostics.WARN if self.overruns else diagnostics.OK
            text = f'{self.overruns} overruns' if self.overruns else 'running'
            values = {'time': self.time, 'sample': self.sample, 'overruns': self.overruns}
            self._diagnostics.publish(stamp, level, text, values)
        # Last: in lockstep the answer to this may come before the next line runs.
        self.publish_outputs(nanoseconds)

    def _publish_clock(self) -> None:
        """Publish simulation time, where that is asked for."""
        if self._clock_publisher is not None:
            self._clock_publisher.publish(Clock(clock=stamp_of(seconds_to_nanoseconds(self.time))))

    def _finish(self) -> None:
        """End after the last sample, once everybody has everything."""
        self._finished = True
        self._wait_for_listeners(_PATIENCE)
        self.get_logger().info(f'finished at {self.time:g} s')
        self._end_after_watchers()

    def _end_after_watchers(self) -> None:
        """End unless somebody still works on what was simulated."""
        now = time.monotonic()
        if self.watchers and now - self._waiting_since < _PAUSED_CLOCK:
            return
        self._waiting_since = now
        if not any(self._hears(name, publisher) for publisher, name in self.watchers):
            self.done.set_result(None)

    def _wait_for_listeners(self, seconds: float) -> None:
        """Wait until everything has been heard, but no longer than this for each topic [s]."""
        for publisher in (*self.outputs, *(p for p, _ in self.links)):
            publisher.wait_for_all_acked(Duration(seconds=seconds))

    # --- services ----------------------------------------------------------------------------

    def _pause(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Stand still."""
        self.paused = True
        return self._reply(response, f'paused at {self.time:g} s')

    def _resume(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Go on from here."""
        self.paused = False
        self._resume_loop()
        return self._reply(response, f'running from {self.time:g} s')

    def _resume_loop(self) -> None:
        """Let the schedule begin anew, and a loop that waits for nobody go on."""
        self._restart_schedule()
        fastest = self.settings.lockstep and self.settings.real_time_factor == 0.0
        if fastest and self._started and self._answered:
            self._go_on()

    def _step(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Advance by one sample while paused."""
        if not self.paused or not self._started:
            response.message = 'step needs a simulation that has begun and is paused; call ~/pause'
            return response
        if self.settings.lockstep and not self._answered:
            response.message = f'the command to the sample of {self.time:g} s has not come yet'
            return response
        self.paused = False
        self._go_on()
        self.paused = True
        return self._reply(response, f'at {self.time:g} s')

    def _reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Go back to the initial state at time 0."""
        self.state = self.machine.initial_state()
        self.command = self.initial_command
        self.sample = 0
        self._command_sample = 0
        self._finished = self.done.done()
        if self._started:
            self._publish()
            self._restart_schedule()
        return self._reply(response, 'at 0 s')

    @staticmethod
    def _reply(response: Trigger.Response, text: str) -> Trigger.Response:
        """Return a successful answer."""
        response.success = True
        response.message = text
        return response
