"""Valves by the scenario: what acts when, and the same run as the library's own."""

from __future__ import annotations

import numpy as np
import pytest

from longreach_boom.machine import Boom
from longreach_boom.parameters import BoomParameters
from longreach_boom.scenario import Attachment, HangingLoad, Scenario, resting_scenario
from longreach_boom.simulation import simulate
from longreach_boom.state import BoomCommand, closed_valves
from longreach_dynamics.errors import InputError
from longreach_dynamics.machine import BY_SCENARIO, step_time
from longreach_dynamics.scenarios import ValveCommand, spools_at

OUT, BACK = (0.9, 0.0, -0.3, 0.0), (-0.4, 0.2, 0.0, 0.0)
SCENARIO = Scenario(
    duration=0.4,
    pose='site',
    loads=(HangingLoad(90.0),),
    attach=(Attachment(time=0.108, mass=50.0, beam='beam_3'),),
    release=(0.251,),
    # Between two samples, as well as on one.
    valve_commands=(ValveCommand(0.05, OUT), ValveCommand(0.203, BACK)),
)


def test_a_command_holds_until_the_next() -> None:
    times = (0.0, 0.049, 0.05, 0.202, 0.203, 10.0)
    told = [spools_at(SCENARIO.valve_commands, time, 4) for time in times]
    assert told == [(0.0,) * 4, (0.0,) * 4, OUT, OUT, BACK, BACK]
    # A step's time may lie a rounding below that of the command.
    assert spools_at(SCENARIO.valve_commands, 0.203 - 1e-16, 4) == BACK


@pytest.mark.parametrize('sample_time', [0.001, 0.005, 0.1])
def test_a_boom_by_the_scenario_moves_as_the_library_says(
    boom: BoomParameters, sample_time: float
) -> None:
    machine = Boom(boom, SCENARIO)
    state = machine.initial_state()
    states = [state.y]
    for k in range(round(0.4 / sample_time)):
        time = step_time(k, sample_time)
        state = machine.advance(state, BY_SCENARIO, time, sample_time)
        states.append(state.y)
    expected = simulate(boom, SCENARIO, sample_time=sample_time)
    np.testing.assert_array_equal(np.array(states), expected.states)
    # Worth comparing: valves and loads have moved it.
    assert np.ptp(expected.column('piston_1')) > 1e-3


def test_any_other_command_is_that_of_a_boom(boom: BoomParameters) -> None:
    command = BoomCommand((0.3, 0.2, 0.1, 0.0))
    machine, plain = Boom(boom, SCENARIO), Boom(boom, SCENARIO)
    state = machine.initial_state()
    np.testing.assert_array_equal(
        machine.advance(state, command, 0.2, 0.01).y, plain.advance(state, command, 0.2, 0.01).y
    )
    closed = machine.advance(state, closed_valves(4), 0.1, 0.01)
    assert np.any(closed.y != machine.advance(state, BY_SCENARIO, 0.1, 0.01).y)


def test_without_a_scenario_it_stands_in_the_first_pose(boom: BoomParameters) -> None:
    scenario = resting_scenario(boom)
    np.testing.assert_array_equal(scenario.angles(boom), boom.pose(boom.poses[0].name))
    with pytest.raises(InputError, match='poses of the boom file is empty'):
        resting_scenario(boom.replace(poses=()))
