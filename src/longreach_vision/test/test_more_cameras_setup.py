"""Three cameras and more: their clocks, a known distance, a bumped one, reference points."""

import dataclasses
import re

import numpy as np
import pytest
import yaml
from known_rig import LENS, POSES, mapping, pose_error
from small_commands import call, make_scene, only, printed, refused, with_camera
from small_rig import NAMES, START, write_rig
from swinging import TOP, frames_seen, sightings_of
from test_more_cameras import THREE, rig_of_three
from test_pose_agreement import bumped, recorded, rig_of_four

from longreach_dynamics.errors import LongreachError
from longreach_dynamics.parameters import from_mapping
from longreach_markers import (
    Agreement,
    CameraMonitor,
    ClockOffset,
    Clocks,
    DistanceCheck,
    compare_clocks,
    load_rig,
    localise,
    write_camera,
    wrong_camera,
)
from longreach_markers.setup.localisation import reference_file
from longreach_vision.commands.tracking_commands import _text
from longreach_vision.simulator.marker_path import MarkerPath

DELAYS = {'left': 0.0, 'right': 0.015, 'top': 0.006}
LENGTH = float(np.linalg.norm(START[1] - START[0]))


# --- clocks and a known distance, from pictures ---------------------------------------------


@pytest.fixture(scope='module')
def bar(tmp_path_factory):
    """Pictures of a bar that swings, by three cameras with delays that rig.yaml does not state."""
    rig, times = rig_of_three(), np.linspace(0.0, 1.2, 121)
    late = rig
    for name, delay in DELAYS.items():
        late = with_camera(late, name, delay=delay)
    swing = 0.06 * (1.0 - np.cos(8.0 * times))[:, None, None] * np.array([0.6, 0.0, 1.0])
    path = MarkerPath(NAMES, times, START + swing)
    folder = tmp_path_factory.mktemp('bar')
    return make_scene(folder, rig, path, late)


def test_sync_writes_the_delay_of_each_camera(capsys, bar):
    sources = [bar / 'seen' / name for name in THREE]
    words = (*sources, '--rig', bar / 'rig.yaml')
    told = printed(capsys, 'check', *words, '--distance', f'one:two={LENGTH}')
    assert sum('stamps of right are' in text for text in told['warnings']) == 1
    told = printed(capsys, 'sync', *words)
    assert [one['camera'] for one in told['cameras']] == ['right', 'top']
    assert told['failed'] == []
    found = load_rig(bar / 'rig.yaml').cameras
    for one in told['cameras']:
        assert abs(one['offset'] - DELAYS[one['camera']]) < min(5e-4, 4.0 * one['deviation'])
        assert found[one['camera']].delay == one['delay']
    assert found['left'].delay == 0.0


def test_check_compares_all_cameras_and_each_two(capsys, bar):
    sources = [bar / 'seen' / name for name in THREE]
    words = ('check', *sources, '--rig', bar / 'late.yaml', '--distance', f'one:two={LENGTH}')
    told = printed(capsys, *words)
    cameras = [one['cameras'] for one in told['distances']]
    assert cameras == [list(THREE), ['left', 'right'], ['left', 'top'], ['right', 'top']]
    for one in told['distances']:
        assert one['pairs'] > 20
        assert abs(one['error']) < 1e-3
    assert told['distances'][0]['scatter'] < told['distances'][1]['scatter']
    assert told['warnings'] == []
    for wrong in ('one:two=x', 'one=1'):
        with pytest.raises(SystemExit):
            call(*words[:-1], wrong)
        assert 'such as one:two=1.078' in capsys.readouterr().err
    one = DistanceCheck(NAMES, 1.0, 1e-3, 3, 1.0, 0.0, 0.0, 0.0, ('left', 'top'))
    assert re.search(r'one:two +left top +3 +1', _text([one]))
    assert one.warnings[0].startswith('left and top track one and two in 3 image sets')


def test_one_camera_is_refused(bar, tmp_path):
    write_rig(only(rig_of_three(), 'top'), tmp_path / 'rig.yaml')
    words = (bar / 'seen/top', '--rig', tmp_path / 'rig.yaml')
    refused('has one camera, allowed: two or more', 'sync', *words)


# --- cameras that do not see the same markers -----------------------------------------------


def shown(**markers):
    names = {camera: tuple(text.split()) for camera, text in markers.items()}
    delays = {camera: DELAYS[camera] for camera in markers}
    return frames_seen(delays, shown=names, duration=6.0, seed=1)


def test_a_camera_that_shares_no_marker_is_compared_through_another():
    clocks = compare_clocks(
        sightings_of(*shown(left='one two', right='one two three', top='three'))
    )
    for name in ('right', 'top'):
        offset, deviation = clocks.offsets[name]
        assert abs(offset - DELAYS[name]) < min(1e-3, 4.0 * deviation)
    assert clocks.found['top'].cameras == ('right', 'top')
    assert {one.cameras for one in clocks.of_each()} == {('left', 'right'), ('right', 'top')}
    (failed,) = clocks.failed
    assert 'of top against left: cannot be known from 0 sightings' in str(failed)


def test_a_running_tracker_judges_two_cameras_at_a_time():
    rig, frames = shown(left='one two three', right='', top='one two three')
    judge = CameraMonitor(rig, 100.0)
    for frame in frames:
        judge.add(frame)
    assert not judge.work(109.0)
    # The clocks of left and right, left and top, top and right, then the rays of all.
    assert [judge.work(110.5 + k) for k in range(5)] == [False, False, False, True, False]
    assert judge.offset is not None
    assert judge.offset.cameras == ('left', 'top')
    assert abs(judge.offset.offset - DELAYS['top']) < 1e-3
    assert judge.warning == judge.offset.warning != ''
    assert [judge.work(120.6 + k) for k in range(4)] == [False, False, False, True]


def test_a_camera_apart_from_all_others_has_no_offset():
    clocks = compare_clocks(sightings_of(*shown(left='one two', right='one two', top='three')))
    assert list(clocks.offsets) == ['right']
    assert [one.cameras for one in clocks.failed] == [('left', 'top'), ('right', 'top')]


def test_a_line_time_that_all_cameras_have():
    clocks = compare_clocks(sightings_of(*frames_seen(DELAYS, line_time=15e-6, duration=6.0)))
    line_time, deviation, cameras = clocks.line_time()
    assert abs(line_time - 15e-6) < 4.0 * deviation
    assert set(cameras) == set(THREE)


def test_line_times_that_differ_are_not_averaged():
    pairs = {'right': 15e-6, 'top': 0.0}
    known = {'line_deviation': 1e-7, 'line_shift': 9.0}
    found = {
        name: ClockOffset(('left', name), 0.0, 1e-5, 0.03, line_time=value, **known)
        for name, value in pairs.items()
    }
    clocks = Clocks(dict.fromkeys(pairs, (0.0, 1e-5)), found)
    text = r'left and top have 0\.00 us a row, others 15\.00 us'
    with pytest.raises(LongreachError, match=text):
        clocks.line_time()


def test_sync_leaves_what_it_does_not_know(capsys, bar, tmp_path):
    # The third camera sees markers that stand still.
    rig = rig_of_three()
    write_rig(rig, tmp_path / 'rig.yaml')
    pictures = sorted((bar / 'seen/top').iterdir())
    still = tmp_path / 'top'
    still.mkdir()
    for picture in pictures:
        (still / picture.name).write_bytes(pictures[0].read_bytes())
    words = ('sync', bar / 'seen/left', bar / 'seen/right', still, '--rig', tmp_path / 'rig.yaml')
    refused('the delay of top in', *words, kind=LongreachError)
    cameras = load_rig(tmp_path / 'rig.yaml').cameras
    assert cameras['right'].delay == pytest.approx(0.015, abs=5e-4)
    assert cameras['top'].delay == 0.0


# --- a bumped camera ------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize('side', ['left', 'top'])
def test_of_three_cameras_the_wrong_one_is_found(capsys, tmp_path, side):
    rig = rig_of_four(rig_of_three())
    seen, file = recorded(tmp_path, side, 0, rig), tmp_path / 'rig.yaml'
    words = ('pose', '--refine', *seen, '--rig', file)
    told = printed(capsys, 'track', *seen, '--rig', file, fails='no marker was tracked')
    assert [one['wrong'] == side for one in told['agreement']] == [
        side in one['cameras'] for one in told['agreement']
    ]
    assert told['advice'].count('disagree') == 1
    assert f'{side} was moved, or its pose or calibration is poor' in told['advice']
    assert f'--camera {side}' in told['advice']
    found = printed(capsys, *words, '--out', file)
    # It was bumped before the recording: two cameras alone would not show which one.
    assert found['camera'] == side
    assert len(found['agreement']) == 3
    assert found['chi_square']['after'] < 4.0 < found['chi_square']['before']
    new = load_rig(file).cameras[side].pose
    error = pose_error(new, bumped(rig, side).cameras[side].pose)
    assert error @ np.linalg.solve(new.covariance, error) < 22.0
    assert list(load_rig(file).cameras) == list(THREE)


def test_which_camera_is_wrong_needs_others_that_agree():
    def agreement(first, second, chi_square, sightings=99):
        return Agreement((first, second), sightings, chi_square)

    broken = [agreement('left', 'right', 50.0), agreement('right', 'top', 40.0)]
    assert wrong_camera([*broken, agreement('left', 'top', 1.0)])[0] == 'right'
    assert wrong_camera([*broken, agreement('left', 'top', 1.0, 3)])[0] == ''
    assert wrong_camera([*broken, agreement('left', 'top', 30.0)])[0] == ''
    moved = dataclasses.replace(broken[0], moved='left', since=2.0)
    assert wrong_camera([moved]) == ('left', 2.0)


# --- reference points -----------------------------------------------------------------------


def test_reference_points_of_three_cameras_give_a_rig(capsys, tmp_path):
    cameras, poses = dict.fromkeys(THREE, LENS), POSES | {'top': TOP}
    values = mapping(cameras=cameras, poses=poses, rng=np.random.default_rng(2), deviation=0.003)
    values['distances'] = [{'between': ['top', 'p1'], 'distance': 1.0, 'deviation': 10.0}]
    (tmp_path / 'reference.yaml').write_text(yaml.safe_dump(values))
    for name in THREE:
        write_camera(LENS, tmp_path / f'{name}.yaml')
    out = tmp_path / 'rig.yaml'
    words = ('pose', tmp_path / 'reference.yaml', '--out', out)
    told = printed(capsys, *words)
    assert list(told['cameras']) == list(THREE)
    assert set(told['tip']['in_plane']) == set(THREE)
    rig = load_rig(out)
    for name in THREE:
        pose = rig.cameras[name].pose
        off = pose.translation - poses[name].translation
        assert off @ np.linalg.solve(pose.covariance[3:, 3:], off) < 16.0
    # A camera that is not left or right may be alone.
    alone = mapping(cameras={'top': LENS}, poses=poses)
    found = localise(from_mapping(reference_file(['top']), alone), {'top': LENS})
    assert found.poses['top'].translation == pytest.approx(TOP.translation, abs=1e-5)
