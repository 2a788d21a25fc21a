"""PI loops: their bounds and anti-windup; the low pass; horizons of predictions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from longreach_dynamics.control import Horizon, Pi, low_pass


def test_the_output_is_bounded() -> None:
    pi = Pi(proportional=1.0, integral=0.0, limit=0.5)
    wanted, bounded = pi.output(np.zeros(3), np.array([-2.0, 0.2, 2.0]))
    assert wanted.tolist() == [-2.0, 0.2, 2.0]
    assert bounded.tolist() == [-0.5, 0.2, 0.5]


def closed_loop(pi: Pi, load: float, steps: int, set_point: float = 1.0) -> np.ndarray:
    """Return x over time of x' = u - load, u bounded by the actuator to [-1, 1]."""
    interval, x, integral, course = 0.01, np.zeros(1), np.zeros(1), []
    for _ in range(steps):
        error = set_point - x
        wanted, u = pi.output(integral, error)
        given = np.clip(u, -1.0, 1.0)
        integral = pi.integrated(integral, error, wanted, given != wanted, interval)
        x = x + interval * (given - load)
        course.append(x[0])
    return np.array(course)


def test_the_integral_takes_a_lasting_load() -> None:
    alone = closed_loop(Pi(4.0, 0.0), 0.3, 2000)
    assert alone[-1] == pytest.approx(1.0 - 0.3 / 4.0, abs=1e-6)
    assert closed_loop(Pi(4.0, 4.0), 0.3, 2000)[-1] == pytest.approx(1.0, abs=1e-6)


def test_a_limited_actuator_does_not_wind_up() -> None:
    # It takes 20 s at full speed: an integral that grew all the way would overshoot by far.
    course = closed_loop(Pi(4.0, 4.0), 0.5, 8000, set_point=10.0)
    assert course.max() < 10.3
    assert course[-1] == pytest.approx(10.0, abs=1e-6)


def test_the_integral_has_a_bound_of_its_own() -> None:
    pi = Pi(0.0, 10.0, integral_limit=0.2)
    integral = pi.integrated(
        np.array([0.15, -0.15]), np.array([1.0, -1.0]), np.ones(2), np.zeros(2, bool), 0.1
    )
    assert integral.tolist() == [0.2, -0.2]


def test_a_limited_integral_may_shrink() -> None:
    pi = Pi(1.0, 1.0)
    # The actuator gives less than wanted upwards; an error downwards still counts.
    integral = pi.integrated(
        np.array([5.0]), np.array([-1.0]), np.array([4.0]), np.array([True]), 0.1
    )
    assert integral == pytest.approx([4.9])


def test_the_low_pass_is_that_of_a_first_order_lag() -> None:
    value = np.zeros(2)
    for _ in range(100):
        value = low_pass(value, np.array([1.0, -2.0]), 0.01, 0.5)
    share = 1.0 - math.exp(-1.0 / 0.5)
    assert value == pytest.approx([share, -2.0 * share], rel=1e-12)


def test_a_horizon_has_the_states_and_the_cost_of_a_simulation() -> None:
    random = np.random.default_rng(2)
    A, B = 0.4 * random.standard_normal((3, 3)), random.standard_normal((3, 2))
    Q, R, P = (float(k) * np.eye(size) for k, size in ((1, 3), (2, 2), (5, 3)))
    ahead = Horizon.of(A, B, Q, R, P, 4)
    x, V = random.standard_normal(3), random.standard_normal(8)

    def cost(V: np.ndarray) -> float:
        state, total = x, 0.0
        for k, u in enumerate(V.reshape(4, 2)):
            state = A @ state + B @ u
            assert ahead.free[k] @ x + ahead.forced[k] @ V == pytest.approx(state)
            total += u @ R @ u + state @ (P if k == 3 else Q) @ state
        return float(total)

    said = V @ ahead.H @ V + 2.0 * V @ ahead.g @ x
    assert said == pytest.approx(cost(V) - cost(np.zeros(8)))
