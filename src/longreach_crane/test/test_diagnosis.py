"""Sensors and what calls for the emergency mode."""

from __future__ import annotations

import math

import pytest

from longreach_crane.diagnosis import (
    Emergency,
    Sample,
    is_valid,
    position_emergency,
    sense,
    silence_emergency,
)
from longreach_crane.parameters import CraneParameters, Machinery


@pytest.mark.parametrize(
    ('position', 'below', 'above'),
    [
        (0.0, False, False),
        (5.0, False, False),
        (math.nextafter(5.0, 6.0), False, True),
        (-5.0, False, False),
        (math.nextafter(-5.0, -6.0), True, False),
    ],
)
def test_switches_close_strictly_beyond_the_limits(
    position: float, below: bool, above: bool, crane: CraneParameters
) -> None:
    sample = sense(position, crane)
    assert sample == Sample(position, below, above)
    expected = Emergency.POSITION_LIMIT if below or above else Emergency.NONE
    assert position_emergency(sample, crane) is expected


@pytest.mark.parametrize('switches', [(True, False), (False, True)])
def test_a_switch_alone_suffices(switches: tuple[bool, bool], crane: CraneParameters) -> None:
    assert position_emergency(Sample(0.0, *switches), crane) is Emergency.POSITION_LIMIT


@pytest.mark.parametrize('position', [-5.1, 5.1])
def test_the_position_alone_suffices(position: float, crane: CraneParameters) -> None:
    sample = Sample(position, False, False)
    assert position_emergency(sample, crane) is Emergency.POSITION_LIMIT


def test_limits_need_not_be_symmetric(crane: CraneParameters) -> None:
    shifted = crane.replace(minimum_position=1.0, maximum_position=3.0)
    assert sense(0.0, shifted) == (0.0, True, False)
    assert position_emergency(sense(2.0, shifted), shifted) is Emergency.NONE


@pytest.mark.parametrize(
    ('position', 'valid'), [(0.0, True), (math.nan, False), (math.inf, False), (-math.inf, False)]
)
def test_only_finite_positions_are_valid(position: float, valid: bool) -> None:
    assert is_valid(Sample(position, False, False)) is valid


@pytest.mark.parametrize(('timeout', 'last_silent'), [(0.5, 50), (0.05, 5), (0.005, 0)])
def test_silence_is_an_emergency_when_longer_than_the_timeout(
    timeout: float, last_silent: int, machinery: Machinery
) -> None:
    controller = machinery.controller.replace(sensor_timeout=timeout)
    assert silence_emergency(last_silent, controller) is Emergency.NONE
    assert silence_emergency(last_silent + 1, controller) is Emergency.SENSOR_TIMEOUT
