"""Let tests import what they share, also with the tests of longreach_markers."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / 'longreach_markers/test')]


@pytest.fixture(scope='session')
def scene(tmp_path_factory):
    """A folder with the small rig, a path, and pictures of it; nothing may be changed in it."""
    from small_commands import make_scene

    return make_scene(tmp_path_factory.mktemp('scene'))
