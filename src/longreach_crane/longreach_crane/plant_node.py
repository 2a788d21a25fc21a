"""Plant node of the crane: ``command`` in, ``sensors`` and ``joint_states`` out."""

from __future__ import annotations

import dataclasses
from typing import Any

from longreach_msgs.msg import CraneCommand, CraneSensors
from rclpy.publisher import Publisher

from longreach_crane.control import sense
from longreach_crane.machine import Command, Crane, CraneState
from longreach_crane.model import CAR_POSITION
from longreach_crane.parameters import Machinery
from longreach_crane.spec import CRANE, PlantOptions
from longreach_dynamics.errors import InputError
from longreach_node import qos
from longreach_node.frames import header_at
from longreach_node.plant_node import PlantNode as Base
from longreach_node.simulator_parameters import CycleParameters, MachineParameters


@dataclasses.dataclass(frozen=True)
class PlantParameters(CycleParameters, MachineParameters, PlantOptions):
    """Parameters of the plant node."""


class PlantNode(Base[CraneState, Command]):
    """Simulation of the crane as a node; without a controller its brake is closed."""

    spec, settings_type = CRANE, PlantParameters
    command_type, command_topic, commanded = CraneCommand, 'command', 'the crane'
    described: Machinery

    def safe_command(self) -> Command:
        """Return the command that closes the brake."""
        return Command(0.0, True)

    first_command = safe_command

    def sampled(self, machine: Crane, settings: PlantParameters) -> PlantParameters:  # noqa: ARG002
        """Return the settings: a sample is a control cycle."""
        return settings.following(self.described.controller.sample_time)

    def add_topics(self, settings: PlantParameters) -> None:
        """Create the publisher of sensors."""
        self._sensors = self.create_publisher(
            CraneSensors, 'sensors', qos.stream(settings.latched)
        )

    def answered(self) -> list[Publisher]:
        """Return the publisher of sensors."""
        return [self._sensors]

    def waits(self, scenario: Any) -> bool:  # noqa: ARG002
        """Return that the first sample waits for the controller."""
        return True

    def publish_outputs(self, nanoseconds: int) -> None:
        """Publish the readings of the sensors."""
        sample = sense(self.state.x[CAR_POSITION], self.described.crane)
        header = header_at(nanoseconds, self.frame)
        self._sensors.publish(CraneSensors(header=header, **sample._asdict()))

    def command_of(self, message: CraneCommand) -> Command:
        """Return the command of a message; refuse one beyond the maximum force."""
        most = self.described.controller.maximum_force
        if not abs(message.force) <= most:
            raise InputError(
                f'force = {message.force:g} N, allowed: [{-most:g}, {most:g}] N, the maximum_force'
                ' of the crane file'
            )
        return Command(message.force, message.brake)
