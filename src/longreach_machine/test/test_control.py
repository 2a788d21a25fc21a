"""The low pass; horizons of predictions."""

import math

import numpy as np
import pytest

from longreach_machine.control import Horizon, low_pass


def test_the_low_pass_is_that_of_a_first_order_lag():
    value = np.zeros(2)
    for _ in range(100):
        value = low_pass(value, np.array([1.0, -2.0]), 0.01, 0.5)
    share = 1.0 - math.exp(-1.0 / 0.5)
    assert value == pytest.approx([share, -2.0 * share], rel=1e-12)


def test_a_horizon_has_the_states_and_the_cost_of_a_simulation():
    random = np.random.default_rng(2)
    A, B = 0.4 * random.standard_normal((3, 3)), random.standard_normal((3, 2))
    Q, R, P = (float(k) * np.eye(size) for k, size in ((1, 3), (2, 2), (5, 3)))
    ahead = Horizon.of(A, B, Q, R, P, 4)
    x, V = random.standard_normal(3), random.standard_normal(8)

    def cost(V):
        state, total = x, 0.0
        for k, u in enumerate(V.reshape(4, 2)):
            state = A @ state + B @ u
            assert ahead.free[k] @ x + ahead.forced[k] @ V == pytest.approx(state)
            total += u @ R @ u + state @ (P if k == 3 else Q) @ state
        return float(total)

    said = V @ ahead.H @ V + 2.0 * V @ ahead.g @ x
    assert said == pytest.approx(cost(V) - cost(np.zeros(8)))
