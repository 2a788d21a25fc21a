"""
Which control cycle a sample belongs to, by its stamp.

Stamps count cycles, arrival times do not: so a stream that is played back is the same to the
controller as the stream when it was recorded. The distance of two stamps in a row may be off by
less than half a cycle.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

__all__ = ['Arrival', 'Kind', 'classify']


class Kind(Enum):
    """What a sample is, compared with the latest one before."""

    NEW = 'new'
    DUPLICATE = 'duplicate'  # of the cycle that was the latest
    LATE = 'late'  # of a cycle before that, or of one that went on without it
    RESTART = 'restart'  # so far back that time must have begun anew


class Arrival(NamedTuple):
    """A sample's kind, and how many cycles were missed before it."""

    kind: Kind
    missed: int = 0


def classify(stamp: int, latest: int, sample_time: float, restart_after: float) -> Arrival:
    """
    Compare a sample's stamp with that of the latest cycle.

    Parameters
    ----------
    stamp, latest : int
        [ns].
    sample_time : float
        T [s].
    restart_after : float
        A stamp that lies further back than this is a restart [s].
    """
    cycles = round((stamp - latest) / (sample_time * 1e9))
    if cycles > 0:
        return Arrival(Kind.NEW, cycles - 1)
    if cycles == 0:
        return Arrival(Kind.DUPLICATE)
    if latest - stamp > restart_after * 1e9:
        return Arrival(Kind.RESTART)
    return Arrival(Kind.LATE)
