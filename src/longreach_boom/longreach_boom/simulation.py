"""Simulation of the boom: whole runs as tables."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from longreach_boom.follower import BoomFollower, Measurement
from longreach_boom.machine import AUTOMATIC, SAMPLE_TIME, STEP, Boom, longest_step
from longreach_boom.parameters import BoomParameters, load_boom
from longreach_boom.results import BoomRun, columns_of, series
from longreach_boom.scenario import Scenario
from longreach_boom.state import BoomCommand, BoomState, StateParts, flows_of, piston_positions
from longreach_boom.strain import strains
from longreach_machine.machine import late_events, sample_counts, step_time
from longreach_machine.runs import record
from longreach_machine.trajectories import Trajectory


def simulate(
    parameters: BoomParameters,
    scenario: Scenario,
    step: float = STEP,
    sample_time: float = SAMPLE_TIME,
    progress: bool = False,
) -> BoomRun:
    """
    Simulate a scenario in steps of a length [s].

    A ``step`` of AUTOMATIC is that of :func:`longreach_boom.machine.longest_step`. ``sample_time``
    is the interval of rows and of the controller's cycles [s], a whole number of steps;
    ``progress`` shows a bar on stderr, on a terminal and for runs of more than 1 s. If the state
    becomes non-finite, the run ends at the last row before, with a message. InputError when
    scenario, boom and steps are inconsistent.
    """
    if step == AUTOMATIC:
        step = longest_step(parameters, scenario, sample_time)
    boom = Boom(parameters, scenario, step)
    state = boom.initial_state()
    columns = columns_of(parameters, followed=bool(scenario.trajectory))
    width = len(columns) + state.y.size
    every, samples = sample_counts(scenario.duration, sample_time, step, width)
    trajectory, command = following(boom, every * step)
    first = (state.y, state.modes, np.zeros((parameters.size, 2)))
    times, (rows, modes, forces), state, message = record(
        boom, state, first, samples, every, command=command, progress=progress
    )
    N, n = parameters.size, parameters.size * (1 + parameters.ritz.functions)
    low = rows[:, 2 * n : 2 * n + 2 * N].min(axis=0) < parameters.oil.vapour_pressure
    cavitated = tuple(c.name for i, c in enumerate(parameters.cylinders) if low[i] or low[N + i])
    strain = _strains_of(boom, every, rows, modes, forces)
    table = series(parameters, times, rows, modes, strain)
    answer = None
    if trajectory is not None and command is not None:
        table = np.hstack([table, [trajectory.at(time).angles for time in times]])
        answer = None if message else command(samples, state)
    events = 'valve_commands', 'release', 'attach', 'forces', 'pumping', 'gusts'
    late = late_events(scenario, *events, paths=('trajectory',))
    return BoomRun(parameters, columns, table, rows, cavitated, answer, message=message, late=late)


def following(
    boom: Boom, sample_time: float
) -> tuple[Trajectory | None, Callable[[int, BoomState], BoomCommand] | None]:
    """
    Return the trajectory of a scenario, and the controller's commands to samples, in their order.

    None for a scenario without a trajectory.
    """
    if not boom.scenario.trajectory:
        return None, None
    follower = BoomFollower(boom.parameters, boom.scenario, sample_time)
    memory = follower.begin(boom.scenario.angles(boom.parameters))
    N = boom.parameters.size

    def command(sample: int, state: BoomState) -> BoomCommand:
        nonlocal memory
        parts = StateParts.of(state.y, boom.parameters)
        angles = parts.q[:N]
        pistons = piston_positions(angles, boom.constants(()))
        measured = Measurement(angles, pistons, parts.head_pressures, parts.rod_pressures)
        time = step_time(sample, follower.sample_time)
        memory, spools = follower.cycle(memory, time, measured)
        return spools

    return memory.trajectory, command


def _strains_of(
    boom: Boom, every: int, rows: np.ndarray, modes: np.ndarray, forces: np.ndarray
) -> np.ndarray:
    """Return the strains of all rows, each with loads and forces of the step that ends at it."""
    parameters, scenario = boom.parameters, boom.scenario
    carried = scenario.carried(parameters)
    # A change acts from its step on; the row at that time is still without it.
    edges = [round(time / boom.step) // every + 1 for time, _ in carried[1:]]
    pieces = zip([0, *edges], [*edges, len(rows)], carried, strict=True)
    if scenario.disturbances:
        states = [
            BoomState(rows[k], modes[k], loads, forces[k])
            for first, end, (_, loads) in pieces
            for k in range(first, min(end, len(rows)))
        ]
        return np.array([strains(parameters, state, scenario.friction) for state in states])
    parts = [
        BoomState(rows[first:end], modes[first:end], loads) for first, end, (_, loads) in pieces
    ]
    return np.concatenate([strains(parameters, part, scenario.friction) for part in parts])


def warm_up() -> None:
    """Compile the kernels, or load them from the cache."""
    # A boom that differs from all others, so that cache look-ups find a boom by identity.
    parameters = load_boom().replace(gravity=1.0)
    boom = Boom(parameters, Scenario(duration=1.0, pose=parameters.poses[0].name))
    command = BoomCommand((0.0,) * parameters.size)
    state = boom.initial_state()
    state = boom.advance(state, command, 0.0, boom.step)
    boom.joint_sample(state, command)
    strains(parameters, state)
    flows_of(StateParts.of(state.y, parameters), boom.constants(()))
