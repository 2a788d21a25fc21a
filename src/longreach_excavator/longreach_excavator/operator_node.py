"""The operator's station of the excavator as a node: ``joy`` or ``joint_velocity`` in."""

from __future__ import annotations

from sensor_msgs.msg import JointState, Joy

from longreach_dynamics.errors import InputError
from longreach_excavator import conversions
from longreach_excavator.spec import EXCAVATOR
from longreach_excavator.teleoperation import Teleoperation
from longreach_machine.teleoperation import Order
from longreach_node.operator_node import OperatorNode as Base


class OperatorNode(Base):
    """Sticks or joint velocities become commands to the cylinders."""

    spec, station_type, command_topic = EXCAVATOR, Teleoperation, 'cylinder_command'
    station: Teleoperation

    def __init__(self) -> None:
        super().__init__()
        self.hear_orders(JointState, 'joint_velocity', self._on_joint_velocity)

    def on_joy(self, message: Joy) -> None:
        """Handle a message with stick deflections; say once that there is no swing."""
        super().on_joy(message)
        try:
            swing = self.station.asks_for_swing(message.axes)
        except InputError:
            return  # said before
        if swing:
            self.get_logger().info(
                'this excavator does not swing: it stays in its plane', once=True
            )

    def _on_joint_velocity(self, message: JointState) -> None:
        """Handle a message with joint velocities."""
        try:
            order = Order(rates=conversions.rates_from_message(message))
        except InputError as error:
            self.warn(f'ignored: {error}')
            return
        self.take(order)
