"""
Base of nodes that answer samples: ``joint_states`` and, where there is oil, ``hydraulics``.

A cycle runs for each stamp for which both have arrived. Time is that of the stamps, so that in
lockstep the commands are those of the library. Missing, late and duplicate samples are handled in
:mod:`longreach_node.samples`.
"""

from __future__ import annotations

import functools
import time
from typing import Any, Generic, Literal, TypeVar

from longreach_msgs.msg import HydraulicState, ValveCommand
from rclpy.node import Node
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState

from longreach_dynamics.errors import LongreachError
from longreach_node import diagnostics, qos
from longreach_node.clock import steady_clock
from longreach_node.diagnostics import Incidents
from longreach_node.samples import Sample, SampleStream
from longreach_node.stamps import nanoseconds_of, stamp_of

Command = TypeVar('Command')
Level = Literal['ok', 'warn', 'error']

# Silence that is worth a line in the log [s of wall time], and how often it is looked for.
_SILENCE, _PERIOD = 5.0, 1.0


class CycleNode(Node, Generic[Command]):
    """
    Base of nodes that answer samples with commands.

    A subclass calls :meth:`listen` at the end of its constructor, and provides :meth:`run_cycle`,
    :meth:`forget` and :meth:`state_text`. Messages with joints have ``sample_type``;
    ``hydraulics`` says whether they are half of a sample, ``whole_cycles`` whether stamps count
    cycles, see :class:`SampleStream`; ``incident_kinds`` are those of :meth:`count`.
    """

    command_type: type = ValveCommand
    command_topic = 'valve_command'
    sample_type: type = JointState
    hydraulics = True
    whole_cycles = False
    incident_kinds: tuple[str, ...] = ()

    def listen(
        self, what: str, sample_time: float, lockstep: bool, joints: str = 'joint_states'
    ) -> None:
        """
        Begin to listen, and log what this node works with.

        ``what`` are the node's settings, for the log; ``sample_time`` of the plant [s] is to count
        missed samples, 0: unknown; in ``lockstep`` the plant waits for each command, otherwise
        stale samples are not used; ``joints`` is their topic, such as that of sensors.
        """
        halves = 2 if self.hydraulics else 1
        self._samples = SampleStream(self, sample_time, lockstep, halves, self.whole_cycles)
        self._incidents = Incidents(self.incident_kinds)
        self._throttle = diagnostics.Throttle()
        self._answer: Command | None = None
        self._diagnostics = diagnostics.Diagnostics(self, self.get_name())
        self._commands = self.create_publisher(
            self.command_type, self.command_topic, qos.stream(lockstep)
        )
        kinds = [(self.sample_type, joints), (HydraulicState, 'hydraulics')][:halves]
        self._topics: list[Subscription] = []
        for half, (kind, topic) in enumerate(kinds):
            # rclpy's stubs do not know callbacks that take the times of a message as well.
            callback: Any = functools.partial(self._on_half, half)
            self._topics.append(self.create_subscription(kind, topic, callback, qos.STREAM))
        self._heard, self._has_heard, self._is_silent = time.monotonic(), False, False
        self.create_timer(_PERIOD, self._watch, clock=steady_clock())
        waited = ' and '.join(topic.topic_name for topic in self._topics)
        self.get_logger().info(f'{what}{", lockstep" * lockstep}: waiting for {waited}')

    # --- what a subclass provides ------------------------------------------------------------

    def run_cycle(self, stamp: int, joints: Any, hydraulics: Any) -> Command | None:
        """Return the command to a sample of a stamp [ns], or None; InputError for no sample."""
        raise NotImplementedError

    def forget(self) -> None:
        """Forget everything: the next sample is the first."""
        raise NotImplementedError

    def state_text(self) -> str:
        """Return what the node does, for the diagnostics."""
        raise NotImplementedError

    def state_level(self) -> Level:
        """Return the level of the state, for the diagnostics."""
        return 'ok'

    def state_values(self) -> dict[str, object]:
        """Return further values for the diagnostics."""
        return {}

    # --- what a subclass calls ---------------------------------------------------------------

    def count(self, incident: str, text: str) -> None:
        """Count an incident for the diagnostics, and warn."""
        self._incidents.add(incident, time.monotonic())
        self.warn(text)

    def warn(self, text: str) -> None:
        """Warn, but not about every message of a bad stream."""
        if self._throttle.lets(text):
            self.get_logger().warning(text)

    def inform(self, text: str) -> None:
        """Write a line to the log."""
        self.get_logger().info(text)

    # --- samples -----------------------------------------------------------------------------

    def _on_half(self, half: int, message: Any, info: dict[str, int]) -> None:
        """Take a message, unless it has waited too long."""
        if half == 0:
            self._note_sound()
        now = time.monotonic()
        if not self._samples.is_stale(info['source_timestamp'], time.time_ns(), now):
            self._samples.take(half, nanoseconds_of(message.header.stamp), message, now)

    def run(self, sample: Sample, report: bool) -> None:
        """Run a cycle and publish its command."""
        try:
            command = self.run_cycle(*sample)
        except LongreachError as error:
            self._samples.invalid(sample.stamp, error)
            return
        self.put_out(sample.stamp, command, report=report)

    def send_again(self) -> None:
        """Publish the latest command again."""
        self._commands.publish(self._answer)

    def put_out(self, stamp: int, command: Command | None, *, report: bool) -> None:
        """Publish the command of a cycle, with diagnostics if they are due."""
        self._samples.done(stamp, command is not None, time.monotonic())
        self._answer = command
        if report:
            self._report(stamp)
        if command is not None:
            # Last: in lockstep the plant continues when it has received this.
            self._commands.publish(command)

    def _report(self, stamp: int) -> None:
        """Publish diagnostics; WARN for samples that were not used since the last report."""
        level, text = diagnostics.LEVELS[self.state_level()], self.state_text()
        grown = self._samples.grown()
        if level != diagnostics.OK:
            pass
        elif grown:
            level = diagnostics.WARN
            text = 'samples were missed, late, stale, not paired or not valid'
        elif recent := self._incidents.recent(time.monotonic()):
            level, text = diagnostics.WARN, recent
        counts = self._samples.counts | self._incidents.counts | self.state_values()
        self._diagnostics.publish(stamp_of(stamp), level, text, counts)

    # --- silence -----------------------------------------------------------------------------

    def _note_sound(self) -> None:
        """Note that a message has come, and say so after silence."""
        now, topic = time.monotonic(), self._topics[0].topic_name
        if not self._has_heard:
            self.inform(f'first message on {topic}')
        elif self._is_silent:
            self.inform(f'{topic} again, after {now - self._heard:.1f} s of silence')
        self._heard, self._has_heard, self._is_silent = now, True, False

    def _watch(self) -> None:
        """Warn once of a long silence; no error: a paused simulation publishes nothing either."""
        silent = time.monotonic() - self._heard
        if self._is_silent or silent < _SILENCE:
            return
        self._is_silent, topic = True, self._topics[0]
        publishers = topic.get_publisher_count()
        reason = (
            f'{publishers} publisher(s); is the simulation paused or waiting?'
            if publishers
            else 'no publisher; is the plant running, in this namespace and ROS_DOMAIN_ID?'
        )
        self.get_logger().warning(f'nothing on {topic.topic_name} for {silent:.0f} s: {reason}')
