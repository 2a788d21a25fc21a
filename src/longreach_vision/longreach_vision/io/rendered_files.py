"""Simulated images of a motion as folders of pictures, complete or absent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_tools.output import writing_directory
from longreach_vision.io.picture_files import Folder
from longreach_vision.simulator.camera_simulator import CameraSimulator
from longreach_vision.simulator.marker_path import MarkerPath
from longreach_vision.simulator.sequences import drawn_pictures


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
            name: Folder(unfinished / name, directory / name, '.png') for name in simulators
        }
        for picture in drawn_pictures(simulators, path, np.array(at), delays):
            folders[picture.camera].write(picture.image, picture.stamp / 1e9)
        rows = ''.join(f'{time!r}\n' for time in at)
        (unfinished / 'times.csv').write_text('time\n' + rows, encoding='utf-8')
