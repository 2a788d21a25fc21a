"""A recorded run of the excavator as columns of the table that the library's simulation gives."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.results import COLUMNS, REACTIONS, Result
from longreach_tools.bag import named_values, read_samples
from longreach_tools.comparison import compare_tables

__all__ = ['RECORDED', 'RecordedRun', 'compare', 'read_run']

# Columns that messages hold, in the order in which they are read.
RECORDED = (
    'time',
    *(f'theta_{k}' for k in (2, 3, 4)),
    *(f'omega_{k}' for k in (2, 3, 4)),
    *(f'force_{name}' for name in CYLINDERS),
    *(f'{side}_{name}' for side in ('p_head', 'p_rod', 'spool') for name in CYLINDERS),
    *(f'{name}_{axis}' for axis in 'xz' for name in REACTIONS),
    'soil_x',
    'soil_z',
)

_TOPICS = ('joint_states', 'hydraulics', 'reactions', 'soil_force')


@dataclasses.dataclass(frozen=True)
class RecordedRun:
    """
    A recorded run.

    Parameters
    ----------
    table : ndarray, shape (rows, len(RECORDED))
        Units as in :func:`longreach_excavator.results.series`.
    """

    table: np.ndarray

    def sample_time(self, step: float) -> float:
        """Return the interval of the rows in whole steps [s]; ``step`` [s] for a single row."""
        times = self.table[:, 0]
        return max(round(float(np.diff(times).min()) / step), 1) * step if len(times) > 1 else step

    def column(self, name: str) -> np.ndarray:
        """Return one column by its name, shape (rows,); InputError for a name that is none."""
        if name not in RECORDED:
            raise InputError(f'column = {name!r}, allowed: {", ".join(RECORDED)}')
        return self.table[:, RECORDED.index(name)]


def read_run(bag: str | Path, namespace: str) -> RecordedRun:
    """
    Return a recorded run.

    Rows are the samples of which joint_states, hydraulics, reactions and soil_force were recorded,
    paired by stamp.

    Parameters
    ----------
    bag : path
    namespace : str
        Of the recorded topics.

    Raises
    ------
    InputError
        When the bag holds no such run.
    """
    stamps, messages = read_samples(bag, namespace, _TOPICS, 'excavator')
    joints, hydraulics, reactions, soil = messages
    values = functools.partial(named_values, machine='excavator')
    angles = [f'{name}_joint' for name in CYLINDERS]
    names = list(CYLINDERS)
    pins = values('reactions', reactions, 'force', list(REACTIONS))
    pushes = np.array([[message.wrench.force.x, message.wrench.force.z] for message in soil])
    parts = [
        np.array([[at / 1e9] for at in stamps]),
        values('joint_states', joints, 'position', angles),
        values('joint_states', joints, 'velocity', angles),
        values('joint_states', joints, 'effort', [f'{name}_cylinder' for name in CYLINDERS]),
        *(
            values('hydraulics', hydraulics, field, names)
            for field in ('head_pressure', 'rod_pressure', 'spool')
        ),
        *(np.array([[getattr(force, axis) for force in row] for row in pins]) for axis in 'xz'),
        pushes,
    ]
    return RecordedRun(np.concatenate(parts, axis=1))


def compare(recorded: RecordedRun, expected: Result) -> dict[str, float]:
    """
    Return the largest absolute difference of each column over the samples that both have.

    A run that is longer than the other is compared as far as the other goes.

    Raises
    ------
    InputError
        When the two have no sample in common.
    """
    kept = [COLUMNS.index(name) for name in RECORDED]
    end = min(recorded.table[-1, 0], expected.table[-1, 0]) + 1e-9
    tables = (table[table[:, 0] <= end] for table in (recorded.table, expected.table[:, kept]))
    return compare_tables(RECORDED, *tables)
