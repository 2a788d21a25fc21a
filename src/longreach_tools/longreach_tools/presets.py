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

from longreach_machine import Lane, Panel
from longreach_machine.runs import Column

PRESET_GROUP = 'longreach.presets'


class Request(NamedTuple):
    """
    What a preset is made for.

    ``file`` is the machine's, None for the installed one; ``first`` returns the first message of a
    topic, relative to the machine's namespace, or raises InputError if the recording has none.
    """

    file: Path | None
    first: Callable[[str], Any]


@dataclasses.dataclass(frozen=True)
class Preset:
    """
    A figure: panels, and lanes besides the events that every figure has, of columns with sources.

    ``intervals`` names a topic, relative to the namespace, whose intervals between stamps are
    drawn; empty: none.
    """

    columns: Sequence[Column]
    panels: Sequence[Panel]
    lanes: Sequence[Lane] = ()
    intervals: str = ''
