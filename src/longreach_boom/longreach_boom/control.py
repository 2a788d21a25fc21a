"""Joint position control of a boom."""

from __future__ import annotations

import numpy as np

from longreach_boom.model import constants_of
from longreach_boom.parameters import BoomParameters
from longreach_dynamics.hydraulics import fastest_pistons
from longreach_dynamics.linkages import pistons_and_arms
from longreach_machine.control import JointController


def joint_controller(boom: BoomParameters, sample_time: float) -> JointController:
    """Return the controller of a boom's joints with cycles at an interval, above 0 to 0.1 [s]."""
    return JointController(boom.controller, constants_of(boom).actuators, sample_time)


def rate_limits(boom: BoomParameters, angles: np.ndarray) -> np.ndarray:
    """Return lowest and highest joint rates (M, N, 2) [rad/s] at angles (M, N) [rad]."""
    actuators, most = constants_of(boom).actuators, boom.controller.maximum_velocity
    _, arms = pistons_and_arms(actuators.linkage, np.ascontiguousarray(angles))
    return np.asarray(np.clip(fastest_pistons(actuators), -most, most) / arms[..., None])
