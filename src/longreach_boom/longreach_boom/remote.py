"""What the command line says to nodes that run."""

from __future__ import annotations

import math
from collections.abc import Sequence

from builtin_interfaces.msg import Duration
from longreach_msgs.srv import AttachLoad
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from longreach_dynamics.errors import InputError, LongreachError
from longreach_node import qos
from longreach_node.remote import remote
from longreach_node.stamps import seconds_to_nanoseconds

__all__ = ['attach_load', 'send_trajectory']

_START = 'longreach launch boom'
# Of a trajectory, as in a scenario [s].
_LONGEST = 1e6


def attach_load(
    mass: float, beam: str, position: float | None, namespace: str, timeout: float
) -> str:
    """
    Attach a load to the boom, and return the plant's answer.

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
