"""Rates of joints for a velocity of the tip; the rest is tested with the machines."""

import math

import numpy as np
import pytest

from longreach_machine.teleoperation import tip_rates

LENGTHS, OFFSET = (4.0, 3.0), 0.35


def place(q):
    """Return distance from the axis of the swing, way around it at its radius, height."""
    swing, boom, arm = q
    reach = 4.0 * math.cos(boom) + 3.0 * math.cos(boom + arm)
    height = 4.0 * math.sin(boom) + 3.0 * math.sin(boom + arm)
    return np.array([OFFSET + reach, swing, height])


def test_the_tip_moves_as_it_is_told():
    random = np.random.default_rng(2)
    for _ in range(50):
        q = random.uniform((-3.0, -0.5, -2.4), (3.0, 1.0, -0.3))
        tip = random.uniform(-1.0, 1.0, 3)
        radius = place(q)[0]
        if radius < 1.0:
            continue
        rates = tip_rates(LENGTHS, OFFSET, q[1:].tolist(), tip.tolist())
        moved = (place(q + 1e-6 * rates) - place(q - 1e-6 * rates)) / 2e-6
        np.testing.assert_allclose(moved * (1.0, radius, 1.0), tip, atol=1e-8)


def test_near_the_end_of_the_reach_rates_stay_bounded():
    found = [
        np.abs(tip_rates(LENGTHS, OFFSET, (0.2, arm), (1.0, 0.0, 0.0))).max()
        for arm in np.linspace(-0.5, 0.0, 200)
    ]
    assert max(found) < 5.0
    assert np.abs(np.diff(found)).max() < 0.3, 'no jump where the damping begins'
    assert found[-1] < 0.5, 'stretched, it cannot go further'


@pytest.mark.parametrize('boom', [1.45, 1.55])
def test_above_the_axis_the_swing_does_not_race(boom):
    rates = tip_rates(LENGTHS, OFFSET, (boom, -0.1), (0.0, 1.0, 0.0))
    assert 0.0 < rates[0] <= 1.0
