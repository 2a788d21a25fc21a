"""Markers in files of images: the loop of :mod:`longreach_markers.tracking.follower` over them."""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

from longreach_dynamics.errors import InputError
from longreach_markers.io.image_sources import open_source, pictures_of
from longreach_markers.io.stored_images import ImageSource
from longreach_markers.rig import Rig, load_rig
from longreach_markers.tracking.follower import Follower, follow
from longreach_markers.tracking.frames import RigFrame


def track(
    rig: Rig | str | Path, *sources: str | Path, rate: float | None = None
) -> Iterator[RigFrame]:
    """
    Yield the positions of the markers in each set of images, as ``longreach vision track``.

    Parameters
    ----------
    rig : Rig or path
        Rig file, or a rig in the resolution of the images.
    *sources : path
        Video, folder or pattern of pictures of each camera, in the order of the rig. With fewer
        sources than cameras the first cameras are used.
    rate : float, optional
        Images per second, instead of the times of the files [Hz].

    Yields
    ------
    RigFrame
        In the order of time; ``frame.estimates[NAME].in_plane.position`` is a position [m] if
        ``status`` is not LOST.

    Warns
    -----
    UserWarning
        For a codec that moves edges; at the end, for images that could not be read or used.

    Raises
    ------
    InputError
        For a rig or images that cannot be read, a wrong number of sources, and cameras.
    """
    known = rig if isinstance(rig, Rig) else load_rig(rig)
    names = tuple(known.cameras)
    if not 1 <= len(sources) <= len(names):
        raise InputError(
            f'{len(sources)} sources, allowed: 1 to {len(names)}, for {", ".join(names)}'
        )
    used = dict(zip(names, sources, strict=False))
    known = dataclasses.replace(known, cameras={name: known.cameras[name] for name in used})
    with contextlib.ExitStack() as stack:
        opened = opened_files(stack, used)
        for source in opened.values():
            if source.lossy:
                warnings.warn(source.lossy, stacklevel=2)
        follower = Follower(known)
        for one in follow(follower, pictures_of(opened, rate)):
            yield one.frame
        for note in (*follower.notes, *(n for one in opened.values() for n in one.notes)):
            warnings.warn(note, stacklevel=2)


def opened_files(
    stack: contextlib.ExitStack, places: Mapping[str, str | Path]
) -> dict[str, ImageSource]:
    """Open videos or pictures by camera; InputError for what is not a file."""
    opened = {name: stack.enter_context(open_source(str(place))) for name, place in places.items()}
    for source in opened.values():
        if source.live:
            raise InputError(
                f'{source.name} is a camera, allowed: files; for cameras use the nodes:'
                ' longreach launch vision'
            )
    return opened
