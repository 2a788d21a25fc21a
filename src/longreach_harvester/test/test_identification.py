"""Tests of the identification of valve coefficients of a harvester."""

from __future__ import annotations

import numpy as np
import pytest
from harvesters import STANDARD, run_of, scenario

from longreach_harvester.identification import HARVESTER
from longreach_identification.dynamics import Settings, identify
from longreach_identification.machine import Recording, Signal

PLANTED = {'valve_resistance_boom': 4e11, 'valve_resistance_stick': 5e11}
ANGLES = ('q_boom', 'q_stick')


@pytest.fixture(scope='module')
def recording():
    """The planted machine moves boom and stick."""
    spools = {
        'boom': [[0, 0], [0.3, 0], [0.6, 0.16], [1.2, 0.16], [1.6, 0]],
        'stick': [[0, 0], [0.2, 0], [0.6, 0.25], [1.4, 0.25], [1.8, 0]],
    }
    planted = HARVESTER.with_values(STANDARD, PLANTED)
    run = run_of(scenario(**spools), planted, 5e-3, model='reduced')
    times, random = run.column('time'), np.random.default_rng(1)
    signals = {}
    for name in ('q_swing', *ANGLES, 'spool_swing', 'spool_boom', 'spool_stick'):
        noise = 2e-4 * random.standard_normal(times.size) if name in ANGLES else 0.0
        signals[name] = Signal(times, run.column(name) + noise, np.full(times.size, 2e-4))
    return Recording('moves', signals)


def test_valves_are_identified(recording):
    found = identify(
        HARVESTER, STANDARD, [recording], list(PLANTED),
        Settings(signals=ANGLES, clocks={}, horizons=()), processes=1,
    )  # fmt: skip
    estimate = found.estimate
    for name, true in PLANTED.items():
        error = estimate.standard_errors[estimate.names.index(name)]
        assert error < 0.02 * true
        assert abs(estimate.value(name) - true) < 0.02 * true, name
    assert found.machine.boom_cylinder.valve.resistance == estimate.value('valve_resistance_boom')


def test_spools_become_few_knots(recording):
    spools = HARVESTER.experiment(STANDARD, recording).scenario.spools
    shown = recording.signals['spool_boom']
    assert len(spools.boom) < shown.times.size / 20
    knots = np.array(spools.boom).T
    assert np.abs(np.interp(shown.times, *knots) - shown.values).max() <= 1e-3
    assert spools.swing == ((0.0, 0.0), (2.0, 0.0))
