"""The cohesion by the interface of identification."""

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_excavator.identification import (
    EXCAVATOR,
    EXCAVATOR_SURFACE,
    ExcavatorIdentification,
)
from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.scenario import dig_scenario
from longreach_excavator.simulation import simulate
from longreach_identification.dynamics import Settings, identify
from longreach_identification.machine import Recording, Signal
from longreach_identification.recordings import check_recordings, signal

NOISE = {'theta': 2e-3, 'p': 5e4}
COMPARED = ('theta_*', 'p_*')


def recorded(excavator, depth):
    """Return what sensors show of digging in soil of 13 kPa, every 20 ms from 5 s on."""
    scenario = dig_scenario(cohesion=13e3, duration=3.0, depth=depth)
    run = simulate(excavator, scenario, sample_time=0.02)
    random = np.random.default_rng(3)
    times = run.column('time') + 5.0
    signals = {}
    for name in EXCAVATOR.signals(excavator):
        kind = name.name.partition('_')[0]
        if kind in ('theta', 'p', 'spool'):
            noise = NOISE.get(kind, 0.0) * random.standard_normal(times.size)
            values = run.column(name.name) + noise
            signals[name.name] = Signal(times, values, np.full(times.size, np.nan))
    return Recording('dig', signals)


@pytest.fixture(scope='module')
def recording(standard):
    return recorded(standard, 'swing')


@pytest.mark.slow_after(1)
@pytest.mark.parametrize('page', [EXCAVATOR, EXCAVATOR_SURFACE], ids=lambda page: page.depth)
def test_cohesion_is_identified(standard, page):
    recording = recorded(standard, page.depth)
    found = identify(
        page, standard, [recording], ['cohesion'],
        Settings(signals=COMPARED, clocks={}, horizons=()), processes=1,
    )  # fmt: skip
    error = float(found.estimate.standard_errors[0])
    assert error < 0.02 * 13e3
    assert abs(found.machine.soil.cohesion - 13e3) < 3.0 * error


def test_spools_are_followed_without_lag(standard, recording):
    experiment = EXCAVATOR.experiment(standard, recording)
    assert len(experiment.scenario.valve_commands) < 30
    pose = np.radians(experiment.scenario.pose_deg)
    away = dict(zip(CYLINDERS, standard.pose('dig') - pose, strict=True))
    errors = {f'pose_{name}': float(error) for name, error in away.items()}
    planted = EXCAVATOR.with_values(standard, {'cohesion': 13e3})
    times = {f'theta_{k}': recording.signals['theta_4'].times for k in (2, 3, 4)}
    whole = EXCAVATOR.corrected(planted, experiment, errors)
    again = EXCAVATOR.predict(planted, whole, times)
    # The last spools stay, for what has early stamps.
    early = whole._replace(scenario=whole.scenario.replace(duration=2.5))
    for name, values in EXCAVATOR.predict(planted, early, times).items():
        assert np.array_equal(values, again[name]), name
    run = simulate(standard, dig_scenario(cohesion=13e3, duration=3.0), sample_time=0.02)
    for name, values in again.items():
        assert np.abs(values - run.column(name)).max() < 5e-4, name


@pytest.mark.parametrize(('every', 'said'), [(1, False), (5, True)])
def test_spools_that_jump_between_distant_rows_are_named(standard, recording, every, said):
    """Rows are 20 ms apart."""
    spool = recording.signals['spool_bucket']
    late = spool._replace(values=np.where(spool.times < 6.0, 0.0, 1.0))
    signals = {**recording.signals, 'spool_bucket': late}
    seldom = {name: Signal(*(part[::every] for part in one)) for name, one in signals.items()}
    experiment = EXCAVATOR.experiment(standard, recording._replace(signals=seldom))
    assert EXCAVATOR.doubts(standard, experiment).startswith('spools of dig jump') == said


def test_cells_without_a_spool_leave_the_others(standard, recording):
    whole = EXCAVATOR.experiment(standard, recording).scenario
    arm = recording.signals['spool_arm']
    assert np.ptp(arm.values) == 0.0
    values = np.where(np.arange(arm.times.size) % 10 == 0, arm.values, np.nan)
    signals = {**recording.signals, 'spool_arm': arm._replace(values=values)}
    assert EXCAVATOR.experiment(standard, recording._replace(signals=signals)).scenario == whole


def test_recordings_that_are_refused(standard, recording):
    short = {n: Signal(*(part[:1] for part in s)) for n, s in recording.signals.items()}
    arm = recording.signals['spool_arm']
    empty = {
        **recording.signals,
        'spool_arm': arm._replace(values=np.full_like(arm.values, np.nan)),
    }
    force = signal(arm.times, np.full(arm.times.size, 90.0))
    for signals, text in (
        (short, 'dig has 0 s with joints and'),
        (empty, 'dig lacks spool_arm'),
        ({**recording.signals, 'force_lk': force}, 'dig: force_lk: a force of 90 N is the larges'),
    ):
        with pytest.raises(InputError, match=text):
            EXCAVATOR.experiment(standard, recording._replace(signals=signals))
    with pytest.raises(InputError, match="depth = 'terrain', allowed: surface"):
        ExcavatorIdentification('terrain')
    for name, value in (('spool_bucket', 81.0), ('length_arm', 2e3), ('theta_3', -90.0)):
        other = Recording('logged', {name: signal(np.arange(10.0), np.full(10, value))})
        with pytest.raises(InputError, match=f'{name} in logged goes from .* unit right'):
            check_recordings([other], EXCAVATOR.signals(standard))
    bar = {n: s._replace(values=1e-5 * s.values) for n, s in recording.signals.items()}
    with pytest.raises(InputError, match=r'dig: no pressure is above .* is their unit right'):
        EXCAVATOR.experiment(standard, recording._replace(signals=bar))
