"""Trajectories for the joint controller of a machine that runs as nodes."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_interfaces.msg import Duration
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from longreach_dynamics.errors import InputError, LongreachError
from longreach_node import qos
from longreach_node.remote import remote
from longreach_node.stamps import seconds_to_nanoseconds

# Of a trajectory, as in a scenario [s].
_LONGEST = 1e6


def send_trajectory(
    angles: Sequence[float],
    duration: float,
    joints: Sequence[str],
    namespace: str,
    timeout: float,
    start: str,
) -> str:
    """
    Let the controller move joints to angles [rad], and return the topic.

    They are there after ``duration`` [s of simulation]; without names all joints move. ``start``
    is the command that starts a controller, for errors. LongreachError when there is no
    controller, or it refuses the trajectory.
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
    with remote('move', namespace, timeout, start) as far:
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
