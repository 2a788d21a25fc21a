"""
Tracking from the first images on: initialisation, update, and search for missing markers.

:func:`follow` tracks a sequence of images as the tracker node does: in sets by stamp
(:mod:`longreach_markers.tracking.image_sets`), one after the other.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from longreach_dynamics.errors import InputError, LongreachError, named
from longreach_markers.camera import triangulation
from longreach_markers.io.image_sources import Picture, open_source, pictures_of
from longreach_markers.io.stored_images import ImageSource
from longreach_markers.marker import detection
from longreach_markers.rig import Rig, load_rig
from longreach_markers.tracking import image_motion
from longreach_markers.tracking.camera_tracker import CameraTracker
from longreach_markers.tracking.frames import RigFrame
from longreach_markers.tracking.image_sets import ImageSet, ImageSets
from longreach_markers.tracking.rig_tracker import RigTracker

_SECOND = 1_000_000_000  # [ns]

# Time between unsuccessful searches in whole images, which are slow [s].
_AGAIN = 1.0
# Longest time between them while other markers are tracked, since a search delays images [s].
_RARELY = 60.0
# Lag of a camera in a recording up to which images of other cameras wait for its own [s]: their
# room in memory is the limit.
_LAG = 3600.0


class Followed(NamedTuple):
    """A set of images, and the result of the tracker."""

    images: ImageSet
    frame: RigFrame
    # Search windows by camera and marker: u, v and half the side [px].
    windows: dict[str, dict[str, tuple[float, float, float]]]


class Follower:
    """
    A tracker with automatic initialisation; the same images give the same tracks.

    The markers are searched in the first image of each camera: at given pixels, at their
    positions, or in the whole image, there again after a second, and, while other markers are
    tracked and delayed by the search, at intervals that double each time.

    Parameters
    ----------
    rig : Rig
        Rig in the resolution of the images.

    Attributes
    ----------
    tracker : RigTracker
    problem : str
        Why markers could not be found in the whole image; empty if there is no problem.
    pairs : ImageSets
        Those of :func:`follow`; None before.
    """

    def __init__(self, rig: Rig) -> None:
        self.tracker = RigTracker(rig)
        self.problem = ''
        self.pairs: ImageSets | None = None
        self._searched = dict.fromkeys(rig.cameras, -math.inf)
        self._pause = _AGAIN

    @property
    def notes(self) -> list[str]:
        """Images that :func:`follow` has not used so far, or not for positions, and why."""
        return self.pairs.notes if self.pairs is not None else []

    def update(self, images: ImageSet) -> RigFrame:
        """Track the markers in the next images; stamps are without the rig's ``delays``."""
        times = images.times
        new = {
            name: time
            for name, time in times.items()
            if not self.tracker.trackers[name].tracks and time - self._searched[name] > _AGAIN
        }
        if new:
            self._searched.update(new)
            try:
                self.tracker.start({name: images.images[name] for name in new}, new)
                self.problem = '; '.join(self.tracker.missing.values())
            except LongreachError as error:
                self.problem = str(error)
        frame = self.tracker.update(images.images, times)
        if all(times[name] - self._searched[name] > self._pause for name in times):
            self._search(images)
        return frame

    def _search(self, images: ImageSet) -> None:
        if not self.tracker.searchable:
            # Others may have been initialised in the meantime.
            self.problem = self.problem if self.tracker.missing else ''
            return
        self._searched.update(images.times)
        try:
            self.problem = self.tracker.search(images.images, images.times)
        except InputError as error:
            self.problem = str(error)
        is_busy = self.problem and self.tracker.is_any_in_sight
        self._pause = min(2.0 * self._pause, _RARELY) if is_busy else _AGAIN


def follow(follower: Follower, pictures: Iterable[Picture]) -> Iterator[Followed]:
    """
    Track markers in images, set by set.

    If the images end with an error, the complete sets are yielded first, then the error is
    raised.
    """
    follower.tracker.rig.check_pixels()
    trackers = follower.tracker.trackers
    for ready in _paired(follower, pictures):
        windows = {
            camera: _windows(trackers[camera], time) for camera, time in ready.times.items()
        }
        yield Followed(ready, follower.update(ready), windows)


def _windows(tracker: CameraTracker, time: float) -> dict[str, tuple[float, float, float]]:
    found = {}
    for name, track in tracker.tracks.items():
        expected = tracker.predict(name, time)
        u, v = expected.center.tolist()
        found[name] = (u, v, expected.reach + track.reference.radius)
    return found


class _OneRun(ImageSets):
    """Pairs of images of files, in which time does not go back; those that wait then stay."""

    added: Picture  # the latest one

    def restart(self) -> None:
        raise InputError(
            f'{self.added.name}: time goes back to {self.added.stamp / _SECOND:.3f} s, allowed:'
            ' one run with increasing times; record each run in its own bag, or play this one to'
            ' the tracker node, which starts again: longreach bag play'
        )


def _paired(follower: Follower, pictures: Iterable[Picture]) -> Iterator[ImageSet]:
    rig = follower.tracker.rig
    pairs = _OneRun(tuple(rig.cameras), rig.tracking.gap, _LAG)
    follower.pairs = pairs
    delays = rig.delays
    try:
        for picture in pictures:
            camera, stamp, image, name = pairs.added = picture
            with named(f'{name}: '):
                rig.check_image(camera, image)
            yield from pairs.add(camera, stamp - delays[camera], image)
    except LongreachError:
        yield from pairs.finish()
        raise
    yield from pairs.finish()


# --- files -----------------------------------------------------------------------------------


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


def warm_up() -> None:
    """Compile all kernels of the tracker, or load them from the cache."""
    for module in (triangulation, detection, image_motion):
        module.warm_up()
