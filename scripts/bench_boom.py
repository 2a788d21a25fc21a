"""
Benchmark of the release of the boom's load: the library and alternative programs.

SciPy's solve_ivp uses the library's compiled right-hand side, with tolerances at which its tip is
within 1 mm of the reference, as the library's is with steps of 1 ms. Exudyn has another mechanical
model (see bench_boom_exudyn.py), so its rows have no error, and no stick and slip.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import bench_boom_exudyn
import numpy as np
from bench_ros import BenchmarkError
from bench_table import Row, Section, measure, of_tests
from scipy.integrate import solve_ivp

from longreach_boom.kinematics import point_motion
from longreach_boom.machine import AUTOMATIC, STEP, Boom, longest_step
from longreach_boom.motion import evaluate
from longreach_boom.parameters import BoomParameters, load_boom
from longreach_boom.scenario import HangingLoad, Scenario
from longreach_boom.simulation import simulate
from longreach_boom.state import StateParts

# Relative tolerances at which the errors are below 1 mm.
METHODS = (('LSODA', 1e-5), ('Radau', 1e-4))
# Elements for each beam: f1 within 0.3 %, and converged to a millimetre.
EXUDYN_MESHES = (4, 16)
# Step for short beams, whose frequencies are high [s].
SHORT_STEP = 5e-4


def release(duration: float, friction: bool) -> Scenario:
    """Return the release of 90 kg from the tip at time 0, in the pose of a building site."""
    load = HangingLoad(mass=90.0)
    return Scenario(
        duration=duration, pose='site', friction=friction, loads=(load,), release=(0.0,)
    )


def tips(boom: BoomParameters, states: np.ndarray) -> np.ndarray:
    """Return the tip [m] of states (rows, 2 n + 3 N), shape (rows, 2)."""
    parts = StateParts.of(states, boom)
    last = boom.size - 1
    return point_motion(boom, parts.q, parts.v, last, boom.beams[last].length).position


def without_friction(quick: bool) -> list[Row]:
    """Release without friction: smooth, so that methods can be compared by their error."""
    parameters, duration = load_boom(), 5.0 if quick else 20.0
    scenario = release(duration, friction=False)
    boom = Boom(parameters, scenario)
    times = np.linspace(0.0, duration, 201)
    reference_run = of_tests('boom', 'boom_reference').reference_run
    exact = tips(parameters, reference_run(boom, times, relative=1e-10)[0])

    def error(states: np.ndarray) -> float:
        return float(np.linalg.norm(tips(parameters, states) - exact, axis=1).max())

    spent, result = measure(lambda: simulate(parameters, scenario, sample_time=duration / 200), 5)
    rows = [Row('longreach, steps of 1 ms', spent, error(result.states), note='tip [m]')]
    # The longest stable one; still closer than the others.
    long = longest_step(parameters, scenario)
    spent, result = measure(
        lambda: simulate(parameters, scenario, long, sample_time=duration / 200), 5
    )
    name = f'longreach, steps of {1e3 * long:g} ms'
    rows.append(Row(name, spent, error(result.states)))
    start = boom.initial_state()
    for method, tolerance in METHODS:
        derivative = right_hand_side(boom, start.modes)
        spent, solution = measure(
            lambda m=method, r=tolerance, f=derivative: solve_ivp(  # type: ignore[misc]
                f, (0.0, duration), start.y, m, times, rtol=r, atol=r * scales(start.y)
            ),
            1 if quick else 2,
        )
        note = f'{solution.nfev} evaluations'
        rows.append(Row(f'SciPy {method}', spent, error(solution.y.T), note=note))
    return [*rows, *exudyn_rows(duration, quick)]


def right_hand_side(boom: Boom, modes: np.ndarray) -> Any:
    """Return the library's right-hand side, valves closed and loads gone, for solve_ivp."""
    constants = boom.constants(())
    N = boom.parameters.size
    n = N * (1 + boom.parameters.ritz.functions)
    M, f, spools = np.empty((n, n)), np.empty(n), np.zeros(N)

    def derivative(_: float, y: np.ndarray) -> np.ndarray:
        dy = np.empty(y.size)
        evaluate(y, modes, spools, constants, M, f, dy)
        return dy

    return derivative


def scales(y: np.ndarray) -> np.ndarray:
    """Return a large value of each component, for absolute tolerances."""
    return np.where(np.abs(y) > 1e3, 1e6, 1.0)


def exudyn_rows(duration: float, quick: bool) -> Iterator[Row]:
    """Yield Exudyn's rows, or one row with the reason why there are none."""
    boom, step = load_boom(), bench_boom_exudyn.BEST_STEP
    for mesh in EXUDYN_MESHES[: 1 if quick else None]:
        name = f'Exudyn, {mesh} ANCF elements a beam'
        try:
            bench_boom_exudyn.release(boom, 'oil', mesh, step, 1.0)
            runs = [
                bench_boom_exudyn.release(
                    boom, 'oil', mesh, step, duration, friction=False
                ).seconds
                for _ in range(3)
            ]
        except BenchmarkError as error:
            yield Row(name, (float('nan'),), note=str(error))
            return
        yield Row(name, tuple(runs), note='oil as springs, solver alone')


def stick_and_slip(quick: bool) -> list[Row]:
    """Release with hydraulics and stick-slip: growth with its length and the number of beams."""
    rows = []
    parameters = load_boom()
    for duration in (20.0, 40.0, 80.0)[: 1 if quick else None]:
        scenario = release(duration, friction=True)
        for step, how in ((STEP, ''), (AUTOMATIC, ', step chosen')):
            spent, _ = measure(lambda s=scenario, h=step: simulate(parameters, s, h), 3)  # type: ignore[misc]
            note = f'{duration / min(spent):.0f} times real time'
            rows.append(Row(f'4 beams, {duration:g} s{how}', spent, note=note))
    for size in range(1, 9):
        scenario = release(20.0, friction=True).replace(pose='', pose_deg=(0.0,) * size)
        boom = Boom(boom_of(size), scenario, SHORT_STEP)
        start, command = boom.initial_state(), (0.0,) * size
        spent, _ = measure(
            lambda b=boom, s=start, c=command: b.advance(s, c, 0.0, 20.0),  # type: ignore[misc]
            3,
        )
        note = f'{20.0 / min(spent):.0f} times real time'
        name = f'{size} beam{"s" * (size > 1)}, 20 s, steps of {1e3 * SHORT_STEP:g} ms'
        rows.append(Row(name, spent, note=note))
    return rows


def boom_of(size: int) -> BoomParameters:
    """Return a boom of the installed one's length and sections, cut into more or fewer beams."""
    boom = load_boom()
    beams, cylinders = [], []
    for number in range(size):
        like = number * boom.size // size
        beam = boom.beams[like]
        length = beam.length * boom.size / size
        gauge = beam.strain_gauge.replace(position=min(beam.strain_gauge.position, length))
        support = beam.support if number == 0 else 0.0
        beams.append(
            beam.replace(name=f'beam_{number}', length=length, strain_gauge=gauge, support=support)
        )
        # All but the first joint take the second's kind of linkage.
        cylinder = boom.cylinders[max(like, min(number, 1))]
        cylinders.append(cylinder.replace(name=f'cylinder_{number}'))
    return dataclasses.replace(
        boom, beams=tuple(beams), cylinders=tuple(cylinders), poses=(), markers=()
    )


SECTIONS = {
    'e': Section('Release of 90 kg by the boom, no friction, each within 1 mm', without_friction),
    'f': Section('Release with oil, stick and slip, steps of 1 ms', stick_and_slip),
}

_LAUNCH = ('longreach', 'launch', 'boom', 'controller:=false', 'scenario:=load_release')
PLANTS = {
    'boom, 200 Hz': _LAUNCH,
    'boom with sensors, 200 Hz': (*_LAUNCH, 'sensors:=default'),
}
