"""
Sources of images: cameras, streams, video files, pictures in folders.

A source yields frames one by one, in grey or BGR, all of one size. Frames of files have the time
of the recording if it is known: for a video its own time stamps, for pictures the times in their
names. If a container rounds times to milliseconds (Matroska, WebM, FLV), and they agree with its
frame rate within rounding, the exact times are restored from the rate: at 1 m/s half a millisecond
is half a millimetre. Rotation metadata are ignored, because a calibration refers to the pixels of
the sensor.
"""

from __future__ import annotations

import dataclasses
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Self

import cv2
import numpy as np

from longreach_dynamics.errors import InputError, LongreachError
from longreach_markers.io.compressed_images import PICTURES, decoded_picture, silence
from longreach_markers.io.images import BitDepth, bgr_of, gray_of

# Upper bound of stamps in messages [ns].
_LAST = 2**31 * 10**9
# A file name that ends with seconds and a fraction, or with nanoseconds since 1970.
_SECONDS = re.compile(r'(?:^|\D)(\d+)\.(\d{1,9})$')
_NANOSECONDS = re.compile(r'(?:^|\D)(\d{19})$')
# The last number in a name, not longer than a counter.
_LAST_NUMBER = re.compile(r'(.*?)(\d{1,12})(\D*)')
# Timeouts for the start of a stream, and for the next image [s].
_OPENING, _READING = 10.0, 5.0
# Video4Linux: manual exposure, and its unit [s].
_BY_HAND, _EXPOSURE_UNIT = 1, 1e-4
_MODES = '; its modes are listed by v4l2-ctl --list-formats-ext'
# Larger ages of an image reported by a driver [s] come from another clock.
_OLDEST = 1.0
# Codes of codecs that compress the difference of a frame from others. The change of a marker in
# the image is then left out, or delayed, where it seems small to the encoder.
_BETWEEN_FRAMES = {
    'h264', 'x264', 'avc1', 'avc3', 'hevc', 'hev1', 'hvc1', 'h265', 'x265', 'mp4v',
    'fmp4', 'xvid', 'divx', 'dx50', 'mp42', 'mp43', 'mpg1', 'mpg2', 'mpeg', 'pim1',
    'pim2', 'vp80', 'vp90', 'vp08', 'vp09', 'av01', 'theo', 'wmv1', 'wmv2', 'wmv3',
    'wvc1', 'flv1', 'h261', 'h263', 's263', 'svq3', 'rv40', 'drac',
}  # fmt: skip
# Frame counts of containers are estimates; tolerance of the count.
_COUNT_TOLERANCE = 2
# Millisecond, and largest rounding error of a time rounded to it [ns].
_MILLISECOND, _ROUNDED = 1_000_000, 600_000


class Numbers(NamedTuple):
    """Numbers in the names of pictures: the first one, the last one, and the usual step."""

    first: int
    last: int
    step: int


class Frame(NamedTuple):
    """One image from a source."""

    number: int  # from 0; gaps are lost frames
    stamp: int | None  # [ns]; None if unknown
    image: np.ndarray  # (h, w) or (h, w, 3), uint8
    name: str  # for error messages


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
        """Raise InputError for invalid values."""
        for name in ('width', 'height', 'frame_rate', 'exposure'):
            value = getattr(self, name)
            if not 0.0 <= value < float('inf'):
                raise InputError(f'{name} = {value}, allowed: [0, inf)')
        if not (self.focus == -1.0 or 0.0 <= self.focus < float('inf')):
            raise InputError(f'focus = {self.focus}, allowed: [0, inf), or -1 for no change')
        if len(self.pixel_format) not in (0, 4):
            raise InputError(f'pixel_format = {self.pixel_format!r}, allowed: four letters')


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
    ahead = 0
    """Added to the numbers of frames by a reader of several sources."""

    def __init__(self, name: str, color: bool, loop: bool, bits: int) -> None:
        self.name = name
        self._convert = bgr_of if color else gray_of
        self._depth = BitDepth(bits)
        self._loop = loop
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
        """Yield the frames in grey or colour, as asked for, numbered through all loops."""
        first: Frame | None = None
        start, number = 0, 0
        stamp: int | None = None
        while True:
            before = stamp
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
                number, stamp = start + frame.number, frame.stamp
                if stamp is not None and before is not None and first.stamp is not None:
                    # Time continues in a loop.
                    stamp += before + self._period(before, first.stamp, start) - first.stamp
                yield Frame(number, stamp, image, frame.name)
            if not self._loop or first is None:
                return
            start = number + 1

    @property
    def notes(self) -> list[str]:
        """What a user should know about the images read so far."""
        found = [f'{self.name}: {self._depth.note}'] if self._depth.note else []
        if self.damaged:
            found.append(
                f'{len(self.damaged)} of {self.count} pictures of {self.name} cannot be read and'
                f' are left out; the first: {next(iter(self.damaged.values()))}'
            )
        return found

    def _period(self, last: int, first: int, count: int) -> int:
        """Return the time from the last frame to the first of the next loop [ns]."""
        if count > 1 and last > first:
            return round((last - first) / (count - 1))
        return round(1e9 / self.frame_rate) if self.frame_rate else 1

    def _frames(self) -> Iterator[Frame]:
        """Yield the frames of one loop, as they are read."""
        raise NotImplementedError


class _Pictures(ImageSource):
    """Picture files, in natural order."""

    def __init__(self, name: str, files: list[Path], **options: Any) -> None:
        super().__init__(name, **options)
        self.files = tuple(sorted(files, key=natural_order))
        self.count = len(files)
        self._stamps = _stamps_in(self.files)
        # Pictures without times are counted: a number that is missing is a lost frame.
        self._numbers: Sequence[int] = range(self.count)
        if self._stamps[:1] == [None]:
            self._numbers, self.numbers = _counted(self.files)

    def _frames(self) -> Iterator[Frame]:
        readable = False
        for number, stamp, path in zip(self._numbers, self._stamps, self.files, strict=True):
            try:
                image = stored_picture(path)
            except InputError as error:
                # The others may be whole: a camera was pulled out while it wrote one.
                self.damaged[str(path)] = str(error)
                continue
            readable = True
            yield Frame(number, stamp, image, str(path))
        if not readable:
            raise InputError(next(iter(self.damaged.values())))


def _counted(files: Sequence[Path]) -> tuple[Sequence[int], Numbers | None]:
    """
    Return numbers of frames from the numbers in the names of pictures, and these.

    Only if these are one number that increases between equal texts; its usual step is one frame.
    """
    names = [one for one in (_LAST_NUMBER.fullmatch(path.stem) for path in files) if one]
    numbers = np.array([int(one[2]) for one in names])
    steps = np.diff(numbers)
    alike = len({(one[1], one[3]) for one in names}) == 1
    if not alike or len(files) != len(names) or len(names) < 2 or steps.min() <= 0:
        return range(len(files)), None
    step = int(steps.min())
    if (steps % step).any():
        return range(len(files)), None
    ahead = ((numbers - numbers[0]) // step).tolist()
    return ahead, Numbers(int(numbers[0]), int(numbers[-1]), step)


def _stamps_in(paths: Sequence[Path]) -> list[int] | list[None]:
    """Return the times [ns] in the names of all files, or None for each."""
    known = [stamp for path in paths if (stamp := _stamp_in(path.stem)) is not None]
    if len(known) < len(paths) or len(paths) < 2:
        return [None] * len(paths)
    for before, after, path in zip([-1, *known], known, paths, strict=False):
        if after >= _LAST:
            raise InputError(
                f'{path}: the time in the name is {after / 1e9:.6g} s, allowed: below'
                f' {_LAST / 1e9:.0f} s, as in messages'
            )
        if after <= before:
            raise InputError(
                f'{path}: the time in the name is {after / 1e9:.9f} s, not after the'
                f' {before / 1e9:.9f} s of the previous picture; name pictures by increasing'
                ' times, or number them'
            )
    return known


def _stamp_in(stem: str) -> int | None:
    """Return the time [ns] at the end of a name, or None."""
    if found := _SECONDS.search(stem):
        return int(found[1]) * 10**9 + int(found[2].ljust(9, '0'))
    found = _NANOSECONDS.search(stem)
    return int(found[1]) if found else None


def stored_picture(path: Path) -> np.ndarray:
    """Read a picture as stored, ignoring EXIF rotation."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f'{path} cannot be read: {error.strerror}') from error
    if not data:
        raise InputError(f'{path} is empty, allowed: a picture; was the disk full?')
    return decoded_picture(data, str(path))


class _ExactTimes:
    """
    Restores times of a video that its container rounded to milliseconds; rate 0: unknown.

    Ends at the first time that is not a multiple of the frame period within rounding.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._start: float | None = None

    def of(self, told: int) -> int:
        """Return the exact time of the next frame [ns] from that of the container [ns]."""
        if not self._rate:
            return told
        period = 1e9 / self._rate
        if self._start is None:
            # A video that starts later has usually lost its first frames.
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
        if not self._open():
            raise InputError(
                f'{path} cannot be read as a video or picture; is it whole, and is its codec one'
                ' of FFmpeg?'
            )
        self.frame_rate = max(0.0, self._capture.get(cv2.CAP_PROP_FPS))
        self.count = max(0, int(self._capture.get(cv2.CAP_PROP_FRAME_COUNT)))
        code = _letters(self._capture)
        if code.lower() in _BETWEEN_FRAMES:
            self.lossy = (
                f'{path} is compressed between frames ({code.strip()}): errors of markers are two'
                ' to seven times as large as the images themselves show, and last over several'
                ' frames; record MJPEG of quality 80 or more, PNG or FFV1'
            )
        self._begun = False

    def _open(self) -> bool:
        """Open the file at its beginning: seeking is not exact in all containers."""
        if self._capture is not None:
            self._capture.release()
        self._capture = _opened(self.name, cv2.CAP_FFMPEG)
        if self._capture is not None:
            self._capture.set(cv2.CAP_PROP_ORIENTATION_AUTO, 0)
        return self._capture is not None

    def _frames(self) -> Iterator[Frame]:
        if self._begun and not self._open():
            raise LongreachError(f'{self.name} cannot be read any more')
        self._begun = True
        stamp, index, longest = -1, 0, 0
        times = _ExactTimes(self.frame_rate)
        while True:
            good, image = self._capture.read()
            if not good:
                break
            # Some containers have no times, or round successive ones to the same value.
            told = times.of(round(self._capture.get(cv2.CAP_PROP_POS_MSEC) * 1e6))
            counted = round(index * 1e9 / self.frame_rate) if self.frame_rate else stamp + 1
            before, stamp = stamp, told if told > stamp else max(counted, stamp + 1)
            longest = max(longest, stamp - before) if index else 0
            yield Frame(index, stamp, image, f'{self.name}, frame {index}')
            index += 1
        # The count may be the duration times a rate that varies: then the times reach the end.
        duration = self.count / self.frame_rate if self.frame_rate else 0.0
        is_at_end = 1e-9 * (stamp + longest) > duration - 0.5 / (self.frame_rate or 1.0)
        is_short = index < self.count - max(_COUNT_TOLERANCE, self.count // 100)
        if is_short and not (index and duration and is_at_end):
            raise LongreachError(
                f'{self.name} is incomplete: {index} of {self.count} frames can be read; the rest'
                ' is missing or damaged'
            )
        if index == 0:
            raise InputError(f'{self.name} has no readable frame')


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
        backend, wishes = (cv2.CAP_V4L2, []) if self._local else (cv2.CAP_FFMPEG, waiting)
        self._capture = _opened(device, backend, wishes)
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
        """Request settings: modes it must have, controls that it does not take are warnings."""
        if options.pixel_format:
            # First, because the available sizes depend on it.
            self._capture.set(cv2.CAP_PROP_FOURCC, cv2.VideoWriter.fourcc(*options.pixel_format))
            got = _letters(self._capture)
            if got != options.pixel_format:
                raise InputError(
                    f'pixel_format = {options.pixel_format}, but {self.name} has {got}{_MODES}'
                )
        for name, key, wanted, tolerance, symbol in (
            ('width', cv2.CAP_PROP_FRAME_WIDTH, options.width, 0.0, ' px'),
            ('height', cv2.CAP_PROP_FRAME_HEIGHT, options.height, 0.0, ' px'),
            ('frame_rate', cv2.CAP_PROP_FPS, options.frame_rate, 0.02, ' Hz'),
        ):
            if wanted and (told := self._set(name, key, wanted, 1.0, symbol, tolerance)):
                raise InputError(f'{told}{_MODES}')
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
            if told := self._set(*control):
                self.refused.append(f'{told}; its controls are listed by v4l2-ctl --list-ctrls')

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


def _letters(capture: Any) -> str:
    """Return the pixel format of a camera."""
    return int(capture.get(cv2.CAP_PROP_FOURCC)).to_bytes(4, 'little').decode('latin-1')


def _opened(device: int | str, backend: int, options: list[int] | None = None) -> Any:
    """Return an open capture, or None."""
    # Read at FFmpeg's first use; otherwise it writes about each damaged packet.
    os.environ.setdefault('OPENCV_FFMPEG_LOGLEVEL', '-8')
    with silence():
        capture = cv2.VideoCapture(device, backend, options or [])
    return capture if capture.isOpened() else None


def open_source(
    spec: str | int,
    *,
    color: bool = False,
    loop: bool = False,
    bits: int = 0,
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
    loop : bool
        Begin again at the end of files; stamps go on.
    bits : int
        Significant bits of 16-bit pictures, 9 to 16; 0: from the values, with a note.
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
    options: dict[str, Any] = {'color': color, 'loop': loop, 'bits': bits}
    device = int(text) if text.isdecimal() else text
    if isinstance(device, int) or device.startswith('/dev/video'):
        _check_device(device)
        name = f'camera {device}'
        return _Camera(device, name, capture or CaptureOptions(), clock, **options)
    if '://' in device and not device.startswith('file://'):
        # The part before @ may contain a password.
        name = re.sub('//[^/@]*@', '//', device)
        return _Camera(device, name, capture or CaptureOptions(), clock, **options)
    if not device:
        raise InputError("source = '', allowed: a camera, address, file, folder or pattern")
    try:
        return _stored(device, options)
    except InputError:
        raise
    except (OSError, RuntimeError, ValueError) as error:
        # Unknown user, name too long, invalid pattern, folder without permission.
        reason = getattr(error, 'strerror', None) or error
        raise InputError(
            f'{device} cannot be read: {reason}; allowed: a camera, address, file, folder or'
            ' pattern'
        ) from error


def _stored(device: str, options: dict[str, Any]) -> ImageSource:
    """Return a source of files."""
    path = Path(device.removeprefix('file://')).expanduser()
    if path.is_dir():
        files = [one for one in path.iterdir() if is_picture(one)]
        if not files:
            raise InputError(
                f'folder {path} has no pictures, allowed: files {" ".join(PICTURES)} in the'
                ' folder itself'
            )
        return _Pictures(device, files, **options)
    if not path.exists():
        if not any(sign in path.name for sign in '*?['):
            raise InputError(
                f'{path} does not exist, allowed: a camera, address, file, folder or pattern'
            )
        files = [one for one in path.parent.glob(path.name) if is_picture(one)]
        if not files:
            raise InputError(f'no picture in {path.parent} matches {path.name}')
        return _Pictures(device, files, **options)
    if not path.is_file():
        # Opening a pipe without a writer would block.
        raise InputError(f'{path} is a pipe or device, allowed: a camera, address, file or folder')
    return _Pictures(device, [path], **options) if is_picture(path) else _Video(path, **options)


def _check_device(device: int | str) -> None:
    """Raise InputError for a missing camera device, with a list of the existing ones."""
    path = Path(f'/dev/video{device}' if isinstance(device, int) else device)
    if not path.exists():
        there = ' '.join(map(str, sorted(Path('/dev').glob('video*'), key=natural_order)))
        raise InputError(f'camera {device}: there is no {path}, found: {there or "no camera"}')


def is_picture(path: Path) -> bool:
    """Return whether a file has the name of a picture and is not hidden."""
    # A broken link is not a file; a pipe would block.
    shown = not path.name.startswith('.') and (path.is_file() or not path.exists())
    return shown and path.suffix.lower() in PICTURES


def natural_order(path: Path) -> tuple[list[tuple[int, str]], str]:
    """Return a key that sorts picture_2 before picture_10."""
    parts = re.split(r'(\d+)', path.name)
    return [(int(part), '') if part.isdecimal() else (-1, part) for part in parts], path.name
