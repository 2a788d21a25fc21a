"""The shipped launch file of the cameras, started as a user would, from the outside."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from longreach_dynamics.resources import share_directory
from longreach_markers.rig import load_rig
from longreach_markers.tracking.follower import Follower
from longreach_markers.tracking.image_sets import ImageSets
from longreach_tools.bag import read_bag
from longreach_tools.testing import contents, launch, longreach
from longreach_vision.io.bag_files import BagImages, read_tracks, read_truth
from longreach_vision.io.picture_files import render_sequence
from longreach_vision.io.track_table import row_of
from longreach_vision.simulator.camera_simulator import simulators_of
from longreach_vision.simulator.marker_path import MarkerPath
from longreach_vision.simulator.scene import CameraLook

SCALE = 0.5
DURATION = 1.0
# Images k / 15 s.
COUNT = 16
NAMES = ('truck', 'marker_1', 'marker_2', 'marker_3', 'marker_4')
FAST = ('boom:=true', f'scale:={SCALE}', 'real_time_factor:=0.0', f'duration:={DURATION}')


def rig():
    file = share_directory('longreach_vision') / 'config' / 'rig_boom.yaml'
    return load_rig(file).scaled(SCALE)


def replayed(bag):
    """Return the tracks that the library finds in the recorded images."""
    own = rig()
    follower = Follower(own)
    pairs = ImageSets(('left', 'right'), own.tracking.gap, 0.5)
    topics = {name: f'/vision/{name}/image_raw' for name in ('left', 'right')}
    sets = [
        ready
        for one in BagImages(bag, topics)
        for ready in pairs.add(one.camera, one.stamp, one.image)
    ]
    frames = [follower.update(ready) for ready in [*sets, *pairs.flush()]]
    return np.array([row_of(frame, NAMES) for frame in frames])


@pytest.mark.slow
def test_the_boom_is_tracked_and_its_images_give_the_same_tracks_again(tmp_path):
    with launch('vision', tmp_path, *FAST, 'record:=bag', 'record_images:=true') as running:
        assert running.wait() == 0, running.text()
    bag = tmp_path / 'bag'
    counts = {topic: len(messages) for topic, messages in contents(bag).items()}
    for topic in ('joint_states', 'hydraulics', 'strain', 'marker_truth'):
        assert counts[f'/boom/{topic}'] == round(DURATION * 200.0) + 1
    for topic in ('image_raw', 'camera_info'):
        assert counts[f'/vision/left/{topic}'] == counts[f'/vision/right/{topic}'] == COUNT
    assert (counts['/vision/observations'], counts['/vision/markers']) == (2 * COUNT, COUNT)
    messages = {topic: message for topic, _, message in read_bag(bag)}
    frames = {k: one.header.frame_id for k, one in messages.items() if hasattr(one, 'header')}
    assert frames['/vision/left/image_raw'] == 'vision/left_camera_optical'
    assert frames['/vision/right/camera_info'] == 'vision/right_camera_optical'
    assert frames['/vision/markers'] == frames['/boom/marker_truth'] == 'boom/boom_base'
    tracks, truth = read_tracks(bag), read_truth(bag)
    assert tracks.names == NAMES
    for name in NAMES:
        assert (tracks.column(name, 'status') == 0.0).all()
        assert (tracks.column(name, 'cameras') == 3.0).all()
    places = np.array([truth.of(NAMES).at(time)[0] for time in tracks.times])
    # The load of 90 kg came off.
    assert np.ptp(places[:, -1, 2]) > 0.1
    for k, name in enumerate(NAMES):
        for kind, limit in (('in_plane', 0.5e-3), ('triangulated', 4e-3)):
            assert np.abs(tracks.positions(name, kind) - places[:, k]).max() < limit, (name, kind)
    assert np.array_equal(tracks.table, replayed(bag), equal_nan=True)

    # One process gives the same numbers, and publishes no image that nobody asks for.
    with launch('vision', tmp_path, *FAST, 'record:=again', 'one_process:=true') as running:
        assert running.wait() == 0, running.text()
    again = contents(tmp_path / 'again')
    assert '/vision/left/image_raw' not in again
    assert len(again['/vision/observations']) == 2 * COUNT
    assert len(again['/vision/markers']) == COUNT
    # Not the bytes: those that pad strings are whatever was in memory.
    table = read_tracks(tmp_path / 'again').table
    assert np.array_equal(table, tracks.table, equal_nan=True)


def pictures(tmp_path, own, times):
    """Return the words of a launch that shows pictures of markers that rest, at times [s]."""
    places = np.array([[marker.position for marker in own.markers]])
    still = MarkerPath(own.names, np.array([0.0, 1.0]), np.repeat(places, 2, axis=0))
    look = CameraLook(clutter=0)
    render_sequence(simulators_of(own, look), still, times, tmp_path / 'pictures')
    videos = ' '.join(f'{name}={tmp_path}/pictures/{name}' for name in own.cameras)
    return (f'videos:={videos}',)


@pytest.mark.slow
@pytest.mark.parametrize('transport', ['raw', 'compressed'])
def test_pictures_are_shown_to_the_tracker(tmp_path, transport):
    own = rig()
    times = np.arange(10) / 10.0
    words = (*pictures(tmp_path, own, times), f'scale:={SCALE}', 'namespace:=yard', 'record:=bag')
    words = (*words, f'transport:={transport}')
    with launch('vision', tmp_path, *words) as running:
        assert running.wait() == 0, running.text()
    tracks = read_tracks(tmp_path / 'bag', 'yard')
    # Each camera begins when it is ready; times are those of the files.
    assert set(np.round(tracks.times, 9)) <= set(np.round(times, 9))
    for marker in own.markers:
        seen = tracks.column(marker.name, 'cameras') == 3.0
        assert seen.sum() > 3
        assert np.abs(tracks.positions(marker.name)[seen] - marker.position).max() < 1e-3


@pytest.mark.slow
def test_videos_of_three_cameras_are_tracked_and_recorded(tmp_path):
    config = share_directory('longreach_vision') / 'config'
    text = (config / 'rig_boom.yaml').read_text()
    (tmp_path / 'rig.yaml').write_text(text.replace('# top:', 'top:'))
    for name in ('left', 'right'):
        shutil.copy(config / f'camera_{name}.yaml', tmp_path)
    own = load_rig(tmp_path / 'rig.yaml').scaled(SCALE)
    assert tuple(own.cameras) == ('left', 'right', 'top')
    words = (*pictures(tmp_path, own, np.arange(8) / 10.0), f'rig:={tmp_path}/rig.yaml')
    words = (*words, f'scale:={SCALE}', 'record:=bag', 'record_images:=true')
    with launch('vision', tmp_path, *words) as running:
        assert running.wait() == 0, running.text()
    counts = {topic: len(messages) for topic, messages in contents(tmp_path / 'bag').items()}
    for name in own.cameras:
        assert counts[f'/vision/{name}/image_raw'] == counts[f'/vision/{name}/camera_info'] == 8
        assert counts[f'/vision/{name}/pose'] == 1
    tracks = read_tracks(tmp_path / 'bag', cameras=tuple(own.cameras))
    for marker in own.markers:
        assert (tracks.column(marker.name, 'cameras') == 7.0).sum() > 3
        assert np.abs(tracks.positions(marker.name) - marker.position).max() < 1e-3


@pytest.mark.parametrize(('recorded', 'listeners'), [('false', 1), ('true', 2)])
def test_files_begin_when_tracker_and_recorder_listen(recorded, listeners):
    words = ('videos:=left=a right=b', 'record:=bag', f'record_images:={recorded}')
    done = longreach('launch', 'vision', '--print', *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(f'listeners: {listeners}\n') == 1


@pytest.mark.slow
@pytest.mark.parametrize('one_process', ['false', 'true'])
def test_a_rig_that_cannot_be_ends_it_with_its_exit_code(tmp_path, one_process):
    words = ('boom:=true', 'rig:=nowhere.yaml', f'one_process:={one_process}')
    with launch('vision', tmp_path, *words) as running:
        assert running.wait() == 2
        assert 'nowhere.yaml cannot be read: No such file' in running.text()


def test_cameras_that_are_not_known_start_nothing():
    done = longreach('launch', 'vision', 'cameras:=foo')
    assert done.returncode == 2
    assert "'cameras' is 'foo'; allowed: simulated, video, none" in done.stderr


def test_what_is_started_is_what_was_asked_for():
    started = {}
    for words in (
        (),
        ('boom:=true', 'record:=bag'),
        ('cameras:=none',),
        ('videos:=left=a right=b top=c',),
        ('cameras:=video', 'left_source:=a', 'right_source:='),
        ('one_process:=true',),
    ):
        done = longreach('launch', 'vision', '--print', *words)
        assert done.returncode == 0, done.stderr
        lines = [line for line in done.stdout.splitlines() if line[:1].strip()]
        started[words] = [line.split(':')[0].rpartition('-')[0] for line in lines]
        assert 'rviz2' not in done.stdout
    assert list(started.values()) == [
        ['camera', 'tracker'],
        ['plant', 'camera', 'tracker', 'recorder'],
        ['tracker'],
        ['video', 'tracker'],
        ['video', 'tracker'],
        ['simulated'],
    ]
