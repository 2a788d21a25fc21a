"""A crane controller of your own: PD control of the car's position; see controller.md."""

from __future__ import annotations

import contextlib

import rclpy
from longreach_msgs.msg import CraneCommand, CraneSensors
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node

from longreach_node import qos

SAMPLE_TIME = 0.01  # [s], of the crane
SET_POINT = 3.0  # desired position of the car [m]
RISE_TIME = 1.5  # time constant of the filter on the set point [s]: it keeps the swing small
K_P, K_D = 30.0, 120.0  # [N/m], [N s/m]
MAXIMUM_FORCE = 160.0  # of the motor [N]


class PD:
    """PD control; one call of ``force`` is one cycle."""

    def __init__(self) -> None:
        self.reference = self.last = 0.0  # [m]

    def force(self, position: float) -> float:
        """Return the motor force [N] for a measured position of the car [m]."""
        self.reference += SAMPLE_TIME / RISE_TIME * (SET_POINT - self.reference)
        velocity, self.last = (position - self.last) / SAMPLE_TIME, position
        force = K_P * (self.reference - position) - K_D * velocity
        return max(-MAXIMUM_FORCE, min(MAXIMUM_FORCE, force))


class PDNode(Node):
    """Answers each sample of the sensors with a command that carries the sample's stamp."""

    def __init__(self) -> None:
        super().__init__('controller', namespace='crane')
        self.control, self.answer = PD(), CraneCommand()
        self.commands = self.create_publisher(CraneCommand, 'command', qos.stream(latched=True))
        self.create_subscription(CraneSensors, 'sensors', self.on_sensors, qos.STREAM)

    def on_sensors(self, sample: CraneSensors) -> None:
        """Run one cycle; a sample that comes again gets the same answer again."""
        if sample.header != self.answer.header:
            force = self.control.force(sample.car_position)
            self.answer = CraneCommand(header=sample.header, force=force)
        self.commands.publish(self.answer)


if __name__ == '__main__':
    rclpy.init()
    with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.spin(PDNode())
