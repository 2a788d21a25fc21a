"""
The crane as a machine for nodes and runs.

During a call commands and disturbances are constant, so the right-hand side is smooth. With the
brake open the motion is integrated by DOP853. The viscous brake makes it stiff (an eigenvalue of
-1e4 1/s), and Radau IIA is used. With the rigid brake the load is a pendulum with a fixed
suspension.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from longreach_crane.model import (
    ANGLE,
    ANGULAR_VELOCITY,
    CAR_POSITION,
    CAR_VELOCITY,
    FREE,
    HELD,
    MOTOR_FORCE,
    Constants,
    Inputs,
    advance_motion,
    stop_car,
)
from longreach_crane.parameters import CraneParameters
from longreach_crane.scenario import Scenario
from longreach_dynamics.errors import check_among
from longreach_dynamics.stepping import raise_for
from longreach_machine.machine import JointSample

BRAKES = ('viscous', 'rigid')
MODELS = ('nonlinear', 'linear')


class Command(NamedTuple):
    """Command of the controller to motor and brake."""

    force: float = 0.0  # f_c^Desired [N]
    brake: bool = False


class CraneState(NamedTuple):
    """State of the crane: continuous part and mode of the car. Never changed in place."""

    x: np.ndarray  # (5,): f_c, x_c, x_c', alpha, alpha'
    car: int = FREE  # FREE, or HELD by the rigid brake


@dataclasses.dataclass(frozen=True)
class Crane:
    """
    The crane as a :class:`longreach_machine.machine.Machine`.

    Parameters
    ----------
    parameters : CraneParameters
    scenario : Scenario, optional
        Initial state and disturbances; a disturbance must not start or end inside the interval
        of a call.
    model : 'nonlinear' or 'linear'
    brake : 'viscous' or 'rigid'
    relative, absolute : float
        Tolerances of the local error of each component of the state. The defaults keep the state
        of C13R's tasks within 1e-9 of the exact solution.

    Raises
    ------
    InputError
        For another model or brake.
    """

    parameters: CraneParameters
    scenario: Scenario = dataclasses.field(default_factory=lambda: Scenario(duration=1.0))
    model: str = 'nonlinear'
    brake: str = 'viscous'
    relative: float = 1e-12
    absolute: float = 1e-13
    constants: Constants = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the two choices and prepare the constants for compiled code."""
        for name, value, allowed in (('model', self.model, MODELS), ('brake', self.brake, BRAKES)):
            check_among(name, value, allowed)
        constants = Constants.of(self.parameters, linear=self.model == 'linear')
        object.__setattr__(self, 'constants', constants)

    def initial_state(self) -> CraneState:
        """Return the scenario's initial state."""
        return CraneState(self.scenario.initial_state.vector())

    def inputs(self, command: Command, time: float, duration: float) -> Inputs:
        """Return what acts for ``duration`` [s] after ``time`` [s]."""
        return Inputs(
            desired_force=float(command.force),
            disturbance=float(self.scenario.disturbance(time + 0.5 * duration)),
            friction=self.constants.d_brake if command.brake else self.constants.d_c,
            car=HELD if command.brake and self.brake == 'rigid' else FREE,
        )

    def advance(
        self, state: CraneState, command: Command, time: float, duration: float
    ) -> CraneState:
        """Return the state ``duration`` [s] after ``time`` [s]; raises IntegrationError."""
        p, x, inputs = self.constants, state.x, self.inputs(command, time, duration)
        if inputs.car == HELD and state.car == FREE:
            x = stop_car(x, p)
        x_end, _, _, status = advance_motion(
            float(time), float(duration), x, inputs, p, self.relative, self.absolute
        )
        raise_for(status, time, x)
        return CraneState(x_end, inputs.car)

    def joint_sample(self, state: CraneState, command: Command) -> JointSample:  # noqa: ARG002
        """Return car_joint [m] with the motor's force [N], and cable_joint [rad]."""
        x = state.x.tolist()
        return JointSample(
            names=('car_joint', 'cable_joint'),
            positions=(x[CAR_POSITION], x[ANGLE]),
            velocities=(x[CAR_VELOCITY], x[ANGULAR_VELOCITY]),
            efforts=(x[MOTOR_FORCE], 0.0),
        )
