"""Waiting for the answer to a sample; without ROS, and with the time as an argument."""

from __future__ import annotations

# The sample is published again when no answer came for this long [s of wall time]: the first one,
# which the other side may not have been able to hear yet, and later ones.
_ASK_AGAIN_FIRST, _ASK_AGAIN = 1.0, 3.0


class Lockstep:
    """
    How long the answer to the present sample has been waited for.

    Parameters
    ----------
    timeout : float
        Longest wait for an answer [s of wall time].
    start_timeout : float
        Additional time for the first answer, because of discovery [s of wall time].
    longest_turn : float
        Between two calls of :meth:`listen` no more than this counts as time in which an answer
        could have come [s]: a node that did not run itself did not listen either.
    """

    def __init__(self, timeout: float, start_timeout: float, longest_turn: float) -> None:
        self.timeout = timeout
        self._start_timeout = start_timeout
        self._longest_turn = longest_turn
        self.restart(0.0)

    def restart(self, now: float) -> None:
        """Begin to wait: a sample was published, or a pause has ended."""
        self._turned = now
        self._listened = self._listened_since_asked = 0.0

    def listen(self, now: float) -> None:
        """Count the time since the last call, or since the wait began."""
        turn = min(now - self._turned, self._longest_turn)
        self._turned = now
        self._listened += turn
        self._listened_since_asked += turn

    def asks_again(self, sample: int) -> bool:
        """
        Return whether the sample is to be published again.

        Discovery is not simultaneous on both sides: the sample, or the answer, may have been sent
        before the other side could hear it.
        """
        if self._listened_since_asked <= (_ASK_AGAIN if sample else _ASK_AGAIN_FIRST):
            return False
        self._listened_since_asked = 0.0
        return True

    def limit(self, sample: int) -> float:
        """Return the longest wait for the answer to a sample [s of wall time]."""
        return self.timeout + (0.0 if sample else self._start_timeout)

    def is_overdue(self, sample: int) -> bool:
        """Return whether the longest wait is over."""
        return self._listened > self.limit(sample)
