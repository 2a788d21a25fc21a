"""The boom's equations between two events, for linear models."""

from __future__ import annotations

import numpy as np

from longreach_boom.model import constants_of, row_count
from longreach_boom.motion import evaluate
from longreach_boom.parameters import BoomParameters
from longreach_boom.simulation import columns_of, series
from longreach_boom.state import BoomState
from longreach_boom.strain import strains
from longreach_dynamics.hydraulics.actuators import SPOOL_FASTEST, SPOOL_RATE
from longreach_dynamics.hydraulics.friction import AT_ROD_END, OUTWARDS, STUCK, is_held
from longreach_dynamics.linkages import pistons_and_arms
from longreach_machine.linear import Signal, SmoothModel


def smooth_model(
    boom: BoomParameters,
    state: BoomState,
    friction: bool = True,
    free: bool = False,
    command: tuple[float, ...] | None = None,
) -> SmoothModel:
    """
    Return the equations near a state; ``free``: what sticks slides, closed valves begin to open.

    ``command``: that of the spools, which by default stay where they are. Those at the edge of
    their dead band are counted from there.
    """
    N, F = boom.size, boom.ritz.functions
    n = N * (1 + F)
    x, modes, notes = state.y.copy(), state.modes, []
    spools = x[2 * n + 2 * N : 2 * n + 3 * N]
    commands = spools.copy() if command is None else np.array(command)
    if free:
        # At an end of its stroke a piston stays.
        modes = np.where(np.abs(modes) == AT_ROD_END, modes, OUTWARDS)
        cylinders = []
        for i, c in enumerate(boom.cylinders):
            valve, band = c.valve, c.valve.dead_band
            if abs(spools[i]) <= band:
                valve = valve.replace(dead_band=0.0, area=valve.area / (1.0 - band))
                spools[i] = commands[i] = 0.0
            smooth = c.friction.replace(coulomb=0.0, static=0.0)
            cylinders.append(c.replace(valve=valve, friction=smooth))
        boom = boom.replace(cylinders=tuple(cylinders))
    constants = constants_of(boom, state.loads, friction)
    actuators = constants.actuators
    for i, cylinder in enumerate(boom.cylinders):
        if is_held(modes[i]):
            held = 'sticks' if modes[i] == STUCK else 'rests at an end of its stroke'
            notes.append(f'{cylinder.name} {held}: its joint is locked')
        lag, fastest = actuators.table[i, [SPOOL_RATE, SPOOL_FASTEST]]
        if abs(spools[i]) < actuators.dead_band[i]:
            notes.append(f'the valve of {cylinder.name} is closed: spool_{i + 1} has no effect')
        if lag * abs(commands[i] - spools[i]) >= fastest:
            moves = f'the spool of {cylinder.name} moves at its full speed'
            notes.append(f'{moves}: spool_{i + 1} has no effect')
    rows = row_count(constants)
    M, f = np.empty((rows, rows)), np.empty(rows)
    # Accelerations in y.
    moved = [*range(n, 2 * n), *range(state.y.size - (rows - n), state.y.size)]
    resting = np.zeros((N, 2)) if state.forces is None else state.forces

    def pulled(u: np.ndarray) -> np.ndarray:
        return np.asarray(u[2 * N :].reshape(2, N).T)

    def pushed(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        # A torque acts as more pressure on one side would, but for the oil.
        _, (arms,) = pistons_and_arms(constants.linkage, x[None, :N])
        found, force = x.copy(), u[N : 2 * N] / arms
        head, rod = slice(2 * n, 2 * n + N), slice(2 * n + N, 2 * n + 2 * N)
        for side, push, area in (
            (head, force, actuators.head_area),
            (rod, -force, actuators.rod_area),
        ):
            # Below the vapour pressure more of it would give no force.
            lowest = np.where(push > 0.0, boom.oil.vapour_pressure, -np.inf)
            found[side] = np.maximum(found[side], lowest) + np.maximum(push, 0.0) / area
        return found

    def rates(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        dy, forces = np.empty(x.size), constants.pulled(pulled(u))
        evaluate(x, modes, u[:N], forces, M, f, dy)
        if u[N : 2 * N].any():
            with_torque = np.empty(x.size)
            evaluate(pushed(x, u), modes, u[:N], forces, M, f, with_torque)
            dy[moved] = with_torque[moved]
        return dy

    columns = columns_of(boom)
    shown = [k for k, column in enumerate(columns) if k and column.family != 'mode_i']

    def observe(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        now = BoomState(pushed(x, u), modes, state.loads, pulled(u))
        strain = strains(boom, now, friction)
        return series(boom, np.zeros(1), x[None], modes[None], strain[None])[0, shown]

    numbers = range(1, N + 1)
    shapes = [
        *((f'phi_{i}', 'rad') for i in numbers),
        *((f'h{e}_{i}', 'm') for e in range(1, F + 1) for i in numbers),
    ]
    truck = [('truck_heave', 'm'), ('truck_pitch', 'rad')] if boom.truck else []
    states = [
        *shapes,
        *((f'{name}_rate', f'{unit}/s') for name, unit in shapes),
        *((f'{side}_{i}', 'Pa') for side in ('p_head', 'p_rod') for i in numbers),
        *((f'spool_{i}', '1') for i in numbers),
        *truck,
        *((f'{name}_rate', f'{unit}/s') for name, unit in truck),
    ]
    return SmoothModel(
        tuple(Signal(*pair) for pair in states),
        tuple(
            Signal(f'{name}_{i}', unit)
            for name, unit in (
                ('spool', '1'),
                ('torque', 'N m'),
                ('tip_force_x', 'N'),
                ('tip_force_z', 'N'),
            )
            for i in numbers
        ),
        tuple(Signal(columns[k].name, columns[k].unit) for k in shown),
        x,
        np.concatenate([commands, np.zeros(N), resting.T.ravel()]),
        rates,
        observe,
        tuple(notes),
    )
