"""The pendulum as a node: takes ``valve_command``, gives ``joint_states`` and ``hydraulics``."""

import dataclasses

import numpy as np
from longreach_msgs.msg import HydraulicState
from std_msgs.msg import Header

from longreach_node.hydraulic_messages import hydraulic_state
from longreach_node.plant_node import HydraulicPlantNode
from longreach_node.simulator_parameters import MachineParameters, SimulatorParameters
from longreach_pendulum.spec import PENDULUM


@dataclasses.dataclass(frozen=True)
class PlantParameters(SimulatorParameters, MachineParameters):
    """100 samples per second by default, as SAMPLE_TIME says."""


class PlantNode(HydraulicPlantNode[np.ndarray, float]):
    """The pendulum, simulated."""

    spec, settings_type = PENDULUM, PlantParameters

    def hydraulic_state(self, header: Header) -> HydraulicState:
        return hydraulic_state(
            self.actuators, *self.state[2:4, None], header, spool=self.state[4:]
        )
