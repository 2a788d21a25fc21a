"""
Pairs of messages of two topics with equal stamps.

Each topic arrives in order, but not relative to the other one: a message is kept until its partner
arrives, or until a later pair is complete, which means that the partner was lost.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

First = TypeVar('First')
Second = TypeVar('Second')


class Pair(NamedTuple, Generic[First, Second]):
    """Two messages with one stamp."""

    stamp: int  # [ns]
    first: First
    second: Second


class Pairs(Generic[First, Second]):
    """
    Pairs of messages.

    Parameters
    ----------
    most : int
        Largest number of messages of a topic that are kept; the oldest ones are dropped.
    """

    def __init__(self, most: int = 100) -> None:
        self._most = most
        self._first: dict[int, First] = {}
        self._second: dict[int, Second] = {}
        self.unpaired = [0, 0]  # messages of each topic that were dropped

    def add_first(self, stamp: int, message: First) -> Pair[First, Second] | None:
        """Take a message of the first topic, stamp in [ns]; return the pair that it completes."""
        self._first[stamp] = message
        return self._match(stamp)

    def add_second(self, stamp: int, message: Second) -> Pair[First, Second] | None:
        """Take a message of the second topic, stamp in [ns]; return the pair that it completes."""
        self._second[stamp] = message
        return self._match(stamp)

    def clear(self) -> None:
        """Drop all messages that are kept."""
        self._first.clear()
        self._second.clear()

    def _match(self, stamp: int) -> Pair[First, Second] | None:
        """Return the pair of a stamp, and drop messages that are older or too many."""
        pair = None
        if stamp in self._first and stamp in self._second:
            pair = Pair(stamp, self._first.pop(stamp), self._second.pop(stamp))
        limit = None if pair is None else stamp
        self.unpaired[0] += self._give_up(self._first, limit)
        self.unpaired[1] += self._give_up(self._second, limit)
        return pair

    def _give_up(self, waiting: dict[int, Any], limit: int | None) -> int:
        """Drop messages older than ``limit`` and surplus ones; return how many."""
        stamps = list(waiting)
        old = set() if limit is None else {at for at in stamps if at < limit}
        old.update(stamps[: max(0, len(stamps) - self._most)])
        for at in old:
            del waiting[at]
        return len(old)
