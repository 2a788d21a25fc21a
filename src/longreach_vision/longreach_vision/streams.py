"""
Images of one camera or two in the order of time, and what the tracker makes of them.

They come from files, from recordings, or are drawn; the tracker sees them as the tracker node
does: paired by stamp (:mod:`longreach_vision.stereo_pairing`), one pair after the other.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError, LongreachError
from longreach_vision.following import Follower, size_error
from longreach_vision.rendering import CameraSimulator, frame_rng
from longreach_vision.rig import Rig
from longreach_vision.scene import CameraLook, FrameTimes, MarkerPath, frames_of, scene_of
from longreach_vision.sources import ImageSource
from longreach_vision.stereo import StereoFrame
from longreach_vision.stereo_pairing import TIMEOUT, ImagePairs, ImageSet
from longreach_vision.tracking import CameraTracker

__all__ = [
    'Followed',
    'Picture',
    'drawn_pictures',
    'follow',
    'frame_times',
    'pictures_of',
    'simulators_of',
    'with_reaction',
]

_SECOND = 1_000_000_000  # [ns]


class Picture(NamedTuple):
    """An image of a camera."""

    camera: str
    stamp: int  # [ns]
    image: np.ndarray  # (h, w), uint8
    name: str  # for messages


class Followed(NamedTuple):
    """A pair of images, and what the tracker found in it."""

    images: ImageSet[np.ndarray]
    frame: StereoFrame
    # By camera and marker, where it was looked for: u, v and half of the side [px].
    windows: dict[str, dict[str, tuple[float, float, float]]]


# --- from files ------------------------------------------------------------------------------


def pictures_of(
    sources: Mapping[str, ImageSource], rate: float | None = None
) -> Iterator[Picture]:
    """
    Yield the images of files in the order of time.

    Parameters
    ----------
    sources : mapping
        By camera.
    rate : float, optional
        Images per second, counted from 0 s on [Hz]. Without it times are those of the files, and
        where these have none, follow from their frame rate.

    Raises
    ------
    InputError
        When nobody knows the times, one source knows them and another does not, or an image
        cannot be read.
    LongreachError
        When a video breaks off.
    """
    streams = [_stream(camera, source, rate) for camera, source in sources.items()]
    for _, _, picture in heapq.merge(
        *(((p.stamp, k, p) for p in stream) for k, stream in enumerate(streams)),
        key=lambda entry: entry[:2],
    ):
        yield picture


def _stream(camera: str, source: ImageSource, rate: float | None) -> Iterator[Picture]:
    """Yield the images of one source."""
    counted = rate or source.frame_rate
    for frame in source:
        if rate is None and frame.stamp is not None:
            stamp = frame.stamp
        elif counted:
            stamp = round(frame.number * _SECOND / counted)
        else:
            raise InputError(
                f'{source.name} does not tell when its images were taken; give --rate, or names'
                ' that end with a time such as left_12.345.png'
            )
        yield Picture(camera, stamp, frame.image, frame.name)


# --- drawn -----------------------------------------------------------------------------------


def simulators_of(rig: Rig, look: CameraLook) -> dict[str, CameraSimulator]:
    """
    Return simulators of the cameras of a rig.

    Parameters
    ----------
    rig : Rig
        Of the resolution that is wanted.
    look : CameraLook
        With occluders in the pixels of that resolution.
    """
    scene = scene_of(rig, look)
    return {
        name: CameraSimulator(mounted.camera.replace(name=name), mounted.pose, scene)
        for name, mounted in rig.cameras.items()
    }


def frame_times(path: MarkerPath, rate: float, duration: float | None = None) -> np.ndarray:
    """
    Return the times of the images k / rate that fall on a path, shape (K,) [s].

    Parameters
    ----------
    path : MarkerPath
    rate : float
        [Hz]
    duration : float, optional
        Images up to so long after the first [s].

    Raises
    ------
    InputError
        When there is none.
    """
    stamps: list[int] = []
    limit = math.inf if duration is None else duration * _SECOND
    for _, frame in frames_of(path, [FrameTimes(rate)]):
        if stamps and frame.stamp - stamps[0] > limit:
            break
        stamps.append(frame.stamp)
    if not stamps:
        first, last = path.times[[0, -1]]
        raise InputError(
            f'no image at {rate:g} Hz falls on the path of [{first:g}, {last:g}] s; raise --rate'
        )
    return np.array(stamps) / _SECOND


def drawn_pictures(
    simulators: Mapping[str, CameraSimulator], path: MarkerPath, times: np.ndarray
) -> Iterator[Picture]:
    """
    Yield what cameras see of a path, as ``render_sequence`` writes it.

    Raises
    ------
    InputError
        For a marker or a time that the path does not have.
    """
    paths = {name: path.of(one.scene.names) for name, one in simulators.items()}
    for number, time in enumerate(times.tolist()):
        for name, simulator in simulators.items():
            rng = frame_rng(simulator.scene.look.seed, name, number)
            drawn = simulator.image(*paths[name].at(time), time, rng)
            # The simulator draws the next one in the same place.
            yield Picture(name, round(time * _SECOND), drawn.copy(), f'image {number} of {name}')


def with_reaction(
    path: MarkerPath, name: str, amplitude: float, times: np.ndarray, load: np.ndarray
) -> MarkerPath:
    """
    Return a path in which one marker also moves up and down in proportion to a load.

    The simulated boom stands on firm ground. On real ground its truck gives way in proportion to
    the bending moment at the foot of the boom, which the strain of the first beam shows.

    Parameters
    ----------
    path : MarkerPath
    name : str
        Of the marker.
    amplitude : float
        Half of the distance between its highest and lowest position [m].
    times : ndarray, shape (K,)
        Of the load, rising [s].
    load : ndarray, shape (K,)
        In any unit; more of it is further up. Before and after these times it does not change.

    Raises
    ------
    InputError
        When the path does not have the marker, or the load does not change.
    """
    path.of([name])
    k = path.names.index(name)
    span = float(np.ptp(load)) if load.size else 0.0
    if not (math.isfinite(span) and span > 0.0):
        raise InputError(f'the load that is to move {name} does not change; release one')
    motion = [path.at(time) for time in path.times]
    positions = np.array([position for position, _ in motion])
    velocities = np.array([velocity for _, velocity in motion])
    rise = 2.0 * amplitude * (np.interp(path.times, times, load) - load[0]) / span
    positions[:, k, 2] += rise
    if path.times.size > 1:
        velocities[:, k, 2] += np.gradient(rise, path.times)
    return MarkerPath(path.names, path.times, positions, velocities)


# --- the tracker -----------------------------------------------------------------------------


def follow(follower: Follower, pictures: Iterable[Picture]) -> Iterator[Followed]:
    """
    Yield what the tracker finds in images, pair by pair.

    When the images break off by an error, what was complete by then comes first, then the error.

    Parameters
    ----------
    follower : Follower
    pictures : iterable of Picture
        Of cameras of its rig, each in the order of time.

    Raises
    ------
    InputError
        For an image of another size than its camera's, a marker's pixel that is not in the image,
        time that goes back, and as the source of the images.
    LongreachError
        As the source of the images.
    """
    follower.tracker.rig.check_pixels()
    trackers = follower.tracker.trackers
    for ready in _paired(follower.tracker.rig, pictures):
        windows = {
            camera: _windows(trackers[camera], time) for camera, time in ready.times.items()
        }
        yield Followed(ready, follower.update(ready), windows)


def _windows(tracker: CameraTracker, time: float) -> dict[str, tuple[float, float, float]]:
    """Return where a camera's markers will be looked for."""
    found = {}
    for name, track in tracker.tracks.items():
        expected = tracker.predict(name, time)
        u, v = expected.center.tolist()
        found[name] = (u, v, expected.reach + track.reference.radius)
    return found


def _paired(rig: Rig, pictures: Iterable[Picture]) -> Iterator[ImageSet[np.ndarray]]:
    """Yield the images that belong together."""
    pairs: ImagePairs[np.ndarray] = ImagePairs(tuple(rig.cameras), rig.tracking.gap, TIMEOUT)
    try:
        for camera, stamp, image, name in pictures:
            _check_size(rig, camera, image, name)
            ready = pairs.add(camera, stamp, image)
            if pairs.restarts:
                # What waits is of the new time: it does not go on.
                pairs.clear()
                raise InputError(
                    f'{name}: time goes back to {stamp / _SECOND:.3f} s, allowed: one run, in'
                    ' which it rises; record each run into a bag of its own, or play this one to'
                    ' the tracker node, which begins anew: longreach bag play'
                )
            yield from ready
    except LongreachError:
        yield from pairs.finish()
        raise
    yield from pairs.finish()


def _check_size(rig: Rig, camera: str, image: np.ndarray, name: str) -> None:
    """Raise InputError for an image that is not of its camera's size."""
    own = rig.cameras[camera].camera
    if image.shape != (own.height, own.width):
        raise InputError(f'{name}: {size_error(image, own, camera, scale=None)}')
