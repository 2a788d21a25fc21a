"""Pictures as files, complete or absent: simulated images, and overlays of tracked ones."""

from __future__ import annotations

import contextlib
import itertools
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import cv2
import numpy as np

from longreach_dynamics.errors import InputError, LongreachError
from longreach_markers import Followed, Rig, draw_cameras
from longreach_tools.output import writing, writing_directory
from longreach_vision.simulator.camera_simulator import CameraSimulator, drawn_pictures
from longreach_vision.simulator.marker_path import MarkerPath

VIDEOS = {'.mp4': 'mp4v', '.avi': 'MJPG', '.mkv': 'mp4v'}
"""Extensions of videos, with their codecs; other names are folders of pictures."""

# Largest width of one camera's part of an overlay [px].
_WIDTH = 1226
# Image rates supported by all these formats, and the rate of a single picture [Hz].
_RATES, _USUAL = (0.002, 1000.0), 15.0
# Number of pictures from which the rate of a video follows.
_FIRST = 6


class _Folder:
    """A new folder of pictures, which are named by number and time; ``target`` is for errors."""

    def __init__(self, folder: Path, target: Path, suffix: str) -> None:
        self._folder, self._target, self._suffix = folder, target, suffix
        self._count = 0
        folder.mkdir()

    def write(self, picture: np.ndarray, time: float) -> None:
        name = f'{self._count:06d}_{time:.9f}{self._suffix}'
        if not cv2.imwrite(str(self._folder / name), picture):
            raise LongreachError(f'{self._target / name} cannot be written; is the disk full?')
        self._count += 1


class _Video:
    """A new video, whose rate follows from its first pictures; ``target`` is for errors."""

    def __init__(self, file: Path, target: Path) -> None:
        self._file, self._target = file, target
        self._first: list[tuple[np.ndarray, float]] = []
        self._writer: cv2.VideoWriter | None = None
        self._count = 0

    def write(self, picture: np.ndarray, time: float) -> None:
        self._count += 1
        if self._writer is not None:
            self._writer.write(picture)
            return
        self._first.append((picture, time))
        if len(self._first) == _FIRST:
            self._writer = self._begun()

    def _begun(self) -> cv2.VideoWriter:
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
        code, size = VIDEOS[self._target.suffix.lower()], self._first[0][0].shape[1::-1]
        writer = cv2.VideoWriter(str(self._file), cv2.VideoWriter.fourcc(*code), rate, size)
        if not writer.isOpened():
            raise LongreachError(
                f'{self._target} cannot be written: this OpenCV has no codec {code}; use another'
                ' extension, or a folder of pictures'
            )
        for picture, _ in self._first:
            writer.write(picture)
        return writer

    def close(self) -> None:
        if not self._count:
            return
        (self._writer or self._begun()).release()
        capture, readable = cv2.VideoCapture(str(self._file), cv2.CAP_FFMPEG), 0
        while capture.grab():
            readable += 1
        capture.release()
        if readable < self._count:
            raise LongreachError(
                f'{self._target} cannot be written: of {self._count} images {readable} can be'
                ' read again; is the disk full?'
            )


@contextlib.contextmanager
def writing_overlay(target: Path, rig: Rig) -> Iterator[Callable[[Followed], None]]:
    """Yield a function that adds a set of images to a video or folder of pictures."""

    def overlaid(one: Followed) -> np.ndarray:
        images, seen = one.images, one.frame.observations
        return draw_cameras(rig.cameras, images.images, images.times, seen, _WIDTH, one.windows)

    if target.suffix and target.suffix.lower() not in VIDEOS:
        raise InputError(
            f'--overlay {target}, allowed: {", ".join(VIDEOS)}, or a folder of pictures'
        )
    writer = writing if target.suffix else writing_directory
    with writer(target) as place:
        sink = _Video(place, target) if target.suffix else _Folder(place, target, '.jpg')
        yield lambda one: sink.write(overlaid(one), one.frame.time)
        if isinstance(sink, _Video):
            sink.close()


def render_sequence(
    simulators: Mapping[str, CameraSimulator],
    path: MarkerPath,
    times: Sequence[float] | np.ndarray,
    out_dir: str | Path,
    delays: Mapping[str, int] | None = None,
) -> None:
    """Render what cameras see of a path, each into its folder: 000000_0.000000000.png, ..."""
    at = [float(time) for time in times]
    late = {name: 1e-9 * (delays or {}).get(name, 0) for name in simulators}
    if at[0] + min(late.values()) < 0.0:
        raise InputError(
            f'delays of {late} s and a first time of {at[0]:g} s, allowed: stamps from 0 s on;'
            ' begin later'
        )
    directory = Path(out_dir)
    with writing_directory(directory) as unfinished:
        unfinished.mkdir()
        folders = {
            name: _Folder(unfinished / name, directory / name, '.png') for name in simulators
        }
        for picture in drawn_pictures(simulators, path, np.array(at), delays):
            folders[picture.camera].write(picture.image, picture.stamp / 1e9)
