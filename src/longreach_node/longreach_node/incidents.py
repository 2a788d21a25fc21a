"""Counts of what went wrong in a node, and whether it did so lately; without ROS."""

from __future__ import annotations

from collections.abc import Sequence

# A component is in order again when nothing went wrong for so long [s of wall time].
HOLD = 10.0


class Incidents:
    """
    Counts by kind, for /diagnostics.

    Parameters
    ----------
    kinds : sequence of str
        Kinds of incidents, in the plural: ``overruns``, ``refused commands``.
    """

    def __init__(self, kinds: Sequence[str]) -> None:
        self.counts = dict.fromkeys(kinds, 0)
        self._latest: dict[str, float] = {}

    def add(self, kind: str, now: float) -> int:
        """Count an incident at the present wall time [s], and return the count of its kind."""
        self.counts[kind] += 1
        self._latest[kind] = now
        return self.counts[kind]

    def recent(self, now: float) -> str:
        """Return what went wrong within the last ``HOLD`` seconds, with all counts of its kind."""
        return ', '.join(
            f'{self.counts[kind]} {kind}'
            for kind in self.counts
            if kind in self._latest and now - self._latest[kind] <= HOLD
        )
