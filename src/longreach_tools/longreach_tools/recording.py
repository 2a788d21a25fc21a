"""Recorded runs as tables with the columns of a machine."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from longreach_dynamics.runs import Column, Columns, Derived, Run, Source
from longreach_machine import MachineSpec
from longreach_tools.bag import absolute_name, named_values, open_bag, read_samples


def read_run(
    spec: MachineSpec[Any, Any, Any], bag: str | Path, namespace: str, machine: Any
) -> Run[Any]:
    """
    Return a recorded run of a machine with these parameters, see :func:`read_columns`.

    Columns whose topic the recording does not have, and the machine may lack, are left out.
    """
    columns = spec.columns(machine).recorded
    with open_bag(bag) as recording:
        lacking = {
            topic
            for topic in spec.optional_topics
            if absolute_name(f'{namespace}/{topic}') not in recording.topics
        }
    columns = Columns(
        (columns[0], *(c for c in columns[1:] if _sources(c)[0].topic not in lacking))
    )
    table = read_columns(bag, namespace, columns, spec.name)
    return spec.recorded_run(machine, columns, table)


def read_columns(
    bag: str | Path, namespace: str, columns: Sequence[Column], machine: str
) -> np.ndarray:
    """
    Return a table (rows, columns) of a machine's columns from a recording.

    The first column is time [s]; all others have a source. Rows are the samples with messages on
    all their topics, paired by stamp. InputError when the bag has no run of this machine.
    """
    sources = list(dict.fromkeys(source for column in columns[1:] for source in _sources(column)))
    topics = list(dict.fromkeys(source.topic for source in sources))
    stamps, messages = read_samples(bag, namespace, topics, machine)
    values: dict[Source, np.ndarray] = {}
    for topic, samples in zip(topics, messages, strict=True):
        fields = dict.fromkeys(source.field for source in sources if source.topic == topic)
        for field in fields:
            wanted = [s for s in sources if (s.topic, s.field) == (topic, field)]
            values |= zip(wanted, _read(topic, samples, field, wanted, machine).T, strict=True)
    table = np.empty((len(stamps), len(columns)))
    table[:, 0] = [stamp / 1e9 for stamp in stamps]
    for place, column in enumerate(columns[1:], 1):
        found = np.stack([values[source] for source in _sources(column)], axis=1)
        source = column.source
        table[:, place] = source.function(found) if isinstance(source, Derived) else found[:, 0]
    return table


def _sources(column: Column) -> tuple[Source, ...]:
    """Return the message fields from which a column is read."""
    if column.source is None:
        raise ValueError(f'{column.name} is not in any message')
    return column.source.sources if isinstance(column.source, Derived) else (column.source,)


def _read(
    topic: str, messages: Sequence[Any], field: str, sources: Sequence[Source], machine: str
) -> np.ndarray:
    """Return one field of all messages, for the entries named by sources (messages, sources)."""
    if not sources[0].name:
        return np.array([[attrgetter(field)(message)] for message in messages], dtype=float)
    listed, _, part = field.partition('.')
    found = named_values(topic, messages, listed, [source.name for source in sources], machine)
    if part:
        get = attrgetter(part)
        found = np.array([[get(entry) for entry in row] for row in found])
    return found
