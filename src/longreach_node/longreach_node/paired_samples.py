"""
Which samples of two halves a controller answers, without ROS.

The halves pair by their stamps; pairs are put in order as in :mod:`longreach_dynamics.cycles`.
Outside lockstep, halves that have waited for more than ``STALE`` are not used: a process that was
stopped finds seconds of them in its queue, and would act on the past.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from longreach_dynamics.cycles import Kind, SampleOrder
from longreach_node.pairing import Pair, Pairs

# Older stamps than this may mean that time began anew [s].
_RESTART_AFTER = 0.5
# A message that was longer on its way than the fastest one by this is not used [s]. After as long
# a time without a command a plant falls back to its safe command anyway.
STALE = 0.5
# Clocks of two computers drift apart by less than this [s/s].
_DRIFT = 1e-3
# When all messages are as stale for so long, the clock that stamps them was set [s].
_CLOCK_WAS_SET = 5.0
_SECOND = 1_000_000_000  # [ns]


class Staleness:
    """
    Tells which messages have waited too long.

    Clocks of two computers differ, and drift apart; so the shortest time on the way counts as
    none, and what counts as the shortest grows slowly. A delay that stays for seconds, neither
    growing nor shrinking, is that of a clock that was set.
    """

    def __init__(self) -> None:
        self._least: float | None = None
        self._at = 0.0
        self._stale_since: float | None = None
        self._stale_delay = 0

    def is_stale(self, sent: int, received: int, now: float) -> bool:
        """
        Return whether a message has waited for longer than ``STALE``.

        Parameters
        ----------
        sent, received : int
            [ns], by the wall clocks of sender and receiver.
        now : float
            [s], by a steady clock.
        """
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


class Note(NamedTuple):
    """A line for the log."""

    level: Literal['info', 'warn']
    text: str


class Run(NamedTuple):
    """Run a cycle, and tell :meth:`PairedSamples.done` or :meth:`PairedSamples.invalid`."""

    pair: Pair[Any, Any]
    report: bool  # diagnostics are due


class Again(NamedTuple):
    """Send the latest command again."""


class Forget(NamedTuple):
    """Forget everything: the next cycle is the first."""


Action = Note | Run | Again | Forget


class PairedSamples:
    """
    The samples of a controller.

    Parameters
    ----------
    sample_time : float
        Of the plant [s], to count missed samples; 0: unknown.
    lockstep : bool
        The plant waits for each command.
    whole_cycles : bool
        Stamps count cycles of the sample time, from which they may differ by less than half of
        one; otherwise any later stamp is the next cycle.

    Attributes
    ----------
    counts : dict of str to int
        Numbers of missed, late, stale, unpaired and invalid samples.
    """

    def __init__(self, sample_time: float, lockstep: bool, *, whole_cycles: bool = False) -> None:
        self.counts = dict.fromkeys(('missed', 'late', 'stale', 'unpaired', 'invalid'), 0)
        self._reported = 0
        self._period = round(sample_time * 1e9)
        self._lockstep = lockstep
        self._pairs: Pairs[Any, Any] = Pairs()
        self._order: SampleOrder[Pair[Any, Any]] = SampleOrder(
            sample_time if whole_cycles else 0.0, _RESTART_AFTER, lockstep
        )
        self._staleness = Staleness()
        self._answered = False

    @property
    def latest(self) -> int | None:
        """Stamp of the latest cycle [ns]; None before the first."""
        return self._order.latest

    def clear(self) -> None:
        """Forget everything but the counts: the next sample is the first."""
        self._pairs.clear()
        self._order.clear()
        self._answered = False

    def waited(self, sent: int, received: int, now: float) -> list[Action] | None:
        """
        Return what to do about a message that has waited too long, None for any other.

        Parameters are those of :meth:`Staleness.is_stale`.
        """
        if self._lockstep or not self._staleness.is_stale(sent, received, now):
            return None
        self.counts['stale'] += 1
        text = (
            f'messages that have waited for more than {STALE:g} s are not used'
            f' ({self.counts["stale"]} so far): this process or its host was busy or stopped'
        )
        return [Note('warn', text)]

    def first(self, stamp: int, message: Any, now: float) -> list[Action]:
        """Take one half, stamp in [ns], at a steady time [s]; return the resulting actions."""
        pair = self._pairs.add_first(stamp, message)
        return self._unpaired() + self._on_pair(pair, now)

    def second(self, stamp: int, message: Any, now: float) -> list[Action]:
        """Take the other half, as :meth:`first`."""
        pair = self._pairs.add_second(stamp, message)
        return self._unpaired() + self._on_pair(pair, now)

    def whole(self, stamp: int, message: Any, now: float) -> list[Action]:
        """Take a sample that consists of one message, as :meth:`first`."""
        return self._on_pair(Pair(stamp, message, None), now)

    def done(self, stamp: int, answered: bool, now: float) -> list[Action]:
        """Note that a cycle ran at a steady time [s], and whether there is a command."""
        latest = self._order.latest
        self._order.accept(stamp)
        self._answered = answered
        if answered:
            self._order.answer(now)
        return self._missed(stamp, latest)

    def invalid(self, stamp: int, error: Exception) -> Note:
        """Count a sample that cannot be used, and return the message."""
        self.counts['invalid'] += 1
        return Note('warn', f'sample of {stamp * 1e-9:.6f} s is not used: {error}')

    def grown(self) -> bool:
        """Return whether a count has grown since the last call."""
        total = sum(self.counts.values())
        grown, self._reported = total > self._reported, total
        return grown

    def _on_pair(self, pair: Pair[Any, Any] | None, now: float) -> list[Action]:
        """Return the actions for a pair, if there is one."""
        if pair is None:
            return []
        latest = self._order.latest
        kind = self._order.arrive(pair.stamp, pair, now).kind
        if kind is Kind.NEW:
            return [self._run(pair, latest)]
        if kind in (Kind.DUPLICATE, Kind.REPEATED):
            if not self._answered:
                return [self._run(pair, latest)]
            if kind is Kind.DUPLICATE:
                return []
            # The plant may not have received the answer.
            self._order.answer(now)
            return [Again()]
        where = f'sample of {pair.stamp * 1e-9:.6f} s, after {(latest or 0) * 1e-9:.6f} s'
        if kind is Kind.RESTART:
            actions: list[Action] = [Note('info', f'time began anew: {where}'), Forget()]
            kept = self._order.kept
            self.clear()
            if kept is not None:
                actions.append(self._run(kept.payload, None))
            return [*actions, self._run(pair, None if kept is None else kept.stamp)]
        self.counts['late'] += 1
        hints = {
            Kind.OLDER: ' unless the next sample continues from it',
            Kind.INVALID: ', allowed: stamps from 0 on',
        }
        return [Note('warn', f'{kind.value} {where}, is not used{hints.get(kind, "")}')]

    @staticmethod
    def _run(pair: Pair[Any, Any], latest: int | None) -> Run:
        """Return the cycle of a pair; diagnostics are due in each new second of the stamps."""
        before = -1 if latest is None else latest
        return Run(pair, before // _SECOND < pair.stamp // _SECOND)

    def _missed(self, stamp: int, latest: int | None) -> list[Action]:
        """Count the samples between the latest one and a new one."""
        if latest is None or not self._period or stamp == latest:
            return []
        missed = round((stamp - latest) / self._period) - 1
        if missed < 0:
            text = (
                f'sample of {stamp * 1e-9:.6f} s, {(stamp - latest) * 1e-9:g} s after the one'
                f" before; sample_rate = {1e9 / self._period:g} Hz shall be the plant's"
                ' publish_rate'
            )
            return [Note('warn', text)]
        self.counts['missed'] += missed
        text = f'{missed} samples missing before the one of {stamp * 1e-9:.6f} s'
        return [Note('warn', text)] if missed else []

    def _unpaired(self) -> list[Action]:
        """Count messages whose other half never came."""
        unpaired = sum(self._pairs.unpaired)
        if unpaired == self.counts['unpaired']:
            return []
        self.counts['unpaired'] = unpaired
        joints, hydraulics = self._pairs.unpaired
        text = (
            f'without a partner of the same stamp: {joints} messages of joint_states,'
            f' {hydraulics} of hydraulics; do both come from one plant?'
        )
        return [Note('warn', text)]
