"""
The digital controller: observer, state regulator, brake rule and diagnosis.

One call of :meth:`Controller.cycle` is one cycle of C13R section 2. Time is counted in whole
cycles, so that rounding of clock times does not affect decisions.

The parameter ``output`` selects one of two interpretations of C13R:

``same_cycle``
    A force computed from the sample of cycle n acts from that sampling instant on (default).
``next_cycle``
    It acts one cycle later.

The brake rule uses the magnitude of the desired force that would act in this cycle. While it is
below the brake condition, cycles are counted; the brake closes when the count exceeds
``steady_time``, and opens when the force is no longer below the condition. While the brake is
closed, the output force, which is also the input of the observer, is zero.
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import numpy as np

from longreach_crane.design import ControllerMatrices, controller_matrices
from longreach_crane.diagnosis import (
    Emergency,
    Sample,
    is_switched,
    is_valid,
    position_emergency,
    silence_emergency,
)
from longreach_crane.parameters import ControllerParameters, CraneParameters, Machinery
from longreach_crane.state import Command


class ControllerState(NamedTuple):
    """State of the controller between cycles."""

    observer: np.ndarray  # q (5,): f_c, x_c, x_c', alpha, alpha'
    command: Command = Command()  # acts from this cycle on
    computed_force: float = 0.0  # saturated output of the regulator [N]
    steady_cycles: int = 0  # consecutive cycles with a desired force below the brake condition
    silent_cycles: int = 0  # consecutive cycles without a valid sample
    emergency: Emergency = Emergency.NONE  # latched


@dataclasses.dataclass(frozen=True)
class Controller:
    """
    Digital controller of a crane.

    Parameters
    ----------
    crane : CraneParameters
        For the permitted range of the car.
    parameters : ControllerParameters
    matrices : ControllerMatrices
    diagnosis : bool
        False disables the diagnosis (C13R, Task B).
    """

    crane: CraneParameters
    parameters: ControllerParameters
    matrices: ControllerMatrices
    diagnosis: bool = True

    @classmethod
    def of(cls, machinery: Machinery, diagnosis: bool = True) -> Controller:
        """Return the controller that a crane file describes."""
        matrices = controller_matrices(machinery.crane, machinery.controller, machinery.design)
        return cls(machinery.crane, machinery.controller, matrices, diagnosis)

    def initial_state(self, car_position: float = 0.0) -> ControllerState:
        """
        Return the state before the first cycle: an observer at rest.

        C13R starts from zeros. A controller that takes over a crane during a run starts from the
        measured position [m]; otherwise the initial observer error would cause a large force.
        """
        return ControllerState(np.array([0.0, car_position, 0.0, 0.0, 0.0]))

    def steady_time(self, state: ControllerState) -> float:
        """Return the time since the desired force fell below the brake condition [s]."""
        return max(0, state.steady_cycles - 1) * self.parameters.sample_time

    def cycle(
        self, state: ControllerState, sample: Sample | None, set_point: float
    ) -> ControllerState:
        """
        Run one cycle.

        Parameters
        ----------
        state : ControllerState
            State after the previous cycle.
        sample : Sample or None
            Readings of the sensors; None when none were received. In that case, and when the
            position is not finite, the observer only predicts, without correction.
        set_point : float
            Desired position of the car [m].

        Returns
        -------
        ControllerState
            New state, with the command that acts from this cycle on.
        """
        switched = sample is not None and is_switched(sample)
        if sample is not None and not is_valid(sample):
            sample = None
        silent = 0 if sample is not None else state.silent_cycles + 1
        emergency = state.emergency
        if emergency is Emergency.NONE and self.diagnosis:
            emergency = self._diagnose(sample, silent, switched)
        if self.parameters.output == 'same_cycle':
            q = self._observe(state.observer, sample, state.command.force)
            computed = self._regulate(q, set_point)
            steady, command = self._decide(computed, state.steady_cycles, emergency)
        else:
            steady, command = self._decide(state.computed_force, state.steady_cycles, emergency)
            q = self._observe(state.observer, sample, command.force)
            computed = self._regulate(q, set_point)
        return ControllerState(q, command, computed, steady, silent, emergency)

    def _diagnose(self, sample: Sample | None, silent_cycles: int, switched: bool) -> Emergency:
        """Return the emergency detected in this cycle."""
        if switched:
            # A stop switch is used even when the position in the same sample is not valid.
            return Emergency.POSITION_LIMIT
        if sample is None:
            return silence_emergency(silent_cycles, self.parameters)
        return position_emergency(sample, self.crane)

    def _observe(self, q: np.ndarray, sample: Sample | None, force: float) -> np.ndarray:
        """Return q := M q + f b + (x_c - c^T q) d; without a sample, no correction."""
        m = self.matrices
        predicted: np.ndarray = m.M @ q + force * m.b
        if sample is not None:
            predicted += (sample.car_position - q[1]) * m.d
        return predicted

    def _regulate(self, q: np.ndarray, set_point: float) -> float:
        """Return V w - h^T q, saturated [N]."""
        u = self.matrices.V * set_point - float(self.matrices.h @ q)
        limit = self.parameters.maximum_force
        return max(min(u, limit), -limit)

    def _decide(
        self, force: float, steady_cycles: int, emergency: Emergency
    ) -> tuple[int, Command]:
        """Return the count of steady cycles and the command, by brake rule and diagnosis."""
        steady = steady_cycles + 1 if math.fabs(force) < self.parameters.brake_condition else 0
        # The first steady cycle starts the time, hence one more than the cycles within it.
        brake = steady - 1 > self.parameters.steady_cycles or emergency is not Emergency.NONE
        return steady, Command(0.0 if brake else force, brake)
