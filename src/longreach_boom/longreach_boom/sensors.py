"""
The sensors of Henikl et al. (2015), section 4.1, on a simulated boom, and inertial ones.

Inclination sensors at both ends of each beam, two pressure sensors and an incremental encoder at
each cylinder, a strain gauge on each beam; beyond the paper, a gyroscope and an accelerometer at
the tip of each beam. Their errors are described in :mod:`longreach_dynamics.sensors`.
Acceleration has no effect on inclination sensors.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

import numpy as np

from longreach_boom.imu import tip_accelerations, tip_rates
from longreach_boom.kinematics import tip_angles
from longreach_boom.model import boom_bases, constants_of
from longreach_boom.parameters import BoomParameters
from longreach_boom.state import BoomState, StateParts, piston_positions, truck_of
from longreach_boom.strain import strains
from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, load, quantity
from longreach_dynamics.resources import data_directory
from longreach_dynamics.sensors import SensorGroup, SensorKind, TemperatureProfile

KINDS = ('inclination', 'pressure', 'encoder', 'strain', 'gyroscope', 'accelerometer')
# Tolerance of whole numbers of samples.
_WHOLE = 1e-6
_INSTALLED = {'default': 'sensors.yaml', 'typical': 'sensors_typical.yaml'}
# Beams for which the installed files have values.
_BEAMS = 4


@dataclasses.dataclass(frozen=True)
class SensorParameters(Parameters):
    """Contents of a sensor file. Of pairs, all of the first kind precede all of the second."""

    seed: int = quantity('seed of all noise', '', at_least=0, at_most=2**32 - 1)
    temperature: TemperatureProfile = quantity('temperature relative to the calibration')
    inclination: SensorKind = quantity('inclination sensors [rad]: at all roots, at all tips')
    pressure: SensorKind = quantity('pressure sensors [Pa]: of all head sides, of all rod sides')
    encoder: SensorKind = quantity('encoders of the pistons [m]')
    strain: SensorKind = quantity('strain gauges; the boom file has gains and biases')
    gyroscope: SensorKind | None = quantity(
        "gyroscopes at the beams' tips [rad/s]; left out: none", default=None
    )
    accelerometer: SensorKind | None = quantity(
        'accelerometers there [m/s^2]: all along, all across the beam; left out: none',
        default=None,
    )
    mounting: tuple[float, ...] = quantity(
        'angle of the axes of accelerometers to their beams: none, one for all, or one for each',
        'rad',
        at_least=-math.pi,
        at_most=math.pi,
        default=(),
    )
    delay: float = quantity(
        'from a reading to its message, of all sensors, in whole samples of the plant; stamps are'
        ' those of the readings',
        's',
        at_least=0.0,
        at_most=10.0,
        default=0.0,
    )
    jitter: float = quantity(
        'by how much that varies, uniformly; no message overtakes another',
        's',
        at_least=0.0,
        at_most=10.0,
        default=0.0,
    )

    def check(self) -> None:
        """Raise InputError for messages from the future."""
        if self.jitter > self.delay:
            raise InputError(
                f'jitter = {self.jitter} s, allowed: up to the delay of {self.delay} s'
            )


class SensorReadings(NamedTuple):
    """Readings of the sensors at one sample; None for sensors without a reading at it."""

    inclination_root: np.ndarray | None  # (N,) of the inner ends of the beams [rad]
    inclination_tip: np.ndarray | None  # (N,) of the outer ends [rad]
    head_pressures: np.ndarray | None  # (N,) p_1 [Pa]
    rod_pressures: np.ndarray | None  # (N,) p_2 [Pa]
    encoders: np.ndarray | None  # (N,) piston positions [m]
    strains: np.ndarray | None  # (N,)
    gyroscopes: np.ndarray | None = None  # (N,) at the tips, positive lifts [rad/s]
    accelerations: np.ndarray | None = None  # (2 N,) along, then across the beams [m/s^2]


def default_file() -> Path:
    """Return the sensor file that is installed with this package: ideal sensors."""
    return data_directory('longreach_boom') / 'config' / 'sensors.yaml'


def load_sensors(file: str | Path | None = None, beams: int = _BEAMS) -> SensorParameters:
    """
    Read a sensor file; raises the errors of ``load``.

    ``default``, also by default, and ``typical`` are the installed ones: ideal sensors, and those
    of a usual machine. For another number of ``beams`` than four, ``typical`` has the values of
    the first beams, or begins with them again.
    """
    name = _INSTALLED.get(str(file or 'default'))
    if not name:
        return load(SensorParameters, str(file))
    found = load(SensorParameters, default_file().with_name(name))
    which = np.arange(beams) % _BEAMS

    def fitting(values: tuple[float, ...]) -> tuple[float, ...]:
        if len(values) < _BEAMS:
            return values
        return tuple(np.reshape(values, (-1, _BEAMS))[:, which].ravel().tolist())

    kinds = {
        name: kind.replace(bias=fitting(kind.bias), drift=fitting(kind.drift))
        for name, kind in vars(found).items()
        if isinstance(kind, SensorKind)
    }
    return found.replace(mounting=fitting(found.mounting), **kinds)


class Sensors:
    """The sensors of a boom at a plant's sample rate [Hz]; InputError where numbers do not fit."""

    def __init__(
        self,
        boom: BoomParameters,
        parameters: SensorParameters,
        sample_rate: float,
        friction: bool = True,
    ) -> None:
        if not 0.0 < sample_rate < math.inf:
            raise InputError(f'sample_rate = {sample_rate} Hz, allowed: (0, inf) Hz')
        for name in ('delay', 'jitter'):
            value = getattr(parameters, name)
            samples = value * sample_rate
            if abs(samples - round(samples)) > _WHOLE * max(1.0, samples):
                raise InputError(
                    f'{name} = {value:g} s, allowed at {sample_rate:g} samples per second: whole'
                    f' samples of {1.0 / sample_rate:g} s; change it or publish_rate'
                )
        self._boom, self._friction = boom, friction
        self._temperature = parameters.temperature
        self._sample_rate = sample_rate
        N = boom.size
        counts = (2 * N, 2 * N, N, N, N, 2 * N)
        # The position in this order is a part of the seed of the noise.
        self._groups = {
            name: SensorGroup(name, kind, count, (parameters.seed, index), sample_rate)
            for index, (name, count) in enumerate(zip(KINDS, counts, strict=True))
            if (kind := getattr(parameters, name))
        }
        if len(parameters.mounting) not in (0, 1, N):
            raise InputError(
                f'mounting has {len(parameters.mounting)} values, allowed: none, 1 for all, or {N}'
            )
        self._mounting = np.broadcast_to(np.array(parameters.mounting or (0.0,)), (N,))
        constants, bases = constants_of(boom), boom_bases(boom)
        self._constants = constants
        self._root_slope = np.stack([basis.at(0.0, 1) for basis in bases])

    def read(
        self, state: BoomState, sample: int, wanted: Collection[str] = KINDS
    ) -> SensorReadings:
        """Return readings of some KINDS at a sample of the plant; at sample 0 each has one."""
        N = self._boom.size
        due = {n: one for n, one in self._groups.items() if n in wanted and one.due(sample)}
        parts = StateParts.of(state.y, self._boom)
        warmth = self._temperature.at(sample / self._sample_rate)
        roots = tips = heads = rods = encoders = gauges = None
        if group := due.get('inclination'):
            # Henikl 2015, (39).
            ends, slopes = tip_angles(self._boom, parts.q)
            bent = np.sum(self._root_slope * np.reshape(parts.q[N:], (-1, N)).T, axis=1)
            angles = np.concatenate([ends - slopes + bent, ends])
            shown = group.show(truck_of(state.y, self._boom)[1] + angles, warmth, sample)
            roots, tips = shown[:N], shown[N:]
        if group := due.get('pressure'):
            pressures = np.concatenate([parts.head_pressures, parts.rod_pressures])
            shown = group.show(pressures, warmth, sample)
            heads, rods = shown[:N], shown[N:]
        if group := due.get('encoder'):
            pistons = piston_positions(parts.q[:N], self._constants)
            encoders = group.show(pistons, warmth, sample)
        if group := due.get('strain'):
            truth = strains(self._boom, state, self._friction)
            gauges = group.show(truth, warmth, sample)
        rates = felt = None
        if group := due.get('gyroscope'):
            rates = group.show(tip_rates(self._boom, state), warmth, sample)
        if group := due.get('accelerometer'):
            axes = tip_accelerations(self._boom, state, self._friction, self._mounting)
            felt = group.show(axes.T.ravel(), warmth, sample)
        return SensorReadings(roots, tips, heads, rods, encoders, gauges, rates, felt)
