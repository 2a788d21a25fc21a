"""Plant node of the crane: ``command`` in, ``sensors`` and ``joint_states`` out."""

from __future__ import annotations

import dataclasses

from longreach_msgs.msg import CraneCommand, CraneSensors

from longreach_crane.conversions import command_from_message, sample_to_message
from longreach_crane.description import ROOT_FRAME, robot_description
from longreach_crane.diagnosis import sense
from longreach_crane.machine import Crane
from longreach_crane.model import CAR_POSITION
from longreach_crane.scenario import Scenario
from longreach_crane.simulation import warm_up
from longreach_crane.spec import CRANE, PlantOptions
from longreach_crane.state import Command, CraneState
from longreach_node import qos
from longreach_node.frames import header_at
from longreach_node.machine_parameters import MachineParameters, machine_and_scenario
from longreach_node.parameters import declare
from longreach_node.simulator import SimulatorNode
from longreach_node.simulator_parameters import CycleParameters


@dataclasses.dataclass(frozen=True)
class PlantParameters(CycleParameters, MachineParameters, PlantOptions):
    """Parameters of the plant node."""


class PlantNode(SimulatorNode[CraneState, Command]):
    """Simulation of the crane as a node."""

    root_frame = ROOT_FRAME

    def __init__(self) -> None:
        # Without a controller the brake of the crane is closed.
        super().__init__('plant', safe_command=Command(0.0, True))
        parameters = declare(self, PlantParameters)
        machinery, scenario = machine_and_scenario(
            CRANE, parameters, lambda _: Scenario(duration=1.0)
        )
        sample_time = machinery.controller.sample_time
        parameters = parameters.following(sample_time)
        warm_up()
        self._crane = Crane(machinery.crane, scenario, parameters.model, parameters.brake)
        self._sensors = self.create_publisher(
            CraneSensors, 'sensors', qos.stream(parameters.latched)
        )
        advice = 'start with controller:=false to command it by hand'
        self.take_commands(CraneCommand, 'command', 'the crane', advice)
        self._maximum_force = machinery.controller.maximum_force
        self.links.append((self._sensors, self._commands))
        self.start(self._crane, parameters)

    def robot_description(self, prefix: str) -> str:
        """Return the URDF of this crane."""
        return robot_description(self._crane.parameters, prefix)

    def publish_outputs(self, nanoseconds: int) -> None:
        """Publish the readings of the sensors."""
        sample = sense(self.state.x[CAR_POSITION], self._crane.parameters)
        self._sensors.publish(sample_to_message(sample, header_at(nanoseconds, self.frame)))

    def command_of(self, message: CraneCommand) -> Command:
        """Return the command of a message; refuse one beyond the maximum force."""
        return command_from_message(message, self._maximum_force)
