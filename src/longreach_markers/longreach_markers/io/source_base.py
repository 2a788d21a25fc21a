"""What all sources of images have in common."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Self

import cv2
import numpy as np

from longreach_dynamics.errors import InputError
from longreach_markers.io.images import BitDepth, bgr_of, gray_of, silence


class Numbers(NamedTuple):
    """Numbers in the names of pictures; all are a multiple of the step after the first one."""

    first: int
    last: int
    step: int  # 0: one picture


class Frame(NamedTuple):
    """One image from a source."""

    number: int  # from 0; gaps are lost frames
    stamp: int | None  # [ns]; None if unknown
    image: np.ndarray  # (h, w) or (h, w, 3), uint8
    name: str  # for error messages


class ImageSource:
    """A source of images, made by :func:`open_source`; to be iterated once, then closed."""

    name: str
    """Name for error messages."""
    live = False
    """Whether images arrive in real time, with stamps of the clock."""
    frame_rate = 0.0
    """[Hz]; 0 if unknown."""
    count = 0
    """Number of frames, for files an estimate; 0 if unknown."""
    files: tuple[Path, ...] = ()
    """Files that are read; empty for a camera."""
    lossy = ''
    """Warning about a codec that compresses the differences between frames; empty for none."""
    refused: list[str]
    """Warnings about controls that a camera did not take, with what it has instead."""
    damaged: dict[str, str]
    """Pictures that could not be read so far and were left out, with the reasons."""
    numbers: Numbers | None = None
    """Numbers in the names of pictures without times."""
    unnumbered = ''
    """Note that numbers in the names of pictures are not used; empty if they are."""

    def __init__(self, name: str, color: bool = False) -> None:
        self.name = name
        self._convert = bgr_of if color else gray_of
        self._depth = BitDepth()
        self.refused, self.damaged = [], {}
        self._reader: ThreadPoolExecutor | None = None
        self._capture: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the resources."""
        if self._reader is not None:
            self._reader.shutdown()
        if self._capture is not None:
            self._capture.release()

    def __iter__(self) -> Iterator[Frame]:
        """Yield the frames; those of files are read in a thread, one ahead."""
        frames = self._converted()
        if self.live:
            yield from frames
            return
        self._reader = ThreadPoolExecutor(1, 'images')
        pending = self._reader.submit(next, frames, None)
        while (frame := pending.result()) is not None:
            pending = self._reader.submit(next, frames, None)
            yield frame

    def _converted(self) -> Iterator[Frame]:
        first: Frame | None = None
        for frame in self._frames():
            try:
                image = self._convert(frame.image, self._depth)
            except InputError as error:
                raise InputError(f'{frame.name}: {error}') from error
            first = first or frame._replace(image=image)
            if image.shape != first.image.shape:
                (rows, columns), (height, width) = image.shape[:2], first.image.shape[:2]
                raise InputError(
                    f'{frame.name} has {columns} x {rows} px, allowed: {width} x {height} px,'
                    f' as {first.name}; one source gives images of one size'
                )
            yield frame._replace(image=image)

    @property
    def notes(self) -> list[str]:
        """What a user should know about the images read so far."""
        found = [f'{self.name}: {self._depth.note}'] if self._depth.note else []
        if self.damaged:
            found.append(
                f'{len(self.damaged)} of {self.count} pictures of {self.name} cannot be read and'
                f' are left out; the first: {next(iter(self.damaged.values()))}'
            )
        return [*found, self.unnumbered] if self.unnumbered else found

    def _frames(self) -> Iterator[Frame]:
        """Yield the frames as they are read."""
        raise NotImplementedError


def codec_of(capture: Any) -> str:
    """Return the pixel format of a camera, or the codec of a video."""
    return int(capture.get(cv2.CAP_PROP_FOURCC)).to_bytes(4, 'little').decode('latin-1')


def opened_capture(device: int | str, backend: int, options: list[int] | None = None) -> Any:
    """Return an open capture, or None."""
    # Read at FFmpeg's first use; otherwise it writes about each damaged packet.
    os.environ.setdefault('OPENCV_FFMPEG_LOGLEVEL', '-8')
    with silence():
        capture = cv2.VideoCapture(device, backend, options or [])
    return capture if capture.isOpened() else None
