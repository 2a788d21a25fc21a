"""Recordings of simulated runs, as sensors and cameras show them."""

import numpy as np
import pytest

from longreach_boom.identification import BOOM
from longreach_boom.measured_runs import CAMERAS, measured, readings, truth_of
from longreach_boom.parameters import default_file, load_boom
from longreach_boom.scenario import Attachment, HangingLoad, Scenario
from longreach_boom.sensors import Sensors, load_sensors
from longreach_boom.simulation import BoomRun, simulate
from longreach_boom.state import BoomState
from longreach_boom.visuals import marker_positions
from longreach_dynamics.errors import InputError
from longreach_machine.scenarios import ValveCommand

RELEASE = Scenario(duration=1.0, pose='site', loads=(HangingLoad(90.0),), release=(0.5,))


@pytest.fixture(scope='module', params=['boom.yaml', 'boom_on_truck.yaml'])
def run(request):
    return simulate(load_boom(default_file().with_name(request.param)), RELEASE)


@pytest.fixture(scope='module')
def truth(run):
    return truth_of(run, RELEASE, 'release')


def test_ideal_sensors_show_what_those_of_the_node_do(run, truth):
    boom = run.parameters
    recording = measured(truth, load_sensors(), CAMERAS._replace(noise=0.0, constant=0.0))
    sensors = Sensors(boom, load_sensors(), 200.0)
    loads = RELEASE.initial_loads(boom)
    for k in (0, 60, 150):
        modes = run.columns_like('mode')[k].astype(np.int64)
        state = BoomState(run.states[k], modes, loads if k <= 100 else ())
        shown = sensors.read(state, k)
        for kind, names in (
            ('inclination', ('inclination_root', 'inclination_tip')),
            ('pressure', ('p_head', 'p_rod')),
            ('encoder', ('piston',)),
            ('strain', ('strain',)),
        ):
            signals = [f'{name}_{i + 1}' for name in names for i in range(boom.size)]
            found = [recording.signals[name].values[k] for name in signals]
            np.testing.assert_allclose(found, shown[kind], rtol=1e-12, atol=1e-13)
    # Images are taken between the samples.
    marker = recording.signals['marker_marker_4_z']
    assert len(marker.times) == 16
    state = BoomState(run.states[0], run.columns_like('mode')[0].astype(np.int64), loads)
    motion = marker_positions(boom, state)
    for name, position in zip(motion.names, motion.positions, strict=True):
        for axis, value in zip('xz', position[[0, 2]], strict=True):
            assert recording.signals[f'marker_{name}_{axis}'].values[0] == pytest.approx(value)
    k = np.argmin(np.abs(run.column('time') - 0.8))
    assert marker.values[12] == pytest.approx(run.column('tip_z')[k], abs=1e-4)
    assert recording.events == ((0.5, 'release'),)
    assert recording.conditions['payload'] == 90.0
    assert set(recording.signals) <= {signal.name for signal in BOOM.signals(boom)}


def test_errors_are_those_of_the_sensor_file(run, truth):
    typical = load_sensors('typical')
    ideal = measured(truth, load_sensors())
    one, two, warm = (
        measured(truth, typical, CAMERAS, seed, warmth)
        for seed, warmth in ((1, 0.0), (2, 0.0), (1, 10.0))
    )
    shown = one.signals['p_rod_2']
    error = shown.values - ideal.signals['p_rod_2'].values
    assert np.mean(error) == pytest.approx(0.9e5 + 4.0 * 3.5e3, abs=5e3)
    assert np.std(error) == pytest.approx(2e4, rel=0.15)
    assert np.all(np.isnan(shown.deviation))
    # Inclinations are read at 100 Hz.
    assert len(one.signals['inclination_tip_3'].times) == 101
    assert np.any(shown.values != two.signals['p_rod_2'].values)
    drift = warm.signals['strain_4'].values - one.signals['strain_4'].values
    np.testing.assert_allclose(drift, 10.0 * 2.5e-6, atol=2e-7)
    spread = one.signals['marker_truck_x'].values
    assert 0.0 < np.std(spread) < 1e-3


def test_runs_that_no_recording_can_state(boom, run):
    other = Attachment(50.0, time=0.2)
    with pytest.raises(InputError, match='several loads'):
        truth_of(run, RELEASE.replace(attach=(other,)))
    (own,) = RELEASE.loads
    again = Attachment(own.mass, time=0.1)
    with pytest.raises(InputError, match='several loads'):
        truth_of(run, RELEASE.replace(attach=(again,), release=()))
    with pytest.raises(InputError, match=r'rate = 1e\+09 Hz gives \d+ rows of 25 numbers,'):
        readings(boom, RELEASE, load_sensors(), rate=1e9)
    short = simulate(boom, RELEASE.replace(duration=0.5, release=(0.1,)))
    cut = BoomRun(boom, short.columns, short.table[:1], short.states[:1], message='it failed')
    with pytest.raises(InputError, match='1 rows, allowed: at least 2; it failed'):
        truth_of(cut, RELEASE)


def test_readings_end_with_the_run(boom):
    moving = ValveCommand(0.0, (-0.8, 0.0, 0.0, 0.0))
    scenario = Scenario(duration=1.2, pose='site', valve_commands=(moving,))
    shown = readings(boom, scenario, load_sensors(), rate=3.0)
    np.testing.assert_allclose(shown['time'], [0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0])
    assert np.all(np.diff(shown['piston_1']) < -1e-3)
