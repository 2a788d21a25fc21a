"""Between the library's objects and messages: every field, there and back."""

from __future__ import annotations

import math

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from longreach_msgs.msg import CraneCommand, CraneSensors, CraneStatus
from rclpy.serialization import deserialize_message, serialize_message
from std_msgs.msg import Header

from longreach_crane import conversions
from longreach_crane.control import Controller, ControllerState, Emergency, Sample
from longreach_crane.machine import Command
from longreach_crane.parameters import Machinery
from longreach_dynamics.errors import InputError

HEADER = Header(stamp=Time(sec=47, nanosec=930_000_000), frame_id='north/track')


def fields(kind: type) -> set[str]:
    return set(kind.get_fields_and_field_types())


@pytest.mark.parametrize(
    'sample',
    [
        Sample(-0.1 - 0.2, False, False),
        Sample(5.25, False, True),
        Sample(-5.25, True, False),
        Sample(math.inf, True, True),
    ],
)
def test_samples(sample: Sample) -> None:
    message = conversions.sample_to_message(sample, HEADER)
    assert message.header == HEADER
    again = deserialize_message(serialize_message(message), CraneSensors)
    assert conversions.sample_from_message(again) == sample
    assert fields(CraneSensors) == {'header', *Sample._fields}


@pytest.mark.parametrize('command', [Command(1.0 / 3.0, False), Command(0.0, True)])
def test_commands(command: Command) -> None:
    message = conversions.command_to_message(command, HEADER)
    assert message.header == HEADER
    again = deserialize_message(serialize_message(message), CraneCommand)
    assert conversions.command_from_message(again, 160.0) == command
    assert fields(CraneCommand) == {'header', *Command._fields}


@pytest.mark.parametrize('force', [math.nan, math.inf, 1e300, 160.1, -160.1])
def test_forces_beyond_the_motor_are_refused(force: float) -> None:
    with pytest.raises(InputError, match=r'allowed: \[-160, 160\] N'):
        conversions.command_from_message(CraneCommand(force=force), 160.0)
    assert conversions.command_from_message(CraneCommand(force=-160.0), 160.0).force == -160.0


@pytest.mark.parametrize('emergency', list(Emergency))
def test_status(machinery: Machinery, emergency: Emergency) -> None:
    state = ControllerState(
        observer=np.array([1.5, 2.5, 3.5, 4.5, 5.5]),
        command=Command(7.5, True),
        steady_cycles=302,
        emergency=emergency,
    )
    controller = Controller.of(machinery)
    message = conversions.status_to_message(state, controller, 8.5, 9, HEADER)
    values = {name: getattr(message, name) for name in fields(CraneStatus) - {'header'}}
    assert message.header == HEADER
    assert values == {
        'set_point': 8.5,
        'motor_force': 1.5,
        'car_position': 2.5,
        'car_velocity': 3.5,
        'angle': 4.5,
        'angular_velocity': 5.5,
        'steady_time': pytest.approx(3.01),
        'brake': True,
        'emergency_mode': emergency is not Emergency.NONE,
        'emergency_reason': int(emergency),
        'missed_samples': 9,
    }


def test_reasons_are_those_of_the_message() -> None:
    for emergency in Emergency:
        assert getattr(CraneStatus, f'REASON_{emergency.name}') == emergency
