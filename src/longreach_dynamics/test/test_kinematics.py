"""Planar chains: joints to places and back."""

import math
from functools import partial

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_dynamics.kinematics import joint_places, solve_pose

LENGTHS = (5.0, 3.0, 1.5)
LIMITS = np.radians([[-40.0, 60.0], [-150.0, -10.0], [-140.0, 30.0]])
START = np.radians([30.0, -60.0, -40.0])


def tip(angles, lengths=LENGTHS):
    end = joint_places(lengths, angles)[-1]
    return np.array([end.real, end.imag])


def tip_and_attitude(angles):
    return np.append(tip(angles), angles.sum())


def test_places_of_a_chain():
    places = joint_places(LENGTHS, np.radians([[90.0, -90.0, -90.0], [0.0, 0.0, 0.0]]))
    assert places[0] == pytest.approx([0.0, 5.0j, 3.0 + 5.0j, 3.0 + 3.5j], abs=1e-12)
    assert places[1] == pytest.approx([0.0, 5.0, 8.0, 9.5], abs=1e-12)


def test_poses_are_found_again_by_their_tip_and_attitude():
    random = np.random.default_rng(1)
    for _ in range(20):
        angles = random.uniform(*LIMITS.T)
        near = np.clip(angles + random.normal(0.0, 0.1, 3), *LIMITS.T)
        found = solve_pose(tip_and_attitude, tip_and_attitude(angles), LIMITS, near)
        np.testing.assert_allclose(tip_and_attitude(found), tip_and_attitude(angles), atol=2e-6)


def watched_tip():
    """Return the function ``tip``, and a list of the angles that it is asked for."""
    asked = []

    def watched(angles):
        asked.append(angles.copy())
        return tip(angles)

    return asked, watched


def test_a_free_joint_stays_where_it_can():
    # Of the poses with this tip, the one that is nearest: any other is further from the start.
    target = tip(START) + np.array([0.3, -0.2])
    found = solve_pose(tip, target, LIMITS, START)
    np.testing.assert_allclose(tip(found), target, atol=2e-6)
    for attitude in found.sum() + np.linspace(-0.2, 0.2, 9):
        other = solve_pose(tip_and_attitude, [*target, attitude], LIMITS, found)
        assert np.sum((other - START) ** 2) > np.sum((found - START) ** 2) - 1e-6


def test_limits_are_kept_also_by_what_is_asked():
    asked, watched = watched_tip()
    limits = np.stack([START - 1e-9, START + math.radians(20.0)], axis=1)
    solve_pose(watched, tip(START + 0.05), limits, START)
    assert np.all((np.array(asked) >= limits[:, 0]) & (np.array(asked) <= limits[:, 1]))


def test_places_out_of_reach_are_refused_with_the_nearest():
    limits = np.radians([[-40.0, 60.0], [-90.0, 90.0], [-90.0, 90.0]])
    with pytest.raises(InputError, match=r'tooth = \[12\.0, 0\.0\].*nearest .*\[9\.5.* 2\.5 m'):
        solve_pose(tip, [12.0, 0.0], limits, np.full(3, 0.1), 'tooth')
    with pytest.raises(InputError, match='finite numbers'):
        solve_pose(tip, [math.nan, 0.0], limits, START)


def test_of_poses_far_apart_the_nearest_is_found():
    # From the start alone another one is found, whose angles are 3.74 rad away.
    limits = np.radians([[-10.2, 98.8], [-187.2, 18.6], [-185.0, 21.8], [-188.8, 27.0]])
    place = partial(tip, lengths=(9.6, 8.6, 8.4, 9.0))
    found = solve_pose(place, [-9.927, 5.721], limits, np.zeros(4))
    np.testing.assert_allclose(place(found), [-9.927, 5.721], atol=2e-6)
    assert np.linalg.norm(found) < 2.7


@pytest.mark.parametrize('start', [(0.0, 0.0), (0.3, 0.2)])
def test_a_place_that_only_least_squares_find_is_reached(start):
    place = partial(tip, lengths=(1.0, 0.8))
    limits = np.radians([[-120.0, 120.0], [-120.0, 120.0]])
    found = solve_pose(place, [-0.2, 1.0], limits, np.array(start))
    np.testing.assert_allclose(place(found), [-0.2, 1.0], atol=2e-6)
    assert np.all((found >= limits[:, 0]) & (found <= limits[:, 1]))


@pytest.mark.parametrize('width', [0.0, 1e-8])
def test_a_joint_whose_limits_coincide_stays(width):
    asked, watched = watched_tip()
    limits = LIMITS.copy()
    limits[1] = START[1], START[1] + width
    target = tip(START + np.radians([5.0, 0.0, -8.0]))
    found = solve_pose(watched, target, limits, START)
    np.testing.assert_allclose(tip(found), target, atol=2e-6)
    assert np.all((np.array(asked) >= limits[:, 0]) & (np.array(asked) <= limits[:, 1]))
    with pytest.raises(InputError, match=r'the nearest that was found is'):
        solve_pose(tip, [12.0, 0.0], limits, START)


def test_limits_out_of_order_are_refused():
    limits = LIMITS.copy()
    limits[1] = limits[1, ::-1]
    with pytest.raises(InputError, match=r'limits of joint 2 = -0\.17.* to -2\.6.* rad, allowed'):
        solve_pose(tip, tip(START), limits, START)
    limits[1, 0] = math.nan
    with pytest.raises(InputError, match='limits of joint 2 = nan'):
        solve_pose(tip, tip(START), limits, START)
