"""
The operator's station as a node: sticks or joint velocities in, ``cylinder_command`` out.

A command goes out for each stamp of which both ``joint_states`` and ``hydraulics`` have come, once
somebody has asked for motion: until then the excavator follows its scenario. Orders age by the
wall's time, in which people live.
"""

from __future__ import annotations

import dataclasses
import time

from longreach_msgs.msg import CylinderCommand, HydraulicState
from rclpy.node import Node
from sensor_msgs.msg import JointState, Joy

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import quantity
from longreach_excavator import conversions
from longreach_excavator.description import ROOT_FRAME
from longreach_excavator.parameters import load_excavator
from longreach_excavator.teleoperation import (
    Order,
    Teleoperation,
    TeleoperationState,
    load_teleoperation,
)
from longreach_node import diagnostics, qos
from longreach_node.frames import FrameParameters, frame_name, header_at
from longreach_node.pairing import Pair, Pairs
from longreach_node.parameters import declare
from longreach_node.stamps import nanoseconds_of, stamp_of

__all__ = ['OperatorNode', 'OperatorNodeParameters']


@dataclasses.dataclass(frozen=True)
class OperatorNodeParameters(FrameParameters):
    """Parameters of the operator node."""

    file: str = quantity('excavator file; empty for one of the 20 t class', '', default='')
    teleoperation: str = quantity(
        'teleoperation file; empty for that of this package, with the pattern iso', '', default=''
    )


class OperatorNode(Node):
    """What a person does at the levers."""

    def __init__(self) -> None:
        super().__init__('operator')
        settings = declare(self, OperatorNodeParameters)
        self._frame = frame_name(self, settings, ROOT_FRAME)
        parameters = load_teleoperation(settings.teleoperation or None)
        excavator = load_excavator(settings.file or None)
        self._station = Teleoperation(parameters, excavator)
        # Compiles what a cycle needs before anybody waits for it.
        excavator.linkage().levers(excavator.joint_limits().mean(axis=1))
        self._counts = dict.fromkeys(('unpaired', 'invalid'), 0)
        self._pairs: Pairs[JointState, HydraulicState] = Pairs()
        self._begin()
        self._diagnostics = diagnostics.Diagnostics(self, 'operator')
        self._commands = self.create_publisher(CylinderCommand, 'cylinder_command', qos.STREAM)
        self.create_subscription(JointState, 'joint_states', self._on_joints, qos.STREAM)
        self.create_subscription(HydraulicState, 'hydraulics', self._on_hydraulics, qos.STREAM)
        self.create_subscription(Joy, 'joy', self._on_joy, qos.SET_POINT)
        self.create_subscription(
            JointState, 'joint_velocity', self._on_joint_velocity, qos.SET_POINT
        )

    def _begin(self) -> None:
        """Forget everything: nobody has touched the levers."""
        self._pairs.clear()
        self._state = TeleoperationState()
        self._stamp = -1

    def _on_joints(self, message: JointState) -> None:
        """Take one half of a sample."""
        self._on_pair(self._pairs.add_first(nanoseconds_of(message.header.stamp), message))

    def _on_hydraulics(self, message: HydraulicState) -> None:
        """Take the other half."""
        self._on_pair(self._pairs.add_second(nanoseconds_of(message.header.stamp), message))

    def _on_pair(self, pair: Pair[JointState, HydraulicState] | None) -> None:
        """Answer a sample; in lockstep one that comes again has not been answered."""
        self._count_unpaired()
        if pair is None:
            return
        if pair.stamp < self._stamp:
            self.get_logger().info(
                f'time began anew: sample of {pair.stamp * 1e-9:.6f} s, after'
                f' {self._stamp * 1e-9:.6f} s'
            )
            self._begin()
        before, self._stamp = self._stamp, pair.stamp
        try:
            measured = conversions.measurement_from_messages(pair.first, pair.second)
            self._state, command = self._station.cycle(self._state, measured, time.monotonic())
        except InputError as error:
            self._counts['invalid'] += 1
            self._warn(f'sample of {pair.stamp * 1e-9:.6f} s is not used: {error}')
            return
        if before // 1_000_000_000 < pair.stamp // 1_000_000_000:
            self._report()
        if command is not None:
            header = header_at(pair.stamp, self._frame)
            self._commands.publish(conversions.command_to_message(command, header))

    def _on_joy(self, message: Joy) -> None:
        """Take the deflections of sticks."""
        try:
            order = self._station.order_of_sticks(message.axes, message.buttons)
            swing = self._station.asks_for_swing(message.axes)
        except InputError as error:
            self._warn(f'ignored: {error}')
            return
        if swing:
            self.get_logger().info(
                'this excavator does not swing: it stays in its plane', once=True
            )
        self._take(order)

    def _on_joint_velocity(self, message: JointState) -> None:
        """Take velocities of joints."""
        try:
            order = Order(rates=conversions.rates_from_message(message))
        except InputError as error:
            self._warn(f'ignored: {error}')
            return
        self._take(order)

    def _take(self, order: Order) -> None:
        """Let an order count from now on."""
        self._state = self._station.take(self._state, order, time.monotonic())

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

    def _report(self) -> None:
        """Publish diagnostics."""
        level, text = diagnostics.OK, 'operating' if self._state.engaged else 'waiting'
        if any(self._counts.values()):
            level, text = diagnostics.WARN, 'samples were not paired or not valid'
        self._diagnostics.publish(stamp_of(self._stamp), level, text, self._counts)

    def _warn(self, text: str) -> None:
        """Warn, but not about every sample of a bad stream."""
        self.get_logger().warn(text, throttle_duration_sec=1.0)
