"""Three cameras and more: what a third one adds, from pictures to positions and tables."""

import dataclasses
import re
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest
import test_bodies
from independent_views import write_pictures
from small_commands import (
    call,
    make_scene,
    only,
    placed,
    printed,
    refused,
    small_path,
    with_camera,
)
from small_rig import NAMES, small_rig, write_rig

from longreach_dynamics.errors import InputError
from longreach_dynamics.resources import share_directory
from longreach_dynamics.tables import read_table
from longreach_markers import TRACKED, UNCERTAIN, Follower, MountedCamera, Pose, follow, load_rig
from longreach_vision.io.bag_files import read_tracks
from longreach_vision.io.track_table import columns_of
from longreach_vision.simulator.camera_simulator import drawn_pictures, frame_times, simulators_of
from longreach_vision.simulator.scene import CameraLook

THREE = ('left', 'right', 'top')
LOOK = CameraLook(clutter=10, seed=3)
# 1 mrad and 2 mm.
POSE_COVARIANCE = np.diag([1e-6] * 3 + [4e-6] * 3)


def rig_of_three(covariance=None):
    """The small rig with a third camera above the others."""
    rig = small_rig()
    camera = rig.cameras['left'].camera.replace(name='top')
    top = MountedCamera(camera, Pose.from_look_at((0.2, -4.6, 1.8), (0.0, 0.0, 0.3)))
    cameras = {
        name: dataclasses.replace(one, pose=dataclasses.replace(one.pose, covariance=covariance))
        for name, one in (*rig.cameras.items(), ('top', top))
    }
    return dataclasses.replace(rig, cameras=cameras)


def tracked(seen, known, hidden=None):
    path = small_path(0.8)
    pictures = []
    for k, one in enumerate(drawn_pictures(simulators_of(seen, LOOK), path, TIMES)):
        if one.camera in known.cameras:
            is_dark = k // len(seen.cameras) in (hidden or {}).get(one.camera, ())
            pictures.append(one._replace(image=0 * one.image if is_dark else one.image))
    return [one.frame for one in follow(Follower(known), pictures)]


TIMES = frame_times(small_path(0.8), 15.0)


def test_a_third_camera_makes_positions_in_the_plane_more_accurate():
    rig, path, squares, stated = rig_of_three(), small_path(0.8), {}, {}
    for names in (THREE[:2], THREE):
        frames = tracked(rig, only(rig, *names))
        found = [one for frame in frames for one in frame.estimates.values()]
        assert {(one.status, one.cameras) for one in found} == {(TRACKED, names)}
        assert {len(one.pairs) for one in found} == {len(names) * (len(names) - 1) // 2}
        truth = np.concatenate([path.at(frame.time)[0] for frame in frames])
        off = np.array([one.in_plane.position for one in found]) - truth
        squares[names] = np.mean(off**2)
        stated[names] = np.mean([np.trace(one.in_plane.covariance) for one in found])
    assert squares[THREE] < 0.85**2 * squares[THREE[:2]]
    assert stated[THREE] < 0.8 * stated[THREE[:2]]
    assert frames[-1].chi_square == pytest.approx(1.0, abs=0.7)


def test_no_step_where_one_of_three_is_hidden():
    known = rig_of_three(POSE_COVARIANCE)
    # The cameras are not where the rig says, within its covariance.
    rng = np.random.default_rng(5)
    seen = known
    for name, one in known.cameras.items():
        pose = Pose(one.pose.rotation, one.pose.translation + 2e-3 * rng.normal(size=3))
        seen = with_camera(seen, name, pose=pose)
    frames = tracked(seen, known, {'top': range(5, 9)})
    for name in NAMES:
        used = [frame.estimates[name].cameras for frame in frames]
        assert used[4] == THREE
        assert used[6] == ('left', 'right')
    # Marker one rests: by the pixels alone it moves by some hundredths of a millimetre.
    places = np.array([frame.estimates['one'].in_plane.position for frame in frames])
    assert np.ptp(places, axis=0).max() < 2e-4
    alone = tracked(seen, only(known, 'left', 'right'))
    apart = alone[-1].estimates['one'].in_plane.position - places[-1]
    # Without this, the step would be visible.
    assert np.abs(apart).max() > 4e-4


def test_a_camera_that_was_bumped_is_named():
    rig = rig_of_three(1e-4 * POSE_COVARIANCE)
    pose = Pose.from_look_at((0.2, -4.6, 1.8), (0.03, 0.0, 0.3))
    frames = tracked(with_camera(rig, 'top', pose=pose), rig)
    one = frames[-1].estimates['one']
    assert one.status == UNCERTAIN
    assert one.reason.startswith('the ray of the camera top misses the others by ')


def test_track_writes_the_columns_of_each_camera(capsys, tmp_path):
    scene = make_scene(tmp_path, rig_of_three())
    sources = [scene / 'seen' / name for name in THREE]
    words = ('track', *sources, '--config', scene / 'rig.yaml', '--out', tmp_path)
    told = printed(capsys, *words, '--truth', scene / 'path.csv')
    assert [one['camera'] for one in told['cameras']] == list(THREE)
    # Clocks against the first one, rays of each two.
    assert [one['cameras'] for one in told['agreement']] == [
        ['left', 'right'],
        ['left', 'top'],
        ['right', 'top'],
    ]
    assert len(told['clock_offset']) == 2
    assert told['errors'][0]['triangulated']['rms'] < 1e-3
    table = read_table(tmp_path / 'tracks.csv')
    camera = load_rig(scene / 'rig.yaml').cameras['top']
    expected = camera.camera.project(camera.pose.to_camera(small_path(0.5).at(0.0)[0][0]))
    assert (table['one.cameras'] == 7.0).all()
    assert table['one.top_u'][0] == pytest.approx(expected[0], abs=0.5)
    assert table['one.top_v'][0] == pytest.approx(expected[1], abs=0.5)
    tracks = read_tracks(tmp_path / 'tracks', cameras=THREE)
    np.testing.assert_allclose(tracks.table, np.transpose([*table.values()]), atol=1e-9)
    # Not read as if they were of other cameras.
    for cameras in (('left', 'right'), ('left', 'top')):
        with pytest.raises(InputError, match=r'tracks by .*, allowed by the rig: left, '):
            read_tracks(tmp_path / 'tracks', cameras=cameras)
    text = 'images of 2 cameras, allowed: of one, or of left, right, top'
    refused(text, *words[:3], *words[4:])
    words = *words[4:6], '--camera', 'top', '--csv', tmp_path / 'top.csv'
    alone = printed(capsys, 'track', sources[2], *words, '--bag', tmp_path / 'top')
    assert [one['camera'] for one in alone['cameras']] == ['top']
    # The bit of a camera is that of its place in the rig, not in what was tracked.
    table = read_table(tmp_path / 'top.csv', gaps=True)
    tracks = read_tracks(tmp_path / 'top', cameras=THREE)
    for found in (table['one.cameras'], tracks.column('one', 'cameras')):
        assert set(found) == {4.0}
    assert tuple(table) == tracks.columns
    few = *sources[:2], '--rig', scene / 'rig.yaml'
    refused(text, 'sync', *few)
    refused('left is no bag; give a bag', 'sync', *few[:1], *few[2:])


def test_a_third_camera_beside_the_boom_is_one_line(tmp_path):
    installed = share_directory('longreach_vision') / 'config'
    text = (installed / 'rig_boom.yaml').read_text()
    (line,) = re.findall(r'  # (top: .*)\n', text)
    assert line in (Path(__file__).parent.parent / 'README.md').read_text()
    for name in ('left', 'right'):
        shutil.copy(installed / f'camera_{name}.yaml', tmp_path)
    (tmp_path / 'rig.yaml').write_text(text.replace(f'# {line}', line))
    rig = load_rig(tmp_path / 'rig.yaml')
    assert tuple(rig.cameras) == THREE
    top = rig.cameras['top']
    for marker in rig.markers:
        u, v = top.camera.project(top.pose.to_camera(np.array(marker.position)))
        assert 0.0 < u < top.camera.width
        assert 0.0 < v < top.camera.height


BODY = test_bodies.body('abc')


def test_from_pictures_to_a_file(tmp_path, capsys):
    """The second of two pairs lacks a marker in both pictures."""
    turn, move = cv2.Rodrigues(np.array([0.0, 0.3, 0.0]))[0], np.array([0.2, 0.0, 1.1])
    places = np.array([turn @ marker.position + move for marker in BODY.markers])
    own, file = test_bodies.rig(BODY), tmp_path / 'rig.yaml'
    own = placed(dataclasses.replace(own, markers=own.markers[:3]), places)
    write_rig(own, file)
    assert load_rig(file).bodies == load_rig(file).scaled(0.5).bodies == (BODY,)
    for side, simulator in simulators_of(own, CameraLook(clutter=0)).items():
        first, second = (
            simulator.image(places, 0.0 * places, 0.0, np.random.default_rng(k)).copy()
            for k in range(2)
        )
        mounted = own.cameras[side]
        u, v = mounted.camera.project(mounted.pose.to_camera(places[1])).astype(int)
        second[v - 30 : v + 30, u - 30 : u + 30] = 90
        write_pictures(tmp_path / side, [first, second], [0.0, 0.1])
    where = tmp_path / 'left', tmp_path / 'right', '--config', file
    told = printed(capsys, 'track', *where, '--csv', tmp_path / 'tracks.csv')
    (tip,) = told['bodies']
    assert (tip['images'], tip['poses']) == (2, 1)
    reason = '2 of 3 markers tracked, required: 3; not tracked: b'
    assert tip['reasons'] == [{'reason': reason, 'images': 1}]
    table = read_table(tmp_path / 'tracks.csv', gaps=True)
    assert tuple(table)[-22:] == columns_of((), (), ('tip',))[2:]
    found = np.array([table[f'tip.{axis}'][0] for axis in 'xyz'])
    assert np.abs(found - move).max() < 2e-3
    quaternion = [table[f'tip.q{axis}'][0] for axis in 'xyzw']
    assert np.abs(Pose.from_quaternion(quaternion, found).rotation - turn).max() < 3e-3
    assert 0.0 < table['tip.noise_x'][0] < table['tip.deviation_x'][0] < 1e-2
    assert 0.0 < table['tip.rotation_noise_y'][0] < table['tip.rotation_deviation_y'][0] < 5e-3
    assert table['tip.status'].tolist() == [0.0, 2.0]
    assert table['tip.markers'][1] == 2.0
    assert np.isnan(table['tip.x'][1])
    call('track', *where)
    text = capsys.readouterr().out
    assert f'tip, 1 images: {reason}' in text
