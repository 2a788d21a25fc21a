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
