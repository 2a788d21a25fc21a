"""The equations against Lagrange by CasADi, the paper's print, and conservation laws."""

import math

import casadi
import numpy as np
import pytest

from longreach_crane.machine import Command, Crane
from longreach_crane.model import (
    ANGLE,
    ANGULAR_VELOCITY,
    CAR_POSITION,
    CAR_VELOCITY,
    FREE,
    HELD,
    Constants,
    Inputs,
    linear_model,
    load_position,
    right_hand_side,
    stop_car,
)
from longreach_crane.parameters import CraneParameters
from longreach_crane.scenario import Disturbance, InitialState, Scenario

STATE_SCALE = np.array([200.0, 5.0, 3.0, 1.0, 2.0])
GAUSS_NODES, GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(12)


def random_crane(random):
    return CraneParameters(
        car_mass=random.uniform(1.0, 50.0),
        load_mass=random.uniform(1.0, 200.0),
        cable_length=random.uniform(0.5, 12.0),
        gravity=random.uniform(1.0, 20.0),
        car_friction=random.uniform(0.0, 5.0),
        brake_friction=random.uniform(1e3, 1e6),
        load_friction=random.uniform(0.0, 1.0),
        motor_rate=random.uniform(0.5, 10.0),
        minimum_position=-5.0,
        maximum_position=5.0,
    )


def lagrange():
    """Return state derivatives, car free and held, of the state and m_c, m_l, r, g, d, d_l, .."""
    names = ('m_c', 'm_l', 'r', 'g', 'd', 'd_l', 'k', 'f', 'f_d')
    m_c, m_l, r, g, d, d_l, k, f, f_d = (casadi.SX.sym(name) for name in names)
    motor = casadi.SX.sym('motor')
    p, rate = casadi.SX.sym('p', 2), casadi.SX.sym('rate', 2)
    # The load's place in the plane and, by the chain rule, its velocity.
    place = casadi.vertcat(p[0] + r * casadi.sin(p[1]), -r * casadi.cos(p[1]))
    velocity = casadi.jacobian(place, p) @ rate
    kinetic = m_c * rate[0] ** 2 / 2 + m_l * casadi.dot(velocity, velocity) / 2
    potential = m_l * g * place[1]
    dissipation = d * rate[0] ** 2 / 2 + d_l * casadi.dot(velocity, velocity) / 2
    by_rate = casadi.gradient(kinetic, rate)
    mass = casadi.jacobian(by_rate, rate)
    # Virtual work: the motor moves the car, the disturbance the load, horizontally.
    applied = casadi.vertcat(motor, 0) + casadi.jacobian(place[0], p).T * f_d
    forces = (
        applied
        - casadi.gradient(dissipation, rate)
        + casadi.gradient(kinetic - potential, p)
        - casadi.jacobian(by_rate, p) @ rate
    )
    free = casadi.solve(mass, forces)
    held = forces[1] / mass[1, 1]
    state = casadi.vertcat(motor, p[0], rate[0], p[1], rate[1])
    motor_rate = k * (f - motor)
    parameters = (m_c, m_l, r, g, d, d_l, k, f, f_d)
    derivative_free = casadi.vertcat(motor_rate, rate[0], free[0], rate[1], free[1])
    derivative_held = casadi.substitute(
        casadi.vertcat(motor_rate, 0, 0, rate[1], held), rate[0], casadi.SX(0)
    )
    return casadi.Function('crane', [state, *parameters], [derivative_free, derivative_held])


def energy(state, constants):
    """Return kinetic plus potential energy [J], 0 at rest, which each model conserves."""
    v, alpha, omega = state[CAR_VELOCITY], state[ANGLE], state[ANGULAR_VELOCITY]
    p = constants
    cosine = 1.0 if p.linear else math.cos(alpha)
    height = p.r * alpha**2 / 2.0 if p.linear else p.r * (1.0 - cosine)
    kinetic = (p.m_c + p.m_l) * v**2 / 2 + p.m_l * p.r * (cosine * v * omega + p.r * omega**2 / 2)
    return float(kinetic + p.m_l * p.g * height)


def momentum(state, constants):
    """Return the momentum plus d_c x_c + d_l x_l [N s], whose rate is f_c + f_d, brake open."""
    p = constants
    cosine = 1.0 if p.linear else math.cos(state[ANGLE])
    linear_momentum = (p.m_c + p.m_l) * state[CAR_VELOCITY]
    linear_momentum += p.m_l * p.r * cosine * state[ANGULAR_VELOCITY]
    drag = p.d_c * state[CAR_POSITION] + p.d_l * load_position(state, p)
    return float(linear_momentum + drag)


LAGRANGE = lagrange()


def derivative(x, u, p):
    dx = np.full(5, math.nan)
    right_hand_side(0.0, x, u, p, dx)
    return dx


def expected(x, u, p):
    outputs = LAGRANGE(
        x, p.m_c, p.m_l, p.r, p.g, u.friction, p.d_l, p.motor_rate, u.desired_force, u.disturbance
    )
    return np.array(outputs[u.car]).ravel()


@pytest.mark.parametrize('car', [FREE, HELD])
def test_nonlinear_model_is_lagranges(car):
    random = np.random.default_rng(13)
    for _ in range(300):
        p = Constants.of(random_crane(random))
        x = STATE_SCALE * random.uniform(-1.0, 1.0, 5)
        x[3] *= math.pi
        if car == HELD:
            x[2] = 0.0
        friction = p.d_c if random.random() < 0.5 else p.d_brake
        u = Inputs(random.uniform(-160, 160), random.uniform(-800, 800), friction, car)
        reference = expected(x, u, p)
        # Terms of this size cancel; the last bits of the sum are theirs.
        terms = abs(x[0]) + abs(u.disturbance) + friction * abs(x[2]) + p.m_l * p.g
        rounding = 1e-15 * terms * (1.0 / p.m_c + 1.0 / p.m_l) * (1.0 + 1.0 / p.r)
        assert derivative(x, u, p) == pytest.approx(reference, rel=1e-12, abs=10 * rounding)


def test_nonlinear_model_is_the_papers_explicit_form():
    random = np.random.default_rng(7)
    for _ in range(100):
        p = Constants.of(random_crane(random))
        x = STATE_SCALE * random.uniform(-1.0, 1.0, 5)
        u = Inputs(0.0, random.uniform(-800, 800), p.d_c, FREE)
        f_c, _, v, alpha, omega = x
        s, c = math.sin(alpha), math.cos(alpha)
        bracket = p.m_c + p.m_l * s**2
        # Section 1, first line; the "=" before the bracket is a misprint.
        on_car = -p.d_c * v + f_c + u.disturbance * s**2
        on_car += p.m_l * s * (p.r * omega**2 + p.g * c) - p.d_l * v * s**2
        # Second line, with r^2 alpha'' times the bracket on its left.
        on_cable = (u.disturbance * p.m_c / p.m_l - f_c + p.d_c * v) * p.r * c
        on_cable -= (p.g * (p.m_c + p.m_l) + p.m_l * p.r * omega**2 * c) * p.r * s
        drag = p.m_c / p.m_l * (v * p.r * c + p.r**2 * omega) + p.r**2 * omega * s**2
        on_cable -= p.d_l * drag
        dx = derivative(x, u, p)
        assert dx[2] * bracket == pytest.approx(on_car, rel=1e-11, abs=1e-9)
        assert dx[4] * p.r**2 * bracket == pytest.approx(on_cable, rel=1e-11, abs=1e-7)


def test_linear_model_is_the_linearisation_at_zero():
    random = np.random.default_rng(3)
    state = casadi.SX.sym('x', 5)
    rest = [casadi.SX.sym(f'p{i}') for i in range(9)]
    free = LAGRANGE(state, *rest)[0]
    jacobians = casadi.Function(
        'J', [state, *rest], [casadi.jacobian(free, v) for v in (state, rest[7], rest[8])]
    )
    for _ in range(50):
        crane = random_crane(random)
        p = Constants.of(crane)
        arguments = (p.m_c, p.m_l, p.r, p.g, p.d_c, p.d_l, p.motor_rate, 0.0, 0.0)
        A, b, e = (np.array(m) for m in jacobians(np.zeros(5), *arguments))
        actual = linear_model(crane)
        assert actual[0] == pytest.approx(A, rel=1e-12, abs=1e-13)
        assert actual[1] == pytest.approx(b.ravel(), rel=1e-12, abs=1e-13)
        assert actual[2] == pytest.approx(e.ravel(), rel=1e-12, abs=1e-13)


@pytest.mark.parametrize('model', ['nonlinear', 'linear'])
def test_energy_is_kept_without_friction(model, crane):
    start = InitialState(car_velocity=0.5, angle=1.2, angular_velocity=-0.3)
    free = crane.replace(car_friction=0.0, load_friction=0.0)
    plant = Crane(free, Scenario(duration=1.0, initial_state=start), model)
    state = plant.initial_state()
    first = energy(state.x, plant.constants)
    for cycle in range(500):
        state = plant.advance(state, Command(), float(cycle), 1.0)
    assert energy(state.x, plant.constants) == pytest.approx(first, rel=5e-9)


@pytest.mark.parametrize('model', ['nonlinear', 'linear'])
def test_momentum_grows_with_the_forces_alone(model, crane):
    crane = crane.replace(car_friction=2.0, load_friction=0.5)
    start = InitialState(motor_force=20.0, angle=0.4, car_velocity=1.0)
    scenario = Scenario(
        duration=20.0, disturbances=(Disturbance(0.0, 20.0, -60.0),), initial_state=start
    )
    plant = Crane(crane, scenario, model)
    state = plant.initial_state()
    first = momentum(state.x, plant.constants)
    for cycle in range(20):
        state = plant.advance(state, Command(force=50.0), float(cycle), 1.0)
    # The motor's force goes from 20 N to 50 N as exp(-4 t): its integral and that of -60 N.
    impulse = 50.0 * 20.0 - 30.0 / 4.0 * (1.0 - math.exp(-80.0)) - 60.0 * 20.0
    assert momentum(state.x, plant.constants) - first == pytest.approx(impulse, rel=1e-9)


@pytest.mark.parametrize('closed', [False, True])
def test_power_balance_with_friction_and_forces(closed, crane):
    crane = crane.replace(car_friction=3.0, load_friction=0.8, brake_friction=40.0)
    start = InitialState(motor_force=-30.0, angle=0.9, car_velocity=0.5)
    scenario = Scenario(
        duration=4.0, disturbances=(Disturbance(0.0, 4.0, 70.0),), initial_state=start
    )
    plant = Crane(crane, scenario)
    command = Command(0.0 if closed else 90.0, closed)
    friction = 40.0 if closed else 3.0

    def power(x):
        f_c, _, v, alpha, omega = x
        vx = v + 5.0 * math.cos(alpha) * omega
        vz = 5.0 * math.sin(alpha) * omega
        return float((f_c - friction * v) * v + 70.0 * vx - 0.8 * (vx**2 + vz**2))

    state, work = plant.initial_state(), 0.0
    first = energy(state.x, plant.constants)
    step = 0.0625
    for cycle in range(64):
        for node, weight in zip(GAUSS_NODES, GAUSS_WEIGHTS, strict=True):
            inside = plant.advance(state, command, cycle * step, step * (node + 1.0) / 2.0)
            work += weight * step / 2.0 * power(inside.x)
        state = plant.advance(state, command, cycle * step, step)
    assert energy(state.x, plant.constants) - first == pytest.approx(work, rel=1e-8)
    assert abs(work) > 10.0


@pytest.mark.parametrize('linear', [False, True])
def test_rigid_brake_keeps_the_loads_angular_momentum(linear, crane):
    p = Constants.of(crane, linear)
    before = np.array([12.0, 1.0, 1.5, 0.7, -0.2])
    given = before.copy()
    after = stop_car(before, p)
    assert np.array_equal(before, given)
    assert after[[0, 1, 2, 3]].tolist() == [12.0, 1.0, 0.0, 0.7]
    cosine = 1.0 if linear else math.cos(0.7)

    def about_suspension(x):
        return float(p.m_l * p.r * (x[2] * cosine + p.r * x[4]))

    assert about_suspension(after) == pytest.approx(about_suspension(before), rel=1e-14)
    # The impulse costs energy, never adds any.
    assert energy(after, p) < energy(before, p)
