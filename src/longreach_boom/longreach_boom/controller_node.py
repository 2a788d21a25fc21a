"""
The joint position controller as a node: joints and hydraulics in, ``valve_command`` out.

A cycle runs for each stamp of which both ``joint_states`` and ``hydraulics`` have come. Time is
that of the stamps, so that in lockstep the commands are those of the library's own simulation.
"""

from __future__ import annotations

import dataclasses
import time

from longreach_msgs.msg import HydraulicState, ValveCommand
from rclpy.node import Node
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from longreach_boom import conversions
from longreach_boom.description import ROOT_FRAME
from longreach_boom.guidance import Guidance, GuidanceState, Measurement
from longreach_boom.machine import SAMPLE_TIME, STEP
from longreach_boom.parameters import load_boom
from longreach_boom.scenario import load_scenario
from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import quantity
from longreach_node import diagnostics, qos
from longreach_node.frames import FrameParameters, frame_name, header_at
from longreach_node.pairing import Pair, Pairs
from longreach_node.parameters import declare
from longreach_node.stamps import nanoseconds_of, seconds_to_nanoseconds, stamp_of

__all__ = ['ControllerNode', 'ControllerNodeParameters']

# In lockstep, a sample that comes again this long after the answer [s of wall time] is no doubled
# message but a plant that has not heard the answer.
_ASKED_AGAIN = 0.25


@dataclasses.dataclass(frozen=True)
class ControllerNodeParameters(FrameParameters):
    """Parameters of the controller node."""

    file: str = quantity('boom file; empty for the pump boom of 36 m', '', default='')
    scenario: str = quantity(
        'scenario file, for its trajectory; empty to hold the pose of the first sample',
        '',
        default='',
    )
    sample_rate: float = quantity(
        "samples per second of simulation, the plant's publish_rate",
        'Hz',
        at_least=10.0,
        at_most=1e5,
        default=1.0 / SAMPLE_TIME,
    )
    lockstep: bool = quantity('the plant waits for each command', default=False)


class ControllerNode(Node):
    """Joint position control of the boom."""

    def __init__(self) -> None:
        super().__init__('controller')
        self._settings = declare(self, ControllerNodeParameters)
        self._frame = frame_name(self, self._settings, ROOT_FRAME)
        self._boom = load_boom(self._settings.file or None)
        file = self._settings.scenario
        scenario = load_scenario(file, self._boom, STEP) if file else None
        sample_time = 1.0 / self._settings.sample_rate
        self._guidance = Guidance(self._boom, scenario, sample_time)
        self._period = seconds_to_nanoseconds(sample_time)
        self._cylinders = [cylinder.name for cylinder in self._boom.cylinders]
        self._counts = dict.fromkeys(('missed', 'unpaired', 'invalid'), 0)
        self._pairs: Pairs[JointState, HydraulicState] = Pairs()
        self._begin()
        self._diagnostics = diagnostics.Diagnostics(self, 'controller')
        stream = qos.stream(self._settings.lockstep)
        self._commands = self.create_publisher(ValveCommand, 'valve_command', stream)
        self.create_subscription(JointState, 'joint_states', self._on_joints, qos.STREAM)
        self.create_subscription(HydraulicState, 'hydraulics', self._on_hydraulics, qos.STREAM)
        self.create_subscription(JointTrajectory, 'trajectory', self._on_trajectory, qos.SET_POINT)

    def _begin(self) -> None:
        """Forget everything: the next sample is the first."""
        self._pairs.clear()
        self._state: GuidanceState | None = None
        self._measured: Measurement | None = None
        self._answer: ValveCommand | None = None
        self._answered = 0.0
        self._stamp = -1

    def _on_joints(self, message: JointState) -> None:
        """Take one half of a sample."""
        self._on_pair(self._pairs.add_first(nanoseconds_of(message.header.stamp), message))

    def _on_hydraulics(self, message: HydraulicState) -> None:
        """Take the other half."""
        self._on_pair(self._pairs.add_second(nanoseconds_of(message.header.stamp), message))

    def _on_pair(self, pair: Pair[JointState, HydraulicState] | None) -> None:
        """Run the cycle of a sample, once."""
        self._count_unpaired()
        if pair is None:
            return
        if pair.stamp < self._stamp:
            self.get_logger().info(
                f'time began anew: sample of {pair.stamp * 1e-9:.6f} s, after'
                f' {self._stamp * 1e-9:.6f} s'
            )
            self._begin()
        elif pair.stamp == self._stamp:
            # Asked again: the plant may not have heard the answer.
            if self._answer and time.monotonic() - self._answered > _ASKED_AGAIN:
                self._send()
            return
        try:
            measured = conversions.measurement_from_messages(self._boom, pair.first, pair.second)
        except InputError as error:
            self._counts['invalid'] += 1
            self._warn(f'sample of {pair.stamp * 1e-9:.6f} s is not used: {error}')
            return
        self._count_missed(pair.stamp)
        self._run_cycle(pair.stamp, measured)

    def _run_cycle(self, stamp: int, measured: Measurement) -> None:
        """Run a cycle and publish its command."""
        if self._state is None:
            self._state = self._guidance.begin(measured.angles)
        self._stamp, self._measured = stamp, measured
        self._state, command = self._guidance.cycle(self._state, stamp / 1e9, measured)
        self._answer = conversions.command_to_message(
            self._cylinders, command, header_at(stamp, self._frame)
        )
        if stamp % 1_000_000_000 < self._period:
            self._report()
        # Last: in lockstep the plant goes on as soon as it has this.
        self._send()

    def _send(self) -> None:
        """Publish the command of the latest cycle."""
        self._answered = time.monotonic()
        self._commands.publish(self._answer)

    def _count_missed(self, stamp: int) -> None:
        """Count the samples between the latest one and a new one."""
        missed = round((stamp - self._stamp) / self._period) - 1
        if self._stamp < 0 or missed == 0:
            return
        if missed < 0:
            self._warn(
                f'sample of {stamp * 1e-9:.6f} s, {(stamp - self._stamp) * 1e-9:g} s after the'
                f' one before; sample_rate = {self._settings.sample_rate:g} Hz shall be the'
                " plant's publish_rate"
            )
            return
        self._counts['missed'] += missed
        self._warn(f'{missed} samples missing before the one of {stamp * 1e-9:.6f} s')

    def _count_unpaired(self) -> None:
        """Count messages whose other half never came."""
        unpaired = sum(self._pairs.unpaired)
        if unpaired > self._counts['unpaired']:
            joints, hydraulics = self._pairs.unpaired
            self._warn(
                f'without a partner of the same stamp: {joints} messages of joint_states,'
                f' {hydraulics} of hydraulics; do both come from one plant?'
            )
        self._counts['unpaired'] = unpaired

    def _on_trajectory(self, message: JointTrajectory) -> None:
        """Follow a trajectory that was sent by hand."""
        if self._state is None or self._measured is None:
            self.get_logger().warn('trajectory ignored: no sample of the boom has come yet')
            return
        try:
            order = conversions.order_from_message(message, self._boom)
            self._state = self._guidance.follow(
                self._state, order, self._stamp / 1e9, self._measured.angles
            )
        except InputError as error:
            self.get_logger().warn(f'trajectory ignored: {error}')
            return
        self.get_logger().info(f'trajectory by hand: {len(message.points)} points')

    def _report(self) -> None:
        """Publish diagnostics."""
        level, text = diagnostics.OK, 'controlling'
        if self._state is None or self._state.trajectory is None:
            text = 'valves as the scenario says'
        if any(self._counts.values()):
            level, text = diagnostics.WARN, 'samples were missed, not paired or not valid'
        self._diagnostics.publish(stamp_of(self._stamp), level, text, self._counts)

    def _warn(self, text: str) -> None:
        """Warn, but not about every sample of a bad stream."""
        self.get_logger().warn(text, throttle_duration_sec=1.0)
