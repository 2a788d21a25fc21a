"""The controllers as a node: in lockstep with the plant it is the library's closed loop."""

import numpy as np
import pytest
from harvesters import STANDARD, shipped

from longreach_dynamics.machine import BY_SCENARIO
from longreach_dynamics.parameters import load
from longreach_harvester.control import load_controller
from longreach_harvester.controller_node import ControllerNode
from longreach_harvester.follower import HarvesterFollower, Measurement
from longreach_harvester.machine import Harvester
from longreach_harvester.plant_node import PlantNode
from longreach_harvester.scenario import Scenario
from longreach_harvester.spec import HARVESTER
from longreach_node.testing import bench, setting

pytestmark = pytest.mark.usefixtures('patient')


@pytest.mark.parametrize('name', ['tip', 'sine'])
def test_in_lockstep_it_is_the_librarys_closed_loop(name):
    scenario = HARVESTER.find_scenario(name)
    given = setting('plant', 'controller', scenario=scenario, lockstep=True)
    with bench(*given, *setting('plant', real_time_factor=0.0, duration=3.0)) as b:
        b.add(ControllerNode)
        plant = b.add(PlantNode)
        b.until(plant.done.done, 'end')
    expected = Harvester(STANDARD, load(Scenario, scenario))
    state = expected.advance(expected.initial_state(), BY_SCENARIO, 0.0, 3.0)
    np.testing.assert_array_equal(plant.state.y, state.y)
    assert plant.state.spools == state.spools
    assert np.abs(plant.state.y[2] - expected.scenario.angles[2]) > 0.05


def test_joints_without_a_sine_stay_closed_until_a_trajectory_moves_them():
    guidance = HarvesterFollower(STANDARD, load_controller(), shipped('sine'))
    away = Measurement(np.array([0.0, 0.60, -1.6]))
    state, spools = guidance.answer(None, 0.0, away)
    assert spools == (0.0, 0.0, 0.0)
    # The boom is not looked after, so it is not left behind either.
    assert guidance.answer(state, 0.01, away)[0].resumptions == 0
    # Taken over anew in mid-run, the stick goes back to its sine, the boom is left alone.
    late = Measurement(np.array([0.0, 0.60, -1.4]))
    state, _ = guidance.answer(None, 2.0, late)
    reference = guidance.cycle(state, 3.0, late)[0].trajectory.at(3.0)
    assert np.isnan(reference.angles[:2]).all()
    assert np.isfinite(reference.angles[2])


def test_a_scenario_of_one_cycle_is_followed():
    guidance = HarvesterFollower(STANDARD, load_controller(), shipped('sine', duration=0.004))
    still = Measurement(np.array([0.0, 0.60, -1.6]))
    assert guidance.answer(None, 0.0, still)[1] == (0.0, 0.0, 0.0)
