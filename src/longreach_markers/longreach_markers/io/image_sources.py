"""
Sources of images: cameras, streams, video files, pictures in folders.

A source yields frames one by one, in grey or BGR, all of one size.
"""

from __future__ import annotations

import dataclasses
import heapq
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np

from longreach_dynamics.errors import InputError, LongreachError, check_within
from longreach_markers.io.stored_images import (
    Frame,
    ImageSource,
    codec_of,
    natural_order,
    opened_capture,
    stored_source,
)

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
            check_within(name, value, '[0, inf)')
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


def open_source(
    spec: str | int,
    *,
    color: bool = False,
    capture: CaptureOptions | None = None,
    clock: Callable[[], int] = time.time_ns,
) -> ImageSource:
    """
    Open a source of images.

    Parameters
    ----------
    spec : str or int
        Camera (0, /dev/video0), address of a stream, video, picture, folder, or pattern of
        pictures (``*``, ``?``).
    color : bool
        Frames in BGR instead of grey.
    capture : CaptureOptions, optional
        Settings of a camera.
    clock : callable
        Time of the frames of a camera [ns].

    Raises
    ------
    InputError
        For what does not exist or cannot be read, and settings that a camera does not have.
    LongreachError
        For a camera or stream that cannot be opened.
    """
    text = str(spec).strip()
    if is_live(text):
        device = int(text) if text.isdecimal() else text
        # The part of an address before @ may contain a password.
        name = re.sub('//[^/@]*@', '//', text)
        if '://' not in text:
            _check_device(device)
            name = f'camera {device}'
        return CameraSource(device, name, capture or CaptureOptions(), clock, color)
    if not text:
        raise InputError("source = '', allowed: a camera, address, file, folder or pattern")
    try:
        return stored_source(text, color)
    except InputError:
        raise
    except (OSError, RuntimeError, ValueError) as error:
        # Unknown user, name too long, invalid pattern, folder without permission.
        reason = getattr(error, 'strerror', None) or error
        raise InputError(
            f'{text} cannot be read: {reason}; allowed: a camera, address, file, folder or pattern'
        ) from error


def is_live(spec: str) -> bool:
    """Return whether a source is a camera or a stream, and no file."""
    is_address = '://' in spec and not spec.startswith('file://')
    return spec.isdecimal() or spec.startswith('/dev/video') or is_address


def _check_device(device: int | str) -> None:
    path = Path(f'/dev/video{device}' if isinstance(device, int) else device)
    if not path.exists():
        there = ' '.join(map(str, sorted(Path('/dev').glob('video*'), key=natural_order)))
        raise InputError(f'camera {device}: there is no {path}, found: {there or "no camera"}')


_SECOND = 1_000_000_000  # [ns]


class Picture(NamedTuple):
    """An image of a camera."""

    camera: str
    stamp: int  # [ns]
    image: np.ndarray  # (h, w), uint8
    name: str  # for error messages


def pictures_of(
    sources: Mapping[str, ImageSource], rate: float | None = None, *, from_zero: bool = True
) -> Iterator[Picture]:
    """
    Yield the images of files in the order of time.

    Parameters
    ----------
    sources : mapping of ImageSource
        By camera.
    rate : float, optional
        Images per second [Hz], instead of the times of the files.
    from_zero : bool
        The first of pictures with numbers is at 0 s; otherwise at its number over the rate.

    Raises
    ------
    InputError
        For files without times if there is no rate.
    """
    places = _places_of(sources)
    earliest = min(first for first, _, _ in places) if from_zero else 0
    streams = [
        _stream(camera, source, rate, first - earliest, step, unit)
        for (camera, source), (first, step, unit) in zip(sources.items(), places, strict=True)
    ]
    for _, _, picture in heapq.merge(
        *(((p.stamp, k, p) for p in stream) for k, stream in enumerate(streams)),
        key=lambda entry: entry[:2],
    ):
        yield picture


def _places_of(sources: Mapping[str, ImageSource]) -> list[tuple[int, int, int]]:
    """Return the place of each source's first picture, its step, and what both are divided by."""
    # In images of the camera whose numbers have the smallest step: pictures of equal numbers have
    # one time, unless the numbers hardly overlap, or each source has one picture.
    found = [source.numbers for source in sources.values()]
    known = [numbers for numbers in found if numbers is not None]
    consecutive = [(0, 1, 1)] * len(found)
    if not known or len(known) < len(found):
        return consecutive
    begin, end = max(one.first for one in known), min(one.last for one in known)
    if 2 * (end - begin) < min(one.last - one.first for one in known):
        text = 'numbers in the names of {} and other cameras hardly overlap: first ones are paired'
        for source in sources.values():
            source.unnumbered = text.format(source.name)
        return consecutive
    steps = [one.step for one in known if one.step]
    return [(one.first, one.step, min(steps)) for one in known] if steps else consecutive


def _stream(
    camera: str, source: ImageSource, rate: float | None, first: int, step: int, unit: int
) -> Iterator[Picture]:
    """Yield the images of one source, the n-th one at the place (first + step n) / unit."""
    counted = rate or source.frame_rate
    for frame in source:
        if rate is None and frame.stamp is not None:
            stamp = frame.stamp
        elif counted:
            stamp = round((first + step * frame.number) * _SECOND / (counted * unit))
        else:
            raise InputError(
                f'{source.name} has no times of its images; give --rate (rate=; frame_rate of'
                ' the video node), or names that'
                ' end with a time such as left_12.345.png'
            )
        yield Picture(camera, stamp, frame.image, frame.name)
