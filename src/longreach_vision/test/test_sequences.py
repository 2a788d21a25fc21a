"""Sequences of pictures: their times, as folders (all or nothing), and as tracked."""

import cv2
import numpy as np
import pytest
from small_commands import full_disk, small_path
from small_rig import frame_at, small_rig
from test_camera_simulator import AHEAD, PINHOLE, RING

from longreach_dynamics.errors import InputError, LongreachError
from longreach_markers.io.image_sources import open_source
from longreach_markers.tracking.follower import Followed
from longreach_markers.tracking.image_sets import ImageSet
from longreach_vision.io.picture_files import VIDEOS, render_sequence, writing_overlay
from longreach_vision.simulator.camera_simulator import CameraSimulator, frame_rng, frame_times
from longreach_vision.simulator.marker_path import MarkerPath
from longreach_vision.simulator.scene import CameraLook, Scene

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


def followed(k, rate=15.0, cameras=('left', 'right'), seen=True):
    """Return pair k of noisy images, of some cameras, in which markers are seen or not."""
    noise = np.random.default_rng(k).integers(0, 255, (300, 400), np.uint8, endpoint=True)
    frame = frame_at(k / rate)
    if not seen:
        frame.observations.clear()
    stamps = dict.fromkeys(cameras, round(1e9 * k / rate))
    return Followed(ImageSet(stamps, dict.fromkeys(cameras, noise), False), frame, {})


def overlaid(target, sets):
    with writing_overlay(target, small_rig()) as write:
        for one in sets:
            write(one)


def frames_in(file):
    with open_source(str(file)) as source:
        return sum(1 for _ in source)


@pytest.mark.parametrize('ending', VIDEOS)
def test_a_video_has_every_pair_whatever_was_seen(tmp_path, ending):
    sets = [followed(k, seen=k > 2) for k in range(9)]
    sets[0], sets[5] = followed(0, cameras=('right',)), followed(5, cameras=('left',))
    overlaid(tmp_path / f'over{ending}', sets)
    assert frames_in(tmp_path / f'over{ending}') == 9


@pytest.mark.parametrize('ending', VIDEOS)
def test_a_disk_that_is_full_is_noticed(tmp_path, ending):
    sets = [followed(k) for k in range(12)]
    text = r'of 12 images \d+ can be .* the disk full'
    with full_disk(100_000), pytest.raises(LongreachError, match=text):
        overlaid(tmp_path / f'over{ending}', sets)
    assert list(tmp_path.iterdir()) == []


def test_the_rate_of_a_video_is_not_that_of_a_gap_at_its_start(tmp_path):
    overlaid(tmp_path / 'over.avi', [followed(k) for k in (0, *range(8, 31))])
    with open_source(str(tmp_path / 'over.avi')) as source:
        assert source.frame_rate == pytest.approx(15.0, rel=1e-6)
        assert sum(1 for _ in source) == 24


@pytest.mark.parametrize('ending', VIDEOS)
@pytest.mark.parametrize(('rate', 'end'), [(1e-3, 2.1e-3), (1e5, 900.0)])
def test_rates_beyond_those_of_videos_and_at_their_ends(tmp_path, ending, rate, end):
    overlaid(tmp_path / f'at_end{ending}', [followed(k, end) for k in range(12)])
    assert frames_in(tmp_path / f'at_end{ending}') == 12
    with pytest.raises(InputError, match=rf'{rate:g} images per .* \[0\.002, 1000\] Hz'):
        overlaid(tmp_path / f'over{ending}', [followed(k, rate) for k in range(2)])
