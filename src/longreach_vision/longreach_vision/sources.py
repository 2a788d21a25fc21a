"""
Where images come from: cameras, streams, video files, pictures in folders.

A source gives frames one by one, in grey or in blue, green, red, all of one size. Frames of files
carry the time of the recording when that is known: of a video its own time stamps, of pictures
what stands in their names. Where a container rounds times to milliseconds (Matroska, WebM, FLV),
and they are those of its frame rate but for that, the rate gives them back: at 1 m/s half of a
millisecond is half of a millimetre. Rotations that a file asks its viewer for are not done: a
calibration is for the pixels of the sensor.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

import cv2
import numpy as np

from longreach_dynamics.errors import InputError, LongreachError
from longreach_vision.images import bgr_of, gray_of

__all__ = ['CaptureOptions', 'Frame', 'ImageSource', 'open_source', 'stored_picture']

# What OpenCV reads in all its builds.
_PICTURES = ('.bmp', '.jpeg', '.jpg', '.pbm', '.pgm', '.png', '.ppm', '.tif', '.tiff', '.webp')

# Stamps in messages end here [ns].
_LAST = 2**31 * 10**9
# A file name that ends with seconds and a fraction, or with nanoseconds since 1970.
_SECONDS = re.compile(r'(?:^|\D)(\d+)\.(\d{1,9})$')
_NANOSECONDS = re.compile(r'(?:^|\D)(\d{19})$')
# Of printf patterns, what numbers are made of.
_NUMBER = re.compile(r'%0?(\d*)d')
# Marks in a JPEG file, without the bytes that only look like one.
_MARK = re.compile(rb'\xff[^\x00\xff\xd0-\xd7]')
# What a PNG file begins with, bytes before its first part, and the type of its last one.
_PNG, _PNG_HEAD, _PNG_END = b'\x89PNG', 8, b'IEND'
# Columns or rows that no picture has [px].
_LARGEST = 100_000

# Until a stream must have begun, and until the next image must have come [s].
_OPENING, _READING = 10.0, 5.0
# Video4Linux: exposure by hand, and its unit [1/s].
_BY_HAND, _EXPOSURE_UNITS = 1, 1e4
# An image that a driver says to be older than this [s] carries no time of this clock.
_OLDEST = 1.0
# Frame counts of containers are estimates, and can be wrong by so much.
_COUNT_TOLERANCE = 2


# A whole millisecond, and what rounding to it may do [ns].
_MILLISECOND, _ROUNDED = 1_000_000, 600_000


class Frame(NamedTuple):
    """One image of a source."""

    number: int  # from 0 on; what is left out was lost
    stamp: int | None  # [ns]; None when nobody knows
    image: np.ndarray  # (h, w) or (h, w, 3), uint8
    name: str  # for messages


@dataclasses.dataclass(frozen=True)
class CaptureOptions:
    """
    What a camera is asked for; files do not care.

    Parameters
    ----------
    width, height : int
        Of its images [px]; 0 for the camera's choice.
    frame_rate : float
        [Hz]; 0 for the camera's choice.
    exposure : float
        [s]; 0 for automatic exposure.
    pixel_format : str
        Four letters such as GREY, YUYV, MJPG; empty for the camera's choice.
    """

    width: int = 0
    height: int = 0
    frame_rate: float = 0.0
    exposure: float = 0.0
    pixel_format: str = ''

    def __post_init__(self) -> None:
        """Raise InputError for what no camera can do."""
        for name in ('width', 'height', 'frame_rate', 'exposure'):
            value = getattr(self, name)
            if not 0.0 <= value < float('inf'):
                raise InputError(f'{name} = {value}, allowed: [0, inf)')
        if len(self.pixel_format) not in (0, 4):
            raise InputError(f'pixel_format = {self.pixel_format!r}, allowed: four letters')


class ImageSource:
    """
    A source of images; :func:`open_source` makes it. Iterate over it, once, and close it.

    Attributes
    ----------
    name : str
        For messages.
    live : bool
        Whether images come when they are taken, and stamps are of the clock.
    frame_rate : float
        [Hz]; 0 when nobody knows.
    count : int
        Number of frames, for files an estimate; 0 when nobody knows.
    files : tuple of Path
        That are read; of a camera none.
    """

    live = False
    files: tuple[Path, ...] = ()
    frame_rate = 0.0
    count = 0

    def __init__(self, name: str, color: bool, loop: bool, bits: int) -> None:
        self.name = name
        self._convert = bgr_of if color else gray_of
        self._bits = bits
        self._loop = loop

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give back what it holds."""

    def __iter__(self) -> Iterator[Frame]:
        """
        Yield the frames.

        Raises
        ------
        InputError
            For a picture that cannot be read or has another size than the first one.
        LongreachError
            When a camera gives no more images, or a file breaks off.
        """
        size: tuple[int, ...] = ()
        first = Frame(0, None, np.empty((0, 0), np.uint8), '')
        start, number = 0, 0
        stamp: int | None = None
        while True:
            before = stamp
            for frame in self._frames():
                try:
                    image = self._convert(frame.image, self._bits)
                except InputError as error:
                    raise InputError(f'{frame.name}: {error}') from error
                if not size:
                    size, first = image.shape, frame
                if image.shape != size:
                    raise InputError(
                        f'{frame.name} has {_size(image.shape)} px, allowed: {_size(size)} px, as'
                        f' {first.name}; one source gives images of one size'
                    )
                number, stamp = start + frame.number, frame.stamp
                if stamp is not None and before is not None and first.stamp is not None:
                    # Time goes on in a loop.
                    stamp += before + self._period(before, first.stamp, start) - first.stamp
                yield Frame(number, stamp, image, frame.name)
            if not self._loop or not size:
                return
            start = number + 1

    def _period(self, last: int, first: int, count: int) -> int:
        """Return the time from the last frame to the first of the next round [ns]."""
        if count > 1 and last > first:
            return round((last - first) / (count - 1))
        return round(1e9 / self.frame_rate) if self.frame_rate else 1

    def _frames(self) -> Iterator[Frame]:
        """Yield the frames of one round, as they are read."""
        raise NotImplementedError


def _size(shape: tuple[int, ...]) -> str:
    """Return a size as text, width first."""
    return f'{shape[1]} x {shape[0]}'


class _Pictures(ImageSource):
    """Pictures in files, with the numbers that they stand for."""

    def __init__(self, name: str, files: list[tuple[int, Path]], **options: Any) -> None:
        super().__init__(name, **options)
        self._files = files
        self._stamps = _stamps_in([path for _, path in files])
        self.count = len(files)
        self.files = tuple(path for _, path in files)

    def _frames(self) -> Iterator[Frame]:
        for (number, path), stamp in zip(self._files, self._stamps, strict=True):
            yield Frame(number, stamp, stored_picture(path), str(path))


def _stamps_in(paths: list[Path]) -> list[int] | list[None]:
    """Return the times [ns] that stand in the names of all files, or None for each."""
    stamps = [_stamp_in(path.stem) for path in paths]
    for stamp, path in zip(stamps, paths, strict=True):
        if stamp is not None and stamp >= _LAST:
            raise InputError(
                f'{path}: the time in the name is {stamp / 1e9:.6g} s, allowed: below'
                f' {_LAST / 1e9:.0f} s, as in messages'
            )
    known = [stamp for stamp in stamps if stamp is not None]
    if len(known) < len(paths) or len(paths) < 2:
        return [None] * len(paths)
    for before, after, path in zip(known, known[1:], paths[1:], strict=False):
        if after <= before:
            raise InputError(
                f'{path}: the time in the name is {after / 1e9:.9f} s, not after the'
                f' {before / 1e9:.9f} s of the picture before it; name pictures by rising times,'
                ' or number them'
            )
    return known


def _stamp_in(stem: str) -> int | None:
    """Return the time [ns] at the end of a name, if there is one."""
    if found := _SECONDS.search(stem):
        return int(found[1]) * 10**9 + int(found[2].ljust(9, '0'))
    found = _NANOSECONDS.search(stem)
    return int(found[1]) if found else None


def stored_picture(path: Path) -> np.ndarray:
    """
    Return a picture as it is stored, and not turned by what the file says.

    Returns
    -------
    ndarray, shape (h, w), (h, w, 3) or (h, w, 4)
        Grey, blue green red, or these with opacity, in the type of the file.

    Raises
    ------
    InputError
        When the file cannot be read, is cut off or damaged, or is no picture.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f'{path} cannot be read: {error.strerror}') from error
    if not data:
        raise InputError(f'{path} is empty, allowed: a picture; was the disk full?')
    # OpenCV fills what is missing of a JPEG with grey, and says nothing.
    jpeg, png = data.startswith(b'\xff\xd8'), data.startswith(_PNG)
    if (jpeg and not _is_whole_jpeg(data)) or (png and not _is_whole_png(data, path)):
        raise InputError(f'{path} is cut off after {len(data)} bytes; copy or record it again')
    flags = cv2.IMREAD_UNCHANGED | cv2.IMREAD_IGNORE_ORIENTATION
    image: np.ndarray | None = None
    with _silence(), contextlib.suppress(cv2.error):
        image = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
    if image is None:
        raise InputError(
            f'{path} cannot be read as a picture, allowed: {" ".join(_PICTURES)}, whole; is it'
            ' damaged?'
        )
    return image


def _is_whole_jpeg(data: bytes) -> bool:
    """Tell whether a JPEG goes on to its end: mark by mark, for thumbnails have ends of theirs."""
    at = 2
    while mark := _MARK.search(data, at):
        at = mark.end()
        kind = data[at - 1]
        if kind == 0xD9:
            return True
        if kind not in (0x01, 0xD8):
            at += int.from_bytes(data[at : at + 2], 'big')
    return False


def _is_whole_png(data: bytes, path: Path) -> bool:
    """Tell whether a PNG goes on to its end, part by part; InputError where one is damaged."""
    # libpng would write of these to stderr by itself.
    at = _PNG_HEAD
    size = [int.from_bytes(data[k : k + 4], 'big') for k in (16, 20)]
    if max(size) > _LARGEST:
        raise InputError(
            f'{path} is to have {size[0]} x {size[1]} px, allowed: at most {_LARGEST} each way; is'
            ' it damaged?'
        )
    while at + 12 <= len(data):
        end = at + 12 + int.from_bytes(data[at : at + 4], 'big')
        if end > len(data):
            return False
        if zlib.crc32(data[at + 4 : end - 4]) != int.from_bytes(data[end - 4 : end], 'big'):
            raise InputError(f'{path} is damaged at byte {at}, allowed: a picture; copy it again')
        if data[at + 4 : at + 8] == _PNG_END:
            return True
        at = end
    return False


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep OpenCV from writing to stderr what an error here says better."""
    level = cv2.utils.logging.getLogLevel()
    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)
    try:
        yield
    finally:
        cv2.utils.logging.setLogLevel(level)


class _ExactTimes:
    """
    Times of a video before its container rounded them to milliseconds.

    Up to the first one that is no multiple of the frames' period, or no whole millisecond: from
    there on, times are as the container has them.

    Parameters
    ----------
    rate : float
        By the container [Hz]; 0 when it does not know.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._start: float | None = None

    def of(self, told: int) -> int:
        """Return the time of the next frame [ns] by that of the container [ns]."""
        if not self._rate:
            return told
        period = 1e9 / self._rate
        if self._start is None:
            # A video that begins later has, as a rule, lost its first frames.
            nearest = round(told / period) * period
            self._start = nearest if abs(nearest - told) <= _ROUNDED else float(told)
        count = round((told - self._start) / period)
        exact = round(self._start + count * period)
        if told % _MILLISECOND or abs(exact - told) > _ROUNDED:
            self._rate = 0.0
            return told
        return exact


class _Video(ImageSource):
    """A video file."""

    def __init__(self, path: Path, **options: Any) -> None:
        super().__init__(str(path), **options)
        self.files = (path,)
        self._capture = _opened(str(path), cv2.CAP_FFMPEG)
        if self._capture is None:
            raise InputError(
                f'{path} cannot be read as a video or picture; is it whole, and is its codec one'
                ' of FFmpeg?'
            )
        self._capture.set(cv2.CAP_PROP_ORIENTATION_AUTO, 0)
        self.frame_rate = max(0.0, self._capture.get(cv2.CAP_PROP_FPS))
        self.count = max(0, int(self._capture.get(cv2.CAP_PROP_FRAME_COUNT)))
        self._begun = False

    def close(self) -> None:
        """Close the file."""
        self._capture.release()

    def _frames(self) -> Iterator[Frame]:
        if self._begun:
            # Seeking is not exact in all containers: from the beginning again.
            self._capture.release()
            again = _opened(self.name, cv2.CAP_FFMPEG)
            if again is None:
                raise LongreachError(f'{self.name} cannot be read any more; was it removed?')
            self._capture = again
            self._capture.set(cv2.CAP_PROP_ORIENTATION_AUTO, 0)
        self._begun = True
        stamp, index = -1, 0
        times = _ExactTimes(self.frame_rate)
        while True:
            good, image = self._capture.read()
            if not good:
                break
            # Some containers know no times, or round them down to the same.
            told = times.of(round(self._capture.get(cv2.CAP_PROP_POS_MSEC) * 1e6))
            counted = round(index * 1e9 / self.frame_rate) if self.frame_rate else stamp + 1
            stamp = told if told > stamp else max(counted, stamp + 1)
            yield Frame(index, stamp, image, f'{self.name}, frame {index}')
            index += 1
        if index < self.count - max(_COUNT_TOLERANCE, self.count // 100):
            raise LongreachError(
                f'{self.name} breaks off after {index} of {self.count} frames; what was read is'
                ' good, the rest is missing or damaged'
            )
        if index == 0:
            raise InputError(f'{self.name} has no frame that can be read')


class _Camera(ImageSource):
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
        self._capture = (
            _opened(device, cv2.CAP_V4L2)
            if self._local
            else _opened(device, cv2.CAP_FFMPEG, waiting)
        )
        if self._capture is None:
            remedy = (
                'is it in use, or are you not in the group video?'
                if self._local
                else 'are address, password and network right?'
            )
            raise LongreachError(f'{name} cannot be opened; {remedy}')
        try:
            self._ask_for(capture)
        except InputError:
            self._capture.release()
            raise
        self.frame_rate = max(0.0, self._capture.get(cv2.CAP_PROP_FPS))

    def _ask_for(self, options: CaptureOptions) -> None:
        """Set what was asked for, and compare with what came of it."""
        capture = self._capture
        # The format first: which sizes there are depends on it.
        if options.pixel_format:
            code = cv2.VideoWriter.fourcc(*options.pixel_format)
            capture.set(cv2.CAP_PROP_FOURCC, code)
            self._compare('pixel_format', options.pixel_format, _letters(capture), '')
        for name, wanted, key in (
            ('width', options.width, cv2.CAP_PROP_FRAME_WIDTH),
            ('height', options.height, cv2.CAP_PROP_FRAME_HEIGHT),
        ):
            if wanted:
                capture.set(key, wanted)
                got = int(capture.get(key))
                self._compare(name, wanted, got, ' px')
        if options.frame_rate:
            capture.set(cv2.CAP_PROP_FPS, options.frame_rate)
            got_rate = capture.get(cv2.CAP_PROP_FPS)
            if abs(got_rate - options.frame_rate) > 0.02 * options.frame_rate:
                self._compare('frame_rate', options.frame_rate, got_rate, ' Hz')
        if options.exposure:
            manual = capture.set(cv2.CAP_PROP_AUTO_EXPOSURE, _BY_HAND)
            units = max(1, round(options.exposure * _EXPOSURE_UNITS))
            if not (manual and capture.set(cv2.CAP_PROP_EXPOSURE, units)):
                raise InputError(
                    f'exposure = {options.exposure:g} s cannot be set on {self.name}, allowed: 0;'
                    ' set it with a tool of the camera'
                )

    def _compare(self, name: str, wanted: object, got: object, unit: str) -> None:
        """Raise InputError when the camera chose another value."""
        if got != wanted:
            raise InputError(
                f'{name} = {wanted}{unit}, but {self.name} gives {got}{unit}; its modes are listed'
                ' by v4l2-ctl --list-formats-ext'
            )

    def close(self) -> None:
        """Let the camera go."""
        self._capture.release()

    def _frames(self) -> Iterator[Frame]:
        index = 0
        while True:
            grabbed = self._capture.grab()
            # Before the image is unpacked, which takes its time.
            stamp = self._clock() - self._age()
            good, image = self._capture.retrieve() if grabbed else (False, None)
            if not good or image is None:
                raise LongreachError(
                    f'{self.name} gives no more images, after {index}; was it unplugged, or the'
                    ' connection lost?'
                )
            yield Frame(index, stamp, image, f'{self.name}, image {index}')
            index += 1

    def _age(self) -> int:
        """Return how long ago the driver received the latest image [ns]; 0 if it does not say."""
        if not self._local:
            return 0
        age = time.monotonic() - self._capture.get(cv2.CAP_PROP_POS_MSEC) * 1e-3
        return round(age * 1e9) if 0.0 <= age < _OLDEST else 0


def _letters(capture: Any) -> str:
    """Return the pixel format of a camera."""
    return int(capture.get(cv2.CAP_PROP_FOURCC)).to_bytes(4, 'little').decode('latin-1')


def _opened(device: int | str, backend: int, options: list[int] | None = None) -> Any:
    """Return an open capture, or None."""
    # Read when FFmpeg is first used: it writes about each damaged packet otherwise.
    os.environ.setdefault('OPENCV_FFMPEG_LOGLEVEL', '-8')
    with _silence():
        capture = cv2.VideoCapture(device, backend, options or [])
    return capture if capture.isOpened() else None


def open_source(
    spec: str | int,
    *,
    color: bool = False,
    loop: bool = False,
    bits: int = 16,
    capture: CaptureOptions | None = None,
    clock: Callable[[], int] = time.time_ns,
) -> ImageSource:
    """
    Open a source of images.

    Parameters
    ----------
    spec : str or int
        Number of a USB camera or /dev/videoN; the address of a stream (rtsp://...); a video file;
        a picture; a folder of pictures, in natural order; a pattern as of the shell (``*.png``) or
        of printf (``left_%04d.png``: a number left out is a frame that was lost). When the names
        of all pictures end with a time, in seconds with a fraction or in nanoseconds since 1970,
        that is their stamp.
    color : bool
        Blue, green, red instead of grey.
    loop : bool
        Begin again at the end of a file; numbers and stamps go on.
    bits : int
        That count in pictures of 16 bits, see :mod:`longreach_vision.images`.
    capture : CaptureOptions, optional
        For cameras.
    clock : callable
        Gives the present time [ns], for the stamps of cameras: that at which the driver had an
        image complete, where the driver says that, else that at which it was fetched.

    Returns
    -------
    ImageSource

    Raises
    ------
    InputError
        For a source that does not exist, is empty, or cannot be what is asked for.
    LongreachError
        When a camera does not open.
    """
    text = str(spec).strip()
    options: dict[str, Any] = {'color': color, 'loop': loop, 'bits': bits}
    device = int(text) if text.isdecimal() else text
    if isinstance(device, int) or device.startswith('/dev/video'):
        _check_device(device)
        name = f'camera {device}'
        return _Camera(device, name, capture or CaptureOptions(), clock, **options)
    if '://' in device and not device.startswith('file://'):
        # What is before an @ is a password.
        name = re.sub('//[^/@]*@', '//', device)
        return _Camera(device, name, capture or CaptureOptions(), clock, **options)
    if not device:
        raise InputError("source = '', allowed: a camera, address, file, folder or pattern")
    try:
        return _stored(device, options)
    except InputError:
        raise
    except (OSError, RuntimeError, ValueError) as error:
        # No such user, a name that is too long, a pattern that is none, a folder that is closed.
        reason = getattr(error, 'strerror', None) or error
        raise InputError(
            f'{device} cannot be read: {reason}; allowed: a camera, address, file, folder or'
            ' pattern'
        ) from error


def _stored(device: str, options: dict[str, Any]) -> ImageSource:
    """Return a source of files."""
    path = Path(device.removeprefix('file://')).expanduser()
    if not path.exists():
        return _Pictures(device, _matching(path), **options)
    if path.is_dir():
        files = _natural(p for p in path.iterdir() if _is_picture(p))
        if not files:
            raise InputError(
                f'folder {path} has no pictures, allowed: files {" ".join(_PICTURES)} in the'
                ' folder itself'
            )
        return _Pictures(device, files, **options)
    if not path.is_file():
        # Opening a pipe that nobody writes to would wait for ever.
        raise InputError(f'{path} is a pipe or device, allowed: a camera, address, file or folder')
    if _is_picture(path):
        return _Pictures(device, [(0, path)], **options)
    return _Video(path, **options)


def _check_device(device: int | str) -> None:
    """Raise InputError for a camera that is not there, with those that are."""
    path = Path(f'/dev/video{device}' if isinstance(device, int) else device)
    if not path.exists():
        there = ' '.join(str(p) for _, p in _natural(Path('/dev').glob('video*')))
        raise InputError(f'camera {device}: there is no {path}, found: {there or "no camera"}')


def _is_picture(path: Path) -> bool:
    """Tell whether a file is called like a picture."""
    return path.suffix.lower() in _PICTURES and path.is_file() and not path.name.startswith('.')


def _natural(paths: Iterator[Path]) -> list[tuple[int, Path]]:
    """Return paths in the order that people number them in, with their places."""

    def key(path: Path) -> list[tuple[int, str]]:
        parts = re.split(r'(\d+)', path.name)
        return [(int(part), '') if part.isdecimal() else (-1, part) for part in parts]

    return list(enumerate(sorted(paths, key=lambda path: (key(path), path.name))))


def _matching(path: Path) -> list[tuple[int, Path]]:
    """Return the pictures that a pattern means, with their numbers."""
    pattern = path.name
    wild, numbered = any(sign in pattern for sign in '*?['), _NUMBER.search(pattern)
    if not wild and not numbered:
        raise InputError(
            f'{path} does not exist, allowed: a camera, address, file, folder or pattern'
        )
    if not path.parent.is_dir():
        raise InputError(f'folder {path.parent} does not exist')
    if wild:
        files = _natural(p for p in path.parent.glob(pattern) if _is_picture(p))
    else:
        files = _numbered(path, numbered)
    if not files:
        raise InputError(f'no picture in {path.parent} is called {pattern}')
    return files


def _numbered(path: Path, number: Any) -> list[tuple[int, Path]]:
    """Return the pictures of a printf pattern, counted from the first one."""
    head, tail = path.name[: number.start()], path.name[number.end() :]
    digits = rf'\d{{{number[1]},}}' if number[1] else r'\d+'
    name = re.compile(f'{re.escape(head)}({digits}){re.escape(tail)}')
    found = [(int(m[1]), p) for p in path.parent.iterdir() if (m := name.fullmatch(p.name))]
    found = sorted((n, p) for n, p in found if _is_picture(p))
    return [(n - found[0][0], p) for n, p in found]
