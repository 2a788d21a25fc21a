"""
Node of the digital controllers: ``joint_states`` in, ``joint_command`` out.

Cycles are counted by the stamps, so that in lockstep the torques are those of the library.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from longreach_dynamics.parameters import quantity
from longreach_links.spec import LINKS, LinksOptions
from longreach_node.simulator_parameters import MachineParameters
from longreach_node.trajectory_controller import TrajectoryControllerNode
from longreach_symbolic.arm import arm_of
from longreach_symbolic.guidance import Guidance as LinksFollower
from longreach_symbolic.guidance import Measurement
from longreach_symbolic.links import Links
from longreach_symbolic.machine import Controller, Torques, joint_names
from longreach_symbolic.scenario import Scenario


@dataclasses.dataclass(frozen=True)
class ControllerNodeParameters(MachineParameters, LinksOptions):
    """Parameters of the controller node."""

    lockstep: bool = quantity('the plant waits for each command', default=False)


class ControllerNode(TrajectoryControllerNode[JointState]):
    """PD control of the motors, with the torques that hold the weight."""

    spec, settings_type, called = LINKS, ControllerNodeParameters, 'arm of links'
    command_type, command_topic, hydraulics = JointState, 'joint_command', False
    follower: LinksFollower

    def make_follower(
        self, machine: Links, scenario: Scenario | None, settings: Any
    ) -> LinksFollower:
        """Return the controllers of the arm."""
        self._motors = joint_names(machine)[len(machine.links) : 2 * len(machine.links)]
        planned = LINKS.rest(machine) if scenario is None else scenario
        return LinksFollower(Controller(machine, arm_of(machine, settings.arm), planned))

    def measurement_of(self, joints: JointState, hydraulics: None) -> Measurement:
        """Return the measurements for a cycle."""
        return self.follower.measured(*self.messages.measured(joints, hydraulics))

    def message_of(self, command: Torques, header: Header) -> JointState:
        """Return torques as a message."""
        return JointState(header=header, name=self._motors, effort=command)
