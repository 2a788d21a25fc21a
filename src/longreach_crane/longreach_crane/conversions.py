"""Between the library's objects and messages; nothing is calculated here."""

from __future__ import annotations

from builtin_interfaces.msg import Time
from longreach_msgs.msg import CraneCommand, CraneSensors, CraneStatus
from std_msgs.msg import Header

from longreach_crane.control import Command, Controller, ControllerState
from longreach_crane.diagnosis import Sample

__all__ = [
    'FRAME',
    'command_from_message',
    'command_to_message',
    'sample_from_message',
    'sample_to_message',
    'status_to_message',
]

# The frame of the track, along whose x axis the car's position counts.
FRAME = 'track'


def _header(stamp: Time) -> Header:
    """Return a header in the frame of the track."""
    return Header(stamp=stamp, frame_id=FRAME)


def sample_to_message(sample: Sample, stamp: Time) -> CraneSensors:
    """Return what the sensors report as a message."""
    return CraneSensors(
        header=_header(stamp),
        car_position=sample.car_position,
        below_minimum=sample.below_minimum,
        above_maximum=sample.above_maximum,
    )


def sample_from_message(message: CraneSensors) -> Sample:
    """Return what the sensors report."""
    return Sample(message.car_position, message.below_minimum, message.above_maximum)


def command_to_message(command: Command, stamp: Time) -> CraneCommand:
    """Return a command as a message with the stamp of the sample that it answers."""
    return CraneCommand(header=_header(stamp), force=command.force, brake=command.brake)


def command_from_message(message: CraneCommand) -> Command:
    """Return a command."""
    return Command(message.force, message.brake)


def status_to_message(
    state: ControllerState, controller: Controller, set_point: float, missed: int, stamp: Time
) -> CraneStatus:
    """Return what the controller knows and has decided in one cycle as a message."""
    q = state.observer.tolist()
    return CraneStatus(
        header=_header(stamp),
        set_point=set_point,
        motor_force=q[0],
        car_position=q[1],
        car_velocity=q[2],
        angle=q[3],
        angular_velocity=q[4],
        steady_time=controller.steady_time(state),
        brake=state.command.brake,
        emergency_mode=bool(state.emergency),
        emergency_reason=int(state.emergency),
        missed_samples=missed,
    )
