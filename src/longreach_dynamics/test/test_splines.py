"""Trajectories with rates in their waypoints."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline

from longreach_dynamics.errors import InputError
from longreach_dynamics.splines import CubicTrajectory

TIMES = np.array([1.0, 2.5, 3.0, 5.0])
ANGLES = np.array([[0.0, 1.0], [0.4, 0.8], [0.5, 0.9], [0.2, 0.9]])
RATES = np.array([[0.0, 0.1], [0.3, 0.0], [0.1, -0.2], [0.0, 0.0]])


class Limits:
    """A machine of two joints."""

    def __init__(self, low: float = -2.0, high: float = 2.0) -> None:
        self.limits = np.array([[low, high]] * 2)

    def joint_limits(self) -> np.ndarray:
        return self.limits

    def check_pose(self, angles: np.ndarray) -> None:
        if (angles < self.limits[:, 0]).any() or (angles > self.limits[:, 1]).any():
            raise InputError(f'pose {angles.tolist()} beyond the limits')


def test_it_is_the_hermite_spline() -> None:
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


def test_before_and_after_the_joints_rest() -> None:
    trajectory = CubicTrajectory(TIMES, ANGLES, RATES)
    for time, row in ((0.0, 0), (5.0, -1), (99.0, -1)):
        reference = trajectory.at(time)
        np.testing.assert_array_equal(reference.angles, ANGLES[row])
        np.testing.assert_array_equal(reference.rates, 0.0)
    with pytest.raises(InputError, match='finite'):
        trajectory.at(math.nan)


def test_turning_points_between_waypoints_count() -> None:
    angles = np.array([[0.0, 0.0], [0.0, 0.0]])
    rates = np.array([[1.0, 0.0], [0.0, 0.0]])
    trajectory = CubicTrajectory([0.0, 1.0], angles, rates)
    # s (1 - s)^2 has its maximum 4/27 at 1/3.
    trajectory.check_with(Limits(high=4.0 / 27.0))
    with pytest.raises(InputError, match=r'waypoint 1 of .* joint 1 turns at 8\.488'):
        trajectory.check_with(Limits(high=0.148))
    with pytest.raises(InputError, match='pose'):
        CubicTrajectory([0.0], [[3.0, 0.0]], [[0.0, 0.0]]).check_with(Limits())


@pytest.mark.parametrize(
    ('rates', 'error'),
    [
        (RATES[:2], r'shape \(2, 2\), allowed: \(4, 2\)'),
        (np.full((4, 2), np.nan), 'finite numbers'),
        (RATES + 0.1, 'the joints rest there'),
    ],
)
def test_rates_that_cannot_be(rates: np.ndarray, error: str) -> None:
    with pytest.raises(InputError, match=error):
        CubicTrajectory(TIMES, ANGLES, rates)
