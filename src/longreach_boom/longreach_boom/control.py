"""
Joint position control of a boom: references of its joints become references of its pistons.

With s_p = f(phi), a reference phi_r, phi_r' asks for the piston position f(phi_r) and the velocity
f'(phi_r) phi_r'. The rest is :class:`longreach_dynamics.control.PistonController`.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from longreach_boom.model import constants_of
from longreach_boom.parameters import BoomParameters
from longreach_dynamics.control import ControllerState, PistonController, check_numbers
from longreach_dynamics.linkages import pistons_and_arms
from longreach_dynamics.trajectories import Reference

__all__ = ['JointController']


@dataclasses.dataclass(frozen=True)
class JointController:
    """
    Joint position controller of a boom.

    Parameters
    ----------
    parameters : BoomParameters
        Gains are its ``controller``; geometry, oil and valves are those that the controller knows.
    sample_time : float
        Interval of cycles [s].

    Raises
    ------
    InputError
        For a sample time that is not positive or above 0.1 s.
    """

    parameters: BoomParameters
    sample_time: float
    _pistons: PistonController = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Make the controller of the pistons."""
        actuators = constants_of(self.parameters).actuators
        pistons = PistonController(self.parameters.controller, actuators, self.sample_time)
        object.__setattr__(self, '_pistons', pistons)

    def initial_state(self) -> ControllerState:
        """Return the state before the first cycle: all valves closed."""
        return self._pistons.initial_state()

    def cycle(
        self,
        memory: ControllerState,
        pistons: np.ndarray,
        head_pressures: np.ndarray,
        rod_pressures: np.ndarray,
        reference: Reference,
    ) -> tuple[ControllerState, np.ndarray]:
        """
        Run one cycle.

        Parameters
        ----------
        memory : ControllerState
            Of the cycle before.
        pistons : ndarray, shape (N,)
            Measured piston positions s_p [m].
        head_pressures, rod_pressures : ndarray, shape (N,)
            Measured p_1 and p_2 [Pa].
        reference : Reference

        Returns
        -------
        memory : ControllerState
        spools : ndarray, shape (N,)
            Commanded spool positions in [-1, 1], until the next cycle.

        Raises
        ------
        InputError
            When an array has another shape or holds what is not finite.
        """
        check_numbers('reference.angles', reference.angles, self.parameters.size)
        check_numbers('reference.rates', reference.rates, self.parameters.size)
        targets, arms = pistons_and_arms(self._pistons.cylinders.linkage, reference.angles[None])
        return self._pistons.cycle(
            memory,
            targets[0],
            arms[0] * reference.rates,
            pistons,
            head_pressures,
            rod_pressures,
        )
