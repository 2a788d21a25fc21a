"""Overlays of tracked images as files: a video or a folder of pictures."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import cv2
import numpy as np

from longreach_dynamics.errors import InputError, LongreachError
from longreach_markers.io.overlay import draw, side_by_side
from longreach_markers.rig import Rig
from longreach_markers.tracking.follower import Followed
from longreach_tools.output import writing, writing_directory

VIDEOS = {'.mp4': 'mp4v', '.avi': 'MJPG', '.mkv': 'mp4v'}
"""Extensions of videos, with their codecs; other names are folders of pictures."""

# Largest width of one camera's part of an overlay [px].
_WIDTH = 1226
# Image rates supported by all these formats, and the rate of a single picture [Hz].
_RATES, _USUAL = (0.002, 1000.0), 15.0


@contextlib.contextmanager
def writing_overlay(target: Path, rig: Rig) -> Iterator[Callable[[Followed], None]]:
    """Yield a function that adds an image pair to a video or folder, complete or absent."""
    if target.suffix.lower() in VIDEOS:
        with writing(target) as file:
            video = _Video(file, target)
            yield lambda one: video.write(_overlaid(one, rig), one.frame.time)
            video.close()
        return
    if target.suffix:
        raise InputError(
            f'--overlay {target}, allowed: {", ".join(VIDEOS)}, or a folder of pictures'
        )
    with writing_directory(target) as folder:
        count = 0

        def write(one: Followed) -> None:
            nonlocal count
            folder.mkdir(exist_ok=True)
            name = f'{count:06d}_{one.frame.time:.9f}.jpg'
            if not cv2.imwrite(str(folder / name), _overlaid(one, rig)):
                raise LongreachError(f'{target / name} cannot be written; is the disk full?')
            count += 1

        yield write


def _overlaid(one: Followed, rig: Rig) -> np.ndarray:
    """Return the overlays of all cameras in one picture."""
    pictures = []
    for name, mounted in rig.cameras.items():
        camera = mounted.camera
        scale = min(1.0, _WIDTH / camera.width)
        image = one.images.images.get(name)
        if image is None:
            dark = np.zeros((camera.height, camera.width), dtype=np.uint8)
            pictures.append(draw(dark, {}, scale, caption=f'{name}: no image'))
        else:
            caption = f'{name} {one.images.times[name]:.3f} s'
            seen = one.frame.observations.get(name, {})
            pictures.append(draw(image, seen, scale, one.windows.get(name), caption))
    return side_by_side(pictures)


class _Video:
    """A video whose rate follows from its first two pictures."""

    def __init__(self, file: Path, target: Path) -> None:
        self._file, self._target = file, target
        self._first: tuple[np.ndarray, float] | None = None
        self._writer: cv2.VideoWriter | None = None
        self._size: tuple[int, ...] = ()
        self._count = 0

    def write(self, picture: np.ndarray, time: float) -> None:
        """Write the next picture, with its time [s]."""
        if self._first is None:
            self._first = picture, time
            return
        if self._writer is None:
            begin, before = self._first
            self._open(begin, 1.0 / (time - before) if time > before else _USUAL)
        self._add(picture)

    def _open(self, picture: np.ndarray, rate: float) -> None:
        """Open the file and write the first picture."""
        low, high = _RATES
        if not low <= rate <= high:
            raise InputError(
                f'{self._target} would have {rate:g} images per second by its first two images,'
                f' allowed: [{low:g}, {high:g}] Hz; give a folder of pictures'
            )
        self._size = picture.shape
        code = cv2.VideoWriter.fourcc(*VIDEOS[self._target.suffix.lower()])
        size = (picture.shape[1], picture.shape[0])
        self._writer = cv2.VideoWriter(str(self._file), code, rate, size)
        if not self._writer.isOpened():
            raise LongreachError(
                f'{self._target} cannot be written: this OpenCV has no codec for it; use another'
                ' extension, or a folder of pictures'
            )
        self._add(picture)

    def _add(self, picture: np.ndarray) -> None:
        """Write a picture."""
        # OpenCV drops pictures of another size silently.
        if picture.shape != self._size:
            raise LongreachError(
                f'{self._target}: picture of shape {picture.shape} in a video of {self._size}'
            )
        assert self._writer is not None
        self._writer.write(picture)
        self._count += 1

    def close(self) -> None:
        """Close the file, and check that it is complete."""
        if self._first is None:
            return
        if self._writer is None:
            self._open(self._first[0], _USUAL)
        assert self._writer is not None
        self._writer.release()
        # Writing reports no errors.
        readable = _frames_in(self._file)
        if readable < self._count:
            raise LongreachError(
                f'{self._target} cannot be written: of {self._count} images {readable} can be'
                ' read again; is the disk full?'
            )


def _frames_in(file: Path) -> int:
    """Return the number of readable images in a video."""
    capture = cv2.VideoCapture(str(file), cv2.CAP_FFMPEG)
    count = 0
    while capture.grab():
        count += 1
    capture.release()
    return count
