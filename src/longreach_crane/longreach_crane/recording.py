"""Recorded runs of the crane."""

from __future__ import annotations

from pathlib import Path

from longreach_crane.parameters import CraneParameters
from longreach_crane.results import SET_POINT, CraneRun, columns_of
from longreach_tools.recording import read_columns

__all__ = ['read_run']


def read_run(bag: str | Path, namespace: str, crane: CraneParameters) -> CraneRun:
    """Return the recorded run of a crane; see :func:`longreach_tools.recording.read_columns`."""
    columns = columns_of(crane)
    table = read_columns(bag, namespace, (*columns, SET_POINT), 'crane')
    return CraneRun(crane, columns, table[:, :-1], set_points=table[:, -1])
