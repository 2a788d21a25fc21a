"""A recorded run beside the library's: by how much they differ, and whether they are one run."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_tools.output import table

__all__ = ['SAME', 'compare_tables', 'differences_table', 'is_same_run']

SAME = 1e-9
"""Up to here a recording and the library's run are the same [SI units]."""


def compare_tables(
    columns: Sequence[str], recorded: np.ndarray, expected: np.ndarray, what: str = 'sample'
) -> dict[str, float]:
    """
    Return by how much two tables differ over the instants that both have.

    Parameters
    ----------
    columns : sequence of str
        Names; the first one is time [s]. Instants are the same when they agree to a microsecond.
    recorded, expected : ndarray, shape (rows, columns)
    what : str
        What a row is called.

    Returns
    -------
    dict
        The largest absolute difference of each column but time; then, named after the last word of
        ``what``, ``samples_compared`` and ``samples_missing``: rows that both have, and that one
        of the two lacks.

    Raises
    ------
    InputError
        When the two have no instant in common.
    """
    _, rows, expected_rows = np.intersect1d(
        np.round(recorded[:, 0] * 1e6).astype(int),
        np.round(expected[:, 0] * 1e6).astype(int),
        return_indices=True,
    )
    if rows.size == 0:
        raise InputError(f'the recording and the scenario have no {what} in common')
    largest = np.abs(recorded[rows] - expected[expected_rows]).max(axis=0)
    counted = what.split()[-1]
    return {
        **dict(zip(columns[1:], largest[1:].tolist(), strict=True)),
        f'{counted}s_compared': rows.size,
        f'{counted}s_missing': max(len(expected), len(recorded)) - rows.size,
    }


def differences_table(differences: Mapping[str, float]) -> str:
    """Return what :func:`compare_tables` found as a table for people."""
    return table(('largest difference from the library', 'value'), differences.items())


def is_same_run(machine: str, largest: float, missing: float, advice: str) -> bool:
    """
    Tell whether a recording is the library's run, and if not, say on stderr what to look at.

    Parameters
    ----------
    machine : str
        Name of its command.
    largest : float
        Largest difference that counts [SI units]; up to :data:`SAME` it is rounding.
    missing : float
        Rows that the recording lacks.
    advice : str
        What to name, and what differs in any case.
    """
    if largest <= SAME and not missing:
        return True
    print(
        f'longreach {machine} compare: the recording is not this run of the library. {advice}',
        file=sys.stderr,
    )
    return False
