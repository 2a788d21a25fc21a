"""
Node of the joint controllers: ``joint_states`` and ``hydraulics`` in, ``valve_command`` out.

In lockstep with the plant its commands are those of the library's closed loop.
"""

from __future__ import annotations

import dataclasses

from longreach_msgs.msg import HydraulicState, ValveCommand
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from longreach_dynamics.parameters import quantity
from longreach_harvester.control import load_controller
from longreach_harvester.description import ROOT_FRAME
from longreach_harvester.guidance import Guidance, Measurement
from longreach_harvester.parameters import JOINTS
from longreach_harvester.spec import HARVESTER
from longreach_node.entry import node_entry
from longreach_node.frames import frame_name
from longreach_node.hydraulic_messages import finite_values, valve_command
from longreach_node.machine_parameters import MachineParameters, machine_and_scenario
from longreach_node.parameters import declare
from longreach_node.trajectory_controller import LEFT_BEHIND, TrajectoryControllerNode


@dataclasses.dataclass(frozen=True)
class ControllerNodeParameters(MachineParameters):
    """Parameters of the controller node."""

    controller: str = quantity('controller file; empty: the installed one', '', default='')
    sensors: bool = quantity('use sensors/joints in place of joint_states', default=False)
    lockstep: bool = quantity('the plant waits for each command', default=False)


class ControllerNode(TrajectoryControllerNode[ValveCommand]):
    """The controllers of swing, boom and stick."""

    machine = 'harvester'

    def __init__(self) -> None:
        super().__init__('controller')
        settings = declare(self, ControllerNodeParameters)
        self.frame = frame_name(self, settings, ROOT_FRAME)
        harvester, scenario = machine_and_scenario(HARVESTER, settings, lambda _: None)
        controller = load_controller(settings.controller or None)
        self.follower: Guidance = Guidance(harvester, controller, scenario)
        # Compile before a plant in real time waits for the first command.
        self.follower.warm_up()
        self.follow(JOINTS)
        what = f'{settings.file or "standard harvester"}, {settings.scenario or "no scenario"}'
        self.listen(
            ValveCommand,
            'valve_command',
            f'{what}, {1.0 / controller.sample_time:g} Hz',
            controller.sample_time,
            settings.lockstep,
            (LEFT_BEHIND,),
            'sensors/joints' if settings.sensors else 'joint_states',
        )

    def measurement_of(self, joints: JointState, hydraulics: HydraulicState) -> Measurement:  # noqa: ARG002
        """Return the angles for a cycle of the controllers."""
        return Measurement(finite_values('joint_states', joints.name, joints.position, JOINTS))

    def message_of(self, command: tuple[float, ...], header: Header) -> ValveCommand:
        """Return spools as a message."""
        return valve_command(JOINTS, header, command)


main = node_entry('longreach_harvester.controller_node:ControllerNode')
