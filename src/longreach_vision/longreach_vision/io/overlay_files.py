"""Overlays of tracked images as files: a video or a folder of pictures."""

from __future__ import annotations

import contextlib
import itertools
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_markers.io.overlay import draw_cameras
from longreach_markers.rig import Rig
from longreach_markers.tracking.follower import Followed
from longreach_tools.output import writing, writing_directory
from longreach_vision.io.picture_files import Folder, Video

VIDEOS = {'.mp4': 'mp4v', '.avi': 'MJPG', '.mkv': 'mp4v'}
"""Extensions of videos, with their codecs; other names are folders of pictures."""

# Largest width of one camera's part of an overlay [px].
_WIDTH = 1226
# Image rates supported by all these formats, and the rate of a single picture [Hz].
_RATES, _USUAL = (0.002, 1000.0), 15.0
# Number of pictures from which the rate of a video follows.
_FIRST = 6


@contextlib.contextmanager
def writing_overlay(target: Path, rig: Rig) -> Iterator[Callable[[Followed], None]]:
    """Yield a function that adds an image pair to a video or folder, complete or absent."""

    def overlaid(one: Followed) -> np.ndarray:
        images, seen = one.images, one.frame.observations
        return draw_cameras(rig.cameras, images.images, images.times, seen, _WIDTH, one.windows)

    if target.suffix and target.suffix.lower() not in VIDEOS:
        raise InputError(
            f'--overlay {target}, allowed: {", ".join(VIDEOS)}, or a folder of pictures'
        )
    if not target.suffix:
        with writing_directory(target) as place:
            folders: list[Folder] = []

            def write(one: Followed) -> None:
                if not folders:
                    folders.append(Folder(place, target, '.jpg'))
                folders[0].write(overlaid(one), one.frame.time)

            yield write
        return
    with writing(target) as file:
        overlay = _Overlay(file, target)
        yield lambda one: overlay.write(overlaid(one), one.frame.time)
        overlay.close()


class _Overlay:
    """A video whose rate follows from its first pictures."""

    def __init__(self, file: Path, target: Path) -> None:
        self._file, self._target = file, target
        self._first: list[tuple[np.ndarray, float]] = []
        self._video: Video | None = None

    def write(self, picture: np.ndarray, time: float) -> None:
        """Write the next picture, with its time [s]."""
        if self._video is not None:
            self._video.write(picture)
            return
        self._first.append((picture, time))
        if len(self._first) == _FIRST:
            self._begin()

    def _begin(self) -> None:
        """Begin the video with its first pictures."""
        times = [time for _, time in self._first]
        # One of the intervals may be a gap.
        intervals = [after - before for before, after in itertools.pairwise(times)]
        intervals = [interval for interval in intervals if interval > 0.0]
        rate = 1.0 / statistics.median_low(intervals) if intervals else _USUAL
        low, high = _RATES
        if not low <= rate <= high:
            raise InputError(
                f'{self._target} would have {rate:g} images per second by its first images,'
                f' allowed: [{low:g}, {high:g}] Hz; give a folder of pictures'
            )
        code = VIDEOS[self._target.suffix.lower()]
        self._video = Video(self._file, self._target, code, rate, self._first[0][0].shape)
        for picture, _ in self._first:
            self._video.write(picture)
        self._first.clear()

    def close(self) -> None:
        """Close the file; without pictures there is none."""
        if self._first:
            self._begin()
        if self._video is not None:
            self._video.close()
