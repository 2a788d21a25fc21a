"""
The boom's motion: fourth-order Runge-Kutta steps of fixed length, with pistons that stick and slip.

State y = (q, q', p_1, p_2, s_v), 2 n + 3 N numbers: coordinates, their rates, pressures of head and
rod side [Pa], spool positions. Beside it each piston has a mode: it slides outwards or inwards,
sticks, or rests against an end of its stroke. Modes change between steps only; within a step
friction keeps its direction, so that the right-hand side is smooth in velocity.

Sticking a piston means an impulse that takes its velocity, and moves the rest of the boom by what
the inertia couples to it: v_free += M_ff^-1 M_fs v_s. (Setting v_s to zero alone would add energy.)
Whether stuck pistons hold is asked anew at the beginning of every step, all at once: a piston that
comes loose changes the forces on the others.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from longreach_boom.model import mass_and_forces, workspace
from longreach_dynamics.hydraulics import (
    chamber_pressure,
    pressure_rates,
    valve_flows,
    valve_opening,
)
from longreach_dynamics.kernels import kernel
from longreach_dynamics.linear_algebra import cholesky, cholesky_solve
from longreach_dynamics.linkages import lever_arm, piston_position

__all__ = [
    'AT_HEAD_END',
    'AT_ROD_END',
    'INWARDS',
    'OUTWARDS',
    'STUCK',
    'advance_motion',
    'evaluate',
]

# Modes of a piston. At an end of the stroke it is held like a stuck one, by a force that only pushes.
INWARDS, STUCK, OUTWARDS = -1, 0, 1
AT_ROD_END, AT_HEAD_END = 2, -2  # run out, run in

_OK, _NOT_FINITE = 0, 1


@njit
def _held(mode):  # type: ignore[no-untyped-def]
    """Tell whether a piston stands."""
    return mode != -1 and mode != 1


@njit
def _hydraulic_force(y, i, n, p):  # type: ignore[no-untyped-def]
    """Return p_1 A_1 - p_2 A_2 of a cylinder [N]."""
    N = p.length.size
    p1 = chamber_pressure(y[2 * n + i], p.vapour)
    p2 = chamber_pressure(y[2 * n + N + i], p.vapour)
    return p1 * p.head_area[i] - p2 * p.rod_area[i]


@njit
def _derivative(y, modes, spools, p, M, f, acc, work, dy):  # type: ignore[no-untyped-def]
    """
    Write the time derivative of the state into ``dy``; return whether M was positive definite.

    Afterwards M holds its Cholesky factor below, and itself above the diagonal, with rows and
    columns of standing joints taken out of the factor; f holds c + D q' + g, acc q''.
    """
    N, n = p.length.size, f.size
    mass_and_forces(y[:n], y[n : 2 * n], p, M, f, work)
    for k in range(n):
        acc[k] = -f[k]
    for i in range(N):
        angle, rate = y[i], y[n + i]
        arm = lever_arm(p.linkage[i], angle)
        position = piston_position(p.linkage[i], angle)
        velocity = arm * rate
        p1 = chamber_pressure(y[2 * n + i], p.vapour)
        p2 = chamber_pressure(y[2 * n + N + i], p.vapour)
        force = p1 * p.head_area[i] - p2 * p.rod_area[i] - p.viscous[i] * velocity
        if modes[i] == 1:
            force -= p.coulomb[i]
        elif modes[i] == -1:
            force += p.coulomb[i]
        acc[i] += force * arm
        spool = y[2 * n + 2 * N + i]
        q1, q2 = valve_flows(
            spool,
            p1,
            p2,
            p.supply,
            p.tank,
            valve_opening(spool, p.dead_band[i], p.head_opening[i]),
            valve_opening(spool, p.dead_band[i], p.rod_opening[i]),
            p.flow_coefficient,
            p.laminar,
        )
        dy[2 * n + i], dy[2 * n + N + i] = pressure_rates(
            position,
            velocity,
            q1,
            q2,
            p.head_area[i],
            p.rod_area[i],
            p.head_volume[i],
            p.rod_volume[i],
            p.bulk_modulus,
        )
        dy[2 * n + 2 * N + i] = p.spool_rate[i] * (spools[i] - spool)
    for i in range(N):
        if _held(modes[i]):
            for k in range(n):
                if k > i:
                    M[k, i] = 0.0
                elif k < i:
                    M[i, k] = 0.0
            acc[i] = 0.0
    # The diagonal of the matrix itself, which the factor overwrites.
    for k in range(n):
        work[0, k] = M[k, k]
    for i in range(N):
        if _held(modes[i]):
            M[i, i] = 1.0
    definite = cholesky(M)
    cholesky_solve(M, acc)
    for k in range(n):
        dy[k] = y[n + k]
        dy[n + k] = acc[k]
    return definite


@njit
def _needed_force(i, arm, M, f, acc, work):  # type: ignore[no-untyped-def]
    """Return the force that the mechanics need from a cylinder, Henikl 2015, (26), after _derivative."""
    total = f[i] + work[0, i].real * acc[i]
    for k in range(i):
        total += M[k, i] * acc[k]
    for k in range(i + 1, f.size):
        total += M[i, k] * acc[k]
    return total / arm


@njit
def _overload(y, i, mode, p, M, f, acc, work):  # type: ignore[no-untyped-def]
    """
    Return by how much the force on a standing piston is more than holds it, with its sign [N].

    0.0 when it holds, (27). An end of the stroke holds any force that presses against it.
    """
    n = f.size
    arm = lever_arm(p.linkage[i], y[i])
    net = _hydraulic_force(y, i, n, p) - _needed_force(i, arm, M, f, acc, work)
    if net > p.static[i] and mode != 2:
        return net - p.static[i]
    if net < -p.static[i] and mode != -2:
        return net + p.static[i]
    return 0.0


@njit
def _derivative_settled(y, modes, spools, p, M, f, acc, work, dy):  # type: ignore[no-untyped-def]
    """Let go of pistons that no longer hold, worst first, until all that stand do; then as _derivative."""
    N = p.length.size
    for _ in range(N + 1):
        definite = _derivative(y, modes, spools, p, M, f, acc, work, dy)
        worst, direction = 0.0, 0
        loose = -1
        for i in range(N):
            if _held(modes[i]):
                over = _overload(y, i, modes[i], p, M, f, acc, work)
                if abs(over) > worst:
                    worst, loose = abs(over), i
                    direction = 1 if over > 0.0 else -1
        if loose < 0:
            break
        modes[loose] = direction
    return definite


@njit
def stop_pistons(q, v, modes, p, M, f, work):  # type: ignore[no-untyped-def]
    """Take the velocity of all standing joints by impulses at them, v_free += M_ff^-1 M_fs v_s."""
    N, n = p.length.size, q.size
    mass_and_forces(q, v, p, M, f, work)
    # Momentum stays along every free coordinate: solve M_ff v_f = (M v)_f.
    change = np.zeros(n)
    for k in range(n):
        for i in range(N):
            if _held(modes[i]):
                change[k] += M[k, i] * v[i]
    for i in range(N):
        if _held(modes[i]):
            for k in range(n):
                M[k, i] = 0.0
                M[i, k] = 0.0
            M[i, i] = 1.0
            change[i] = -v[i]
    cholesky(M)
    cholesky_solve(M, change)
    for k in range(n):
        v[k] += change[k]
    for i in range(N):
        if _held(modes[i]):
            v[i] = 0.0


@njit
def _change_modes(y, modes, before, spools, p, M, f, acc, work, dy):  # type: ignore[no-untyped-def]
    """
    Stick, stop or turn the pistons whose velocity has passed zero or whose stroke has ended.

    A piston whose velocity has changed its sign sticks if static friction holds it there, and
    otherwise goes on the other way. ``before`` is room for the modes.
    """
    N, n = p.length.size, f.size
    passed = False
    for i in range(N):
        before[i] = modes[i]
        if _held(modes[i]):
            continue
        position = piston_position(p.linkage[i], y[i])
        rate = y[n + i]
        if rate > 0.0 and position >= p.stroke[i]:
            modes[i] = 2
            passed = True
        elif rate < 0.0 and position <= 0.0:
            modes[i] = -2
            passed = True
        elif rate * modes[i] <= 0.0 and rate != 0.0:
            if p.static[i] > 0.0:
                modes[i] = 0
                passed = True
            else:
                modes[i] = 1 if rate > 0.0 else -1
    if not passed:
        return
    saved = y[n : 2 * n].copy()
    for _ in range(N + 1):
        stop_pistons(y[:n], y[n : 2 * n], modes, p, M, f, work)
        _derivative(y, modes, spools, p, M, f, acc, work, dy)
        again = False
        for i in range(N):
            # What stood before is asked at the beginning of the next step.
            if modes[i] == 0 and before[i] != 0:
                if _overload(y, i, 0, p, M, f, acc, work) != 0.0:
                    modes[i] = 1 if saved[i] > 0.0 else -1
                    again = True
        if not again:
            return
        y[n : 2 * n] = saved


@kernel
def advance_motion(y, modes, spools, p, step, steps, every, table, mode_table):  # type: ignore[no-untyped-def]
    """
    Take steps with constant commands, in place; unchecked.

    Parameters
    ----------
    y : ndarray, shape (2 n + 3 N,)
        State; at the end that of the last step, or of the last one that was finite.
    modes : ndarray of int64, shape (N,)
    spools : ndarray, shape (N,)
        Commanded spool positions.
    p : Constants
    step : float
        Length of a step [s].
    steps : int
    every : int
        A row of the tables is written after each so many steps.
    table : ndarray, shape (steps // every, 2 n + 3 N)
    mode_table : ndarray of int64, shape (steps // every, N)

    Returns
    -------
    taken : int
        Number of steps that were taken: less than ``steps`` when the state did not stay finite.
    """
    N = p.length.size
    size = y.size
    n = (size - 3 * N) // 2
    M, f, acc, work = np.empty((n, n)), np.empty(n), np.empty(n), workspace(n)
    k1, k2, k3, k4, trial = (
        np.empty(size),
        np.empty(size),
        np.empty(size),
        np.empty(size),
        np.empty(size),
    )
    before = np.empty(N, dtype=np.int64)
    start_modes = np.empty(N, dtype=np.int64)
    for taken in range(steps):
        start_modes[:] = modes
        good = _derivative_settled(y, modes, spools, p, M, f, acc, work, k1)
        for k in range(size):
            trial[k] = y[k] + 0.5 * step * k1[k]
        good &= _derivative(trial, modes, spools, p, M, f, acc, work, k2)
        for k in range(size):
            trial[k] = y[k] + 0.5 * step * k2[k]
        good &= _derivative(trial, modes, spools, p, M, f, acc, work, k3)
        for k in range(size):
            trial[k] = y[k] + step * k3[k]
        good &= _derivative(trial, modes, spools, p, M, f, acc, work, k4)
        total = 0.0
        for k in range(size):
            trial[k] = y[k] + step / 6.0 * (k1[k] + 2.0 * (k2[k] + k3[k]) + k4[k])
            total += trial[k] - trial[k]
        if not good or total != 0.0:
            modes[:] = start_modes
            return taken
        y[:] = trial
        _change_modes(y, modes, before, spools, p, M, f, acc, work, k1)
        if (taken + 1) % every == 0:
            row = (taken + 1) // every - 1
            table[row] = y
            mode_table[row] = modes
    return steps


@kernel
def evaluate(y, modes, spools, p, M, f, dy):  # type: ignore[no-untyped-def]
    """Write M(q), c + D q' + g and the derivative of the state for given modes; unchecked."""
    n = f.size
    work = workspace(n)
    acc = np.empty(n)
    _derivative(y, modes, spools, p, M, f, acc, work, dy)
    mass_and_forces(y[:n], y[n : 2 * n], p, M, f, work)
