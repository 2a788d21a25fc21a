"""Images of files in the order of time."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_markers.io.source_base import ImageSource

_SECOND = 1_000_000_000  # [ns]


class Picture(NamedTuple):
    """An image of a camera."""

    camera: str
    stamp: int  # [ns]
    image: np.ndarray  # (h, w), uint8
    name: str  # for error messages


def pictures_of(
    sources: Mapping[str, ImageSource], rate: float | None = None
) -> Iterator[Picture]:
    """
    Yield the images of files in the order of time.

    Parameters
    ----------
    sources : mapping of ImageSource
        By camera.
    rate : float, optional
        Images per second [Hz], instead of the times of the files.

    Raises
    ------
    InputError
        For files without times if there is no rate.
    """
    _align(sources)
    streams = [_stream(camera, source, rate) for camera, source in sources.items()]
    for _, _, picture in heapq.merge(
        *(((p.stamp, k, p) for p in stream) for k, stream in enumerate(streams)),
        key=lambda entry: entry[:2],
    ):
        yield picture


def _align(sources: Mapping[str, ImageSource]) -> None:
    """Give pictures of equal numbers one time, unless the numbers hardly overlap."""
    found = [source.numbers for source in sources.values()]
    known = [numbers for numbers in found if numbers is not None]
    if len(known) < len(found) or len({numbers.step for numbers in known}) > 1:
        return
    begin, end = max(one.first for one in known), min(one.last for one in known)
    shortest = min(one.last - one.first for one in known)
    earliest = min(one.first for one in known)
    if 2 * (end - begin) < shortest or any(
        (one.first - earliest) % known[0].step for one in known
    ):
        return
    for source, one in zip(sources.values(), known, strict=True):
        source.ahead = (one.first - earliest) // one.step


def _stream(camera: str, source: ImageSource, rate: float | None) -> Iterator[Picture]:
    """Yield the images of one source."""
    counted = rate or source.frame_rate
    for frame in source:
        if rate is None and frame.stamp is not None:
            stamp = frame.stamp
        elif counted:
            stamp = round((frame.number + source.ahead) * _SECOND / counted)
        else:
            raise InputError(
                f'{source.name} has no times of its images; give --rate, or names that end with a'
                ' time such as left_12.345.png'
            )
        yield Picture(camera, stamp, frame.image, frame.name)
