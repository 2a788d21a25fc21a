"""From images that belong together to markers in space: how the tracker begins, and goes on."""

from __future__ import annotations

import math

import numpy as np

from longreach_dynamics.errors import InputError, LongreachError
from longreach_vision import detection, image_motion, positions
from longreach_vision.cameras import Camera
from longreach_vision.rig import Rig
from longreach_vision.stereo import StereoFrame, StereoTracker
from longreach_vision.stereo_pairing import ImageSet

__all__ = ['Follower', 'size_error', 'warm_up']

# Between searches in whole images, which take long, while they do not succeed [s].
_AGAIN = 1.0
# The longest time between them while markers are tracked, which takes some images [s].
_RARELY = 60.0


class Follower:
    """
    A tracker that begins by itself; the same images give the same tracks.

    With the first image of each camera the markers are looked for: where their pixels are given,
    at their positions, or in the whole image. What a search in the whole image does not find is
    looked for again, see :attr:`StereoTracker.searchable`: after a second, and while others are
    tracked, which have to wait meanwhile, twice as long each time.

    Parameters
    ----------
    rig : Rig
        Of the resolution of the images.

    Attributes
    ----------
    tracker : StereoTracker
    problem : str
        Why markers could not be found in the whole image; empty when they were, or need not be.
    """

    def __init__(self, rig: Rig) -> None:
        self.tracker = StereoTracker(rig)
        self.problem = ''
        self._searched = dict.fromkeys(rig.cameras, -math.inf)
        self._pause = _AGAIN

    def update(self, images: ImageSet[np.ndarray]) -> StereoFrame:
        """
        Follow the markers into the next images.

        Raises
        ------
        InputError
            For images that do not fit the cameras, and those that are not later than the ones
            before.
        """
        times = images.times
        new = [
            name
            for name in times
            if not self.tracker.trackers[name].tracks
            and times[name] - self._searched[name] > _AGAIN
        ]
        if new:
            self._searched.update({name: times[name] for name in new})
            try:
                self.tracker.start(
                    {name: images.images[name] for name in new},
                    {name: times[name] for name in new},
                )
                self.problem = '; '.join(self.tracker.missing.values())
            except LongreachError as error:
                self.problem = str(error)
        frame = self.tracker.update(images.images, times)
        if all(times[name] - self._searched[name] > self._pause for name in times):
            self._search(images)
        return frame

    def _search(self, images: ImageSet[np.ndarray]) -> None:
        """Look for markers that are missing."""
        if not self.tracker.searchable:
            # Others may have been initialised since.
            self.problem = self.problem if self.tracker.missing else ''
            return
        self._searched.update(images.times)
        try:
            self.problem = self.tracker.search(images.images, images.times)
        except InputError as error:
            self.problem = str(error)
        is_busy = self.problem and self.tracker.is_any_in_sight
        self._pause = min(2.0 * self._pause, _RARELY) if is_busy else _AGAIN


def size_error(
    image: np.ndarray, camera: Camera, name: str, *, where: str = 'the rig', scale: float | None
) -> str:
    """
    Return what is wrong with an image of another size than its camera's, and what to do.

    Parameters
    ----------
    image : ndarray, shape (height, width)
    camera : Camera
        With the size that is allowed.
    name : str
        The camera's.
    where : str
        What says so.
    scale : float, optional
        Of the camera to that which was calibrated, at most 1; None if it is not known here.
    """
    height, width = image.shape
    ratio = width / camera.width
    remedy = 'calibrate the camera at the size that it is used with'
    # What was resized has the same shape.
    is_resized = where == 'the rig' and abs(height / ratio - camera.height) < 2.0
    if is_resized and (scale is None or scale * ratio <= 1.0):
        change = (
            f'make the scale {ratio:.6g} times what it is now'
            if scale is None
            else f'set scale to {scale * ratio:.6g}'
        )
        remedy = f'if images were resized, {change}, else {remedy}'
    return (
        f'image has {width} x {height} px, allowed by {where} for {name}: {camera.width} x'
        f' {camera.height} px; {remedy}'
    )


def warm_up() -> None:
    """Compile all that the tracker runs on, or load it from the caches."""
    for module in (positions, detection, image_motion):
        module.warm_up()
