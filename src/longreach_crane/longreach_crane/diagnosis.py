"""
The crane's sensors and the diagnosis that latches the emergency mode.

C13R table 2 and section 2, "Diagnosis". Emergency mode is entered when the car's position or a
stop switch tells that the car has left its permitted range, and, beyond the paper, when no valid
sample has come for too long. It latches.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import NamedTuple

from longreach_crane.parameters import ControllerParameters, CraneParameters

__all__ = [
    'Emergency',
    'Sample',
    'is_permitted',
    'is_switched',
    'is_valid',
    'position_emergency',
    'sense',
    'silence_emergency',
]


class Emergency(IntEnum):
    """Why the emergency mode was entered; the numbers are those of the message CraneStatus."""

    NONE = 0
    POSITION_LIMIT = 1
    SENSOR_TIMEOUT = 2


class Sample(NamedTuple):
    """What the three sensors report."""

    car_position: float  # PosCar [m]
    below_minimum: bool  # SwPosCarMin
    above_maximum: bool  # SwPosCarMax


def sense(car_position: float, crane: CraneParameters) -> Sample:
    """Return what the sensors report of a car at ``car_position`` [m]."""
    return Sample(
        float(car_position),
        bool(car_position < crane.minimum_position),
        bool(car_position > crane.maximum_position),
    )


def is_valid(sample: Sample) -> bool:
    """Tell whether a sample may reach the observer: its position is a finite number."""
    return math.isfinite(sample.car_position)


def silence_emergency(silent_cycles: int, parameters: ControllerParameters) -> Emergency:
    """Return the emergency that this many cycles in a row without a valid sample call for."""
    # A millionth of a cycle more, so that the rounding of a product decides nothing.
    silence = (silent_cycles - 1e-6) * parameters.sample_time
    if silence > parameters.sensor_timeout:
        return Emergency.SENSOR_TIMEOUT
    return Emergency.NONE


def is_switched(sample: Sample) -> bool:
    """Tell whether a stop switch says that the car is beyond a limit."""
    return sample.below_minimum or sample.above_maximum


def is_permitted(car_position: float, crane: CraneParameters) -> bool:
    """Tell whether a car position [m] lies within the limits."""
    return crane.minimum_position <= car_position <= crane.maximum_position


def position_emergency(sample: Sample, crane: CraneParameters) -> Emergency:
    """Return the emergency that a valid sample calls for; switches and position each suffice."""
    if is_switched(sample) or not is_permitted(sample.car_position, crane):
        return Emergency.POSITION_LIMIT
    return Emergency.NONE
