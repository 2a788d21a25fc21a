"""
Nodes of the harvester: plant, controllers of the joints, operator's station.

Plant: ``valve_command`` in, ``joint_states`` and ``hydraulics`` out. In lockstep the controllers'
commands are those of the library's closed loop.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar

import numpy as np
from longreach_msgs.msg import ValveCommand
from longreach_msgs.srv import AttachLoad
from rclpy.publisher import Publisher
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from visualization_msgs.msg import MarkerArray

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import quantity
from longreach_harvester.bodies import HEAD, HEAD_RATE
from longreach_harvester.control import load_controller
from longreach_harvester.follower import HarvesterFollower, Measurement
from longreach_harvester.machine import STEP, Harvester, HarvesterState
from longreach_harvester.model import LOG
from longreach_harvester.parameters import HarvesterParameters
from longreach_harvester.scenario import Scenario
from longreach_harvester.sensors import MEASURED, Sensors
from longreach_harvester.simulation import warm_up
from longreach_harvester.spec import HARVESTER, PlantOptions
from longreach_harvester.stepping import forces_of
from longreach_harvester.teleoperation import Teleoperation
from longreach_harvester.visuals import cylinder_forces, head_lines
from longreach_machine.machine import Spools
from longreach_node.markers import BLUE, BROWN, RED, arrow_marker, line_marker
from longreach_node.operator_node import OperatorNode as Base
from longreach_node.plant_node import PlantNode as Plant
from longreach_node.simulator_parameters import DrawnParameters, MachineParameters
from longreach_node.trajectory_controller import TrajectoryControllerNode


@dataclasses.dataclass(frozen=True)
class PlantParameters(DrawnParameters, PlantOptions):
    """Parameters of the plant node."""

    whole_steps: ClassVar[bool] = False

    controller: str = quantity(
        'controller file for scenarios under control; empty: the installed one', '', default=''
    )
    step: float = quantity('length of a simulation step', 's', above=0.0, default=STEP)


class PlantNode(Plant[HarvesterState, Spools]):
    """The harvester, simulated."""

    spec, settings_type = HARVESTER, PlantParameters
    drawing_topic = 'forces'
    described: HarvesterParameters
    machine: Harvester

    def add_topics(self, settings: PlantParameters) -> None:
        """Create the publisher of what sensors show, if there are any."""
        # Also what a log that is attached needs.
        warm_up()
        self._sensors: Sensors | None = None
        if (sensors := self.machine.sensors) is not None:
            self._sensors = Sensors(self.machine.parameters, sensors, settings.publish_rate)
            self._measured = self.add_output(JointState, 'sensors/joints', settings)

    def answered(self) -> list[Publisher]:
        """Return hydraulics and joints: those of sensors, where there are any."""
        hydraulics, joints = super().answered()
        return [hydraulics, joints if self._sensors is None else self._measured]

    def carried(self) -> float:
        """Return the mass of the log in the grapple [kg]."""
        return float(self.state.y[LOG])

    def attached(self, request: AttachLoad.Request) -> tuple[HarvesterState, str]:
        """Return the state with a log in the grapple."""
        if request.beam or not (math.isnan(request.position) or request.position == -1.0):
            raise InputError(
                f'beam = {request.beam!r}, position = {request.position:g}, allowed for a'
                ' harvester: neither; a log is in the grapple'
            )
        late = [time for time, _ in self.machine.scenario.log_changes() if time >= self.time]
        if late:
            raise InputError(
                f'the scenario changes the log at {late[0]:g} s, allowed: to attach one after that'
            )
        state = self.machine.attach(self.state, request.mass)
        return state, f'{request.mass:g} kg in the grapple from {self.time:g} s on'

    def publish_own(self, header: Header) -> None:
        """Publish the readings of the sensors."""
        if self._sensors is not None and self.is_needed(self._measured):
            shown = self._sensors.read(self.state.y[:3], self.sample)
            position = [*shown.angles.tolist(), *shown.pistons.tolist()]
            self._measured.publish(JointState(header=header, name=MEASURED, position=position))

    def drawing(self, header: Header) -> MarkerArray:
        """Return the forces of the cylinders and, of a head that hangs, its swing."""
        harvester, angles = self.machine.parameters, self.state.y[:3]
        forces = np.empty((1, 3))
        forces_of(self.state.y[None], self.machine.constants, forces)
        arrows = cylinder_forces(harvester, angles, forces[0])
        markers = [arrow_marker(*arrow, BLUE, header) for arrow in arrows]
        if harvester.hangs:
            down, along = head_lines(harvester, angles, self.state.y[HEAD:HEAD_RATE])
            markers.append(line_marker('vertical', down.tolist(), BROWN, header))
            markers.append(line_marker('head', along.tolist(), RED, header))
        return MarkerArray(markers=markers)


@dataclasses.dataclass(frozen=True)
class ControllerNodeParameters(MachineParameters):
    """Parameters of the controller node."""

    controller: str = quantity('controller file; empty: the installed one', '', default='')
    sensors: bool = quantity('use sensors/joints in place of joint_states', default=False)
    lockstep: bool = quantity('the plant waits for each command', default=False)


class ControllerNode(TrajectoryControllerNode[ValveCommand]):
    """The controllers of swing, boom and stick."""

    spec, settings_type, measurement = HARVESTER, ControllerNodeParameters, Measurement

    def make_follower(
        self, machine: HarvesterParameters, scenario: Scenario | None, settings: Any
    ) -> HarvesterFollower:
        """Return the controllers of the file."""
        return HarvesterFollower(machine, load_controller(settings.controller or None), scenario)

    def joints_topic(self, settings: Any) -> str:
        """Return the topic of joints or of sensors."""
        return 'sensors/joints' if settings.sensors else 'joint_states'


class OperatorNode(Base):
    """Sticks become spools."""

    spec, station_type = HARVESTER, Teleoperation
