"""Runs of the crane as tables: the observed quantities, and summaries of runs."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from longreach_crane.model import ANGLE, CAR_POSITION, Constants, load_position
from longreach_crane.parameters import CraneParameters
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
