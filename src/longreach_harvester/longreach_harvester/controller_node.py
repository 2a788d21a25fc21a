"""
Node of the joint controllers: ``joint_states`` and ``hydraulics`` in, ``valve_command`` out.

In lockstep with the plant its commands are those of the library's closed loop.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from longreach_msgs.msg import ValveCommand

from longreach_dynamics.parameters import quantity
from longreach_harvester.control import load_controller
from longreach_harvester.follower import HarvesterFollower, Measurement
from longreach_harvester.parameters import HarvesterParameters
from longreach_harvester.scenario import Scenario
from longreach_harvester.spec import HARVESTER
from longreach_node.simulator_parameters import MachineParameters
from longreach_node.trajectory_controller import TrajectoryControllerNode


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
