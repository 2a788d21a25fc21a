"""
Sensors of the harvester's joints: an encoder of the swing, LVDTs on the pistons.

Controllers get the angles of boom and stick from the positions of the pistons, by the linkages.
Errors are those of :mod:`longreach_machine.sensors`.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, load, quantity
from longreach_harvester.parameters import JOINTS, HarvesterParameters, default_file
from longreach_machine.sensors import SensorGroup, SensorKind, TemperatureProfile

# What a sample of the sensors has: angles [rad], positions of the pistons [m].
MEASURED = (*JOINTS, *(f'{name}_cylinder' for name in JOINTS[1:]))


@dataclasses.dataclass(frozen=True)
class SensorParameters(Parameters):
    """Contents of a sensor file."""

    seed: int = quantity('seed of all noise', '', at_least=0, at_most=2**32 - 1)
    temperature: TemperatureProfile = quantity('temperature relative to the calibration')
    swing: SensorKind = quantity('encoder of the swing [rad]')
    pistons: SensorKind = quantity('LVDTs of boom and stick [m]')


class Readings(NamedTuple):
    """What the sensors show at one sample."""

    angles: np.ndarray  # (3,) of the joints, through the linkages [rad]
    pistons: np.ndarray  # (2,) of boom and stick [m]


def load_sensors(file: str | Path) -> SensorParameters:
    """Read a sensor file; ``typical`` for the installed one; raises the errors of ``load``."""
    if str(file) == 'typical':
        file = default_file('sensors_typical.yaml')
    return load(SensorParameters, file)


class Sensors:
    """The sensors of a harvester, read in the cycles of the controllers, ``rate`` per second."""

    def __init__(
        self, harvester: HarvesterParameters, parameters: SensorParameters, rate: float
    ) -> None:
        for name in ('swing', 'pistons'):
            own = getattr(parameters, name).rate
            if own is not None and abs(own - rate) > 1e-9 * rate:
                raise InputError(
                    f'{name}.rate = {own:g} Hz, allowed: null, or {rate:g} Hz, as controllers need'
                    ' a reading in each cycle'
                )
        self._temperature, self._rate = parameters.temperature, rate
        self._linkages = [a.linkage for a in harvester.actuators[1:]]
        self._swing = SensorGroup('swing', parameters.swing, 1, (parameters.seed, 0), rate)
        self._pistons = SensorGroup('pistons', parameters.pistons, 2, (parameters.seed, 1), rate)

    def read(self, angles: np.ndarray, sample: int) -> Readings:
        """Return the readings of true angles (3,) [rad] at a sample, counted from 0."""
        warmth = self._temperature.at(sample / self._rate)
        pairs = zip(self._linkages, angles[1:].tolist(), strict=True)
        truth = np.array([linkage.position(angle) for linkage, angle in pairs])
        pistons = self._pistons.show(truth, warmth, sample)
        shown = [float(self._swing.show(angles[:1], warmth, sample)[0])]
        for linkage, piston in zip(self._linkages, pistons.tolist(), strict=True):
            low, high = (linkage.position(end) for end in linkage.angles_of_rise())
            shown.append(linkage.angle(min(max(piston, low), high)))
        return Readings(np.array(shown), pistons)
