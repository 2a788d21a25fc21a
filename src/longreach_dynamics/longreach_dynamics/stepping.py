"""
Integration of ordinary differential equations with automatic step sizes, as compiled functions.

Two makers of integrators: :func:`nonstiff_integrator` and :func:`stiff_integrator`. Each takes a
right-hand side, a compiled function ``f(t, x, u, p, dx)`` that writes dx/dt into ``dx``: time [s],
state (n,), inputs and parameters of any type that numba passes. Each returns a compiled function

    integrate(time, duration, state, inputs, parameters, relative, absolute, first_step,
              budget=EVALUATIONS)
        -> state at the end (n,), evaluations of f, step it would take next [s], Status

that integrates over one interval in which nothing is discontinuous: inputs are constant, modes do
not change. The caller ends an interval at each event and starts the next one there. The tolerance
of the local error is absolute + relative |x_i| for each component. ``state`` is not changed. No
step begins after ``budget`` evaluations, so that a model which is far stiffer than expected ends
in a status and not in minutes of tiny steps; the state is then the one reached so far.

Call what they return from a ``@kernel`` of the machine (see kernels.py), which keeps the machine
code. A maker and not an argument, because numba cannot keep code that holds a function's address.

Sources: Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I (1993), section II.5;
Hairer, Wanner, Solving Ordinary Differential Equations II (1996), section IV.8.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import IntEnum
from typing import Any, cast

import numpy as np
from numba import njit

from longreach_dynamics._tableau_dop853 import ERROR_3, ERROR_5, NODES, STAGES, WEIGHTS
from longreach_dynamics.errors import LongreachError
from longreach_dynamics.linear_algebra import lu, lu_solve

# Default budget of one interval: about a second of a small model.
EVALUATIONS = 1_000_000

RightHandSide = Callable[..., None]
Integrator = Callable[..., tuple[np.ndarray, int, float, int]]


class Status(IntEnum):
    """How an integration ended."""

    DONE = 0
    STEP_TOO_SMALL = 1
    NOT_FINITE = 2
    BUDGET_SPENT = 3


class IntegrationError(LongreachError):
    """An integration that could not reach the end of its interval."""


def raise_for(status: int, time: float, state: np.ndarray) -> None:
    """
    Raise IntegrationError, with time, state and remedy, for a status other than DONE.

    ``time`` [s] and ``state`` (n,) are those at the start of the interval.
    """
    if status == Status.DONE:
        return
    what, remedy = {
        Status.STEP_TOO_SMALL: (
            'the step size fell below what floating point can resolve',
            'Look for parameters or inputs of impossible size.',
        ),
        Status.NOT_FINITE: (
            'the state or its derivative is no longer finite',
            'Look for parameters or inputs of impossible size.',
        ),
        Status.BUDGET_SPENT: (
            'it needs more evaluations of the model than are allowed for one interval',
            'Reduce friction or stiffness, slow down the fastest part, or relax the tolerances.',
        ),
    }[Status(status)]
    raise IntegrationError(
        f'integration failed in the interval that starts at t = {time:g} s: {what}.'
        f' State there: {state.tolist()}. {remedy}'
    )


@njit
def _finite(vector):  # type: ignore[no-untyped-def]
    """Return whether all elements are finite."""
    # numba does not compile all() of a generator.
    for value in vector:  # noqa: SIM110
        if not math.isfinite(value):
            return False
    return True


@njit
def _norm(vector, scale):  # type: ignore[no-untyped-def]
    """Return the root mean square of vector / scale."""
    total = 0.0
    for i in range(vector.size):
        total += (vector[i] / scale[i]) ** 2
    return math.sqrt(total / vector.size)


def nonstiff_integrator(right_hand_side: RightHandSide) -> Integrator:
    """
    Return an explicit Runge-Kutta integrator of order 8(5,3), DOP853, for a right-hand side.

    For smooth motion at tight tolerances. What is returned is described in the module's docstring.
    """

    @njit
    def integrate(  # type: ignore[no-untyped-def]
        time,
        duration,
        state,
        inputs,
        parameters,
        relative,
        absolute,
        first_step,
        budget=EVALUATIONS,
    ):
        x = state.copy()
        n = x.size
        work = np.empty((14, n))
        stages = work[:12]
        trial = work[12]
        scale = work[13]
        right_hand_side(time, x, inputs, parameters, stages[0])
        evaluations = 1
        done = 0.0
        step = min(first_step, duration)
        while done < duration:
            # The last step ends on the end of the interval to the last bit.
            last = step >= duration - done
            h = duration - done if last else step
            if not (last or h >= 1e-15 * max(abs(time + done), duration)):
                return x, evaluations, step, 1
            if evaluations >= budget:
                return x, evaluations, step, 3
            for i in range(1, 12):
                for k in range(n):
                    trial[k] = STAGES[i, 0] * stages[0, k]
                for j in range(1, i):
                    weight = STAGES[i, j]
                    # A quarter of the weights are zero.
                    if weight != 0.0:
                        for k in range(n):
                            trial[k] += weight * stages[j, k]
                for k in range(n):
                    trial[k] = x[k] + h * trial[k]
                right_hand_side(time + done + NODES[i] * h, trial, inputs, parameters, stages[i])
            evaluations += 11
            error_3 = 0.0
            error_5 = 0.0
            for k in range(n):
                total = 0.0
                total_3 = 0.0
                total_5 = 0.0
                # The weights of the others are zero.
                for j in (0, 5, 6, 7, 8, 9, 10, 11):
                    total += WEIGHTS[j] * stages[j, k]
                    total_3 += ERROR_3[j] * stages[j, k]
                    total_5 += ERROR_5[j] * stages[j, k]
                trial[k] = x[k] + h * total
                scale[k] = absolute + relative * max(abs(x[k]), abs(trial[k]))
                error_3 += (total_3 / scale[k]) ** 2
                error_5 += (total_5 / scale[k]) ** 2
            error = error_5
            if error_5 != 0.0:
                error = h * error_5 / math.sqrt((error_5 + 0.01 * error_3) * n)
            if not math.isfinite(error):
                if h < 1e-12 * duration:
                    return x, evaluations, step, 2
                step = 0.1 * h
                continue
            factor = 6.0 if error == 0.0 else min(6.0, max(0.2, 0.9 * error ** (-1.0 / 8.0)))
            if error <= 1.0:
                done = duration if last else done + h
                x[:] = trial
                # A step that the interval's end cut short says little about the next one.
                step = max(step, factor * h) if last else factor * h
                right_hand_side(time + done, x, inputs, parameters, stages[0])
                evaluations += 1
            else:
                step = min(1.0, factor) * h
        return x, evaluations, step, 0

    return cast('Integrator', integrate)


_S6 = math.sqrt(6.0)
_RADAU_NODES = np.array([(4 - _S6) / 10, (4 + _S6) / 10, 1.0])
_RADAU_MATRIX = np.array(
    [
        [(88 - 7 * _S6) / 360, (296 - 169 * _S6) / 1800, (-2 + 3 * _S6) / 225],
        [(296 + 169 * _S6) / 1800, (88 + 7 * _S6) / 360, (-2 - 3 * _S6) / 225],
        [(16 - _S6) / 36, (16 + _S6) / 36, 1 / 9],
    ]
)
# Real eigenvalue of the inverse matrix, and the weights of the embedded formula of order 3.
_RADAU_REAL = 3.0 + 3.0 ** (2 / 3) - 3.0 ** (1 / 3)
_RADAU_ERROR = np.array([(-13 - 7 * _S6) / 3, (-13 + 7 * _S6) / 3, -1 / 3])
_MAX_NEWTON = 8
# Newton iterations stop when what is left is this part of the tolerated local error.
_NEWTON_PART = 1e-2


def _stage_solver(right_hand_side: RightHandSide) -> Any:
    """Return a function that solves for the stages of a step."""

    @njit
    def solve_stages(time, h, x, inputs, parameters, newton, pivots, scale, z):  # type: ignore[no-untyped-def]
        """Solve Z_i = h sum_j a_ij f(x + Z_j) by Newton; return whether found, and evaluations."""
        n = x.size
        slopes = np.empty((3, n))
        trial = np.empty(n)
        change = np.empty(3 * n)
        previous = 0.0
        evaluations = 0
        for iteration in range(_MAX_NEWTON):
            for i in range(3):
                for k in range(n):
                    trial[k] = x[k] + z[i * n + k]
                right_hand_side(time + _RADAU_NODES[i] * h, trial, inputs, parameters, slopes[i])
            evaluations += 3
            for i in range(3):
                for k in range(n):
                    total = 0.0
                    for j in range(3):
                        total += _RADAU_MATRIX[i, j] * slopes[j, k]
                    change[i * n + k] = h * total - z[i * n + k]
            lu_solve(newton, pivots, change)
            if not _finite(change):
                return False, evaluations
            z += change
            size = 0.0
            for i in range(3):
                size = max(size, _norm(change[i * n : (i + 1) * n], scale))
            if iteration == 0:
                # A first change this small is rounding: the stages were solved already.
                if size < 1e-3 * _NEWTON_PART:
                    return True, evaluations
            else:
                rate = size / previous
                if rate >= 1.0 and size > _NEWTON_PART:
                    return False, evaluations
                if size < _NEWTON_PART or rate / (1.0 - rate) * size < _NEWTON_PART:
                    return True, evaluations
            previous = size
        return False, evaluations

    return solve_stages


def stiff_integrator(right_hand_side: RightHandSide) -> Integrator:
    """
    Return a Radau IIA integrator of order 5, L-stable, for a right-hand side.

    A brake or oil that is thousands of times faster than the motion costs no small steps once its
    transient is over. What is returned is described in the module's docstring.
    """

    @njit
    def jacobian_at(time, x, f, inputs, parameters):  # type: ignore[no-untyped-def]
        """Return df/dx (n, n) by forward differences."""
        n = x.size
        matrix = np.empty((n, n))
        moved = x.copy()
        column = np.empty(n)
        for j in range(n):
            moved[j] = x[j] + 1.5e-8 * max(abs(x[j]), 1e-3)
            delta = moved[j] - x[j]
            right_hand_side(time, moved, inputs, parameters, column)
            for i in range(n):
                matrix[i, j] = (column[i] - f[i]) / delta
            moved[j] = x[j]
        return matrix

    solve_stages = _stage_solver(right_hand_side)

    @njit
    def integrate(  # type: ignore[no-untyped-def]
        time,
        duration,
        state,
        inputs,
        parameters,
        relative,
        absolute,
        first_step,
        budget=EVALUATIONS,
    ):
        n = state.size
        x = state.copy()
        f = np.empty(n)
        filtered = np.empty(n)
        newton = np.empty((3 * n, 3 * n))
        newton_pivots = np.empty(3 * n, np.int64)
        error_matrix = np.empty((n, n))
        error_pivots = np.empty(n, np.int64)
        estimate = np.empty(n)
        done = 0.0
        step = min(first_step, duration)
        right_hand_side(time, x, inputs, parameters, f)
        jacobian = jacobian_at(time, x, f, inputs, parameters)
        evaluations = n + 1
        first_or_rejected = True
        while done < duration:
            last = step >= duration - done
            h = duration - done if last else step
            if not (last or h >= 1e-15 * max(abs(time + done), duration)):
                return x, evaluations, step, 1
            if evaluations >= budget:
                return x, evaluations, step, 3
            if not (_finite(f) and _finite(jacobian.reshape(n * n))):
                return x, evaluations, step, 2
            for i in range(3):
                for j in range(3):
                    for k in range(n):
                        for m in range(n):
                            row, column = i * n + k, j * n + m
                            newton[row, column] = (1.0 if row == column else 0.0) - (
                                h * _RADAU_MATRIX[i, j] * jacobian[k, m]
                            )
            scale = absolute + relative * np.abs(x)
            z = np.zeros(3 * n)
            for i in range(n):
                for j in range(n):
                    error_matrix[i, j] = -jacobian[i, j]
                error_matrix[i, i] += _RADAU_REAL / h
            converged = lu(newton, newton_pivots) and lu(error_matrix, error_pivots)
            if converged:
                converged, count = solve_stages(
                    time + done, h, x, inputs, parameters, newton, newton_pivots, scale, z
                )
                evaluations += count
            if not converged:
                step = 0.25 * h
                first_or_rejected = True
                continue
            end = x + z[2 * n :]
            scale = absolute + relative * np.maximum(np.abs(x), np.abs(end))
            combination = np.zeros(n)
            for i in range(3):
                combination += _RADAU_ERROR[i] / h * z[i * n : (i + 1) * n]
            estimate[:] = f + combination
            lu_solve(error_matrix, error_pivots, estimate)
            error = _norm(estimate, scale)
            if error > 1.0 and first_or_rejected:
                # Filtered once more, so that a transient which the method damps is not chased.
                right_hand_side(time + done, x + estimate, inputs, parameters, filtered)
                evaluations += 1
                estimate[:] = filtered + combination
                lu_solve(error_matrix, error_pivots, estimate)
                error = _norm(estimate, scale)
            factor = 8.0 if error == 0.0 else min(8.0, max(0.2, 0.9 * error**-0.25))
            if error <= 1.0:
                done = duration if last else done + h
                x = end
                step = max(step, factor * h) if last else factor * h
                first_or_rejected = False
                right_hand_side(time + done, x, inputs, parameters, f)
                jacobian = jacobian_at(time + done, x, f, inputs, parameters)
                evaluations += n + 1
            else:
                step = (min(1.0, factor) if math.isfinite(error) else 0.25) * h
                first_or_rejected = True
        return x, evaluations, step, 0

    return cast('Integrator', integrate)
