"""
Simulation of the crane, alone and with its controller.

The controller acts on sampling instants only, and disturbances begin and end on them, so between
two instants everything is smooth: the motion is integrated from instant to instant and nothing
discontinuous happens inside a step. With the brake open that is DOP853; the viscous brake is stiff
(an eigenvalue of -1e4 1/s) and goes to Radau IIA, which takes no small steps after the first
milliseconds; the rigid brake leaves a pendulum.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from longreach_crane.control import Command, Controller
from longreach_crane.diagnosis import Emergency, sense
from longreach_crane.model import (
    ANGLE,
    ANGULAR_VELOCITY,
    CAR_POSITION,
    CAR_VELOCITY,
    FREE,
    HELD,
    MOTOR_FORCE,
    Constants,
    Inputs,
    load_position,
    stop_car,
)
from longreach_crane.motion import advance_motion
from longreach_crane.parameters import CraneParameters, Machinery, load_machinery
from longreach_crane.scenario import Scenario, cycle_count
from longreach_dynamics.errors import InputError
from longreach_dynamics.machine import JointSample, step_time
from longreach_dynamics.stepping import raise_for

__all__ = [
    'COLUMNS',
    'Crane',
    'CraneState',
    'Decision',
    'Event',
    'Result',
    'events_of',
    'simulate',
    'warm_up',
]

COLUMNS = (
    'time',
    'motor_force',
    'car_position',
    'car_velocity',
    'angle',
    'angular_velocity',
    'load_position',
    'command',
    'brake',
    'emergency',
)
BRAKES = ('viscous', 'rigid')
# A table of so many rows takes 800 MB.
_MOST_CYCLES = 10_000_000
MODELS = ('nonlinear', 'linear')


class CraneState(NamedTuple):
    """State of the crane: continuous part and mode of the car. Never changed in place."""

    x: np.ndarray  # (5,): f_c, x_c, x_c', alpha, alpha'
    car: int = FREE  # FREE, or HELD by the rigid brake


@dataclasses.dataclass(frozen=True)
class Crane:
    """
    The crane as a machine: what :class:`longreach_dynamics.machine.Machine` asks for.

    Parameters
    ----------
    parameters : CraneParameters
    scenario : Scenario, optional
        For the initial state and the disturbances, whose edges must not fall inside an interval
        that is advanced over at once.
    model : 'nonlinear' or 'linear'
    brake : 'viscous' or 'rigid'
    relative, absolute : float
        Tolerances of the integration, of the local error of each component.
    """

    parameters: CraneParameters
    scenario: Scenario = dataclasses.field(default_factory=lambda: Scenario(duration=1.0))
    model: str = 'nonlinear'
    brake: str = 'viscous'
    relative: float = 1e-12
    absolute: float = 1e-13
    constants: Constants = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the two choices and prepare the constants for compiled code."""
        for name, value, allowed in (('model', self.model, MODELS), ('brake', self.brake, BRAKES)):
            if value not in allowed:
                raise InputError(f'{name} = {value!r}, allowed: {" | ".join(allowed)}')
        constants = Constants.of(self.parameters, linear=self.model == 'linear')
        object.__setattr__(self, 'constants', constants)

    def initial_state(self) -> CraneState:
        """Return the scenario's initial state."""
        return CraneState(self.scenario.initial_state.vector())

    def advance(
        self, state: CraneState, command: Command, time: float, duration: float
    ) -> CraneState:
        """
        Return the state ``duration`` [s] after ``time`` [s], with a constant command.

        Raises
        ------
        IntegrationError
            When the state does not stay finite, or the crane is so fast that the interval takes
            too many steps.
        """
        return self._advance_counting(state, command, time, duration)[0]

    def _advance_counting(
        self, state: CraneState, command: Command, time: float, duration: float
    ) -> tuple[CraneState, int]:
        """Return the new state and the number of evaluations of the right-hand side."""
        p = self.constants
        x = state.x
        held = command.brake and self.brake == 'rigid'
        if held and state.car == FREE:
            x = stop_car(x, p)
        inputs = Inputs(
            desired_force=float(command.force),
            disturbance=float(self.scenario.disturbance(time + 0.5 * duration)),
            friction=p.d_brake if command.brake else p.d_c,
            car=HELD if held else FREE,
        )
        x_end, evaluations, _, status = advance_motion(
            float(time), float(duration), x, inputs, p, self.relative, self.absolute
        )
        raise_for(status, time, x)
        return CraneState(x_end, inputs.car), evaluations

    def joint_sample(self, state: CraneState, command: Command) -> JointSample:  # noqa: ARG002
        """Return car_joint [m] with the motor's force [N], and cable_joint [rad]."""
        x = state.x.tolist()
        return JointSample(
            names=('car_joint', 'cable_joint'),
            positions=(x[CAR_POSITION], x[ANGLE]),
            velocities=(x[CAR_VELOCITY], x[ANGULAR_VELOCITY]),
            efforts=(x[MOTOR_FORCE], 0.0),
        )


class Event(NamedTuple):
    """Something that happened at a time [s]."""

    time: float
    name: str


class Decision(NamedTuple):
    """What the controller decided in one cycle."""

    time: float  # [s]
    command: Command
    emergency: Emergency


@dataclasses.dataclass(frozen=True)
class Result:
    """
    A simulation with the controller in the loop.

    Parameters
    ----------
    table : ndarray, shape (cycles + 1, 10)
        One row per control cycle at the instant of sampling, columns as in :data:`COLUMNS`;
        ``command``, ``brake`` and ``emergency`` are what was decided in that cycle.
    events : tuple of Event
        brake_engaged, brake_released, emergency, at the cycle that decided so.
    crossings : tuple of Event
        minimum_position, maximum_position: when the car passed a limit, in either direction,
        located between the cycles.
    evaluations : int
        Of the right-hand side.
    """

    table: np.ndarray
    events: tuple[Event, ...]
    crossings: tuple[Event, ...]
    evaluations: int

    def column(self, name: str) -> np.ndarray:
        """Return one column by its name, shape (cycles + 1,)."""
        return self.table[:, COLUMNS.index(name)]

    def summary(self) -> dict[str, Any]:
        """Return events, extrema over the cycles and final values as plain numbers."""
        last = dict(zip(COLUMNS, self.table[-1].tolist(), strict=True))
        return {
            'events': [event._asdict() for event in self.events],
            'crossings': [event._asdict() for event in self.crossings],
            'extrema': {
                'max_abs_angle': float(np.abs(self.column('angle')).max()),
                'max_car_position': float(self.column('car_position').max()),
                'min_car_position': float(self.column('car_position').min()),
            },
            'final': {
                name: last[name]
                for name in (
                    'time',
                    'car_position',
                    'car_velocity',
                    'angle',
                    'angular_velocity',
                    'load_position',
                )
            },
        }


def simulate(
    machinery: Machinery,
    scenario: Scenario,
    model: str = 'nonlinear',
    brake: str = 'viscous',
    relative: float = 1e-12,
    absolute: float = 1e-13,
) -> Result:
    """
    Simulate crane and controller through a scenario.

    Parameters
    ----------
    machinery : Machinery
        Crane, controller and design, as in a crane file.
    scenario : Scenario
    model : 'nonlinear' or 'linear'
    brake : 'viscous' or 'rigid'
    relative, absolute : float
        Tolerances of the integration. The defaults keep the state of C13R's tasks within 1e-9 of
        the exact solution.

    Raises
    ------
    InputError
        When a time of the scenario is not on a control cycle, or a variant is unknown.
    IntegrationError
        When the state does not stay finite.
    """
    T = machinery.controller.sample_time
    scenario.check_cycles(T)
    cycles = cycle_count(scenario.duration, T)
    if cycles > _MOST_CYCLES:
        raise InputError(
            f'duration = {scenario.duration:g} s is {cycles:.3g} cycles,'
            f' allowed: {_MOST_CYCLES} in one table; split the scenario'
        )
    crane = Crane(machinery.crane, scenario, model, brake, relative, absolute)
    controller = Controller.of(machinery, scenario.diagnosis)
    state, control = crane.initial_state(), controller.initial_state()
    table = np.empty((cycles + 1, len(COLUMNS)))
    decisions: list[Decision] = []
    crossings: list[Event] = []
    evaluations = 0
    set_points = _set_points(scenario, cycles, T)
    for cycle in range(cycles + 1):
        time = step_time(cycle, T)
        sample = sense(state.x[CAR_POSITION], machinery.crane)
        control = controller.cycle(control, sample, set_points[cycle])
        decisions.append(Decision(time, control.command, control.emergency))
        table[cycle, 0] = time
        table[cycle, 1:6] = state.x
        table[cycle, 7:] = (*control.command, control.emergency is not Emergency.NONE)
        if cycle < cycles:
            after, count = crane._advance_counting(state, control.command, time, T)
            evaluations += count
            crossings += _crossings(crane, state, after, control.command, time, T)
            state = after
    table[:, 6] = load_position(table[:, 1:6], crane.constants)
    return Result(table, events_of(decisions), tuple(crossings), evaluations)


def _set_points(scenario: Scenario, cycles: int, sample_time: float) -> np.ndarray:
    """Return the set point of every cycle [m], shape (cycles + 1,)."""
    positions = np.zeros(cycles + 1)
    for point in scenario.set_points:
        positions[cycle_count(point.time, sample_time) :] = point.car_position
    return positions


def events_of(decisions: Iterable[Decision]) -> tuple[Event, ...]:
    """
    Return what changed from each cycle's decision to the next.

    Parameters
    ----------
    decisions : iterable of Decision
        In the order of time.
    """
    events = []
    before = Decision(0.0, Command(), Emergency.NONE)
    for now in decisions:
        if now.emergency and not before.emergency:
            events.append(Event(now.time, 'emergency'))
        if now.command.brake and not before.command.brake:
            events.append(Event(now.time, 'brake_engaged'))
        if before.command.brake and not now.command.brake:
            events.append(Event(now.time, 'brake_released'))
        before = now
    return tuple(events)


def _crossings(
    crane: Crane,
    before: CraneState,
    after: CraneState,
    command: Command,
    time: float,
    duration: float,
) -> list[Event]:
    """Return when the car passed one of its limits within an interval, located to 1e-12 s."""
    p = crane.parameters
    # Twice the larger end's travel bounds where the car can have been in so short a time.
    reach = 2.0 * duration * max(abs(before.x[CAR_VELOCITY]), abs(after.x[CAR_VELOCITY]))
    lowest = min(before.x[CAR_POSITION], after.x[CAR_POSITION]) - reach
    highest = max(before.x[CAR_POSITION], after.x[CAR_POSITION]) + reach
    if p.minimum_position <= lowest and highest <= p.maximum_position:
        return []
    # Only here: SciPy's optimisers would add a quarter of a second to the start of every node.
    from scipy.optimize import brentq

    def at(instant: float) -> np.ndarray:
        if instant <= 0.0:
            return before.x
        return crane.advance(before, command, time, instant).x

    instants = [0.0, duration]
    if before.x[CAR_VELOCITY] * after.x[CAR_VELOCITY] < 0.0:
        # A turning point inside may lie beyond a limit that both ends keep.
        turn = brentq(lambda s: at(s)[CAR_VELOCITY], 0.0, duration, xtol=1e-12)
        instants.insert(1, turn)
    positions = [at(instant)[CAR_POSITION] for instant in instants]
    found = []
    for name in ('minimum_position', 'maximum_position'):
        limit = getattr(p, name)
        sides = [p < limit if name == 'minimum_position' else p > limit for p in positions]
        for i in range(len(instants) - 1):
            if sides[i] != sides[i + 1]:
                root = brentq(
                    lambda s, limit=limit: at(s)[CAR_POSITION] - limit,
                    instants[i],
                    instants[i + 1],
                    xtol=1e-12,
                )
                found.append(Event(time + root, name))
    return sorted(found)


def warm_up() -> None:
    """Compile the kernels, or load them from the cache."""
    crane = Crane(load_machinery().crane)
    crane.advance(crane.initial_state(), Command(1.0, False), 0.0, 0.01)
