"""Judgement of the cameras of a rig while they track: clocks and agreement of their poses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from longreach_markers.rig import Rig
from longreach_markers.tracking.clock_offset import ClockOffset, Clocks, clock_estimates
from longreach_markers.tracking.frames import RigFrame
from longreach_markers.tracking.pose_agreement import Agreement, compare_poses, size_warning
from longreach_markers.tracking.sightings import Sightings

# Time between the starts of two rounds of estimates [s of wall time], and the number of latest
# sightings of each marker for them.
_ROUND, _SIGHTINGS = 10.0, 600

_Judgement = TypeVar('_Judgement', ClockOffset, Agreement)


class CameraJudge:
    """
    Judges clocks and poses of a rig's cameras by their latest sightings.

    One estimate of two cameras for each call, since it takes some 0.1 s during which images wait.
    ``now`` is on the monotonic clock [s]; the first round begins 10 s later. ``offset``,
    ``agreement``: of the first two cameras that differ, or else of the first two; None: unknown.
    """

    def __init__(self, rig: Rig, now: float) -> None:
        # Not at the first estimate, while images wait.
        import scipy.interpolate
        import scipy.ndimage  # noqa: F401

        self._sightings = Sightings(rig, _SIGHTINGS)
        self._begun = now
        self._round: Iterator[None] | None = None
        self.offset: ClockOffset | None = None
        self.agreement: Agreement | None = None
        self._size = ''

    def add(self, frame: RigFrame) -> None:
        """Add the result of the images of one time."""
        self._sightings.add(frame)

    def work(self, now: float) -> bool:
        """Make the next estimate that is due."""
        if self._round is None:
            if now - self._begun < _ROUND:
                return False
            self._begun, self._round = now, self._estimates()
        try:
            next(self._round)
        except StopIteration:
            self._round = None
        return self._round is None

    def _estimates(self) -> Iterator[None]:
        clocks = Clocks()
        yield from clock_estimates(self._sightings, clocks, search=False)
        self.offset = _worst(clocks.of_each())
        self.agreement = _worst(compare_poses(self._sightings, clocks))
        self._size = size_warning(self._sightings)

    @property
    def warning(self) -> str:
        """Warning about clocks, else poses, as wrong clocks make cameras disagree, else sizes."""
        known = (one.warning for one in (self.offset, self.agreement) if one is not None)
        return next(filter(None, known), self._size)


def _worst(found: Sequence[_Judgement]) -> _Judgement | None:
    """Return the first result with a warning, or else the first one; None for one camera."""
    return next((one for one in found if one.warning), next(iter(found), None))
