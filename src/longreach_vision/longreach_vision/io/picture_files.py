"""Folders of pictures, complete or absent: simulated images, and overlays of tracked ones."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import cv2
import numpy as np

from longreach_dynamics.errors import InputError, LongreachError
from longreach_markers.io.overlay import draw_cameras
from longreach_markers.rig import Rig
from longreach_markers.tracking.follower import Followed
from longreach_tools.output import writing_directory
from longreach_vision.simulator.camera_simulator import CameraSimulator
from longreach_vision.simulator.marker_path import MarkerPath
from longreach_vision.simulator.sequences import drawn_pictures

# Largest width of one camera's part of an overlay [px].
_WIDTH = 1226


class _Folder:
    """A new folder of pictures, which are named by number and time; ``target`` is for errors."""

    def __init__(self, folder: Path, target: Path, suffix: str) -> None:
        self._folder, self._target, self._suffix = folder, target, suffix
        self._count = 0
        folder.mkdir()

    def write(self, picture: np.ndarray, time: float) -> None:
        """Write the next picture, with its time [s]."""
        name = f'{self._count:06d}_{time:.9f}{self._suffix}'
        if not cv2.imwrite(str(self._folder / name), picture):
            raise LongreachError(f'{self._target / name} cannot be written; is the disk full?')
        self._count += 1


@contextlib.contextmanager
def writing_overlay(target: Path, rig: Rig) -> Iterator[Callable[[Followed], None]]:
    """Yield a function that adds the overlay of an image pair to a new folder of pictures."""
    if target.suffix:
        raise InputError(
            f'--overlay {target}, allowed: a folder of pictures; ffmpeg makes a video of them:'
            f" ffmpeg -framerate 15 -pattern_type glob -i '{target.with_suffix('')}/*.jpg'"
            f' {target}'
        )
    with writing_directory(target) as place:
        folder = _Folder(place, target, '.jpg')

        def write(one: Followed) -> None:
            images, seen = one.images, one.frame.observations
            picture = draw_cameras(
                rig.cameras, images.images, images.times, seen, _WIDTH, one.windows
            )
            folder.write(picture, one.frame.time)

        yield write


def render_sequence(
    simulators: Mapping[str, CameraSimulator],
    path: MarkerPath,
    times: Sequence[float] | np.ndarray,
    out_dir: str | Path,
    delays: Mapping[str, int] | None = None,
) -> None:
    """
    Render what cameras see of a path: a folder NAME each, and times.csv; delays in [ns].

    Pictures are named by number and stamp [s]: 000000_0.000000000.png, ...
    """
    at = [float(time) for time in times]
    late = {name: 1e-9 * (delays or {}).get(name, 0) for name in simulators}
    if at[0] + min(late.values()) < 0.0:
        raise InputError(
            f'delays of {late} s and a first time of {at[0]:g} s, allowed: stamps from 0 s on;'
            ' begin later'
        )
    directory = Path(out_dir)
    with writing_directory(directory) as unfinished:
        unfinished.mkdir()
        folders = {
            name: _Folder(unfinished / name, directory / name, '.png') for name in simulators
        }
        for picture in drawn_pictures(simulators, path, np.array(at), delays):
            folders[picture.camera].write(picture.image, picture.stamp / 1e9)
        rows = ''.join(f'{time!r}\n' for time in at)
        (unfinished / 'times.csv').write_text('time\n' + rows, encoding='utf-8')
