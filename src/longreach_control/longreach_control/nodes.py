"""Node of a damping controller: in place of the joint controller of the boom."""

from __future__ import annotations

import dataclasses
import math
import time
from typing import Any

import numpy as np
from geometry_msgs.msg import Twist
from longreach_msgs.msg import HydraulicState
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState

from longreach_boom.follower import Measurement
from longreach_boom.nodes import ControllerNode, SampleParameters
from longreach_boom.parameters import BoomParameters
from longreach_boom.scenario import Scenario
from longreach_control.benchmark import CONTROLLERS
from longreach_control.follower import DampingFollower, TipFollower
from longreach_dynamics.parameters import choice, quantity
from longreach_node import qos
from longreach_node.conversions import finite_values

# An operator moves the tip, with `tip_velocity` in place of a trajectory.
TIP = 'tip'
# Without a message for so long the tip rests [s of wall time].
_SILENT = 0.5


@dataclasses.dataclass(frozen=True)
class DampingParameters(SampleParameters):
    """Parameters of the node."""

    method: str = choice('controller', (*CONTROLLERS, TIP), default='modal')
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
    _joystick: Subscription | None = None
    _asked, _asked_at = np.zeros(2), -math.inf

    def make_follower(
        self, machine: BoomParameters, scenario: Scenario | None, settings: Any
    ) -> DampingFollower:
        """Return the controller of the settings."""
        is_tip = settings.method == TIP
        if is_tip and self._joystick is None:
            self._joystick = self.create_subscription(
                Twist, 'tip_velocity', self._on_velocity, qos.SET_POINT
            )
        common = machine, scenario, 1.0 / settings.sample_rate
        if is_tip:
            return TipFollower(*common, delay=settings.delay, joystick=self._velocity)
        return DampingFollower(*common, method=settings.method, delay=settings.delay)

    def _on_velocity(self, message: Twist) -> None:
        """Take the velocity of the tip, x forwards and z upwards, until the next message."""
        velocity = np.array([message.linear.x, message.linear.z])
        if not np.isfinite(velocity).all():
            self.warn(f'tip_velocity = {velocity} m/s is ignored, allowed: finite numbers')
            return
        self._asked, self._asked_at = velocity, time.monotonic()

    def _velocity(self) -> np.ndarray:
        """Return what the joystick asks for, and rest when it is silent."""
        if time.monotonic() - self._asked_at > _SILENT:
            return np.zeros(2)
        return self._asked

    def measurement_of(self, joints: JointState, hydraulics: HydraulicState) -> Measurement:
        """Return the measurements for a cycle, with what gyroscopes at the beams' tips show."""
        known: Measurement = super().measurement_of(joints, hydraulics)
        rates = [
            finite_values(
                'joint_states',
                joints.name,
                joints.velocity,
                [f'{beam.name}{what}' for beam in self._machine.beams],
            )
            for what in ('_joint', '_slope')
        ]
        return known._replace(tip_rates=np.cumsum(np.add(*rates)))
