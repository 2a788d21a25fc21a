"""
Benchmark of the crane's tasks: the library and an equivalent program with SciPy.

That program has the same equations, in plain Python with the mass matrix inverted by hand, and the
library's controller; scipy.integrate.solve_ivp integrates between the sampling instants. With the
chosen tolerances all errors are about 1e-9 against the same reference, the library at the tightest
tolerance that floating point allows; the table has the errors.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from bench_table import Row, Section, measure
from scipy.integrate import solve_ivp

from longreach_crane.c13r import DISTURBANCES, task_scenario
from longreach_crane.control import Controller, sense
from longreach_crane.machine import Command, Crane, CraneState
from longreach_crane.parameters import CraneParameters, load_machinery
from longreach_crane.scenario import Disturbance, Scenario
from longreach_crane.simulation import simulate

# Methods with tolerances for errors of 1e-9, and largest number of repetitions.
TASK_B = (('RK45', 3e-9, 3), ('LSODA', 1e-11, 3), ('Radau', 1e-5, 2))
TASK_A = (('DOP853', 3e-12, 5), ('LSODA', 1e-12, 5), ('Radau', 3e-10, 2))
TASK_A_LIBRARY = 1e-12
# Task A: forces change at these instants [s] only.
EDGES = (0.0, 4.0, 7.0, 15.0, 2000.0)

Advance = Callable[[np.ndarray, Command, float, float], np.ndarray]


class Inputs(NamedTuple):
    """Quantities that are constant between sampling instants."""

    force: float  # desired force of the motor [N]
    disturbance: float  # on the load [N]
    friction: float  # of the car [kg/s]


def right_hand_side(crane: CraneParameters) -> Callable[..., np.ndarray]:
    """Return the crane's equations of motion as a user would write them for solve_ivp."""
    m_c, m_l, r, g = crane.car_mass, crane.load_mass, crane.cable_length, crane.gravity
    d_l, rate = crane.load_friction, crane.motor_rate

    def derivative(_: float, x: np.ndarray, u: Inputs) -> np.ndarray:
        force, _, v, angle, omega = x.tolist()
        sine, cosine = math.sin(angle), math.cos(angle)
        on_car = force + u.disturbance - u.friction * v + m_l * r * sine * omega**2
        on_car -= d_l * (v + r * cosine * omega)
        on_cable = -m_l * g * sine + u.disturbance * cosine - d_l * (cosine * v + r * omega)
        on_cable *= r
        m11, m12, m22 = m_c + m_l, m_l * r * cosine, m_l * r * r
        determinant = m11 * m22 - m12 * m12
        return np.array(
            [
                rate * (u.force - force),
                v,
                (m22 * on_car - m12 * on_cable) / determinant,
                omega,
                (m11 * on_cable - m12 * on_car) / determinant,
            ]
        )

    return derivative


def task_b(quick: bool) -> list[Row]:
    """Task B, 60 s with 6000 control cycles: the whole loop, and the motion in it alone."""
    machinery = load_machinery()
    scenario = task_scenario('b')
    if quick:
        scenario = scenario.replace(duration=20.0)
    crane = machinery.crane
    reference = simulate(machinery, scenario, relative=1e-14, absolute=1e-15).table[:, 1:6]
    machine = Crane(crane, scenario)

    def by_library(x: np.ndarray, command: Command, start: float, span: float) -> np.ndarray:
        return machine.advance(CraneState(x), command, start, span).x

    def run(advance: Advance) -> tuple[np.ndarray, float]:
        """Return the states at the sampling instants and the time spent in ``advance`` [s]."""
        T = machinery.controller.sample_time
        cycles = round(scenario.duration / T)
        controller = Controller.of(machinery, scenario.diagnosis)
        control = controller.initial_state()
        states = np.zeros((cycles + 1, 5))
        moving = 0.0
        set_points = [scenario.set_point(cycle, T) for cycle in range(cycles)]
        for cycle in range(cycles):
            sample = sense(states[cycle, 1], crane)
            control = controller.cycle(control, sample, set_points[cycle])
            before = time.perf_counter()
            states[cycle + 1] = advance(states[cycle], control.command, cycle * T, T)
            moving += time.perf_counter() - before
        return states, moving

    def with_scipy(method: str, tolerance: float) -> Advance:
        derivative = right_hand_side(crane)

        def advance(x: np.ndarray, command: Command, start: float, span: float) -> np.ndarray:
            friction = crane.brake_friction if command.brake else crane.car_friction
            inputs = Inputs(command.force, scenario.disturbance(start + 0.5 * span), friction)
            solution = solve_ivp(
                derivative,
                (start, start + span),
                x,
                method=method,
                rtol=tolerance,
                atol=0.1 * tolerance,
                args=(inputs,),
            )
            return np.asarray(solution.y[:, -1])

        return advance

    def row(name: str, advance: Advance, repeats: int) -> Row:
        motions: list[float] = []

        def once() -> np.ndarray:
            states, moving = run(advance)
            motions.append(moving)
            return states

        # What a first call loads or compiles is no part of the run.
        for brake in (False, True):
            advance(np.zeros(5), Command(1.0, brake), 0.0, 0.01)
        times, states = measure(once, 1 if quick else repeats, warm=False)
        # Positions [m], velocities [m/s] and angles [rad]; the motor's force is in other units.
        error = float(np.abs(states[:, 1:] - reference[:, 1:]).max())
        return Row(name, times, error=error, part=tuple(motions))

    rows = [row('library, DOP853 and Radau IIA', by_library, 5)]
    for method, tolerance, repeats in TASK_B:
        name = f'solve_ivp {method}, rtol {tolerance:.0e}'
        rows.append(row(name, with_scipy(method, tolerance), repeats))
    return rows


def task_a(quick: bool) -> list[Row]:
    """Task A, nonlinear, 2000 s without controller, in four smooth intervals."""
    crane = load_machinery().crane
    force = DISTURBANCES[0]
    disturbed = Disturbance(EDGES[1], EDGES[2] - EDGES[1], force)
    scenario = Scenario(duration=EDGES[-1], disturbances=(disturbed,))
    derivative = right_hand_side(crane)

    def motor(start: float) -> float:
        return 160.0 if start < EDGES[3] else 0.0

    def by_library(relative: float, absolute: float) -> float:
        machine = Crane(crane, scenario, relative=relative, absolute=absolute)
        state = machine.initial_state()
        for start, end in itertools.pairwise(EDGES):
            state = machine.advance(state, Command(motor(start), False), start, end - start)
        return load_position(state.x)

    def by_scipy(method: str, tolerance: float, edges: tuple[float, ...] = EDGES) -> float:
        x = np.zeros(5)
        for start, end in itertools.pairwise(edges):
            disturbance = force if start == EDGES[1] else 0.0
            inputs = Inputs(motor(start), disturbance, crane.car_friction)
            x = solve_ivp(
                derivative,
                (start, end),
                x,
                method=method,
                rtol=tolerance,
                atol=tolerance,
                args=(inputs,),
            ).y[:, -1]
        return load_position(x)

    def load_position(x: np.ndarray) -> float:
        return float(x[1] + crane.cable_length * math.sin(x[3]))

    reference = by_library(1e-14, 1e-15)
    tolerance = TASK_A_LIBRARY
    times, value = measure(lambda: by_library(tolerance, 10.0 * tolerance), 5 if quick else 20)
    rows = [Row(f'library DOP853, rtol {tolerance:.0e}', times, error=abs(value - reference))]
    for method, tolerance, repeats in TASK_A:
        # What a first call loads is no part of the run.
        by_scipy(method, tolerance, (0.0, 0.1))
        times, value = measure(
            lambda m=method, t=tolerance: by_scipy(m, t),  # type: ignore[misc]
            1 if quick else repeats,
            warm=False,
        )
        name = f'solve_ivp {method}, rtol {tolerance:.0e}'
        rows.append(Row(name, times, error=abs(value - reference)))
    return rows


SECTIONS = {
    'a': Section('Task B, closed loop, each within about 1e-9', task_b, 'motion'),
    'b': Section('Task A, nonlinear, each within about 1e-9 m', task_a),
}
