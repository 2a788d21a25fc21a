"""
Images of files: pictures and videos.

Frames have the time of the recording if it is known: for a video its own time stamps, for pictures
the times in their names. If a container rounds times to milliseconds (Matroska, WebM, FLV), and
they agree with its frame rate within rounding, the exact times are restored from the rate: at
1 m/s half a millisecond is half a millimetre. Rotation metadata are ignored, because a calibration
refers to the pixels of the sensor.
"""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Self

import cv2
import numpy as np

from longreach_dynamics.errors import InputError, LongreachError, named
from longreach_markers.io.images import (
    PICTURES,
    BitDepth,
    bgr_of,
    decoded_picture,
    gray_of,
    silence,
)


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
            with named(f'{frame.name}: '):
                image = self._convert(frame.image, self._depth)
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


# Upper bound of stamps in messages [ns].
_LAST = 2**31 * 10**9
# A file name that ends with seconds and a fraction, or with nanoseconds since 1970.
_SECONDS = re.compile(r'(?:^|\D)(\d+)\.(\d{1,9})$')
_NANOSECONDS = re.compile(r'(?:^|\D)(\d{19})$')
# A date and the time of day, as of date +%Y%m%d_%H%M%S or +%Y%m%d_%H%M%S.%N.
_TIME_OF_DAY = re.compile(
    r'(?:^|\D)(20\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))[-_T]?'
    r'((?:[01]\d|2[0-3])[0-5]\d[0-5]\d)(?:\.(\d{1,9}))?$'
)
# Least step of numbers that count frames, in their common divisor, at most; that of times in names
# (of milliseconds, for example) is larger.
_LEAST_STEP = 2
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


def stored_source(device: str, color: bool = False) -> ImageSource:
    """Return a source of files."""
    path = Path(device.removeprefix('file://')).expanduser()
    if path.is_dir():
        files = [one for one in path.iterdir() if is_picture(one)]
        if not files:
            raise InputError(
                f'folder {path} has no pictures, allowed: files {" ".join(PICTURES)} in the'
                ' folder itself'
            )
        return Pictures(device, files, color)
    if not path.exists():
        if not any(sign in path.name for sign in '*?['):
            raise InputError(
                f'{path} does not exist, allowed: a camera, address, file, folder or pattern'
            )
        files = [one for one in path.parent.glob(path.name) if is_picture(one)]
        if not files:
            raise InputError(f'no picture in {path.parent} matches {path.name}')
        return Pictures(device, files, color)
    if not path.is_file():
        # Opening a pipe without a writer would block.
        raise InputError(f'{path} is a pipe or device, allowed: a camera, address, file or folder')
    return Pictures(device, [path], color) if is_picture(path) else Video(path, color)


class Pictures(ImageSource):
    """Picture files, in natural order, or by the times in names that are equal before them."""

    def __init__(self, name: str, files: list[Path], color: bool) -> None:
        super().__init__(name, color)
        self.files = tuple(sorted(files, key=natural_order))
        self.count = len(files)
        timed = [found for path in self.files if (found := _stamp_in(path.stem))]
        self._stamps: list[int] | list[None] = [None] * self.count
        if len(timed) == self.count:
            if len({before for before, _ in timed}) == 1:
                pairs = sorted(zip(timed, self.files, strict=True))
                timed, self.files = [found for found, _ in pairs], tuple(path for _, path in pairs)
            self._stamps = [stamp for _, stamp in timed]
            _check_stamps(self._stamps, self.files)
        # Pictures without times are counted: a number that is missing is a lost frame.
        self._numbers: Sequence[int] = range(self.count)
        if self._stamps[:1] == [None]:
            self._numbers, self.numbers = _counted(self.files)
            if self.numbers is None and self.count > 1:
                self.unnumbered = (
                    f'pictures of {name} have neither times nor one number that counts in their'
                    ' names, as img_0001 has: they are taken as consecutive, and lost ones are not'
                    ' noticed'
                )

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
    """Return numbers of frames from the numbers in the names of pictures, and these."""
    # Only if one number alone differs, and increases; the common divisor of its steps is one
    # frame.
    names = [re.split(r'(\d+)', path.stem) for path in files]
    columns = [set(column) for column in zip(*names, strict=False)]
    differing = [k for k, column in enumerate(columns) if len(column) > 1]
    k = differing[0] if differing else len(columns) - 2
    if len(differing) > 1 or k < 0 or k % 2 == 0 or len({len(name) for name in names}) > 1:
        return range(len(files)), None
    numbers = [int(name[k]) for name in names]
    steps = [after - before for before, after in itertools.pairwise(numbers)]
    step = math.gcd(*steps)
    if steps and not 0 < min(steps) <= _LEAST_STEP * step:
        return range(len(files)), None
    ahead = [(number - numbers[0]) // (step or 1) for number in numbers]
    return ahead, Numbers(numbers[0], numbers[-1], step)


def _check_stamps(known: Sequence[int], paths: Sequence[Path]) -> None:
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


def _stamp_in(stem: str) -> tuple[str, int] | None:
    """Return the time [ns] at the end of a name, behind what is before it, or None."""
    if found := _TIME_OF_DAY.search(stem):
        day = datetime.strptime(found[1] + found[2], '%Y%m%d%H%M%S').replace(tzinfo=UTC)
        stamp = round(day.timestamp()) * 10**9 + int((found[3] or '').ljust(9, '0'))
    elif found := _SECONDS.search(stem):
        stamp = int(found[1]) * 10**9 + int(found[2].ljust(9, '0'))
    elif found := _NANOSECONDS.search(stem):
        stamp = int(found[1])
    else:
        return None
    return stem[: found.start(1)], stamp


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
    """Restores times that a video rounded to milliseconds, up to the first that does not fit."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._start: float | None = None

    def of(self, stated: int) -> int:
        """Return the exact time of the next frame [ns] from that of the container [ns]."""
        if not self._rate:
            return stated
        period = 1e9 / self._rate
        if self._start is None:
            # A video that starts later has usually lost its first frames.
            nearest = round(stated / period) * period
            self._start = nearest if abs(nearest - stated) <= _ROUNDED else float(stated)
        count = round((stated - self._start) / period)
        exact = round(self._start + count * period)
        if stated % _MILLISECOND or abs(exact - stated) > _ROUNDED:
            self._rate = 0.0
            return stated
        return exact


class Video(ImageSource):
    """A video file."""

    def __init__(self, path: Path, color: bool) -> None:
        super().__init__(str(path), color)
        self.files = (path,)
        # FFmpeg takes what is before a colon in a name for a protocol.
        self._capture = opened_capture(str(path.absolute()), cv2.CAP_FFMPEG)
        if self._capture is None:
            raise InputError(
                f'{path} cannot be read as a video or picture; is it whole, and is its codec one'
                ' of FFmpeg?'
            )
        self._capture.set(cv2.CAP_PROP_ORIENTATION_AUTO, 0)
        self.frame_rate = max(0.0, self._capture.get(cv2.CAP_PROP_FPS))
        self.count = max(0, int(self._capture.get(cv2.CAP_PROP_FRAME_COUNT)))
        code = codec_of(self._capture)
        if code.lower() in _BETWEEN_FRAMES:
            self.lossy = (
                f'{path} is compressed between frames ({code.strip()}): errors of markers are two'
                ' to seven times as large as the images themselves show, and last over several'
                ' frames; record MJPEG of quality 80 or more, PNG or FFV1'
            )
        self._untimed = 0

    @property
    def notes(self) -> list[str]:
        """What a user should know about the images read so far."""
        found = super().notes
        if self._untimed:
            found.append(
                f'{self.name}: frames whose time is not later than that before are not used:'
                f' {self._untimed}; check how it was recorded'
            )
        return found

    def _frames(self) -> Iterator[Frame]:
        stamp, index, longest, is_timed = -1, 0, 0, False
        times = _ExactTimes(self.frame_rate)
        while True:
            good, image = self._capture.read()
            if not good:
                break
            stated = times.of(round(self._capture.get(cv2.CAP_PROP_POS_MSEC) * 1e6))
            is_timed |= stated > 0
            if is_timed and stated <= stamp:
                self._untimed += 1
                index += 1
                continue
            # Some containers have no times.
            counted = round(index * 1e9 / self.frame_rate) if self.frame_rate else stamp + 1
            before, stamp = stamp, stated if is_timed else counted
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


def is_picture(path: Path) -> bool:
    """Return whether a file has the name of a picture and is not hidden."""
    # A broken link is not a file; a pipe would block.
    shown = not path.name.startswith('.') and (path.is_file() or not path.exists())
    return shown and path.suffix.lower() in PICTURES


def natural_order(path: Path) -> tuple[list[tuple[int, str]], str]:
    """Return a key that sorts picture_2 before picture_10."""
    parts = re.split(r'(\d+)', path.name)
    return [(int(part), '') if part.isdecimal() else (-1, part) for part in parts], path.name
