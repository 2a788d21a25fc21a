"""Tests of the identification of a crane from a run with its controller."""

import numpy as np
import pytest

from longreach_crane.identification import CRANE
from longreach_crane.scenario import Scenario, SetPoint
from longreach_crane.simulation import simulate
from longreach_dynamics.errors import InputError
from longreach_identification.dynamics import Settings, identify
from longreach_identification.machine import Recording, Signal

PLANTED = {'car_mass': 12.0, 'load_mass': 90.0, 'car_friction': 0.8, 'motor_rate': 3.5}
NOISE = {'car_position': 1e-3, 'angle': 1e-3}


@pytest.fixture(scope='module')
def recording(machinery):
    """The planted crane under the controller of the installed file, two set points."""
    planted = CRANE.with_values(machinery, PLANTED)
    points = (SetPoint(time=0.0, car_position=3.0), SetPoint(time=4.0, car_position=-0.5))
    run = simulate(planted, Scenario(duration=8.0, set_points=points))
    times, random = run.column('time'), np.random.default_rng(1)
    signals = {
        name: Signal(times, run.column(name), np.full(times.size, 1e-3))
        for name in ('command', 'brake')
    }
    for name, level in NOISE.items():
        noisy = run.column(name) + level * random.standard_normal(times.size)
        signals[name] = Signal(times, noisy, np.full(times.size, level))
    return Recording('run', signals)


def test_prediction_by_commands_is_the_run(machinery, recording):
    planted = CRANE.with_values(machinery, PLANTED)
    experiment = CRANE.experiment(planted, recording)._replace(position=0.0)
    times = {name: recording.signals[name].times for name in NOISE}
    shown = CRANE.predict(planted, experiment, times)
    for name, level in NOISE.items():
        assert np.std(shown[name] - recording.signals[name].values) < 1.1 * level
    # The last command acts on, for what has early stamps.
    experiment.forces[640:], experiment.brakes[640:] = 4.0, False
    early = experiment._replace(forces=experiment.forces[:700], brakes=experiment.brakes[:700])
    on, shorter = (CRANE.predict(planted, one, times) for one in (experiment, early))
    assert shorter['angle'] == pytest.approx(on['angle'], abs=1e-6)


def test_masses_friction_and_motor_are_identified(machinery, recording):
    found = identify(
        CRANE, machinery, [recording], ['masses', 'car_friction', 'motor'],
        Settings(signals=list(NOISE), clocks={}, horizons=()), processes=1,
    )  # fmt: skip
    estimate = found.estimate
    for name, true in PLANTED.items():
        error = estimate.standard_errors[estimate.names.index(name)]
        assert abs(estimate.value(name) - true) < 4.0 * error, name
    assert estimate.value('load_mass') == pytest.approx(90.0, rel=0.02)
    assert estimate.value('motor_rate') == pytest.approx(3.5, rel=0.02)
    assert found.machine.crane.car_mass == estimate.value('car_mass')


@pytest.mark.parametrize(('every', 'said'), [(1, False), (2, True)])
def test_commands_that_are_missing_are_named(machinery, recording, every, said):
    signals = {
        name: Signal(*(part[::every] for part in signal))
        for name, signal in recording.signals.items()
    }
    experiment = CRANE.experiment(machinery, recording._replace(signals=signals))
    text = 'commands of run change between rows that are 0.02 s apart'
    assert CRANE.doubts(machinery, experiment).startswith(text) == said


def test_unknown_names_and_missing_inputs_are_refused(machinery, recording):
    for lacks in ('command', 'car_position'):
        signals = {name: signal for name, signal in recording.signals.items() if name != lacks}
        with pytest.raises(InputError, match=f'lacks {lacks}'):
            CRANE.experiment(machinery, recording._replace(signals=signals))
    with pytest.raises(InputError, match="parameter = 'colour', allowed: car_mass"):
        CRANE.with_values(machinery, {'colour': 1.0})
    experiment = CRANE.experiment(machinery, recording)
    with pytest.raises(InputError, match=r"signal = 'command', allowed: car_position \| angle"):
        CRANE.predict(machinery, experiment, {'command': np.zeros(2)})
