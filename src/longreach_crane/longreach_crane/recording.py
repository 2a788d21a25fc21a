"""A recorded run of the crane as the table that the library's own simulation gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from longreach_crane.diagnosis import Emergency
from longreach_crane.model import Constants, load_position
from longreach_crane.parameters import Machinery
from longreach_crane.results import COLUMNS, Decision, Result, events_of
from longreach_crane.state import Command
from longreach_tools.bag import read_samples
from longreach_tools.comparison import compare_tables

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
    stamps, messages = read_samples(bag, namespace, ('joint_states', 'command', 'status'), 'crane')
    table = np.empty((len(stamps), len(COLUMNS)))
    decisions = []
    samples = zip(stamps, *messages, strict=True)
    for row, (stamp, joints, command, status) in enumerate(samples):
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
    return compare_tables(COLUMNS, recorded.table, expected.table, 'control cycle')
