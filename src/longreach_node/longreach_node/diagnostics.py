"""Status of one component in /diagnostics, and counts of what went wrong in it."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from longreach_node.qos import DIAGNOSTICS

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
LEVELS = {'ok': OK, 'warn': WARN, 'error': ERROR}

# A component is in order again when nothing went wrong for so long [s of wall time].
HOLD = 10.0


# Warnings with as many equal letters are of one kind.
_KIND_LENGTH = 7


class Throttle:
    """Which warnings are written: of each kind, those that begin alike, one in an interval [s]."""

    # rclpy's own is one for all texts of a line of code, and takes half a millisecond for a text
    # that it does not write.

    def __init__(self) -> None:
        self._written: dict[str, float] = {}

    def lets(self, text: str, interval: float = 1.0) -> bool:
        """Return whether to write a text now."""
        kind, now = text[:_KIND_LENGTH], time.monotonic()
        due = now - self._written.get(kind, -math.inf) > interval
        if due:
            self._written[kind] = now
        return due


class Diagnostics:
    """Publisher of the state of a node, or of its ``part``, on /diagnostics."""

    def __init__(self, node: Node, hardware: str, part: str = '') -> None:
        self._name = node.get_fully_qualified_name().lstrip('/') + (f': {part}' if part else '')
        self._hardware = hardware
        self.publisher = node.create_publisher(DiagnosticArray, '/diagnostics', DIAGNOSTICS)

    def publish(self, stamp: Time, level: bytes, text: str, values: Mapping[str, object]) -> None:
        """Publish level (OK, WARN, ERROR of this module), a sentence, and values by name."""
        status = DiagnosticStatus(
            level=level,
            name=self._name,
            message=text,
            hardware_id=self._hardware,
            values=[KeyValue(key=key, value=str(value)) for key, value in values.items()],
        )
        array = DiagnosticArray(status=[status])
        array.header.stamp = stamp
        self.publisher.publish(array)


class Incidents:
    """Counts by kind; kinds are in the plural: ``overruns``, ``refused commands``."""

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
