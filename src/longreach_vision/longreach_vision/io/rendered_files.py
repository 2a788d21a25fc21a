"""Simulated images of a motion as folders or videos, complete or absent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import cv2
import numpy as np

from longreach_dynamics.errors import InputError, LongreachError
from longreach_markers.camera.model import Camera
from longreach_markers.io.pictures import Picture
from longreach_tools.output import writing_directory
from longreach_vision.simulator.camera_simulator import CameraSimulator
from longreach_vision.simulator.marker_path import MarkerPath
from longreach_vision.simulator.sequences import drawn_pictures


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
    at = [float(time) for time in times]
    late = {name: 1e-9 * (delays or {}).get(name, 0) for name in simulators}
    if (video and any(late.values())) or at[0] + min(late.values()) < 0.0:
        raise InputError(
            f'delays of {late} s and a first time of {at[0]:g} s, allowed: stamps from 0 s on, and'
            ' no delays in videos, which have no stamps; write pictures, or begin later'
        )
    directory = Path(out_dir)
    with writing_directory(directory) as unfinished:
        unfinished.mkdir()
        rate = (len(at) - 1) / (at[-1] - at[0]) if len(at) > 1 else 1.0
        writers: dict[str, _Video | _Folder] = {
            name: _Video(unfinished / f'{name}.avi', one.camera, rate)
            if video
            else _Folder(unfinished / name)
            for name, one in simulators.items()
        }
        for picture in drawn_pictures(simulators, path, np.array(at), delays):
            writers[picture.camera].write(picture)
        # Videos are complete when they are closed.
        writers.clear()
        rows = ''.join(f'{time!r}\n' for time in at)
        (unfinished / 'times.csv').write_text('time\n' + rows, encoding='utf-8')
    return {name: directory / (f'{name}.avi' if video else name) for name in simulators}


class _Folder:
    """A new folder of pictures."""

    def __init__(self, path: Path) -> None:
        self._path, self._count = path, 0
        path.mkdir()

    def write(self, picture: Picture) -> None:
        """Write the next picture."""
        name = f'{self._count:06d}_{picture.stamp / 1e9:.9f}.png'
        if not cv2.imwrite(str(self._path / name), picture.image):
            raise LongreachError(f'{self._path} cannot be written; is the disk full?')
        self._count += 1


class _Video:
    """A new video of a camera with a rate [Hz]."""

    def __init__(self, path: Path, camera: Camera, rate: float) -> None:
        size = camera.width, camera.height
        if camera.width % 2 or camera.height % 2:
            raise InputError(
                f'video of {size[0]} x {size[1]} px of {path.stem}, allowed: even numbers, as'
                ' videos lose an odd row or column; write pictures, or scale the camera'
            )
        self._video = cv2.VideoWriter(
            str(path), cv2.VideoWriter.fourcc(*'FFV1'), rate, size, False
        )
        if not self._video.isOpened():
            raise LongreachError(
                'videos cannot be written: this OpenCV has no FFV1 codec; use pictures'
            )

    def write(self, picture: Picture) -> None:
        """Write the next picture."""
        self._video.write(picture.image)
