"""
Benchmark of the harvester: full and reduced model, and SciPy on the same right-hand side.

The stick follows a sine under its controller, as in the paper, which reports its own times on a
150 MHz R4400. SciPy integrates the full model between the cycles of the controller, at which the
spools change, from mode to mode; its tolerances are the loosest that keep the stick within 1e-4
rad of the reference. CVODES is not in the table: CasADi cannot call compiled code of numba.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
from bench_table import Row, Section, measure
from scipy.integrate import solve_ivp

from longreach_dynamics.hydraulics.lines import DEAD_BAND
from longreach_dynamics.kernels import kernel
from longreach_dynamics.valve_pid import new_memory, pid_cycle
from longreach_harvester.control import load_controller, references
from longreach_harvester.machine import Harvester
from longreach_harvester.model import derivatives
from longreach_harvester.parameters import load_harvester
from longreach_harvester.scenario import Scenario, load_scenario
from longreach_harvester.simulation import HarvesterRun, simulate

_SCENARIO = Path(__file__).parent.parent / 'config/scenarios/harvester_sine.yaml'
# Of the paper: 28 min, and 47 s with the reduced, compiled model, for 40 s.
_PAPER = (('the paper, full', 28.0 * 60.0), ('the paper, reduced and compiled', 47.0))
# Methods and tolerances.
_SCIPY = (('LSODA', 1e-6), ('BDF', 1e-5), ('Radau', 1e-4))
_REFERENCE_STEP, _STICK = 2e-5, 2
# Sizes of angles, rates, pressures, flows.
_SCALES = np.repeat([1.0, 1.0, 1e7, 1e7, 1e-3, 1e-3], 3)


def _scenario(duration: float) -> Scenario:
    """Return the sine of the stick."""
    return load_scenario(_SCENARIO).replace(duration=duration)


def _run(duration: float, model: str, step: float) -> HarvesterRun:
    """Simulate the sine."""
    return simulate(Harvester(load_harvester(), _scenario(duration), step, model))


@functools.cache
def _reference(duration: float) -> np.ndarray:
    """Return the stick's angle of the full model at very short steps, every 10 ms [rad]."""
    return _run(duration, 'full', _REFERENCE_STEP).column('q_stick')


def models(quick: bool) -> list[Row]:
    """Both models over the sine of the stick."""
    duration = 10.0 if quick else 40.0
    rows = []
    for model, step in (('full', 1e-3), ('reduced', 5e-3)):
        machine = Harvester(load_harvester(), _scenario(duration), step, model)
        _, run = measure(functools.partial(simulate, machine), 1)
        walls = tuple(simulate(machine).wall_time for _ in range(3 if quick else 9))
        error = float(np.abs(run.column('q_stick') - _reference(duration)).max())
        note = f'{duration / np.median(walls):.0f} times real time'
        rows.append(Row(f'{model}, steps of {1e3 * step:g} ms', walls, error, note=note))
    for name, seconds in _PAPER:
        note = f'{40.0 / seconds:.3g} times real time, 150 MHz R4400'
        rows.append(Row(name, (seconds * duration / 40.0,), note=note))
    return rows


@kernel
def _compiled(y, u, closed, model):  # type: ignore[no-untyped-def]
    """Return the time derivatives of the full model."""
    dy = np.empty(y.size)
    derivatives(y, u, closed, model, dy)
    return dy


def by_scipy(duration: float, method: str, tolerance: float) -> np.ndarray:
    """Return the stick's angle at the cycles of the controller [rad]."""
    harvester, controller = load_harvester(), load_controller()
    machine = Harvester(harvester, _scenario(duration))
    interval, gains = controller.sample_time, controller.table(harvester)
    times = interval * np.arange(round(duration / interval) + 1)
    wanted = references(harvester, machine.scenario, times)
    model, y = machine.constants, machine.initial_state().y
    memory, u = new_memory(3), np.zeros(3)
    found = [y[_STICK]]
    for k, time in enumerate(times[:-1]):
        pid_cycle(y[:3], wanted[k], memory, gains, interval, u)
        closed = np.abs(u) <= model.lines[0][:, DEAD_BAND]
        done = solve_ivp(
            lambda _, z, closed=closed: _compiled(z * _SCALES, u, closed, model) / _SCALES,
            (time, time + interval),
            y / _SCALES,
            method=method,
            rtol=tolerance,
            atol=0.1 * tolerance,
        )
        y = done.y[:, -1] * _SCALES
        found.append(y[_STICK])
    return np.array(found)


def solvers(quick: bool) -> list[Row]:
    """Run the full model by the library and by SciPy."""
    duration = 1.0 if quick else 4.0
    reference = _reference(duration)
    times, run = measure(lambda: _run(duration, 'full', 1e-3), 3)
    error = float(np.abs(run.column('q_stick') - reference).max())
    rows = [Row('library, steps of 1 ms', times, error)]
    for method, tolerance in _SCIPY:
        call = functools.partial(by_scipy, duration, method, tolerance)
        by_scipy(0.02, method, tolerance)
        times, stick = measure(call, 1, warm=False)
        error = float(np.abs(stick - reference).max())
        name = f'solve_ivp {method}, rtol {tolerance:.0e}, compiled right-hand side'
        rows.append(Row(name, times, error))
    return rows


SECTIONS = {
    'l': Section('Harvester: a sine of the stick under its controller', models),
    'm': Section('The same by SciPy, full model', solvers),
}
PLANTS = {
    'harvester, 100 Hz': ('longreach', 'launch', 'harvester', 'scenario:=sine'),
}
