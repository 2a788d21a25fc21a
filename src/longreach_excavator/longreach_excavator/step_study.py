"""
Force in the boom's foot with several cohesions and step sizes, Ozunlu 2009, figures 5.33 and 5.34.

The thesis finds peaks in the results of a commercial program at steps of 0.01 s and 0.002 s, and
discusses whether the steps cause them. Here each run with steps of order 4, as in the thesis, is
compared with one of order 8 with error control, at the same instants.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from longreach_dynamics.errors import LongreachError
from longreach_excavator.forces import MEASURED_TIME
from longreach_excavator.parameters import ExcavatorParameters
from longreach_excavator.results import ExcavatorRun
from longreach_excavator.scenario import dig_scenario
from longreach_excavator.simulation import simulate

__all__ = ['COHESIONS', 'STEPS', 'StepCase', 'step_study']

COHESIONS = (10e3, 15e3, 17e3, 20e3)
"""The iterations of the thesis, 5.2 [Pa]."""
STEPS = (0.01, 0.002)
"""Steps of figures 5.33 and 5.34 [s]."""
# Of the local error of the runs that others are compared with.
_TOLERANCE = 1e-9
# Joint A.
_FOOT = 'boom_chassis'


class StepCase(NamedTuple):
    """A digging with one cohesion and one step size."""

    cohesion: float  # [Pa]
    step: float  # [s]
    run: ExcavatorRun | None  # steps of order 4, a row for each; None if it was refused
    difference: float  # largest one from the run of order 8, as a share of the peak
    message: str  # why it was refused, or ended early; empty for a complete run

    @property
    def force(self) -> np.ndarray:
        """Force in the boom's foot (rows,) [N]; no rows of a run that was refused."""
        return np.empty(0) if self.run is None else self.run.magnitude(_FOOT)

    @property
    def times(self) -> np.ndarray:
        """Times of the rows [s]."""
        return np.empty(0) if self.run is None else self.run.column('time')

    def summary(self) -> dict[str, Any]:
        """Return peak, its time, end of the sweep and difference as plain numbers, or None."""
        found: dict[str, Any] = {'cohesion_pa': self.cohesion, 'step_s': self.step}
        known = self.run is not None
        k = int(self.force.argmax()) if known else 0
        return found | {
            'peak_n': float(self.force[k]) if known else None,
            'peak_time_s': float(self.times[k]) if known else None,
            'time_to_sweep_s': self.run.time_to_sweep() if self.run else None,
            'difference': self.difference if np.isfinite(self.difference) else None,
            'message': self.message,
        }


def step_study(
    excavator: ExcavatorParameters,
    mode: str = 'thesis',
    cohesions: Sequence[float] = COHESIONS,
    steps: Sequence[float] = STEPS,
) -> list[StepCase]:
    """
    Return the digging with each cohesion [Pa] and step [s].

    A run that is refused, such as one with too long a step, or that fails, is a case with a
    message.
    """
    return [_case(excavator, mode, cohesion, step) for step in steps for cohesion in cohesions]


def _case(excavator: ExcavatorParameters, mode: str, cohesion: float, step: float) -> StepCase:
    """Return one case."""
    try:
        scenario = dig_scenario(mode, cohesion, MEASURED_TIME)
        run = simulate(excavator, scenario, step, step)
        exact = simulate(excavator, scenario, step, step, _TOLERANCE)
    except LongreachError as error:
        return StepCase(cohesion, step, None, np.nan, str(error))
    case = StepCase(cohesion, step, run, np.nan, run.message or exact.message)
    expected = exact.magnitude(_FOOT)
    rows = min(len(expected), len(case.force))
    away = np.abs(case.force[:rows] - expected[:rows]).max() / expected.max()
    return case._replace(difference=float(away))
