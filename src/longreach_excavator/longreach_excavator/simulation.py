"""Simulation of the excavator: runs as tables."""

from __future__ import annotations

from longreach_excavator.machine import SAMPLE_TIME, STEP, Excavator
from longreach_excavator.parameters import ExcavatorParameters, load_excavator
from longreach_excavator.results import ExcavatorRun, columns_of, series
from longreach_excavator.scenario import Scenario, dig_scenario
from longreach_excavator.state import CLOSED
from longreach_machine.machine import BY_SCENARIO, late_events, sample_counts
from longreach_machine.runs import record


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
    ends = scenario.is_driven and scenario.sweep_deg > 0.0
    ended = machine.has_swept if ends else None
    first = (state.y,)
    times, (rows,), _, message = record(machine, state, first, samples, every, ended=ended)
    table = series(machine, times, rows)
    late = late_events(scenario, 'valve_commands')
    return ExcavatorRun(
        machine.parameters, columns, table, machine, rows, message=message, late=late
    )


def warm_up() -> None:
    """Compile the kernels, or load them from the cache."""
    parameters, scenario = load_excavator(), dig_scenario()
    for tolerance in (0.0, 1e-6):
        excavator = Excavator(parameters, scenario, tolerance=tolerance)
        state = excavator.advance(excavator.initial_state(), BY_SCENARIO, 0.0, STEP)
    excavator.joint_sample(state, CLOSED)
