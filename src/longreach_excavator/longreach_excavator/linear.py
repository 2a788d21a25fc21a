"""The excavator's equations between two events, for linear models."""

from __future__ import annotations

import numpy as np

from longreach_dynamics.hydraulics.actuators import SPOOL_FASTEST, SPOOL_RATE
from longreach_dynamics.planar_chain import LENGTH
from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.machine import Excavator, ExcavatorState
from longreach_excavator.motion import HEAD, RATE, SIZE, SPOOL, WORK, evaluate
from longreach_excavator.simulation import columns_of, series
from longreach_machine.linear import Signal, SmoothModel

_LINKS = ('boom', 'arm', 'bucket')
# Force by which the inertia is measured [N]; accelerations are linear in it.
_PROBE = 1e5


def smooth_model(
    machine: Excavator, state: ExcavatorState, time: float, free: bool
) -> SmoothModel:
    """Return the equations of an excavator near a state."""
    # Inputs are the spools, torques on the links about their joints [N m], and a force on the
    # tooth, x forwards and z upwards [N]. The ground does not change. ``free``: closed valves are
    # at the edge of their dead band, from where their spools are counted.
    p, y0 = machine.constants, state.y.copy()
    command = machine.scenario_command(time, state.swept)
    notes = []
    spools, positions = np.array(command.spools), y0[SPOOL : SPOOL + len(CYLINDERS)]
    closed = np.abs(positions) <= p.actuators.dead_band
    if free:
        p = p._replace(actuators=p.actuators.at_edge(closed))
        positions[closed] = spools[closed] = 0.0
    lags = p.actuators.table[:, [SPOOL_RATE, SPOOL_FASTEST]]
    oil = np.array([np.nan if force is None else force for force in command.forces])
    for i, name in enumerate(CYLINDERS):
        if not np.isnan(oil[i]):
            notes.append(f'the force of cylinder {name} is prescribed: its valve has no effect')
        elif abs(positions[i]) < p.actuators.dead_band[i]:
            notes.append(f'the valve of cylinder {name} is closed: spool_{name} has no effect')
        if lags[i, 0] * abs(spools[i] - positions[i]) >= lags[i, 1]:
            notes.append(
                f'the spool of cylinder {name} moves at its full speed: spool_{name} has no effect'
            )
    if p.ground.cells:
        notes.append('the ground does not change')
    levers = machine.parameters.linkage()

    def inverse_inertia(y: np.ndarray, spools: np.ndarray) -> np.ndarray:
        rest = np.zeros(3)
        base, pushed = np.empty(SIZE), np.empty(SIZE)
        evaluate(y, spools, rest, p, base)
        found = np.empty((3, 3))
        for i, lever in enumerate(levers.levers(y[:RATE])):
            rest[i] = _PROBE
            evaluate(y, spools, rest, p, pushed)
            rest[i] = 0.0
            found[:, i] = (pushed - base)[RATE:HEAD] / (_PROBE * lever)
        return found

    def whole(x: np.ndarray) -> np.ndarray:
        return np.concatenate([x, y0[WORK:]])

    def added(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Return the accelerations by torques and a force on the tooth."""
        angles = np.cumsum(x[:RATE])
        arms = np.array([*p.chain[LENGTH, :2], p.pins.n]) * np.exp(1j * angles)
        # Of joint k the tooth is turned about: its velocity is j times the arm from there.
        turned = 1j * np.cumsum(arms[::-1])[::-1]
        torque = u[3:6] + turned.real * u[6] + turned.imag * u[7]
        return np.asarray(inverse_inertia(whole(x), u[:3]) @ torque)

    def rates(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        dy = np.empty(SIZE)
        evaluate(whole(x), u[:3], oil, p, dy)
        if u[3:].any():
            dy[RATE:HEAD] += added(x, u)
        return dy[:WORK]

    columns = columns_of(machine)

    def observe(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        acting = np.concatenate([added(x, u), u[6:]])
        return series(machine, np.array([time]), whole(x)[None], p, acting)[0, 1:]

    shapes = [(f'theta_{name}', 'rad') for name in _LINKS]
    states = [
        *shapes,
        *((f'{name}_rate', 'rad/s') for name, _ in shapes),
        *((f'{side}_{name}', 'Pa') for side in ('p_head', 'p_rod') for name in CYLINDERS),
        *((f'spool_{name}', '1') for name in CYLINDERS),
        *(('soil_x', '1'), ('soil_z', '1')),
        *((f'seal_{name}', '1') for name in CYLINDERS),
    ]
    inputs = [
        *((f'spool_{name}', '1') for name in CYLINDERS),
        *((f'torque_{name}', 'N m') for name in _LINKS),
        *(('tooth_force_x', 'N'), ('tooth_force_z', 'N')),
    ]
    return SmoothModel(
        tuple(Signal(*pair) for pair in states),
        tuple(Signal(*pair) for pair in inputs),
        tuple(Signal(column.name, column.unit) for column in columns[1:]),
        y0[:WORK].copy(),
        np.array([*spools, *[0.0] * 5]),
        rates,
        observe,
        tuple(notes),
    )
