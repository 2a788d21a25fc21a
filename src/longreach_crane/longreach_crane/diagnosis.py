"""
The crane's sensors and the diagnosis that latches the emergency mode.

C13R table 2 and section 2, "Diagnosis". Emergency mode is entered when the position of the car or
a stop switch shows that the car has left its permitted range, and, in addition to the paper, when
no valid sample has been received for too long. It latches.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import NamedTuple

from longreach_crane.parameters import ControllerParameters, CraneParameters


class Emergency(IntEnum):
    """Reason for the emergency mode; the same values as in the message CraneStatus."""

    NONE = 0
    POSITION_LIMIT = 1
    SENSOR_TIMEOUT = 2


class Sample(NamedTuple):
    """Readings of the three sensors."""

    car_position: float  # PosCar [m]
    below_minimum: bool  # SwPosCarMin
    above_maximum: bool  # SwPosCarMax


def sense(car_position: float, crane: CraneParameters) -> Sample:
    """Return the sensor readings for a car at ``car_position`` [m]."""
    return Sample(
        float(car_position),
        bool(car_position < crane.minimum_position),
        bool(car_position > crane.maximum_position),
    )


def is_valid(sample: Sample) -> bool:
    """Return whether the observer can use a sample: its position is finite."""
    return math.isfinite(sample.car_position)


def silence_emergency(silent_cycles: int, parameters: ControllerParameters) -> Emergency:
    """Return the emergency after this many consecutive cycles without a valid sample."""
    # Tolerance of a millionth of a cycle, so that rounding of the product has no effect.
    silence = (silent_cycles - 1e-6) * parameters.sample_time
    if silence > parameters.sensor_timeout:
        return Emergency.SENSOR_TIMEOUT
    return Emergency.NONE


def is_switched(sample: Sample) -> bool:
    """Return whether a stop switch reports that the car is beyond a limit."""
    return sample.below_minimum or sample.above_maximum


def is_permitted(car_position: float, crane: CraneParameters) -> bool:
    """Return whether a car position [m] lies within the limits."""
    return crane.minimum_position <= car_position <= crane.maximum_position


def position_emergency(sample: Sample, crane: CraneParameters) -> Emergency:
    """Return the emergency of a valid sample: a switch or the position alone is sufficient."""
    if is_switched(sample) or not is_permitted(sample.car_position, crane):
        return Emergency.POSITION_LIMIT
    return Emergency.NONE
