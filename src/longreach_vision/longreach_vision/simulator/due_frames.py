"""Images of simulated cameras that are to be drawn, with the times at which they are due."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from longreach_vision.simulator.marker_path import Frame, FrameTimes, MarkerPath, frames_of


class DueFrame(NamedTuple):
    """An image to be drawn."""

    camera: int  # index
    frame: Frame
    due: float  # on the monotonic clock [s]


class DueFrames:
    """
    Images to be drawn, from samples of the truth as they arrive, or along a path.

    ``duration`` is the time of the truth, or since the start of the path, of the last image [s];
    0: no end. ``waiting`` is in the order of drawing, ``is_complete`` once it has or had the last
    image.
    """

    def __init__(self, times: Sequence[FrameTimes], duration: float) -> None:
        self._times, self._duration = times, duration
        self._path: Iterator[DueFrame] | None = None
        self._has_pace = False
        self.waiting: deque[DueFrame] = deque()
        self.is_complete = False

    def add(self, stamp: int, positions: np.ndarray, velocities: np.ndarray, now: float) -> bool:
        """Add the images that a sample of the truth completes; return whether there is news."""
        frames = [
            DueFrame(camera, frame, now)
            for camera, times in enumerate(self._times)
            for frame in times.add(stamp, positions, velocities)
        ]
        self.waiting.extend(frames)
        self.is_complete = 0 < round(self._duration * 1e9) <= stamp
        return bool(frames) or self.is_complete

    def follow(self, path: MarkerPath, real_time_factor: float, begin: float) -> None:
        """Follow a path in place of samples."""
        self._has_pace = real_time_factor > 0.0

        def images() -> Iterator[DueFrame]:
            for camera, frame in frames_of(path, self._times, self._duration or math.inf):
                since = frame.stamp * 1e-9 - path.times[0]
                due = begin + since / real_time_factor if self._has_pace else 0.0
                yield DueFrame(camera, frame, due)

        self._path = images()

    @property
    def has_path(self) -> bool:
        """Whether images are those of a path."""
        return self._path is not None

    def has_next(self, now: float, is_heard: Callable[[], bool]) -> bool:
        """
        Return whether an image is waiting, if need be the next one of the path.

        Without a pace, that waits until listeners have the previous one.
        """
        if not self.waiting and self._path is not None and (self._has_pace or is_heard()):
            image = next(self._path, None)
            self.is_complete = image is None
            if image is not None:
                self.waiting.append(image._replace(due=image.due or now))
        return bool(self.waiting)
