"""Between values of joints and the messages that ask for them; nothing is calculated here."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trajectory_msgs.msg import JointTrajectory

from longreach_dynamics.errors import InputError, check_count
from longreach_machine.trajectory_following import Order
from longreach_node.hydraulic_messages import named_values
from longreach_node.stamps import nanoseconds_from

# A trajectory sent by hand has at most so many points, and bytes: positions, velocities,
# accelerations and efforts of four joints and the time take some 200 bytes a point.
MOST_POINTS = 5000
_MOST_BYTES = 400 * MOST_POINTS


def joint_values(
    topic: str, unit: str, names: Sequence[str], values: Sequence[float], joints: Sequence[str]
) -> dict[str, float]:
    """
    Return the values of a message by the joints' names; without names it means all, in order.

    InputError for an unknown or doubled joint, a wrong number of values, or one that is not
    finite.
    """
    found = named_values(topic, 'joint', list(names) or list(joints), values, joints)
    for name, value in found.items():
        if not math.isfinite(value):
            raise InputError(f'{topic} for {name} = {value} {unit}, allowed: finite')
    return found


def check_size(message: bytes) -> None:
    """Raise InputError for a serialized trajectory larger than ``MOST_POINTS`` points can be."""
    if len(message) > _MOST_BYTES:
        raise InputError(
            f'the trajectory has {len(message):,} bytes, allowed: {_MOST_BYTES:,}, for up to'
            f' {MOST_POINTS} points; send fewer points'
        )


def order_from_message(message: JointTrajectory, joints: Sequence[str]) -> Order:
    """Return a trajectory that was sent by hand; InputError with the point for what cannot be."""
    # Without velocities joints rest in each point. Accelerations and efforts are not used. Joints
    # are called as in joint_states, with or without ``_joint``; without names they are all.
    if len(message.points) > MOST_POINTS:
        raise InputError(
            f'the trajectory has {len(message.points)} points, allowed: up to {MOST_POINTS}; send'
            ' fewer points'
        )
    known = [joint.removesuffix('_joint') for joint in joints]
    names = [name.removesuffix('_joint') for name in message.joint_names] or known
    for index, name in enumerate(names):
        if name not in known or name in names[:index]:
            raise InputError(
                f'trajectory has the joint {message.joint_names[index]!r}, allowed, each once:'
                f' {" | ".join(joints)}'
            )
    for index, point in enumerate(message.points):
        check_count(
            f'point {index} of the trajectory', point.positions, len(names), 'one for each joint'
        )
        for what in ('positions', 'velocities', 'accelerations'):
            for name, value in zip(names, getattr(point, what), strict=False):
                if not math.isfinite(value):
                    raise InputError(
                        f'trajectory has {value} in {what} of {name} in point {index}, allowed:'
                        ' finite numbers'
                    )
    velocities = {len(point.velocities) for point in message.points}
    if not velocities <= {0} and velocities != {len(names)}:
        raise InputError(
            f'trajectory has {sorted(velocities)} velocities in its points, allowed: none at all,'
            f' or {len(names)} in each'
        )
    rates = None
    if velocities == {len(names)}:
        rates = [list(point.velocities) for point in message.points]
    times = [
        nanoseconds_from(point.time_from_start, f'time_from_start of point {index}') / 1e9
        for index, point in enumerate(message.points)
    ]
    start = 0.0
    # Without points it is an order to stop, which comes at once.
    if message.points:
        start = nanoseconds_from(message.header.stamp, 'header.stamp of the trajectory') / 1e9
    return Order(
        joints=tuple(known.index(name) for name in names),
        times=times,
        angles=[list(point.positions) for point in message.points],
        start=start,
        rates=rates,
    )
