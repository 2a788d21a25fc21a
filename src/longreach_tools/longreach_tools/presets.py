"""
Figures of recordings of packages that are no machine: panels of columns.

They are entry points of the group ``longreach.presets``: functions of a :class:`Request` that
return a :class:`Preset`. Those of a machine follow from its declaration.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from longreach_dynamics.runs import Column
from longreach_machine import Lane, Panel

PRESET_GROUP = 'longreach.presets'


class Request(NamedTuple):
    """
    What a preset is made for.

    Attributes
    ----------
    file : Path or None
        The machine's file; None for the installed one.
    first : callable
        Returns the first message of a topic, relative to the machine's namespace; InputError if
        the recording has none.
    """

    file: Path | None
    first: Callable[[str], Any]


@dataclasses.dataclass(frozen=True)
class Preset:
    """
    The figure of a machine.

    Parameters
    ----------
    columns : sequence of Column
        Columns of the panels and lanes, with sources; further ones are not read.
    panels : sequence of Panel
    lanes : sequence of Lane
        In addition to the events that every figure has.
    intervals : str
        A topic whose intervals between stamps are drawn, relative to the namespace; empty: none.
    """

    columns: Sequence[Column]
    panels: Sequence[Panel]
    lanes: Sequence[Lane] = ()
    intervals: str = ''
