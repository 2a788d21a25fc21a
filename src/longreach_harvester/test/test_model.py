"""Equations of motion against Lagrange's, actuator space, the right-hand side of each mode."""

import casadi as ca
import harvester_reference as reference
import numpy as np
import pytest
from harvesters import STANDARD, changed, hanging, scenario, small_pump, without

from longreach_dynamics.hydraulics.lines import SUPPLY, VISCOUS, rail_of
from longreach_dynamics.linkages import piston_and_arm
from longreach_harvester.bodies import (
    HEAD,
    HEAD_RATE,
    accelerations,
    bias,
    hanging_terms,
    masses,
    weights,
)
from longreach_harvester.linear import derivatives
from longreach_harvester.machine import Harvester
from longreach_harvester.model import WIDTH, energies
from longreach_harvester.stepping import forces_of


def states(count=20):
    random = np.random.default_rng(4)
    for _ in range(count):
        q = random.uniform((-3, -1.0, -2.4), (3, 1.4, 0.3))
        yield q, random.uniform(-2, 2, 3), random.uniform(-1e5, 1e5, 3)


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


def energy_function(parameters, size, log=0.0):
    """Return a function (q, v) -> kinetic and potential energy of the second derivation."""
    joints = reference.symbols(size)
    f = ca.Function('e', [*joints], [*reference.energies(parameters, *joints, log)])
    return lambda q, v: [float(e) for e in f(q, v)]


@pytest.mark.parametrize('parameters', [STANDARD, changed()])
def test_bodies_move_by_lagranges_equations(parameters):
    expected, bodies = reference.equations(parameters), parameters.bodies()
    stored, model = energy_function(parameters, 3), Harvester(parameters, scenario()).constants
    for q, v, torque in states():
        a, M, h = (np.array(found) for found in expected(q, v, torque))
        assert accelerations(q, v, *torque, bodies) == pytest.approx(a.ravel(), rel=1e-9)
        M11, M22, M23, M33 = masses(q, bodies)
        mine = np.array([[M11, 0, 0], [0, M22, M23], [0, M23, M33]])
        assert np.abs(mine - M).max() < 1e-9 * M.max()
        assert np.abs(np.array(bias(q, v, bodies)) - h.ravel()).max() < 1e-9 * np.abs(h).max()
        still = np.array(bias(q, np.zeros(3), bodies))
        assert still == pytest.approx([0.0, *weights(q, bodies)])
        found = energies(np.r_[q, v, np.zeros(12)], np.ones(3, bool), model)
        assert found[:2] == pytest.approx(stored(q, v), rel=1e-9)


@pytest.mark.parametrize('log', [0.0, 300.0])
def test_a_head_that_hangs_moves_by_lagranges_equations(log):
    """Oil, friction and the damping of the axes included."""
    expected, bodies = reference.equations(hanging(), log), hanging().bodies(log)
    stored = energy_function(hanging(), 5, log)
    model = Harvester(hanging(), scenario()).with_log(log)
    forces, rows = np.empty((1, 3)), model.lines[0]
    for q, v, y in hanging_states():
        _, M, h = (np.array(found) for found in expected(q, v, np.zeros(5)))
        mine, terms = np.empty((5, 5)), np.empty(5)
        hanging_terms(y, bodies, mine, terms)
        assert np.abs(mine - M).max() < 1e-9 * M.max()
        assert np.abs(terms - h.ravel()).max() < 1e-9 * np.abs(h).max()
        found = energies(y, np.ones(3, bool), model)
        assert found[:2] == pytest.approx(stored(q, v), rel=1e-9)
        forces_of(y[None], model, forces)
        arms = np.array([piston_and_arm(rows, i, q[i])[1] for i in range(3)])
        torques = arms * (forces[0] - rows[:, VISCOUS] * arms * v[:3])
        torques = np.r_[torques, -hanging().head.pendulum.damping * v[3:]]
        dy = np.zeros(WIDTH)
        supply = rows[0, SUPPLY]
        assert derivatives(y, np.zeros(3), np.ones(3, bool), supply, model, dy)
        found = np.r_[dy[3:6], dy[HEAD_RATE : HEAD_RATE + 2]]
        wanted = np.array(expected(q, v, torques)[0]).ravel()
        assert np.abs(found - wanted).max() < 1e-9 * np.abs(wanted).max()
        assert dy[HEAD : HEAD + 2] == pytest.approx(v[3:])


def test_actuator_space_is_joint_space():
    """M_Eq x'' + B x' + F_S = F_Act, (9) to (12)."""
    model = Harvester(STANDARD, scenario()).constants
    rows, step = model.lines[0], 1e-5

    def arms(q):
        return np.array([piston_and_arm(rows, i, q[i])[1] for i in range(3)])

    for q, v, torque in states():
        a, J = np.array(accelerations(q, v, *torque, model.bodies)), arms(q)
        M11, M22, M23, M33 = masses(q, model.bodies)
        slopes = (arms(q + step) - arms(q - step)) / (2 * step)
        # x'' = J q'' + J' q', so that d(J^-1)/dt x' = -J^-1 J' q'.
        accelerated = J * a + slopes * v * v
        M = np.array([[M11, 0.0, 0.0], [0.0, M22, M23], [0.0, M23, M33]])
        coupled = (M - np.diag(np.diag(M))) @ (accelerated / J)
        F_S = coupled - M @ (slopes * v * v / J) + np.array(bias(q, v, model.bodies))
        # The difference quotient is the only error.
        turned = (arms(q + step * v) - arms(q - step * v)) / (2 * step)
        found = np.diag(M) / J**2 * (J * a + turned * v) + F_S / J
        assert found == pytest.approx(torque / J, rel=1e-5, abs=1.0)


@pytest.mark.parametrize(
    ('machine', 'options'),
    [
        (changed(), {}),
        (changed(), {'as_printed': True}),
        (changed(), {'switching': False}),
        # Relief and make-up valves, some fully open, and the pump up to its largest flow.
        (without(small_pump(), 'pendulum'), {}),
    ],
)
def test_right_hand_side_is_that_of_the_second_derivation(machine, options):
    f, _ = reference.right_hand_side(machine, **options)
    model = Harvester(machine, scenario(), **options).constants
    random = np.random.default_rng(8)
    low, high, most = (-2e6, 3e7, 2.2e-4) if machine.pump else (0, 2e7, 1e-3)
    bands = [a.valve.dead_band for a in machine.actuators]
    for q, v, _ in states(40):
        y = np.r_[q, 0.3 * v, random.uniform(low, high, 6), random.uniform(-most, most, 6)]
        if machine.pump:
            y[6 + random.integers(6)] = random.uniform(0.0, 8e5)
        u = random.uniform(-0.2, 0.2, 3)
        closed = np.abs(u) <= bands
        expected = np.asarray(f(y, u, closed.astype(float))).ravel()
        found, rail = np.empty(18), model.lines[0][0, SUPPLY]
        if machine.pump:
            fed = np.where(u > 0.0, y[12:15], -y[15:])
            rail, _ = rail_of(fed[~closed].sum(), model.lines[0])
        assert derivatives(y, u, closed & options.get('switching', True), rail, model, found)
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)
