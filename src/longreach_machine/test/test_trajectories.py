"""Trajectories: rest in their waypoints, least jerk between them, and what is refused."""

import math

import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline

from longreach_dynamics.errors import InputError
from longreach_machine.trajectories import CubicTrajectory, Trajectory, Waypoint
from longreach_machine.trajectory_following import TrajectoryFollower


@pytest.fixture(scope='module')
def trajectory():
    angles = np.radians([[10.0, 5.0], [40.0, 5.0], [-20.0, 8.0]])
    return Trajectory(np.array([1.0, 5.0, 8.0]), angles)


def test_a_trajectory_rests_in_its_waypoints(trajectory):
    for time, index in ((-3.0, 0), (0.0, 0), (1.0, 0), (5.0, 1), (8.0, 2), (8.001, 2), (1e6, 2)):
        reference = trajectory.at(time)
        np.testing.assert_array_equal(reference.angles, trajectory.angles[index])
        np.testing.assert_array_equal(reference.rates, [0.0, 0.0])
    assert trajectory.duration == 8.0


def test_rates_are_the_derivative_of_angles(trajectory):
    d = 1e-5
    for time in np.linspace(0.5, 8.5, 161):
        before, here, after = (trajectory.at(time + k * d) for k in (-1, 0, 1))
        slope = (after.angles - before.angles) / (2.0 * d)
        np.testing.assert_allclose(here.rates, slope, rtol=0.0, atol=1e-8)


def test_rates_and_accelerations_are_continuous_and_jerk_is_the_least(trajectory):
    d = 1e-3
    times = np.arange(0.0, 9.0, d) + d / 2.0
    rates = np.array([trajectory.at(time).rates for time in times])
    acceleration = np.diff(rates, axis=0) / d
    jerk = np.diff(acceleration, axis=0) / d
    # The largest jerk of the steepest part, 60 D / T^3: nothing in between is a jump.
    assert np.abs(jerk).max() < 1.01 * 60.0 * math.radians(60.0) / 3.0**3
    # No curve from rest to rest can have less than 720 D^2 / T^5.
    least = 720.0 * (math.radians(30.0) ** 2 / 4.0**5 + math.radians(60.0) ** 2 / 3.0**5)
    assert np.sum(jerk[:, 0] ** 2) * d == pytest.approx(least, rel=2e-3)


def test_waypoints_in_degrees():
    made = Trajectory.of([Waypoint(0.0, (70.0, -50.0)), Waypoint(4.0, (60.0, -40.0))])
    np.testing.assert_allclose(made.at(2.0).angles, np.radians([65.0, -45.0]), rtol=1e-15)
    single = Trajectory.of([Waypoint(3.0, (70.0, -50.0))])
    for time in (0.0, 3.0, 9.0):
        np.testing.assert_array_equal(single.at(time).angles, np.radians([70.0, -50.0]))


@pytest.mark.parametrize(
    ('times', 'angles', 'text'),
    [
        ([], [], r'shape \(0,\)'),
        ([0.0], [1.0], r'allowed: \(K,\) and \(K, N\)'),
        ([0.0, 1.0], [[1.0]], r'angles of shape \(1, 1\)'),
        ([0.0], [[]], 'at least 1'),
        (['now'], [[1.0]], 'no arrays of numbers'),
        ([0.0, 0.0], [[1.0], [2.0]], 'waypoint 1 .* after 0.0 s .* sort them'),
        ([0.0, math.nan], [[1.0], [2.0]], 'waypoint 1 .* time nan, allowed: finite'),
        ([0.0, 1.0], [[1.0, 2.0], [2.0, -math.inf]], 'waypoint 1 .* angle -inf'),
    ],
)
def test_bad_trajectories(times, angles, text):
    with pytest.raises(InputError, match=text):
        Trajectory(times, angles)


def test_waypoints_that_are_none_are_refused():
    with pytest.raises(InputError, match=r'\[2, 4\] angles'):
        Trajectory.of([Waypoint(0.0, (1.0, 2.0, 3.0, 4.0)), Waypoint(1.0, (1.0, 2.0))])
    with pytest.raises(InputError, match='allowed'):
        Trajectory.of([])


class TwoJoints:
    """A machine that counts how often its joint angles are looked at one by one."""

    def __init__(self, limits=((-1.0, 1.0), (0.0, 2.0))):
        self.limits, self.looks = np.array(limits), 0

    def joint_limits(self):
        return self.limits

    def check_pose(self, angles):
        self.looks += 1
        low, high = self.joint_limits().T
        if len(angles) != 2 or not np.all((angles >= low - 1e-9) & (angles <= high + 1e-9)):
            raise InputError(f'angles = {angles.tolist()}, allowed: within the limits')


def test_long_trajectories_are_checked_at_once():
    machine, random = TwoJoints(), np.random.default_rng(4)
    angles = random.uniform([-1.0, 0.0], [1.0, 2.0], (100_000, 2))
    trajectory = Trajectory(np.arange(100_000) * 0.01, angles)
    trajectory.check_with(machine)
    assert machine.looks == 0
    angles[70_000, 1] = 2.5
    with pytest.raises(InputError, match=r'waypoint 70000 .*2\.5\]'):
        Trajectory(trajectory.times, angles).check_with(machine)
    assert machine.looks == 1


def test_peaks():
    trajectory = Trajectory(
        np.array([0.0, 2.0, 3.0]), np.array([[0.0, 1.0], [3.0, 1.0], [2.0, 1.0]])
    )
    step = 1e-3
    rates = np.array([trajectory.at(t).rates for t in np.arange(0.0, 3.0, step)])
    np.testing.assert_allclose(trajectory.peak_rates(), np.abs(rates).max(axis=0), rtol=1e-5)
    accelerations = np.abs(np.diff(rates, axis=0)).max(axis=0) / step
    np.testing.assert_allclose(trajectory.peak_accelerations(), accelerations, rtol=1e-4)
    assert not Trajectory(np.zeros(1), np.ones((1, 2))).peak_rates().any()


TIMES = np.array([1.0, 2.5, 3.0, 5.0])
ANGLES = np.array([[0.0, 1.0], [0.4, 0.8], [0.5, 0.9], [0.2, 0.9]])
RATES = np.array([[0.0, 0.1], [0.3, 0.0], [0.1, -0.2], [0.0, 0.0]])


def test_it_is_the_hermite_spline():
    trajectory = CubicTrajectory(TIMES, ANGLES, RATES)
    spline = CubicHermiteSpline(TIMES, ANGLES, RATES)
    for time in np.linspace(1.0, 4.999, 97):
        reference = trajectory.at(time)
        np.testing.assert_allclose(reference.angles, spline(time), atol=1e-14)
        np.testing.assert_allclose(reference.rates, spline(time, 1), atol=1e-13)
    fine = np.linspace(1.0, 5.0, 100_001)
    np.testing.assert_allclose(
        trajectory.peak_rates(), np.abs(spline(fine, 1)).max(axis=0), rtol=1e-6
    )
    # It is linear between waypoints, where it jumps.
    ends = spline(np.concatenate([TIMES[:-1], np.nextafter(TIMES[1:], 0.0)]), 2)
    np.testing.assert_allclose(trajectory.peak_accelerations(), np.abs(ends).max(axis=0))


def test_before_and_after_the_joints_rest():
    trajectory = CubicTrajectory(TIMES, ANGLES, RATES)
    for time, row in ((0.0, 0), (5.0, -1), (99.0, -1)):
        reference = trajectory.at(time)
        np.testing.assert_array_equal(reference.angles, ANGLES[row])
        np.testing.assert_array_equal(reference.rates, 0.0)
    with pytest.raises(InputError, match='finite'):
        trajectory.at(math.nan)


def test_turning_points_between_waypoints_count():
    angles = np.array([[0.0, 0.0], [0.0, 0.0]])
    rates = np.array([[1.0, 0.0], [0.0, 0.0]])
    trajectory = CubicTrajectory([0.0, 1.0], angles, rates)
    # s (1 - s)^2 has its maximum 4/27 at 1/3.
    trajectory.check_with(TwoJoints([[-2.0, 4.0 / 27.0]] * 2))
    with pytest.raises(InputError, match=r'waypoint 1 of .* joint 1 turns at 8\.488'):
        trajectory.check_with(TwoJoints([[-2.0, 0.148]] * 2))
    with pytest.raises(InputError, match='within the limits'):
        CubicTrajectory([0.0], [[3.0, 0.0]], [[0.0, 0.0]]).check_with(TwoJoints([[-2.0, 2.0]] * 2))
    # Joints that move already turn within the limits, too.
    follower = TrajectoryFollower()
    follower.machine = TwoJoints([[-2.0, 0.2]] * 2)
    begun = follower._begun(trajectory, 0.0, np.array([1.0, 2.0]))
    most = np.max([begun.at(time).angles for time in np.linspace(0.0, 1.0, 301)], axis=0)
    assert most == pytest.approx([0.2, 0.2], rel=1e-5)


@pytest.mark.parametrize(
    ('rates', 'error'),
    [
        (RATES[:2], r'shape \(2, 2\), allowed: \(4, 2\)'),
        (np.full((4, 2), np.nan), 'finite numbers'),
        (RATES + 0.1, 'the joints rest there'),
    ],
)
def test_rates_that_cannot_be(rates, error):
    with pytest.raises(InputError, match=error):
        CubicTrajectory(TIMES, ANGLES, rates)
