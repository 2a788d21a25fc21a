"""
Assignment of samples to control cycles by their stamps.

Cycles are determined by the stamps, not by the arrival times, so that a recorded stream that is
played back gives the same cycles. The distance of consecutive stamps may deviate by less than half
a cycle.

A single sample with an older stamp is ignored: it may be delayed, duplicated or from another
source. Time has restarted, as after a reset of the plant, when

* the sample is more than ``restart_after`` older or has the stamp 0, and
* the next sample follows it within ``restart_after``, or the same sample is sent again after
  ``ASKED_AGAIN`` (a plant in lockstep repeats samples that are not answered).

In lockstep a sample with stamp 0 is a restart at once: the plant waits for its answer, and there
is no other source of samples. Negative stamps are never used.
"""

from __future__ import annotations

from enum import Enum
from typing import Generic, NamedTuple, TypeVar

Payload = TypeVar('Payload')

# A sample that is sent again so long after the answer [s of wall time] is no doubled message but a
# plant in lockstep that has not received the answer.
ASKED_AGAIN = 0.25


class Kind(Enum):
    """Kind of a sample relative to the latest one before it."""

    NEW = 'new'
    DUPLICATE = 'duplicate'  # of the latest cycle
    REPEATED = 'repeated'  # the same, repeated by a plant that has no answer
    LATE = 'late'  # of an earlier cycle, or of one that was predicted
    OLDER = 'older'  # much older: kept until the next sample shows whether time restarted
    RESTART = 'restart'  # time restarted
    INVALID = 'invalid'  # negative stamp


class Arrival(NamedTuple):
    """A sample's kind, and how many cycles were missed before it."""

    kind: Kind
    missed: int = 0


class Sample(NamedTuple, Generic[Payload]):
    """A sample that was kept."""

    stamp: int  # [ns]
    payload: Payload
    time: float  # of its arrival [s of wall time]


def classify(stamp: int, latest: int, sample_time: float, restart_after: float) -> Arrival:
    """
    Compare a sample's stamp with that of the latest cycle.

    Parameters
    ----------
    stamp, latest : int
        [ns].
    sample_time : float
        T [s]; 0: the next cycle is that of any later stamp.
    restart_after : float
        A stamp that lies further back than this may be a restart [s].
    """
    if stamp < 0:
        return Arrival(Kind.INVALID)
    difference = stamp - latest
    cycles = round(difference / (sample_time * 1e9)) if sample_time else min(difference, 1)
    if cycles > 0:
        return Arrival(Kind.NEW, cycles - 1)
    if cycles == 0:
        return Arrival(Kind.DUPLICATE)
    return Arrival(Kind.OLDER if -difference > restart_after * 1e9 else Kind.LATE)


class SampleOrder(Generic[Payload]):
    """
    The order of a stream of samples, by the rules of this module.

    Parameters
    ----------
    sample_time : float
        T [s]; 0: the next cycle is that of any later stamp.
    restart_after : float
        [s].
    lockstep : bool
        A sample of stamp 0 is a new beginning at once.

    Attributes
    ----------
    latest : int or None
        Stamp of the latest cycle [ns], set by :meth:`accept`; none before the first.
    kept : Sample or None
        After RESTART: the sample before, which is the first of the new beginning.
    """

    def __init__(self, sample_time: float, restart_after: float, lockstep: bool = False) -> None:
        self._sample_time = sample_time
        self._restart_after = restart_after
        self._lockstep = lockstep
        self.clear()

    def clear(self) -> None:
        """Forget everything: the next sample is the first."""
        self.latest: int | None = None
        self.kept: Sample[Payload] | None = None
        self._answered = 0.0

    def accept(self, stamp: int) -> None:
        """Take a stamp [ns] as that of the latest cycle."""
        self.latest = stamp

    def answer(self, now: float) -> None:
        """Note that the latest cycle was answered at a wall time [s]."""
        self._answered = now

    def arrive(self, stamp: int, payload: Payload, now: float) -> Arrival:
        """
        Tell what a sample is, and keep it when only the next one can tell.

        Parameters
        ----------
        stamp : int
            [ns].
        payload : object
            Kept with an OLDER sample.
        now : float
            [s of wall time].
        """
        latest = 0 if self.latest is None else self.latest
        arrival = classify(stamp, latest, self._sample_time, self._restart_after)
        if arrival.kind is Kind.INVALID:
            return arrival
        if self.latest is None:
            return Arrival(Kind.NEW)
        if arrival.kind is Kind.NEW:
            self.kept = None
            return arrival
        if arrival.kind is Kind.DUPLICATE:
            return Arrival(Kind.REPEATED) if self._is_asked_again(now) else arrival
        if arrival.kind is Kind.LATE and stamp > 0 and not self._goes_on(stamp):
            return arrival
        insists = arrival.kind is Kind.OLDER or self._is_asked_again(now)
        if self._lockstep and stamp == 0 and insists:
            self.kept = None
            return Arrival(Kind.RESTART)
        return Arrival(self._older(Sample(stamp, payload, now)))

    def _is_asked_again(self, now: float) -> bool:
        """Return whether a sample repeated at a wall time [s] is a request for its answer."""
        return now - self._answered > ASKED_AGAIN

    def _goes_on(self, stamp: int) -> bool:
        """Return whether a stamp continues from the sample that was kept."""
        return self.kept is not None and 0 < stamp - self.kept.stamp <= self._restart_after * 1e9

    def _older(self, sample: Sample[Payload]) -> Kind:
        """Compare a sample that may be a restart with the one kept before, or keep it."""
        if self._goes_on(sample.stamp):
            return Kind.RESTART
        before = self.kept
        if before is None or before.stamp != sample.stamp:
            self.kept = sample
        elif sample.time - before.time > ASKED_AGAIN:
            self.kept = None
            return Kind.RESTART
        return Kind.OLDER
