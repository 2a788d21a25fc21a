"""
The operator's station as a node: sticks or joint velocities in, ``cylinder_command`` out.

A command is sent for each stamp for which both ``joint_states`` and ``hydraulics`` have arrived,
after the first order with motion: before, the excavator follows its scenario. The age of orders is
measured in wall time.
"""

from __future__ import annotations

import dataclasses
import time

from longreach_msgs.msg import HydraulicState, ValveCommand
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
from longreach_node import qos
from longreach_node.frames import FrameParameters, frame_name, header_at
from longreach_node.paired_controller import PairedControllerNode
from longreach_node.parameters import declare

__all__ = ['OperatorNode', 'OperatorNodeParameters']


@dataclasses.dataclass(frozen=True)
class OperatorNodeParameters(FrameParameters):
    """Parameters of the operator node."""

    file: str = quantity('excavator file; empty: the installed one, 20 t class', '', default='')
    teleoperation: str = quantity(
        'teleoperation file; empty: the installed one, with the pattern iso', '', default=''
    )


class OperatorNode(PairedControllerNode[ValveCommand]):
    """The operator's station: sticks or joint velocities become valve commands."""

    def __init__(self) -> None:
        super().__init__('operator')
        settings = declare(self, OperatorNodeParameters)
        self._frame = frame_name(self, settings, ROOT_FRAME)
        parameters = load_teleoperation(settings.teleoperation or None)
        excavator = load_excavator(settings.file or None)
        self._station = Teleoperation(parameters, excavator)
        # Compiles the functions of a cycle before the first one.
        excavator.linkage().levers(excavator.joint_limits().mean(axis=1))
        self.forget()
        self.create_subscription(Joy, 'joy', self._on_joy, qos.SET_POINT)
        self.create_subscription(
            JointState, 'joint_velocity', self._on_joint_velocity, qos.SET_POINT
        )
        what = f'{settings.file or "excavator of the 20 t class"}, pattern {parameters.pattern}'
        self.listen(ValveCommand, 'cylinder_command', what, sample_time=0.0, lockstep=False)

    def forget(self) -> None:
        """Reset the state: no order has been received."""
        self._state = TeleoperationState()

    def run_cycle(
        self, stamp: int, joints: JointState, hydraulics: HydraulicState
    ) -> ValveCommand | None:
        """Return the command for a sample; None before the first order with motion."""
        measured = conversions.measurement_from_messages(joints, hydraulics)
        self._state, command = self._station.cycle(self._state, measured, time.monotonic())
        if command is None:
            return None
        return conversions.command_to_message(command, header_at(stamp, self._frame))

    def state_text(self) -> str:
        """Return the state of the operator's station as text."""
        return 'operating' if self._state.engaged else 'waiting for sticks or velocities'

    def _on_joy(self, message: Joy) -> None:
        """Handle a message with stick deflections."""
        try:
            order = self._station.order_of_sticks(message.axes, message.buttons)
            swing = self._station.asks_for_swing(message.axes)
        except InputError as error:
            self.warn(f'ignored: {error}')
            return
        if swing:
            self.get_logger().info(
                'this excavator does not swing: it stays in its plane', once=True
            )
        self._take(order)

    def _on_joint_velocity(self, message: JointState) -> None:
        """Handle a message with joint velocities."""
        try:
            order = Order(rates=conversions.rates_from_message(message))
        except InputError as error:
            self.warn(f'ignored: {error}')
            return
        self._take(order)

    def _take(self, order: Order) -> None:
        """Make an order the current one."""
        self._state = self._station.take(self._state, order, time.monotonic())
