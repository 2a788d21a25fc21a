"""Training figures, of motions whose figures are known."""

import numpy as np
import pytest
from harvesters import STANDARD, run_of, scenario

from longreach_harvester.kinematics import angles_at
from longreach_harvester.training import head_swing, reversals, training_figures


def test_the_way_of_the_tip_is_its_length():
    places = [(5.0 + x, 0.0, 0.3) for x in np.linspace(0.0, 0.5, 20)]
    places += places[::-1]
    angles = np.array([angles_at(STANDARD, place) for place in places])
    times = 0.1 * np.arange(40)
    spools = np.zeros((40, 3))
    spools[10:20, 1] = 0.2
    found = training_figures(STANDARD, times, angles, spools)
    assert found['tip_path'] == pytest.approx(1.0)
    assert found['time'] == pytest.approx(3.9)
    assert found['moving_time'] == pytest.approx(1.0)
    assert found['head_swing_peak'] == 0.0, 'a point mass'


def test_reversals_are_changes_of_side_not_stops():
    spools = np.array([0, 0.2, 0.04, 0.2, 0, -0.1, -0.3, 0.0, -0.1, 0.04, 0.2])
    assert reversals(spools, 0.05) == 2
    assert reversals(np.zeros(4), 0.05) == 0


def test_a_head_that_hangs_does_not_swing():
    random = np.random.default_rng(4)
    angles = random.uniform(-1.0, 1.0, (30, 3))
    hanging = np.stack([-np.pi / 2 - angles[:, 1] - angles[:, 2], np.zeros(30)], axis=1)
    assert np.abs(head_swing(angles, hanging)).max() < 1e-7
    for axis in (0, 1):
        pushed = hanging.copy()
        pushed[:, axis] += 0.3
        np.testing.assert_allclose(head_swing(angles, pushed), 0.3)


def test_a_run_has_them():
    knots = [[0, 0], [0.2, 0.2], [1, 0.2], [1, 0], [1.5, 0], [1.5, -0.2]]
    found = run_of(scenario(3.0, boom=knots), step=1e-3).summary()['training']
    assert (found['reversals_boom'], found['reversals_stick']) == (1, 0)
    assert 0.1 < found['tip_path'] < 3.0
    assert found['moving_time'] == pytest.approx(2.45, abs=0.02)
