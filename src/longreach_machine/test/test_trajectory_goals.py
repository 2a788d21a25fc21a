"""Whether a machine follows a trajectory within tolerances."""

import math

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_machine.trajectories import Trajectory
from longreach_machine.trajectory_goals import Goal, Outcome, Tolerances, positions_of

JOINTS = ('first', 'second')
THERE = np.array([1.0, 0.5])


def goal(path=0.1, end=0.01, time=2.0):
    """Return a goal from 0 at 10 s to THERE at 12 s."""
    trajectory = Trajectory([10.0, 12.0], [[0.0, 0.0], THERE])
    return Goal(JOINTS, trajectory, Tolerances(np.full(2, path), np.full(2, end), time))


def judged(goal, time, angles):
    """Return result and text of a goal that is no longer active."""
    verdict = goal.judge(time, angles)
    assert verdict is not None
    return verdict.outcome, verdict.text


def test_on_the_way_the_path_counts():
    middle = goal().trajectory.at(11.0).angles
    assert goal().judge(11.0, middle + 0.099) is None
    text = 'second is off the path by 11.46 deg, allowed: 5.73 deg'
    found = judged(goal(), 11.0, middle + np.array([0.0, -0.2]))
    assert found == (Outcome.PATH_TOLERANCE_VIOLATED, text)
    assert goal(path=math.inf).judge(11.0, middle + 3.0) is None
    behind = np.array([0.0, 0.15])
    assert goal().judge(11.0, middle + np.array([0.0, -0.2]), behind) is None
    assert judged(goal(), 14.01, THERE - behind) == judged(goal(), 14.01, THERE + behind)


def test_after_the_end_the_goal_counts():
    assert goal().judge(12.0, THERE + 0.05) is None
    assert goal().judge(14.0, THERE + 0.05) is None
    found = judged(goal(), 13.0, THERE + 0.009)
    assert found == (Outcome.SUCCESSFUL, 'goal reached 1.000 s after its time')
    outcome, text = judged(goal(), 14.01, THERE + np.array([0.05, 0.0]))
    assert outcome is Outcome.GOAL_TOLERANCE_VIOLATED
    assert text.startswith('first is off the goal by 2.865 deg, allowed: 0.573 deg')


@pytest.mark.parametrize('tolerance', [0.1, math.inf])
def test_an_angle_that_is_no_number_is_within_no_tolerance(tolerance):
    lost, one = np.array([math.nan, 0.5]), goal(path=tolerance, end=tolerance)
    assert one.judge(13.0, lost) is None
    for time, violated, name in (
        (11.999, Outcome.PATH_TOLERANCE_VIOLATED, 'path'),
        (14.01, Outcome.GOAL_TOLERANCE_VIOLATED, 'goal'),
    ):
        outcome, text = judged(one, time, lost)
        assert outcome is violated
        assert text.startswith(f'first is off the {name} by nan deg')


def test_tolerances_by_name():
    given = [('second', 0.2), ('first', 0.0)]
    np.testing.assert_array_equal(positions_of(given, JOINTS, 0.5, 'path_tolerance'), [0.5, 0.2])
    erased = positions_of([('first', -1.0)], JOINTS, 0.5, 'path_tolerance')
    np.testing.assert_array_equal(erased, [math.inf, 0.5])
    for name, value, error in (
        ('third', 0.1, r"joint of path_tolerance = 'third', allowed: first \| second"),
        ('first', -0.5, 'path_tolerance of first = -0.5 rad, allowed: -1, or from 0 on'),
        ('first', math.nan, 'allowed: -1, or from 0 on'),
    ):
        with pytest.raises(InputError, match=error):
            positions_of([(name, value)], JOINTS, 0.5, 'path_tolerance')
