"""Equations of motion against Lagrange's, actuator space, power balance of each mode."""

import casadi as ca
import harvester_reference as reference
import numpy as np
import pytest
from harvesters import STANDARD, changed, hanging, scenario, small_pump, without

from longreach_dynamics.errors import InputError
from longreach_dynamics.hydraulics.lines import AREA_1, AREA_2, VISCOUS
from longreach_dynamics.linkages import piston_and_arm
from longreach_harvester.machine import Harvester, forces_of
from longreach_harvester.model import (
    BOOK,
    HEAD,
    HEAD_RATE,
    WIDTH,
    accelerations,
    actuator_space,
    bias,
    derivatives,
    energies,
    hanging_terms,
    masses,
    rates,
    weights,
)


def states(count=20):
    random = np.random.default_rng(4)
    for _ in range(count):
        q = random.uniform((-3, -1.0, -2.4), (3, 1.4, 0.3))
        yield q, random.uniform(-2, 2, 3), random.uniform(-1e5, 1e5, 3)


@pytest.mark.parametrize('parameters', [STANDARD, changed()])
def test_accelerations_are_those_of_lagranges_equations(parameters):
    expected, bodies = reference.equations(parameters), parameters.bodies()
    for q, v, torque in states():
        a, M, h = (np.array(found) for found in expected(q, v, torque))
        assert accelerations(q, v, *torque, bodies) == pytest.approx(a.ravel(), rel=1e-9)
        M11, M22, M23, M33 = masses(q, bodies)
        mine = np.array([[M11, 0, 0], [0, M22, M23], [0, M23, M33]])
        assert np.abs(mine - M).max() < 1e-9 * M.max()
        assert np.abs(np.array(bias(q, v, bodies)) - h.ravel()).max() < 1e-9 * np.abs(h).max()
        still = np.array(bias(q, np.zeros(3), bodies))
        assert still == pytest.approx([0.0, *weights(q, bodies)])


def hanging_states(count=20):
    """Return q, v of all five joints, and the state that holds them."""
    random = np.random.default_rng(14)
    for _ in range(count):
        # Within the strokes.
        q = random.uniform((-3, -0.3, -1.9, -3.0, -1.3), (3, 1.3, -0.1, 3.0, 1.3))
        v = random.uniform(-2, 2, 5)
        y = np.zeros(WIDTH)
        y[:3], y[HEAD : HEAD + 2] = q[:3], q[3:]
        y[3:6], y[HEAD_RATE : HEAD_RATE + 2] = v[:3], v[3:]
        y[6:12] = random.uniform(0, 2e7, 6)
        yield q, v, y


@pytest.mark.parametrize('log', [0.0, 300.0])
def test_a_head_that_hangs_moves_by_lagranges_equations(log):
    expected, bodies = reference.equations(hanging(), log), hanging().bodies(log)
    stored = ca.Function('e', [*(joints := reference.symbols(5))], [
        *reference.energies(hanging(), *joints, log)
    ])  # fmt: skip
    model = Harvester(hanging(), scenario()).with_log(log)
    for q, v, y in hanging_states():
        _, M, h = (np.array(found) for found in expected(q, v, np.zeros(5)))
        mine, terms = np.empty((5, 5)), np.empty(5)
        hanging_terms(y, bodies, mine, terms)
        assert np.abs(mine - M).max() < 1e-9 * M.max()
        assert np.abs(terms - h.ravel()).max() < 1e-9 * np.abs(h).max()
        found = energies(y, np.ones(3, bool), model)
        assert found[:2] == pytest.approx([float(e) for e in stored(q, v)], rel=1e-9)


def test_rates_of_a_head_that_hangs_are_those_of_lagranges_equations():
    """Oil, friction and the damping of the axes included."""
    expected = reference.equations(hanging())
    model = Harvester(hanging(), scenario()).constants
    forces, rows = np.empty((1, 3)), model.lines[0]
    for q, v, y in hanging_states():
        forces_of(y[None], model, forces)
        arms = np.array([piston_and_arm(rows, i, q[i])[1] for i in range(3)])
        torques = arms * (forces[0] - rows[:, VISCOUS] * arms * v[:3])
        torques = np.r_[torques, -hanging().head.pendulum.damping * v[3:]]
        dy = np.zeros(WIDTH)
        assert derivatives(y, np.zeros(3), np.ones(3, bool), model, dy)
        found = np.r_[dy[3:6], dy[HEAD_RATE : HEAD_RATE + 2]]
        accelerations = np.array(expected(q, v, torques)[0]).ravel()
        assert np.abs(found - accelerations).max() < 1e-9 * np.abs(accelerations).max()
        assert dy[HEAD : HEAD + 2] == pytest.approx(v[3:])


def test_energies_are_those_of_the_second_derivation():
    q, v = reference.symbols()
    f = ca.Function('e', [q, v], list(reference.energies(STANDARD, q, v)))
    model = Harvester(STANDARD, scenario()).constants
    for angles, speeds, _ in states():
        y = np.r_[angles, speeds, np.zeros(12)]
        found = energies(y, np.ones(3, bool), model)
        assert found[:2] == pytest.approx([float(e) for e in f(angles, speeds)], rel=1e-9)


def test_actuator_space_is_joint_space():
    model = Harvester(STANDARD, scenario()).constants
    rows = model.lines[0]
    for q, v, torque in states():
        a = np.array(accelerations(q, v, *torque, model.bodies))
        arms = np.array([piston_and_arm(rows, i, q[i])[1] for i in range(3)])
        step = 1e-5
        later = np.array([piston_and_arm(rows, i, q[i] + step * v[i])[1] for i in range(3)])
        sooner = np.array([piston_and_arm(rows, i, q[i] - step * v[i])[1] for i in range(3)])
        accelerated = arms * a + (later - sooner) / (2 * step) * v
        M_eq, F_s = actuator_space(q, v, a, model)
        assert M_eq * accelerated + F_s == pytest.approx(torque / arms, rel=1e-5, abs=1.0)
        # The difference quotient is the only error: with the model's own x'' it is rounding.
        slopes = (torque / arms - F_s) / M_eq - arms * a
        assert slopes == pytest.approx((later - sooner) / (2 * step) * v, rel=1e-4, abs=1e-6)


def test_a_head_that_hangs_has_no_actuator_space():
    model = Harvester(hanging(), scenario()).constants
    with pytest.raises(InputError, match='pendulum'):
        actuator_space(np.zeros(3), np.zeros(3), np.zeros(3), model)


def test_power_of_oil_and_bodies_is_balanced():
    """What flows into the lines is stored, or lost in lines, friction and stops."""
    model = Harvester(changed(), scenario()).constants
    random = np.random.default_rng(3)
    for q, v, _ in states():
        y = np.r_[q, 0.3 * v, random.uniform(0, 2e7, 6), np.zeros(6)]
        f1, f2 = random.uniform(-1e-3, 1e-3, (2, 3))
        dy, powers = np.zeros(12), np.zeros(len(BOOK))
        assert rates(y, f1, f2, model, dy, powers)
        step = 1e-6
        closed = np.ones(3, bool)
        ends = [
            energies(np.r_[y[:12] + s * dy, np.zeros(6)], closed, model) for s in (-step, step)
        ]
        stored = (sum(ends[1]) - sum(ends[0])) / (2 * step)
        given = y[6:9] @ f1 - y[9:12] @ f2
        scale = np.abs(y[6:9] * f1).sum() + np.abs(y[9:12] * f2).sum()
        assert stored + powers.sum() == pytest.approx(given, abs=1e-5 * scale)


def test_forces_of_the_pistons_lift():
    model = Harvester(STANDARD, scenario()).constants
    y, table = Harvester(STANDARD, scenario()).initial_state().y, model.lines[0]
    dy, powers = np.zeros(12), np.zeros(len(BOOK))
    rates(y, np.zeros(3), np.zeros(3), model, dy, powers)
    assert np.abs(dy[3:6]).max() < 1e-9, 'at rest'
    y = y.copy()
    y[6:9] += 1e6
    rates(y, np.zeros(3), np.zeros(3), model, dy, powers)
    assert (dy[3:6] != 0).all()
    assert dy[3] > 0
    assert table[1, AREA_1] > table[1, AREA_2]
    assert table[0, VISCOUS] == STANDARD.swing.viscous


@pytest.mark.parametrize('options', [{}, {'as_printed': True}, {'switching': False}])
def test_right_hand_side_is_that_of_the_second_derivation(options):
    f, _ = reference.right_hand_side(changed(), **options)
    model = Harvester(changed(), scenario(), **options).constants
    random = np.random.default_rng(8)
    for q, v, _ in states():
        y = np.r_[q, 0.3 * v, random.uniform(0, 2e7, 6), random.uniform(-1e-3, 1e-3, 6)]
        u = random.uniform(-0.2, 0.2, 3)
        bands = [a.valve.dead_band for a in changed().actuators]
        closed = np.abs(u) <= bands
        expected = np.asarray(f(y, u, closed.astype(float))).ravel()
        found = np.empty(18)
        assert derivatives(y, u, closed & options.get('switching', True), model, found)
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_right_hand_side_beyond_the_paper_is_that_of_the_second_derivation():
    """Relief and make-up valves, some fully open, and the pump up to its largest flow."""
    machine = without(small_pump(), 'pendulum')
    f, _ = reference.right_hand_side(machine)
    model = Harvester(machine, scenario()).constants
    random = np.random.default_rng(9)
    for q, v, _ in states(40):
        y = np.r_[q, 0.3 * v, random.uniform(-2e6, 3e7, 6), random.uniform(-2.2e-4, 2.2e-4, 6)]
        y[6 + random.integers(6)] = random.uniform(0.0, 8e5)
        u = random.uniform(-0.2, 0.2, 3)
        closed = np.abs(u) <= 0.05
        expected = np.asarray(f(y, u, closed.astype(float))).ravel()
        found = np.empty(18)
        assert derivatives(y, u, closed, model, found)
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)
