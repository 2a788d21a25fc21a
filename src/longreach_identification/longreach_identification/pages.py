"""The machines that can be identified: entry points with their pages."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

from longreach_dynamics.errors import InputError

_GROUP = 'longreach.identification'


def machine_names() -> list[str]:
    """Return the names of all machines with a page."""
    return sorted({point.name for point in entry_points(group=_GROUP)})


def page_of(machine: str) -> Any:
    """Return the Identifiable of a machine; InputError for names that are not known."""
    points = {point.name: point for point in entry_points(group=_GROUP)}
    if machine not in points:
        raise InputError(f'machine {machine!r}, allowed: {", ".join(sorted(points))}')
    return points[machine].load()
