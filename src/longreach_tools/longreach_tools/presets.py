"""
Figures of recordings and charts of the view: panels of columns.

Those of a machine follow from its declaration. Packages that are no machine register functions as
entry points of the group ``longreach.presets``: from a :class:`Request` to a :class:`Preset`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from longreach_dynamics.errors import InputError
from longreach_machine import MACHINE_GROUP, Column, Lane, MachineSpec, Panel

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


def preset_names() -> set[str]:
    """Return the names of all presets."""
    groups = (MACHINE_GROUP, PRESET_GROUP)
    return {one.name for group in groups for one in metadata.entry_points(group=group)}


def load_preset(name: str, request: Request) -> Preset:
    """Return a preset."""
    for point in metadata.entry_points(group=MACHINE_GROUP, name=name):
        spec: MachineSpec[Any, Any, Any] = point.load()
        columns = spec.columns(spec.load(request.file, spec.options())).recorded
        return Preset(columns, spec.panels, spec.lanes)
    if request.file is not None:
        raise InputError(f'--file {request.file}: {name} has no machine file; omit it')
    (point,) = metadata.entry_points(group=PRESET_GROUP, name=name)
    make: Callable[[Request], Preset] = point.load()
    return make(request)
