"""A pose at rest: what cylinders carry, by moments about each joint."""

from __future__ import annotations

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_excavator.machine import Excavator
from longreach_excavator.parameters import default_file, load_excavator
from longreach_excavator.scenario import Scenario
from longreach_excavator.state import CLOSED
from longreach_excavator.statics import holding_forces, standing


@pytest.mark.parametrize('seed', range(10))
def test_moments_of_the_weight_about_each_joint(seed):
    excavator = load_excavator()
    low, high = excavator.joint_limits().T
    q = np.random.default_rng(seed).uniform(low, high)
    links = (excavator.boom, excavator.arm, excavator.bucket)
    turned = np.cumsum(q)
    joints = np.concatenate([[0.0], np.cumsum([link.length for link in links] * np.cos(turned))])
    centers = [
        joints[k] + link.center * np.cos(turned[k] + np.radians(link.center_deg))
        for k, link in enumerate(links)
    ]
    forces = holding_forces(excavator, q)
    for k in range(3):
        moment = sum(
            links[i].mass * excavator.gravity * (centers[i] - joints[k]) for i in range(k, 3)
        )
        e = 1e-6
        up, down = (q + e * np.eye(3)[k], q - e * np.eye(3)[k])
        linkage = excavator.linkage()
        lever = (linkage.lengths(up)[k] - linkage.lengths(down)[k]) / (2.0 * e)
        assert forces[k] * lever == pytest.approx(moment, rel=1e-6, abs=1e-3)


def test_pressures_hold_the_machine():
    excavator = load_excavator(default_file('thesis'))
    machine = Excavator(excavator, Scenario(duration=1.0, pose='reach', soil=False))
    state = machine.initial_state()
    after = machine.advance(state, CLOSED, 0.0, 1.0)
    assert np.abs(after.y[:6] - state.y[:6]).max() < 1e-10
    row = standing(excavator, state.y[:3])
    np.testing.assert_array_equal(row['p_head_pa'], state.y[6:9])
    for force, head, rod, c in zip(
        row['force_n'], row['p_head_pa'], row['p_rod_pa'], excavator.cylinders, strict=True
    ):
        assert head * c.head_area - rod * c.rod_area == pytest.approx(force, rel=1e-12)


def test_a_pose_outside_of_the_strokes_is_refused():
    with pytest.raises(InputError, match='theta_3'):
        standing(load_excavator(), np.array([0.3, 0.5, 0.0]))
