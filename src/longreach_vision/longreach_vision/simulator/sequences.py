"""Sequences of simulated images of a moving scene."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_markers.io.pictures import Picture
from longreach_markers.rig import Rig
from longreach_vision.simulator.camera_simulator import CameraSimulator, frame_rng
from longreach_vision.simulator.marker_path import FrameTimes, MarkerPath
from longreach_vision.simulator.scene import CameraLook, scene_of

_SECOND = 1_000_000_000  # [ns]


def simulators_of(rig: Rig, look: CameraLook) -> dict[str, CameraSimulator]:
    """Return simulators of the cameras of a rig."""
    scene = scene_of(rig, look)
    return {
        name: CameraSimulator(
            mounted.camera.replace(name=name), mounted.pose, scene, line_time=mounted.line_time
        )
        for name, mounted in rig.cameras.items()
    }


def frame_times(path: MarkerPath, rate: float, duration: float | None = None) -> np.ndarray:
    """Return the times k / rate within a path, shape (K,) [s]."""
    begin, end = path.times[[0, -1]].tolist()
    if begin < 0.0:
        raise InputError(
            f'path of [{begin:g}, {end:g}] s, allowed: times from 0 on; add the same to all of'
            ' them'
        )
    times = FrameTimes(rate)
    number = times.number_after(round(begin * _SECOND) - 1)
    first, last = times.stamp(number), round(end * _SECOND)
    if first > last:
        raise InputError(
            f'no image at {rate:g} Hz falls on the path of [{begin:g}, {end:g}] s; raise --rate'
        )
    stamps = []
    # Half a nanosecond more: 4.1 * 1e9 is less than 4,100,000,000.
    limit = math.inf if duration is None else duration * _SECOND + 0.5
    while (stamp := times.stamp(number)) <= last and stamp - first <= limit:
        stamps.append(stamp)
        number += 1
    return np.array(stamps) / _SECOND


def drawn_pictures(
    simulators: Mapping[str, CameraSimulator],
    path: MarkerPath,
    times: np.ndarray,
    delays: Mapping[str, int] | None = None,
) -> Iterator[Picture]:
    """Yield simulated images of a path."""
    paths = {name: path.of(one.scene.names) for name, one in simulators.items()}
    for number, time in enumerate(times.tolist()):
        for name, simulator in simulators.items():
            rng = frame_rng(simulator.scene.look.seed, name, number)
            drawn = simulator.image(*paths[name].at(time), time, rng)
            # The simulator reuses its buffer for the next picture.
            stamp = round(time * _SECOND) + (delays or {}).get(name, 0)
            yield Picture(name, stamp, drawn.copy(), f'image {number} of {name}')
