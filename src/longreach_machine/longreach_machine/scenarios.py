"""Common parts of scenarios of machines with valves: timed commands, and an initial pose."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from longreach_dynamics.errors import InputError, check_count
from longreach_dynamics.parameters import Parameters, quantity
from longreach_machine.machine import step_count
from longreach_machine.poses import JointedMachine

# Times are whole steps, but not to the last bit [s].
_ROUNDING = 1e-9


@dataclasses.dataclass(frozen=True)
class ValveCommand(Parameters):
    """Spool positions that are commanded from a time on."""

    time: float = quantity('from when on', 's', at_least=0.0, at_most=1e6)
    spools: tuple[float, ...] = quantity(
        'spool positions, one for each cylinder', at_least=-1.0, at_most=1.0
    )


def check_times(times: Sequence[float], step: float | None, what: str) -> None:
    """
    Raise InputError for times that are no whole steps [s]; None checks nothing.

    ``what`` names an entry, ``{}`` stands for its index.
    """
    if step is not None:
        for index, time in enumerate(times):
            step_count(time, step, what.format(index))


def check_valve_commands(
    commands: Sequence[ValveCommand], cylinders: int, step: float | None
) -> None:
    """Raise InputError unless commands are on steps [s] and have a spool for each cylinder."""
    check_times([command.time for command in commands], step, 'valve_commands[{}].time')
    for index, command in enumerate(commands):
        check_count(f'valve_commands[{index}].spools', command.spools, cylinders)


def spools_at(commands: Sequence[ValveCommand], time: float, cylinders: int) -> tuple[float, ...]:
    """Return the spool positions at a time [s]; a command holds until the next, closed before."""
    spools = (0.0,) * cylinders
    for command in commands:
        if command.time > time + _ROUNDING:
            break
        spools = command.spools
    return spools


def first_pose(machine: JointedMachine, name: str) -> str:
    """Return the first pose of a machine; InputError, with its name, when there is none."""
    if not machine.poses:
        raise InputError(
            f'poses of the {name} file is empty, allowed without a scenario: at least 1'
        )
    return machine.poses[0].name
