"""
Schedule of the samples of a simulation; without ROS, and with the time as an argument.

real time (``factor`` > 0)
    Sample k is due at k / (rate factor) after the origin. A delay that is too long is dropped from
    the schedule.
as fast as possible (``factor`` = 0)
    The next sample is always due.
"""

from __future__ import annotations

# Longest delay for which the simulation catches up [s of wall time].
BACKLOG = 0.2
# As fast as possible: longest uninterrupted time before other callbacks run [s of wall time].
RUSH = 2e-3
# The shortest period of a node's timer [s].
SHORTEST_PERIOD = 1e-3


class Pacing:
    """
    The schedule of the samples.

    Parameters
    ----------
    rate : float
        Samples per second of simulation [Hz].
    factor : float
        Speed against real time; 0 is as fast as possible.
    """

    def __init__(self, rate: float, factor: float) -> None:
        self.rate = rate
        self.factor = factor
        self.restart(0.0, 0)

    def restart(self, now: float, sample: int) -> None:
        """Let the present sample be due at the present wall time [s]."""
        self._origin = now
        self._origin_sample = sample

    @property
    def period(self) -> float:
        """How often to look whether a sample is due [s of wall time]."""
        if self.factor == 0.0:
            return SHORTEST_PERIOD
        return max(SHORTEST_PERIOD, 1.0 / (self.rate * self.factor))

    def due(self, now: float, sample: int) -> int:
        """Return by how many samples the schedule is ahead of the present one; at most 1 at 0."""
        if self.factor == 0.0:
            return 1
        elapsed = (now - self._origin) * self.factor
        return self._origin_sample + int(elapsed * self.rate) - sample

    def delay(self, now: float, sample: int) -> float:
        """Return how far the simulation is behind real time [s of wall time]."""
        if self.factor == 0.0:
            return 0.0
        return self.due(now, sample) / (self.rate * self.factor)

    def is_overrun(self, begun: float, now: float, sample: int) -> bool:
        """
        Return whether the simulation is too far behind to catch up.

        Parameters
        ----------
        begun, now : float
            Since when it has been catching up, and the present wall time [s].
        sample : int
        """
        late = self.delay(now, sample) > BACKLOG or now - begun > BACKLOG
        return self.factor > 0.0 and late

    def is_turn_over(self, begun: float, now: float, rush: bool) -> bool:
        """Return whether other callbacks must run, as fast as possible or in a ``rush``."""
        return (rush or self.factor == 0.0) and now - begun >= RUSH
