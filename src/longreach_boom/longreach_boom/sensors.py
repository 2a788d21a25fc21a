"""
The sensors of Henikl et al. (2015), section 4.1, on a simulated boom.

Inclination sensors at both ends of each beam, two pressure sensors and an incremental encoder at
each cylinder, a strain gauge on each beam. A sensor shows

    round((truth + bias + drift T + noise) / step) step,

with the deviation T of the temperature from that of its calibration,

    T(t) = offset + amplitude sin(2 pi t / period).

The noise of a sensor at a sample is a function of seed, sensor and the sample's number, of nothing
else: runs that are paused, reset or stepped repeat it. Rates are whole divisors of that of the
plant. Nothing is filtered, and inclination sensors do not feel acceleration.
"""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from longreach_boom.model import boom_bases, constants_of
from longreach_boom.parameters import BoomParameters
from longreach_boom.state import BoomState, StateParts, piston_positions
from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, load, quantity
from longreach_dynamics.resources import share_directory

__all__ = [
    'SensorKind',
    'SensorParameters',
    'SensorReadings',
    'Sensors',
    'TemperatureProfile',
    'default_file',
    'load_sensors',
]


@dataclasses.dataclass(frozen=True)
class TemperatureProfile(Parameters):
    """How much warmer it is than at the sensors' calibration: an offset and a slow sine."""

    offset: float = quantity('constant part', 'K', at_least=-300.0, at_most=1000.0)
    amplitude: float = quantity('amplitude of the sine', 'K', at_least=0.0, at_most=1000.0)
    period: float = quantity('period of the sine', 's', above=0.0)

    def at(self, time: float) -> float:
        """Return the deviation [K] at a time [s]."""
        return self.offset + self.amplitude * math.sin(2.0 * math.pi * time / self.period)


@dataclasses.dataclass(frozen=True)
class SensorKind(Parameters):
    """How the sensors of one kind err, in the unit of what they show: rad, Pa, m or 1."""

    rate: float | None = quantity(
        'readings per second; none: at every sample of the plant', 'Hz', above=0.0, at_most=1e6
    )
    noise: float = quantity('standard deviation of the noise, white', '', at_least=0.0)
    bias: tuple[float, ...] = quantity('constant error: none, one for all, or one for each', '')
    drift: tuple[float, ...] = quantity('error per kelvin: none, one for all, or one for each', '')
    step: float = quantity('quantisation, worth of one count; 0: none', '', at_least=0.0)


@dataclasses.dataclass(frozen=True)
class SensorParameters(Parameters):
    """A whole sensor file. Of pairs, all of the first kind come first, then all of the second."""

    seed: int = quantity('seed of all noise', '', at_least=0, at_most=2**32 - 1)
    temperature: TemperatureProfile = quantity('temperature, less that of the calibration')
    inclination: SensorKind = quantity('inclination sensors [rad]: at all roots, at all tips')
    pressure: SensorKind = quantity('pressure sensors [Pa]: of all head sides, of all rod sides')
    encoder: SensorKind = quantity('encoders of the pistons [m]')
    strain: SensorKind = quantity('strain gauges; the boom file has gains and biases')


class SensorReadings(NamedTuple):
    """What the sensors show at one sample; None for those whose turn it is not."""

    inclination_root: np.ndarray | None  # (N,) of the inner ends of the beams [rad]
    inclination_tip: np.ndarray | None  # (N,) of the outer ends [rad]
    head_pressures: np.ndarray | None  # (N,) p_1 [Pa]
    rod_pressures: np.ndarray | None  # (N,) p_2 [Pa]
    encoders: np.ndarray | None  # (N,) piston positions [m]
    strains: np.ndarray | None  # (N,), Henikl 2015, (28)


def default_file() -> Path:
    """Return the sensor file that is installed with this package: ideal sensors."""
    return share_directory('longreach_boom') / 'config' / 'sensors.yaml'


def load_sensors(file: str | Path | None = None) -> SensorParameters:
    """
    Read a sensor file.

    Parameters
    ----------
    file : path, optional
        The YAML file; that of ideal sensors by default.

    Raises
    ------
    InputError
        With file, key, value and allowed range.
    """
    return load(SensorParameters, default_file() if file is None else file)


class Sensors:
    """
    The sensors of a boom.

    Parameters
    ----------
    boom : BoomParameters
    parameters : SensorParameters
    sample_rate : float
        Of the plant [Hz].

    Raises
    ------
    InputError
        When a rate is no whole divisor of the plant's, or the number of biases or drifts is not
        that of the sensors.
    """

    def __init__(
        self, boom: BoomParameters, parameters: SensorParameters, sample_rate: float
    ) -> None:
        if not 0.0 < sample_rate < math.inf:
            raise InputError(f'sample_rate = {sample_rate} Hz, allowed: (0, inf) Hz')
        self._boom = boom
        self._temperature = parameters.temperature
        self._sample_rate = sample_rate
        N, seed = boom.size, parameters.seed
        kinds = {'inclination': 2 * N, 'pressure': 2 * N, 'encoder': N, 'strain': N}
        # A kind's place in this order is a part of its noise.
        self._inclination, self._pressure, self._encoder, self._strain = (
            _Channels(name, getattr(parameters, name), count, (seed, place), sample_rate)
            for place, (name, count) in enumerate(kinds.items())
        )
        constants, bases = constants_of(boom), boom_bases(boom)
        self._constants = constants
        self._root_slope = np.stack([basis.at(0.0, 1) for basis in bases])
        gauges = [beam.strain_gauge for beam in boom.beams]
        self._gauge_gain = np.stack(
            [g.gain * basis.at(g.position, 2) for g, basis in zip(gauges, bases, strict=True)]
        )
        self._gauge_bias = np.array([g.bias for g in gauges])

    def read(self, state: BoomState, sample: int) -> SensorReadings:
        """
        Return what the sensors show.

        Parameters
        ----------
        state : BoomState
        sample : int
            Number of the plant's sample, from 0 on, at which every sensor has its turn.
        """
        N = self._boom.size
        parts = StateParts.of(state.y, self._boom)
        bending = np.reshape(parts.q[N:], (-1, N)).T
        warmth = self._temperature.at(sample / self._sample_rate)
        roots = tips = heads = rods = encoders = strains = None
        if self._inclination.due(sample):
            shown = self._inclination.show(self._inclinations(parts, bending), warmth, sample)
            roots, tips = shown[:N], shown[N:]
        if self._pressure.due(sample):
            pressures = np.concatenate([parts.head_pressures, parts.rod_pressures])
            shown = self._pressure.show(pressures, warmth, sample)
            heads, rods = shown[:N], shown[N:]
        if self._encoder.due(sample):
            pistons = piston_positions(parts.q[:N], self._constants)
            encoders = self._encoder.show(pistons, warmth, sample)
        if self._strain.due(sample):
            gauges = np.sum(self._gauge_gain * bending, axis=1) + self._gauge_bias
            strains = self._strain.show(gauges, warmth, sample)
        return SensorReadings(roots, tips, heads, rods, encoders, strains)

    def _inclinations(self, parts: StateParts, bending: np.ndarray) -> np.ndarray:
        """
        Return the angles to the horizontal of all roots, then of all tips [rad], shape (2 N,).

        Joint angles and slopes add up, Henikl 2015, (39); they are not wrapped.
        """
        angles = parts.q[: self._boom.size]
        slopes = np.sum(self._constants.tip_slope * bending, axis=1)
        tips = np.cumsum(angles + slopes)
        return np.concatenate([tips - slopes + np.sum(self._root_slope * bending, axis=1), tips])


class _Channels:
    """The sensors of one kind."""

    def __init__(
        self, name: str, kind: SensorKind, count: int, key: tuple[int, int], sample_rate: float
    ) -> None:
        self._every = _divisor(name, kind.rate, sample_rate)
        self._noise, self._step = kind.noise, kind.step
        self._key = np.array(key, dtype=np.uint64)
        self._bias = _for_each(f'{name}.bias', kind.bias, count)
        self._drift = _for_each(f'{name}.drift', kind.drift, count)

    def due(self, sample: int) -> bool:
        """Tell whether a sample is these sensors' turn."""
        return sample % self._every == 0

    def show(self, truth: np.ndarray, warmth: float, sample: int) -> np.ndarray:
        """Return what the sensors make of the truth (count,) at a temperature [K]."""
        shown = truth + (self._bias + self._drift * warmth)
        if self._noise:
            # The number of the sample counts blocks that one reading never uses up.
            counter = np.array([0, sample, 0, 0], dtype=np.uint64)
            bits = np.random.Philox(key=self._key, counter=counter)
            shown += self._noise * np.random.Generator(bits).standard_normal(shown.size)
        if self._step:
            shown = np.round(shown / self._step) * self._step
        return shown


def _divisor(name: str, rate: float | None, sample_rate: float) -> int:
    """Return every how many samples of the plant a sensor is read."""
    if rate is None:
        return 1
    every = max(1, round(sample_rate / rate))
    if abs(every * rate - sample_rate) > 1e-9 * sample_rate:
        raise InputError(
            f'{name}.rate = {rate:g} Hz, allowed: the {sample_rate:g} Hz of the plant over a'
            f' whole number; next one: {sample_rate / every:g} Hz'
        )
    return every


def _for_each(name: str, values: tuple[float, ...], count: int) -> np.ndarray:
    """Return a value for each of the sensors, shape (count,)."""
    if len(values) not in (0, 1, count):
        raise InputError(
            f'{name} has {len(values)} values, allowed: none, 1 for all, or {count}, one for each'
        )
    return np.broadcast_to(np.array(values or (0.0,)), (count,)).copy()
