"""Recorded runs of the boom."""

from __future__ import annotations

from pathlib import Path

from longreach_boom.parameters import BoomParameters
from longreach_boom.results import columns_of
from longreach_dynamics.runs import Run
from longreach_tools.recording import read_columns

__all__ = ['read_run']


def read_run(bag: str | Path, namespace: str, boom: BoomParameters) -> Run[BoomParameters]:
    """Return the recorded run of a boom; see :func:`longreach_tools.recording.read_columns`."""
    columns = columns_of(boom).recorded
    return Run(boom, columns, read_columns(bag, namespace, columns, 'boom'))
