"""Simulated runs of the harvester: tables of what is observed, and their summaries."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import time
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from longreach_dynamics.hydraulics.lines import VAPOUR
from longreach_harvester.bodies import HEAD, PRESSURE_1
from longreach_harvester.control import references
from longreach_harvester.kinematics import tip_at
from longreach_harvester.machine import SAMPLE_TIME, Harvester, HarvesterState
from longreach_harvester.model import BALANCE, FLOW_1, LOG, PAPER_BALANCE, RAIL, SIZE, WIDTH
from longreach_harvester.parameters import HEAD_JOINTS, JOINTS, HarvesterParameters, load_harvester
from longreach_harvester.scenario import Scenario, resting_scenario
from longreach_harvester.stepping import ROW, energies_of, forces_of, port_flows_of
from longreach_harvester.training import TRAINING_UNITS, training_figures
from longreach_machine.machine import late_events, sample_counts
from longreach_machine.runs import Column, Columns, Run, each, record, sources

_joints, _oil = sources('joint_states', JOINTS), sources('hydraulics', JOINTS)
_MOTOR, _PISTONS = JOINTS[:1], JOINTS[1:]
_CYLINDERS = [f'{name}_cylinder' for name in _PISTONS]
_STORED = ('kinetic', 'potential', 'oil', 'moving_oil', 'stops')
COLUMNS = Columns(
    (
        Column('time', 's', 'of the sample'),
        *each('q_*', JOINTS, 'rad', 'joint angles', _joints('position')),
        *each('rate_*', JOINTS, 'rad/s', 'joint rates', _joints('velocity')),
        *each('spool_*', JOINTS, '1', 'spool positions', _oil('spool')),
        *each('p_1_*', JOINTS, 'Pa', 'pressures of the capacitances', _oil('head_pressure')),
        *each('p_2_*', JOINTS, 'Pa', 'pressures of the capacitances', _oil('rod_pressure')),
        *each('q_1_*', JOINTS, 'm^3/s', 'flows of orifices 1 into the lines', _oil('head_flow')),
        *each('q_2_*', JOINTS, 'm^3/s', 'flows of lines 2 into the orifices', _oil('rod_flow')),
        *each('force_*', _MOTOR, 'N m', 'of the motor on the swing joint', _joints('effort')[:1]),
        *each(
            'force_*', _PISTONS, 'N', 'of the oil on the pistons', _joints('effort', _CYLINDERS)
        ),
        *each('closed_*', JOINTS, '', '1: the valve is closed, the flow no oil'),
        *each('work_*', PAPER_BALANCE[:1], 'J', 'of the supply since time 0'),
        *each('loss_*', PAPER_BALANCE[1:], 'J', 'losses since time 0'),
        *each('energy_*', _STORED, 'J', 'of bodies, oil and stops'),
    )
)
"""Columns of every harvester; below those of one, or a scenario, that has more."""

_HEAD = (HEAD_JOINTS, 'rad', 'angles of a head that hangs', _joints('position', HEAD_JOINTS))
_TURNING = (HEAD_JOINTS, 'rad/s', 'rates of a head that hangs', _joints('velocity', HEAD_JOINTS))
HEAD_COLUMNS = Columns(
    (
        *each('q_*', *_HEAD),
        *each('rate_*', *_TURNING),
        Column('loss_head', 'J', 'loss in its axes since time 0'),
    )
)
PORT_COLUMNS = Columns(
    (
        *each('port_1_*', JOINTS, 'm^3/s', 'of relief (negative) and make-up valve into line 1'),
        *each('port_2_*', JOINTS, 'm^3/s', 'of relief (negative) and make-up valve into line 2'),
        Column('loss_ports', 'J', 'loss in relief and make-up valves since time 0'),
    )
)
PUMP_COLUMNS = Columns(
    (
        Column('rail_pressure', 'Pa', 'with which a pump of limited flow feeds the valves'),
        Column('rail_flow', 'm^3/s', 'what this pump gives'),
        Column('loss_pump', 'J', 'its loss below the supply pressure since time 0'),
    )
)
LOG_COLUMNS = Columns(
    (
        Column('log', 'kg', 'mass in the grapple'),
        Column('work_log', 'J', 'energy of logs taken less that of logs released since time 0'),
    )
)


def columns_of(harvester: HarvesterParameters, scenario: Scenario | None = None) -> Columns:
    """Return the columns of a harvester; without a scenario those of recordings."""
    has_logs = scenario is not None and scenario.has_logs
    return _columns(harvester.hangs, harvester.has_ports, bool(harvester.pump), has_logs)


@functools.cache
def _columns(*has: bool) -> Columns:
    """Return the columns of all harvesters, and those of head, ports, pump and logs."""
    parts = itertools.compress((HEAD_COLUMNS, PORT_COLUMNS, PUMP_COLUMNS, LOG_COLUMNS), has)
    return Columns((*COLUMNS, *itertools.chain(*parts)))


# Smallest scale of the energy balance [J], and error of which a run warns [1].
_SMALL_ENERGY, _ENERGY_ERROR = 1.0, 1e-3


@dataclasses.dataclass(frozen=True)
class HarvesterRun(Run[HarvesterParameters]):
    """A run of the harvester; what a recorded one does not have is None."""

    UNITS: ClassVar[Mapping[str, str]] = {
        'duration': 's',
        **{
            f'{which}.{column.name}': column.unit
            for which in ('final', 'lowest', 'highest')
            for column in (*COLUMNS, *HEAD_COLUMNS)
        },
        'energy_error': '1',
        'lowest_pressure': 'Pa',
        'wall_time': 's',
        'step_error': 'rad',
        'tip_error': 'm',
        **TRAINING_UNITS,
    }

    state: HarvesterState | None = None  # at its end
    as_printed: bool = False
    wall_time: float = 0.0  # that the simulation took [s]
    step_error: dict[str, float] | None = None  # of each joint angle [rad]
    tip_error: float | None = None  # largest distance from a path of the tip at the same time [m]

    def energy_error(self) -> float:
        """Return the largest error of the balance over what is given, lost and stored anew."""
        if not len(self.table):
            return 0.0
        stored = self.stack([f'energy_{name}' for name in _STORED])
        names = self.columns.names
        given = self.stack([name for name in names if name.startswith('work_')])
        lost = self.stack([name for name in names if name.startswith('loss_')])
        error = (stored - stored[0]).sum(axis=1) - given.sum(axis=1) + lost.sum(axis=1)
        turned = np.abs(np.concatenate((given[-1], lost[-1]))).sum() + np.ptp(stored, axis=0).sum()
        return float(np.abs(error).max() / max(turned, _SMALL_ENERGY))

    def training(self) -> dict[str, Any]:
        """Return the training figures."""
        heads = [name for name in self.columns.names if name.startswith('q_head')]
        return training_figures(
            self.parameters,
            self.column('time'),
            self.stack([f'q_{name}' for name in JOINTS]),
            self.stack([f'spool_{name}' for name in JOINTS]),
            self.stack(heads) if heads else None,
        )

    def summary(self) -> dict[str, Any]:
        """Return final state, extrema, error of the energy balance, switchings, speed."""
        found = super().summary()
        if not len(self.table):
            return found
        heads = HEAD_COLUMNS.names[:4] if self.parameters.hangs else ()
        names = (*self.columns.names[1 : 1 + 3 * 8], *heads)
        shown = self.stack(names)
        found |= {
            'final': dict(zip(names, shown[-1].tolist(), strict=True)),
            'lowest': dict(zip(names, shown.min(axis=0).tolist(), strict=True)),
            'highest': dict(zip(names, shown.max(axis=0).tolist(), strict=True)),
            'training': self.training(),
        }
        if self.state is not None:
            lowest = self.state.counters[1]
            found |= {
                'energy_error': self.energy_error(),
                'switchings': int(self.state.counters[0]),
                'lowest_pressure': float(lowest if self.as_printed else max(lowest, VAPOUR)),
                'wall_time': self.wall_time,
                'real_time_factor': found['duration'] / max(self.wall_time, 1e-9),
            }
        errors = {'step_error': self.step_error, 'tip_error': self.tip_error}
        return found | {name: error for name, error in errors.items() if error is not None}

    def warnings(self) -> tuple[str, ...]:
        """Return that oil cavitates, that the steps lose or make energy, and what does not act."""
        if self.state is None:
            return ()
        found = []
        _, lowest, at = self.state.counters.tolist()
        remedy = 'let spools move more slowly, or take a machine with make-up valves'
        if lowest < VAPOUR and self.as_printed:
            found.append(
                f'a pressure falls to {lowest:.3g} Pa at {at:g} s: oil would cavitate, what'
                ' follows is not valid; the equations as printed have no vapour pressure'
            )
        elif lowest < VAPOUR:
            found.append(
                f'oil cavitates: the pressure of a line is {VAPOUR:g} Pa, and most oil is missing'
                f' there at {at:g} s; {remedy}'
            )
        error = self.energy_error()
        if error > _ENERGY_ERROR:
            found.append(
                f'the energy balance is off by {error:.2g} of the energy turned over, allowed:'
                f' {_ENERGY_ERROR:g}; take a shorter step (--step), such as a quarter'
            )
        return (*found, *super().warnings())


def series(machine: Harvester, times: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the columns of :func:`columns_of` for times [s] and rows (rows, ROW) of a run."""
    forces, stored = np.empty((len(rows), 3)), np.empty((len(rows), 5))
    forces_of(rows, machine.constants, forces)
    for log in np.unique(rows[:, LOG]).tolist():
        held = rows[:, LOG] == log
        part = np.empty((held.sum(), 5))
        energies_of(rows[held], machine.with_log(log), part)
        stored[held] = part
    y, spools, modes, balance = np.split(rows, [WIDTH, WIDTH + 3, WIDTH + 6], axis=1)
    pressures = np.maximum(y[:, PRESSURE_1:FLOW_1], machine.constants.vapour)
    entries = dict(zip(BALANCE, balance.T, strict=True))
    parts = [times[:, None], y[:, :PRESSURE_1], spools, pressures, y[:, FLOW_1:SIZE], forces]
    parts += [modes, balance[:, : len(PAPER_BALANCE)], stored]
    p = machine.parameters
    if p.hangs:
        parts += [y[:, HEAD:RAIL], entries['head'][:, None]]
    if p.has_ports:
        flows = np.empty((len(rows), 6))
        port_flows_of(rows, machine.constants, flows)
        parts += [flows, entries['ports'][:, None]]
    if p.pump:
        fed = np.where(spools > 0.0, y[:, 12:15], -y[:, 15:SIZE])
        flow = np.where(modes == 0.0, fed, 0.0).sum(axis=1)
        parts += [np.c_[y[:, RAIL], flow, entries['pump']]]
    if machine.scenario.has_logs:
        parts += [np.c_[y[:, LOG], entries['log']]]
    return np.hstack(parts)


def simulate(machine: Harvester, sample_time: float = SAMPLE_TIME) -> HarvesterRun:
    """
    Simulate the scenario of a harvester.

    A run that cannot go on ends with the last valid row; its message states the reason.

    Parameters
    ----------
    machine : Harvester
    sample_time : float
        Interval of rows [s], a whole number of steps.

    Raises
    ------
    InputError
        When scenario and steps do not fit together.
    """
    columns = columns_of(machine.parameters, machine.scenario)
    width = ROW + len(columns)
    every, samples = sample_counts(machine.scenario.duration, sample_time, machine.step, width)
    state = machine.initial_state()
    first = np.r_[state.y, state.spools, state.closed, state.balance]
    started = time.perf_counter()
    times, (table,), state, message = record(machine, state, (first,), samples, every)
    wall_time = time.perf_counter() - started
    tip_error, scenario = None, machine.scenario
    if scenario.tip:
        wanted = references(machine.parameters, scenario, times)
        tips = [tip_at(machine.parameters, angles) for angles in (table[:, :3], wanted)]
        tip_error = float(np.linalg.norm(tips[0] - tips[1], axis=1).max())
    late = late_events(scenario, 'attach', 'release', paths=[f'spools.{name}' for name in JOINTS])
    end = sum(segment.duration for segment in scenario.tip)
    return HarvesterRun(
        machine.parameters,
        columns,
        series(machine, times, table),
        message=message,
        late=(*late, f'the end of tip is at {end:g} s') if end > scenario.duration else late,
        state=state,
        as_printed=machine.as_printed,
        wall_time=wall_time,
        tip_error=tip_error,
    )


def with_step_error(machine: Harvester, run: HarvesterRun, sample_time: float) -> HarvesterRun:
    """
    Return a run of a machine with an estimate of the largest error that steps cause in each angle.

    That follows from the differences from runs with a half and a quarter of the step, by the
    larger one, for a method of order 1, to which both models fall in bad cases: in random runs
    the error is up to 1.3 times the estimate. Where the order is 2, it is too large.
    IntegrationError when one of the runs did not reach its end.
    """
    run.check()
    names, largest = [f'q_{name}' for name in JOINTS], np.zeros(len(JOINTS))
    for share in (0.5, 0.25):
        finer = simulate(dataclasses.replace(machine, step=share * machine.step), sample_time)
        finer.check()
        away = np.abs(run.stack(names) - finer.stack(names)).max(axis=0)
        largest = np.maximum(largest, away / (1.0 - share))
    return dataclasses.replace(run, step_error=dict(zip(names, largest.tolist(), strict=True)))


@functools.cache
def warm_up() -> None:
    """Compile the kernels, or load them from the cache, once in a process."""
    for model in ('full', 'reduced'):
        scenario = resting_scenario().replace(duration=0.01)
        harvester = Harvester(load_harvester(), scenario, model=model)
        simulate(harvester)
    harvester.joint_sample(harvester.initial_state(), (0.0,) * len(JOINTS))
