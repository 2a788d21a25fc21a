"""A recorded run of the crane as the table that the library's own simulation gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from longreach_crane.control import Command
from longreach_crane.diagnosis import Emergency
from longreach_crane.model import Constants, load_position
from longreach_crane.parameters import Machinery
from longreach_crane.simulation import COLUMNS, Decision, Result, events_of
from longreach_dynamics.errors import InputError
from longreach_tools.bag import read_bag

__all__ = ['compare', 'read_run']


def read_run(bag: str | Path, namespace: str, machinery: Machinery) -> Result:
    """
    Return a recorded run.

    Rows are the cycles for which joint_states, command and status were recorded, paired by stamp.

    Parameters
    ----------
    bag : path
    namespace : str
        Of the recorded topics.
    machinery : Machinery
        The crane that was run, for the load's position.

    Raises
    ------
    InputError
        When the bag holds no such run.
    """
    prefix = '/' + namespace.strip('/')
    names = {f'{prefix}/{name}': name for name in ('joint_states', 'command', 'status')}
    found: dict[str, dict[int, Any]] = {name: {} for name in names.values()}
    for topic, _, message in read_bag(bag, list(names)):
        stamp = message.header.stamp
        found[names[topic]][stamp.sec * 1_000_000_000 + stamp.nanosec] = message
    stamps = sorted(set.intersection(*(set(messages) for messages in found.values())))
    if not stamps:
        counts = ', '.join(f'{topic}: {len(found[name])}' for topic, name in names.items())
        raise InputError(
            f'{bag} holds no run of the crane in namespace {prefix}: messages with one stamp on'
            f' all of joint_states, command and status are needed; found {counts}'
        )
    table = np.empty((len(stamps), len(COLUMNS)))
    decisions = []
    for row, stamp in enumerate(stamps):
        joints, command, status = (found[name][stamp] for name in names.values())
        table[row, 0] = stamp * 1e-9
        table[row, 1:6] = (
            joints.effort[0],
            joints.position[0],
            joints.velocity[0],
            joints.position[1],
            joints.velocity[1],
        )
        table[row, 7:] = command.force, command.brake, status.emergency_mode
        decisions.append(
            Decision(
                stamp * 1e-9,
                Command(command.force, command.brake),
                Emergency(status.emergency_reason),
            )
        )
    table[:, 6] = load_position(table[:, 1:6], Constants.of(machinery.crane))
    return Result(table, events_of(decisions), (), 0)


def compare(recorded: Result, expected: Result) -> dict[str, float]:
    """
    Return the largest absolute difference of each column over the cycles that both have.

    Raises
    ------
    InputError
        When the two have no cycle in common.
    """
    _, rows, expected_rows = np.intersect1d(
        np.round(recorded.column('time') * 1e6).astype(int),
        np.round(expected.column('time') * 1e6).astype(int),
        return_indices=True,
    )
    if rows.size == 0:
        raise InputError('the recording and the scenario have no control cycle in common')
    difference = np.abs(recorded.table[rows] - expected.table[expected_rows]).max(axis=0)
    differences = dict(zip(COLUMNS[1:], difference[1:].tolist(), strict=True))
    missing = max(len(expected.table), len(recorded.table)) - rows.size
    return {**differences, 'cycles_compared': rows.size, 'cycles_missing': missing}
