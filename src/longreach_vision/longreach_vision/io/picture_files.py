"""Folders of pictures and videos, all of whose pictures can be read again."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from longreach_dynamics.errors import LongreachError


class Folder:
    """A new folder of pictures, which are named by number and time; ``target`` is for errors."""

    def __init__(self, folder: Path, target: Path, suffix: str) -> None:
        self._folder, self._target, self._suffix = folder, target, suffix
        self._count = 0
        folder.mkdir()

    def write(self, picture: np.ndarray, time: float) -> None:
        """Write the next picture, with its time [s]."""
        name = f'{self._count:06d}_{time:.9f}{self._suffix}'
        if not cv2.imwrite(str(self._folder / name), picture):
            raise LongreachError(f'{self._target / name} cannot be written; is the disk full?')
        self._count += 1


class Video:
    """A new video of pictures of one shape with a rate [Hz]; ``target`` is for errors."""

    def __init__(
        self, file: Path, target: Path, code: str, rate: float, shape: tuple[int, ...]
    ) -> None:
        self._file, self._target, self._shape = file, target, shape
        self._count, is_colour = 0, len(shape) == 3
        fourcc, size = cv2.VideoWriter.fourcc(*code), (shape[1], shape[0])
        self._writer = cv2.VideoWriter(str(file), fourcc, rate, size, is_colour)
        if not self._writer.isOpened():
            raise LongreachError(
                f'{target} cannot be written: this OpenCV has no codec {code}; use another'
                ' extension, or a folder of pictures'
            )

    def write(self, picture: np.ndarray) -> None:
        """Write the next picture."""
        # OpenCV drops pictures of another size silently.
        if picture.shape != self._shape:
            raise LongreachError(
                f'{self._target}: picture of shape {picture.shape} in a video of {self._shape}'
            )
        self._writer.write(picture)
        self._count += 1

    def close(self) -> None:
        """Close the file, and check that it is complete: writing reports no errors."""
        self._writer.release()
        capture, readable = cv2.VideoCapture(str(self._file), cv2.CAP_FFMPEG), 0
        while capture.grab():
            readable += 1
        capture.release()
        if readable < self._count:
            raise LongreachError(
                f'{self._target} cannot be written: of {self._count} images {readable} can be'
                ' read again; is the disk full?'
            )
