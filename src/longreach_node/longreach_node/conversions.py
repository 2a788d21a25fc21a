"""Between arrays and the messages that all hydraulic machines have; nothing is calculated here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from longreach_msgs.msg import HydraulicState, ValveCommand
from numpy.typing import ArrayLike
from std_msgs.msg import Header

from longreach_dynamics.errors import InputError, check_count, check_within
from longreach_machine import MachineSpec


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
