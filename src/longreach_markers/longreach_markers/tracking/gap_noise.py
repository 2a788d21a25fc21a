"""Noise of pixels, compared with the stated one by the scatter of the gaps between two rays."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Mapping

import numpy as np

from longreach_markers.tracking.frames import RigFrame

# Latest differences of gaps from which the noise is computed.
_LATEST = 300
# Weights of successive gaps between both rays in the difference that shows their noise, and its
# standard deviation for gaps of 1; sightings from which noise is known; and its least ratio to the
# stated one for which covariances of pixels are increased.
_DIFFERENCE, _ENOUGH, _EXCESS = (1.0, -2.0, 1.0), 60, 1.5
_LENGTH = math.hypot(*_DIFFERENCE)
# Median of such differences of all markers, over their standard deviations, from which on a camera
# has jumped, and below which it stood still before.
_JUMP, _STILL = 6.0, 3.0
# Share of these squares without the largest, which may be swaps, and the mean of this share of the
# chi-square distribution with 1 degree of freedom.
_KEPT, _KEPT_MEAN = 0.98, 0.873


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
        # The latest of these squares, over the variance increased by that factor.
        self._latest_squares: dict[tuple[str, str, str], float] = {}

    def add(self, frame: RigFrame) -> None:
        """Add the gaps in the images of one time."""
        squares: dict[tuple[str, str], dict[tuple[str, str, str], float]] = defaultdict(dict)
        for key, point in frame.disagreements.items():
            gaps = self._gaps[key]
            gaps.append(point.gap)
            if len(gaps) == len(_DIFFERENCE):
                # Motion has hardly any influence: wrong poses and times are not noise.
                off = float(np.dot(_DIFFERENCE, gaps)) / _LENGTH
                squares[key[1], key[2]][key] = (off / point.gap_noise) ** 2
        for cameras, found in squares.items():
            if self._is_jump(found):
                # A camera that was bumped is not noise, either.
                for key, gaps in self._gaps.items():
                    if key[1:] == cameras:
                        gaps.clear()
            else:
                self._scatter.extend(square * self.excess for square in found.values())
            self._latest_squares |= found
        if len(self._scatter) >= _ENOUGH:
            # Not the median: errors of compression have long tails.
            kept = np.sort(self._scatter)[: round(_KEPT * len(self._scatter))]
            excess = float(np.mean(kept)) / _KEPT_MEAN
            self.excess = excess if excess > _EXCESS else 1.0

    def _is_jump(self, squares: Mapping[tuple[str, str, str], float]) -> bool:
        """Return whether the rays to most markers jumped, and did not just before."""
        before = [self._latest_squares.get(key, 0.0) for key in squares]
        return bool(np.median(list(squares.values())) > _JUMP**2 and np.median(before) < _STILL**2)
