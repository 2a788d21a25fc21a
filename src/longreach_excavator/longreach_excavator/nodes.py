"""
Nodes of the excavator: the plant, and the operator's station.

Plant: ``cylinder_command`` in, joints and forces out. Station: ``joy`` or ``joint_velocity`` in.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Mapping

import numpy as np
from geometry_msgs.msg import Point, Vector3, WrenchStamped
from longreach_msgs.msg import PinForces, Terrain, ValveCommand
from sensor_msgs.msg import JointState, Joy
from std_msgs.msg import Header
from visualization_msgs.msg import Marker, MarkerArray

from longreach_dynamics.errors import InputError, check_within
from longreach_dynamics.parameters import quantity
from longreach_excavator.columns import REACTIONS
from longreach_excavator.kinematics import pin_places
from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.machine import CLOSED, STEP, Excavator, ExcavatorCommand, ExcavatorState
from longreach_excavator.motion import RATE, SIZE
from longreach_excavator.parameters import ExcavatorParameters
from longreach_excavator.scenario import Scenario
from longreach_excavator.spec import EXCAVATOR
from longreach_excavator.teleoperation import Teleoperation
from longreach_excavator.terrain import FIRM, VOLUME, Ground
from longreach_excavator.visuals import (
    bucket_load,
    force_arrows,
    ground_line,
    soil_body,
    soil_line,
)
from longreach_machine.teleoperation import Order
from longreach_node.conversions import joint_values, values_from_command
from longreach_node.markers import (
    BLUE,
    BROWN,
    RED,
    SHORTEST,
    arrow_marker,
    line_marker,
    triangles_marker,
)
from longreach_node.operator_node import OperatorNode as Base
from longreach_node.plant_node import PlantNode as Plant
from longreach_node.simulator_parameters import DrawnParameters

# Names in reactions: joints, cylinders, connecting rods, as in columns.OBSERVED.
_PINS = (*REACTIONS, *CYLINDERS, 'lk', 'pk')
_JOINTS = tuple(f'{name}_joint' for name in CYLINDERS)
# Largest commanded force of a cylinder over its force at the supply pressure.
_STRONGEST = 2.0


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


class PlantNode(Plant[ExcavatorState, ExcavatorCommand]):
    """The excavator, simulated."""

    spec, settings_type = EXCAVATOR, PlantParameters
    command_topic, drawing_topic = 'cylinder_command', 'forces'
    described: ExcavatorParameters
    machine: Excavator

    def make_machine(self, scenario: Scenario, settings: PlantParameters) -> Excavator:
        """Return the excavator, with soil of this cohesion."""
        if settings.cohesion:
            scenario = scenario.replace(cohesion=settings.cohesion)
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
        self._reactions = self.add_output(PinForces, 'reactions', settings)
        self._soil_force = self.add_output(WrenchStamped, 'soil_force', settings)
        if self.machine.constants.ground.cells:
            self._terrain = self.add_output(Terrain, 'terrain', settings)

    def command_of(self, message: ValveCommand) -> ExcavatorCommand:
        """Return the command; cylinders that it leaves out keep their oil, with closed valves."""
        excavator = self.described
        spools, forces = values_from_command(message, CYLINDERS, 'cylinder_command', forces=True)
        for cylinder in excavator.cylinders:
            most = _STRONGEST * cylinder.head_area * excavator.oil.supply_pressure
            force = forces.get(cylinder.name, 0.0)
            check_within(f'cylinder_command for {cylinder.name}', force, f'[{-most}, {most}] N')
        if forces:
            return ExcavatorCommand(CLOSED.spools, tuple(forces.get(name) for name in CYLINDERS))
        return ExcavatorCommand(tuple(spools.get(name, 0.0) for name in CYLINDERS))

    def publish_own(self, header: Header) -> None:
        """Publish reactions, the soil's force and the ground."""
        observed, ground = self.machine.observed(self.state), self.machine.constants.ground
        if ground.cells:
            self._terrain.publish(terrain_to_message(ground, self.state.y, header))
        forces = [Vector3(x=observed[f'{pin}_x'], z=observed[f'{pin}_z']) for pin in _PINS]
        self._reactions.publish(PinForces(header=header, name=_PINS, force=forces))
        self._soil_force.publish(soil_force_to_message(observed, header))
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
        return forces_to_message(arrows, surface, header, load)


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
        # What is wrong with a message was said.
        with contextlib.suppress(InputError):
            if self.station.parameters.asked(message.axes, message.buttons)['swing']:
                text = 'this excavator does not swing: it stays in its plane'
                self.get_logger().info(text, once=True)

    def _on_joint_velocity(self, message: JointState) -> None:
        """Handle a message with joint velocities."""
        try:
            given = message.name, message.velocity, _JOINTS
            rates = joint_values('joint_velocity', 'rad/s', *given)
        except InputError as error:
            self.warn(f'ignored: {error}')
            return
        # Those left out stand.
        self.take(Order(rates=tuple(rates.get(joint, 0.0) for joint in _JOINTS)))


def soil_force_to_message(observed: Mapping[str, float], header: Header) -> WrenchStamped:
    """Return the soil's force on the tooth [N], in the axes of excavator_base."""
    # The torque of a wrench is about the origin of its frame [N m]: that of the force at the
    # tooth, plus the moment about the tooth where the ground presses on the bucket's back.
    fx, fz = observed['soil_x'], observed['soil_z']
    message = WrenchStamped(header=header)
    message.wrench.force = Vector3(x=fx, z=fz)
    message.wrench.torque.y = observed['tip_z'] * fx - observed['tip_x'] * fz
    # Positive moments lift: they turn x towards z, against the right hand about y.
    message.wrench.torque.y -= observed['soil_moment']
    return message


def terrain_to_message(ground: Ground, y: np.ndarray, header: Header) -> Terrain:
    """Return the ground and the soil in the bucket of a state; ``ground`` has cells."""
    middle = SIZE + FIRM + ground.cells
    volume = float(y[SIZE + VOLUME])
    return Terrain(
        header=header,
        start=ground.start,
        cell=ground.cell,
        firm=y[SIZE + FIRM : middle].tolist(),
        loose=y[middle:].tolist(),
        bucket_volume=volume,
        bucket_mass=ground.density * volume,
    )


def forces_to_message(
    arrows: Mapping[str, tuple[complex, complex]],
    soil: np.ndarray,
    header: Header,
    load: tuple[complex, float, float] | None = None,
) -> MarkerArray:
    """Return arrows, the soil's line (points, 2), and its load: centre, diameter, width [m]."""
    markers = [
        arrow_marker(
            name,
            (start.real, 0.0, start.imag),
            (vector.real, 0.0, vector.imag),
            RED if name == 'soil' else BLUE,
            header,
        )
        for name, (start, vector) in arrows.items()
    ]
    if len(soil):
        if load is None:
            # Soil that is not cut would hide the bucket.
            line = [(x, 0.0, z) for x, z in soil.tolist()]
            markers.append(line_marker('surface', line, BROWN, header))
        else:
            markers.append(triangles_marker('ground', soil_body(soil).tolist(), BROWN, header))
    if load is not None:
        middle, diameter, width = load
        body = Marker(header=header, ns='load', type=Marker.CYLINDER)
        body.action = Marker.ADD if diameter >= SHORTEST else Marker.DELETE
        body.pose.position = Point(x=middle.real, z=middle.imag)
        # Its axis is across the plane.
        body.pose.orientation.x = body.pose.orientation.w = math.sqrt(0.5)
        body.scale = Vector3(x=diameter, y=diameter, z=width)
        body.color = BROWN
        markers.append(body)
    return MarkerArray(markers=markers)
