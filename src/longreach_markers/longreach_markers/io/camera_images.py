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
# Video4Linux: manual exposure, and its unit [s].
_BY_HAND, _EXPOSURE_UNIT = 1, 1e-4
_MODES = '; its modes are listed by v4l2-ctl --list-formats-ext'
# Larger ages of an image reported by a driver [s] come from another clock.
_OLDEST = 1.0


@dataclasses.dataclass(frozen=True)
class CaptureOptions:
    """
    Requested settings of a camera; ignored for files.

    Parameters
    ----------
    width, height : int
        Size of the images [px]; 0 for the camera's default.
    frame_rate : float
        [Hz]; 0 for the camera's default.
    exposure : float
        [s]; 0 for automatic exposure.
    pixel_format : str
        Four letters such as GREY, YUYV, MJPG; empty for the camera's default.
    focus : float
        Position of the lens in units of the driver, without autofocus; -1 for no change.
    focus_lock : bool
        Switch autofocus off, and leave the lens where it is.
    """

    width: int = 0
    height: int = 0
    frame_rate: float = 0.0
    exposure: float = 0.0
    pixel_format: str = ''
    focus: float = -1.0
    focus_lock: bool = False

    def __post_init__(self) -> None:
        for name in ('width', 'height', 'frame_rate', 'exposure'):
            value = getattr(self, name)
            if not 0.0 <= value < float('inf'):
                raise InputError(f'{name} = {value}, allowed: [0, inf)')
        if not (self.focus == -1.0 or 0.0 <= self.focus < float('inf')):
            raise InputError(f'focus = {self.focus}, allowed: [0, inf), or -1 for no change')
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
        color: bool,
    ) -> None:
        super().__init__(name, color)
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
        if options.pixel_format:
            # First, because the available sizes depend on it.
            self._capture.set(cv2.CAP_PROP_FOURCC, cv2.VideoWriter.fourcc(*options.pixel_format))
            got = codec_of(self._capture)
            if got != options.pixel_format:
                raise InputError(
                    f'pixel_format = {options.pixel_format}, but {self.name} has {got}{_MODES}'
                )
        for name, key, wanted, tolerance, symbol in (
            ('width', cv2.CAP_PROP_FRAME_WIDTH, options.width, 0.0, ' px'),
            ('height', cv2.CAP_PROP_FRAME_HEIGHT, options.height, 0.0, ' px'),
            ('frame_rate', cv2.CAP_PROP_FPS, options.frame_rate, 0.02, ' Hz'),
        ):
            if wanted and (refusal := self._set(name, key, wanted, 1.0, symbol, tolerance)):
                raise InputError(f'{refusal}{_MODES}')
        controls: list[tuple[Any, ...]] = []
        if options.exposure:
            units = max(1, round(options.exposure / _EXPOSURE_UNIT))
            controls += [('exposure by hand', cv2.CAP_PROP_AUTO_EXPOSURE, _BY_HAND)]
            controls += [('exposure', cv2.CAP_PROP_EXPOSURE, units, _EXPOSURE_UNIT, ' s')]
        if options.focus_lock or options.focus >= 0.0:
            controls += [('autofocus', cv2.CAP_PROP_AUTOFOCUS, 0)]
        if options.focus >= 0.0:
            controls += [('focus', cv2.CAP_PROP_FOCUS, options.focus)]
        for control in controls:
            if refusal := self._set(*control):
                self.refused.append(f'{refusal}; its controls are listed by v4l2-ctl --list-ctrls')

    def _set(
        self, name: str, key: int, wanted: float, unit: float = 1.0, symbol: str = '',
        tolerance: float = 0.0,
    ) -> str:  # fmt: skip
        """Set a property and read it back; return what the camera has if it is another value."""
        taken = self._capture.set(key, wanted)
        got = self._capture.get(key)
        if abs(got - wanted) <= tolerance * wanted:
            return ''
        # OpenCV reads -1 of a control that a camera does not have.
        has = 'does not have this control' if got < 0.0 else f'has {got * unit:g}{symbol}'
        if not taken and got >= 0.0:
            has += ' and refuses it'
        return f'{name} = {wanted * unit:g}{symbol}, but {self.name} {has}'

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
