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

from longreach_excavator.forces import MEASURED_TIME
from longreach_excavator.parameters import ExcavatorParameters
from longreach_excavator.scenario import dig_scenario
from longreach_excavator.simulation import simulate

COHESIONS = (10e3, 15e3, 17e3, 20e3)
"""The iterations of the thesis, 5.2 [Pa]."""
STEPS = (0.01, 0.002)
"""Steps of figures 5.33 and 5.34 [s]."""
# Of the local error of the runs that others are compared with.
_TOLERANCE = 1e-9
# Joint A.
_FOOT = 'load_boom_chassis'


class StepCase(NamedTuple):
    """A digging with one cohesion and one step size, in steps of order 4 with a row for each."""

    cohesion: float  # [Pa]
    step: float  # [s]
    times: np.ndarray  # (rows,) [s]
    force: np.ndarray  # (rows,) in the boom's foot [N]
    sweep: float | None  # time at which the sweep ends [s]
    difference: float  # largest one from order 8, as a share of the peak

    def summary(self) -> dict[str, Any]:
        """Return peak, its time, end of the sweep and difference as plain numbers, or None."""
        peak = int(self.force.argmax())
        return {
            'cohesion_pa': self.cohesion,
            'step_s': self.step,
            'peak_n': float(self.force[peak]),
            'peak_time_s': float(self.times[peak]),
            'time_to_sweep_s': self.sweep,
            'difference': self.difference,
        }


def step_study(
    excavator: ExcavatorParameters,
    cohesions: Sequence[float] = COHESIONS,
    steps: Sequence[float] = STEPS,
) -> list[StepCase]:
    """Return the digging with each cohesion [Pa] and step [s]; LongreachError if one fails."""
    return [_case(excavator, cohesion, step) for step in steps for cohesion in cohesions]


def _case(excavator: ExcavatorParameters, cohesion: float, step: float) -> StepCase:
    """Return one case."""
    scenario = dig_scenario('thesis', cohesion, MEASURED_TIME)
    run, exact = (simulate(excavator, scenario, step, step, error) for error in (0.0, _TOLERANCE))
    for one in (run, exact):
        one.check()
    force, expected = run.column(_FOOT), exact.column(_FOOT)
    rows = min(len(expected), len(force))
    away = float(np.abs(force[:rows] - expected[:rows]).max() / expected.max())
    return StepCase(cohesion, step, run.column('time'), force, run.time_to_sweep(), away)
