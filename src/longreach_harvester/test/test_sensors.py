"""Sensors of the joints, in the library's closed loop and as topics."""

import numpy as np
import pytest
from harvesters import IDEAL, STANDARD, run_of, shipped

from longreach_harvester.sensors import SensorParameters, Sensors, load_sensors
from longreach_machine.sensors import TemperatureProfile

ANGLES = ('q_swing', 'q_boom', 'q_stick')
TIP = shipped('tip')


def sensors(**changes):
    temperature = TemperatureProfile(offset=0.0, amplitude=0.0, period=1.0)
    usual = {'seed': 3, 'temperature': temperature, 'swing': IDEAL, 'pistons': IDEAL}
    return SensorParameters(**(usual | changes))


def test_pistons_are_quantised_and_angles_go_through_the_linkages():
    step = 0.002
    read = Sensors(STANDARD, sensors(pistons=IDEAL.replace(step=step)), 100.0).read
    random = np.random.default_rng(1)
    for k in range(50):
        angles = random.uniform((-3.0, -0.5, -2.0), (3.0, 1.0, -0.2))
        shown = read(angles, k)
        counts = shown.pistons / step
        np.testing.assert_allclose(counts, np.round(counts), atol=1e-9)
        assert shown.angles[0] == angles[0]
        for i, actuator in enumerate(STANDARD.actuators[1:]):
            assert actuator.linkage.position(shown.angles[1 + i]) == pytest.approx(
                shown.pistons[i], abs=1e-12
            )
            assert abs(shown.pistons[i] - actuator.linkage.position(angles[1 + i])) <= step / 2


def test_readings_beyond_a_linkage_are_its_end():
    far = sensors(pistons=IDEAL.replace(bias=(9.0, -9.0)))
    boom, stick = (a.linkage.angles_of_rise() for a in STANDARD.actuators[1:])
    shown = Sensors(STANDARD, far, 100.0).read(np.array([0.0, 0.5, -1.2]), 0)
    assert shown.angles[1:] == pytest.approx([boom[1], stick[0]])


def test_ideal_sensors_change_nothing_typical_ones_something():
    plain, ideal, typical = (
        run_of(TIP.replace(duration=6.0), step=1e-3, sensors=given).stack(ANGLES)
        for given in (None, sensors(), load_sensors('typical'))
    )
    assert np.abs(plain - ideal).max() < 1e-9
    off = np.abs(plain - typical).max(axis=0)
    assert (off[1:] > 1e-4).all(), 'the swing does not move yet'
    assert (off < 2e-2).all()
