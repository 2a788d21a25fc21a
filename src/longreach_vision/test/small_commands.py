"""Subcommands of ``longreach vision`` called in this process, and pictures of the small rig."""

import contextlib
import dataclasses
import json
import math
import re
import resource

import numpy as np
import pytest
from small_rig import NAMES, START, small_rig, write_rig

from longreach_dynamics.errors import InputError, LongreachError
from longreach_tools.cli import _Parser
from longreach_tools.output import write_csv
from longreach_vision.commands.vision_commands import configure
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


def only(rig, *names):
    return dataclasses.replace(rig, cameras={name: rig.cameras[name] for name in names})


FRAMES = 8  # of half a second at 15 Hz


def call(*words):
    parser = _Parser(prog='longreach vision')
    configure(parser)
    arguments = parser.parse_args([str(word) for word in words])
    return arguments.run(arguments) or 0


def printed(capsys, *words, fails='', kind=LongreachError):
    """What a call prints as JSON, also if it then fails."""
    capsys.readouterr()
    failure = pytest.raises(kind, match=fails or None)
    with failure if fails else contextlib.nullcontext():
        call(*words, '--format', 'json')
    return json.loads(capsys.readouterr().out, parse_constant=pytest.fail)


def refused(text, *words, kind=InputError):
    with pytest.raises(kind, match=re.escape(text)) as info:
        call(*words)
    assert '\n' not in str(info.value)


def make_scene(folder, rig=None, path=None, late=None):
    """Fill a folder with a rig, a path, and pictures of it, by cameras that may be ``late``."""
    write_rig(rig or small_rig(), folder / 'rig.yaml')
    write_rig(late or rig or small_rig(), folder / 'late.yaml')
    write_path(path or small_path(0.5), folder / 'path.csv')
    (folder / 'look.yaml').write_text('clutter: 10\nseed: 3\n')
    words = ('--rig', folder / 'late.yaml', '--look', folder / 'look.yaml')
    out = ('--rate', 30 if late else 15, '--out', folder / 'seen')
    call('render', folder / 'path.csv', *words, *out)
    return folder


def rendering(scene):
    return ('--rig', scene / 'rig.yaml', '--look', scene / 'look.yaml')


def tracking(scene):
    return ('track', scene / 'seen/left', scene / 'seen/right', '--config', scene / 'rig.yaml')


@contextlib.contextmanager
def full_disk(room):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
