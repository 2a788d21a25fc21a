"""Between arrays and the messages of valves, oil and joints; nothing is calculated here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from longreach_msgs.msg import HydraulicState, ValveCommand
from numpy.typing import ArrayLike
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory

from longreach_dynamics.errors import InputError, check_count, check_within
from longreach_machine import MachineSpec
from longreach_machine.trajectory_following import Order
from longreach_node.stamps import nanoseconds_from

# A trajectory sent by hand has at most so many points, and bytes: positions, velocities,
# accelerations and efforts of four joints and the time take some 200 bytes a point.
MOST_POINTS = 5000
_MOST_BYTES = 400 * MOST_POINTS


def hydraulic_state(
    names: Sequence[str],
    head_pressure: np.ndarray,
    rod_pressure: np.ndarray,
    header: Header,
    head_flow: ArrayLike = (),
    rod_flow: ArrayLike = (),
    spool: ArrayLike = (),
) -> HydraulicState:
    """
    Return the state of N cylinders and valves as a message; what is not measured is empty.

    Pressures (N,) [Pa], flows into the head side and out of the rod side [m^3/s], spools in [-1,
    1].
    """
    return HydraulicState(
        header=header,
        name=list(names),
        head_pressure=head_pressure.tolist(),
        rod_pressure=rod_pressure.tolist(),
        head_flow=np.asarray(head_flow).tolist(),
        rod_flow=np.asarray(rod_flow).tolist(),
        spool=np.asarray(spool).tolist(),
    )


def values_from_command(
    message: ValveCommand, known: Sequence[str], topic: str, forces: bool = False
) -> tuple[dict[str, float], dict[str, float]]:
    """
    Return spool positions, and forces [N], of a command by the cylinders' names.

    ``known`` are all cylinders, which are meant by a message without names; ``forces`` says
    whether the machine takes forces, whose sizes are for it to check. InputError for spools and
    forces at once, unknown or doubled names, a wrong number of values, or a spool outside [-1, 1].
    """
    if len(message.force) and (len(message.spool) or not forces):
        allowed = 'one of both' if forces else 'spool positions only'
        raise InputError(
            f'{topic} has {len(message.spool)} spool positions and {len(message.force)} forces,'
            f' allowed: {allowed}'
        )
    given = list(message.name) or list(known)
    if len(message.force):
        return {}, named_values(topic, 'name', given, message.force, known)
    by_name = named_values(topic, 'name', given, message.spool, known)
    for name, spool in by_name.items():
        check_within(f'{topic} for {name}', spool, '[-1, 1]')
    return by_name, {}


def spools_from_message(
    message: ValveCommand, known: Sequence[str], topic: str
) -> tuple[float, ...]:
    """Return spool positions in the order of ``known``, as :func:`values_from_command`."""
    spools, _ = values_from_command(message, known, topic)
    return tuple(spools.get(name, 0.0) for name in known)


def named_values(
    topic: str, what: str, names: Sequence[str], values: Sequence[float], known: Sequence[str]
) -> dict[str, float]:
    """Return values by name; InputError for a wrong number, or a name not known or doubled."""
    each = 'one for each name, or for all in order when it has no names'
    check_count(topic, values, len(names), each)
    found: dict[str, float] = {}
    for name, value in zip(names, values, strict=True):
        if name not in known or name in found:
            raise InputError(
                f'{topic} has the {what} {name!r}, allowed, each once: {" | ".join(known)}'
            )
        found[name] = value
    return found


def finite_values(
    topic: str, names: Sequence[str], values: Sequence[float], wanted: Sequence[str]
) -> np.ndarray:
    """Return values in the order of some names; InputError for a missing or non-finite one."""
    by_name = dict(zip(names, values, strict=False))
    for name in wanted:
        if name not in by_name:
            raise InputError(f'{topic} has no value for {name}, allowed: one for each')
        if not math.isfinite(by_name[name]):
            raise InputError(f'{topic} has {by_name[name]} for {name}, allowed: finite numbers')
    return np.array([by_name[name] for name in wanted])


class ControlMessages:
    """What a controller of a declared machine gets and sends, by the names of its columns."""

    def __init__(self, spec: MachineSpec[Any, Any, Any], parameters: Any) -> None:
        self._actuators, self._wanted = spec.actuators(parameters), []
        for family in spec.measures:
            columns = [one for one in spec.columns(parameters) if one.family == family]
            sources = [source for column in columns for source in column.sources]
            names = [source.name for source in sources]
            self._wanted.append((sources[0].topic, sources[0].field, names))

    def measured(self, joints: Any, hydraulics: Any) -> list[np.ndarray]:
        """Return the families that the machine ``measures``; InputError as finite_values."""
        given = {'joint_states': joints, 'hydraulics': hydraulics}
        return [
            finite_values(topic, given[topic].name, getattr(given[topic], field), names)
            for topic, field, names in self._wanted
        ]

    def command(self, command: Any, header: Header) -> ValveCommand:
        """Return the message of spool positions, or of what has them as ``spools``."""
        spools = getattr(command, 'spools', command)
        return ValveCommand(header=header, name=self._actuators, spool=spools)


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
