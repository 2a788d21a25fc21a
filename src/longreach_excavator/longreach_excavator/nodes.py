"""
Nodes of the excavator: the plant, and the operator's station.

Plant: ``cylinder_command`` in, joints and forces out. Station: ``joy`` or ``joint_velocity`` in.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from geometry_msgs.msg import WrenchStamped
from longreach_msgs.msg import HydraulicState, PinForces, Terrain, ValveCommand
from sensor_msgs.msg import JointState, Joy
from std_msgs.msg import Header
from visualization_msgs.msg import MarkerArray

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import quantity
from longreach_excavator import conversions
from longreach_excavator.kinematics import pin_places
from longreach_excavator.machine import STEP, Excavator, ExcavatorCommand, ExcavatorState
from longreach_excavator.motion import RATE
from longreach_excavator.parameters import ExcavatorParameters
from longreach_excavator.scenario import Scenario
from longreach_excavator.spec import EXCAVATOR
from longreach_excavator.teleoperation import Teleoperation
from longreach_excavator.visuals import bucket_load, force_arrows, ground_line, soil_line
from longreach_machine.teleoperation import Order
from longreach_node.operator_node import OperatorNode as Base
from longreach_node.plant_node import HydraulicPlantNode
from longreach_node.simulator_parameters import DrawnParameters


@dataclasses.dataclass(frozen=True)
class PlantParameters(DrawnParameters):
    """Parameters of the plant node."""

    cohesion: float = quantity(
        'cohesion of the soil; 0: of the scenario', 'Pa', at_least=0.0, at_most=1e6, default=0.0
    )
    step: float = quantity('length of a simulation step', 's', above=0.0, default=STEP)
    # Smooth enough for display and joystick operation, at half the load of 100 Hz.
    publish_rate: float = quantity(
        'samples per second of simulation', 'Hz', above=0.0, at_most=1e5, default=50.0
    )


class PlantNode(HydraulicPlantNode[ExcavatorState, ExcavatorCommand]):
    """The excavator, simulated."""

    spec, settings_type = EXCAVATOR, PlantParameters
    command_topic, drawing_topic = 'cylinder_command', 'forces'
    described: ExcavatorParameters
    machine: Excavator

    def make_machine(self, scenario: Scenario, settings: PlantParameters) -> Excavator:
        """Return the excavator, with soil of this cohesion."""
        if settings.cohesion:
            scenario = scenario.replace(cohesion=settings.cohesion)
            scenario.check_with(self.described, settings.step)
        excavator: Excavator = super().make_machine(scenario, settings)
        self._joint = self._bucket_joint(scenario.angles(self.described))
        self._surface = soil_line(self.described, excavator.constants.medium.surface)
        return excavator

    def sampled(self, machine: Excavator, settings: PlantParameters) -> PlantParameters:
        """Return the settings; prescribed forces end with the scenario."""
        scenario, duration = machine.scenario, settings.duration
        if scenario.is_driven:
            if duration > scenario.duration:
                raise InputError(
                    f'duration = {duration:g} s, allowed with mode: {scenario.mode}: up to that of'
                    f' the scenario, {scenario.duration:g} s'
                )
            settings = settings.replace(duration=duration or scenario.duration)
        sampled: PlantParameters = super().sampled(machine, settings)
        return sampled

    def add_topics(self, settings: PlantParameters) -> None:
        """Create the publishers of reactions, the soil's force and the ground."""
        super().add_topics(settings)
        self._reactions = self.add_output(PinForces, 'reactions', settings)
        self._soil_force = self.add_output(WrenchStamped, 'soil_force', settings)
        if self.machine.constants.ground.cells:
            self._terrain = self.add_output(Terrain, 'terrain', settings)

    def command_of(self, message: ValveCommand) -> ExcavatorCommand:
        """Return the command of a message."""
        return conversions.command_from_message(message, self.described)

    def hydraulic_state(self, header: Header) -> HydraulicState:
        """Return pressures, flows and spools."""
        observed = self.machine.observed(self.state)
        vapour = self.described.oil.vapour_pressure
        return conversions.hydraulics_to_message(self.state.y, observed, vapour, header)

    def publish_own(self, header: Header) -> None:
        """Publish reactions, the soil's force and the ground."""
        observed, ground = self.machine.observed(self.state), self.machine.constants.ground
        if ground.cells:
            self._terrain.publish(conversions.terrain_to_message(ground, self.state.y, header))
        self._reactions.publish(conversions.reactions_to_message(observed, header))
        self._soil_force.publish(conversions.soil_force_to_message(observed, header))
        moved = abs(self._bucket_joint(self.state.y[:RATE]) - self._joint)
        if doubt := self.machine.scenario.doubt_of_swing(moved):
            self.get_logger().warning(doubt, once=True)

    def _bucket_joint(self, angles: np.ndarray) -> complex:
        """Return the place of the joint D at joint angles (3,) [rad], x + j z [m]."""
        return complex(pin_places(self.described, angles)[2])

    def drawing(self, header: Header) -> MarkerArray:
        """Return the markers of forces and soil."""
        observed, ground = self.machine.observed(self.state), self.machine.constants.ground
        arrows = force_arrows(self.described, self.state.y, observed)
        surface, load = self._surface, None
        if ground.cells:
            tooth = complex(observed['tip_x'], observed['tip_z'])
            surface = ground_line(ground, self.state.y)
            load = (*bucket_load(ground, self.state.y, tooth), ground.width)
        return conversions.forces_to_message(arrows, surface, header, load)


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
