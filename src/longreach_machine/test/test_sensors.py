"""Groups of sensors: how they err, and that they repeat it."""

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_machine.sensors import SensorGroup, SensorKind

TRUTH = np.array([0.5, -2.0, 1e3])


def group(key=(7, 0), **changes):
    kind = {'rate': None, 'noise': 0.0, 'bias': (), 'drift': (), 'step': 0.0} | changes
    return SensorGroup('load_cell', SensorKind(**kind), 3, key, 1000.0)


def test_bias_drift_and_counts_add_up_in_that_order():
    shown = group(bias=(0.1,), drift=(0.0, 0.01, 0.0), step=0.25).show(TRUTH, 20.0, 0)
    assert shown == pytest.approx([0.5, -1.75, 1000.0], abs=1e-12)


def test_noise_depends_on_seed_kind_and_sample_alone():
    first = group(noise=1.0).show(TRUTH, 0.0, 5)
    assert group(noise=1.0).show(TRUTH, 0.0, 5).tolist() == first.tolist()
    for other in (group((8, 0), noise=1.0), group((7, 1), noise=1.0)):
        assert np.all(other.show(TRUTH, 0.0, 5) != first)
    assert np.all(group(noise=1.0).show(TRUTH, 0.0, 6) != first)


def test_noise_is_white():
    sensors = group(noise=2.0)
    noise = np.array([sensors.show(np.zeros(3), 0.0, sample) for sample in range(4000)])
    assert noise.mean(axis=0) == pytest.approx(np.zeros(3), abs=0.15)
    assert noise.std(axis=0) == pytest.approx(np.full(3, 2.0), rel=0.06)
    assert np.abs(np.corrcoef(noise.T) - np.eye(3)).max() < 0.08
    assert np.abs(np.corrcoef(noise[1:, 0], noise[:-1, 0])[0, 1]) < 0.08


def test_rates_are_whole_divisors_of_the_plants():
    assert [sample for sample in range(9) if group(rate=250.0).due(sample)] == [0, 4, 8]
    with pytest.raises(InputError, match=r'load_cell\.rate = 300 Hz.*1000 Hz.*next one: 333'):
        group(rate=300.0)
