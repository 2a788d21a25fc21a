"""
Node of the digital controllers: ``joint_states`` in, ``joint_command`` out.

Cycles are counted by the stamps, so that in lockstep the torques are those of the library.
"""

from __future__ import annotations

import dataclasses

from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from longreach_dynamics.parameters import quantity
from longreach_links.description import ROOT_FRAME
from longreach_links.spec import LINKS, LinksOptions
from longreach_node.entry import node_entry
from longreach_node.frames import frame_name
from longreach_node.hydraulic_messages import finite_values
from longreach_node.machine_parameters import MachineParameters, machine_and_scenario
from longreach_node.parameters import declare
from longreach_node.trajectory_controller import LEFT_BEHIND, TrajectoryControllerNode
from longreach_symbolic.arm import arm_of
from longreach_symbolic.guidance import Guidance, Measurement
from longreach_symbolic.machine import Controller, Torques, joint_names
from longreach_symbolic.scenario import resting_scenario


@dataclasses.dataclass(frozen=True)
class ControllerNodeParameters(MachineParameters, LinksOptions):
    """Parameters of the controller node."""

    lockstep: bool = quantity('the plant waits for each command', default=False)


class ControllerNode(TrajectoryControllerNode[JointState]):
    """PD control of the motors, with the torques that hold the weight."""

    machine = 'arm of links'

    def __init__(self) -> None:
        super().__init__('controller')
        settings = declare(self, ControllerNodeParameters)
        self.frame = frame_name(self, settings, ROOT_FRAME)
        links, scenario = machine_and_scenario(LINKS, settings, resting_scenario)
        arm = arm_of(links, settings.arm)
        self.follower: Guidance = Guidance(Controller(links, arm, scenario))
        self._motors = joint_names(links)[len(links.links) : 2 * len(links.links)]
        self.follow(self.follower.joints)
        self.listen(
            JointState,
            'joint_command',
            f'{settings.file or "two links"}, {settings.scenario or "no scenario"},'
            f' {1.0 / arm.sample_time:g} Hz',
            arm.sample_time,
            settings.lockstep,
            (LEFT_BEHIND,),
            hydraulics=False,
        )

    def measurement_of(self, joints: JointState, hydraulics: None) -> Measurement:  # noqa: ARG002
        """Return the measurements for a cycle."""
        angles, rates = (
            finite_values('joint_states', joints.name, values, self._motors)
            for values in (joints.position, joints.velocity)
        )
        return self.follower.measured(angles, rates)

    def message_of(self, command: Torques, header: Header) -> JointState:
        """Return torques as a message."""
        return JointState(header=header, name=self._motors, effort=command)


main = node_entry('longreach_links.controller_node:ControllerNode')
