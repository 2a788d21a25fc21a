"""
Images of one camera or two in the order of time, and their tracking.

Images come from files or recordings, or are simulated; they are tracked as in the tracker node:
paired by stamp (:mod:`longreach_vision.tracking.image_sets`), one pair after the other.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError, LongreachError
from longreach_vision.io.image_sources import ImageSource
from longreach_vision.rig import Rig
from longreach_vision.simulator.camera_simulator import CameraSimulator, frame_rng
from longreach_vision.simulator.scene import (
    CameraLook,
    FrameTimes,
    MarkerPath,
    frames_of,
    scene_of,
)
from longreach_vision.tracking.camera_tracker import CameraTracker
from longreach_vision.tracking.follower import Follower, size_error
from longreach_vision.tracking.image_sets import TIMEOUT, ImagePairs, ImageSet
from longreach_vision.tracking.rig_tracker import StereoFrame

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
# Movement below which a marker counts as being at rest: rounding of recorded positions [m].
_AT_REST = 1e-6


class Picture(NamedTuple):
    """An image of a camera."""

    camera: str
    stamp: int  # [ns]
    image: np.ndarray  # (h, w), uint8
    name: str  # for error messages


class Followed(NamedTuple):
    """An image pair, and the result of the tracker."""

    images: ImageSet[np.ndarray]
    frame: StereoFrame
    # Search windows by camera and marker: u, v and half the side [px].
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
        Sources by camera.
    rate : float, optional
        Images per second, starting at 0 s [Hz]. By default the times of the files are used, and if
            there are none, their frame rate. Of pictures with numbers in their names those with
            equal numbers are of one time.

    Raises
    ------
    InputError
        If times are unknown, or known for one source only, or an image cannot be read.
    LongreachError
        If a video is incomplete.
    """
    _align(sources)
    streams = [_stream(camera, source, rate) for camera, source in sources.items()]
    for _, _, picture in heapq.merge(
        *(((p.stamp, k, p) for p in stream) for k, stream in enumerate(streams)),
        key=lambda entry: entry[:2],
    ):
        yield picture


def _align(sources: Mapping[str, ImageSource]) -> None:
    """
    Let pictures with equal numbers in their names be of one time, if both folders have them.

    Not if the numbers hardly overlap: these are counters that were not started together.
    """
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


# --- drawn -----------------------------------------------------------------------------------


def simulators_of(rig: Rig, look: CameraLook) -> dict[str, CameraSimulator]:
    """
    Return simulators of the cameras of a rig.

    Parameters
    ----------
    rig : Rig
        Rig in the resolution of the images.
    look : CameraLook
        Look with occluders in pixels of that resolution.
    """
    scene = scene_of(rig, look)
    return {
        name: CameraSimulator(
            mounted.camera.replace(name=name), mounted.pose, scene, line_time=mounted.line_time
        )
        for name, mounted in rig.cameras.items()
    }


def frame_times(path: MarkerPath, rate: float, duration: float | None = None) -> np.ndarray:
    """
    Return the times k / rate within a path, shape (K,) [s].

    Parameters
    ----------
    path : MarkerPath
    rate : float
        [Hz]
    duration : float, optional
        Time after the first image up to which there are images [s].

    Raises
    ------
    InputError
        If there is none.
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
    simulators: Mapping[str, CameraSimulator],
    path: MarkerPath,
    times: np.ndarray,
    delays: Mapping[str, int] | None = None,
) -> Iterator[Picture]:
    """
    Yield simulated images of a path, like those of ``render_sequence``.

    Parameters
    ----------
    simulators : mapping
        Simulators by camera.
    path : MarkerPath
    times : ndarray, shape (K,)
        Times of the exposures [s].
    delays : mapping, optional
        Time from the exposure to the stamp of an image, by camera [ns].

    Raises
    ------
    InputError
        For a marker or a time that is not in the path.
    """
    paths = {name: path.of(one.scene.names) for name, one in simulators.items()}
    for number, time in enumerate(times.tolist()):
        for name, simulator in simulators.items():
            rng = frame_rng(simulator.scene.look.seed, name, number)
            drawn = simulator.image(*paths[name].at(time), time, rng)
            # The simulator reuses its buffer for the next picture.
            stamp = round(time * _SECOND) + (delays or {}).get(name, 0)
            yield Picture(name, stamp, drawn.copy(), f'image {number} of {name}')


def with_reaction(
    path: MarkerPath, name: str, amplitude: float, times: np.ndarray, load: np.ndarray
) -> MarkerPath:
    """
    Return a path in which one marker also moves vertically in proportion to a load.

    For a boom that was simulated on a fixed truck: a real truck gives way in proportion to the
    bending moment at the foot of the boom, to which the strain of the first beam is proportional.

    Parameters
    ----------
    path : MarkerPath
    name : str
        Name of the marker.
    amplitude : float
        Half the distance between the highest and lowest position [m].
    times : ndarray, shape (K,)
        Increasing times of the load [s].
    load : ndarray, shape (K,)
        Load in any unit, positive upwards; constant before and after these times.

    Raises
    ------
    InputError
        If the marker is not in the path or moves in it, or the load does not change.
    """
    path.of([name])
    k = path.names.index(name)
    span = float(np.ptp(load)) if load.size else 0.0
    if not (math.isfinite(span) and span > 0.0):
        raise InputError(
            f'the load that moves {name} does not change; use a run with a changing load'
        )
    motion = [path.at(time) for time in path.times]
    positions = np.array([position for position, _ in motion])
    velocities = np.array([velocity for _, velocity in motion])
    moved = float(np.ptp(positions[:, k], axis=0).max())
    if moved > _AT_REST:
        raise InputError(
            f'{name} moves by {1e3 * moved:.3g} mm in the recording itself, allowed for a motion'
            f' added by the strain: a marker at rest; leave --reaction out'
        )
    rise = 2.0 * amplitude * (np.interp(path.times, times, load) - load[0]) / span
    positions[:, k, 2] += rise
    if path.times.size > 1:
        velocities[:, k, 2] += np.gradient(rise, path.times)
    return MarkerPath(path.names, path.times, positions, velocities)


# --- the tracker -----------------------------------------------------------------------------


def follow(follower: Follower, pictures: Iterable[Picture]) -> Iterator[Followed]:
    """
    Track markers in images, pair by pair.

    If the images end with an error, the complete pairs are yielded first, then the error is
    raised.

    Parameters
    ----------
    follower : Follower
    pictures : iterable of Picture
        Images of the rig's cameras, each in the order of time.

    Raises
    ------
    InputError
        For an image of another size than its camera, a marker's pixel outside the image, a time
        that
            goes back, and errors of the source.
    LongreachError
        Errors of the source of the images.
    """
    follower.tracker.rig.check_pixels()
    trackers = follower.tracker.trackers
    for ready in _paired(follower.tracker.rig, pictures):
        windows = {
            camera: _windows(trackers[camera], time) for camera, time in ready.times.items()
        }
        yield Followed(ready, follower.update(ready), windows)


def _windows(tracker: CameraTracker, time: float) -> dict[str, tuple[float, float, float]]:
    """Return the search windows of a camera's markers at a time [s]."""
    found = {}
    for name, track in tracker.tracks.items():
        expected = tracker.predict(name, time)
        u, v = expected.center.tolist()
        found[name] = (u, v, expected.reach + track.reference.radius)
    return found


def _paired(rig: Rig, pictures: Iterable[Picture]) -> Iterator[ImageSet[np.ndarray]]:
    """Yield paired images."""
    pairs: ImagePairs[np.ndarray] = ImagePairs(
        tuple(rig.cameras), rig.tracking.gap, TIMEOUT, size=lambda image: image.nbytes
    )
    delays = rig.delays
    try:
        for camera, stamp, image, name in pictures:
            _check_size(rig, camera, image, name)
            ready = pairs.add(camera, stamp - delays[camera], image)
            if pairs.restarts:
                # The waiting images have the new time.
                pairs.clear()
                raise InputError(
                    f'{name}: time goes back to {stamp / _SECOND:.3f} s, allowed: one run with'
                    ' increasing times; record each run in its own bag, or play this one to the'
                    ' tracker node, which starts again: longreach bag play'
                )
            yield from ready
    except LongreachError:
        yield from pairs.finish()
        raise
    yield from pairs.finish()


def _check_size(rig: Rig, camera: str, image: np.ndarray, name: str) -> None:
    """Raise InputError for an image whose size differs from its camera's."""
    own = rig.cameras[camera].camera
    if image.shape != (own.height, own.width):
        raise InputError(f'{name}: {size_error(image, own, camera, scale=None)}')
