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

from typing import NamedTuple

import numpy as np
from numba import njit

from longreach_boom.model import FUNCTIONS, HELD, beam_table, mass_and_forces, workspace
from longreach_dynamics.hydraulics import (
    chamber_pressure,
    oil_share,
    pressure_rates,
    valve_flows,
    valve_opening,
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
]

# Modes of a piston. At an end of the stroke it is held like a stuck one, by a force that only
# pushes: run in with the head side empty, run out with the rod side empty.
INWARDS, STUCK, OUTWARDS = -1, 0, 1
AT_HEAD_END, AT_ROD_END = -2, 2

# Columns of the table that compiled code reads of the cylinders: five of the linkage, and these.
STROKE, HEAD_AREA, ROD_AREA, HEAD_VOLUME, ROD_VOLUME, HEAD_OPENING, ROD_OPENING = range(5, 12)
DEAD_BAND, SPOOL_RATE, VISCOUS, COULOMB, STATIC, COLUMNS = range(12, 18)


# How a call of advance_motion ends. RUNAWAY: a number is not finite or beyond the model;
# INDEFINITE: the mass matrix is not positive definite; UNSETTLED: impulses that stop pistons turn
# others without end.
DONE, RUNAWAY, INDEFINITE, UNSETTLED = range(4)

# Coordinates and rates beyond this [m, rad, m/s, rad/s] are no boom's any more, nor are slopes at
# a beam's tip [rad]: the model is one of small deflections.
_RUNAWAY = 1e4
STEEPEST = 1.0


class Medium(NamedTuple):
    """Numbers that hold for the whole boom."""

    gravity: float
    printed: bool
    bulk_modulus: float
    supply: float
    tank: float
    vapour: float
    flow_coefficient: float
    laminar: float


@njit
def _tables(p):  # type: ignore[no-untyped-def]
    """Return beams and cylinders as one array each (see model.LENGTH), and the Medium."""
    N = p.length.size
    cylinder = np.empty((N, COLUMNS))
    for i in range(N):
        for k in range(5):
            cylinder[i, k] = p.linkage[i, k]
        cylinder[i, STROKE] = p.stroke[i]
        cylinder[i, HEAD_AREA] = p.head_area[i]
        cylinder[i, ROD_AREA] = p.rod_area[i]
        cylinder[i, HEAD_VOLUME] = p.head_volume[i]
        cylinder[i, ROD_VOLUME] = p.rod_volume[i]
        cylinder[i, HEAD_OPENING] = p.head_opening[i]
        cylinder[i, ROD_OPENING] = p.rod_opening[i]
        cylinder[i, DEAD_BAND] = p.dead_band[i]
        cylinder[i, SPOOL_RATE] = p.spool_rate[i]
        cylinder[i, VISCOUS] = p.viscous[i]
        cylinder[i, COULOMB] = p.coulomb[i]
        cylinder[i, STATIC] = p.static[i]
    medium = Medium(
        p.gravity,
        p.printed,
        p.bulk_modulus,
        p.supply,
        p.tank,
        p.vapour,
        p.flow_coefficient,
        p.laminar,
    )
    return beam_table(p), cylinder, medium


@njit
def _held(mode):  # type: ignore[no-untyped-def]
    """Tell whether a piston stands."""
    return mode != INWARDS and mode != OUTWARDS


@njit
def _take_out_held(modes, M, work):  # type: ignore[no-untyped-def]
    """Put rows and columns of the identity in place of standing joints, and keep them in work."""
    N, n = modes.size, M.shape[0]
    width = n // N
    for i in range(N):
        if _held(modes[i]):
            row = i * width
            for k in range(row + 1):
                work[HELD + i, k] = M[row, k]
            for k in range(row + 1, n):
                work[HELD + i, k] = M[k, row]
    for i in range(N):
        if _held(modes[i]):
            row = i * width
            for k in range(row):
                M[row, k] = 0.0
            for k in range(row + 1, n):
                M[k, row] = 0.0
            M[row, row] = 1.0


@njit
def _derivative(y, modes, spools, beam, cylinder, medium, M, f, acc, work, dy):  # type: ignore[no-untyped-def]
    """
    Write the time derivative of the state into ``dy``; return whether M was positive definite.

    Afterwards f holds c + D q' + g and acc q'', in the order of rows of :func:`mass_and_forces`.
    """
    N, n = modes.size, f.size
    width = n // N
    mass_and_forces(y, n, beam, medium.gravity, medium.printed, M, f, work)
    for k in range(n):
        acc[k] = -f[k]
    for i in range(N):
        position, arm = piston_and_arm(cylinder, i, y[i])
        velocity = arm * y[n + i]
        p1 = chamber_pressure(y[2 * n + i], medium.vapour)
        p2 = chamber_pressure(y[2 * n + N + i], medium.vapour)
        spool = y[2 * n + 2 * N + i]
        dy[2 * n + 2 * N + i] = cylinder[i, SPOOL_RATE] * (spools[i] - spool)
        q1, q2 = valve_flows(
            spool,
            p1,
            p2,
            medium.supply,
            medium.tank,
            valve_opening(spool, cylinder[i, DEAD_BAND], cylinder[i, HEAD_OPENING]),
            valve_opening(spool, cylinder[i, DEAD_BAND], cylinder[i, ROD_OPENING]),
            medium.flow_coefficient,
            medium.laminar,
        )
        dy[2 * n + i], dy[2 * n + N + i] = pressure_rates(
            position,
            velocity,
            q1 / oil_share(y[2 * n + i], medium.vapour, medium.bulk_modulus),
            q2 / oil_share(y[2 * n + N + i], medium.vapour, medium.bulk_modulus),
            cylinder[i, HEAD_AREA],
            cylinder[i, ROD_AREA],
            cylinder[i, HEAD_VOLUME],
            cylinder[i, ROD_VOLUME],
            medium.bulk_modulus,
        )
        if _held(modes[i]):
            acc[i * width] = 0.0
        else:
            force = p1 * cylinder[i, HEAD_AREA] - p2 * cylinder[i, ROD_AREA]
            force -= cylinder[i, VISCOUS] * velocity + cylinder[i, COULOMB] * modes[i]
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
def _overload(y, i, modes, cylinder, medium, f, acc, work):  # type: ignore[no-untyped-def]
    """
    Return by how much the force on a standing piston is more than holds it, with its sign [N].

    0.0 when it holds, Henikl 2015, (26) and (27). An end of the stroke holds any force that
    presses against it. Needs f, acc and work as :func:`_derivative` leaves them.
    """
    N, n = modes.size, f.size
    row = i * (n // N)
    needed = f[row]
    for k in range(n):
        needed += work[HELD + i, k] * acc[k]
    _, arm = piston_and_arm(cylinder, i, y[i])
    p1 = chamber_pressure(y[2 * n + i], medium.vapour)
    p2 = chamber_pressure(y[2 * n + N + i], medium.vapour)
    net = p1 * cylinder[i, HEAD_AREA] - p2 * cylinder[i, ROD_AREA]
    # A dead point of the linkage holds nothing, and needs nothing.
    net -= needed / arm if arm != 0.0 else 0.0
    if net > cylinder[i, STATIC] and modes[i] != AT_ROD_END:
        return net - cylinder[i, STATIC]
    if net < -cylinder[i, STATIC] and modes[i] != AT_HEAD_END:
        return net + cylinder[i, STATIC]
    return 0.0


@njit
def _settle(y, modes, spools, beam, cylinder, medium, M, f, acc, work, dy):  # type: ignore[no-untyped-def]
    """Let go of pistons that no longer hold, worst first, until all do; else as _derivative."""
    N = modes.size
    definite = True
    for _ in range(N + 1):
        definite = _derivative(y, modes, spools, beam, cylinder, medium, M, f, acc, work, dy)
        worst, loose = 0.0, -1
        for i in range(N):
            if _held(modes[i]):
                over = _overload(y, i, modes, cylinder, medium, f, acc, work)
                if abs(over) > abs(worst):
                    worst, loose = over, i
        if loose < 0:
            break
        modes[loose] = OUTWARDS if worst > 0.0 else INWARDS
    return definite


@njit
def _stop(y, modes, beam, medium, M, f, change, work):  # type: ignore[no-untyped-def]
    """
    Take the velocity of all standing joints by impulses at them, see the module.

    Returns whether M was positive definite; otherwise the velocities stay.
    """
    N, n = modes.size, f.size
    width = n // N
    mass_and_forces(y, n, beam, medium.gravity, medium.printed, M, f, work)
    # Momentum stays along every free coordinate: M_ff (change of v_f) = M_fs v_s.
    for k in range(n):
        change[k] = 0.0
        for i in range(N):
            row = i * width
            if _held(modes[i]):
                change[k] += (M[k, row] if k >= row else M[row, k]) * y[n + i]
    for i in range(N):
        if _held(modes[i]):
            change[i * width] = -y[n + i]
    _take_out_held(modes, M, work)
    if not cholesky(M):
        return False
    cholesky_solve(M, change)
    for i in range(N):
        for e in range(width):
            y[n + N * e + i] += change[i * width + e]
        if _held(modes[i]):
            y[n + i] = 0.0
    return True


@njit
def _has_passed(y, modes, before, cylinder, n):  # type: ignore[no-untyped-def]
    """Stick or stop the pistons whose velocity has passed zero or whose stroke has ended."""
    passed = False
    for i in range(modes.size):
        before[i] = modes[i]
        if _held(modes[i]):
            continue
        position, _ = piston_and_arm(cylinder, i, y[i])
        rate = y[n + i]
        if rate > 0.0 and position >= cylinder[i, STROKE]:
            modes[i] = AT_ROD_END
            passed = True
        elif rate < 0.0 and position <= 0.0:
            modes[i] = AT_HEAD_END
            passed = True
        elif rate * modes[i] < 0.0:
            if cylinder[i, STATIC] > 0.0:
                modes[i] = STUCK
                passed = True
            else:
                modes[i] = -modes[i]
    return passed


@njit
def _change_modes(y, modes, before, saved, spools, beam, cylinder, medium, M, f, acc, work, dy):  # type: ignore[no-untyped-def]
    """
    Stick, stop or turn the pistons whose velocity has passed zero or whose stroke has ended.

    A piston whose velocity has changed its sign sticks if static friction holds it there, and
    otherwise goes on the other way. An impulse that stops one may turn another, so all are looked
    at again. ``before`` and ``saved`` are room for modes and velocities. Returns DONE, INDEFINITE
    or UNSETTLED.
    """
    N, n = modes.size, f.size
    for _ in range(N + 1):
        if not _has_passed(y, modes, before, cylinder, n):
            return DONE
        for k in range(n):
            saved[k] = y[n + k]
        for _ in range(N + 1):
            if not _stop(y, modes, beam, medium, M, f, acc, work):
                return INDEFINITE
            if not _derivative(y, modes, spools, beam, cylinder, medium, M, f, acc, work, dy):
                return INDEFINITE
            again = False
            for i in range(N):
                # Those that stood before are asked at the beginning of the next step.
                if modes[i] != STUCK or _held(before[i]):
                    continue
                if _overload(y, i, modes, cylinder, medium, f, acc, work) != 0.0:
                    modes[i] = OUTWARDS if saved[i] > 0.0 else INWARDS
                    again = True
            if not again:
                break
            for k in range(n):
                y[n + k] = saved[k]
    return UNSETTLED if _has_passed(y, modes, before, cylinder, n) else DONE


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
    beam, cylinder, medium = _tables(p)
    M, f, acc, work = np.empty((n, n)), np.empty(n), np.empty(n), workspace(N, n)
    k1, k2, k3, k4 = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    trial, saved, last = np.empty(size), np.empty(n), np.empty(size)
    before, start = np.empty(N, dtype=np.int64), np.empty(N, dtype=np.int64)
    for taken in range(steps):
        for i in range(N):
            start[i] = modes[i]
        for k in range(size):
            last[k] = y[k]
        begins = _settle(y, modes, spools, beam, cylinder, medium, M, f, acc, work, k1)
        for k in range(size):
            trial[k] = y[k] + 0.5 * step * k1[k]
        definite = _derivative(trial, modes, spools, beam, cylinder, medium, M, f, acc, work, k2)
        for k in range(size):
            trial[k] = y[k] + 0.5 * step * k2[k]
        definite &= _derivative(trial, modes, spools, beam, cylinder, medium, M, f, acc, work, k3)
        for k in range(size):
            trial[k] = y[k] + step * k3[k]
        definite &= _derivative(trial, modes, spools, beam, cylinder, medium, M, f, acc, work, k4)
        for k in range(size):
            y[k] += step / 6.0 * (k1[k] + 2.0 * (k2[k] + k3[k]) + k4[k])
        changed = _change_modes(
            y, modes, before, saved, spools, beam, cylinder, medium, M, f, acc, work, k1
        )
        good = True
        for k in range(size):
            # Written so that NaN fails, too; pressures have other sizes than coordinates.
            good &= abs(y[k]) < (_RUNAWAY if k < 2 * n else np.inf)
        for i in range(N):
            slope = 0.0
            for e in range(n // N - 1):
                slope += beam[i, FUNCTIONS + n // N - 1 + e] * y[N * (1 + e) + i]
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


@kernel
def evaluate(y, modes, spools, p, M, f, dy):  # type: ignore[no-untyped-def]
    """
    Write M(q), c + D q' + g and the derivative of the state for given modes; unchecked.

    M (n, n) and f (n,) are in the order of q; see advance_motion for the rest.
    """
    N, n = modes.size, f.size
    width = n // N
    beam, cylinder, medium = _tables(p)
    work, acc, rows, forces = workspace(N, n), np.empty(n), np.empty((n, n)), np.empty(n)
    _derivative(y, modes, spools, beam, cylinder, medium, rows, forces, acc, work, dy)
    mass_and_forces(y, n, beam, medium.gravity, medium.printed, rows, forces, work)
    for i in range(N):
        for e in range(width):
            row, k = i * width + e, N * e + i
            f[k] = forces[row]
            for other in range(row + 1):
                column = N * (other % width) + other // width
                M[k, column] = M[column, k] = rows[row, other]


@kernel
def impulse_stop(y, modes, p):  # type: ignore[no-untyped-def]
    """
    Take the velocity of standing pistons from the state by impulses, in place; unchecked.

    Returns whether the mass matrix was positive definite; otherwise the state stays.
    """
    N = modes.size
    n = (y.size - 3 * N) // 2
    beam, _, medium = _tables(p)
    return _stop(
        y, modes, beam, medium, np.empty((n, n)), np.empty(n), np.empty(n), workspace(N, n)
    )
