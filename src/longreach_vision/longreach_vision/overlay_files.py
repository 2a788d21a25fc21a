"""Overlays of tracked images as files: a video, or a folder of pictures."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import cv2
import numpy as np

from longreach_dynamics.errors import InputError, LongreachError
from longreach_tools.output import writing, writing_directory
from longreach_vision.detection import Observation
from longreach_vision.overlay import draw, magnify, side_by_side
from longreach_vision.rig import Rig
from longreach_vision.streams import Followed

__all__ = ['VIDEOS', 'writing_overlay']

VIDEOS = {'.mp4': 'mp4v', '.avi': 'MJPG', '.mkv': 'mp4v'}
"""Endings of videos, with their codecs; anything else is a folder of pictures."""

# Width of one camera's part of an overlay, at most [px].
_WIDTH = 1226


@contextlib.contextmanager
def writing_overlay(target: Path, rig: Rig) -> Iterator[Callable[[Followed], None]]:
    """
    Give a function that adds a pair of images to a video or folder.

    It appears under its name when the block ends well.

    Parameters
    ----------
    target : path
        A video with an ending of :data:`VIDEOS`, or a new folder.
    rig : Rig

    Raises
    ------
    InputError
        For another ending, and a folder that is not empty.
    LongreachError
        When it cannot be written.
    """
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
    """Return the pictures of all cameras with what was found in them."""
    pictures = []
    for name, mounted in rig.cameras.items():
        camera = mounted.camera
        scale = min(1.0, _WIDTH / camera.width)
        image = one.images.images.get(name)
        if image is None:
            dark = np.zeros((camera.height, camera.width), dtype=np.uint8)
            pictures.append(draw(dark, {}, scale, caption=f'{name}: no image'))
            continue
        caption = f'{name} {one.images.times[name]:.3f} s'
        seen = one.frame.observations.get(name, {})
        picture = draw(image, seen, scale, one.windows.get(name), caption)
        pictures.append(np.vstack([picture, _strip(image, seen, picture.shape[1])]))
    return side_by_side(pictures)


def _strip(image: np.ndarray, seen: Mapping[str, Observation], width: int) -> np.ndarray:
    """Return magnified markers in a strip of a width [px]."""
    if not seen:
        return np.zeros((0, width, 3), dtype=np.uint8)
    tiles = magnify(image, seen, min(_WIDTH // 5, width // len(seen)))
    strip = np.zeros((tiles.shape[0], width, 3), dtype=np.uint8)
    strip[:, : tiles.shape[1]] = tiles
    return strip


class _Video:
    """A video whose rate is that of its first two pictures."""

    def __init__(self, file: Path, target: Path) -> None:
        self._file, self._target = file, target
        self._first: tuple[np.ndarray, float] | None = None
        self._writer: cv2.VideoWriter | None = None

    def write(self, picture: np.ndarray, time: float) -> None:
        """Write the next picture, of a time [s]."""
        if self._writer is None and self._first is None:
            self._first = picture, time
            return
        if self._writer is None:
            assert self._first is not None
            begin, before = self._first
            self._open(begin, time - before)
        assert self._writer is not None
        self._writer.write(picture)

    def _open(self, picture: np.ndarray, interval: float) -> None:
        """Open the file, and write the first picture."""
        code = cv2.VideoWriter.fourcc(*VIDEOS[self._target.suffix.lower()])
        rate = 1.0 / interval if interval > 0.0 else 15.0
        size = (picture.shape[1], picture.shape[0])
        self._writer = cv2.VideoWriter(str(self._file), code, rate, size)
        if not self._writer.isOpened():
            raise LongreachError(
                f'{self._target} cannot be written: OpenCV has no codec for it here; name another'
                ' ending, or a folder of pictures'
            )
        self._writer.write(picture)

    def close(self) -> None:
        """End the file."""
        if self._writer is None and self._first is not None:
            self._open(self._first[0], 0.0)
        if self._writer is not None:
            self._writer.release()
