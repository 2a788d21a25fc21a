"""Recorded runs of the excavator."""

from __future__ import annotations

from pathlib import Path

from longreach_dynamics.runs import Column, Columns, Run, Source
from longreach_excavator.columns import COLUMNS
from longreach_excavator.parameters import ExcavatorParameters
from longreach_tools.bag import absolute_name, open_bag
from longreach_tools.recording import read_columns

__all__ = ['read_run']


def read_run(
    bag: str | Path, namespace: str, excavator: ExcavatorParameters
) -> Run[ExcavatorParameters]:
    """
    Return a recorded run; see :func:`longreach_tools.recording.read_columns`.

    Recordings of runs without terrain lack that topic, and its columns.
    """
    columns = COLUMNS.recorded
    with open_bag(bag) as recording:
        if absolute_name(f'{namespace}/terrain') not in recording.topics:
            columns = Columns(c for c in columns if not _is_terrain(c))
    return Run(excavator, columns, read_columns(bag, namespace, columns, 'excavator'))


def _is_terrain(column: Column) -> bool:
    """Return whether a column is recorded in the topic of the terrain."""
    return isinstance(column.source, Source) and column.source.topic == 'terrain'
