"""Conversions between objects of the library and messages."""

from __future__ import annotations

from collections.abc import Iterable

from geometry_msgs.msg import Point
from longreach_msgs.msg import CraneCommand, CraneSensors, CraneStatus
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker

from longreach_crane.control import Controller, ControllerState
from longreach_crane.diagnosis import Sample
from longreach_crane.state import Command
from longreach_dynamics.errors import InputError


def sample_to_message(sample: Sample, header: Header) -> CraneSensors:
    """Return the readings of the sensors as a message."""
    return CraneSensors(
        header=header,
        car_position=sample.car_position,
        below_minimum=sample.below_minimum,
        above_maximum=sample.above_maximum,
    )


def sample_from_message(message: CraneSensors) -> Sample:
    """Return the readings of the sensors."""
    return Sample(message.car_position, message.below_minimum, message.above_maximum)


def command_to_message(command: Command, header: Header) -> CraneCommand:
    """Return a command as a message with the header of the sample that it answers."""
    return CraneCommand(header=header, force=command.force, brake=command.brake)


def command_from_message(message: CraneCommand, maximum_force: float) -> Command:
    """
    Return a command.

    Parameters
    ----------
    message : CraneCommand
    maximum_force : float
        Largest force of the motor [N].

    Raises
    ------
    InputError
        When the force is larger, or not finite.
    """
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
    q = state.observer.tolist()
    return CraneStatus(
        header=header,
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


def trace_marker(
    name: str,
    points: Iterable[tuple[float, float]],
    color: tuple[float, float, float],
    header: Header,
) -> Marker:
    """Return a trace through points (x, z) [m] as a line; color as red, green, blue in 0..1."""
    marker = Marker(header=header, ns=name, type=Marker.LINE_STRIP, action=Marker.ADD)
    marker.pose.orientation.w = 1.0
    marker.scale.x = 0.02
    marker.color = ColorRGBA(r=color[0], g=color[1], b=color[2], a=1.0)
    marker.points = [Point(x=x, y=0.0, z=z) for x, z in points]
    return marker
