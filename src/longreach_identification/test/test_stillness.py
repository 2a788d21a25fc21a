"""Stretches in which a machine stands still, and means in them."""

from __future__ import annotations

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_identification.machine import Recording
from longreach_identification.recordings import signal
from longreach_identification.stillness import Motion, find_still, mean_of, resolution_of

RATE = 100.0
LIMIT = 2e-4


def path(*parts: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Return times and positions of pieces (duration [s], velocity [m/s])."""
    velocity = np.concatenate([np.full(round(t * RATE), v) for t, v in parts])
    return np.arange(velocity.size) / RATE, np.cumsum(velocity) / RATE


def recorded(
    times: np.ndarray, position: np.ndarray, events: tuple[tuple[float, str], ...] = ()
) -> tuple[Recording, dict[str, Motion]]:
    shown = signal(times, position)
    recording = Recording(
        'test', {'piston': shown, 'force': signal(times, 3.0 + position)}, events
    )
    return recording, {'piston': Motion(shown, LIMIT, 'm')}


def vibration(times: np.ndarray, since: float = 0.0, period: float = 2.6) -> np.ndarray:
    """Return a fading vibration of 0.3 mm."""
    return 3e-4 * np.exp(-(times - since) / 20.0) * np.sin(2.0 * np.pi * times / period)


def test_stretches_and_directions() -> None:
    times, position = path((12.0, 0.0), (8.0, 0.01), (20.0, 0.0), (8.0, -0.005), (15.0, 0.0))
    random = np.random.default_rng(1)
    shown = position + vibration(times) + 2e-5 * random.standard_normal(times.size)
    shown = np.round(shown / 5e-5) * 5e-5
    stretches, lines = find_still(*recorded(times, shown))
    assert [(s.directions['piston']) for s in stretches] == [0, 1, -1]
    for stretch, begin, end, rest in zip(
        stretches, (0.0, 20.0, 48.0), (12.0, 40.0, 63.0), (0.0, 0.08, 0.04), strict=True
    ):
        # The windows before and after are almost free of motion.
        assert begin + 1.8 <= stretch.start <= begin + 3.6
        assert end - 3.6 <= stretch.end <= end - 1.8
        assert abs(stretch.means['piston'].value - rest) < 3e-5
        assert stretch.means['force'].value == pytest.approx(3.0 + rest, abs=3e-5)
    assert lines[1].startswith('test 2')
    assert lines[1].endswith('used, directions +')


@pytest.mark.filterwarnings('error')
def test_a_load_change_splits_a_stretch() -> None:
    times, position = path((40.0, 0.0))
    events = ((20.0, 'release'),)
    (before, after), _ = find_still(*recorded(times, position + vibration(times), events))
    assert before.end <= 20.0
    assert after.start == pytest.approx(22.5, abs=0.2)


def test_a_machine_that_moves_during_static() -> None:
    # Slower than the limit, but by 2.6 mm within the stretch.
    times, position = path((20.0, 1.6e-4))
    stretches, (line,) = find_still(*recorded(times, position))
    assert stretches == []
    assert 'not used, piston moved by 0.00' in line
    assert 'allowed: 0.001 m' in line
    assert find_still(*recorded(*path((20.0, 0.01)))) == ([], [])
    stretches, (line,) = find_still(*recorded(*path((5.0, 0.01), (8.0, 0.0), (5.0, 0.01))))
    assert stretches == []
    assert 'not used, still for 3' in line
    assert line.endswith('s only, shortest: 5 s')


def test_a_gap_is_no_standstill() -> None:
    times, position = path((40.0, 0.0))
    kept = (times < 15.0) | (times > 22.0)
    stretches, _ = find_still(*recorded(times[kept], position[kept]))
    assert [s.end < 15.0 or s.start > 22.0 for s in stretches] == [True, True]


def test_recordings_that_are_of_no_use() -> None:
    times, position = path((20.01, 0.0))
    noise = 0.01 * np.random.default_rng(1).standard_normal(times.size)
    still = recorded(times, position)
    for recording, more, text in (
        (still, {'shortest': 50.0}, 'has 20 s with all motions, allowed: at least 55 s'),
        (still, {'window': 0.0}, 'window = 0.0 s'),
        (recorded(times, position + noise), {}, 'piston in test is too noisy: its rate is known'),
        ((still[0], {}), {}, 'has no motion'),
        (recorded(1000.0 * times, position), {}, 'piston in test are 10 s apart.*unit of time'),
    ):
        with pytest.raises(InputError, match=text):
            find_still(*recording, **more)


def test_standard_errors_of_means() -> None:
    # White noise, noise that is correlated over a second, and a vibration of 0.4 Hz.
    random = np.random.default_rng(3)
    times = np.arange(1500) / RATE
    errors: dict[str, list[float]] = {'white': [], 'slow': [], 'vibration': []}
    for _ in range(60):
        white = random.standard_normal(times.size)
        slow = np.zeros(times.size)
        for k in range(1, times.size):
            slow[k] = 0.99 * slow[k - 1] + white[k]
        phase = random.uniform(0.0, 2.0 * np.pi)
        shaken = 20.0 * np.exp(-times / 15.0) * np.sin(2.4 * times + phase)
        for name, values in (('white', white), ('slow', slow), ('vibration', shaken + white)):
            mean = mean_of(times, 5.0 + values)
            errors[name].append((mean.value - 5.0) / mean.standard_error)
    # Of white noise the Hann window needs 1.5 times as many rows.
    assert mean_of(times, white).standard_error == pytest.approx((1.5 / 1500) ** 0.5, rel=0.3)
    for name, ratios in errors.items():
        assert np.mean(np.abs(ratios) < 2.0) > 0.85, name
    # And not so large that they say nothing.
    assert np.std(errors['white']) > 0.7
    assert np.std(errors['slow']) > 0.6


def test_resolution() -> None:
    times = np.arange(200) / RATE
    assert resolution_of(np.round(np.sin(times) / 0.04) * 0.04) == pytest.approx(0.04)
    assert resolution_of(np.sin(times)) == 0.0
    assert resolution_of(np.zeros(20)) == 0.0
    constant = mean_of(times, np.full(200, 0.37), 0.01)
    assert constant.standard_error == pytest.approx(0.01 / 12.0**0.5)
