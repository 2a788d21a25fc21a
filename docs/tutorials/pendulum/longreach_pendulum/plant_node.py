"""The pendulum as a node: takes ``valve_command``, gives ``joint_states`` and ``hydraulics``."""

import numpy as np
from longreach_msgs.msg import HydraulicState, ValveCommand
from std_msgs.msg import Header

from longreach_dynamics.parameters import Parameters
from longreach_node.entry import node_entry
from longreach_node.hydraulic_messages import hydraulic_state, spools_from_message
from longreach_node.hydraulic_plant import HydraulicPlantNode
from longreach_node.parameters import declare
from longreach_node.simulator_parameters import SimulatorParameters
from longreach_pendulum.machine import Pendulum
from longreach_pendulum.spec import PENDULUM


class PlantNode(HydraulicPlantNode[np.ndarray, float]):
    """The pendulum, simulated; 100 samples per second by default, as SAMPLE_TIME says."""

    def __init__(self) -> None:
        super().__init__()
        settings = declare(self, SimulatorParameters)
        self.open(settings)
        self._pendulum = PENDULUM.load(None, Parameters())
        self.run(Pendulum(self._pendulum), settings, 0.0, waits=False)

    def robot_description(self, prefix: str) -> str:
        return PENDULUM.describe(self._pendulum, prefix)

    def command_of(self, message: ValveCommand) -> float:
        return spools_from_message(message, ['lift'], 'valve_command')[0]

    def hydraulic_state(self, header: Header) -> HydraulicState:
        return hydraulic_state(['lift'], *self.state[2:4, None], header, spool=self.state[4:])


main = node_entry('longreach_pendulum.plant_node:PlantNode')
