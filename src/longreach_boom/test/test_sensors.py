"""The sensors: ideal ones show the truth, others err as their file says and repeat it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longreach_boom.kinematics import point_motion
from longreach_boom.parameters import BoomParameters, StrainGauge
from longreach_boom.sensors import (
    SensorParameters,
    SensorReadings,
    Sensors,
    default_file,
    load_sensors,
)
from longreach_boom.state import BoomState, StateParts
from longreach_boom.strain import strains
from longreach_dynamics.errors import InputError
from longreach_dynamics.sensors import SensorKind

RATE = 200.0
KINDS = ('inclination', 'pressure', 'encoder', 'strain')


def state_of(boom: BoomParameters) -> BoomState:
    """A bent boom under pressure."""
    random = np.random.default_rng(3)
    N, n = boom.size, boom.size * (1 + boom.ritz.functions)
    angles, h = random.uniform(-0.5, 0.5, N), 0.1 * random.normal(size=n - N)
    pressures = random.uniform(2e6, 3e7, 2 * N)
    y = np.concatenate([angles, h, random.normal(size=n), pressures, np.zeros(N)])
    return BoomState(y, np.zeros(N, dtype=np.int64))


@pytest.fixture(scope='module')
def state(boom: BoomParameters) -> BoomState:
    return state_of(boom)


@pytest.fixture(scope='module')
def ideal() -> SensorParameters:
    return load_sensors()


def with_kind(parameters: SensorParameters, kind: str, **changes: Any) -> SensorParameters:
    return parameters.replace(**{kind: getattr(parameters, kind).replace(**changes)})


def every(parameters: SensorParameters, **changes: Any) -> SensorParameters:
    for kind in KINDS:
        parameters = with_kind(parameters, kind, **changes)
    return parameters


def fields(readings: SensorReadings) -> list[np.ndarray]:
    found = [field for field in readings if field is not None]
    assert len(found) == len(readings)
    return found


def errors(
    boom: BoomParameters, parameters: SensorParameters, state: BoomState, sample: int = 0
) -> list[np.ndarray]:
    """Return what every field of the readings deviates from the truth by."""
    truth = fields(Sensors(boom, load_sensors(), RATE).read(state, sample))
    shown = fields(Sensors(boom, parameters, RATE).read(state, sample))
    return [a - b for a, b in zip(shown, truth, strict=True)]


# --- truth -------------------------------------------------------------------------------------


@pytest.mark.parametrize('rotation', ['exact', 'printed'])
def test_ideal_sensors_show_the_truth(boom: BoomParameters, rotation: str) -> None:
    boom = boom.replace(
        ritz=boom.ritz.replace(rotation=rotation, functions=3),
        beams=tuple(b.replace(strain_gauge=StrainGauge(1.0, 0.2, 4e-5)) for b in boom.beams),
    )
    state = state_of(boom)
    parts = StateParts.of(state.y, boom)
    shown = Sensors(boom, load_sensors(), RATE).read(state, 17)
    for i, beam in enumerate(boom.beams):
        for field, x in ((shown.inclination_root, 0.0), (shown.inclination_tip, beam.length)):
            assert field is not None
            expected = point_motion(boom, parts.q, parts.v, i, x).inclination
            assert field[i] == pytest.approx(float(expected), abs=1e-13)
        assert shown.encoders is not None
        position = boom.cylinders[i].linkage.position(parts.q[i])
        assert shown.encoders[i] == pytest.approx(position, abs=1e-15)
    np.testing.assert_array_equal(shown.head_pressures, parts.head_pressures)
    np.testing.assert_array_equal(shown.rod_pressures, parts.rod_pressures)
    # Gain and bias are those of the boom file.
    np.testing.assert_array_equal(shown.strains, strains(boom, state))


def test_both_ends_of_a_bent_beam_differ_by_its_slope(
    boom: BoomParameters, state: BoomState, ideal: SensorParameters
) -> None:
    # The first beam rests on its cylinder: bent, it leaves its root at a slope of its own.
    roots, tips, *_ = fields(Sensors(boom, ideal, RATE).read(state, 0))
    assert abs(roots[0] - state.y[0]) > 1e-3
    assert abs(roots[1] - tips[0] - state.y[1]) < 1e-13
    assert np.all(np.abs(tips - roots) > 1e-3)


def test_a_chamber_without_oil_shows_the_pressure_of_vapour(
    boom: BoomParameters, state: BoomState, ideal: SensorParameters
) -> None:
    y = state.y.copy()
    y[2 * 12] = -5e5
    shown = Sensors(boom, ideal, RATE).read(state._replace(y=y), 0)
    assert shown.head_pressures is not None
    assert shown.head_pressures[0] == boom.oil.vapour_pressure


# --- rates -------------------------------------------------------------------------------------


def test_each_kind_has_its_turn(
    boom: BoomParameters, state: BoomState, ideal: SensorParameters
) -> None:
    parameters = with_kind(ideal, 'inclination', rate=50.0)
    parameters = with_kind(parameters, 'strain', rate=200.0 / 3.0)
    sensors = Sensors(boom, with_kind(parameters, 'encoder', rate=200.0), RATE)
    readings = [sensors.read(state, k) for k in range(13)]
    seen = [[k for k, r in enumerate(readings) if field(r) is not None] for field in (
        lambda r: r.inclination_root, lambda r: r.inclination_tip, lambda r: r.strains,
        lambda r: r.encoders, lambda r: r.head_pressures, lambda r: r.rod_pressures,
    )]  # fmt: skip
    always = list(range(13))
    assert seen == [[0, 4, 8, 12], [0, 4, 8, 12], [0, 3, 6, 9, 12], always, always, always]


@pytest.mark.parametrize(
    ('rate', 'next_one'), [(60.0, '66.6667'), (150.0, '200'), (400.0, '200'), (199.9, '200')]
)
def test_rates_that_do_not_divide_that_of_the_plant_are_refused(
    boom: BoomParameters, ideal: SensorParameters, rate: float, next_one: str
) -> None:
    text = f'pressure.rate = {rate:g} Hz, allowed: the 200 Hz of the plant .*: {next_one} Hz'
    with pytest.raises(InputError, match=text):
        Sensors(boom, with_kind(ideal, 'pressure', rate=rate), RATE)


@pytest.mark.parametrize('rate', [0.0, -1.0, float('nan'), float('inf')])
def test_impossible_rates_of_the_plant_are_refused(
    boom: BoomParameters, ideal: SensorParameters, rate: float
) -> None:
    with pytest.raises(InputError, match='sample_rate = '):
        Sensors(boom, ideal, rate)


# --- noise -------------------------------------------------------------------------------------


def noise_table(boom: BoomParameters, state: BoomState, samples: int, seed: int) -> np.ndarray:
    """Return the noise of all 24 sensors of the boom, over its standard deviation."""
    parameters = every(load_sensors(), noise=1.0).replace(seed=seed)
    sensors = Sensors(boom, parameters, RATE)
    truth = np.concatenate(fields(Sensors(boom, load_sensors(), RATE).read(state, 0)))
    rows = [np.concatenate(fields(sensors.read(state, k))) for k in range(samples)]
    # Pressures are large numbers: take them away where that costs no digits.
    return np.array(rows) - truth


def test_noise_is_white_and_each_sensor_has_its_own(
    boom: BoomParameters, state: BoomState
) -> None:
    samples = 4000
    noise = noise_table(boom, state, samples, seed=8)
    assert noise.shape == (samples, 6 * boom.size)
    # Five standard deviations of what is estimated.
    assert np.abs(noise.mean(axis=0)).max() < 5.0 / np.sqrt(samples)
    assert np.abs(noise.std(axis=0) - 1.0).max() < 5.0 / np.sqrt(2.0 * samples)
    together = np.corrcoef(noise.T) - np.eye(noise.shape[1])
    assert np.abs(together).max() < 5.0 / np.sqrt(samples)
    for lag in (1, 2, 7):
        # Of each sensor with all others, too: neighbouring samples share no random numbers.
        later = noise[lag:].T @ noise[:-lag] / samples
        assert np.abs(later).max() < 5.0 / np.sqrt(samples)


def test_noise_has_the_size_of_its_kind(boom: BoomParameters, state: BoomState) -> None:
    parameters = with_kind(load_sensors(), 'strain', noise=2e-6)
    unit = with_kind(load_sensors(), 'strain', noise=1.0)
    *others, strain = errors(boom, parameters, state, 3)
    *_, scale = errors(boom, unit, state, 3)
    np.testing.assert_allclose(strain, 2e-6 * scale, rtol=1e-6)
    assert all(np.all(other == 0.0) for other in others)


def test_noise_is_a_function_of_seed_sensor_and_sample(
    boom: BoomParameters, state: BoomState
) -> None:
    noisy = every(load_sensors(), noise=1e-3)
    first = Sensors(boom, noisy, RATE)
    forth = [np.concatenate(fields(first.read(state, k))) for k in range(5)]
    # Backwards, twice, and by a fresh object: a plant that is reset or paused.
    second = Sensors(boom, noisy, RATE)
    back = [np.concatenate(fields(second.read(state, k))) for k in reversed(range(5))]
    np.testing.assert_array_equal(forth, back[::-1])
    np.testing.assert_array_equal(np.concatenate(fields(first.read(state, 2))), forth[2])
    assert np.all(forth[0] != forth[1])
    other = Sensors(boom, noisy.replace(seed=noisy.seed + 1), RATE)
    assert np.all(np.concatenate(fields(other.read(state, 0))) != forth[0])


def test_one_kind_does_not_disturb_another(boom: BoomParameters, state: BoomState) -> None:
    alone = with_kind(load_sensors(), 'strain', noise=1e-6)
    # Others that are noisy, slow or biased change nothing.
    among = with_kind(every(alone, noise=1e-6), 'pressure', rate=20.0, bias=(1e5,))
    for sample in (1, 7, 100_000_000_000):
        expected = Sensors(boom, alone, RATE).read(state, sample).strains
        np.testing.assert_array_equal(
            Sensors(boom, among, RATE).read(state, sample).strains, expected
        )


def test_a_longer_step_of_the_sensor_draws_the_same_noise(
    boom: BoomParameters, state: BoomState
) -> None:
    fast = with_kind(load_sensors(), 'encoder', noise=1e-3)
    slow = with_kind(fast, 'encoder', rate=20.0)
    expected = Sensors(boom, fast, RATE).read(state, 30).encoders
    np.testing.assert_array_equal(Sensors(boom, slow, RATE).read(state, 30).encoders, expected)


# --- bias, drift, quantisation ------------------------------------------------------------------


def test_bias_for_all_and_for_each(boom: BoomParameters, state: BoomState) -> None:
    N = boom.size
    roots = tuple(1e-3 * (i + 1) for i in range(2 * N))
    parameters = with_kind(load_sensors(), 'inclination', bias=roots)
    parameters = with_kind(parameters, 'encoder', bias=(-2e-3,))
    root, tip, head, rod, encoder, strain = errors(boom, parameters, state)
    # All of the first kind come first.
    np.testing.assert_allclose(root, roots[:N], rtol=1e-10)
    np.testing.assert_allclose(tip, roots[N:], rtol=1e-10)
    np.testing.assert_allclose(encoder, -2e-3, rtol=1e-10)
    assert all(np.all(other == 0.0) for other in (head, rod, strain))


def test_drift_follows_the_temperature(boom: BoomParameters, state: BoomState) -> None:
    each = tuple(1e3 * (i - 3) for i in range(2 * boom.size))
    parameters = with_kind(load_sensors(), 'pressure', drift=each)
    parameters = parameters.replace(
        temperature=parameters.temperature.replace(offset=6.0, amplitude=4.0, period=3600.0)
    )
    # 900 s are a quarter of the period, 1800 s a half.
    for time, warmth in ((0.0, 6.0), (900.0, 10.0), (1800.0, 6.0), (2700.0, 2.0)):
        _, _, head, rod, *_ = errors(boom, parameters, state, round(time * RATE))
        shown = np.concatenate([head, rod])
        np.testing.assert_allclose(shown, warmth * np.array(each), rtol=1e-9, atol=1e-6)


def test_quantised_readings_are_whole_counts(boom: BoomParameters, state: BoomState) -> None:
    step = 1e-4
    for noise in (0.0, 3e-4):
        parameters = with_kind(load_sensors(), 'encoder', step=step, noise=noise)
        shown = Sensors(boom, parameters, RATE).read(state, 4).encoders
        assert shown is not None
        counts = shown / step
        np.testing.assert_allclose(counts, np.round(counts), rtol=0.0, atol=1e-9)
        plain = with_kind(parameters, 'encoder', step=0.0)
        unrounded = Sensors(boom, plain, RATE).read(state, 4).encoders
        assert np.abs(shown - unrounded).max() <= step / 2.0 * (1.0 + 1e-9)
        assert np.any(shown != unrounded)


@pytest.mark.parametrize('what', ['bias', 'drift'])
@pytest.mark.parametrize(('kind', 'count'), [('inclination', 8), ('encoder', 4)])
def test_wrong_numbers_of_biases_are_refused(
    boom: BoomParameters, ideal: SensorParameters, kind: str, count: int, what: str
) -> None:
    text = f'{kind}.{what} has 3 values, allowed: none, 1 for all, or {count}, one for each'
    with pytest.raises(InputError, match=text):
        Sensors(boom, with_kind(ideal, kind, **{what: (0.0, 0.0, 0.0)}), RATE)


# --- files -------------------------------------------------------------------------------------


def test_the_default_file_is_ideal(ideal: SensorParameters) -> None:
    for kind in KINDS:
        assert getattr(ideal, kind) == SensorKind(None, 0.0, (), (), 0.0)


def test_typical_sensors_err_by_what_is_typical(boom: BoomParameters, state: BoomState) -> None:
    typical = load_sensors(default_file().with_name('sensors_typical.yaml'))
    root, tip, head, rod, encoder, strain = errors(boom, typical, state)
    bounds = ((root, 6e-3), (tip, 6e-3), (head, 4e5), (rod, 4e5), (encoder, 1e-3), (strain, 1e-4))
    for error, bound in bounds:
        assert np.all(error != 0.0)
        assert np.abs(error).max() < bound
    assert Sensors(boom, typical, RATE).read(state, 1).inclination_root is None


@pytest.mark.parametrize(
    ('old', 'new', 'text'),
    [
        ('noise: 0.0', 'noise: -1.0', 'inclination.noise = -1.0, allowed: '),
        ('noise: 0.0', 'noise: .nan', 'inclination.noise = nan'),
        ('rate: null', 'rate: 0.0', r'inclination.rate = 0.0, allowed: \(0, 1e\+06\] Hz'),
        ('bias: []', 'bias: 0.1', 'inclination.bias = 0.1, allowed: a list'),
        ('step: 0.0', 'count: 0.0', 'inclination.count is unknown'),
        ('seed: 0', 'seed: -1', 'seed = -1, allowed: '),
        ('period: 86400.0', 'period: 0.0', 'temperature.period = 0.0, allowed: '),
        ('strain:', 'strains:', 'strains is unknown'),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, old: str, new: str, text: str) -> None:
    file = tmp_path / 'sensors.yaml'
    lines = default_file().read_text(encoding='utf-8').splitlines()
    plain = '\n'.join(line for line in lines if not line.startswith('#'))
    assert old in plain
    file.write_text(plain.replace(old, new, 1), encoding='utf-8')
    with pytest.raises(InputError, match=text) as caught:
        load_sensors(file)
    assert str(file) in str(caught.value)
