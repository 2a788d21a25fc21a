"""
Scenarios of a crane: set points and disturbances over time, read from YAML.

Every time must be a multiple of the control cycle; otherwise rounding would decide in which cycle
a change takes effect.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from longreach_dynamics.parameters import Parameters, load, quantity
from longreach_machine.machine import check_order
from longreach_machine.scenarios import check_times


@dataclasses.dataclass(frozen=True)
class SetPoint(Parameters):
    """A desired car position from a time on."""

    time: float = quantity('start', 's', at_least=0.0, at_most=1e9)
    car_position: float = quantity('desired position of the car', 'm')


@dataclasses.dataclass(frozen=True)
class Disturbance(Parameters):
    """A constant horizontal force on the load; simultaneous ones are added."""

    time: float = quantity('start', 's', at_least=0.0, at_most=1e9)
    duration: float = quantity('length', 's', above=0.0, at_most=1e9)
    force: float = quantity('force on the load, f_d', 'N')


@dataclasses.dataclass(frozen=True)
class InitialState(Parameters):
    """State of the crane at time 0."""

    motor_force: float = quantity('force of the motor, f_c', 'N', default=0.0)
    car_position: float = quantity('position of the car, x_c', 'm', default=0.0)
    car_velocity: float = quantity("velocity of the car, x_c'", 'm/s', default=0.0)
    angle: float = quantity('angle of the cable, alpha', 'rad', default=0.0)
    angular_velocity: float = quantity("alpha'", 'rad/s', default=0.0)

    def vector(self) -> np.ndarray:
        """Return the state as an array, shape (5,)."""
        return np.array(dataclasses.astuple(self), dtype=float)


@dataclasses.dataclass(frozen=True)
class Scenario(Parameters):
    """Contents of a scenario file."""

    duration: float = quantity('length of the simulation', 's', above=0.0, at_most=1e9)
    set_points: tuple[SetPoint, ...] = quantity('desired positions', default=())
    disturbances: tuple[Disturbance, ...] = quantity('forces on the load', default=())
    initial_state: InitialState = quantity('state at time 0', default=InitialState())
    diagnosis: bool = quantity('monitor the permitted range of the car', default=True)

    def check(self) -> None:
        """Raise InputError when set points are not in order of time."""
        check_order([point.time for point in self.set_points], 'set_points')

    def check_cycles(self, sample_time: float) -> None:
        """Raise InputError for a time on no control cycle [s]; of the duration a run does that."""
        check_times([p.time for p in self.set_points], sample_time, 'set_points[{}].time')
        for key in ('time', 'duration'):
            times = [getattr(one, key) for one in self.disturbances]
            check_times(times, sample_time, f'disturbances[{{}}].{key}')

    def set_point(self, cycle: int, sample_time: float) -> float:
        """Return the desired car position in a cycle [m]; 0 before the first one."""
        due = [p for p in self.set_points if round(p.time / sample_time) <= cycle]
        return due[-1].car_position if due else 0.0

    def disturbance(self, time: float) -> float:
        """Return the force on the load [N] at a time [s] inside a cycle, away from its ends."""
        return sum(d.force for d in self.disturbances if d.time < time < d.time + d.duration)


def load_scenario(file: str | Path, sample_time: float) -> Scenario:
    """Read a scenario; InputError with the path of what is wrong, or on no control cycle."""
    return load(Scenario, file, check=lambda scenario: scenario.check_cycles(sample_time))
