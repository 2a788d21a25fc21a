"""
Messages of two topics that belong together, by their stamps.

Both topics come in their own order, but not in one order with each other: what waits for its other
half is kept until that comes, or until a later pair shows that it never will.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

__all__ = ['Pair', 'Pairs']

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
        So many messages of a topic wait at most; the oldest ones go first.
    """

    def __init__(self, most: int = 100) -> None:
        self._most = most
        self._first: dict[int, First] = {}
        self._second: dict[int, Second] = {}
        self.unpaired = [0, 0]  # messages of each topic that were given up

    def add_first(self, stamp: int, message: First) -> Pair[First, Second] | None:
        """Take a message of the first topic, stamp in [ns]; return the pair that it completes."""
        self._first[stamp] = message
        return self._match(stamp)

    def add_second(self, stamp: int, message: Second) -> Pair[First, Second] | None:
        """Take a message of the second topic, stamp in [ns]; return the pair that it completes."""
        self._second[stamp] = message
        return self._match(stamp)

    def clear(self) -> None:
        """Forget what waits."""
        self._first.clear()
        self._second.clear()

    def _match(self, stamp: int) -> Pair[First, Second] | None:
        """Return the pair of a stamp, and give up what is older or too much."""
        pair = None
        if stamp in self._first and stamp in self._second:
            pair = Pair(stamp, self._first.pop(stamp), self._second.pop(stamp))
        limit = None if pair is None else stamp
        self.unpaired[0] += self._give_up(self._first, limit)
        self.unpaired[1] += self._give_up(self._second, limit)
        return pair

    def _give_up(self, waiting: dict[int, Any], limit: int | None) -> int:
        """Remove messages from before ``limit`` and too many ones; return how many."""
        stamps = list(waiting)
        old = set() if limit is None else {at for at in stamps if at < limit}
        old.update(stamps[: max(0, len(stamps) - self._most)])
        for at in old:
            del waiting[at]
        return len(old)
