"""
The digital controller: sensors, observer, state regulator, brake rule and diagnosis.

One call of :meth:`Controller.cycle` is one cycle of C13R section 2. Time is counted in whole
cycles, so that rounding of clock times does not affect decisions. A force computed from the sample
of cycle n acts from that instant on (``output``: ``same_cycle``) or one cycle later
(``next_cycle``).

While the magnitude of the desired force is below the brake condition, cycles are counted; the
brake closes when the count exceeds ``steady_time``, and opens when the force is no longer below.
While it is closed, the output force, which is also the input of the observer, is zero.

The diagnosis latches the emergency mode when position or a stop switch shows that the car has left
its permitted range and, in addition to the paper, when no valid sample came for too long.
"""

from __future__ import annotations

import dataclasses
import math
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from longreach_crane.design import ControllerMatrices, controller_matrices
from longreach_crane.machine import Command
from longreach_crane.parameters import ControllerParameters, CraneParameters, Machinery


class Emergency(IntEnum):
    """Reason for the emergency mode; the same values as in the message CraneStatus."""

    NONE = 0
    POSITION_LIMIT = 1
    SENSOR_TIMEOUT = 2


class Sample(NamedTuple):
    """Readings of the three sensors, C13R table 2."""

    car_position: float  # PosCar [m]
    below_minimum: bool  # SwPosCarMin
    above_maximum: bool  # SwPosCarMax

    @property
    def is_valid(self) -> bool:
        """Whether the observer can use it: its position is finite."""
        return math.isfinite(self.car_position)


def sense(car_position: float, crane: CraneParameters) -> Sample:
    """Return the sensor readings for a car at ``car_position`` [m]."""
    return Sample(
        float(car_position),
        bool(car_position < crane.minimum_position),
        bool(car_position > crane.maximum_position),
    )


def is_permitted(car_position: float, crane: CraneParameters) -> bool:
    """Return whether a car position [m] lies within the limits."""
    return crane.minimum_position <= car_position <= crane.maximum_position


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
    """Digital controller of a crane; without ``diagnosis`` (Task B) there is no emergency."""

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
        """Return the state before the first cycle: an observer at rest."""
        # C13R starts from zeros. A controller that takes over a crane during a run starts from the
        # measured position [m]; otherwise the initial observer error would cause a large force.
        return ControllerState(np.array([0.0, car_position, 0.0, 0.0, 0.0]))

    def steady_time(self, state: ControllerState) -> float:
        """Return the time since the desired force fell below the brake condition [s]."""
        return max(0, state.steady_cycles - 1) * self.parameters.sample_time

    def cycle(
        self, state: ControllerState, sample: Sample | None, set_point: float
    ) -> ControllerState:
        """Return the state after a cycle; without a valid sample the observer only predicts."""
        given, silent = sample, 0
        if sample is None or not sample.is_valid:
            sample, silent = None, state.silent_cycles + 1
        emergency = state.emergency
        if emergency is Emergency.NONE and self.diagnosis:
            emergency = self._diagnose(given, silent)
        if self.parameters.output == 'same_cycle':
            q = self._observe(state.observer, sample, state.command.force)
            computed = self._regulate(q, set_point)
            steady, command = self._decide(computed, state.steady_cycles, emergency)
        else:
            steady, command = self._decide(state.computed_force, state.steady_cycles, emergency)
            q = self._observe(state.observer, sample, command.force)
            computed = self._regulate(q, set_point)
        return ControllerState(q, command, computed, steady, silent, emergency)

    def _diagnose(self, sample: Sample | None, silent_cycles: int) -> Emergency:
        """Return the emergency detected in this cycle."""
        if sample is not None and (sample.below_minimum or sample.above_maximum):
            # A stop switch is used even when the position in the same sample is not valid.
            return Emergency.POSITION_LIMIT
        if silent_cycles:
            # Tolerance of a millionth of a cycle, so that rounding of the product has no effect.
            silence = (silent_cycles - 1e-6) * self.parameters.sample_time
            late = silence > self.parameters.sensor_timeout
            return Emergency.SENSOR_TIMEOUT if late else Emergency.NONE
        assert sample is not None
        permitted = is_permitted(sample.car_position, self.crane)
        return Emergency.NONE if permitted else Emergency.POSITION_LIMIT

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
