"""The machines that can be identified: entry points with their pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any

from longreach_dynamics.errors import InputError

PAGES = 'longreach.identification'


def page_of(machine: str) -> Any:
    """Return the Identifiable of a machine; InputError for names that are not known."""
    points = {point.name: point for point in entry_points(group=PAGES)}
    if machine not in points:
        raise InputError(f'machine {machine!r}, allowed: {", ".join(sorted(points))}')
    return points[machine].load()


def signal_patterns(page: Any, start: Any, kinds: Sequence[str] | None) -> tuple[str, ...]:
    """Return patterns of signals for kinds of them."""
    if kinds is None:
        return tuple(page.compared)
    names = {signal.name: (signal.name,) for signal in page.signals(start)}
    known: Mapping[str, tuple[str, ...]] = page.signal_kinds or names
    for kind in kinds:
        if kind not in known:
            raise InputError(f'--signals {kind}, allowed: {", ".join(known)}')
    return tuple(pattern for kind in kinds for pattern in known[kind])
