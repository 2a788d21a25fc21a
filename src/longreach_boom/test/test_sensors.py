"""The sensors: ideal ones show the truth, others err as their file says and repeat it."""

import numpy as np
import pytest
from test_visuals import some_state

from longreach_boom.kinematics import point_motion
from longreach_boom.machine import Boom
from longreach_boom.parameters import StrainGauge
from longreach_boom.scenario import HangingLoad, Scenario
from longreach_boom.sensors import KINDS, Sensors, default_file, load_sensors
from longreach_boom.state import StateParts
from longreach_boom.strain import strains
from longreach_dynamics.errors import InputError

RATE = 200.0


@pytest.fixture(scope='module')
def state(boom):
    return some_state(boom, 3)


def with_kind(parameters, kind, **changes):
    return parameters.replace(**{kind: getattr(parameters, kind).replace(**changes)})


def errors(boom, parameters, state, sample=0):
    """Return by kind what readings deviate from the truth by."""
    truth = Sensors(boom, load_sensors(), RATE).read(state, sample)
    shown = Sensors(boom, parameters, RATE).read(state, sample)
    assert list(shown) == list(truth) == list(KINDS)
    return {kind: shown[kind] - truth[kind] for kind in KINDS}


@pytest.mark.parametrize('rotation', ['exact', 'printed'])
def test_ideal_sensors_show_the_truth(boom, rotation):
    boom = boom.replace(
        ritz=boom.ritz.replace(rotation=rotation, functions=3),
        beams=tuple(b.replace(strain_gauge=StrainGauge(1.0, 0.2, 4e-5)) for b in boom.beams),
    )
    state = some_state(boom, 3)
    parts = StateParts.of(state.y, boom)
    shown = Sensors(boom, load_sensors(), RATE).read(state, 17)
    for i, beam in enumerate(boom.beams):
        for k, x in ((i, 0.0), (boom.size + i, beam.length)):
            expected = point_motion(boom, parts.q, parts.v, i, x).inclination
            assert shown['inclination'][k] == pytest.approx(float(expected), abs=1e-13)
        position = boom.cylinders[i].linkage.position(parts.q[i])
        assert shown['encoder'][i] == pytest.approx(position, abs=1e-15)
    pressures = np.concatenate([parts.head_pressures, parts.rod_pressures])
    np.testing.assert_array_equal(shown['pressure'], pressures)
    # Gain and bias are those of the boom file.
    np.testing.assert_array_equal(shown['strain'], strains(boom, state))


def test_bias_for_all_and_for_each(boom, state):
    each = tuple(1e-3 * (i + 1) for i in range(2 * boom.size))
    parameters = with_kind(load_sensors(), 'inclination', bias=each)
    found = errors(boom, with_kind(parameters, 'encoder', bias=(-2e-3,)), state)
    np.testing.assert_allclose(found.pop('inclination'), each, rtol=1e-10)
    np.testing.assert_allclose(found.pop('encoder'), -2e-3, rtol=1e-10)
    assert not any(other.any() for other in found.values())


def test_wrong_numbers_of_biases_are_refused(boom):
    ideal = load_sensors()
    with pytest.raises(InputError, match=r'inclination\.bias has 3 values, .* or 8, one for each'):
        Sensors(boom, with_kind(ideal, 'inclination', bias=(0.0, 0.0, 0.0)), RATE)
    with pytest.raises(InputError, match='mounting has 2 values, allowed: none, 1 for all, or 4'):
        Sensors(boom, ideal.replace(mounting=(0.1, 0.2)), RATE)


def test_typical_sensors_err_by_what_is_typical(boom, state):
    typical = load_sensors('typical')
    # This state has large accelerations, which a wrong mounting would turn.
    typical = typical.replace(mounting=())
    bounds = (6e-3, 4e5, 1e-3, 1e-4, 1.2e-2, 0.2)
    for error, bound in zip(errors(boom, typical, state).values(), bounds, strict=True):
        assert np.all(error != 0.0)
        assert np.abs(error).max() < bound
    assert 'inclination' not in Sensors(boom, typical, RATE).read(state, 1)


def test_noise_does_not_depend_on_what_else_is_read(boom, state):
    sensors = Sensors(boom, load_sensors('typical'), RATE)
    alone, everything = sensors.read(state, 40, ['strain']), sensors.read(state, 40)
    np.testing.assert_array_equal(alone['strain'], everything['strain'])
    assert list(alone) == ['strain']


def test_inertial_sensors_at_rest_show_gravity(boom):
    """Specific force is g upwards, in the frame of each bent tip and turned by the mounting."""
    state = Boom(boom, Scenario(duration=1.0, pose='site')).initial_state()
    tilt = (0.01, -0.02, 0.0, 0.03)
    given = load_sensors().replace(mounting=tilt)
    shown = Sensors(boom, given, RATE).read(state, 0)
    assert shown['gyroscope'] == pytest.approx(np.zeros(4), abs=1e-12)
    along, across = np.split(shown['accelerometer'], 2)
    turned = shown['inclination'][4:] + np.array(tilt)
    assert along == pytest.approx(boom.gravity * np.sin(turned), abs=1e-6)
    assert across == pytest.approx(boom.gravity * np.cos(turned), abs=1e-6)


def test_inertial_sensors_follow_the_motion(boom):
    """Between slips rates and accelerations are the derivatives of angles and velocities."""
    scenario = Scenario(
        duration=1.0, pose='site', friction=False, loads=(HangingLoad(90.0),), release=(0.0,)
    )
    machine = Boom(boom, scenario, 1e-4)
    state, sensors = machine.initial_state(), Sensors(boom, load_sensors(), RATE, friction=False)
    closed, h = (0.0,) * boom.size, 1e-3
    state = machine.advance(state, closed, 0.0, 0.3)
    states = [state]
    for k in range(2):
        states.append(machine.advance(states[-1], closed, 0.3 + k * h, h))
    shown = [sensors.read(one, 0) for one in states]
    parts = StateParts.of(np.stack([one.y for one in states]), boom)
    motions = [
        point_motion(boom, parts.q, parts.v, i, beam.length) for i, beam in enumerate(boom.beams)
    ]
    tips = np.stack([motion.velocity for motion in motions], axis=1)
    before, angle, after = (one['inclination'][4:] for one in shown)
    assert shown[1]['gyroscope'] == pytest.approx((after - before) / (2.0 * h), rel=1e-4, abs=1e-6)
    felt = (tips[2] - tips[0]) / (2.0 * h) + [0.0, boom.gravity]
    along = felt[:, 0] * np.cos(angle) + felt[:, 1] * np.sin(angle)
    across = -felt[:, 0] * np.sin(angle) + felt[:, 1] * np.cos(angle)
    assert np.abs(felt[:, 1] - boom.gravity).max() > 0.5
    expected = np.concatenate([along, across])
    assert shown[1]['accelerometer'] == pytest.approx(expected, rel=1e-3, abs=2e-3)


@pytest.mark.parametrize(('beams', 'first'), [(2, [0, 1]), (5, [0, 1, 2, 3, 0])])
def test_typical_sensors_are_those_of_any_number_of_beams(beams, first):
    four, other = load_sensors('typical'), load_sensors('typical', beams)
    assert other.strain.bias == tuple(four.strain.bias[k] for k in first)
    tips = [4 + k for k in first]
    assert other.inclination.drift == tuple(four.inclination.drift[k] for k in first + tips)
    assert other.mounting == tuple(four.mounting[k] for k in first)
    assert other.encoder.drift == ()
    assert load_sensors('typical', 4) == four


def test_a_message_from_the_future_is_refused(tmp_path):
    file = tmp_path / 'sensors.yaml'
    file.write_text(default_file().read_text() + 'jitter: 0.02\n')
    with pytest.raises(InputError, match=r'jitter = 0\.02 s, allowed: at most delay'):
        load_sensors(file)


@pytest.mark.parametrize('given', [{'delay': 0.002}, {'delay': 0.01, 'jitter': 0.002}])
def test_a_delay_of_a_part_of_a_sample_is_refused(boom, given):
    parameters = load_sensors('typical').replace(**given)
    with pytest.raises(InputError, match=r'= 0\.002 s, allowed at 200 samples per second'):
        Sensors(boom, parameters, 200.0)
    Sensors(boom, parameters, 1000.0)
