"""``longreach_vision.track``: positions of markers in three lines."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest
from small_commands import make_scene
from small_path import small_path
from small_rig import START

import longreach_vision as lv
from longreach_dynamics.errors import InputError
from longreach_markers.rig import load_rig


@pytest.fixture(scope='module')
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_scene(tmp_path_factory.mktemp('scene'))


def test_positions_of_markers_in_both_folders(scene: Path) -> None:
    path, count = small_path(0.5), 0
    for frame in lv.track(scene / 'rig.yaml', scene / 'seen/left', scene / 'seen/right'):
        truth = path.at(frame.time)[0]
        for k, name in enumerate(('one', 'two')):
            marker = frame.estimates[name]
            assert marker.status == 'TRACKED'
            assert np.abs(marker.in_plane.position - truth[k]).max() < 1e-3
        count += 1
    assert count == 8


def test_one_camera_suffices(scene: Path) -> None:
    rig = load_rig(scene / 'rig.yaml')
    right = dataclasses.replace(rig, cameras={'right': rig.cameras['right']})
    frames = list(lv.track(right, scene / 'seen/right', rate=15.0))
    assert frames[0].estimates['one'].cameras == ('right',)
    assert np.abs(frames[0].estimates['one'].in_plane.position - START[0]).max() < 1e-3


def test_a_picture_that_cannot_be_read_is_told(scene: Path, tmp_path: Path) -> None:
    seen = tmp_path / 'left'
    shutil.copytree(scene / 'seen/left', seen)
    cut = sorted(seen.iterdir())[3]
    cut.write_bytes(cut.read_bytes()[:100])
    with pytest.warns(UserWarning, match=cut.name):
        frames = list(lv.track(scene / 'rig.yaml', seen, scene / 'seen/right'))
    assert len(frames) == 8


@pytest.mark.parametrize(
    ('sources', 'text'),
    [((), '0 sources, allowed: 1 to 2, for left, right'), (('a', 'b', 'c'), '3 sources')],
)
def test_a_wrong_number_of_sources_is_refused(scene: Path, sources, text) -> None:
    with pytest.raises(InputError, match=text):
        next(lv.track(scene / 'rig.yaml', *sources))
