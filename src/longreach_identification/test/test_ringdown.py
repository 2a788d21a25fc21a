"""Tests of frequencies and damping ratios of free decays."""

import math

import numpy as np
import pytest

from longreach_dynamics.errors import InputError, LongreachError
from longreach_identification.machine import Signal
from longreach_identification.ringdown import ring_down

# f [Hz], zeta; and a complex amplitude in each signal.
MODES = ((0.45, 0.02), (1.31, 0.035), (2.6, 0.05))
SHAPES = {
    'strain': (1.0, 0.5, 0.1),
    'force': (2e5, -1.5e5j, 8e4),
    'marker': (0.3 - 0.1j, 0.05, 0.02j),
}
RATES = {'strain': 200.0, 'force': 100.0, 'marker': 15.0}
NOISE = {'strain': 0.01, 'force': 2e3, 'marker': 2e-3}


def decay(seed, modes=MODES, duration=20.0, noise=1.0, start=2.0):
    """Return signals whose decay begins at ``start``, after another motion."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, shape in SHAPES.items():
        times = np.arange(0.0, start + duration, 1.0 / RATES[name]) + 0.1 * rng.random() / 200.0
        t = times - start
        values = np.full(times.size, 7.0 * NOISE[name])
        for (f, zeta), amplitude in zip(modes, shape, strict=False):
            w = 2.0 * math.pi * f
            rate = complex(-zeta * w, w * math.sqrt(1.0 - zeta**2))
            values += (amplitude * np.exp(rate * t)).real
        values[t < 0.0] = 0.0
        values += noise * NOISE[name] * rng.standard_normal(times.size)
        found[name] = Signal(times, values, np.full(times.size, math.nan))
    return found


def test_modes_are_found_in_signals_of_different_rates_and_units():
    found = ring_down(decay(1), 2.0)
    assert len(found.modes) == 3
    for mode, (f, zeta) in zip(found.modes, MODES, strict=True):
        assert mode.frequency == pytest.approx(f, abs=4.0 * mode.frequency_error)
        assert mode.frequency == pytest.approx(f, rel=0.003)
        assert mode.damping_ratio == pytest.approx(zeta, abs=4.0 * mode.damping_ratio_error)
        assert mode.damping_ratio == pytest.approx(zeta, rel=0.15)
    assert min(found.variance_explained.values()) > 0.98


def test_amplitudes_are_those_at_the_start():
    found = ring_down(decay(2, noise=0.1), 2.0)
    ratio = found.modes[0].amplitudes['marker'] / found.modes[0].amplitudes['strain']
    true = SHAPES['marker'][0] / SHAPES['strain'][0]
    assert np.angle(ratio) == pytest.approx(np.angle(true), abs=0.02)


def test_intervals_hold():
    inside, total = 0, 0
    for seed in range(12):
        found = ring_down(decay(100 + seed, MODES[:2], 15.0), 2.0, highest=3.0)
        assert len(found.modes) == 2
        for mode, (f, zeta) in zip(found.modes, MODES[:2], strict=True):
            inside += abs(mode.frequency - f) < 1.96 * mode.frequency_error
            inside += abs(mode.damping_ratio - zeta) < 1.96 * mode.damping_ratio_error
            total += 2
    assert inside / total > 0.87


def test_close_modes_are_told_apart():
    close = ((0.5, 0.01), (0.58, 0.012))
    found = ring_down(decay(3, close, 40.0, noise=0.3), 2.0, highest=3.0)
    assert [mode.frequency for mode in found.modes] == pytest.approx([0.5, 0.58], rel=0.005)


def test_only_the_strongest_modes_are_kept_on_request():
    found = ring_down(decay(4), 2.0, most=1)
    assert len(found.modes) == 1
    assert found.modes[0].frequency == pytest.approx(0.45, rel=0.02)


def test_noise_has_no_modes():
    rng = np.random.default_rng(5)
    times = np.arange(0.0, 20.0, 0.02)
    signals = {
        name: Signal(times, rng.standard_normal(times.size), np.full(times.size, 1.0))
        for name in ('one', 'two')
    }
    with pytest.raises(LongreachError, match='no decaying oscillation'):
        ring_down(signals, 0.0)


def test_gaps_are_left_out():
    signals = decay(6)
    values = signals['strain'].values.copy()
    values[1000:1010] = math.nan
    signals['strain'] = signals['strain']._replace(values=values)
    found = ring_down(signals, 2.0)
    assert found.modes[0].frequency == pytest.approx(0.45, rel=0.003)


@pytest.mark.parametrize(
    ('settings', 'message'),
    [
        ({'start': 30.0}, 'no signal has 20 finite rows'),
        ({'start': 2.0, 'highest': 20.0}, r'highest = 20 Hz.*at most'),
        ({'start': 2.0, 'most': 0}, 'most = 0'),
    ],
)
def test_bad_input_is_named(settings, message):
    with pytest.raises(InputError, match=message):
        ring_down(decay(7), **settings)
