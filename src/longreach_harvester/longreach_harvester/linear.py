"""The harvester's equations between two events, for linear models."""

from __future__ import annotations

import math

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_dynamics.hydraulics.lines import (
    CAPACITANCE,
    DEAD_BAND,
    INERTANCE,
    RELIEF_1,
    RELIEF_2,
    RESIDUAL_TIME,
    SPOOL_FASTEST,
    SPOOL_RATE,
    TANK,
    orifice_resistances,
    relief_and_make_up,
    residual_flow,
    sources,
)
from longreach_dynamics.hydraulics.valves import chamber_pressure, spool_rate
from longreach_dynamics.kernels import kernel
from longreach_harvester.bodies import (
    HEAD,
    HEAD_RATE,
    PRESSURE_1,
    RATE,
    accelerate_with_head,
    accelerations,
)
from longreach_harvester.machine import Harvester, HarvesterState
from longreach_harvester.model import BALANCE, FLOW_1, FLOW_2, PRESSURE_2, RAIL, SIZE, WIDTH, rates
from longreach_harvester.parameters import JOINTS
from longreach_harvester.simulation import columns_of, series
from longreach_machine.linear import Signal, SmoothModel

# Opening of a valve at the edge of its dead band.
_EDGE = 1e-2
# Columns of the states.
_STATES = ('q_*', 'rate_*', 'p_1_*', 'p_2_*', 'q_1_*', 'q_2_*')


@kernel
def accelerated(y, torques, model, dy):  # type: ignore[no-untyped-def]
    """Write the accelerations under torques of all axes alone into dy, which is zero elsewhere."""
    b = model.bodies
    dy[:] = 0.0
    if b.head_mass > 0.0:
        dy[RATE:PRESSURE_1] = torques
        accelerate_with_head(y, b, dy)
        dy[HEAD:HEAD_RATE] = 0.0
    else:
        t = torques
        dy[3], dy[4], dy[5] = accelerations(y, y[RATE:PRESSURE_1], t[0], t[1], t[2], b)


@kernel
def derivatives(y, spools, closed, rail, model, dy):  # type: ignore[no-untyped-def]
    """Write the derivative of y, (A6) corrected, for a rail [Pa]; return whether it has levers."""
    f1, f2, table = np.zeros(3), np.zeros(3), model.lines[0]
    for i in range(3):
        if not closed[i]:
            f1[i], f2[i] = y[FLOW_1 + i], y[FLOW_2 + i]
    dy[:] = 0.0
    valid = rates(y, f1, f2, model, dy, np.empty(len(BALANCE)))
    for i in range(3):
        side_1, side_2 = sources(spools[i], rail, table[i, TANK])
        C_1, C_2 = orifice_resistances(spools[i], i, model.lines)
        p1 = chamber_pressure(y[PRESSURE_1 + i], model.vapour)
        p2 = chamber_pressure(y[PRESSURE_2 + i], model.vapour)
        drop_1 = side_1 - p1
        drop_2 = p2 + side_2 if model.as_printed else p2 - side_2
        for k, drop, C in ((FLOW_1 + i, drop_1, C_1), (FLOW_2 + i, drop_2, C_2)):
            Q = y[k]
            if closed[i]:
                dy[k] = (residual_flow(drop, C) - Q) / table[i, RESIDUAL_TIME]
            else:
                dy[k] = (drop - C * Q * abs(Q)) / table[i, INERTANCE]
        if model.ports:
            dy[PRESSURE_1 + i] += (
                relief_and_make_up(p1, RELIEF_1, i, table) / table[i, CAPACITANCE]
            )
            dy[PRESSURE_2 + i] += (
                relief_and_make_up(p2, RELIEF_2, i, table) / table[i, CAPACITANCE]
            )
    return valid


def smooth_model(machine: Harvester, state: HarvesterState, free: bool) -> SmoothModel:
    """
    Return the equations of the full model of a harvester near a state.

    Inputs are the spools, commands where they have a lag, and torques on the joints [N m]; with a
    pump of limited flow the pressure of its rail stays. ``free``: closed valves are at the edge of
    their dead band, and open. InputError for the reduced model, in which speeds follow from
    pressures at once.
    """
    model = machine.with_log(float(state.y[-1]))
    if model.reduced:
        raise InputError('model = reduced, allowed for a linear model: full')
    table = model.lines[0]
    closed = state.closed.copy()
    spools, commands = np.array(state.spools), np.array(state.commands)
    notes = []
    for i, name in enumerate(JOINTS):
        if closed[i] and free:
            closed[i] = False
            spools[i] = commands[i] = math.copysign(table[i, DEAD_BAND] + _EDGE, commands[i])
        elif closed[i]:
            notes.append(f'the valve of the {name} is closed: spool_{name} has no effect')
        lag, fastest = table[i, [SPOOL_RATE, SPOOL_FASTEST]]
        if math.isfinite(lag) and lag * abs(commands[i] - spools[i]) >= fastest:
            notes.append(
                f'the spool of the {name} moves at its full speed: spool_{name} has no effect'
            )
    if model.pump:
        notes.append('the pressure of the rail stays')
    lagged = np.flatnonzero(np.isfinite(table[:, SPOOL_RATE]))
    # Without a hanging head its two angles and their rates are no states.
    kept = [*range(SIZE), *(range(HEAD, RAIL) if machine.parameters.hangs else ())]
    size = len(kept)

    def whole(x: np.ndarray) -> np.ndarray:
        y = state.y.copy()
        y[kept] = x[:size]
        return y

    def positions(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        found = u[:3].copy()
        found[lagged] = x[size:]
        return found

    def f(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        y, dy = whole(x), np.empty(WIDTH)
        derivatives(y, positions(x, u), closed, state.y[RAIL], model, dy)
        if u[3:].any():
            pushed, alone = np.empty((2, WIDTH))
            accelerated(y, u[3:], model, pushed)
            accelerated(y, np.zeros(3), model, alone)
            dy += pushed - alone
        # Residual flows of closed valves, which act on nothing, stay.
        dy[FLOW_1:SIZE].reshape(2, 3)[:, closed] = 0.0
        lags = table[:, [SPOOL_RATE, SPOOL_FASTEST]]
        moving = [spool_rate(at, u[i], *lags[i]) for at, i in zip(x[size:], lagged, strict=True)]
        return np.concatenate([dy[kept], moving])

    columns = columns_of(machine.parameters, machine.scenario)

    def g(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        row = np.concatenate([whole(x), positions(x, u), closed, state.balance])
        return series(machine, np.zeros(1), row[None])[0, 1:]

    states = [Signal(c.name, c.unit) for c in columns if c.family in _STATES]
    return SmoothModel(
        (*states, *(Signal(f'spool_{JOINTS[i]}', '1') for i in lagged)),
        (
            *(Signal(f'spool_{name}', '1') for name in JOINTS),
            *(Signal(f'torque_{name}', 'N m') for name in JOINTS),
        ),
        tuple(Signal(column.name, column.unit) for column in columns[1:]),
        np.concatenate([state.y[kept], spools[lagged]]),
        np.append(commands, np.zeros(3)),
        f,
        g,
        tuple(notes),
    )
