"""
Parameters of the crane, its digital controller and the controller's design.

The values are in config/crane.yaml. Source of the model: Schiftner, Breitenecker,
Ecker, "Crane with Complex Embedded Control - ARGESIM Benchmark C13R" (2007), tables 1 and 3.
"""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, choice, load, quantity
from longreach_dynamics.resources import data_directory

MATRICES = ('auto', 'corrected', 'as_printed', 'designed')
OUTPUTS = ('same_cycle', 'next_cycle')


@dataclasses.dataclass(frozen=True)
class CraneParameters(Parameters):
    """Car, cable, load, motor, brake and the permitted range of the car."""

    relations = ('minimum_position < maximum_position',)

    car_mass: float = quantity(
        'mass of the car, m_c', 'kg', at_least=1e-3, at_most=1e9, source='table 1'
    )
    load_mass: float = quantity(
        'mass of the load, m_l', 'kg', at_least=1e-3, at_most=1e9, source='table 1'
    )
    cable_length: float = quantity(
        'length of the cable, r', 'm', at_least=1e-2, at_most=1e4, source='table 1'
    )
    gravity: float = quantity('gravity, g', 'm/s^2', above=0.0, at_most=1e3, source='table 1')
    car_friction: float = quantity('friction of the car, d_c', 'kg/s', at_least=0.0, at_most=1e9)
    brake_friction: float = quantity(
        'friction of the car with the brake closed', 'kg/s', above=0.0, at_most=1e9
    )
    load_friction: float = quantity('friction of the load, d_l', 'kg/s', at_least=0.0, at_most=1e9)
    motor_rate: float = quantity(
        'inverse time constant of the motor', '1/s', above=0.0, at_most=1e4
    )
    minimum_position: float = quantity('lowest permitted position of the car', 'm')
    maximum_position: float = quantity('highest permitted position of the car', 'm')


@dataclasses.dataclass(frozen=True)
class ControllerParameters(Parameters):
    """Cycle, observer and regulator variant, limits and brake rule of the digital controller."""

    sample_time: float = quantity('cycle time, T', 's', at_least=1e-5, at_most=10.0)
    matrices: str = choice('matrices of observer and regulator', MATRICES)
    output: str = choice('cycle from which a computed force acts', OUTPUTS)
    maximum_force: float = quantity('saturation of the desired force', 'N', above=0.0)
    brake_condition: float = quantity(
        'desired force below which the brake timer runs', 'N', above=0.0
    )
    steady_time: float = quantity(
        'time below the brake condition after which the brake closes', 's', at_least=0.0
    )
    sensor_timeout: float = quantity(
        'time without a valid sample after which the emergency mode is entered', 's', above=0.0
    )

    @property
    def steady_cycles(self) -> int:
        """Whole cycles within ``steady_time``: the brake closes after more cycles than these."""
        return math.floor(self.steady_time / self.sample_time + 1e-9)


@dataclasses.dataclass(frozen=True)
class DesignParameters(Parameters):
    """Weights of the LQR design and poles of the observer."""

    state_weights: tuple[float, ...] = quantity(
        'LQR weights of motor force, car position and velocity, angle, angular velocity',
        at_least=0.0,
        length=5,
    )
    effort_weight: float = quantity('LQR weight of the desired force', above=0.0)
    observer_poles: tuple[tuple[float, float], ...] = quantity(
        'poles of the observer as [real, imaginary], divided by the frequency of the swing',
        length=5,
    )

    def check(self) -> None:
        """Raise InputError for an unstable pole, or a complex one without its conjugate."""
        for real, imaginary in self.observer_poles:
            if real >= 0.0:
                raise InputError(
                    f'observer_poles has [{real}, {imaginary}], allowed: a negative real part'
                )
            if (real, -imaginary) not in self.observer_poles:
                raise InputError(
                    f'observer_poles has [{real}, {imaginary}] without its conjugate'
                    f' [{real}, {-imaginary}]; add it'
                )


@dataclasses.dataclass(frozen=True)
class Machinery(Parameters):
    """Contents of a crane file: the crane, its controller, and the design parameters."""

    crane: CraneParameters = quantity('the crane')
    controller: ControllerParameters = quantity('the digital controller')
    design: DesignParameters = quantity('weights and poles of the design')


def default_file() -> Path:
    """Return the crane file that is installed with this package: C13R."""
    return data_directory('longreach_crane') / 'config' / 'crane.yaml'


def load_machinery(file: str | Path | None = None) -> Machinery:
    """Read a crane file, the installed one by default; raises the errors of ``load``."""
    return load(Machinery, file or default_file())
