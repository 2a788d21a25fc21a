"""
Motion of the boom: Runge-Kutta steps of fixed length, with pistons that stick and slip.

State y = (q, q', p_1, p_2, s_v), 2 n + 3 N numbers: coordinates, their rates, pressures of head
and rod side [Pa], spool positions. A truck on springs adds four at the end: heave [m], pitch [rad]
and their rates. In addition, each piston has a mode: it slides outwards or inwards, sticks, or
rests against an end of its stroke. Within a step of the classical method of order 4 modes and the
direction of friction stay, so the right-hand side is smooth; a step in which a piston turns,
comes loose or reaches an end is cut there, and the rest follows in other modes.

A piston that sticks is stopped by an impulse, which changes the other velocities through the
coupled inertia: v_free += M_ff^-1 M_fs v_s. (Setting only v_s to zero can add energy.) Whether
stuck pistons hold is checked for all pistons together, because a piston that is released changes
the forces on the others.

Symbols of the kernels, whose arguments are not checked; "rows" is n, or n + 2 with a truck:

    y, dy            (2 n + 3 N,) or 4 more   state and its time derivative
    modes            (N,) of int64            modes of the pistons
    spools           (N,)                     commanded spool positions, in [-1, 1]
    p                                         model.Constants
    table            (N, columns)             p.actuators.table
    width                                     1 + F, the rows of a beam
    M, f             (rows, rows), (rows,)    mass matrix and forces c + D q' + g [N m, N]; in
                                              the row order of model.mass_and_forces, unless said
    work             (HELD + N, rows)         model.workspace
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from longreach_boom.model import (
    CHANGES,
    FORCES,
    FUNCTIONS,
    HELD,
    mass_and_forces,
    row_count,
    workspace,
)
from longreach_dynamics.hydraulics.actuators import (
    COULOMB,
    STATIC,
    STROKE,
    VISCOUS,
    actuator_force,
    actuator_rates,
    open_port_rate,
    rail_pressure,
)
from longreach_dynamics.hydraulics.friction import (
    AT_HEAD_END,
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

# Status of advance_motion. RUNAWAY: a number is not finite or outside the range of the model;
# INDEFINITE: the mass matrix is not positive definite; UNSETTLED: impulses that stop pistons keep
# reversing others.
DONE, RUNAWAY, INDEFINITE, UNSETTLED = range(4)

# Largest coordinates and rates [m, rad, m/s, rad/s], and largest slope at a beam's tip [rad]: the
# model holds for small deflections only.
_RUNAWAY = 1e4
# Largest product of rate and step of an open relief or make-up valve.
_FINE = 1.0
# Share of a step by which one is longer than to a change of modes; of the step that counts as 0.
_BEYOND, _NOTHING = 1e-4, 1e-9
# What is a change of modes and no rounding: force beyond friction [N], way past an end [m].
_FORCE, _WAY = 1e-6, 1e-12
# Cuts of a step, and tries to find the time of one: more would be chatter, which must not take any
# time it likes.
_MOST_CUTS, _MOST_TRIES = 100, 6
STEEPEST = 1.0


@njit
def _take_out_held(modes, width, M, work):  # type: ignore[no-untyped-def]
    """Put the identity in rows and columns of held joints; rows HELD + i of ``work`` keep them."""
    N, rows = modes.size, M.shape[0]
    for i in range(N):
        if is_held(modes[i]):
            row = i * width
            for k in range(row + 1):
                work[HELD + i, k] = M[row, k]
            for k in range(row + 1, rows):
                work[HELD + i, k] = M[k, row]
    for i in range(N):
        if is_held(modes[i]):
            row = i * width
            for k in range(row):
                M[row, k] = 0.0
            for k in range(row + 1, rows):
                M[k, row] = 0.0
            M[row, row] = 1.0


@njit
def _derivative(y, modes, spools, p, M, work, dy):  # type: ignore[no-untyped-def]
    """Compute dy, and c + D q' + g and q'' in ``work``; return whether M is positive definite."""
    f, acc, table = work[FORCES], work[CHANGES], p.actuators.table
    N, n = modes.size, f.size - (0 if p.truck is None else 2)
    width = n // N
    mass_and_forces(y, n, p.beams, p.truck, p.gravity, p.printed, M, f, work)
    for k in range(f.size):
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
    _take_out_held(modes, width, M, work)
    definite = cholesky(M)
    cholesky_solve(M, acc)
    for i in range(N):
        for e in range(width):
            k = N * e + i
            dy[k] = y[n + k]
            dy[n + k] = acc[i * width + e]
    if p.truck is not None:
        for k in range(2):
            dy[y.size - 4 + k], dy[y.size - 2 + k] = y[y.size - 2 + k], acc[n + k]
    return definite


@njit
def _net_force(y, i, modes, width, table, work):  # type: ignore[no-untyped-def]
    """Return the force on a held piston that friction has to hold [N], (26), (27)."""
    needed = work[FORCES, i * width]
    for k in range(work.shape[1]):
        needed += work[HELD + i, k] * work[CHANGES, k]
    _, arm = piston_and_arm(table, i, y[i])
    net = actuator_force(y, 2 * modes.size * width, i, table)
    # At a dead centre of the linkage the piston carries no torque.
    return net - needed / arm if arm != 0.0 else net


@njit
def _beyond(y, modes, width, table, work, found):  # type: ignore[no-untyped-def]
    """
    Compute how far each piston is beyond its next change, negative before.

    ``found`` (2 N,): force of a held piston, or rate of one that slides; and its way past the end.
    """
    N = modes.size
    for i in range(N):
        mode = modes[i]
        if is_held(mode):
            net = _net_force(y, i, modes, width, table, work)
            net = abs(net) if mode == STUCK else (net if mode == AT_HEAD_END else -net)
            found[i] = net - table[i, STATIC] - _FORCE
            found[N + i] = -1.0
        else:
            position, _ = piston_and_arm(table, i, y[i])
            # Without friction it turns smoothly.
            smooth = table[i, COULOMB] == 0.0 and table[i, STATIC] == 0.0
            found[i] = -1.0 if smooth else -mode * y[N * width + i]
            found[N + i] = max(position - table[i, STROKE], -position) - _WAY


@njit
def _first_share(before, after):  # type: ignore[no-untyped-def]
    """Return the share of a step after which the first piston changes, by straight lines."""
    share = 1.0
    for i in range(before.size):
        if before[i] < 0.0 < after[i]:
            share = min(share, before[i] / (before[i] - after[i]) + _BEYOND)
        elif before[i] == 0.0 < after[i]:
            # Released at the start of the step, and back within it.
            share = min(share, 0.5)
    return share


# Inlined, as is _has_passed: as function calls both took 4 % of the time of a step.
@njit(inline='always')
def _settle(y, modes, spools, p, M, work, dy):  # type: ignore[no-untyped-def]
    """Release pistons that no longer hold, the most overloaded one first, until all hold."""
    N, width, table = modes.size, 1 + p.functions, p.actuators.table
    definite = True
    for _ in range(N + 1):
        definite = _derivative(y, modes, spools, p, M, work, dy)
        worst, loose = 0.0, -1
        for i in range(N):
            if is_held(modes[i]):
                net = _net_force(y, i, modes, width, table, work)
                over = overload(net, modes[i], table[i, STATIC])
                if abs(over) > abs(worst):
                    worst, loose = over, i
        if loose < 0:
            break
        modes[loose] = OUTWARDS if worst > 0.0 else INWARDS
    return definite


@njit
def _stop(y, modes, p, M, work):  # type: ignore[no-untyped-def]
    """
    Set the velocities of all held joints to zero by impulses, see the module docstring.

    Return whether M is positive definite; otherwise the velocities are unchanged.
    """
    change = work[CHANGES]
    N, width = modes.size, 1 + p.functions
    n = N * width
    mass_and_forces(y, n, p.beams, p.truck, p.gravity, p.printed, M, work[FORCES], work)
    # Momentum along every free coordinate is conserved: M_ff (change of v_f) = M_fs v_s.
    for k in range(change.size):
        change[k] = 0.0
        for i in range(N):
            row = i * width
            if is_held(modes[i]):
                change[k] += (M[k, row] if k >= row else M[row, k]) * y[n + i]
    for i in range(N):
        if is_held(modes[i]):
            change[i * width] = -y[n + i]
    _take_out_held(modes, width, M, work)
    if not cholesky(M):
        return False
    cholesky_solve(M, change)
    for i in range(N):
        for e in range(width):
            y[n + N * e + i] += change[i * width + e]
        if is_held(modes[i]):
            y[n + i] = 0.0
    for k in range(change.size - n):
        y[y.size - 2 + k] += change[n + k]
    return True


@njit(inline='always')
def _has_passed(y, n, modes, table, after):  # type: ignore[no-untyped-def]
    """Return whether a piston turned or reached an end; ``after`` gets the new modes."""
    passed = False
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
    """Change the modes of pistons at the end of a step; return DONE, INDEFINITE or UNSETTLED."""
    # A piston whose velocity has changed sign sticks if static friction holds it, and otherwise
    # slides in the new direction. An impulse that stops one may reverse another: all are asked.
    N, width, table = modes.size, 1 + p.functions, p.actuators.table
    n = N * width
    for _ in range(N + 1):
        before, saved = modes.copy(), y.copy()
        if not _has_passed(y, n, before, table, modes):
            return DONE
        for _ in range(N + 1):
            if not _stop(y, modes, p, M, work):
                return INDEFINITE
            if not _derivative(y, modes, spools, p, M, work, dy):
                return INDEFINITE
            again = False
            for i in range(N):
                # Pistons held before are checked at the start of the next step.
                if modes[i] != STUCK or is_held(before[i]):
                    continue
                net = _net_force(y, i, modes, width, table, work)
                if overload(net, modes[i], table[i, STATIC]) != 0.0:
                    modes[i] = OUTWARDS if saved[n + i] > 0.0 else INWARDS
                    again = True
            if not again:
                break
            for k in range(y.size):
                y[k] = saved[k]
    return UNSETTLED if _has_passed(y, n, modes, table, modes) else DONE


@njit
def _parts(y, dy, at, step, table):  # type: ignore[no-untyped-def]
    """Return the parts of a step: more than 1 while relief or make-up valves are open."""
    fastest = 0.0
    for i in range(table.shape[0]):
        position, _ = piston_and_arm(table, i, y[i])
        fastest = max(fastest, open_port_rate(y, dy, at, i, position, step, table))
    # Without open valves, and where one is not finite, the step is taken as it is.
    return math.ceil(fastest * step / _FINE) if 0.0 < fastest < np.inf else 1


@njit
def _is_in_range(y, n, p):  # type: ignore[no-untyped-def]
    """Return whether a state is finite, and no motion has run away."""
    N, F, size, good = p.beams.shape[0], p.functions, y.size, True
    for k in range(size):
        # NaN fails this comparison, too; pressures have no such limit.
        good &= abs(y[k]) < (_RUNAWAY if k < 2 * n else np.inf)
    if p.truck is not None:
        for k in range(size - 4, size):
            good &= abs(y[k]) < _RUNAWAY
    for i in range(N):
        slope = 0.0
        for e in range(F):
            slope += p.beams[i, FUNCTIONS + F + e] * y[N * (1 + e) + i]
        good &= abs(slope) < STEEPEST
    return good


@njit
def _runge_kutta(y, h, modes, spools, p, M, work, k1, k2, k3, k4, trial, end):  # type: ignore[no-untyped-def]
    """Compute the state after a step h from y, whose derivative is k1; return as _derivative."""
    for k in range(y.size):
        trial[k] = y[k] + 0.5 * h * k1[k]
    definite = _derivative(trial, modes, spools, p, M, work, k2)
    for k in range(y.size):
        trial[k] = y[k] + 0.5 * h * k2[k]
    definite &= _derivative(trial, modes, spools, p, M, work, k3)
    for k in range(y.size):
        trial[k] = y[k] + h * k3[k]
    definite &= _derivative(trial, modes, spools, p, M, work, k4)
    for k in range(y.size):
        end[k] = y[k] + h / 6.0 * (k1[k] + 2.0 * (k2[k] + k3[k]) + k4[k])
    return definite


@kernel
def advance_motion(y, modes, spools, p, step, first, steps, every, table, mode_table):  # type: ignore[no-untyped-def]
    """
    Take steps with constant spools, in place; return how many were taken, and DONE or the reason.

    After a failure y and modes are those before the step that failed. ``first`` steps were taken
    before; every ``every``-th step, counted from step 0, writes a row of both tables, none with 0.
    """
    N, size, rows = modes.size, y.size, row_count(p)
    n = N * (1 + p.functions)
    M, work, actuators = np.empty((rows, rows)), workspace(N, rows), p.actuators.table
    after = np.empty(N, dtype=np.int64)
    k1, k2, k3, k4 = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    k5, trial, end, last = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    start, before, beyond = np.empty(N, dtype=np.int64), np.empty(2 * N), np.empty(2 * N)
    settled = False
    for taken in range(steps):
        for i in range(N):
            start[i] = modes[i]
        for k in range(size):
            last[k] = y[k]
        status, parts, cuts, left = DONE, 0, 0, step
        while left > _NOTHING * step and status == DONE:
            begins = True
            if settled:
                # The derivative at the end of the step before.
                for k in range(size):
                    k1[k] = k5[k]
                for i in range(2 * N):
                    before[i] = beyond[i]
            else:
                begins = _settle(y, modes, spools, p, M, work, k1)
                _beyond(y, modes, 1 + p.functions, actuators, work, before)
            if parts == 0:
                parts = _parts(y, k1, 2 * n, step, actuators)
            h, share, definite = min(step / parts, left), 1.0, True
            for tries in range(1 + _MOST_TRIES):
                h *= share
                definite = _runge_kutta(
                    y, h, modes, spools, p, M, work, k1, k2, k3, k4, trial, end
                )
                definite &= _derivative(end, modes, spools, p, M, work, k5)
                _beyond(end, modes, 1 + p.functions, actuators, work, beyond)
                share = _first_share(before, beyond)
                ends = share > 1.0 - _BEYOND
                if tries == 0:
                    # A step that is cut ends just after the first piston slips or stops.
                    ends = not share < 1.0 or cuts == _MOST_CUTS
                    cuts += not ends
                if ends:
                    break
            settled = beyond.max() <= 0.0
            left -= h
            for k in range(size):
                y[k] = end[k]
            changed = DONE
            if _has_passed(y, n, modes, actuators, after):
                changed = _change_modes(y, modes, spools, p, M, work, k1)
                settled = False
            status = changed
            if not begins:
                status = INDEFINITE
            elif not _is_in_range(y, n, p):
                status = RUNAWAY
            elif not definite:
                status = INDEFINITE
        if status != DONE:
            for k in range(size):
                y[k] = last[k]
                # With a state that is not finite the mass matrix is not finite, either.
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
def inertia(y, p, M, f):  # type: ignore[no-untyped-def]
    """Compute M(q) and c + D q' + g in the order of q; arguments as for :func:`evaluate`."""
    N, width, size = p.beams.shape[0], 1 + p.functions, f.size
    n, rows, forces = N * width, np.empty((size, size)), np.empty(size)
    mass_and_forces(y, n, p.beams, p.truck, p.gravity, p.printed, rows, forces, workspace(N, size))
    for row in range(size):
        k = N * (row % width) + row // width if row < n else row
        f[k] = forces[row]
        for other in range(row + 1):
            column = N * (other % width) + other // width if other < n else other
            M[k, column] = M[column, k] = rows[row, other]


@kernel
def evaluate(y, modes, spools, p, M, f, dy):  # type: ignore[no-untyped-def]
    """Compute M(q), c + D q' + g, both in the order of q, and dy, for given modes."""
    N, rows = modes.size, f.size
    _derivative(y, modes, spools, p, np.empty((rows, rows)), workspace(N, rows), dy)
    # Computed again: _derivative overwrites M with the Cholesky factor of its free part.
    inertia(y, p, M, f)
