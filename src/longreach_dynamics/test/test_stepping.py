"""The integrators against analytic solutions, stability functions and SciPy."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from numba import njit
from scipy.integrate import solve_ivp

from longreach_dynamics.errors import LongreachError
from longreach_dynamics.kernels import kernel
from longreach_dynamics.stepping import (
    EVALUATIONS,
    IntegrationError,
    Status,
    nonstiff_integrator,
    raise_for,
    stiff_integrator,
)

DECAY, OSCILLATOR, VAN_DER_POL, PROTHERO_ROBINSON, POWER, GROWTH = range(6)
SQUARE, NAN_ALWAYS, NAN_LATER, COUPLED, PENDULUM = range(6, 11)


@njit
def problem(t, x, u, p, dx):
    """Write the derivative of problem u[0], parameter p; u[1] counts, u[2] is the last t."""
    u[1] += 1.0
    u[2] = t
    kind = int(u[0])
    if kind == DECAY:
        dx[0] = -p * x[0]
    elif kind == OSCILLATOR:
        dx[0] = x[1]
        dx[1] = -p * p * x[0]
    elif kind == VAN_DER_POL:
        dx[0] = x[1]
        dx[1] = p * (1.0 - x[0] * x[0]) * x[1] - x[0]
    elif kind == PROTHERO_ROBINSON:
        dx[0] = -p * (x[0] - math.cos(t)) - math.sin(t)
    elif kind == POWER:
        dx[0] = (p + 1.0) * t**p
    elif kind == GROWTH:
        dx[0] = x[0] * math.cos(t)
    elif kind == SQUARE:
        dx[0] = x[0] * x[0]
    elif kind == NAN_ALWAYS:
        dx[0] = math.nan
    elif kind == NAN_LATER:
        dx[0] = 1.0 if x[0] < 0.5 else math.nan
    elif kind == COUPLED:
        # Eigenvalues -1 and -p, with eigenvectors (1, 1) and (1, -1).
        dx[0] = -0.5 * ((1.0 + p) * x[0] + (1.0 - p) * x[1])
        dx[1] = -0.5 * ((1.0 - p) * x[0] + (1.0 + p) * x[1])
    else:
        dx[0] = x[1]
        dx[1] = -p * math.sin(x[0])


class Outcome(NamedTuple):
    """What an integration returned and what its right-hand side saw."""

    state: np.ndarray
    evaluations: int
    next_step: float
    status: int
    calls: int
    last_time: float


Run = Callable[..., Outcome]


def runner(integrate):
    def run(
        kind,
        p,
        state,
        duration,
        relative=1e-10,
        absolute=1e-12,
        first_step=1e-2,
        time=0.0,
        budget=EVALUATIONS,
    ):
        u = np.array([float(kind), 0.0, -math.inf])
        x, evaluations, step, status = integrate(
            time, duration, np.array(state), u, p, relative, absolute, first_step, budget
        )
        return Outcome(x, evaluations, step, status, int(u[1]), float(u[2]))

    return run


_nonstiff, _stiff = nonstiff_integrator(problem), stiff_integrator(problem)


# Kept between runs, because compiling takes longer than all these tests.
@kernel
def nonstiff(time, duration, x, u, p, relative, absolute, step, budget):
    return _nonstiff(time, duration, x, u, p, relative, absolute, step, budget)


@kernel
def stiff(time, duration, x, u, p, relative, absolute, step, budget):
    return _stiff(time, duration, x, u, p, relative, absolute, step, budget)


NONSTIFF, STIFF = runner(nonstiff), runner(stiff)
both = pytest.mark.parametrize('run', [NONSTIFF, STIFF], ids=['nonstiff', 'stiff'])


def test_stiff_takes_steps_of_the_slow_motion_once_the_transient_is_over():
    outcome = STIFF(COUPLED, 1e6, [1.5, 0.5], 10.0, 1e-6, 1e-8, first_step=1e-6)
    # An explicit method is bound to 10 s * 1e6 1/s / 6 = 1.7e6 steps.
    assert outcome.status == Status.DONE
    assert outcome.evaluations < 1300


@pytest.mark.parametrize('rate', [1e2, 1e5, 1e8])
def test_prothero_robinson_stays_on_the_smooth_solution(rate):
    outcome = STIFF(PROTHERO_ROBINSON, rate, [1.0], 10.0, 1e-8, 1e-10)
    assert outcome.state[0] == pytest.approx(math.cos(10.0), abs=1e-7)


def test_smooth_problem_costs_few_evaluations():
    # One period at 1e-10: DOP853 needs about a dozen steps of 12 evaluations.
    outcome = NONSTIFF(OSCILLATOR, 1.0, [1.0, 0.0], 2.0 * math.pi, 1e-10, 1e-10, first_step=0.1)
    assert outcome.evaluations < 300


def test_van_der_pol_against_scipy():
    def derivative(t, x):
        return [x[1], 1e3 * ((1.0 - x[0] * x[0]) * x[1]) - x[0]]

    def jacobian(t, x):
        return [[0.0, 1.0], [-2e3 * x[0] * x[1] - 1.0, 1e3 * (1.0 - x[0] * x[0])]]

    duration = 900.0  # beyond the first jump, at about 807
    expected = solve_ivp(
        derivative, (0.0, duration), [2.0, 0.0], 'Radau', rtol=1e-11, atol=1e-13, jac=jacobian
    ).y[:, -1]
    outcome = STIFF(VAN_DER_POL, 1e3, [2.0, 0.0], duration, 1e-9, 1e-11)
    assert outcome.status == Status.DONE
    assert outcome.evaluations < 28000
    assert expected[0] < -1.5
    assert outcome.state == pytest.approx(expected, rel=1e-6)


@both
@pytest.mark.parametrize('problem_kind', [OSCILLATOR, PENDULUM])
def test_error_follows_the_tolerance(run, problem_kind):
    exact = NONSTIFF(problem_kind, 1.0, [1.0, 0.0], 7.0, 1e-14, 1e-15).state
    errors = []
    for tolerance in (1e-4, 1e-6, 1e-8, 1e-10):
        outcome = run(problem_kind, 1.0, [1.0, 0.0], 7.0, tolerance, tolerance)
        errors.append(np.abs(outcome.state - exact).max())
        # A global error of at most some hundred local tolerances.
        assert errors[-1] < 300.0 * tolerance
    assert errors == sorted(errors, reverse=True)


def huge_steps(run, kind, p, start, step, count=1):
    """Return x after steps of one size, which a huge tolerance accepts as they are."""
    x = start
    for index in range(count):
        x = run(kind, p, [x], step, 1e9, 1e9, first_step=step, time=index * step).state[0]
    return x


def test_order_eight_of_the_nonstiff_formula():
    exact = math.exp(math.sin(2.0))
    errors = [abs(huge_steps(NONSTIFF, GROWTH, 0.0, 1.0, 2.0 / n, n) - exact) for n in (2, 4, 8)]
    orders = [math.log2(errors[i] / errors[i + 1]) for i in range(2)]
    assert min(orders) > 7.5


@pytest.mark.parametrize(('run', 'degree'), [(NONSTIFF, 7), (STIFF, 4)])
def test_one_step_integrates_polynomials_up_to_the_order(run, degree):
    for power in range(degree + 1):
        assert huge_steps(run, POWER, float(power), 0.0, 1.0) == pytest.approx(1.0, abs=1e-13)
    assert abs(huge_steps(run, POWER, degree + 1.0, 0.0, 1.0) - 1.0) > 1e-6


@pytest.mark.parametrize('z', [-0.1, -1.0, -10.0, -1e3, -1e6])
def test_one_stiff_step_is_the_stability_function_of_radau_iia(z):
    # The (2, 3) Pade approximation of exp: Hairer & Wanner II, section IV.3, table 3.1.
    expected = (1 + 2 * z / 5 + z**2 / 20) / (1 - 3 * z / 5 + 3 * z**2 / 20 - z**3 / 60)
    # The Jacobian by differences is good to about 1e-8.
    actual = huge_steps(STIFF, DECAY, -z, 1.0, 1.0)
    assert actual == pytest.approx(expected, rel=1e-5, abs=1e-9)


@both
def test_ends_on_the_end_of_the_interval(run):
    # To the last bit, for lengths that are no multiples of the steps.
    random = np.random.default_rng(2)
    for duration in random.uniform(0.01, 3.0, 300):
        outcome = run(POWER, 0.0, [0.0], duration, first_step=0.3 * random.random(), time=0.0)
        assert outcome.last_time == duration
        # With x' = 1 the state shows the length that was covered.
        assert outcome.state[0] == pytest.approx(duration, rel=1e-14)


@both
@pytest.mark.parametrize('factor', [6.0, 8.0])
def test_a_step_that_misses_the_end_by_rounding_is_followed_by_a_last_one(run, factor):
    # Without an error steps grow by a factor: the first three together are the interval.
    for duration in np.arange(1, 300) / 100.0:
        step = duration / (1.0 + factor + factor**2)
        outcome = run(DECAY, 0.0, [1.0], duration, first_step=step, time=1234.5)
        assert (outcome.status, outcome.state[0]) == (Status.DONE, 1.0)


@both
def test_pieces_equal_the_whole(run):
    whole = run(PENDULUM, 9.0, [1.0, 0.5], 2.0, 1e-12, 1e-13).state
    x, step = [1.0, 0.5], 1e-2
    for index in range(7):
        outcome = run(PENDULUM, 9.0, x, 2.0 / 7, 1e-12, 1e-13, step, time=index * 2.0 / 7)
        x, step = outcome.state.tolist(), outcome.next_step
    assert x == pytest.approx(whole, abs=1e-10)


@both
def test_counts_its_evaluations(run):
    for kind, p in ((OSCILLATOR, 2.0), (VAN_DER_POL, 20.0)):
        outcome = run(kind, p, [2.0, 0.0], 3.0, 1e-7, 1e-7, first_step=1.0)
        assert outcome.evaluations == outcome.calls


@both
@pytest.mark.parametrize(
    ('kind', 'start', 'step', 'statuses'),
    [
        (DECAY, 1.0, math.nan, [Status.STEP_TOO_SMALL]),
        # x' = x^2 from 1 has its pole at t = 1.
        (SQUARE, 1.0, 1e-2, [Status.STEP_TOO_SMALL, Status.NOT_FINITE]),
        (NAN_ALWAYS, 0.0, 1e-2, [Status.NOT_FINITE]),
        (NAN_LATER, 0.0, 1e-2, [Status.NOT_FINITE]),
    ],
)
def test_what_is_no_number_is_a_status(run, kind, start, step, statuses):
    outcome = run(kind, 1.0, [start], 2.0, first_step=step)
    assert outcome.status in statuses
    assert np.all(np.isfinite(outcome.state))


def test_a_stiff_problem_ends_when_the_budget_is_spent():
    # DOP853 is bound to steps of 6e-9 s: 1.6e8 of them.
    outcome = NONSTIFF(COUPLED, 1e9, [1.5, 0.5], 1.0, 1e-6, 1e-8)
    assert outcome.status == Status.BUDGET_SPENT
    assert EVALUATIONS <= outcome.evaluations == outcome.calls < EVALUATIONS + 12


@both
def test_a_budget_ends_with_the_state_reached(run):
    whole = run(POWER, 0.0, [0.0], 1.0, first_step=1e-6)
    part = run(POWER, 0.0, [0.0], 1.0, first_step=1e-6, budget=whole.evaluations // 2)
    assert part.status == Status.BUDGET_SPENT
    assert whole.evaluations // 2 <= part.evaluations < whole.evaluations
    # With x' = 1 the state shows the length that was covered.
    assert 0.0 < part.state[0] < 1.0
    assert run(POWER, 0.0, [0.0], 1.0, first_step=1e-6, budget=whole.evaluations).status == 0


@pytest.mark.parametrize(
    ('status', 'what'),
    [
        (Status.STEP_TOO_SMALL, 'step size fell below'),
        (Status.NOT_FINITE, 'no longer finite'),
        (Status.BUDGET_SPENT, 'needs more evaluations'),
    ],
)
def test_raise_for_tells_where_and_what(status, what):
    with pytest.raises(IntegrationError, match=rf't = 2\.5 s: .*{what}.*\[1\.0, 2\.0\]') as error:
        raise_for(int(status), 2.5, np.array([1.0, 2.0]))
    assert isinstance(error.value, LongreachError)
