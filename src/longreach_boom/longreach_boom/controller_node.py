"""
Node of the joint position controller: joints and hydraulics in, ``valve_command`` out.

In lockstep the commands equal those of a simulation by the library.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from longreach_msgs.msg import ValveCommand

from longreach_boom.follower import BoomFollower, Measurement
from longreach_boom.machine import SAMPLE_TIME
from longreach_boom.parameters import BoomParameters
from longreach_boom.scenario import Scenario
from longreach_boom.spec import BOOM
from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import quantity
from longreach_node.simulator_parameters import MachineParameters
from longreach_node.trajectory_controller import TrajectoryControllerNode


@dataclasses.dataclass(frozen=True)
class SampleParameters(MachineParameters):
    """Parameters of every controller of the boom."""

    sample_rate: float = quantity(
        "samples per second of simulation, the plant's publish_rate",
        'Hz',
        at_least=10.0,
        at_most=1e5,
        default=1.0 / SAMPLE_TIME,
    )
    lockstep: bool = quantity('the plant waits for each command', default=False)


@dataclasses.dataclass(frozen=True)
class ControllerNodeParameters(SampleParameters):
    """Parameters of the controller node."""

    proportional_gain: float = quantity(
        "piston velocity per error; -1: the boom file's",
        '1/s',
        at_least=-1.0,
        at_most=50.0,
        default=-1.0,
        read_only=False,
    )
    integral_gain: float = quantity(
        "rate of piston velocity per error; -1: the boom file's",
        '1/s^2',
        at_least=-1.0,
        at_most=500.0,
        default=-1.0,
        read_only=False,
    )

    def check(self) -> None:
        """Raise InputError for a negative gain other than -1."""
        super().check()
        for name in ('proportional_gain', 'integral_gain'):
            gain = getattr(self, name)
            if gain < 0.0 and gain != -1.0:
                raise InputError(f'{name} = {gain}, allowed: -1, or from 0 on')

    def gains(self) -> dict[str, float]:
        """Return the gains that replace those of the boom file."""
        given = {name: getattr(self, name) for name in ('proportional_gain', 'integral_gain')}
        return {name: gain for name, gain in given.items() if gain >= 0.0}


class ControllerNode(TrajectoryControllerNode[ValveCommand]):
    """Joint position control of the boom."""

    spec, joint_suffix, measurement = BOOM, '_joint', Measurement
    settings_type: ClassVar[type[SampleParameters]] = ControllerNodeParameters

    def make_follower(
        self, machine: BoomParameters, scenario: Scenario | None, settings: Any
    ) -> BoomFollower:
        """Return the controller, with gains of the settings in place of the file's."""
        boom = machine.replace(controller=machine.controller.replace(**settings.gains()))
        return BoomFollower(boom, scenario, 1.0 / settings.sample_rate)
