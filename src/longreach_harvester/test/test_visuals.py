"""Forces and head as they are drawn, held against frames of the robot description and statics."""

import numpy as np
import pytest
from harvesters import STANDARD

from longreach_harvester.kinematics import tip_at
from longreach_harvester.training import head_swing
from longreach_harvester.visuals import FORCE_SCALE, cylinder_forces, head_lines


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
