"""Runs of a machine in a bag: messages of several topics that belong to one instant."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError

from ._reading import read_bag

__all__ = ['largest_differences', 'read_samples']


def read_samples(
    bag: str | Path, namespace: str, names: Sequence[str], machine: str
) -> tuple[list[int], list[list[Any]]]:
    """
    Return the messages of several topics that carry the same stamps.

    Parameters
    ----------
    bag : path
    namespace : str
        Of the topics.
    names : sequence of str
        Topics, relative; their messages have headers.
    machine : str
        What error messages call the run.

    Returns
    -------
    stamps : list of int
        Of which all topics have a message [ns], ascending.
    messages : list of list
        For each topic, in the order of ``names``, one message for each stamp.

    Raises
    ------
    InputError
        When no stamp has messages on all topics.
    """
    prefix = '/' + namespace.strip('/')
    topics = {f'{prefix}/{name}': name for name in names}
    found: dict[str, dict[int, Any]] = {name: {} for name in names}
    for topic, _, message in read_bag(bag, list(topics)):
        stamp = message.header.stamp
        found[topics[topic]][stamp.sec * 1_000_000_000 + stamp.nanosec] = message
    stamps = sorted(set.intersection(*(set(messages) for messages in found.values())))
    if not stamps:
        counts = ', '.join(f'{topic}: {len(found[name])}' for topic, name in topics.items())
        raise InputError(
            f'{bag} holds no run of the {machine} in namespace {prefix}: messages with one stamp'
            f' on all of {", ".join(names)} are needed; found {counts}'
        )
    return stamps, [[found[name][stamp] for stamp in stamps] for name in names]


def largest_differences(
    recorded: np.ndarray, expected: np.ndarray, what: str
) -> tuple[np.ndarray, int, int]:
    """
    Return by how much two tables differ over the instants that both have.

    Parameters
    ----------
    recorded, expected : ndarray, shape (rows, columns)
        The first column is time [s]; instants are the same when they agree to a microsecond.
    what : str
        What error messages call a row.

    Returns
    -------
    differences : ndarray, shape (columns,)
        Largest absolute difference in each column.
    compared, missing : int
        Rows that both have, and that one of the two lacks.

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
    differences = np.abs(recorded[rows] - expected[expected_rows]).max(axis=0)
    return differences, rows.size, max(len(expected), len(recorded)) - rows.size
