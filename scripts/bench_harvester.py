"""
Benchmark of the harvester: full and reduced model, and SciPy on the same right-hand side.

The stick follows a sine under its controller, as in the paper, which reports its own times on a
150 MHz R4400. SciPy and CVODES integrate the full model between the cycles of the controller, at
which the spools change, from mode to mode, with tolerances that keep the stick within 1e-4 rad of
the reference. CasADi's CVODES cannot call compiled code of numba: it has the right-hand side of
the tests' second derivation, with exact Jacobians.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from bench_table import Row, Section, measure, of_tests
from scipy.integrate import solve_ivp

from longreach_dynamics.hydraulics.lines import DEAD_BAND, SUPPLY
from longreach_dynamics.kernels import kernel
from longreach_dynamics.parameters import load
from longreach_dynamics.valve_pid import new_memory, pid_cycle
from longreach_harvester.control import load_controller, references
from longreach_harvester.linear import derivatives
from longreach_harvester.machine import Harvester
from longreach_harvester.model import SIZE
from longreach_harvester.parameters import default_file, load_harvester
from longreach_harvester.scenario import Scenario
from longreach_harvester.simulation import simulate

_SCENARIO = Path(__file__).parent.parent / 'config/scenarios/harvester_sine.yaml'
# Of the paper: 28 min, and 47 s with the reduced, compiled model, for 40 s.
_PAPER = (('the paper, full', 28.0 * 60.0), ('the paper, reduced and compiled', 47.0))
# Methods and tolerances.
_SCIPY = (('LSODA', 1e-6), ('BDF', 1e-5), ('Radau', 1e-4))
_CVODES = 1e-3
_REFERENCE_STEP, _STICK = 2e-5, 2
# Sizes of angles, rates, pressures, flows.
_SCALES = np.repeat([1.0, 1.0, 1e7, 1e7, 1e-3, 1e-3], 3)


def _scenario(duration: float) -> Scenario:
    """Return the sine of the stick."""
    return load(Scenario, _SCENARIO).replace(duration=duration)


def _machine(duration: float, model: str, step: float, *, realistic: bool = False) -> Harvester:
    """Return a harvester that follows the sine."""
    file = default_file().parent / 'harvester_realistic.yaml' if realistic else None
    return Harvester(load_harvester(file), _scenario(duration), step, model)


@functools.cache
def _reference(duration: float, *, realistic: bool = False) -> np.ndarray:
    """Return the stick's angle of the full model at very short steps, every 10 ms [rad]."""
    machine = _machine(duration, 'full', _REFERENCE_STEP, realistic=realistic)
    return simulate(machine).column('q_stick')


def models(quick: bool) -> list[Row]:
    """Both models over the sine of the stick."""
    duration = 10.0 if quick else 40.0
    rows = []
    for model, step, realistic in (
        ('full', 1e-3, False),
        ('reduced', 5e-3, False),
        ('full', 1e-3, True),
    ):
        machine = _machine(duration, model, step, realistic=realistic)
        simulate(machine)
        runs = [simulate(machine) for _ in range(3 if quick else 5)]
        walls = tuple(run.wall_time for run in runs)
        reference = _reference(duration, realistic=realistic)
        error = float(np.abs(runs[0].column('q_stick') - reference).max())
        note = f'{duration / np.median(walls):.0f} times real time'
        name = f'{model}{", realistic machine" if realistic else ""}, steps of {1e3 * step:g} ms'
        rows.append(Row(name, walls, error, note=note))
    for name, seconds in _PAPER:
        note = f'{40.0 / seconds:.3g} times real time, 150 MHz R4400'
        rows.append(Row(name, (seconds * duration / 40.0,), note=note))
    return rows


@kernel
def _compiled(y, u, closed, model):  # type: ignore[no-untyped-def]
    """Return the time derivatives of the full model."""
    dy = np.empty(y.size)
    derivatives(y, u, closed, model.lines[0][0, SUPPLY], model, dy)
    return dy


def by_cycles(
    duration: float, advance: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """Return the stick's angle at each cycle [rad], after which ``advance`` gives the state."""
    harvester, controller = load_harvester(), load_controller()
    machine = Harvester(harvester, _scenario(duration))
    interval, gains = controller.sample_time, controller.table(harvester)
    times = interval * np.arange(round(duration / interval) + 1)
    wanted = references(harvester, machine.scenario, times)
    y = machine.initial_state().y[:SIZE] / _SCALES
    memory, u = new_memory(3), np.zeros(3)
    found = [y[_STICK]]
    for reference in wanted[:-1]:
        pid_cycle(y[:3], reference, memory, gains, interval, u)
        closed = np.abs(u) <= machine.constants.lines[0][:, DEAD_BAND]
        y = advance(y, u, closed)
        found.append(y[_STICK])
    return np.array(found)


def by_scipy(duration: float, method: str, tolerance: float) -> np.ndarray:
    """Return the stick's angle by SciPy."""
    model = Harvester(load_harvester(), _scenario(duration)).constants
    interval = load_controller().sample_time

    def advance(y: np.ndarray, u: np.ndarray, closed: np.ndarray) -> np.ndarray:
        done = solve_ivp(
            lambda _, z: _compiled(z * _SCALES, u, closed, model) / _SCALES,
            (0.0, interval),
            y,
            method=method,
            rtol=tolerance,
            atol=0.1 * tolerance,
        )
        return np.asarray(done.y[:, -1])

    return by_cycles(duration, advance)


@functools.cache
def _cvodes(tolerance: float) -> Any:
    """Return CVODES over a cycle of the controller."""
    import casadi as ca

    f, _ = of_tests('harvester', 'harvester_reference').right_hand_side(load_harvester())
    y, inputs = ca.SX.sym('y', SIZE), ca.SX.sym('inputs', 6)
    ode = f(y * _SCALES, inputs[:3], inputs[3:]) / _SCALES
    options = {'reltol': tolerance, 'abstol': 0.1 * tolerance, 'max_num_steps': 100_000}
    end = load_controller().sample_time
    return ca.integrator('cycle', 'cvodes', {'x': y, 'p': inputs, 'ode': ode}, 0.0, end, options)


def by_cvodes(duration: float, tolerance: float) -> np.ndarray:
    """Return the stick's angle by CVODES."""
    cycle = _cvodes(tolerance)

    def advance(y: np.ndarray, u: np.ndarray, closed: np.ndarray) -> np.ndarray:
        return np.asarray(cycle(x0=y, p=np.r_[u, closed])['xf']).ravel()

    return by_cycles(duration, advance)


def solvers(quick: bool) -> list[Row]:
    """Run the full model by the library, by SciPy and by CVODES."""
    duration = 1.0 if quick else 4.0
    reference = _reference(duration)
    times, run = measure(lambda: simulate(_machine(duration, 'full', 1e-3)), 3)
    error = float(np.abs(run.column('q_stick') - reference).max())
    rows = [Row('library, steps of 1 ms', times, error)]
    others = [
        (
            f'solve_ivp {method}, rtol {tolerance:.0e}, compiled right-hand side',
            functools.partial(by_scipy, method=method, tolerance=tolerance),
        )
        for method, tolerance in _SCIPY
    ]
    name = f"CasADi's CVODES, rtol {_CVODES:.0e}, right-hand side and Jacobian of CasADi"
    others.append((name, functools.partial(by_cvodes, tolerance=_CVODES)))
    for name, solve in others:
        solve(0.02)
        times, stick = measure(functools.partial(solve, duration), 1, warm=False)
        error = float(np.abs(stick - reference).max())
        rows.append(Row(name, times, error))
    return rows


SECTIONS = {
    'l': Section('Harvester: a sine of the stick under its controller', models),
    'm': Section('The same by SciPy and CVODES, full model', solvers),
}
PLANTS = {
    'harvester, 60 Hz': (
        'longreach',
        'launch',
        'harvester',
        'scenario:=open_loop',
        'publish_rate:=60.0',
    ),
}
