"""
Base of nodes that answer samples: ``joint_states`` and, where there is oil, ``hydraulics``.

A cycle runs for each stamp for which both have arrived. Time is that of the stamps, so that in
lockstep the commands are those of the library. Missing, late and duplicate samples are handled in
:mod:`longreach_node.paired_samples`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Generic, Literal, TypeVar

from longreach_msgs.msg import HydraulicState
from rclpy.node import Node
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState

from longreach_dynamics.errors import InputError
from longreach_node import diagnostics, qos
from longreach_node.diagnostics import Incidents
from longreach_node.paired_samples import Action, Again, Forget, Note, PairedSamples, Run
from longreach_node.silence import SilenceWatch
from longreach_node.stamps import nanoseconds_of, stamp_of

Command = TypeVar('Command')
Level = Literal['ok', 'warn', 'error']


class PairedControllerNode(Node, Generic[Command]):
    """
    Base of nodes that answer pairs of ``joint_states`` and ``hydraulics``, or ``joint_states``.

    A subclass calls :meth:`listen` at the end of its constructor, and provides :meth:`run_cycle`,
    :meth:`forget` and :meth:`state_text`.
    """

    def listen(
        self,
        command: type,
        topic: str,
        what: str,
        sample_time: float,
        lockstep: bool,
        incidents: Sequence[str] = (),
        joints: str = 'joint_states',
        hydraulics: bool = True,
        sample: type = JointState,
        whole_cycles: bool = False,
    ) -> None:
        """
        Begin to listen, and log what this node works with.

        Parameters
        ----------
        command : type of message
        topic : str
            On which commands are published.
        what : str
            Description of the node's settings, for the log.
        sample_time : float
            Of the plant [s], to count missed samples; 0: unknown.
        lockstep : bool
            The plant waits for each command; otherwise stale samples are not used.
        incidents : sequence of str
            Further kinds of incidents, for :meth:`count`.
        joints : str
            Topic of the joints, such as that of sensors.
        hydraulics : bool
            Whether ``hydraulics`` are the other half of a sample; otherwise joints are all of it.
        sample : type of message
            Of the topic of the joints.
        whole_cycles : bool
            As in :class:`PairedSamples`.
        """
        self._samples = PairedSamples(sample_time, lockstep, whole_cycles=whole_cycles)
        self._incidents = Incidents(incidents)
        self._answer: Command | None = None
        self._diagnostics = diagnostics.Diagnostics(self, self.get_name())
        self._commands = self.create_publisher(command, topic, qos.stream(lockstep))
        # rclpy's stubs do not know callbacks that take the times of a message as well.
        on_joints: Any = self._on_joints
        on_hydraulics: Any = self._on_hydraulics
        self._joints = self.create_subscription(sample, joints, on_joints, qos.STREAM)
        waited = self._joints.topic_name
        self._take_joints = self._samples.whole
        if hydraulics:
            self._hydraulics = self.create_subscription(
                HydraulicState, 'hydraulics', on_hydraulics, qos.STREAM
            )
            waited += f' and {self._hydraulics.topic_name}'
            self._take_joints = self._samples.first
        self._silence = SilenceWatch(self, self._joints)
        self.get_logger().info(f'{what}{", lockstep" * lockstep}: waiting for {waited}')

    def run_cycle(self, stamp: int, joints: JointState, hydraulics: Any) -> Command | None:
        """
        Return the command to a sample, or None.

        Parameters
        ----------
        stamp : int
            Of both messages [ns].
        joints : JointState
        hydraulics : HydraulicState or None

        Raises
        ------
        InputError
            When the messages are no sample of this machine.
        """
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

    def count(self, incident: str, text: str) -> None:
        """Count an incident for the diagnostics, and warn."""
        self._incidents.add(incident, time.monotonic())
        self.warn(text)

    def warn(self, text: str) -> None:
        """Warn, but not about every message of a bad stream."""
        self.get_logger().warning(text, throttle_duration_sec=1.0)

    def _on_joints(self, message: JointState, info: dict[str, int]) -> None:
        """Take one half of a sample."""
        self._silence.heard()
        if not self._take_half(self._take_joints, message, info):
            self._skip_stale(self._joints, self._take_joints)

    def _on_hydraulics(self, message: HydraulicState, info: dict[str, int]) -> None:
        """Take the other half."""
        if not self._take_half(self._samples.second, message, info):
            self._skip_stale(self._hydraulics, self._samples.second)

    def _take_half(self, take: Any, message: Any, info: dict[str, int]) -> bool:
        """Take a message; return False for one that has waited too long."""
        now = time.monotonic()
        stale = self._samples.waited(info['source_timestamp'], time.time_ns(), now)
        if stale is not None:
            self._carry_out(stale)
            return False
        self._carry_out(take(nanoseconds_of(message.header.stamp), message, now))
        return True

    def _skip_stale(self, topic: Subscription, take: Any) -> None:
        """Empty a queue up to the first message that is not stale, without a callback for each."""
        with topic.handle:
            while (taken := topic.handle.take_message(topic.msg_type, topic.raw)) is not None:
                if self._take_half(take, *taken):
                    return

    def _carry_out(self, actions: Sequence[Action]) -> None:
        """Carry out the actions that follow from the order of the samples."""
        for action in actions:
            if isinstance(action, Run):
                self._run(action)
            elif isinstance(action, Again):
                self._commands.publish(self._answer)
            elif isinstance(action, Forget):
                self.forget()
            else:
                self._log(action)

    def _run(self, action: Run) -> None:
        """Run a cycle and publish its command."""
        stamp = action.pair.stamp
        try:
            command = self.run_cycle(stamp, action.pair.first, action.pair.second)
        except InputError as error:
            self._log(self._samples.invalid(stamp, error))
            return
        self.put_out(stamp, command, report=action.report)

    def put_out(self, stamp: int, command: Command | None, *, report: bool) -> None:
        """Publish the command of a cycle, with diagnostics if they are due."""
        self._carry_out(self._samples.done(stamp, command is not None, time.monotonic()))
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

    def _log(self, note: Note) -> None:
        """Log a note."""
        if note.level == 'warn':
            self.warn(note.text)
        else:
            self.get_logger().info(note.text)
