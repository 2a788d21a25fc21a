"""Recorded runs of flexible links."""

from __future__ import annotations

from pathlib import Path

from longreach_symbolic.links import Links
from longreach_symbolic.simulation import LinksRun, columns_of
from longreach_tools.recording import read_columns

__all__ = ['read_run']


def read_run(bag: str | Path, namespace: str, links: Links) -> LinksRun:
    """Return a recorded run; see :func:`longreach_tools.recording.read_columns`."""
    columns = columns_of(links).recorded
    return LinksRun(links, columns, read_columns(bag, namespace, columns, 'links'))
