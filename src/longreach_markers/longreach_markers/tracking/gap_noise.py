"""Noise of pixels, compared with the stated one by the scatter of the gaps between two rays."""

from __future__ import annotations

import math
from collections import defaultdict, deque

import numpy as np

from longreach_markers.tracking.frames import RigFrame, typical_chi_square

# Weights of successive gaps between both rays in the difference that shows their noise, and its
# standard deviation for gaps of 1.
_DIFFERENCE = (1.0, -2.0, 1.0)
_LENGTH = math.hypot(*_DIFFERENCE)
# Number of latest differences, and of those from which on noise is known; the least ratio of their
# variance to the stated one for which covariances of pixels are increased.
_LATEST, _ENOUGH, _EXCESS = 300, 60, 1.5
# Deviations from which on they are no noise.
_NO_NOISE = 6.0


class GapNoise:
    """``excess`` is the factor of the stated variances of pixels that the latest gaps show."""

    def __init__(self) -> None:
        # Latest gaps between two rays by marker and cameras [px], squares of their differences
        # over the stated variance, and the factor of the pixels' variances that follows.
        self._gaps: dict[tuple[str, str, str], deque[float]] = defaultdict(
            lambda: deque(maxlen=len(_DIFFERENCE))
        )
        self._scatter: deque[float] = deque(maxlen=_LATEST)
        self.excess = 1.0

    def add(self, frame: RigFrame) -> None:
        """Add the gaps in the images of one time."""
        stated = self.excess
        for key, point in frame.disagreements.items():
            gaps = self._gaps[key]
            gaps.append(point.gap)
            if len(gaps) == len(_DIFFERENCE):
                # Motion has hardly any influence: wrong poses and times are not noise.
                off = float(np.dot(_DIFFERENCE, gaps)) / _LENGTH
                self._scatter.append(stated * (off / point.gap_noise) ** 2)
        if len(self._scatter) >= _ENOUGH:
            squares = np.array(self._scatter)
            # Bumps, wrong stamps and swaps are no noise. Not the median of what is left: errors
            # of compression have long tails.
            noise = squares[squares < _NO_NOISE**2 * typical_chi_square(squares)]
            excess = float(np.mean(noise)) if len(noise) else 1.0
            self.excess = excess if excess > _EXCESS else 1.0
