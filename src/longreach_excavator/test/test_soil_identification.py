"""The cohesion by the interface of identification."""

from __future__ import annotations

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_excavator.identification import (
    EXCAVATOR,
    EXCAVATOR_SURFACE,
    ExcavatorIdentification,
)
from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.parameters import ExcavatorParameters, load_excavator
from longreach_excavator.scenario import dig_scenario
from longreach_excavator.simulation import simulate
from longreach_identification.dynamics import Settings, identify
from longreach_identification.machine import Recording, Signal
from longreach_identification.recordings import check_recordings, signal

NOISE = {'theta': 2e-3, 'p': 5e4}
COMPARED = ('theta_*', 'p_*')


@pytest.fixture(scope='module')
def excavator():
    return load_excavator()


def recorded(excavator, depth: str) -> Recording:
    """Return what sensors show of digging in soil of 13 kPa, every 20 ms from 5 s on."""
    run = simulate(
        excavator, dig_scenario(cohesion=13e3, duration=3.0, depth=depth), sample_time=0.02
    )
    random = np.random.default_rng(3)
    times = run.column('time') + 5.0
    signals = {}
    for name in EXCAVATOR.signals(excavator):
        kind = name.name.partition('_')[0]
        if kind in ('theta', 'p', 'spool'):
            noise = NOISE.get(kind, 0.0) * random.standard_normal(times.size)
            signals[name.name] = Signal(
                times, run.column(name.name) + noise, np.full(times.size, np.nan)
            )
    return Recording('dig', signals)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize('page', [EXCAVATOR, EXCAVATOR_SURFACE], ids=lambda page: page.depth)
def test_cohesion_is_identified(excavator, page):
    recording = recorded(excavator, page.depth)
    found = identify(
        page, excavator, [recording], ['cohesion'],
        Settings(signals=COMPARED, clocks={}, horizons=()), processes=1,
    )  # fmt: skip
    error = float(found.estimate.standard_errors[0])
    assert error < 0.02 * 13e3
    assert abs(found.machine.soil.cohesion - 13e3) < 3.0 * error


def test_spools_are_followed_without_lag(excavator):
    recording = recorded(excavator, 'swing')
    experiment = EXCAVATOR.experiment(excavator, recording)
    assert len(experiment.scenario.valve_commands) < 30
    pose = np.radians(experiment.scenario.pose_deg)
    away = dict(zip(CYLINDERS, excavator.pose('dig') - pose, strict=True))
    errors = {f'pose_{name}': float(error) for name, error in away.items()}
    planted = EXCAVATOR.with_values(excavator, {'cohesion': 13e3})
    times = {f'theta_{k}': recording.signals['theta_4'].times for k in (2, 3, 4)}
    again = EXCAVATOR.predict(planted, EXCAVATOR.corrected(planted, experiment, errors), times)
    run = simulate(excavator, dig_scenario(cohesion=13e3, duration=3.0), sample_time=0.02)
    for name, values in again.items():
        assert np.abs(values - run.column(name)).max() < 5e-4, name


@pytest.mark.parametrize(('every', 'said'), [(1, False), (5, True)])
def test_spools_that_jump_between_distant_rows_are_named(excavator, every, said):
    """Rows are 20 ms apart."""
    recording = recorded(excavator, 'swing')
    spool = recording.signals['spool_bucket']
    late = spool._replace(values=np.where(spool.times < 6.0, 0.0, 1.0))
    signals = {**recording.signals, 'spool_bucket': late}
    seldom = {name: Signal(*(part[::every] for part in one)) for name, one in signals.items()}
    experiment = EXCAVATOR.experiment(excavator, recording._replace(signals=seldom))
    assert EXCAVATOR.doubts(excavator, experiment).startswith('spools of dig jump') == said


def test_cells_without_a_spool_leave_the_others(excavator: ExcavatorParameters) -> None:
    recording = recorded(excavator, 'swing')
    whole = EXCAVATOR.experiment(excavator, recording).scenario
    arm = recording.signals['spool_arm']
    assert np.ptp(arm.values) == 0.0
    values = np.where(np.arange(arm.times.size) % 10 == 0, arm.values, np.nan)
    signals = {**recording.signals, 'spool_arm': arm._replace(values=values)}
    assert EXCAVATOR.experiment(excavator, recording._replace(signals=signals)).scenario == whole
    signals['spool_arm'] = arm._replace(values=np.full(arm.times.size, np.nan))
    with pytest.raises(InputError, match='dig lacks spool_arm'):
        EXCAVATOR.experiment(excavator, recording._replace(signals=signals))


def test_recordings_that_are_refused(excavator):
    recording = recorded(excavator, 'swing')
    signals = {n: s for n, s in recording.signals.items() if n != f'spool_{CYLINDERS[0]}'}
    with pytest.raises(InputError, match='lacks spool_boom'):
        EXCAVATOR.experiment(excavator, recording._replace(signals=signals))
    short = {n: Signal(*(part[:1] for part in s)) for n, s in recording.signals.items()}
    with pytest.raises(InputError, match='dig has 0 s with joints and spools'):
        EXCAVATOR.experiment(excavator, recording._replace(signals=short))
    with pytest.raises(InputError, match="depth = 'terrain', allowed: surface"):
        ExcavatorIdentification('terrain')


def test_spools_in_percent_are_refused():
    """They would be clipped to full opening."""
    percent = signal(np.arange(10.0), np.linspace(0.0, 80.0, 10))
    recording = Recording('logged', {'spool_bucket': percent})
    with pytest.raises(InputError, match=r'spool_bucket in logged is at most 80 1 .* unit right'):
        check_recordings([recording], EXCAVATOR.signals(load_excavator()))
