"""Subcommands of ``longreach vision`` called in this process, and pictures of the small rig."""

import argparse
import contextlib
import json
import re
import resource

import pytest
from rig_files import write_rig
from small_path import small_path, write_path
from small_rig import small_rig

from longreach_dynamics.errors import InputError, LongreachError
from longreach_vision.commands.vision_commands import configure

FRAMES = 8  # of half a second at 15 Hz


def call(*words):
    parser = argparse.ArgumentParser(prog='longreach vision')
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
