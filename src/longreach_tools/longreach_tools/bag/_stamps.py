"""
Stamps of messages [ns], read from their CDR bytes, and lost messages, from their intervals.

The stamp is that of the first field: a header, a time, or a sequence of stamped messages.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rosbags.typesys.store import Typestore

NANOSECONDS = 1_000_000_000

# Intervals beyond this many periods are gaps: one lost message doubles an interval.
_GAP_FACTOR = 1.5

# Types of topics with messages of several nodes, or cameras: their stamps are no one's sequence.
_SHARED_TYPES = (
    'diagnostic_msgs/msg/DiagnosticArray',
    'longreach_msgs/msg/MarkerObservations',
    'tf2_msgs/msg/TFMessage',
)

# Smaller stamps (before September 2001) are simulation time, which starts near zero.
_EARLIEST_WALL_CLOCK = 1_000_000_000 * NANOSECONDS

# Until then a stamp of 0 is one of a simulation's first answers, later it means now [ns].
BEGINNING = NANOSECONDS // 10

_TIMES = (struct.Struct('>iI'), struct.Struct('<iI'))

StampReader = Callable[[bytes], int | None]


def is_wall_clock(time: Any) -> Any:
    """Return whether times [ns] are wall time, and not simulation time, which starts at 0."""
    return time >= _EARLIEST_WALL_CLOCK


def is_shared(typename: str, publishers: int) -> bool:
    """Return whether the stamps of a topic are those of several publishers."""
    return publishers > 1 or typename in _SHARED_TYPES


def stamp_reader(typename: str, store: Typestore) -> StampReader | None:
    """Return a function that reads the stamp [ns] from the CDR bytes of a message."""
    from rosbags.interfaces import Nodetype

    fields: list[Any] = [field for _, field in store.fielddefs[typename][1]]
    if not fields:
        return None
    kind, value = fields[0]
    in_sequence = kind == Nodetype.SEQUENCE
    if in_sequence:
        kind, value = value[0]
    if kind != Nodetype.NAME or not _begins_with_stamp(value, store):
        return None
    return partial(_read_stamp, in_sequence)


def _begins_with_stamp(typename: str, store: Typestore) -> bool:
    """Return whether a type is a time, a header, or starts with a header."""
    from rosbags.interfaces import Nodetype

    if typename in ('builtin_interfaces/msg/Time', 'std_msgs/msg/Header'):
        return True
    fields = store.fielddefs[typename][1] if typename in store.fielddefs else []
    return bool(fields) and fields[0][1] == (Nodetype.NAME, 'std_msgs/msg/Header')


def _read_stamp(in_sequence: bool, data: bytes) -> int | None:
    """Read the time [ns] after the encapsulation; None if a sequence before it is empty."""
    offset = 8 if in_sequence else 4
    if len(data) < offset + 8 or (in_sequence and not any(data[4:8])):
        return None
    # The second byte gives the byte order.
    seconds, nanoseconds = _TIMES[bool(data[1])].unpack_from(data, offset)
    return int(seconds) * NANOSECONDS + int(nanoseconds)


class HeaderClock:
    """
    Bag times for ``stamps: header``; without a stamp messages get the latest, or wait for one.

    A zero is the start of a simulation or no stamp, as the next ones show. Where simulation time
    begins anew bag times go on; of several machines a stamp is that nearest to the latest.
    """

    def __init__(self) -> None:
        self._latest: int | None = None
        # First and largest stamp since time began.
        self._first = self._most = 0
        self._zero_seen = False
        # Bag time of the latest zero.
        self._zero_at = 0
        self._waiting_time: int | None = None
        # From stamps to bag times, of each beginning.
        self._shifts = [0]

    def assign(
        self, stamp: int | None, earliest: int = 0, following: int | None = None
    ) -> int | None:
        """
        Return the bag time [ns] of the next message, None if it has to wait.

        ``earliest``: of the message before on its topic; ``following``: stamp behind a first one.
        """
        if stamp == 0:
            self._zero_seen = True
            self._zero_at = self._latest or 0
            begins = self._most < BEGINNING or 2 * (following or self._most) < self._most
            if self._latest is not None and begins:
                return max(self._shifts[-1], earliest)
        elif stamp is None or (
            self._latest is not None and is_wall_clock(stamp) and not is_wall_clock(self._first)
        ):
            return self._latest
        elif self._latest is None:
            starts_at_zero = self._zero_seen and not is_wall_clock(stamp)
            self._first = self._waiting_time = 0 if starts_at_zero else stamp
            self._latest = self._most = stamp
        elif is_wall_clock(self._first):
            # Not of other nodes, but of this simulation, which began after them.
            if not is_wall_clock(stamp):
                self._first = self._most = stamp
                self._shifts = [self._latest - stamp]
            self._latest = stamp + self._shifts[-1]
        else:
            elapsed, ahead = self._most - self._first, stamp - self._latest
            shift = min(reversed(self._shifts), key=lambda one: abs(ahead + one))
            if stamp + shift < earliest and 2 * (stamp - self._first) <= elapsed:
                # Of all topics, so that they begin anew together.
                shift, self._most = max(earliest - stamp, self._zero_at), stamp
                self._shifts.append(shift)
            self._most = max(self._most, stamp)
            self._latest = stamp + shift
            return max(self._latest, earliest)
        return self._latest

    @property
    def waiting_time(self) -> int | None:
        """Bag time [ns] of the messages that waited; None without any stamp so far."""
        return 0 if self._latest is None and self._zero_seen else self._waiting_time


class StampReport(NamedTuple):
    """Statistics of the stamps of a topic."""

    period_s: float | None = None  # median of the positive intervals; None: they have no period
    gaps: int = 0  # intervals of more than 1.5 periods
    largest_gap_s: float = 0.0
    missing: int = 0  # estimated number of messages
    backwards: int = 0  # stamps earlier than the one before
    duplicates: int = 0

    def sentence(self) -> str:
        """Return the findings as text, empty if the stamps increase evenly."""
        parts = []
        if self.gaps and self.period_s is not None:
            noun = 'gap' if self.gaps == 1 else 'gaps'
            parts.append(
                f'{self.gaps} {noun} in the stamps, largest {self.largest_gap_s:.6g} s '
                f'(period {self.period_s:.6g} s), about {self.missing} lost or not sent'
            )
        if self.backwards:
            parts.append(f'stamps went backwards {self.backwards} times')
        if self.duplicates:
            parts.append(f'{self.duplicates} repeated stamps')
        return '; '.join(parts)


def stamp_report(stamps: array[int]) -> StampReport:
    """Return the statistics of stamps [ns] in the order of arrival."""
    # Not for commands that read no stamps.
    import numpy as np

    from longreach_machine.panels import period_of

    # Only a first zero is a time: others are of messages for now, or another stamp comes next.
    times = np.array(stamps)
    steps = np.diff(np.concatenate((times[:1], times[1:][times[1:] != 0])))
    backwards, duplicates = int((steps < 0).sum()), int((steps == 0).sum())
    steps = steps[steps > 0]
    period = period_of(steps)
    if not period:
        return StampReport(backwards=backwards, duplicates=duplicates)
    gaps = steps[steps > _GAP_FACTOR * period]
    return StampReport(
        period_s=period / NANOSECONDS,
        gaps=len(gaps),
        largest_gap_s=float(gaps.max(initial=0)) / NANOSECONDS,
        missing=int((np.rint(gaps / period) - 1).sum()),
        backwards=backwards,
        duplicates=duplicates,
    )
