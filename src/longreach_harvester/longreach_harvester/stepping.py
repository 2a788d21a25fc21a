"""
Steps of a run: spools between edges of a schedule, modes of the valves, rows that are recorded.

Symbols are those of :mod:`longreach_harvester.model`, and

    schedule     edges [s], spools there and their slopes in each interval, see
                 :mod:`longreach_machine.schedules`
    state        arrays of a HarvesterState: y, closed, balance, counters, spools, memory, commands
    control      references (cycles, 3) [rad], gains, steps of a cycle; 0: no control
    counters     switchings of valves, lowest pressure [Pa], when [s]
    spools       positions now; commands: what those follow that have a lag
    rows         (rows, ROW): y, spools, modes (1: closed), BALANCE
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from longreach_dynamics.hydraulics.lines import (
    AREA_1,
    AREA_2,
    DEAD_BAND,
    INERTANCE,
    RELIEF_1,
    RELIEF_2,
    SPOOL_FASTEST,
    SPOOL_RATE,
    ports,
    relief_and_make_up,
)
from longreach_dynamics.hydraulics.valves import chamber_pressure, spool_step
from longreach_dynamics.kernels import kernel
from longreach_dynamics.linkages import piston_and_arm
from longreach_dynamics.valve_pid import pid_cycle
from longreach_harvester.model import (
    BALANCE,
    DONE,
    FLOW_1,
    FLOW_2,
    NOT_FINITE,
    SWITCHING,
    WIDTH,
    compressed,
    energies,
    full_step,
    parts_of_step,
)
from longreach_harvester.reduced import lock, reduced_step

ROW = WIDTH + 3 + 3 + len(BALANCE)
# A step does not end this close before an edge of the schedule [s].
_CLOSE = 1e-12
_SWITCHINGS, _LOWEST, _LOWEST_AT = 0, 1, 2


@njit
def is_closed(u, i, model):  # type: ignore[no-untyped-def]
    """Tell whether a valve is closed at a spool position."""
    return model.switching and abs(u) <= model.lines[0][i, DEAD_BAND]


@njit
def switch(y, closed, now, u, model, balance):  # type: ignore[no-untyped-def]
    """
    Set the modes of the valves, and enter the energy that the model loses or gains by that.

    A closing valve of the full model stops the oil in its inertances. The reduced model knows the
    energy of compressed oil only while a valve is closed; the pressures that it locks in carry the
    load, (16), and share it as at the greatest resistance, (17).
    """
    table = model.lines[0]
    for i in range(3):
        if closed[i] == now[i]:
            continue
        if model.reduced:
            if now[i]:
                lock(y, u[i], i, model)
            lost = -compressed(y, i, model)
        else:
            lost = 0.5 * table[i, INERTANCE] * (y[FLOW_1 + i] ** 2 + y[FLOW_2 + i] ** 2)
        balance[SWITCHING] += lost if now[i] else -lost
        closed[i] = now[i]


@njit
def _spools_at(schedule, k, t, stop, spools, model, u, ends):  # type: ignore[no-untyped-def]
    """Write the spools in the middle and at the end of a step; return where it has to end."""
    edges, starts, slopes = schedule
    table = model.lines[0]
    middle = 0.5 * (t + stop)
    for i in range(3):
        u[i] = starts[k, i] + slopes[k, i] * (middle - edges[k])
        if table[i, SPOOL_RATE] == np.inf:
            ends[i] = u[i] + 0.5 * (stop - t) * slopes[k, i]
            continue
        before = spools[i]
        lag = (table[i, SPOOL_RATE], table[i, SPOOL_FASTEST])
        ends[i] = spool_step(before, u[i], *lag, stop - t)
        u[i] = 0.5 * (before + ends[i])
        for level in (-table[i, DEAD_BAND], 0.0, table[i, DEAD_BAND]):
            if (before - level) * (ends[i] - level) < 0.0:
                crossing = t + (level - before) / (ends[i] - before) * (stop - t)
                if t + _CLOSE < crossing < stop - _CLOSE:
                    stop = crossing
    return stop


@kernel
def advance(state, schedule, control, model, step, first, steps, every, rows):  # type: ignore[no-untyped-def]
    """Take steps in place, and record; return how many were taken, and how it ended."""
    y, closed, balance, counters, spools, memory, commands = state
    edges, starts, slopes = schedule
    u, now, work = np.zeros(3), np.zeros(3, np.bool_), np.zeros((4, WIDTH))
    ends = np.zeros(3)
    references, gains, cycle = control
    last = starts.shape[0] - 1
    k = 0
    while k < last and edges[k + 1] <= first * step + _CLOSE:
        k += 1
    for n in range(steps):
        t, end = (first + n) * step, (first + n + 1) * step
        if cycle and (first + n) % cycle == 0:
            wanted = references[min((first + n) // cycle, references.shape[0] - 1)]
            # On the spools of the schedule.
            pid_cycle(y[:3], wanted, memory, gains, cycle * step, starts[0])
        while t < end:
            while k < last and edges[k + 1] <= t + _CLOSE:
                k += 1
            stop = edges[k + 1] if k < last and edges[k + 1] < end - _CLOSE else end
            if model.lags:
                earlier = _spools_at(schedule, k, t, stop, spools, model, u, ends)
                if earlier < stop:
                    stop = earlier
                    _spools_at(schedule, k, t, stop, spools, model, u, ends)
            h = stop - t
            for i in range(3):
                if not model.lags:
                    u[i] = starts[k, i] + slopes[k, i] * (0.5 * (t + stop) - edges[k])
                    ends[i] = u[i] + 0.5 * h * slopes[k, i]
                now[i] = is_closed(u[i], i, model)
                counters[_SWITCHINGS] += now[i] != closed[i]
            switch(y, closed, now, u, model, balance)
            if model.reduced:
                status = reduced_step(y, ends, closed, h, model, work, balance)
            else:
                parts = parts_of_step(y, h, model)
                status = full_step(y, u, closed, h / parts, model, work, balance)
                for _ in range(parts - 1):
                    if status == DONE:
                        status = full_step(y, u, closed, h / parts, model, work, balance)
            if status != DONE:
                return n, status
            if model.lags:
                for i in range(3):
                    spools[i] = ends[i]
            t = stop
        if not math.isfinite(y.sum()):
            return n, NOT_FINITE
        lowest = np.inf
        for i in range(3):
            commands[i] = starts[k, i] + slopes[k, i] * (end - edges[k])
            if model.lines[0][i, SPOOL_RATE] == np.inf:
                spools[i] = commands[i]
            # Without compliance, oil that an opening valve slows down has no lowest pressure.
            if closed[i] or not model.reduced:
                lowest = min(lowest, y[6 + i], y[9 + i])
        if lowest < counters[_LOWEST]:
            counters[_LOWEST], counters[_LOWEST_AT] = lowest, end
        if every and (first + n + 1) % every == 0:
            r = (first + n + 1) // every - first // every - 1
            # Loops, as assignments of slices took as long as a step of the reduced model.
            for i in range(WIDTH):
                rows[r, i] = y[i]
            for i in range(3):
                rows[r, WIDTH + i] = spools[i]
                rows[r, WIDTH + 3 + i] = closed[i]
            for i in range(balance.size):
                rows[r, WIDTH + 6 + i] = balance[i]
    return steps, DONE


@kernel
def forces_of(rows, model, forces):  # type: ignore[no-untyped-def]
    """Write forces of the actuators at their ports for rows of states, (rows, 3) [N m], [N]."""
    table = model.lines[0]
    for n in range(rows.shape[0]):
        for i in range(3):
            _, arm = piston_and_arm(table, i, rows[n, i])
            speed = arm * rows[n, 3 + i]
            p1 = chamber_pressure(rows[n, 6 + i], model.vapour)
            p2 = chamber_pressure(rows[n, 9 + i], model.vapour)
            port_1, port_2, _, _ = ports(p1, p2, speed, i, table)
            forces[n, i] = table[i, AREA_1] * port_1 - table[i, AREA_2] * port_2


@kernel
def port_flows_of(rows, model, flows):  # type: ignore[no-untyped-def]
    """Write flows of relief and make-up valves into both lines of each actuator, (rows, 6)."""
    table = model.lines[0]
    for n in range(rows.shape[0]):
        for i in range(3):
            p1 = chamber_pressure(rows[n, 6 + i], model.vapour)
            p2 = chamber_pressure(rows[n, 9 + i], model.vapour)
            flows[n, i] = relief_and_make_up(p1, RELIEF_1, i, table)
            flows[n, 3 + i] = relief_and_make_up(p2, RELIEF_2, i, table)


@kernel
def energies_of(rows, model, found):  # type: ignore[no-untyped-def]
    """Write energies of rows in the order of :func:`..model.energies`, (rows, 5) [J]."""
    for n in range(rows.shape[0]):
        closed = rows[n, WIDTH + 3 : WIDTH + 6] != 0.0
        found[n, 0], found[n, 1], found[n, 2], found[n, 3], found[n, 4] = energies(
            rows[n], closed, model
        )
