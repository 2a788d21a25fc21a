"""
Sources of images: cameras, streams, video files, pictures in folders.

A source yields frames one by one, in grey or BGR, all of one size.
"""

from __future__ import annotations

import heapq
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_markers.io.camera_images import CameraSource, CaptureOptions
from longreach_markers.io.source_base import ImageSource
from longreach_markers.io.stored_images import natural_order, stored_source


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
    """
    Return the place of each source's first picture, its step, and what both are divided by.

    In images of the camera whose numbers have the smallest step, so that pictures of equal numbers
    have one time, unless the numbers hardly overlap, or each source has one picture.
    """
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
