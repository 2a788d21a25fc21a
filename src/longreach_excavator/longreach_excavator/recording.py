"""Recorded runs of the excavator."""

from __future__ import annotations

from pathlib import Path

from longreach_dynamics.runs import Run
from longreach_excavator.parameters import ExcavatorParameters
from longreach_excavator.results import COLUMNS
from longreach_tools.recording import read_columns

__all__ = ['read_run']


def read_run(
    bag: str | Path, namespace: str, excavator: ExcavatorParameters
) -> Run[ExcavatorParameters]:
    """Return a recorded run; see :func:`longreach_tools.recording.read_columns`."""
    columns = COLUMNS.recorded
    return Run(excavator, columns, read_columns(bag, namespace, columns, 'excavator'))
