"""Node of a damping controller: in place of the joint controller of the boom."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from longreach_msgs.msg import HydraulicState
from sensor_msgs.msg import JointState

from longreach_boom.controller_node import ControllerNode, ControllerNodeParameters
from longreach_boom.follower import Measurement
from longreach_boom.parameters import BoomParameters
from longreach_boom.scenario import Scenario
from longreach_control.benchmark import CONTROLLERS
from longreach_control.follower import DampingFollower
from longreach_dynamics.parameters import choice, quantity
from longreach_node.hydraulic_messages import finite_values


@dataclasses.dataclass(frozen=True)
class DampingParameters(ControllerNodeParameters):
    """Parameters of the node."""

    method: str = choice('controller', tuple(CONTROLLERS), default='modal')
    delay: float = quantity(
        'from a measurement to the effect of the command, which the controller expects',
        's',
        at_least=0.0,
        at_most=1.0,
        default=0.0,
    )


class DampingNode(ControllerNode):
    """Joint control of the boom with its vibrations damped."""

    settings_type = DampingParameters

    def make_follower(
        self, machine: BoomParameters, scenario: Scenario | None, settings: Any
    ) -> DampingFollower:
        """Return the controller of the settings."""
        super().make_follower(machine, scenario, settings)
        return DampingFollower(
            self._boom,
            scenario,
            1.0 / settings.sample_rate,
            method=settings.method,
            delay=settings.delay,
        )

    def measurement_of(self, joints: JointState, hydraulics: HydraulicState) -> Measurement:
        """Return the measurements for a cycle, with what gyroscopes at the beams' tips show."""
        known = super().measurement_of(joints, hydraulics)
        rates = [
            finite_values(
                'joint_states',
                joints.name,
                joints.velocity,
                [f'{beam.name}{what}' for beam in self._boom.beams],
            )
            for what in ('_joint', '_slope')
        ]
        return known._replace(tip_rates=np.cumsum(np.add(*rates)))
