"""
When a sample is due, and how long its answer is awaited; the time is an argument.

All times are wall time [s], from any origin.
"""

from __future__ import annotations

# Longest delay for which the simulation catches up.
BACKLOG = 0.2
# As fast as possible: longest uninterrupted time before other callbacks run.
_LONGEST_TURN = 2e-3
# The shortest period of a node's timer.
SHORTEST_PERIOD = 1e-3
# The sample is published again when no answer came for this long: the first one, which the other
# side may not have been able to hear yet, and later ones.
_REPEAT_FIRST, _REPEAT = 1.0, 3.0


class Pacing:
    """
    The schedule of samples: ``rate`` per second of simulation, at ``factor`` times real time.

    Sample k is due at k / (rate factor) after the origin; a delay that is too long is dropped from
    the schedule. With factor 0, as fast as possible, the next sample is always due.
    """

    def __init__(self, rate: float, factor: float) -> None:
        self.rate = rate
        self.factor = factor
        self.restart(0.0, 0)

    def restart(self, now: float, sample: int) -> None:
        """Let the present sample be due now."""
        self._origin = now
        self._origin_sample = sample

    @property
    def period(self) -> float:
        """How often to look whether a sample is due [s]."""
        if self.factor == 0.0:
            return SHORTEST_PERIOD
        return max(SHORTEST_PERIOD, 1.0 / (self.rate * self.factor))

    def due(self, now: float, sample: int) -> int:
        """Return by how many samples the schedule is ahead of the present one; 1 at factor 0."""
        if self.factor == 0.0:
            return 1
        elapsed = (now - self._origin) * self.factor
        return self._origin_sample + int(elapsed * self.rate) - sample

    def delay(self, now: float, sample: int) -> float:
        """Return how far the simulation is behind real time [s]."""
        if self.factor == 0.0:
            return 0.0
        return self.due(now, sample) / (self.rate * self.factor)

    def is_overrun(self, begun: float, now: float, sample: int) -> bool:
        """Return whether it is too far behind to catch up, which it tries since ``begun``."""
        late = self.delay(now, sample) > BACKLOG or now - begun > BACKLOG
        return self.factor > 0.0 and late

    def is_turn_over(self, begun: float, now: float, unpaced: bool) -> bool:
        """Return whether other callbacks must run, while samples follow each other at once."""
        return (unpaced or self.factor == 0.0) and now - begun >= _LONGEST_TURN


class Lockstep:
    """
    How long the answer to the present sample has been awaited, at most ``timeout``.

    ``start_timeout`` is added for the first answer, because of discovery. Between two calls of
    :meth:`listen` no more than ``longest_turn`` counts: a node that did not run did not listen
    either.
    """

    def __init__(self, timeout: float, start_timeout: float, longest_turn: float) -> None:
        self.timeout = timeout
        self._start_timeout = start_timeout
        self._longest_turn = longest_turn
        self.restart(0.0)

    def restart(self, now: float) -> None:
        """Begin to wait: a sample was published, or a pause has ended."""
        self._turned = now
        self._listened = self._listened_since_repeat = 0.0

    def listen(self, now: float) -> None:
        """Count the time since the last call, or since the wait began."""
        turn = min(now - self._turned, self._longest_turn)
        self._turned = now
        self._listened += turn
        self._listened_since_repeat += turn

    def must_repeat(self, sample: int) -> bool:
        """
        Return whether the sample is to be published again.

        The sample, or the answer, may have been sent before the other side had discovered this
        one.
        """
        if self._listened_since_repeat <= (_REPEAT if sample else _REPEAT_FIRST):
            return False
        self._listened_since_repeat = 0.0
        return True

    def limit(self, sample: int) -> float:
        """Return the longest wait for the answer to a sample [s]."""
        return self.timeout + (0.0 if sample else self._start_timeout)

    def is_overdue(self, sample: int) -> bool:
        """Return whether the longest wait is over."""
        return self._listened > self.limit(sample)
