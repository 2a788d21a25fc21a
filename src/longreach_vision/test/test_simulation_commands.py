"""``render`` and ``simulate``: occluders, and what stays of a run that ends."""

import cv2
import numpy as np
import pytest
from small_commands import FRAMES, call, full_disk, printed, rendering, small_path
from small_rig import frame_at, small_rig
from test_camera_simulator import AHEAD, PINHOLE, RING

from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.tables import read_table
from longreach_markers import Followed, ImageSet, open_source
from longreach_vision.commands import vision_commands
from longreach_vision.io import picture_files
from longreach_vision.io.bag_files import read_tracks
from longreach_vision.io.picture_files import VIDEOS, render_sequence, writing_overlay
from longreach_vision.simulator.camera_simulator import (
    CameraSimulator,
    drawn_pictures,
    frame_rng,
    frame_times,
)
from longreach_vision.simulator.marker_path import MarkerPath
from longreach_vision.simulator.scene import CameraLook, Scene


def test_the_summary_says_why_a_marker_was_not_tracked(capsys, scene, tmp_path):
    # A bar over all of one in both images for some of the time.
    rig = small_rig()
    bars = []
    for name, mounted in rig.cameras.items():
        u, v = mounted.camera.project(mounted.pose.to_camera((-0.5, 0.0, 0.1)))
        bars.append(
            f'  - {{start: [{u:.1f}, {v - 40:.1f}], end: [{u:.1f}, {v + 40:.1f}], width: 60,'
            f' camera: {name}, appears: 0.1, vanishes: 0.3}}\n'
        )
    look = tmp_path / 'look.yaml'
    look.write_text('clutter: 0\noccluders:\n' + ''.join(bars))
    out = tmp_path / 'out'
    words = ('simulate', scene / 'path.csv', '--rig', scene / 'rig.yaml', '--look', look)
    told = printed(capsys, *words, '--out', out)
    one, two = told['markers']
    assert two['reasons'] == []
    assert one['lost'] == 3
    assert sum(row['images'] for row in one['reasons']) == one['lost'] + one['uncertain']
    # The bag has them, and the table none: it is of numbers.
    recorded = [row['reasons'] for row in read_tracks(out / 'tracks').summary()]
    assert recorded == [one['reasons'], []]
    assert len(read_table(out / 'tracks.csv', gaps=True)['time']) == FRAMES
    capsys.readouterr()
    call(*words)
    text = capsys.readouterr().out
    assert 'not tracked, by reason:' in text
    for row in one['reasons']:
        assert f'  one, {row["images"]} images: {row["reason"]}\n' in text
    # Hidden markers say nothing about left and right.
    assert told['advice'] == ''


# --- what stays of a run that ends ------------------------------------------------------------


@pytest.mark.parametrize('kind', [KeyboardInterrupt, SystemExit])
def test_an_interrupted_run_leaves_nothing(monkeypatch, scene, tmp_path, kind):
    def interrupted(*arguments):
        for number, picture in enumerate(drawn_pictures(*arguments)):
            if number == 9:
                # The bag and the pictures are there, under other names.
                begun = ('.mcap', '.jpg', '.avi', '.png')
                assert [one for one in tmp_path.rglob('*.*') if one.suffix in begun]
                raise kind
            yield picture

    for module in (vision_commands, picture_files):
        monkeypatch.setattr(module, 'drawn_pictures', interrupted)
    path = (scene / 'path.csv', *rendering(scene))
    out, mine = tmp_path / 'new/run', tmp_path / 'mine'
    for words in (
        ('simulate', *path, '--out', out, '--overlay', tmp_path / 'seen'),
        ('simulate', *path, '--overlay', tmp_path / 'seen.avi', '--csv', tmp_path / 'a.csv'),
        ('render', *path, '--out', out),
    ):
        with pytest.raises(kind):
            call(*words)
        assert not list(tmp_path.iterdir())
    mine.mkdir()
    with pytest.raises(kind):
        call('simulate', *path, '--bag', tmp_path / 'bag', '--out', mine, '--csv', '/dev/null')
    assert sorted(path.name for path in tmp_path.rglob('*')) == ['mine']


# --- sequences of pictures, and overlays ---------------------------------------------------------


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
        ({'path': sway().of(['other'])}, "marker of the path = 'ring', allowed: other"),
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


@pytest.mark.parametrize('ending', ['', *VIDEOS])
def test_a_disk_that_is_full_is_noticed(tmp_path, ending):
    sets = [followed(k) for k in range(12)]
    text = r'of 12 images \d+ can be .* the disk full' if ending else '000.jpg .*the disk full'
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
