"""Simulated images of a motion as folders or videos, complete or absent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_tools.output import writing_directory
from longreach_vision.io.picture_files import Folder, Video
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
    for name, one in simulators.items():
        width, height = one.camera.width, one.camera.height
        if video and (width % 2 or height % 2):
            raise InputError(
                f'video of {width} x {height} px of {name}, allowed: even numbers, as videos lose'
                ' an odd row or column; write pictures, or scale the camera'
            )
    with writing_directory(directory) as unfinished:
        unfinished.mkdir()
        files = {name: f'{name}.avi' if video else name for name in simulators}
        rate = (len(at) - 1) / (at[-1] - at[0]) if len(at) > 1 else 1.0
        folders, videos = {}, {}
        for name, one in simulators.items():
            place, target = unfinished / files[name], directory / files[name]
            if video:
                shape = one.camera.height, one.camera.width
                videos[name] = Video(place, target, 'FFV1', rate, shape)
            else:
                folders[name] = Folder(place, target, '.png')
        for picture in drawn_pictures(simulators, path, np.array(at), delays):
            if video:
                videos[picture.camera].write(picture.image)
            else:
                folders[picture.camera].write(picture.image, picture.stamp / 1e9)
        for written in videos.values():
            written.close()
        rows = ''.join(f'{time!r}\n' for time in at)
        (unfinished / 'times.csv').write_text('time\n' + rows, encoding='utf-8')
    return {name: directory / file for name, file in files.items()}
