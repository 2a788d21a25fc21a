"""Recorded runs of the harvester."""

from __future__ import annotations

from pathlib import Path

from longreach_harvester.parameters import HarvesterParameters
from longreach_harvester.simulation import HarvesterRun, columns_of
from longreach_tools.recording import read_columns

__all__ = ['read_run']


def read_run(bag: str | Path, namespace: str, harvester: HarvesterParameters) -> HarvesterRun:
    """Return a recorded run; see :func:`longreach_tools.recording.read_columns`."""
    columns = columns_of(harvester).recorded
    return HarvesterRun(harvester, columns, read_columns(bag, namespace, columns, 'harvester'))
