"""Training figures of known motions; forces and head as they are drawn, against statics."""

import numpy as np
import pytest
from harvesters import STANDARD, run_of, scenario

from longreach_harvester.kinematics import angles_at, tip_at
from longreach_harvester.training import head_swing, reversals, training_figures
from longreach_harvester.visuals import FORCE_SCALE, cylinder_forces, head_lines


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


def moment_arm(angles, arrow, joint):
    """Return the moment of a drawn force about boom's or stick's pin [m^2]."""
    swing, boom, _ = angles
    forward = np.array([np.cos(swing), np.sin(swing), 0.0])
    left = np.array([-np.sin(swing), np.cos(swing), 0.0])
    pin = STANDARD.swing.offset * forward
    if joint == 'stick':
        pin = pin + STANDARD.boom.length * (
            np.cos(boom) * forward + np.array([0, 0, np.sin(boom)])
        )
    # A positive angle lifts: against the right hand about the axis to the left.
    return -np.cross(np.array(arrow.start) - pin, arrow.vector) @ left


def test_drawn_forces_have_the_moments_of_the_linkages():
    random = np.random.default_rng(5)
    for _ in range(20):
        angles = random.uniform((-3.0, -0.4, -2.0), (3.0, 1.0, -0.3))
        forces = random.uniform(-2e5, 2e5, 3)
        arrows = cylinder_forces(STANDARD, angles, forces)
        assert [arrow.name for arrow in arrows] == ['boom', 'stick']
        for i, arrow in enumerate(arrows, 1):
            assert np.linalg.norm(arrow.vector) == pytest.approx(FORCE_SCALE * abs(forces[i]))
            lever = STANDARD.actuators[i].linkage.arm(float(angles[i]))
            found = moment_arm(angles, arrow, arrow.name)
            assert found == pytest.approx(FORCE_SCALE * forces[i] * lever, abs=1e-9)


def test_lines_of_a_head_have_the_angle_of_its_swing():
    random = np.random.default_rng(6)
    for _ in range(20):
        angles, head = random.uniform(-1.0, 1.0, 3), random.uniform(-0.4, 0.4, 2)
        head[0] -= np.pi / 2 + angles[1] + angles[2]
        down, along = head_lines(STANDARD, angles, head)
        np.testing.assert_allclose([down[0], along[0]], [tip_at(STANDARD, angles)] * 2)
        a, b = (np.diff(line, axis=0)[0] for line in (down, along))
        cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
        swing = head_swing(angles[None], head[None])[0]
        assert np.arccos(cosine) == pytest.approx(swing, abs=1e-7)
        assert a[2] == -np.linalg.norm(a)
