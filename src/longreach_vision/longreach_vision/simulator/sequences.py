"""Sequences of simulated images of a moving scene: in memory, or as folders or videos."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import cv2
import numpy as np

from longreach_dynamics.errors import InputError, LongreachError
from longreach_markers.camera.model import Camera
from longreach_markers.io.pictures import Picture
from longreach_markers.rig import Rig
from longreach_vision.simulator.camera_simulator import CameraSimulator, frame_rng
from longreach_vision.simulator.marker_path import FrameTimes, MarkerPath, frames_of
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
    """Yield simulated images of a path."""
    paths = {name: path.of(one.scene.names) for name, one in simulators.items()}
    for number, time in enumerate(times.tolist()):
        for name, simulator in simulators.items():
            rng = frame_rng(simulator.scene.look.seed, name, number)
            drawn = simulator.image(*paths[name].at(time), time, rng)
            # The simulator reuses its buffer for the next picture.
            stamp = round(time * _SECOND) + (delays or {}).get(name, 0)
            yield Picture(name, stamp, drawn.copy(), f'image {number} of {name}')


def render_sequence(
    simulators: Mapping[str, CameraSimulator],
    path: MarkerPath,
    times: Sequence[float] | np.ndarray,
    out_dir: str | Path,
    *,
    video: bool = False,
    delays: Mapping[str, int] | None = None,
) -> dict[str, Path]:
    """
    Render what cameras see of a path: a folder NAME or a lossless NAME.avi each, and times.csv.

    Pictures are named by number and stamp [s]: 000000_0.000000000.png, ...
    """
    at = np.array(times, dtype=np.float64)
    if at.ndim != 1 or not (at.size and np.isfinite(at).all() and at[0] >= 0.0):
        raise InputError(f'times of shape {at.shape}, allowed: one or more numbers from 0 on')
    if (np.diff(at) <= 0.0).any():
        raise InputError('times do not increase; sort them, and remove duplicates')
    for simulator in simulators.values():
        path.of(simulator.scene.names)
    for time in (at[0], at[-1]):
        path.at(time)
    late = {name: 1e-9 * (delays or {}).get(name, 0) for name in simulators}
    if video:
        _check_sizes(simulators)
    if (video and any(late.values())) or at[0] + min(late.values()) < 0.0:
        raise InputError(
            f'delays of {late} s and a first time of {at[0]:g} s, allowed: stamps from 0 s on, and'
            ' no delays in videos, which have no stamps; write pictures, or begin later'
        )
    directory = Path(out_dir)
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise InputError(f'{directory} is not empty; give a new directory')
    # Renamed only when it is complete.
    unfinished = directory.with_name(f'.{directory.name}.{os.getpid()}')
    try:
        unfinished.mkdir(parents=True)
        rate = (at.size - 1) / (at[-1] - at[0]) if at.size > 1 else 1.0
        writers = {
            name: _Writer(unfinished / name, simulator.camera, rate if video else None)
            for name, simulator in simulators.items()
        }
        for picture in drawn_pictures(simulators, path, at, delays):
            writers[picture.camera].write(picture.image, picture.stamp / _SECOND)
        for writer in writers.values():
            writer.close()
        rows = ''.join(f'{float(time)!r}\n' for time in at)
        (unfinished / 'times.csv').write_text('time\n' + rows, encoding='utf-8')
        if directory.exists():
            directory.rmdir()
        unfinished.rename(directory)
    except OSError as error:
        raise InputError(f'{directory} cannot be written: {error.strerror}') from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return {name: directory / (f'{name}.avi' if video else name) for name in simulators}


def _check_sizes(simulators: Mapping[str, CameraSimulator]) -> None:
    """Raise InputError for odd sizes, of which a video would lose the last row or column."""
    for name, simulator in simulators.items():
        width, height = simulator.camera.width, simulator.camera.height
        if width % 2 or height % 2:
            raise InputError(
                f'video of {width} x {height} px of {name}, allowed: even numbers, as videos lose'
                ' an odd row or column; write pictures, or scale the camera'
            )


class _Writer:
    """A folder of pictures, or a video if a rate [Hz] is given."""

    def __init__(self, path: Path, camera: Camera, rate: float | None) -> None:
        self._path = path
        self._count = 0
        self._video: cv2.VideoWriter | None = None
        if rate is None:
            path.mkdir()
            return
        code = cv2.VideoWriter.fourcc(*'FFV1')
        size = (camera.width, camera.height)
        self._video = cv2.VideoWriter(str(path.with_suffix('.avi')), code, rate, size, False)
        if not self._video.isOpened():
            raise LongreachError(
                'videos cannot be written: this OpenCV has no FFV1 codec; use pictures'
            )

    def write(self, picture: np.ndarray, time: float) -> None:
        """Write the next picture, with its time [s]."""
        name = f'{self._count:06d}_{time:.9f}.png'
        if self._video is not None:
            self._video.write(picture)
        elif not cv2.imwrite(str(self._path / name), picture):
            raise LongreachError(f'{self._path} cannot be written; is the disk full?')
        self._count += 1

    def close(self) -> None:
        """Close the video."""
        if self._video is not None:
            self._video.release()
