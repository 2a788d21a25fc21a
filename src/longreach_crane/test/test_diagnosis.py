"""Sensors and what calls for the emergency mode."""

from __future__ import annotations

import dataclasses
import math

import pytest

from longreach_crane.control import Controller, Emergency, Sample, sense
from longreach_crane.parameters import CraneParameters, Machinery


@pytest.mark.parametrize(
    ('position', 'below', 'above'),
    [
        (5.0, False, False),
        (math.nextafter(5.0, 6.0), False, True),
        (-5.0, False, False),
        (math.nextafter(-5.0, -6.0), True, False),
        (math.nan, False, False),
    ],
)
def test_switches_close_strictly_beyond_the_limits(
    position: float, below: bool, above: bool, crane: CraneParameters
) -> None:
    sample = sense(position, crane)
    assert sample[1:] == (below, above)
    assert sample.is_valid == math.isfinite(position)
    shifted = crane.replace(minimum_position=6.0, maximum_position=8.0)
    assert sense(position, shifted)[1:] == (math.isfinite(position), False)


@pytest.mark.parametrize(
    ('sample', 'emergency'),
    [
        (Sample(5.0, False, False), Emergency.NONE),
        (Sample(0.0, True, False), Emergency.POSITION_LIMIT),
        (Sample(math.nan, False, True), Emergency.POSITION_LIMIT),
        (Sample(-5.1, False, False), Emergency.POSITION_LIMIT),
        (Sample(5.1, False, False), Emergency.POSITION_LIMIT),
        (Sample(math.nan, False, False), Emergency.NONE),
    ],
)
def test_a_switch_or_the_position_alone_suffices(
    sample: Sample, emergency: Emergency, machinery: Machinery
) -> None:
    controller = Controller.of(machinery)
    assert controller.cycle(controller.initial_state(), sample, 0.0).emergency is emergency


@pytest.mark.parametrize(('timeout', 'last_silent'), [(0.5, 50), (0.05, 5), (0.005, 0)])
@pytest.mark.parametrize('sample', [None, Sample(math.inf, False, False)])
def test_silence_is_an_emergency_when_longer_than_the_timeout(
    timeout: float, last_silent: int, sample: Sample | None, machinery: Machinery
) -> None:
    rules = machinery.controller.replace(sensor_timeout=timeout)
    controller = Controller.of(dataclasses.replace(machinery, controller=rules))
    state, silent = controller.initial_state(), 0
    while state.emergency is Emergency.NONE:
        state, silent = controller.cycle(state, sample, 0.0), silent + 1
    assert (state.emergency, silent) == (Emergency.SENSOR_TIMEOUT, last_silent + 1)
