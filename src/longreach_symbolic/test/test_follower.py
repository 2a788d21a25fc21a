"""What the controllers of links follow: the scenario, orders, and links that are elsewhere."""

import math
from pathlib import Path

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_machine.trajectory_following import Order
from longreach_symbolic.arm import designed_arm
from longreach_symbolic.follower import LinksFollower
from longreach_symbolic.links import load_links
from longreach_symbolic.machine import FlexibleLinks
from longreach_symbolic.scenario import load_scenario, resting_scenario

LINKS = load_links()
# Their sag is above the deviation at which an arm counts as one that does not follow.
SOFT = LINKS.replace(
    links=[
        link.replace(bending_stiffness=stiffness)
        for link, stiffness in zip(LINKS.links, (8.0, 3.4), strict=True)
    ]
)
SCENARIOS = Path(__file__).resolve().parents[3] / 'config' / 'scenarios'


def machine(name='', links=LINKS, **changes):
    scenario = resting_scenario(links)
    if name:
        scenario = load_scenario(SCENARIOS / f'links_{name}.yaml', links).replace(**changes)
    return FlexibleLinks(links, designed_arm(links), scenario)


@pytest.mark.parametrize(
    ('name', 'links', 'changes'),
    [('circle', LINKS, {'duration': 1.0}), ('swing', LINKS, {}), ('swing', SOFT, {})],
)
def test_a_scenario_is_followed_as_by_the_controllers_alone(name, links, changes):
    """A circle goes on after the scenario's end."""
    one = machine(name, links, **changes)
    follower, state, told = LinksFollower(one.controller), one.initial_state(), None
    for k in range(500):
        motors = one.controller.motors(state.x)
        told, torques = follower.answer(told, k * one.step, follower.measured(*motors))
        assert torques == one.controller.torques(*motors, k)
        state = one.advance(state, torques, k * one.step, one.step)
    assert told.resumptions == 0


def test_chords_follow_from_motors():
    follower = LinksFollower(machine().controller)
    angles = np.array([0.3, -0.8])
    q, _ = follower.controller.rest_at(angles)
    motors, _ = follower.controller.motors(np.concatenate((q, q)))
    assert np.abs(motors - angles).max() > 1e-3, 'links are bent'
    np.testing.assert_allclose(follower.measured(motors, motors).angles, angles, atol=1e-6)


@pytest.mark.parametrize('duration', [20.0, 6.0])
def test_a_late_controller_leads_links_back_slowly(duration):
    """And follows the circle beyond the scenario's end."""
    one = machine('circle', duration=duration)
    follower, state, told, largest = LinksFollower(one.controller), one.initial_state(), None, 0.0
    resting = np.abs(state.torques).max()
    for k in range(800, 2400):
        motors = one.controller.motors(state.x)
        told, torques = follower.answer(told, k * one.step, follower.measured(*motors))
        largest = max(largest, np.abs(torques).max())
        state = one.advance(state, torques, k * one.step, one.step)
    # Not led back, the first cycle has three times these.
    first = one.controller.torques(*one.controller.motors(one.initial_state().x), 800)
    assert np.abs(first).max() > 3.0 * resting
    assert largest < 1.2 * resting
    reference = told.reference(2399 * one.step)
    assert np.abs(reference.angles - told.angles).max() < math.radians(1.0)
    assert np.abs(reference.rates).max() > 0.01
    assert told.resumptions == 0


@pytest.mark.parametrize(
    ('times', 'angles', 'error'),
    [
        ([0.1], [[0.9, 0.0]], r'rad/s\^2 in joint_1, allowed: 17\.8\d rad/s\^2'),
        ([3.0], [[9.0, 0.0]], r'joint_1 has 2\d\d\.\d deg/s, allowed there: 241\.9'),
        ([3.0], [[0.8]], '1 angles in a point, allowed: 2'),
    ],
)
def test_orders_that_would_bend_links_are_refused(times, angles, error):
    follower = LinksFollower(machine().controller)
    state = follower.begin(np.radians([45.0, 0.0]))
    with pytest.raises(InputError, match=error):
        follower.follow(state, Order((0, 1), times, angles), 0.0)
