"""Motion of the markers of the small rig, and rigs that differ from others."""

import dataclasses
import math

import numpy as np
from small_rig import NAMES, START

from longreach_tools.output import write_csv
from longreach_vision.simulator.marker_path import MarkerPath


def small_path(duration=0.5, speed=1.0):
    """Return a path: one rests, two swings up and down by 5 cm, from rest."""
    times = np.linspace(0.0, duration, round(100 * duration) + 1)
    positions = np.repeat(START[None], len(times), axis=0)
    positions[:, 1, 2] += 0.05 * (1.0 - np.cos(2.0 * math.pi * speed * times))
    return MarkerPath(NAMES, times, positions)


def write_path(path, file):
    names = ['time', *(f'{name}.{axis}' for name in path.names for axis in 'xyz')]
    places = np.array([path.at(time)[0].ravel() for time in path.times])
    write_csv(file, names, np.column_stack([path.times, places]))
    return file


def placed(rig, places):
    pairs = zip(rig.markers, places.tolist(), strict=True)
    markers = tuple(marker.replace(position=tuple(place)) for marker, place in pairs)
    return dataclasses.replace(rig, markers=markers)


def with_camera(rig, name, **changes):
    changed = dataclasses.replace(rig.cameras[name], **changes)
    return dataclasses.replace(rig, cameras={**rig.cameras, name: changed})
