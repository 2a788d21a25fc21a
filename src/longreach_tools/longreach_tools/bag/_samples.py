"""Runs of a machine in a bag: messages of several topics with equal stamps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError

from ._reading import read_bag


def read_samples(
    bag: str | Path, namespace: str, names: Sequence[str], machine: str
) -> tuple[list[int], list[list[Any]]]:
    """
    Return the messages of several topics at their common stamps.

    Parameters
    ----------
    bag : path
    namespace : str
        Namespace of the topics.
    names : sequence of str
        Topics, relative; their messages have headers.
    machine : str
        Name of the machine, for error messages.

    Returns
    -------
    stamps : list of int
        Stamps of which all topics have a message, increasing [ns].
    messages : list of list
        For each topic, in the order of ``names``, one message for each stamp.

    Raises
    ------
    InputError
        If no stamp has messages on all topics.
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
            f'{bag} has no run of the {machine} in namespace {prefix}: messages with equal stamps'
            f' on all of {", ".join(names)} are required; found {counts}'
        )
    return stamps, [[found[name][stamp] for stamp in stamps] for name in names]


def named_values(
    topic: str, messages: Sequence[Any], field: str, names: Sequence[str], machine: str
) -> np.ndarray:
    """
    Return a field of messages with named entries, in the order of ``names``.

    Parameters
    ----------
    topic : str
        Name of the topic, for error messages.
    messages : sequence of messages
        With a list ``name``, and in ``field`` a number for each entry.
    field : str
        Name of the field, such as ``position``.
    names : sequence of str
        Names of the requested entries.
    machine : str
        Name of the machine, for error messages.

    Returns
    -------
    ndarray, shape (messages, names)

    Raises
    ------
    InputError
        If a name is missing in a message.
    """
    rows = []
    places: list[int] = []
    known: list[str] = []
    for message in messages:
        if message.name != known:
            known = list(message.name)
            missing = [name for name in names if name not in known]
            if missing:
                raise InputError(
                    f'{topic} has no {missing[0]}, found: {", ".join(known)}; give the {machine}'
                    ' file of the run'
                )
            places = [known.index(name) for name in names]
        rows.append(np.asarray(getattr(message, field))[places])
    return np.array(rows)
