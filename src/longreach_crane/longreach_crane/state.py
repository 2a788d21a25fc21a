"""State and command of the crane."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from longreach_crane.model import FREE


class Command(NamedTuple):
    """Command of the controller to motor and brake."""

    force: float = 0.0  # f_c^Desired [N]
    brake: bool = False


class CraneState(NamedTuple):
    """State of the crane: continuous part and mode of the car. Never changed in place."""

    x: np.ndarray  # (5,): f_c, x_c, x_c', alpha, alpha'
    car: int = FREE  # FREE, or HELD by the rigid brake
