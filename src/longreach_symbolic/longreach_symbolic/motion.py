"""
Motion of flexible links under PD control of the motor angles, under locked motors or torques.

The loop is closed within the equations of motion, in continuous time: without the inertia of a
rotor a motor turns the end of an elastic link, and a derivative gain of 25 N m s/rad acts within
less than a tenth of a millisecond. A digital controller with a cycle of 1 ms would be unstable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from longreach_dynamics.linear_algebra import cholesky, cholesky_solve
from longreach_dynamics.stepping import nonstiff_integrator, raise_for
from longreach_symbolic.generated import compiled, kernels_of, parameter_values
from longreach_symbolic.links import Links
from longreach_symbolic.vibration import Joints

# Of the local error of a step; coordinates are in rad and m.
_RELATIVE, _ABSOLUTE = 1e-6, 1e-9


class Motion(NamedTuple):
    """Motion at equal intervals, K rows; incomplete where a link bent by more than its length."""

    q: np.ndarray  # (K, n)
    rates: np.ndarray
    accelerations: np.ndarray
    torques: np.ndarray  # (K, N) [N m]
    complete: bool  # whether the end was reached


class Constants(NamedTuple):
    """What the compiled equations take."""

    values: np.ndarray  # parameters
    measured: np.ndarray  # (n, N), transposed Jacobian of the motor angles
    force: np.ndarray  # (n, N), from torques
    rotors: np.ndarray  # (n, n), B J B^T
    damping: np.ndarray  # (n, n)


@njit
def hold(factor, measured, wanted, acceleration, torque):  # type: ignore[no-untyped-def]
    """Find torques (N,) that give the motor angles wanted accelerations (N,); False: none."""
    # ``factor``: the mass matrix after cholesky; ``measured`` (n, N): the transposed Jacobian of
    # the motor angles; ``acceleration`` (n,): before the forces, afterwards the acceleration.
    n, count = measured.shape
    cholesky_solve(factor, acceleration)
    by_torque = np.empty((count, n))
    compliance = np.empty((count, count))
    for i in range(count):
        by_torque[i] = measured[:, i]
        cholesky_solve(factor, by_torque[i])
    for i in range(count):
        torque[i] = wanted[i]
        for k in range(n):
            torque[i] -= measured[k, i] * acceleration[k]
        for j in range(count):
            compliance[i, j] = 0.0
            for k in range(n):
                compliance[i, j] += measured[k, i] * by_torque[j, k]
    if not cholesky(compliance):
        return False
    cholesky_solve(compliance, torque)
    for i in range(count):
        for k in range(n):
            acceleration[k] += by_torque[i, k] * torque[i]
    return True


def accelerator(equations: Callable[..., None]) -> Callable[..., None]:
    """Return the compiled function that fills the acceleration (n,) of a state x = (q, q')."""
    # Motors have the torques (N,), or, with ``stopping`` [s] above 0, those that let their rates
    # fade with this time, filled in.

    @njit
    def accelerate(x, torque, stopping, constants, acceleration):  # type: ignore[no-untyped-def]
        n, count = constants.force.shape
        q, rates = x[:n], x[n:]
        mass = np.empty((n, n))
        velocity = np.empty(n)
        static = np.empty(n)
        equations(q, rates, constants.values, mass, velocity, static)
        for i in range(n):
            acceleration[i] = -velocity[i] - static[i]
            for k in range(n):
                mass[i, k] += constants.rotors[i, k]
                acceleration[i] -= constants.damping[i, k] * rates[k]
        if not cholesky(mass):
            acceleration[:] = np.nan
            return
        if stopping > 0.0:
            wanted = np.zeros(count)
            for i in range(count):
                for k in range(n):
                    wanted[i] -= constants.measured[k, i] * rates[k] / stopping
            if not hold(mass, constants.measured, wanted, acceleration, torque):
                acceleration[:] = np.nan
            return
        for i in range(n):
            for k in range(count):
                acceleration[i] += constants.force[i, k] * torque[k]
        cholesky_solve(mass, acceleration)

    return accelerate  # type: ignore[no-any-return]


def recorder(equations: Callable[..., None]) -> Callable[..., tuple[int, int]]:
    """Return the compiled function that integrates; it returns the rows and the status."""
    # x = (q, rates); ``references`` and ``rates`` (K, N); ``loop``: constants and joints;
    # ``limits`` of deflections; ``out``: q, rates, accelerations (K, 3 n), torques (K, N).
    accelerate = accelerator(equations)

    @njit
    def follow(x, reference, reference_rate, loop, acceleration, torque):  # type: ignore[no-untyped-def]
        constants, joints = loop
        n, count = constants.force.shape
        for i in range(count):
            angle, rate = 0.0, 0.0
            for k in range(n):
                angle += constants.measured[k, i] * x[k]
                rate += constants.measured[k, i] * x[n + k]
            torque[i] = joints.stiffness * (reference[i] - angle)
            torque[i] += joints.damping * (reference_rate[i] - rate)
        stopping = np.inf if joints.stiffness == np.inf else 0.0
        accelerate(x, torque, stopping, constants, acceleration)

    @njit
    def right_hand_side(t, x, inputs, loop, dx):  # type: ignore[no-untyped-def]
        start, interval, angles, rates = inputs
        n, count = loop[0].force.shape
        torque = np.empty(count)
        # The cubic with these angles and rates at both ends: no jump of the rate, nor of the
        # torque.
        p = (t - start) / interval
        rest = 1.0 - p
        begin = rest * rest * ((1.0 + 2.0 * p) * angles[0] + p * interval * rates[0])
        end = p * p * ((1.0 + 2.0 * rest) * angles[1] - rest * interval * rates[1])
        slope = 6.0 * p * rest / interval * (angles[1] - angles[0])
        slope += rest * (rest - 2.0 * p) * rates[0] + p * (p - 2.0 * rest) * rates[1]
        follow(x, begin + end, slope, loop, dx[n:], torque)
        dx[:n] = x[n:]

    integrate = nonstiff_integrator(right_hand_side)

    @njit
    def record(x, references, reference_rates, interval, loop, limits, recorded, torques):  # type: ignore[no-untyped-def]
        n, count = loop[0].force.shape
        step = 1e-3 * interval
        for row in range(len(references)):
            recorded[row, : 2 * n] = x
            angles, rates = references[row : row + 2], reference_rates[row : row + 2]
            follow(x, angles[0], rates[0], loop, recorded[row, 2 * n :], torques[row])
            for k in range(n - count):
                if not abs(x[count + k]) <= limits[k]:
                    return row + 1, 0
            if row + 1 < len(references):
                start = row * interval
                inputs = (start, interval, angles, rates)
                x, _, step, status = integrate(
                    start, interval, x, inputs, loop, _RELATIVE, _ABSOLUTE, step
                )
                if status != 0:
                    return row + 1, status
        return len(references), 0

    return record  # type: ignore[no-any-return]


def force_matrix(links: Links, printed: bool = False) -> np.ndarray:
    """Return the matrix (n, N) from torques to forces; ``printed``: (32) and (A.9), wrong."""
    if printed:
        from longreach_symbolic.equations import Namer, coefficients, force_map
        from longreach_symbolic.links import model_of

        model = model_of(links, 'none')
        parts = [coefficients(model, i + 1, Namer(model, ())) for i in range(model.count)]
        return np.array(force_map(model, parts, printed=True), dtype=float)
    found = np.empty((links.size, len(links.links)))
    compiled(links).force_map(parameter_values(links), found)
    return found


def move(
    links: Links,
    q: np.ndarray,
    references: np.ndarray,
    reference_rates: np.ndarray,
    interval: float,
    joints: Joints,
    force: np.ndarray | None = None,
) -> Motion:
    """Return the motion from rest at q (n,), motors held to references (K, N) at intervals [s]."""
    count, size, rows = len(links.links), links.size, len(references)
    own = force_matrix(links)
    none = np.zeros((size, size))
    constants = Constants(
        parameter_values(links), own, own if force is None else force, none, none
    )
    kernels = kernels_of(compiled(links), __name__, record='recorder')
    limits = np.repeat([link.length for link in links.links], links.modes)
    x = np.concatenate((q, np.zeros(size)))
    recorded, torques = np.empty((rows, 3 * size)), np.empty((rows, count))
    done, status = kernels.record(
        x, references, reference_rates, interval, (constants, joints), limits, recorded, torques
    )
    raise_for(status, (done - 1) * interval, recorded[done - 1, : 2 * size])
    found_q, rates, accelerations = np.split(recorded[:done], 3, axis=1)
    return Motion(found_q, rates, accelerations, torques[:done], complete=done == rows)
