"""
Which samples a controller answers, without ROS.

A sample has one or two halves, messages of one stamp. Cycles are determined by the stamps, not by
the arrival times, so that a recorded stream that is played back gives the same cycles. The
distance of consecutive stamps may deviate by less than half a cycle, and the mean of many by 2 %.

A single sample with an older stamp is ignored: it may be delayed, duplicated or from another
source. Time has restarted, as after a reset of the plant, when

* the sample is more than ``RESTART_AFTER`` older or has the stamp 0, and
* the next sample follows it within ``RESTART_AFTER``, or the same sample is sent again after
  ``ASKED_AGAIN`` (a plant in lockstep repeats samples that are not answered).

In lockstep a sample with stamp 0 is a restart at once: the plant waits for its answer, and there
is no other source of samples. Negative stamps are never used.

Outside lockstep, messages that have waited for more than ``STALE`` are not used: a process that
was stopped finds seconds of them in its queue, and would act on the past.

Stamps are [ns], ``now`` is a steady time [s].
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from longreach_node.cycle_node import CycleNode

# Older stamps than this may mean that time began anew [s].
RESTART_AFTER = 0.5
# A sample that is sent again so long after the answer [s] is no doubled message but a plant in
# lockstep that has not received the answer.
ASKED_AGAIN = 0.25
# A message that was longer on its way than the fastest one by this is not used [s]. After as long
# a time without a command a plant falls back to its safe command anyway.
STALE = 0.5
# Clocks of two computers drift apart by less than this [s/s].
_DRIFT = 1e-3
# When all messages are as stale for so long, the clock that stamps them was set [s].
_CLOCK_WAS_SET = 5.0
_SECOND = 1_000_000_000  # [ns]
# Number of distances of stamps that are averaged; share of a cycle by which this may differ.
_AVERAGED, _OTHER = 50, 0.02


class Sample(NamedTuple):
    """A whole sample; the second half is None where there is only one."""

    stamp: int
    first: Any
    second: Any


class Pairs:
    """Messages of two topics with equal stamps; those whose partner was lost are dropped."""

    def __init__(self, most: int = 100) -> None:
        self._most = most
        self._waiting: tuple[dict[int, Any], dict[int, Any]] = ({}, {})
        self.unpaired = [0, 0]  # messages of each topic that were dropped

    def add(self, half: int, stamp: int, message: Any) -> Sample | None:
        """Take a message of topic 0 or 1, and return the sample that it completes."""
        self._waiting[half][stamp] = message
        first, second = self._waiting
        whole, limit = None, -(2**63)
        if stamp in first and stamp in second:
            whole, limit = Sample(stamp, first.pop(stamp), second.pop(stamp)), stamp
        for k, waiting in enumerate(self._waiting):
            surplus = list(waiting)[: max(0, len(waiting) - self._most)]
            for at in {*surplus, *(at for at in waiting if at < limit)}:
                del waiting[at]
                self.unpaired[k] += 1
        return whole

    def clear(self) -> None:
        """Drop all messages that are kept."""
        for waiting in self._waiting:
            waiting.clear()


class Staleness:
    """Tells which messages have waited too long: longer than the fastest one."""

    # Clocks of two computers differ, and drift apart. A delay that stays for seconds, neither
    # growing nor shrinking, is that of a clock that was set.

    def __init__(self) -> None:
        self._least: float | None = None
        self._at = 0.0
        self._stale_since: float | None = None
        self._stale_delay = 0

    def is_stale(self, sent: int, received: int, now: float) -> bool:
        """Return whether a message has waited too long, by the wall clocks of both sides [ns]."""
        delay = received - sent
        if self._least is not None:
            self._least += _DRIFT * 1e9 * (now - self._at)
        self._at = now
        if self._least is None or delay < self._least:
            self._least = delay
        if delay - self._least <= STALE * 1e9:
            self._stale_since = None
            return False
        if self._stale_since is None or abs(delay - self._stale_delay) > 0.5 * STALE * 1e9:
            self._stale_since, self._stale_delay = now, delay
        if now - self._stale_since > _CLOCK_WAS_SET:
            self._least, self._stale_since = delay, None
            return False
        return True


class Kind(Enum):
    """Kind of a sample relative to the latest one before it."""

    NEW = 'new'
    DUPLICATE = 'duplicate'  # of the latest cycle
    REPEATED = 'repeated'  # the same, repeated by a plant that has no answer
    LATE = 'late'  # of an earlier cycle, or of one that was predicted
    OLDER = 'older'  # much older: kept until the next sample shows whether time restarted
    RESTART = 'restart'  # time restarted
    INVALID = 'invalid'  # negative stamp


class SampleStream:
    """The samples that a node answers; ``counts`` has the numbers of those that were not used."""

    # The ``sample_time`` [s] is the plant's, to count missed samples; 0: unknown. With
    # ``whole_cycles`` stamps count cycles of it; otherwise any later stamp is the next cycle.

    def __init__(
        self,
        node: CycleNode[Any],
        sample_time: float,
        lockstep: bool,
        halves: int = 2,
        whole_cycles: bool = False,
    ) -> None:
        self.counts = dict.fromkeys(('missed', 'late', 'stale', 'unpaired', 'invalid'), 0)
        self._node, self._lockstep, self._halves = node, lockstep, halves
        self._period, self._whole_cycles = round(sample_time * 1e9), whole_cycles
        self._reported = 0
        self._pairs, self._staleness = Pairs(), Staleness()
        # Stamps of the latest cycles without a gap.
        self._stamps: deque[int] = deque(maxlen=_AVERAGED + 1)
        self.clear()

    def clear(self) -> None:
        """Forget everything but the counts: the next sample is the first."""
        self._pairs.clear()
        self._stamps.clear()
        self.latest: int | None = None  # stamp of the latest cycle
        self._kept: Sample | None = None
        self._kept_at = self.answered_at = 0.0
        self._answered = False

    def is_stale(self, sent: int, received: int, now: float) -> bool:
        """Return whether a message has waited too long, as :class:`Staleness`, and warn of it."""
        if self._lockstep or not self._staleness.is_stale(sent, received, now):
            return False
        self.counts['stale'] += 1
        self._node.warn(
            f'messages that have waited for more than {STALE:g} s are not used'
            f' ({self.counts["stale"]} so far): this process or its host was busy or stopped'
        )
        return True

    def take(self, half: int, stamp: int, message: Any, now: float) -> None:
        """Take one half of a sample, 0 or 1, and answer the sample that is whole now."""
        if self._halves == 1:
            self._on_sample(Sample(stamp, message, None), now)
            return
        sample = self._pairs.add(half, stamp, message)
        joints, hydraulics = self._pairs.unpaired
        if joints + hydraulics != self.counts['unpaired']:
            self.counts['unpaired'] = joints + hydraulics
            self._node.warn(
                f'without a partner of the same stamp: {joints} messages of joint_states,'
                f' {hydraulics} of hydraulics; do both come from one plant?'
            )
        if sample is not None:
            self._on_sample(sample, now)

    def done(self, stamp: int, answered: bool, now: float) -> None:
        """Note that a cycle ran, and whether there is a command."""
        latest, self.latest, self._answered = self.latest, stamp, answered
        if answered:
            self.answered_at = now
        if latest is None or not self._period or stamp == latest:
            return
        missed, interval = round((stamp - latest) / self._period) - 1, float(stamp - latest)
        if missed > 0:
            self._stamps.clear()
        self._stamps.append(stamp)
        if len(self._stamps) > _AVERAGED:
            interval = (stamp - self._stamps[0]) / _AVERAGED
        is_other = len(self._stamps) > _AVERAGED and abs(interval / self._period - 1.0) > _OTHER
        if missed < 0 or is_other:
            self._node.warn(
                f'sample of {stamp * 1e-9:.6f} s, {interval * 1e-9:g} s after the one before;'
                f" sample_rate = {1e9 / self._period:g} Hz shall be the plant's publish_rate"
            )
        elif missed:
            self.counts['missed'] += missed
            self._node.warn(f'{missed} samples missing before the one of {stamp * 1e-9:.6f} s')

    def invalid(self, stamp: int, error: Exception) -> None:
        """Count a sample that cannot be used, and say why."""
        self.counts['invalid'] += 1
        self._node.warn(f'sample of {stamp * 1e-9:.6f} s is not used: {error}')

    def grown(self) -> bool:
        """Return whether a count has grown since the last call."""
        total = sum(self.counts.values())
        grown, self._reported = total > self._reported, total
        return grown

    def kind_of(self, sample: Sample, now: float) -> Kind:
        """Return what a sample is; it is kept when only the next one can tell."""
        if sample.stamp < 0:
            return Kind.INVALID
        if self.latest is None:
            return Kind.NEW
        difference = sample.stamp - self.latest
        cycles = round(difference / self._period) if self._whole_cycles else min(difference, 1)
        if cycles > 0:
            self._kept = None
            return Kind.NEW
        asked_again, before = now - self.answered_at > ASKED_AGAIN, self._kept
        if cycles == 0:
            return Kind.REPEATED if asked_again else Kind.DUPLICATE
        older = -difference > RESTART_AFTER * 1e9
        continues = before is not None and 0 < sample.stamp - before.stamp <= RESTART_AFTER * 1e9
        if not older and sample.stamp > 0 and not continues:
            return Kind.LATE
        if self._lockstep and sample.stamp == 0 and (older or asked_again):
            self._kept = None
            return Kind.RESTART
        if continues:
            return Kind.RESTART
        if before is None or before.stamp != sample.stamp:
            self._kept, self._kept_at = sample, now
        elif now - self._kept_at > ASKED_AGAIN:
            self._kept = None
            return Kind.RESTART
        return Kind.OLDER

    def _on_sample(self, sample: Sample, now: float) -> None:
        """Answer a sample, by its place in the order."""
        latest, kind = self.latest, self.kind_of(sample, now)
        if kind is Kind.NEW:
            self._run(sample, latest)
        elif kind in (Kind.DUPLICATE, Kind.REPEATED):
            if not self._answered:
                self._run(sample, latest)
            elif kind is Kind.REPEATED:
                self.answered_at = now
                self._node.send_again()
        else:
            where = f'sample of {sample.stamp * 1e-9:.6f} s, after {(latest or 0) * 1e-9:.6f} s'
            if kind is Kind.RESTART:
                self._node.inform(f'time began anew: {where}')
                self._node.forget()
                kept = self._kept
                self.clear()
                if kept is not None:
                    self._run(kept, None)
                self._run(sample, None if kept is None else kept.stamp)
                return
            self.counts['late'] += 1
            hints = {
                Kind.OLDER: ' unless the next sample continues from it',
                Kind.INVALID: ', allowed: stamps from 0 on',
            }
            self._node.warn(f'{kind.value} {where}, is not used{hints.get(kind, "")}')

    def _run(self, sample: Sample, latest: int | None) -> None:
        """Run the cycle of a sample; diagnostics are due in each new second of the stamps."""
        before = -1 if latest is None else latest
        self._node.run(sample, before // _SECOND < sample.stamp // _SECOND)
