"""``track-all``: many recordings, one that is bad, and a second call that goes on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from small_commands import call, make_scene, refused


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    """Return a folder with three recordings, one of them without pictures of a camera."""
    scene = make_scene(tmp_path)
    (scene / 'seen').rename(scene / 'monday')
    shutil.copytree(scene / 'monday', scene / 'tuesday')
    shutil.copytree(scene / 'monday', scene / 'broken')
    for picture in (scene / 'broken/right').iterdir():
        picture.unlink()
    return scene


def test_recordings_are_tracked_as_one_by_one(sessions: Path, capsys):
    names = ('monday', 'broken', 'tuesday')
    rig, out = sessions / 'rig.yaml', sessions / 'tracks'
    words = ('track-all', *(sessions / name for name in names), '--rig', rig, '--out', out)
    words += ('--format', 'json')
    capsys.readouterr()
    assert call(*words, '--processes', '2') == 1
    told = capsys.readouterr()
    found = json.loads(told.out)['recordings']
    assert [found[name]['status'] for name in names] == ['complete', 'failed', 'complete']
    assert 'broken: ' in told.err
    assert 'right' in found['broken']['message']
    assert found['monday']['summary']['markers']
    alone = sessions / 'alone.csv'
    images = (sessions / 'monday/left', sessions / 'monday/right')
    call('track', *images, '--rig', rig, '--csv', alone)
    for name in ('monday', 'tuesday'):
        assert (out / f'{name}.csv').read_bytes() == alone.read_bytes()
    # A second call tracks only what has no table.
    (out / 'tuesday.csv').unlink()
    before = (out / 'monday.csv').stat().st_mtime_ns
    capsys.readouterr()
    assert call(*words, '--processes', '1') == 1
    found = json.loads(capsys.readouterr().out)['recordings']
    assert found['monday'] == {
        'status': 'complete', 'file': str(out / 'monday.csv'), 'message': '', 'summary': {},
    }  # fmt: skip
    assert (out / 'monday.csv').stat().st_mtime_ns == before
    assert (out / 'tuesday.csv').read_bytes() == alone.read_bytes()


def test_recordings_that_are_refused(sessions: Path):
    out = ('--rig', sessions / 'rig.yaml', '--out', sessions / 'tracks')
    refused('nothing does not exist', 'track-all', sessions / 'nothing', *out)
    (sessions / 'other').mkdir()
    shutil.copytree(sessions / 'monday', sessions / 'other/monday')
    twice = (sessions / 'monday', sessions / 'other/monday')
    refused('have the names monday twice', 'track-all', *twice, *out)
    shutil.rmtree(sessions / 'monday/right')
    refused('no video and no folder named right', 'track-all', sessions / 'monday', *out)
    (sessions / 'tuesday/left.avi').touch()
    refused('has left and left.avi', 'track-all', sessions / 'tuesday', *out)
    assert not (sessions / 'tracks').exists()
