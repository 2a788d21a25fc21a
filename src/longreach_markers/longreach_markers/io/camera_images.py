"""Images of cameras and streams."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from typing import Any

import cv2

from longreach_dynamics.errors import InputError, LongreachError
from longreach_markers.io.source_base import Frame, ImageSource, codec_of, opened_capture

# Timeouts for the start of a stream, and for the next image [s].
_OPENING, _READING = 10.0, 5.0
_MODES = '; its modes are listed by v4l2-ctl --list-formats-ext'
# Larger ages of an image reported by a driver [s] come from another clock.
_OLDEST = 1.0


@dataclasses.dataclass(frozen=True)
class CaptureOptions:
    """
    Requested mode of a camera, which it must have; ignored for files.

    Parameters
    ----------
    width, height : int
        Size of the images [px]; 0 for the camera's default.
    frame_rate : float
        [Hz]; 0 for the camera's default.
    pixel_format : str
        Four letters such as GREY, YUYV, MJPG; empty for the camera's default.
    """

    width: int = 0
    height: int = 0
    frame_rate: float = 0.0
    pixel_format: str = ''

    def __post_init__(self) -> None:
        """Raise InputError for invalid values."""
        for name in ('width', 'height', 'frame_rate'):
            value = getattr(self, name)
            if not 0.0 <= value < float('inf'):
                raise InputError(f'{name} = {value}, allowed: [0, inf)')
        if len(self.pixel_format) not in (0, 4):
            raise InputError(f'pixel_format = {self.pixel_format!r}, allowed: four letters')


class CameraSource(ImageSource):
    """A camera or a stream."""

    live = True

    def __init__(
        self,
        device: int | str,
        name: str,
        capture: CaptureOptions,
        clock: Callable[[], int],
        **options: Any,
    ) -> None:
        super().__init__(name, **options)
        self._clock = clock
        self._local = isinstance(device, int) or device.startswith('/dev/')
        waiting = [cv2.CAP_PROP_OPEN_TIMEOUT_MSEC, round(_OPENING * 1e3)]
        waiting += [cv2.CAP_PROP_READ_TIMEOUT_MSEC, round(_READING * 1e3)]
        backend, wishes = (cv2.CAP_V4L2, []) if self._local else (cv2.CAP_FFMPEG, waiting)
        self._capture = opened_capture(device, backend, wishes)
        if self._capture is None:
            remedy = (
                'check that no other program uses it, and that you are in the group video'
                if self._local
                else 'check address, password and network'
            )
            raise LongreachError(f'{name} cannot be opened; {remedy}')
        try:
            self._ask_for(capture)
        except InputError:
            self._capture.release()
            raise
        self.frame_rate = max(0.0, self._capture.get(cv2.CAP_PROP_FPS))

    def _ask_for(self, options: CaptureOptions) -> None:
        """Request a mode; InputError if the camera has another one."""
        if options.pixel_format:
            # First, because the available sizes depend on it.
            self._capture.set(cv2.CAP_PROP_FOURCC, cv2.VideoWriter.fourcc(*options.pixel_format))
            got = codec_of(self._capture)
            if got != options.pixel_format:
                raise InputError(
                    f'pixel_format = {options.pixel_format}, but {self.name} has {got}{_MODES}'
                )
        for name, key, wanted, tolerance, unit in (
            ('width', cv2.CAP_PROP_FRAME_WIDTH, options.width, 0.0, 'px'),
            ('height', cv2.CAP_PROP_FRAME_HEIGHT, options.height, 0.0, 'px'),
            ('frame_rate', cv2.CAP_PROP_FPS, options.frame_rate, 0.02, 'Hz'),
        ):
            if not wanted:
                continue
            self._capture.set(key, wanted)
            has = self._capture.get(key)
            if not abs(has - wanted) <= tolerance * wanted:
                raise InputError(
                    f'{name} = {wanted:g} {unit}, but {self.name} has {has:g} {unit}{_MODES}'
                )

    def _frames(self) -> Iterator[Frame]:
        index = 0
        while True:
            grabbed = self._capture.grab()
            # Before decoding the image, which takes time.
            stamp = self._clock() - self._age()
            good, image = self._capture.retrieve() if grabbed else (False, None)
            if not good or image is None:
                raise LongreachError(
                    f'{self.name} gives no more images, after {index}; check that it is connected'
                )
            yield Frame(index, stamp, image, f'{self.name}, image {index}')
            index += 1

    def _age(self) -> int:
        """Return the time since the driver received the latest image [ns]; 0 if unknown."""
        if not self._local:
            return 0
        age = time.monotonic() - self._capture.get(cv2.CAP_PROP_POS_MSEC) * 1e-3
        return round(age * 1e9) if 0.0 <= age < _OLDEST else 0
