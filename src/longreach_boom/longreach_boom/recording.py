"""A recorded run of the boom as the table that the library's own simulation gives."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path

import numpy as np

from longreach_boom.kinematics import beam_frames
from longreach_boom.parameters import BoomParameters
from longreach_boom.results import Result, columns_of
from longreach_tools.bag import named_values, read_samples
from longreach_tools.comparison import compare_tables

__all__ = ['RecordedRun', 'compare', 'read_run', 'recorded_columns']

_TOPICS = ('joint_states', 'hydraulics', 'strain')


def recorded_columns(boom: BoomParameters) -> tuple[str, ...]:
    """Return those columns of a simulation that messages hold: all but the pistons' modes."""
    return tuple(name for name in columns_of(boom) if not name.startswith('mode_'))


@dataclasses.dataclass(frozen=True)
class RecordedRun:
    """
    A recorded run.

    Parameters
    ----------
    boom : BoomParameters
    table : ndarray, shape (rows, 3 + 7 N)
        Columns as in :func:`recorded_columns`, units as in
        :func:`longreach_boom.results.series`.
    """

    boom: BoomParameters
    table: np.ndarray

    def column(self, name: str) -> np.ndarray:
        """Return one column by its name, shape (rows,)."""
        return self.table[:, recorded_columns(self.boom).index(name)]


def read_run(bag: str | Path, namespace: str, boom: BoomParameters) -> RecordedRun:
    """
    Return a recorded run.

    Rows are the samples of which joint_states, hydraulics and strain were recorded, paired by
    stamp. The tip follows from joints, deflections and slopes.

    Parameters
    ----------
    bag : path
    namespace : str
        Of the recorded topics.
    boom : BoomParameters
        The boom that was run.

    Raises
    ------
    InputError
        When the bag holds no such run, or one of another boom.
    """
    stamps, (joints, hydraulics, strain) = read_samples(bag, namespace, _TOPICS, 'boom')
    beams = [beam.name for beam in boom.beams]
    cylinders = [cylinder.name for cylinder in boom.cylinders]
    values = functools.partial(named_values, machine='boom')
    angles, deflections, slopes = (
        values('joint_states', joints, 'position', [f'{beam}_{what}' for beam in beams])
        for what in ('joint', 'deflection', 'slope')
    )
    parts = [
        np.array([[at / 1e9] for at in stamps]),
        _tips(boom, angles, deflections, slopes),
        angles,
        values('joint_states', joints, 'position', cylinders),
        values('joint_states', joints, 'effort', cylinders),
        values('strain', strain, 'strain', beams),
        *(
            values('hydraulics', hydraulics, field, cylinders)
            for field in ('head_pressure', 'rod_pressure', 'spool')
        ),
    ]
    return RecordedRun(boom, np.concatenate(parts, axis=1))


def _tips(
    boom: BoomParameters, angles: np.ndarray, deflections: np.ndarray, slopes: np.ndarray
) -> np.ndarray:
    """Return x and z of the boom's tip [m], Henikl 2015, (1) to (5), shape (rows, 2)."""
    still = np.zeros(len(angles))
    tip = beam_frames(
        [beam.length for beam in boom.beams],
        boom.ritz.rotation == 'printed',
        list(angles.T),
        [still] * boom.size,
        [(w, still, slope, still) for w, slope in zip(deflections.T, slopes.T, strict=True)],
    )[-1].origin
    return np.stack([tip.real, tip.imag], axis=1)


def compare(recorded: RecordedRun, expected: Result) -> dict[str, float]:
    """
    Return the largest absolute difference of each column over the samples that both have.

    Raises
    ------
    InputError
        When the two have no sample in common.
    """
    # The modes of pistons are in no message.
    columns = columns_of(expected.boom)
    names = recorded_columns(recorded.boom)
    kept = [columns.index(name) for name in names]
    return compare_tables(names, recorded.table, expected.table[:, kept])
