"""The pendulum as a node: takes ``valve_command``, gives ``joint_states`` and ``hydraulics``."""

import dataclasses

import numpy as np
from longreach_msgs.msg import HydraulicState, ValveCommand
from std_msgs.msg import Header

from longreach_node.hydraulic_messages import hydraulic_state, spools_from_message
from longreach_node.plant_node import HydraulicPlantNode
from longreach_node.simulator_parameters import MachineParameters, SimulatorParameters
from longreach_pendulum.machine import Lift, Pendulum
from longreach_pendulum.spec import PENDULUM


@dataclasses.dataclass(frozen=True)
class PlantParameters(SimulatorParameters, MachineParameters):
    """100 samples per second by default, as SAMPLE_TIME says."""


class PlantNode(HydraulicPlantNode[np.ndarray, float]):
    """The pendulum, simulated."""

    spec, settings_type = PENDULUM, PlantParameters

    def make_machine(self, scenario: Lift, settings: PlantParameters) -> tuple[Pendulum, float]:
        return Pendulum(self.described), 0.0

    def command_of(self, message: ValveCommand) -> float:
        return spools_from_message(message, ['lift'], 'valve_command')[0]

    def hydraulic_state(self, header: Header) -> HydraulicState:
        return hydraulic_state(['lift'], *self.state[2:4, None], header, spool=self.state[4:])
