"""Simulation of the excavator: runs as tables."""

from __future__ import annotations

import numpy as np

from longreach_dynamics.machine import BY_SCENARIO, sample_counts, step_time
from longreach_dynamics.runs import PartialRunError
from longreach_excavator.machine import SAMPLE_TIME, STEP, Excavator
from longreach_excavator.parameters import ExcavatorParameters, load_excavator
from longreach_excavator.results import ExcavatorRun, columns_of, series
from longreach_excavator.scenario import Scenario, dig_scenario
from longreach_excavator.state import CLOSED

# Maximum number of steps in one call of compiled code, a fraction of a second.
_PIECE = 20_000


def simulate(
    parameters: ExcavatorParameters,
    scenario: Scenario,
    step: float = STEP,
    sample_time: float = SAMPLE_TIME,
    tolerance: float = 0.0,
) -> ExcavatorRun:
    """
    Simulate a scenario.

    A run whose state does not stay finite ends with the last valid row; its message states the
    reason. In modes printed and thesis a run ends with the sweep: the forces were measured during
    digging and are not valid afterwards.

    Parameters
    ----------
    parameters : ExcavatorParameters
    scenario : Scenario
    step : float
        Length of a step [s].
    sample_time : float
        Interval of rows [s], a whole number of steps.
    tolerance : float
        See :class:`Excavator`.

    Raises
    ------
    InputError
        When scenario, excavator and steps are inconsistent.
    """
    machine = Excavator(parameters, scenario, step, tolerance)
    state, columns = machine.initial_state(), columns_of(machine)
    width = len(columns) + state.y.size
    every, samples = sample_counts(scenario.duration, sample_time, step, width)
    states, message = [state.y[None]], ''
    ends = scenario.is_driven and scenario.sweep_deg > 0.0
    # In pieces, so that an interrupt is handled between them.
    piece = every if ends else max(1, _PIECE // every) * every
    for first in range(0, samples * every, piece):
        steps = min(piece, samples * every - first)
        try:
            state, table = machine.advance_recorded(state, BY_SCENARIO, first, steps, every)
        except PartialRunError as error:
            message = str(error)
            (table,) = error.recorded
        states.append(table)
        if message or (ends and machine.has_swept(state)):
            break
    rows = np.concatenate(states)
    times = np.array([step_time(k * every, step) for k in range(len(rows))])
    table = series(machine, times, rows)
    return ExcavatorRun(machine.parameters, columns, table, machine, rows, message=message)


def warm_up() -> None:
    """Compile the kernels, or load them from the cache."""
    parameters, scenario = load_excavator(), dig_scenario()
    Excavator(parameters, scenario, tolerance=1e-6).advance(
        Excavator(parameters, scenario).initial_state(), BY_SCENARIO, 0.0, STEP
    )
    excavator = Excavator(parameters, scenario)
    state = excavator.initial_state()
    excavator.joint_sample(excavator.advance(state, BY_SCENARIO, 0.0, excavator.step), CLOSED)
