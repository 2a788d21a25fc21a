"""The crane as a node: takes ``command``, gives ``sensors`` and ``joint_states``."""

from __future__ import annotations

import dataclasses
import math

from longreach_msgs.msg import CraneCommand, CraneSensors

from longreach_crane.control import Command
from longreach_crane.conversions import command_from_message, sample_to_message
from longreach_crane.diagnosis import sense
from longreach_crane.model import CAR_POSITION
from longreach_crane.parameters import load_machinery
from longreach_crane.scenario import Scenario, cycle_count, load_scenario
from longreach_crane.simulation import BRAKES, MODELS, Crane, CraneState, warm_up
from longreach_dynamics.parameters import choice, quantity
from longreach_node import qos
from longreach_node.parameters import declare
from longreach_node.simulator import SimulatorNode, SimulatorParameters
from longreach_node.stamps import nanoseconds_of, stamp_of

__all__ = ['PlantNode', 'PlantParameters']


@dataclasses.dataclass(frozen=True)
class PlantParameters(SimulatorParameters):
    """Parameters of the plant node."""

    file: str = quantity('crane file; empty for C13R', '', default='')
    scenario: str = quantity(
        'scenario file, for initial state and disturbances; empty for none', '', default=''
    )
    model: str = choice('equations of motion', MODELS, default='nonlinear')
    brake: str = choice('model of the closed brake', BRAKES, default='viscous')


class PlantNode(SimulatorNode[CraneState, Command]):
    """The crane, simulated."""

    def __init__(self) -> None:
        # Without a controller a crane stands on its brake.
        super().__init__('plant', safe_command=Command(0.0, True))
        parameters = declare(self, PlantParameters)
        machinery = load_machinery(parameters.file or None)
        sample_time = machinery.controller.sample_time
        cycle_count(sample_time, parameters.step, 'controller.sample_time')
        scenario = Scenario(duration=1.0)
        if parameters.scenario:
            scenario = load_scenario(parameters.scenario, sample_time)
        warm_up()
        self._crane = Crane(machinery.crane, scenario, parameters.model, parameters.brake)
        stream = qos.stream(parameters.lockstep)
        self._sensors = self.create_publisher(CraneSensors, 'sensors', stream)
        commands = self.create_subscription(CraneCommand, 'command', self._on_command, stream)
        self.links.append((self._sensors, commands))
        self.start(self._crane, parameters)

    def publish_outputs(self, nanoseconds: int) -> None:
        """Publish what the sensors report."""
        sample = sense(self.state.x[CAR_POSITION], self._crane.parameters)
        self._sensors.publish(sample_to_message(sample, stamp_of(nanoseconds)))

    def _on_command(self, message: CraneCommand) -> None:
        """Take a command; one without a finite force is as good as none."""
        if not math.isfinite(message.force):
            self.get_logger().warn(
                f'command with force = {message.force} N ignored, allowed: finite values',
                throttle_duration_sec=1.0,
            )
            return
        self.accept(command_from_message(message), nanoseconds_of(message.header.stamp))
