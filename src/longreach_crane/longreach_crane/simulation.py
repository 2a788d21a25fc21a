"""
Runs of the crane with its controller as tables: observed quantities, summaries, simulations.

The controller acts only at sampling instants, and disturbances start and end at them. The motion
is integrated from instant to instant, without discontinuities inside an integration.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from longreach_crane.control import Controller, ControllerState, Emergency, sense
from longreach_crane.machine import Command, Crane, CraneState
from longreach_crane.model import (
    ANGLE,
    CAR_POSITION,
    CAR_VELOCITY,
    HELD,
    Constants,
    Inputs,
    load_position,
    right_hand_side,
)
from longreach_crane.parameters import CraneParameters, Machinery
from longreach_crane.scenario import Scenario
from longreach_dynamics.stepping import IntegrationError
from longreach_machine.linear import Signal, SmoothModel
from longreach_machine.machine import Cycle, check_rows, closed_loop, late_events, step_count
from longreach_machine.runs import Column, Columns, Derived, Run, Source

_POSITION, _VELOCITY, _EFFORT = (
    partial(Source, 'joint_states', field) for field in ('position', 'velocity', 'effort')
)
_CAR, _CABLE = 'car_joint', 'cable_joint'
STATE = (
    Column('motor_force', 'N', 'force of the motor, f_c', _EFFORT(_CAR)),
    Column('car_position', 'm', 'position of the car, x_c', _POSITION(_CAR)),
    Column('car_velocity', 'm/s', 'velocity of the car', _VELOCITY(_CAR)),
    Column('angle', 'rad', 'angle of the cable, alpha', _POSITION(_CABLE)),
    Column('angular_velocity', 'rad/s', 'rate of that angle', _VELOCITY(_CABLE)),
)
"""Columns of the state."""
# Quantities of the final state in the summary.
_FINAL = {'time': 's', **{c.name: c.unit for c in STATE[1:]}, 'load_position': 'm'}
# Events with the column that changes, and the sign of the change, in their order within a cycle.
_EVENTS = {
    'emergency': ('emergency', 1.0),
    'brake_engaged': ('brake', 1.0),
    'brake_released': ('brake', -1.0),
}


def columns_of(crane: CraneParameters, model: str = 'nonlinear') -> Columns:
    """Return the columns of a run of a crane: the first five after time are the state."""
    constants = Constants.of(crane, linear=model == 'linear')
    load = Derived((_POSITION(_CAR), _POSITION(_CABLE)), partial(_load, constants))
    return Columns(
        (
            Column('time', 's', 'of the control cycle'),
            *STATE,
            Column('load_position', 'm', 'position of the load, x_l', load),
            Column('command', 'N', 'desired motor force', Source('command', 'force')),
            Column('brake', '', '1 while the brake is closed', Source('command', 'brake')),
            Column('emergency', '', '1 in emergency mode', Source('status', 'emergency_mode')),
            Column('set_point', 'm', 'desired car position', Source('status', 'set_point')),
        )
    )


def _load(constants: Constants, values: np.ndarray) -> np.ndarray:
    """Return the load's position [m] from those of car [m] and cable [rad], (rows, 2)."""
    states = np.zeros((len(values), 5))
    states[:, [CAR_POSITION, ANGLE]] = values
    return np.asarray(load_position(states, constants))


class Event(NamedTuple):
    """An event at a time [s]."""

    time: float
    name: str


@dataclasses.dataclass(frozen=True)
class CraneRun(Run[CraneParameters]):
    """A run of the crane with its controller, a row per control cycle at its sampling."""

    UNITS: ClassVar = {
        'events.time': 's',
        'crossings.time': 's',
        'extrema.max_abs_angle': 'rad',
        'extrema.max_car_position': 'm',
        'extrema.min_car_position': 'm',
        **{f'final.{name}': unit for name, unit in _FINAL.items()},
    }

    crossings: tuple[Event, ...] = ()

    @property
    def events(self) -> tuple[Event, ...]:
        """Return brake_engaged, brake_released and emergency, at the cycle of the decision."""
        found = []
        for order, (column, sign) in enumerate(_EVENTS.values()):
            changes = sign * np.diff(self.column(column), prepend=0.0)
            found += [(row, order) for row in np.flatnonzero(changes > 0.0).tolist()]
        times, names = self.column('time').tolist(), list(_EVENTS)
        return tuple(Event(times[row], names[order]) for row, order in sorted(found))

    def summary(self) -> dict[str, Any]:
        """Return events, extrema over the cycles and final values as Python numbers."""
        position = self.column('car_position')
        return {
            'events': [event._asdict() for event in self.events],
            'crossings': [event._asdict() for event in self.crossings],
            'extrema': {
                'max_abs_angle': float(np.abs(self.column('angle')).max()),
                'max_car_position': float(position.max()),
                'min_car_position': float(position.min()),
            },
            'final': {name: float(self.column(name)[-1]) for name in _FINAL},
        }


def simulate(
    machinery: Machinery,
    scenario: Scenario,
    model: str = 'nonlinear',
    brake: str = 'viscous',
    relative: float = 1e-12,
    absolute: float = 1e-13,
) -> CraneRun:
    """
    Simulate crane and controller through a scenario.

    If the state becomes non-finite, the run ends at the last cycle before, with a message.

    Parameters
    ----------
    machinery : Machinery
        Crane, controller and design, as in a crane file.
    scenario : Scenario
    model, brake, relative, absolute
        As of :class:`longreach_crane.machine.Crane`.

    Raises
    ------
    InputError
        When a time of the scenario is not on a control cycle, or a variant is unknown.
    """
    T, parameters = machinery.controller.sample_time, machinery.crane
    scenario.check_cycles(T)
    cycles = step_count(scenario.duration, T, 'duration')
    crane = Crane(parameters, scenario, model, brake, relative, absolute)
    controller = Controller.of(machinery, scenario.diagnosis)
    columns = columns_of(parameters, model)
    what = f'duration = {scenario.duration:g} s with control cycles of {T:g} s'
    check_rows(cycles + 1, len(columns) + 5, what, 'take a shorter duration')

    def answer(
        control: ControllerState | None, cycle: int, state: CraneState
    ) -> tuple[ControllerState, Command]:
        before = controller.initial_state() if control is None else control
        sample = sense(state.x[CAR_POSITION], parameters)
        control = controller.cycle(before, sample, scenario.set_point(cycle, T))
        return control, control.command

    table, message = np.empty((cycles + 1, len(columns))), ''
    crossings: list[Event] = []
    last: Cycle | None = None
    try:
        for row, cycle in enumerate(closed_loop(crane, answer, cycles, T)):
            emergency = cycle.memory.emergency is not Emergency.NONE
            table[row, 0], table[row, 1:6] = cycle.time, cycle.state.x
            table[row, 7:] = (*cycle.command, emergency, scenario.set_point(row, T))
            if last is not None:
                crossings += _crossings(crane, last, cycle.state, T)
            last = cycle
    except IntegrationError as error:
        message = str(error)
    table = table[: row + 1]
    table[:, 6] = load_position(table[:, 1:6], crane.constants)
    late = late_events(scenario, 'set_points', 'disturbances')
    return CraneRun(parameters, columns, table, tuple(crossings), message=message, late=late)


def _crossings(crane: Crane, before: Cycle, after: CraneState, duration: float) -> list[Event]:
    """Return when the car passed one of its limits within a cycle [s], located to 1e-12 s."""
    if duration * crane.constants.swing > 0.25 * math.pi:
        # In an eighth of a swing the car turns at most once.
        half = 0.5 * duration
        middle = crane.advance(before.state, before.command, before.time, half)
        later = before._replace(time=before.time + half, state=middle)
        return _crossings(crane, before, middle, half) + _crossings(crane, later, after, half)
    p, x = crane.parameters, before.state.x
    # Bound of the car's travel: twice the duration times the larger speed at the two ends.
    reach = 2.0 * duration * max(abs(x[CAR_VELOCITY]), abs(after.x[CAR_VELOCITY]))
    lowest = min(x[CAR_POSITION], after.x[CAR_POSITION]) - reach
    highest = max(x[CAR_POSITION], after.x[CAR_POSITION]) + reach
    if p.minimum_position <= lowest and highest <= p.maximum_position:
        return []
    # Imported here: SciPy's optimisers would add a quarter of a second to the start of every node.
    from scipy.optimize import brentq

    def at(instant: float) -> np.ndarray:
        if not 0.0 < instant < duration:
            return np.asarray(x if instant <= 0.0 else after.x)
        return crane.advance(before.state, before.command, before.time, instant).x

    instants = [0.0, duration]
    if x[CAR_VELOCITY] * after.x[CAR_VELOCITY] < 0.0:
        # A turning point inside the interval may lie beyond a limit although both ends do not.
        turn = brentq(lambda s: at(s)[CAR_VELOCITY], 0.0, duration, xtol=1e-12)
        instants.insert(1, turn)
    found = []
    for name in ('minimum_position', 'maximum_position'):
        limit, sign = getattr(p, name), -1.0 if name == 'minimum_position' else 1.0
        for start, end in itertools.pairwise(instants):
            beyond = [sign * (at(s)[CAR_POSITION] - limit) > 0.0 for s in (start, end)]
            if beyond[0] != beyond[1]:
                root = brentq(lambda s: at(s)[CAR_POSITION] - limit, start, end, xtol=1e-12)  # noqa: B023
                found.append(Event(before.time + root, name))
    return sorted(found)


def smooth_model(x: np.ndarray, inputs: Inputs, constants: Constants) -> SmoothModel:
    """Return the equations near a state x (5,); inputs ``command``, ``disturbance`` [N]."""
    states = tuple(Signal(column.name, column.unit) for column in STATE)

    def rates(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        dx = np.empty(5)
        given = inputs._replace(desired_force=float(u[0]), disturbance=float(u[1]))
        right_hand_side(0.0, x, given, constants, dx)
        return dx

    def observe(x: np.ndarray, _: np.ndarray) -> np.ndarray:
        return np.append(x, load_position(x, constants))

    return SmoothModel(
        states,
        (Signal('command', 'N'), Signal('disturbance', 'N')),
        (*states, Signal('load_position', 'm')),
        x,
        np.array([inputs.desired_force, inputs.disturbance]),
        rates,
        observe,
        ('the brake holds the car',) if inputs.car == HELD else (),
    )
