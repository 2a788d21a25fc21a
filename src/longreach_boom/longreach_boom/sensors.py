"""
The sensors of Henikl et al. (2015), section 4.1, on a simulated boom, and inertial ones.

Inclination sensors at both ends of each beam, two pressure sensors and an incremental encoder at
each cylinder, a strain gauge on each beam; beyond the paper, a gyroscope and an accelerometer at
the tip of each beam. Their errors are described in :mod:`longreach_machine.sensors`.
Acceleration has no effect on inclination sensors.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection
from pathlib import Path

import numpy as np

from longreach_boom.kinematics import frames_of, tip_angles
from longreach_boom.model import boom_bases, constants_of, row_count
from longreach_boom.motion import evaluate
from longreach_boom.parameters import BoomParameters
from longreach_boom.state import BoomState, StateParts, piston_positions, truck_of
from longreach_boom.strain import strains
from longreach_dynamics.errors import InputError, check_within
from longreach_dynamics.parameters import Parameters, load, quantity
from longreach_dynamics.resources import data_directory
from longreach_machine.sensors import SensorGroup, SensorKind, TemperatureProfile, for_each

KINDS = ('inclination', 'pressure', 'encoder', 'strain', 'gyroscope', 'accelerometer')
# Tolerance of whole numbers of samples.
_WHOLE = 1e-6
_INSTALLED = {'default': 'sensors.yaml', 'typical': 'sensors_typical.yaml'}
# Beams for which the installed files have values.
_BEAMS = 4
# Time over which velocities are differenced along the motion [s].
_APART = 1e-5


@dataclasses.dataclass(frozen=True)
class SensorParameters(Parameters):
    """Contents of a sensor file. Of pairs, all of the first kind precede all of the second."""

    # A message is not from the future.
    relations = ('jitter <= delay',)

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


def tip_rates(boom: BoomParameters, state: BoomState) -> np.ndarray:
    """Return the rates of turn of the beams' tips (N,) [rad/s], positive lifts."""
    turning, _ = tip_angles(boom, StateParts.of(state.y, boom).v)
    return np.asarray(truck_of(state.y, boom)[3] + turning)


def tip_accelerations(
    boom: BoomParameters,
    state: BoomState,
    friction: bool = True,
    mounting: np.ndarray | float = 0.0,
) -> np.ndarray:
    """Return acceleration less gravity of the tips (N, 2) [m/s^2], along and across."""
    constants = constants_of(boom, state.loads, friction)
    if state.forces is not None:
        constants = constants.pulled(state.forces)
    rows = row_count(constants)
    dy = np.empty(state.y.size)
    spools = np.zeros(boom.size)
    evaluate(state.y, state.modes, spools, constants, np.empty((rows, rows)), np.empty(rows), dy)
    ahead, behind = (
        np.array([frame.origin_rate for frame in frames_of(boom, y).frames[1:]])
        for y in (state.y + _APART * dy, state.y - _APART * dy)
    )
    felt = (ahead - behind) / (2.0 * _APART) + 1j * boom.gravity
    turned, _ = tip_angles(boom, StateParts.of(state.y, boom).q)
    seen = felt * np.exp(-1j * (truck_of(state.y, boom)[1] + turned + mounting))
    return np.stack([seen.real, seen.imag], axis=1)


class Sensors:
    """The sensors of a boom at a plant's sample rate [Hz]; InputError where numbers do not fit."""

    def __init__(
        self,
        boom: BoomParameters,
        parameters: SensorParameters,
        sample_rate: float,
        friction: bool = True,
    ) -> None:
        check_within('sample_rate', sample_rate, '(0, inf) Hz')
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
        self._rate = sample_rate
        N = boom.size
        counts = (2 * N, 2 * N, N, N, N, 2 * N)
        # The position in this order is a part of the seed of the noise.
        self._groups = {
            name: SensorGroup(name, kind, count, (parameters.seed, index), sample_rate)
            for index, (name, count) in enumerate(zip(KINDS, counts, strict=True))
            if (kind := getattr(parameters, name))
        }
        self._mounting = for_each('mounting', parameters.mounting, N)
        constants, bases = constants_of(boom), boom_bases(boom)
        self._constants = constants
        self._root_slope = np.stack([basis.at(0.0, 1) for basis in bases])

    def read(
        self, state: BoomState, sample: int, wanted: Collection[str] = KINDS
    ) -> dict[str, np.ndarray]:
        """Return the readings of those KINDS that have one at a sample, at sample 0 of all."""
        boom, N = self._boom, self._boom.size
        parts, warmth = StateParts.of(state.y, boom), self._temperature.at(sample / self._rate)
        truths: dict[str, Callable[[], np.ndarray]] = {
            'inclination': lambda: self._inclinations(state, parts.q),
            'pressure': lambda: np.concatenate([parts.head_pressures, parts.rod_pressures]),
            'encoder': lambda: piston_positions(parts.q[:N], self._constants),
            'strain': lambda: strains(boom, state, self._friction),
            'gyroscope': lambda: tip_rates(boom, state),
            'accelerometer': lambda: tip_accelerations(
                boom, state, self._friction, self._mounting
            ).T.ravel(),
        }
        return {
            name: group.show(truths[name](), warmth, sample)
            for name, group in self._groups.items()
            if name in wanted and group.due(sample)
        }

    def _inclinations(self, state: BoomState, q: np.ndarray) -> np.ndarray:
        """Return the angles of all roots and all tips (2 N,) [rad], Henikl 2015, (39)."""
        ends, slopes = tip_angles(self._boom, q)
        h = np.reshape(q[self._boom.size :], (-1, self._boom.size))
        bent = np.sum(self._root_slope * h.T, axis=1)
        angles = np.concatenate([ends - slopes + bent, ends])
        return np.asarray(truck_of(state.y, self._boom)[1] + angles)
