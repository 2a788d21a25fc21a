"""Joint position control of a boom."""

from __future__ import annotations

from longreach_boom.model import constants_of
from longreach_boom.parameters import BoomParameters
from longreach_dynamics.control import JointController

__all__ = ['joint_controller']


def joint_controller(boom: BoomParameters, sample_time: float) -> JointController:
    """
    Return the controller of a boom's joints with cycles at an interval [s].

    Gains are those of ``boom.controller``; geometry, oil and valves are those of the boom.

    Raises
    ------
    InputError
        For a sample time that is not positive or above 0.1 s.
    """
    return JointController(boom.controller, constants_of(boom).actuators, sample_time)
