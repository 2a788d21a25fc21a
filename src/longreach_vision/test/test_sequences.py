"""Sequences of pictures: their times, as folders (all or nothing), and as tracked."""

import cv2
import numpy as np
import pytest
from small_commands import full_disk
from small_path import small_path
from test_camera_simulator import AHEAD, PINHOLE, RING

from longreach_dynamics.errors import InputError, LongreachError
from longreach_vision.io.picture_files import render_sequence
from longreach_vision.simulator.camera_simulator import CameraSimulator, frame_rng
from longreach_vision.simulator.marker_path import MarkerPath
from longreach_vision.simulator.scene import CameraLook, Scene
from longreach_vision.simulator.sequences import frame_times

LOOK = CameraLook(clutter=3)
SCENE = Scene((RING,), LOOK)


def simulator(name):
    return CameraSimulator(PINHOLE.replace(name=name), AHEAD, SCENE)


def sway():
    times = np.linspace(0.0, 1.0, 11)
    places = np.zeros((11, 2, 3))
    places[:, :, 1] = 8.0
    places[:, 1, 0] = 0.1 * np.sin(6.0 * times)
    return MarkerPath(('other', 'ring'), times, places)


def test_a_sequence_is_what_single_pictures_are(tmp_path):
    simulators = {name: simulator(name) for name in ('left', 'right')}
    times = [0.0, 0.25, 0.5, 1.0]
    # A directory that is empty may be there.
    (tmp_path / 'run').mkdir()
    render_sequence(simulators, sway(), times, tmp_path / 'run')
    assert sorted(path.name for path in tmp_path.iterdir()) == ['run']
    assert (tmp_path / 'run' / 'times.csv').read_text() == 'time\n0.0\n0.25\n0.5\n1.0\n'
    for name in simulators:
        files = sorted((tmp_path / 'run' / name).iterdir())
        assert len(files) == 4
        assert files[1].name == '000001_0.250000000.png'
        rng = frame_rng(LOOK.seed, name, 2)
        expected = simulator(name).image(*sway().of(['ring']).at(0.5), 0.5, rng)
        assert np.array_equal(cv2.imread(str(files[2]), cv2.IMREAD_UNCHANGED), expected)


@pytest.mark.parametrize(
    ('options', 'text'),
    [
        ({'path': sway().of(['other'])}, "no marker 'ring', found: other"),
        ({'delays': {'left': -1}}, 'allowed: stamps from 0 s on'),
        ({'out_dir': 'full'}, 'full is not empty; give a new directory'),
    ],
)
def test_a_sequence_that_cannot_be_leaves_nothing(tmp_path, monkeypatch, options, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'full').mkdir()
    (tmp_path / 'full' / 'mine').write_text('')
    given = {'path': sway(), 'times': [0.0, 0.5], 'out_dir': 'a', **options}
    with pytest.raises(InputError, match=text):
        render_sequence({'left': simulator('left')}, **given)
    assert [path.name for path in tmp_path.rglob('*')] == ['full', 'mine']


def test_a_disk_that_is_full_is_noticed_and_leaves_nothing(tmp_path):
    times, left = np.linspace(0.0, 1.0, 30), {'left': simulator('left')}
    with full_disk(2_000), pytest.raises(LongreachError, match='is the disk full'):
        render_sequence(left, sway(), times, tmp_path / 'a')
    assert not list(tmp_path.iterdir())


def test_times_of_images_on_a_path():
    path = small_path(1.0)
    assert len(frame_times(path, 10.0)) == 11
    np.testing.assert_allclose(frame_times(path, 10.0, 0.3), [0.0, 0.1, 0.2, 0.3])
    # In nanoseconds it is a little less.
    assert frame_times(small_path(5.0), 10.0, 4.1)[-1] == 4.1

    # Between the ends of a path, of which rounding is no reason to leave an image out.
    def between(begin, end):
        rests = MarkerPath(('one',), np.array([begin, end]), np.zeros((2, 1, 3)))
        return frame_times(rests, 10.0).tolist()

    assert between(0.12, 0.43) == [0.2, 0.3, 0.4]
    assert between(0.1, 0.1 + 0.2) == [0.1, 0.2, 0.3]
    with pytest.raises(InputError, match=r'no image at 10 Hz falls on the path of \[0\.72, 0\.78'):
        between(0.72, 0.78)
    with pytest.raises(InputError, match=r'path of \[-0\.1, 0\.7\] s, allowed: times from 0 on'):
        between(-0.1, 0.7)
