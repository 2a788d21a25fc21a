"""Poses from reference points: known rigs come back, with honest errors."""

import itertools
import math
import re

import numpy as np
import pytest
import yaml
from known_rig import (
    CAMERAS,
    CLUSTERED,
    FISHEYE,
    LENS,
    POSES,
    SPREAD,
    TIP,
    change,
    mapping,
    points_with,
    pose_error,
    solved,
)

from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.parameters import from_mapping
from longreach_markers.camera.geometry import Pose
from longreach_markers.camera.triangulation import locate_in_plane, triangulate
from longreach_markers.setup import bundle_adjustment
from longreach_markers.setup.bundle_adjustment import State, projected
from longreach_markers.setup.localisation import load_reference, read_cameras, reference_file

# --- the estimate ---------------------------------------------------------------------------


@pytest.mark.parametrize('cameras', [CAMERAS, {'left': LENS}, {'left': FISHEYE, 'right': LENS}])
@pytest.mark.parametrize('points', [SPREAD, SPREAD[[0, 1, 2, 3, 4]], SPREAD[[0, 1, 2, 3, 7]]])
def test_exact_measurements_give_the_poses_back(cameras, points):
    found = solved(mapping(points, cameras=cameras), cameras)
    for side in cameras:
        np.testing.assert_allclose(pose_error(found.poses[side], POSES[side]), 0.0, atol=1e-6)
        assert found.rms[side] < 1e-6
    assert found.sum_of_squares == pytest.approx(0.0, abs=1e-8)
    np.testing.assert_allclose(found.plane.plane.normal, (0.0, 1.0, 0.0), atol=1e-8)
    assert found.plane.plane.offset == pytest.approx(0.0, abs=1e-8)
    for point in found.points:
        np.testing.assert_allclose(point.correction, 0.0, atol=1e-7)


def test_least_squares_that_have_not_converged_are_refused(monkeypatch):
    values = mapping(rng=np.random.default_rng(3))
    assert solved(values).sum_of_squares > 1.0
    monkeypatch.setattr(bundle_adjustment, '_STEPS', 1)
    with pytest.raises(LongreachError, match='the poses have not converged: the next step would'):
        solved(values)


def test_four_points_for_each_camera_as_in_the_paper():
    # Henikl 2015, figure 10: {1, 2, 3, 4} on the left and {1, 2, 3, 5} on the right.
    values = mapping(SPREAD[:5])
    del values['points'][4]['left']
    del values['points'][3]['right']
    found = solved(values)
    for side in CAMERAS:
        np.testing.assert_allclose(pose_error(found.poses[side], POSES[side]), 0.0, atol=1e-6)


@pytest.mark.parametrize('seed', range(25))
def test_random_rigs_come_back(seed):
    rng = np.random.default_rng(seed)
    points = rng.uniform((0.0, -6.0, 0.0), (20.0, 2.0, 12.0), (int(rng.integers(4, 9)), 3))
    if seed % 3 == 0:
        points[:, 1] = 0.03 * rng.standard_normal(len(points))
    poses = {
        side: Pose.from_look_at(rng.uniform((-5, -25, 0), (25, -25, 10)), (10.0, 0.0, 6.0))
        for side in CAMERAS
    }
    cameras = {'left': LENS.replace(fx=1500.0, fy=1501.0, distortion=()), 'right': FISHEYE}
    found = solved(mapping(points, cameras=cameras, poses=poses), cameras)
    for side in cameras:
        np.testing.assert_allclose(pose_error(found.poses[side], poses[side]), 0.0, atol=1e-5)


def test_laser_distances_correct_coordinates():
    rng = np.random.default_rng(5)
    values = mapping(rng=rng, deviation=0.03)
    plain = solved(values)
    places = {f'p{k + 1}': place for k, place in enumerate(SPREAD)}
    pairs = [*itertools.combinations(places, 2), ('left', 'p1')]
    places['left'] = POSES['left'].translation
    exact = [
        {'between': [a, b], 'distance': math.dist(places[a], places[b]), 'deviation': 0.001}
        for a, b in pairs
    ]
    better = solved({**values, 'distances': exact})
    assert better.freedom == plain.freedom + len(exact)
    assert better.tip.error < 0.95 * plain.tip.error
    # Shape is what distances hold.
    way = better.poses['left'].translation - better.points[0].position
    assert np.linalg.norm(way) == pytest.approx(exact[-1]['distance'], abs=0.004)


# --- honest errors --------------------------------------------------------------------------


@pytest.fixture(scope='module', params=['both', 'left'])
def repetitions(request):
    """Estimates with noise anew each time, with what they say of a marker at the tip."""
    cameras = CAMERAS if request.param == 'both' else {'left': LENS}
    rng = np.random.default_rng(6)
    truth = {side: camera.project(POSES[side].to_camera(TIP)) for side, camera in cameras.items()}
    done = []
    for _ in range(60):
        found = solved(mapping(rng=rng, cameras=cameras), cameras)
        pixels = {side: p + 0.05 * rng.standard_normal(2) for side, p in truth.items()}
        in_plane = {
            side: locate_in_plane(
                camera, found.poses[side], found.plane.plane, pixels[side], 0.05**2 * np.eye(2)
            ).position
            for side, camera in cameras.items()
        }
        space = None
        if len(cameras) == 2:
            both = [list(one.values()) for one in (cameras, found.poses, pixels)]
            space = triangulate(*both, [0.05**2 * np.eye(2)] * 2).position
        done.append((found, in_plane, space))
    return done


@pytest.mark.slow
def test_predicted_errors_at_the_tip_are_those_of_repetitions(repetitions):
    def check(errors, covariances):
        told = np.mean([np.sqrt(np.diag(one)) for one in covariances], axis=0)
        ratio = np.sqrt(np.mean(np.square(errors), axis=0)) / told
        assert ((ratio > 1.0 / 1.5) & (ratio < 1.5)).all(), ratio

    tips = [found.tip for found, _, _ in repetitions]
    for side in repetitions[0][1]:
        errors = [in_plane[side] - TIP for _, in_plane, _ in repetitions]
        check(errors, [tip.in_plane[side] for tip in tips])
    if repetitions[0][2] is None:
        assert tips[0].triangulated is None
        return
    errors, covariances = (
        [space - TIP for *_, space in repetitions],
        [t.triangulated for t in tips],
    )
    check(errors, covariances)
    together = [e @ np.linalg.solve(C, e) for e, C in zip(errors, covariances, strict=True)]
    assert 2.0 < np.mean(together) < 4.2


@pytest.mark.slow
def test_covariances_of_poses_points_and_plane_are_honest(repetitions):
    squared = {'pose': [], 'point': [], 'plane': [], 'all': []}
    for found, _, _ in repetitions:
        squared['all'].append(found.sum_of_squares / found.freedom)
        for side, pose in found.poses.items():
            e = pose_error(pose, POSES[side])
            squared['pose'].append(e @ np.linalg.solve(pose.covariance, e) / 6.0)
        for point, truth in zip(found.points, SPREAD, strict=True):
            e = point.position - truth
            squared['point'].append(e @ np.linalg.solve(point.covariance, e) / 3.0)
        plane = found.plane.plane
        n, c = np.array([0.0, 1.0, 0.0]), plane.centroid
        # From the estimate to the truth: turns about both axes, and the shift at the centroid.
        e = np.array(
            [(n - plane.normal) @ -plane.axes[1], (n - plane.normal) @ plane.axes[0], -n @ c]
        )
        squared['plane'].append(e @ np.linalg.solve(plane.covariance, e) / 3.0)
    for name, values in squared.items():
        assert 0.7 < np.mean(values) < 1.4, (name, np.mean(values))


# --- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('values', 'text'),
    [
        (change(points=[]), 'left sees 0 reference points, allowed: 3 or more'),
        (points_with(1, left=[5000.0, 10.0]), 'p2 has the pixel (5000, 10) in left, allowed'),
        (mapping(CLUSTERED[[0, 1, 4]] * (1.0, 0.0, 0.0)), 'of left lie on a line'),
        (mapping(SPREAD[[0, 1, 4, 5, 6]]), '2 points have in_plane: true'),
        (
            mapping(np.array([(5, 0, 1), (15, 0, 4), (25, 0, 7), (9, -4, 0), (19, -5, 1)], float)),
            'points with in_plane: points lie on a line',
        ),
    ],
)
def test_what_determines_no_pose_is_refused(values, text):
    with pytest.raises(InputError, match=re.escape(text)):
        solved(values)


# --- files of reference points -------------------------------------------------------------------


CAMERA = {'calibration': 'any.yaml'}
APART = {'between': ['p1', 'p99'], 'distance': 1.0}


@pytest.mark.parametrize(
    ('values', 'text'),
    [
        (change(cameras={}), 'cameras = [], allowed: 1 to 8 cameras'),
        (change(cameras={'position': CAMERA}), "cameras has 'position', which is a key"),
        (change(cameras={f'c{k}': CAMERA for k in range(9)}), 'allowed: 1 to 8 cameras'),
        (change(cameras={'left': CAMERA, '2nd': CAMERA}), 'cameras.2nd is unknown'),
        (points_with(1, name='p1'), "points has the name 'p1', allowed: no two alike"),
        (points_with(1, name='left'), "points has the name 'left'"),
        (points_with(1, position=[1.0, 2.0]), 'points[1].position has 2 values, allowed: 3'),
        (points_with(1, position=[1.0, 1e9, 0.0]), 'points[1].position[1] ='),
        (points_with(1, deviation=0.0), 'points[1].deviation = 0.0, allowed: [1e-09, 10] m'),
        (points_with(1, colour='red'), 'points[1].colour is unknown'),
        (change(distances=[APART]), "distances[0].between = 'p99', allowed: left | right | p1"),
        (change(distances=[APART | {'between': ['p1', 'p1']}]), "[0].between has 'p1' twice"),
        (change(pixel_deviation=-1.0), 'reference.yaml: pixel_deviation = -1.0'),
        (change(cameras={'left': CAMERA, 'right': None}), 'points[0] has a pixel for right, but'),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path, values, text):
    file = tmp_path / 'reference.yaml'
    file.write_text(yaml.safe_dump(values))
    with pytest.raises(InputError, match=re.escape(text)):
        load_reference(file)


def test_a_calibration_that_is_missing(tmp_path):
    with pytest.raises(InputError, match=r'left\.yaml cannot be read'):
        read_cameras(from_mapping(reference_file(CAMERAS), mapping()), tmp_path)


def test_jacobians_are_those_of_differences():
    rng = np.random.default_rng(4)
    pose = POSES['left']
    for camera in (LENS, FISHEYE):
        pixels, J = projected(camera, pose, SPREAD)
        np.testing.assert_allclose(pixels, camera.project(pose.to_camera(SPREAD)), atol=1e-9)
        step = 1e-6 * rng.standard_normal(6 + SPREAD.size)
        ahead, behind = (State((pose,), SPREAD).moved(sign * step) for sign in (1.0, -1.0))
        change = (
            camera.project(ahead.poses[0].to_camera(ahead.points))
            - camera.project(behind.poses[0].to_camera(behind.points))
        ) / 2.0
        told = J[:, :, :6] @ step[:6]
        told += np.einsum('nij,nj->ni', J[:, :, 6:], step[6:].reshape(-1, 3))
        np.testing.assert_allclose(told, change, rtol=1e-5, atol=1e-8)
