"""
Sensors with bias, drift, noise, quantisation and a rate of their own.

A sensor shows

    round((truth + bias + drift T + noise) / step) step,

with the deviation T of the temperature from that of its calibration,

    T(t) = offset + amplitude sin(2 pi t / period).

The noise of a sensor at a sample is a function of seed, sensor and the sample's number alone
(Philox, a counter-based generator), so that runs that are paused, reset or stepped repeat it.
Rates are whole divisors of the plant's. Nothing is filtered.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, quantity


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


class SensorGroup:
    """
    The sensors of one kind on a machine: ``count`` of them, ``name`` for errors.

    ``key``: seed of the noise, and a number by which this kind's noise differs from that of
    others; ``sample_rate`` of the plant [Hz]. InputError when the rate is no whole divisor of the
    plant's, or the number of biases or drifts is not that of the sensors.
    """

    def __init__(
        self, name: str, kind: SensorKind, count: int, key: tuple[int, int], sample_rate: float
    ) -> None:
        self._every = _divisor(name, kind.rate, sample_rate)
        self._noise, self._step = kind.noise, kind.step
        # One generator, set to the number of each sample: a new one takes five times as long.
        bits = np.random.Philox(key=np.array(key, dtype=np.uint64))
        self._bits, self._state = bits, bits.state
        self._random = np.random.Generator(bits)
        self._bias = for_each(f'{name}.bias', kind.bias, count)
        self._drift = for_each(f'{name}.drift', kind.drift, count)

    @property
    def every(self) -> int:
        """Number of samples of the plant from one reading to the next."""
        return self._every

    def due(self, sample: int) -> bool:
        """Return whether these sensors are read at a sample of the plant, counted from 0."""
        return sample % self._every == 0

    def show(self, truth: np.ndarray, warmth: float, sample: int) -> np.ndarray:
        """Return readings (count,) of true values; warmth [K]; sample: of the plant, from 0."""
        # The number of the sample counts blocks that one reading never uses up.
        self._state['state']['counter'][1] = sample
        self._bits.state = self._state
        return self._shown(truth, self._bias + self._drift * warmth, self._random)

    def show_many(
        self, truth: np.ndarray, warmth: np.ndarray, random: np.random.Generator
    ) -> np.ndarray:
        """Return readings (rows, count) at many samples at once, with noise of ``random``."""
        return self._shown(truth, self._bias + self._drift * warmth[:, None], random)

    def _shown(
        self, truth: np.ndarray, error: np.ndarray, random: np.random.Generator
    ) -> np.ndarray:
        """Return readings for true values and constant errors of the same shape."""
        shown: np.ndarray = truth + error
        if self._noise:
            shown += self._noise * random.standard_normal(shown.shape)
        if self._step:
            shown = np.asarray(np.round(shown / self._step) * self._step)
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


def for_each(name: str, values: tuple[float, ...], count: int) -> np.ndarray:
    """Return a value for each of the sensors, shape (count,)."""
    if len(values) not in (0, 1, count):
        raise InputError(
            f'{name} has {len(values)} values, allowed: none, 1 for all, or {count}, one for each'
        )
    return np.broadcast_to(np.array(values or (0.0,)), (count,)).copy()
