"""Tests of the identification of valve coefficients of a harvester."""

from __future__ import annotations

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_harvester.identification import HARVESTER
from longreach_harvester.machine import Harvester
from longreach_harvester.parameters import load_harvester
from longreach_harvester.scenario import Scenario, SpoolKnots
from longreach_harvester.simulation import simulate
from longreach_identification.dynamics import identify
from longreach_identification.machine import Recording, Signal
from longreach_identification.recordings import check_recordings, signal

PLANTED = {'valve_resistance_boom': 4e11, 'valve_resistance_stick': 5e11}
ANGLES = ('q_boom', 'q_stick')


@pytest.fixture(scope='module')
def harvester():
    return load_harvester()


@pytest.fixture(scope='module')
def recording(harvester):
    """The planted machine moves boom and stick."""
    spools = SpoolKnots(
        boom=((0.0, 0.0), (0.3, 0.0), (0.6, 0.16), (1.2, 0.16), (1.6, 0.0)),
        stick=((0.0, 0.0), (0.2, 0.0), (0.6, 0.25), (1.4, 0.25), (1.8, 0.0)),
    )
    scenario = Scenario(duration=2.0, angles=(0.0, 0.55, -1.2), spools=spools)
    run = simulate(Harvester(HARVESTER.with_values(harvester, PLANTED), scenario, 5e-3, 'reduced'))
    times, random = run.column('time'), np.random.default_rng(1)
    signals = {}
    for name in ('q_swing', *ANGLES, 'spool_swing', 'spool_boom', 'spool_stick'):
        noise = 2e-4 * random.standard_normal(times.size) if name in ANGLES else 0.0
        signals[name] = Signal(times, run.column(name) + noise, np.full(times.size, 2e-4))
    return Recording('moves', signals)


def test_valves_are_identified(harvester, recording):
    found = identify(
        HARVESTER, harvester, [recording], list(PLANTED),
        signals=ANGLES, clocks={}, horizons=(), scatter=0, processes=1,
    )  # fmt: skip
    estimate = found.estimate
    for name, true in PLANTED.items():
        error = estimate.standard_errors[estimate.names.index(name)]
        assert error < 0.02 * true
        assert abs(estimate.value(name) - true) < 0.02 * true, name
    assert found.machine.boom_cylinder.valve.resistance == estimate.value('valve_resistance_boom')


def test_spools_become_few_knots(harvester, recording):
    spools = HARVESTER.experiment(harvester, recording).scenario.spools
    shown = recording.signals['spool_boom']
    assert len(spools.boom) < shown.times.size / 20
    knots = np.array(spools.boom).T
    assert np.abs(np.interp(shown.times, *knots) - shown.values).max() <= 1e-3
    assert spools.swing == ((0.0, 0.0), (2.0, 0.0))


def test_recording_without_spools_is_refused(harvester, recording):
    signals = {n: s for n, s in recording.signals.items() if n != 'spool_boom'}
    with pytest.raises(InputError, match='lacks spool_boom'):
        HARVESTER.experiment(harvester, recording._replace(signals=signals))


def test_unknown_names_are_refused(harvester, recording):
    with pytest.raises(InputError, match="parameter 'colour', allowed: valve_resistance_swing"):
        HARVESTER.with_values(harvester, {'colour': 1.0})
    experiment = HARVESTER.experiment(harvester, recording)
    with pytest.raises(InputError, match="signal 'spool_boom', allowed"):
        HARVESTER.predict(harvester, experiment, {'spool_boom': np.zeros(2)})


def test_spools_in_percent_are_refused():
    """They would be clipped to full opening."""
    percent = signal(np.arange(10.0), np.linspace(0.0, 80.0, 10))
    recording = Recording('logged', {'spool_boom': percent})
    with pytest.raises(InputError, match=r'spool_boom in logged is at most 80 1 .* unit right'):
        check_recordings([recording], HARVESTER.signals(load_harvester()))
