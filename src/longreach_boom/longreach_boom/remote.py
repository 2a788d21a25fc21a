"""What the command line says to nodes that run."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from builtin_interfaces.msg import Duration, Time
from longreach_msgs.msg import HydraulicState, ValveCommand
from longreach_msgs.srv import AttachLoad
from rclpy.publisher import Publisher
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from longreach_boom import conversions
from longreach_boom.simulation import BoomCommand
from longreach_dynamics.errors import InputError, LongreachError
from longreach_node import qos
from longreach_node.remote import Remote, remote
from longreach_node.stamps import nanoseconds_of, seconds_to_nanoseconds

__all__ = ['attach_load', 'call_plant', 'command_valves', 'send_trajectory']

_START = 'longreach launch boom'
# Between commands to the valves [s]: a fraction of the plant's usual command_timeout.
_PERIOD = 0.02
# Who else is there is known so long after the first of them was found [s].
_DISCOVERY = 0.5
# Of a trajectory, as in a scenario [s].
_LONGEST = 1e6


def call_plant(service: str, namespace: str, timeout: float) -> str:
    """
    Call a service of the plant that takes no arguments, and return its answer.

    Parameters
    ----------
    service : str
        Such as ``pause`` or ``release_load``.
    namespace : str
    timeout : float
        Longest wait [s].

    Raises
    ------
    LongreachError
        When there is no plant, or it refuses.
    """
    with remote(service, namespace, timeout, _START) as far:
        return far.trigger(f'plant/{service}')


def attach_load(
    mass: float, beam: str, position: float | None, namespace: str, timeout: float
) -> str:
    """
    Hang a load on the boom, and return the plant's answer.

    Parameters
    ----------
    mass : float
        [kg].
    beam : str
        Name; empty: the last.
    position : float or None
        Along the beam [m]; none: at its tip.
    namespace : str
    timeout : float
        Longest wait [s].

    Raises
    ------
    LongreachError
        When there is no plant, or it refuses.
    """
    place = math.nan if position is None else position
    request = AttachLoad.Request(mass=mass, beam=beam, position=place)
    with remote('attach_load', namespace, timeout, _START) as far:
        return far.call(AttachLoad, 'plant/attach_load', request)


def command_valves(
    spools: Sequence[float], duration: float, namespace: str, timeout: float
) -> str:
    """
    Command the valves for some time, close them, and return the topic.

    They are closed, too, when this is interrupted.

    Parameters
    ----------
    spools : sequence of float
        Spool positions, -1 to 1, one for each cylinder.
    duration : float
        [s] of real time.
    namespace : str
    timeout : float
        Longest wait for the plant and its samples [s].

    Raises
    ------
    InputError
        When the boom has another number of cylinders.
    LongreachError
        When there is no plant, its time stands still, or somebody else commands the valves.
    """
    with remote('valves', namespace, timeout, _START) as far:
        publisher = far.publisher(ValveCommand, 'valve_command', qos.STREAM, 'plant')
        far.spin(min(_DISCOVERY, timeout))
        _check_alone(far, publisher)
        names = _cylinders(far)
        if len(names) != len(spools):
            raise InputError(
                f'{len(spools)} spool positions, allowed: {len(names)}, one for each of'
                f' {", ".join(names)}'
            )
        # A stamp of zero is now.
        told = conversions.command_to_message(names, BoomCommand(tuple(spools)), Time())
        closed = conversions.command_to_message(names, BoomCommand((0.0,) * len(names)), Time())
        begun = time.monotonic()
        try:
            for count in range(math.ceil(duration / _PERIOD)):
                _check_alone(far, publisher)
                publisher.publish(told)
                until = begun + min(duration, (count + 1) * _PERIOD)
                far.spin(until - time.monotonic())
        finally:
            far.deliver(publisher, closed)
        return str(publisher.topic_name)


def _cylinders(far: Remote) -> list[str]:
    """Return the names of a boom's cylinders, once it is seen to move on in time."""
    samples: dict[int, list[str]] = {}

    def add(message: HydraulicState) -> None:
        samples[nanoseconds_of(message.header.stamp)] = list(message.name)

    subscription = far.node.create_subscription(HydraulicState, 'hydraulics', add, qos.STREAM)
    far.until(
        lambda: len(samples) > 1,
        f'{subscription.topic_name}: the time of the boom stands still',
        'if it is paused, longreach boom resume lets it go on; in lockstep it waits for its'
        ' controller, and nobody else can command the valves',
    )
    far.node.destroy_subscription(subscription)
    return next(iter(samples.values()))


def _check_alone(far: Remote, publisher: Publisher) -> None:
    """Raise LongreachError when others command the valves, or nobody is left who has them."""
    topic = publisher.topic_name
    senders = [other.node_name for other in far.node.get_publishers_info_by_topic(topic)]
    if len(senders) > 1:
        senders.remove(far.node.get_name())
        raise LongreachError(
            f'{", ".join(senders)} commands the valves on {topic}, too; start the boom with'
            f' {_START} controller:=false to move them by hand, or its joints with longreach boom'
            ' move'
        )
    if not publisher.get_subscription_count():
        raise LongreachError(f'{topic}: the plant has gone')


def send_trajectory(
    angles: Sequence[float],
    duration: float,
    joints: Sequence[str],
    namespace: str,
    timeout: float,
) -> str:
    """
    Let the controller move joints to angles, and return the topic.

    Parameters
    ----------
    angles : sequence of float
        [rad].
    duration : float
        From now until they are there [s] of simulation.
    joints : sequence of str
        Names of beams, one for each angle; none: all joints.
    namespace : str
    timeout : float
        Longest wait for the controller, and for its answer [s].

    Raises
    ------
    InputError
        When there are not as many joints as angles.
    LongreachError
        When there is no controller, or it refuses the trajectory.
    """
    if joints and len(joints) != len(angles):
        raise InputError(f'{len(angles)} angles, allowed: {len(joints)}, one for each joint named')
    if not 0.0 < duration <= _LONGEST:
        raise InputError(f'time = {duration:g} s, allowed: (0, {_LONGEST:g}] s')
    seconds, nanoseconds = divmod(seconds_to_nanoseconds(duration), 1_000_000_000)
    point = JointTrajectoryPoint(
        positions=angles, time_from_start=Duration(sec=seconds, nanosec=nanoseconds)
    )
    message = JointTrajectory(joint_names=joints, points=[point])
    with remote('move', namespace, timeout, _START) as far:
        publisher = far.publisher(JointTrajectory, 'trajectory', qos.SET_POINT, 'controller')
        # The topic brings no answer back; what the controller thinks of it stands in its log.
        log = far.log_of('controller')
        far.deliver(publisher, message)
        answers: list[str] = []

        def answered() -> bool:
            answers.extend(text for text in log if text.startswith('trajectory'))
            return bool(answers)

        far.until(answered, f'{publisher.topic_name}: no answer in the log of the controller')
        if answers[0].startswith('trajectory ignored'):
            raise LongreachError(f'{publisher.topic_name}: {answers[0]}')
        return str(publisher.topic_name)
