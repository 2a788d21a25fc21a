"""Times as messages, integer nanoseconds and seconds."""

from __future__ import annotations

from builtin_interfaces.msg import Time

__all__ = ['nanoseconds_of', 'seconds_to_nanoseconds', 'stamp_of']


def seconds_to_nanoseconds(seconds: float) -> int:
    """Return a time in whole nanoseconds, rounded."""
    return round(seconds * 1e9)


def stamp_of(nanoseconds: int) -> Time:
    """Return a non-negative time in nanoseconds as a message."""
    return Time(sec=nanoseconds // 1_000_000_000, nanosec=nanoseconds % 1_000_000_000)


def nanoseconds_of(stamp: Time) -> int:
    """Return the time of a message in nanoseconds."""
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)
