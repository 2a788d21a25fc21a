"""Poses of rigid bodies: from pictures to a file."""

import dataclasses

import cv2
import numpy as np
import test_bodies
from independent_views import write_pictures
from rig_files import write_rig
from small_commands import call, printed
from small_path import placed

from longreach_dynamics.tables import read_table
from longreach_markers.camera.geometry import Pose
from longreach_markers.rig import load_rig
from longreach_vision.io.track_table import columns_of
from longreach_vision.simulator.scene import CameraLook
from longreach_vision.simulator.sequences import simulators_of

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
