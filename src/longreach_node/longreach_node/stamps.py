"""Times as messages, integer nanoseconds and seconds."""

from __future__ import annotations

from builtin_interfaces.msg import Duration, Time

from longreach_dynamics.errors import InputError


def seconds_to_nanoseconds(seconds: float) -> int:
    """Return a time in whole nanoseconds, rounded."""
    return round(seconds * 1e9)


def stamp_of(nanoseconds: int) -> Time:
    """Return a non-negative time in nanoseconds as a message."""
    return Time(sec=nanoseconds // 1_000_000_000, nanosec=nanoseconds % 1_000_000_000)


def duration_of(seconds: float) -> Duration:
    """Return a non-negative time in seconds as a message."""
    whole, rest = divmod(seconds_to_nanoseconds(seconds), 1_000_000_000)
    return Duration(sec=whole, nanosec=rest)


def nanoseconds_of(stamp: Time) -> int:
    """Return the time of a message in nanoseconds."""
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


def nanoseconds_from(given: Time | Duration, what: str) -> int:
    """Return a time or duration of a user; InputError for a negative or impossible one."""
    if given.sec < 0 or given.nanosec >= 1_000_000_000:
        raise InputError(
            f'{what} has sec = {given.sec} and nanosec = {given.nanosec}, allowed: sec from 0 on,'
            ' nanosec below 1000000000'
        )
    return nanoseconds_of(given)
