"""
Figures of recordings that a machine declares: panels of its columns.

A package offers them by an entry point of the group ``longreach.presets``, named as the machine: a
function of a :class:`Request` that returns a :class:`Preset`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from longreach_dynamics.errors import InputError
from longreach_dynamics.runs import Column

__all__ = ['PRESET_GROUP', 'Lane', 'Panel', 'Preset', 'Request']

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

    def refuse_file(self) -> None:
        """Raise InputError for a machine's file, for presets that need none."""
        if self.file is not None:
            raise InputError(f'--file {self.file}: the preset is the same for all files; omit it')


class Panel(NamedTuple):
    """
    One of the axes of a figure, one above the other.

    Attributes
    ----------
    label : str
        Of the vertical axis, without the unit.
    curves : sequence of (str, str)
        Name of a column, and label of its curve.
    unit : str
        Of the axis, see :func:`longreach_dynamics.runs.convert`; empty: that of the columns.
    relative : bool
        Whether curves are drawn from their first value.
    """

    label: str
    curves: Sequence[tuple[str, str]]
    unit: str = ''
    relative: bool = False


class Lane(NamedTuple):
    """Times at which a column is not zero, as a bar in a strip below the panels."""

    column: str
    label: str


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
