"""Conversions between objects of the library and messages."""

from __future__ import annotations

from longreach_msgs.msg import CraneCommand, CraneSensors, CraneStatus
from std_msgs.msg import Header

from longreach_crane.control import Controller, ControllerState, Sample
from longreach_crane.machine import Command
from longreach_dynamics.errors import InputError


def sample_to_message(sample: Sample, header: Header) -> CraneSensors:
    """Return the readings of the sensors as a message."""
    return CraneSensors(header=header, **sample._asdict())


def sample_from_message(message: CraneSensors) -> Sample:
    """Return the readings of the sensors."""
    return Sample(message.car_position, message.below_minimum, message.above_maximum)


def command_to_message(command: Command, header: Header) -> CraneCommand:
    """Return a command as a message with the header of the sample that it answers."""
    return CraneCommand(header=header, force=command.force, brake=command.brake)


def command_from_message(message: CraneCommand, maximum_force: float) -> Command:
    """Return a command; InputError for a force [N] that is larger, or not finite."""
    if not abs(message.force) <= maximum_force:
        raise InputError(
            f'force = {message.force:g} N, allowed: [{-maximum_force:g}, {maximum_force:g}] N,'
            ' the maximum_force of the crane file'
        )
    return Command(message.force, message.brake)


def status_to_message(
    state: ControllerState, controller: Controller, set_point: float, missed: int, header: Header
) -> CraneStatus:
    """Return the state and the decisions of the controller in one cycle as a message."""
    names = ('motor_force', 'car_position', 'car_velocity', 'angle', 'angular_velocity')
    return CraneStatus(
        header=header,
        set_point=set_point,
        **dict(zip(names, state.observer.tolist(), strict=True)),
        steady_time=controller.steady_time(state),
        brake=state.command.brake,
        emergency_mode=bool(state.emergency),
        emergency_reason=int(state.emergency),
        missed_samples=missed,
    )
