"""Recorded runs as tables with the columns of a machine."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_machine import MachineSpec
from longreach_machine.runs import Column, Columns, Run
from longreach_tools.bag import absolute_name, open_bag
from longreach_tools.signals import column_of, common_times, read_signals, signals_of


def read_run(
    spec: MachineSpec[Any, Any, Any],
    bag: str | Path,
    namespace: str,
    machine: Any,
    columns: Columns | None = None,
) -> Run[Any]:
    """Return a recorded run of a machine, without columns that it may lack and lacks."""
    columns = (columns or spec.columns(machine)).recorded
    with open_bag(bag) as recording:
        lacking = {absolute_name(topic, namespace) for topic in spec.optional_topics}
        lacking -= {*recording.topics}
    columns = Columns(
        (columns[0], *(c for c in columns[1:] if signals_of(c, namespace)[0].topic not in lacking))
    )
    table = read_columns(bag, namespace, columns, spec.name)
    return spec.recorded_run(machine, columns, table)


def read_columns(
    bag: str | Path, namespace: str, columns: Sequence[Column], machine: str
) -> np.ndarray:
    """Return a table of columns, first time [s], at stamps of all topics; InputError: none."""
    wanted = [signal for column in columns[1:] for signal in signals_of(column, namespace)]
    recording = read_signals(bag, list(dict.fromkeys(wanted)))
    for note in recording.notes:
        warnings.warn(note, stacklevel=2)
    for topic, field in wanted:
        if field in recording.topics[topic].lacking:
            raise InputError(
                f'{bag}: {topic} has not always {field}; give the {machine} file of the run'
            )
    time = common_times(recording.topics.values())
    if not len(time):
        counts = ', '.join(f'{name}: {len(one.time)}' for name, one in recording.topics.items())
        raise InputError(
            f'{bag} has no run of the {machine} in namespace /{namespace.strip("/")}: messages'
            f' with equal stamps on all topics are required; found {counts}'
        )
    for name, one in recording.topics.items():
        if repeated := len(one.time) - len(np.unique(one.time)):
            text = f'{repeated} messages of {name} repeat a stamp; of equal ones the last counts'
            warnings.warn(text, stacklevel=2)
    rows = {name: one.at(time) for name, one in recording.topics.items()}
    found = [column_of(rows, column, namespace)[1] for column in columns[1:]]
    return np.column_stack([time / 1e9, *found])
