"""
The boom's motion: Runge-Kutta steps of fixed length, with pistons that stick and slip.

State y = (q, q', p_1, p_2, s_v), 2 n + 3 N numbers: coordinates, their rates, pressures of head
and rod side [Pa], spool positions. Beside it each piston has a mode: it slides outwards or
inwards, sticks, or rests against an end of its stroke. Modes change between steps only; within a
step, of the classical method of order 4, friction keeps its direction, so that nothing jumps.

Sticking a piston means an impulse that takes its velocity, and moves the rest of the boom by what
the inertia couples to it: v_free += M_ff^-1 M_fs v_s. (Setting v_s to zero alone can add energy.)
Whether stuck pistons hold is asked anew at the beginning of every step, all at once: a piston that
comes loose changes the forces on the others.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from longreach_boom.model import CHANGES, FORCES, FUNCTIONS, HELD, mass_and_forces, workspace
from longreach_dynamics.hydraulics.actuators import (
    COULOMB,
    STATIC,
    STROKE,
    VISCOUS,
    actuator_force,
    actuator_rates,
    rail_pressure,
)
from longreach_dynamics.hydraulics.friction import (
    AT_HEAD_END,
    AT_ROD_END,
    INWARDS,
    OUTWARDS,
    STUCK,
    is_held,
    next_mode,
    overload,
)
from longreach_dynamics.kernels import kernel
from longreach_dynamics.linear_algebra import cholesky, cholesky_solve
from longreach_dynamics.linkages import piston_and_arm

__all__ = [
    'AT_HEAD_END',
    'AT_ROD_END',
    'DONE',
    'INDEFINITE',
    'INWARDS',
    'OUTWARDS',
    'RUNAWAY',
    'STEEPEST',
    'STUCK',
    'UNSETTLED',
    'advance_motion',
    'evaluate',
    'impulse_stop',
    'inertia',
]

# How a call of advance_motion ends. RUNAWAY: a number is not finite or beyond the model;
# INDEFINITE: the mass matrix is not positive definite; UNSETTLED: impulses that stop pistons turn
# others without end.
DONE, RUNAWAY, INDEFINITE, UNSETTLED = range(4)

# Coordinates and rates beyond this [m, rad, m/s, rad/s] are no boom's any more, nor are slopes at
# a beam's tip [rad]: the model is one of small deflections.
_RUNAWAY = 1e4
STEEPEST = 1.0


@njit
def _take_out_held(modes, M, work):  # type: ignore[no-untyped-def]
    """
    Put rows and columns of the identity in place of standing joints.

    Parameters
    ----------
    modes : ndarray of int64, shape (N,)
    M : ndarray, shape (n, n)
        Mass matrix, lower triangle.
    work : ndarray
        Its rows from HELD on get what was in the rows of standing joints.
    """
    N, n = modes.size, M.shape[0]
    width = n // N
    for i in range(N):
        if is_held(modes[i]):
            row = i * width
            for k in range(row + 1):
                work[HELD + i, k] = M[row, k]
            for k in range(row + 1, n):
                work[HELD + i, k] = M[k, row]
    for i in range(N):
        if is_held(modes[i]):
            row = i * width
            for k in range(row):
                M[row, k] = 0.0
            for k in range(row + 1, n):
                M[k, row] = 0.0
            M[row, row] = 1.0


@njit
def _derivative(y, modes, spools, p, M, work, dy):  # type: ignore[no-untyped-def]
    """
    Write the time derivative of the state; return whether M was positive definite.

    Parameters
    ----------
    y : ndarray, shape (2 n + 3 N,)
        State.
    modes : ndarray of int64, shape (N,)
    spools : ndarray, shape (N,)
        Commanded spool positions.
    p : Constants
    M : ndarray, shape (n, n)
        Room for the mass matrix, in the order of rows of :func:`mass_and_forces`.
    work : ndarray from :func:`longreach_boom.model.workspace`
        Afterwards row FORCES holds c + D q' + g, and CHANGES q'', in the same order.
    dy : ndarray, shape (2 n + 3 N,)
        Derivative.
    """
    f, acc, table = work[FORCES], work[CHANGES], p.actuators.table
    N, n = modes.size, f.size
    width = n // N
    mass_and_forces(y, n, p.beams, p.gravity, p.printed, M, f, work)
    for k in range(n):
        acc[k] = -f[k]
    rail = rail_pressure(y, 2 * n, table)
    for i in range(N):
        position, arm = piston_and_arm(table, i, y[i])
        velocity = arm * y[n + i]
        force = actuator_rates(y, 2 * n, i, position, velocity, spools[i], rail, table, dy)
        if is_held(modes[i]):
            acc[i * width] = 0.0
        else:
            force -= table[i, VISCOUS] * velocity + table[i, COULOMB] * modes[i]
            acc[i * width] += force * arm
    _take_out_held(modes, M, work)
    definite = cholesky(M)
    cholesky_solve(M, acc)
    for i in range(N):
        for e in range(width):
            k = N * e + i
            dy[k] = y[n + k]
            dy[n + k] = acc[i * width + e]
    return definite


@njit
def _overload(y, i, modes, table, work):  # type: ignore[no-untyped-def]
    """
    Return by how much the force on a standing piston is more than holds it, with its sign [N].

    0.0 when it holds, Henikl 2015, (26) and (27).

    Parameters
    ----------
    y : ndarray, shape (2 n + 3 N,)
        State.
    i : int
        Index of the piston.
    modes : ndarray of int64, shape (N,)
    table : ndarray
        Of the actuators.
    work : ndarray
        As :func:`_derivative` leaves it.
    """
    N, n = modes.size, work.shape[1]
    row = i * (n // N)
    needed = work[FORCES, row]
    for k in range(n):
        needed += work[HELD + i, k] * work[CHANGES, k]
    _, arm = piston_and_arm(table, i, y[i])
    net = actuator_force(y, 2 * n, i, table)
    # A dead point of the linkage holds nothing, and needs nothing.
    net -= needed / arm if arm != 0.0 else 0.0
    return overload(net, modes[i], table[i, STATIC])


# Inlined, as _has_passed: as calls in each step both took 4 % of its time.
@njit(inline='always')
def _settle(y, modes, spools, p, M, work, dy):  # type: ignore[no-untyped-def]
    """
    Release pistons that no longer hold, the one with the largest overload first, until all hold.

    Arguments and what is returned are those of :func:`_derivative`; ``modes`` change.
    """
    N, table = modes.size, p.actuators.table
    definite = True
    for _ in range(N + 1):
        definite = _derivative(y, modes, spools, p, M, work, dy)
        worst, loose = 0.0, -1
        for i in range(N):
            if is_held(modes[i]):
                over = _overload(y, i, modes, table, work)
                if abs(over) > abs(worst):
                    worst, loose = over, i
        if loose < 0:
            break
        modes[loose] = OUTWARDS if worst > 0.0 else INWARDS
    return definite


@njit
def _stop(y, modes, p, M, work):  # type: ignore[no-untyped-def]
    """
    Take the velocity of all standing joints by impulses at them, see the module.

    Returns whether M was positive definite; otherwise the velocities stay.

    Parameters
    ----------
    y : ndarray, shape (2 n + 3 N,)
        State, whose velocities change.
    modes : ndarray of int64, shape (N,)
    p : Constants
    M : ndarray, shape (n, n)
        Room for the mass matrix, in the order of rows of :func:`mass_and_forces`.
    work : ndarray from :func:`longreach_boom.model.workspace`
    """
    change = work[CHANGES]
    N, n = modes.size, change.size
    width = n // N
    mass_and_forces(y, n, p.beams, p.gravity, p.printed, M, work[FORCES], work)
    # Momentum stays along every free coordinate: M_ff (change of v_f) = M_fs v_s.
    for k in range(n):
        change[k] = 0.0
        for i in range(N):
            row = i * width
            if is_held(modes[i]):
                change[k] += (M[k, row] if k >= row else M[row, k]) * y[n + i]
    for i in range(N):
        if is_held(modes[i]):
            change[i * width] = -y[n + i]
    _take_out_held(modes, M, work)
    if not cholesky(M):
        return False
    cholesky_solve(M, change)
    for i in range(N):
        for e in range(width):
            y[n + N * e + i] += change[i * width + e]
        if is_held(modes[i]):
            y[n + i] = 0.0
    return True


@njit(inline='always')
def _has_passed(y, modes, table, after):  # type: ignore[no-untyped-def]
    """
    Tell whether the velocity of a piston has passed zero, or its stroke has ended.

    Parameters
    ----------
    y : ndarray, shape (2 n + 3 N,)
        State.
    modes : ndarray of int64, shape (N,)
    table : ndarray
        Of the actuators.
    after : ndarray of int64, shape (N,)
        Gets the modes after that; may be ``modes``.
    """
    n, passed = (y.size - 3 * modes.size) // 2, False
    for i in range(modes.size):
        mode = modes[i]
        if not is_held(mode):
            position, _ = piston_and_arm(table, i, y[i])
            mode = next_mode(mode, y[n + i], position, table[i, STROKE], table[i, STATIC])
        passed |= mode != modes[i]
        after[i] = mode
    return passed


@njit
def _change_modes(y, modes, spools, p, M, work, dy):  # type: ignore[no-untyped-def]
    """
    Change the modes of pistons at the end of a step; return DONE, INDEFINITE or UNSETTLED.

    A piston whose velocity has changed its sign sticks if static friction holds it there, and
    otherwise goes on the other way. An impulse that stops one may turn another, so all are looked
    at again. Arguments are those of :func:`_derivative`; state and ``modes`` change.
    """
    N, n, table = modes.size, work.shape[1], p.actuators.table
    for _ in range(N + 1):
        before, saved = modes.copy(), y[n : 2 * n].copy()
        if not _has_passed(y, before, table, modes):
            return DONE
        for _ in range(N + 1):
            if not _stop(y, modes, p, M, work):
                return INDEFINITE
            if not _derivative(y, modes, spools, p, M, work, dy):
                return INDEFINITE
            again = False
            for i in range(N):
                # Those that stood before are asked at the beginning of the next step.
                if modes[i] != STUCK or is_held(before[i]):
                    continue
                if _overload(y, i, modes, table, work) != 0.0:
                    modes[i] = OUTWARDS if saved[i] > 0.0 else INWARDS
                    again = True
            if not again:
                break
            for k in range(n):
                y[n + k] = saved[k]
    return UNSETTLED if _has_passed(y, modes, table, modes) else DONE


@kernel
def advance_motion(y, modes, spools, p, step, first, steps, every, table, mode_table):  # type: ignore[no-untyped-def]
    """
    Take steps with constant commands, in place; unchecked.

    Parameters
    ----------
    y : ndarray, shape (2 n + 3 N,)
        State; at the end that of the last step, or that before the step which failed.
    modes : ndarray of int64, shape (N,)
    spools : ndarray, shape (N,)
        Commanded spool positions.
    p : Constants
    step : float
        Length of a step [s].
    first, steps : int
        Number of steps before these, and of these.
    every : int
        A row of the tables is written after each so many steps, counted from step 0; 0: none.
    table : ndarray, shape (rows, 2 n + 3 N)
    mode_table : ndarray of int64, shape (rows, N)

    Returns
    -------
    taken : int
        Number of steps that were taken.
    status : int
        DONE, or why there are less than ``steps``.
    """
    N, size = modes.size, y.size
    n = (size - 3 * N) // 2
    M, work, actuators = np.empty((n, n)), workspace(N, n), p.actuators.table
    tip_slope, after = FUNCTIONS + n // N - 1, np.empty(N, dtype=np.int64)
    k1, k2, k3, k4 = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    trial, last, start = np.empty(size), np.empty(size), np.empty(N, dtype=np.int64)
    for taken in range(steps):
        for i in range(N):
            start[i] = modes[i]
        for k in range(size):
            last[k] = y[k]
        begins = _settle(y, modes, spools, p, M, work, k1)
        for k in range(size):
            trial[k] = y[k] + 0.5 * step * k1[k]
        definite = _derivative(trial, modes, spools, p, M, work, k2)
        for k in range(size):
            trial[k] = y[k] + 0.5 * step * k2[k]
        definite &= _derivative(trial, modes, spools, p, M, work, k3)
        for k in range(size):
            trial[k] = y[k] + step * k3[k]
        definite &= _derivative(trial, modes, spools, p, M, work, k4)
        for k in range(size):
            y[k] += step / 6.0 * (k1[k] + 2.0 * (k2[k] + k3[k]) + k4[k])
        changed = DONE
        if _has_passed(y, modes, actuators, after):
            changed = _change_modes(y, modes, spools, p, M, work, k1)
        good = True
        for k in range(size):
            # Written so that NaN fails, too; pressures have other sizes than coordinates.
            good &= abs(y[k]) < (_RUNAWAY if k < 2 * n else np.inf)
        for i in range(N):
            slope = 0.0
            for e in range(n // N - 1):
                slope += p.beams[i, tip_slope + e] * y[N * (1 + e) + i]
            good &= abs(slope) < STEEPEST
        status = changed
        if not begins:
            status = INDEFINITE
        elif not good:
            status = RUNAWAY
        elif not definite:
            status = INDEFINITE
        if status != DONE:
            for k in range(size):
                y[k] = last[k]
                # Of such a state the mass matrix has no finite numbers, either.
                if not abs(y[k]) < np.inf:
                    status = RUNAWAY
            for i in range(N):
                modes[i] = start[i]
            return taken, status
        if every > 0 and (first + taken + 1) % every == 0:
            row = (first + taken + 1) // every - first // every - 1
            for k in range(size):
                table[row, k] = y[k]
            for i in range(N):
                mode_table[row, i] = modes[i]
    return steps, DONE


@njit
def _inertia(y, p, M, f):  # type: ignore[no-untyped-def]
    """Write M(q) and c + D q' + g in the order of q; arguments are those of :func:`evaluate`."""
    N, n = p.beams.shape[0], f.size
    width, rows, forces = n // N, np.empty((n, n)), np.empty(n)
    mass_and_forces(y, n, p.beams, p.gravity, p.printed, rows, forces, workspace(N, n))
    for i in range(N):
        for e in range(width):
            row, k = i * width + e, N * e + i
            f[k] = forces[row]
            for other in range(row + 1):
                column = N * (other % width) + other // width
                M[k, column] = M[column, k] = rows[row, other]


@kernel
def evaluate(y, modes, spools, p, M, f, dy):  # type: ignore[no-untyped-def]
    """
    Write M(q), c + D q' + g and the derivative of the state for given modes; unchecked.

    Parameters
    ----------
    y : ndarray, shape (2 n + 3 N,)
        State.
    modes : ndarray of int64, shape (N,)
    spools : ndarray, shape (N,)
        Commanded spool positions.
    p : Constants
    M : ndarray, shape (n, n)
        Mass matrix, in the order of q.
    f : ndarray, shape (n,)
        Forces, in the order of q.
    dy : ndarray, shape (2 n + 3 N,)
        Derivative.
    """
    N, n = modes.size, f.size
    _derivative(y, modes, spools, p, np.empty((n, n)), workspace(N, n), dy)
    # Anew, because the derivative leaves the factor of the free part.
    _inertia(y, p, M, f)


@kernel
def inertia(y, p, M, f):  # type: ignore[no-untyped-def]
    """
    Write M(q) and c + D q' + g alone; arguments are those of :func:`evaluate`.

    ``y`` begins with q and q'; oil and friction have no part in it.
    """
    _inertia(y, p, M, f)


@kernel
def impulse_stop(y, modes, p):  # type: ignore[no-untyped-def]
    """
    Take the velocity of standing pistons from the state by impulses, in place; unchecked.

    Returns whether the mass matrix was positive definite; otherwise the state stays.

    Parameters
    ----------
    y : ndarray, shape (2 n + 3 N,)
        State.
    modes : ndarray of int64, shape (N,)
    p : Constants
    """
    N = modes.size
    n = (y.size - 3 * N) // 2
    return _stop(y, modes, p, np.empty((n, n)), workspace(N, n))
