"""Tests of the identification of valve coefficients and masses of a harvester."""

from __future__ import annotations

import numpy as np
import pytest
from harvesters import STANDARD, run_of, scenario

from longreach_harvester.identification import HARVESTER
from longreach_identification.dynamics import Settings, identify
from longreach_identification.machine import Recording, Signal

PLANTED = {
    'valve_resistance_boom': 4e11,
    'valve_resistance_stick': 5e11,
    'boom_mass': 1300.0,
    'stick_mass': 480.0,
    'head_mass': 900.0,
}
ANGLES = ('q_boom', 'q_stick')
PRESSURES = ('p_1_boom', 'p_2_boom', 'p_1_stick', 'p_2_stick')


@pytest.fixture(scope='module')
def recording():
    """The planted machine moves boom and stick."""
    spools = {
        'boom': [[0, 0], [0.3, 0], [0.6, 0.16], [1.2, 0.16], [1.6, 0]],
        'stick': [[0, 0], [0.2, 0], [0.6, 0.25], [1.4, 0.25], [1.8, 0]],
    }
    planted = HARVESTER.with_values(STANDARD, PLANTED)
    run = run_of(scenario(**spools), planted)
    times, random = run.column('time'), np.random.default_rng(1)
    signals = {}
    for name in ('q_swing', *ANGLES, *PRESSURES, 'spool_swing', 'spool_boom', 'spool_stick'):
        deviation = 2e4 if name in PRESSURES else 2e-4
        noisy = name in ANGLES + PRESSURES
        noise = deviation * random.standard_normal(times.size) if noisy else 0.0
        signals[name] = Signal(times, run.column(name) + noise, np.full(times.size, deviation))
    return Recording('moves', signals)


def test_valves_and_masses_are_identified(recording):
    found = identify(
        HARVESTER, STANDARD, [recording], list(PLANTED),
        Settings(signals=ANGLES + PRESSURES, clocks={}, horizons=()), processes=1,
    )  # fmt: skip
    estimate = found.estimate
    for name, true in PLANTED.items():
        error = estimate.standard_errors[estimate.names.index(name)]
        assert error < 0.02 * true
        assert abs(estimate.value(name) - true) < 3.0 * error, name
    assert found.machine.boom_cylinder.valve.resistance == estimate.value('valve_resistance_boom')


def test_spools_become_few_knots(recording):
    spools = HARVESTER.experiment(STANDARD, recording).scenario.spools
    shown = recording.signals['spool_boom']
    assert len(spools.boom) < shown.times.size / 20
    knots = np.array(spools.boom).T
    assert np.abs(np.interp(shown.times, *knots) - shown.values).max() <= 1e-3
    assert spools.swing == ((0.0, 0.0), (2.0, 0.0))
