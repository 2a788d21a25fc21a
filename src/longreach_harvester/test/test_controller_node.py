"""The controllers as a node: in lockstep with the plant it is the library's closed loop."""

import numpy as np
import pytest
from harvesters import STANDARD, shipped

from longreach_harvester.control import load_controller
from longreach_harvester.follower import HarvesterFollower, Measurement

pytestmark = pytest.mark.usefixtures('patient')


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
