"""
Simulation of the crane with its controller: whole runs as tables.

The controller acts only at sampling instants, and disturbances start and end at them. The
right-hand side is therefore smooth between two instants, and the motion is integrated from instant
to instant without discontinuities inside an integration.
"""

from __future__ import annotations

import numpy as np

from longreach_crane.control import Controller
from longreach_crane.diagnosis import Emergency, sense
from longreach_crane.machine import Crane
from longreach_crane.model import CAR_POSITION, CAR_VELOCITY, load_position
from longreach_crane.parameters import Machinery, load_machinery
from longreach_crane.results import CraneRun, Event, columns_of
from longreach_crane.scenario import Scenario
from longreach_crane.state import Command, CraneState
from longreach_dynamics.machine import check_rows, step_count, step_time
from longreach_dynamics.stepping import IntegrationError


def simulate(
    machinery: Machinery,
    scenario: Scenario,
    model: str = 'nonlinear',
    brake: str = 'viscous',
    relative: float = 1e-12,
    absolute: float = 1e-13,
) -> CraneRun:
    """
    Simulate crane and controller through a scenario.

    If the state becomes non-finite, the run ends at the last cycle before, with a message.

    Parameters
    ----------
    machinery : Machinery
        Crane, controller and design, as in a crane file.
    scenario : Scenario
    model : 'nonlinear' or 'linear'
    brake : 'viscous' or 'rigid'
    relative, absolute : float
        Tolerances of the integration. The defaults keep the state of C13R's tasks within 1e-9 of
        the exact solution.

    Raises
    ------
    InputError
        When a time of the scenario is not on a control cycle, or a variant is unknown.
    """
    T = machinery.controller.sample_time
    scenario.check_cycles(T)
    cycles = step_count(scenario.duration, T, 'duration')
    crane = Crane(machinery.crane, scenario, model, brake, relative, absolute)
    controller = Controller.of(machinery, scenario.diagnosis)
    state, control = crane.initial_state(), controller.initial_state()
    columns = columns_of(machinery.crane)
    check_rows(
        cycles + 1,
        len(columns) + state.x.size,
        f'duration = {scenario.duration:g} s with control cycles of {T:g} s',
        'take a shorter duration',
    )
    states, decided = np.empty((cycles + 1, state.x.size)), np.empty((cycles + 1, 3))
    crossings: list[Event] = []
    evaluations, message = 0, ''
    set_points = _set_points(scenario, cycles, T)
    for cycle in range(cycles + 1):
        time = step_time(cycle, T)
        sample = sense(state.x[CAR_POSITION], machinery.crane)
        control = controller.cycle(control, sample, set_points[cycle])
        states[cycle] = state.x
        decided[cycle] = (*control.command, control.emergency is not Emergency.NONE)
        if cycle < cycles:
            try:
                after, count = crane.advance_counting(state, control.command, time, T)
            except IntegrationError as error:
                message = str(error)
                break
            evaluations += count
            crossings += _crossings(crane, state, after, control.command, time, T)
            state = after
    rows = slice(cycle + 1)
    times = np.array([step_time(k, T) for k in range(cycle + 1)])
    states = states[rows]
    loads = load_position(states, crane.constants)
    return CraneRun(
        machinery.crane,
        columns,
        np.column_stack([times, states, loads, decided[rows], set_points[rows]]),
        tuple(crossings),
        evaluations,
        message=message,
    )


def _set_points(scenario: Scenario, cycles: int, sample_time: float) -> np.ndarray:
    """Return the set point of every cycle [m], shape (cycles + 1,)."""
    positions = np.zeros(cycles + 1)
    for point in scenario.set_points:
        positions[step_count(point.time, sample_time, 'time') :] = point.car_position
    return positions


def _crossings(
    crane: Crane,
    before: CraneState,
    after: CraneState,
    command: Command,
    time: float,
    duration: float,
) -> list[Event]:
    """Return when the car passed one of its limits within an interval, located to 1e-12 s."""
    p = crane.parameters
    # Bound of the car's travel: twice the duration times the larger speed at the two ends.
    reach = 2.0 * duration * max(abs(before.x[CAR_VELOCITY]), abs(after.x[CAR_VELOCITY]))
    lowest = min(before.x[CAR_POSITION], after.x[CAR_POSITION]) - reach
    highest = max(before.x[CAR_POSITION], after.x[CAR_POSITION]) + reach
    if p.minimum_position <= lowest and highest <= p.maximum_position:
        return []
    # Imported here: SciPy's optimisers would add a quarter of a second to the start of every node.
    from scipy.optimize import brentq

    def at(instant: float) -> np.ndarray:
        if instant <= 0.0:
            return before.x
        return crane.advance(before, command, time, instant).x

    instants = [0.0, duration]
    if before.x[CAR_VELOCITY] * after.x[CAR_VELOCITY] < 0.0:
        # A turning point inside the interval may lie beyond a limit although both ends do not.
        turn = brentq(lambda s: at(s)[CAR_VELOCITY], 0.0, duration, xtol=1e-12)
        instants.insert(1, turn)
    positions = [at(instant)[CAR_POSITION] for instant in instants]
    found = []
    for name in ('minimum_position', 'maximum_position'):
        limit = getattr(p, name)
        sides = [p < limit if name == 'minimum_position' else p > limit for p in positions]
        for i in range(len(instants) - 1):
            if sides[i] != sides[i + 1]:
                root = brentq(
                    lambda s, limit=limit: at(s)[CAR_POSITION] - limit,
                    instants[i],
                    instants[i + 1],
                    xtol=1e-12,
                )
                found.append(Event(time + root, name))
    return sorted(found)


def warm_up() -> None:
    """Compile the kernels, or load them from the cache."""
    crane = Crane(load_machinery().crane)
    crane.advance(crane.initial_state(), Command(1.0, False), 0.0, 0.01)
