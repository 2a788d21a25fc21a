"""Poses from reference points: known rigs come back, with honest errors and clear doubts."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import yaml

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import from_mapping
from longreach_dynamics.resources import share_directory
from longreach_vision import localisation
from longreach_vision.adjustment import State, best_fit, projected
from longreach_vision.cameras import Camera
from longreach_vision.geometry import Pose, locate_in_plane, triangulate
from longreach_vision.localisation import (
    Localisation,
    Reference,
    load_reference,
    localise,
    read_cameras,
)

LENS = Camera(
    'lens', 2452, 2054, 2200.0, 2201.0, 1230.0, 1020.0, 'plumb_bob', (-0.1, 0.08, 2e-4, -1e-4, 0.0)
)
FISHEYE = Camera(
    'eye', 2452, 2054, 1400.0, 1401.0, 1230.0, 1020.0, 'equidistant', (0.01, 0.002, -0.003, 0.001)
)
# Cameras 23 m from the plane of a boom that reaches 30 m far; the tip is where it works.
POSES = {
    'left': Pose.from_look_at((8.0, -23.0, 2.0), (13.5, 0.0, 6.0)),
    'right': Pose.from_look_at((20.0, -23.0, 2.0), (14.0, 0.0, 6.0)),
}
CAMERAS = {'left': LENS, 'right': LENS}
TIP = np.array([24.0, 0.0, 3.0])
SPREAD = np.array(
    [
        (5.0, 0.0, 1.0),
        (24.0, 0.0, 1.0),
        (6.0, 0.0, 12.0),
        (22.0, 0.0, 11.0),
        (14.0, -5.0, 0.0),
        (10.0, 3.0, 0.5),
        (19.0, -7.0, 0.2),
        (13.0, 0.0, 5.0),
    ]
)
CLUSTERED = np.array(
    [(5.0, 0.0, 1.0), (8.0, 0.0, 1.0), (5.0, 0.0, 3.5), (8.0, 0.0, 3.0), (6.5, 0.0, 2.0)]
)


def mapping(
    points=SPREAD,
    rng=None,
    pixel=0.05,
    deviation=0.01,
    cameras=CAMERAS,
    poses=POSES,
    **more,
):
    """A reference file's content; without a generator all is exact."""
    rows = []
    for k, point in enumerate(points):
        noise = deviation * rng.standard_normal(3) if rng else np.zeros(3)
        row = {
            'name': f'p{k + 1}',
            'position': (point + noise).tolist(),
            'deviation': deviation,
            'in_plane': bool(point[1] == 0.0),
        }
        for side, camera in cameras.items():
            pixels = camera.project(poses[side].to_camera(point))
            row[side] = (pixels + (pixel * rng.standard_normal(2) if rng else 0.0)).tolist()
        rows.append(row)
    return {
        'cameras': {side: {'calibration': f'{side}.yaml'} for side in cameras},
        'points': rows,
        'pixel_deviation': pixel,
        'tip': TIP.tolist(),
        **more,
    }


def solved(values, cameras=CAMERAS) -> Localisation:
    return localise(from_mapping(Reference, values), cameras)


def pose_error(found: Pose, truth: Pose) -> np.ndarray:
    """Rotation vector in the camera's frame and translation, as covariances count them."""
    R = truth.rotation.T @ found.rotation
    w = 0.5 * np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    return np.concatenate([w, found.translation - truth.translation])


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
        side: Pose.from_look_at(
            (rng.uniform(-5.0, 25.0), -25.0, rng.uniform(0.0, 10.0)), (10.0, 0.0, 6.0)
        )
        for side in CAMERAS
    }
    cameras = {
        'left': LENS.replace(fx=1500.0, fy=1501.0, distortion=()),
        'right': FISHEYE,
    }
    found = solved(mapping(points, cameras=cameras, poses=poses), cameras)
    for side in cameras:
        np.testing.assert_allclose(pose_error(found.poses[side], poses[side]), 0.0, atol=1e-5)


def test_world_far_away_changes_nothing():
    rng = np.random.default_rng(3)
    values = mapping(rng=rng)
    near = solved(values)
    away = np.array([4.5e5, -5.2e6, 300.0])
    for row in values['points']:
        row['position'] = (np.array(row['position']) + away).tolist()
    far = solved({**values, 'tip': (TIP + away).tolist()})
    for side in CAMERAS:
        np.testing.assert_allclose(far.poses[side].rotation, near.poses[side].rotation, atol=1e-6)
        shift = far.poses[side].translation - away - near.poses[side].translation
        np.testing.assert_allclose(shift, 0.0, atol=1e-5)
    assert far.tip.error == pytest.approx(near.tip.error, rel=1e-4)


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


def test_laser_distances_correct_coordinates():
    rng = np.random.default_rng(5)
    values = mapping(rng=rng, deviation=0.03)
    plain = solved(values)
    exact = [
        {
            'between': [f'p{a + 1}', f'p{b + 1}'],
            'distance': float(np.linalg.norm(SPREAD[a] - SPREAD[b])),
            'deviation': 0.001,
        }
        for a in range(8)
        for b in range(a)
    ]
    exact.append(
        {
            'between': ['left', 'p1'],
            'distance': float(np.linalg.norm(SPREAD[0] - POSES['left'].translation)),
            'deviation': 0.001,
        }
    )
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
            space = triangulate(
                tuple(cameras.values()),
                tuple(found.poses.values()),
                np.array(list(pixels.values())),
                np.array([0.05**2 * np.eye(2)] * 2),
            ).position
        done.append((found, in_plane, space))
    return done


def test_predicted_errors_at_the_tip_are_those_of_repetitions(repetitions):
    for side in repetitions[0][1]:
        errors = np.array([in_plane[side] - TIP for _, in_plane, _ in repetitions])
        told = np.array(
            [np.sqrt(np.diag(found.tip.in_plane[side])) for found, _, _ in repetitions]
        )
        ratio = np.sqrt(np.mean(errors**2, axis=0)) / told.mean(axis=0)
        assert ((ratio > 1.0 / 1.5) & (ratio < 1.5)).all(), ratio
    if repetitions[0][2] is None:
        assert repetitions[0][0].tip.triangulated is None
        return
    errors = np.array([space - TIP for _, _, space in repetitions])
    told = np.array([np.sqrt(np.diag(found.tip.triangulated)) for found, _, _ in repetitions])
    ratio = np.sqrt(np.mean(errors**2, axis=0)) / told.mean(axis=0)
    assert ((ratio > 1.0 / 1.5) & (ratio < 1.5)).all(), ratio
    together = [
        e @ np.linalg.solve(found.tip.triangulated, e)
        for e, (found, _, _) in zip(errors, repetitions, strict=True)
    ]
    assert 2.0 < np.mean(together) < 4.2


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


def test_spread_points_are_far_better_than_clustered_ones():
    rng = np.random.default_rng(7)
    spread, clustered = (solved(mapping(p, rng, deviation=0.005)) for p in (SPREAD, CLUSTERED))
    # In the plane, across the line of sight: 4 mm and 25 mm in notes/vision.md.
    near, far = (
        min(math.sqrt(np.trace(cov) / 2.0) for cov in found.tip.in_plane.values())
        for found in (spread, clustered)
    )
    assert 0.002 < near < 0.006
    assert 0.015 < far < 0.06
    assert spread.warnings == ()
    (said, *shares) = clustered.warnings
    assert re.match(
        r'a marker at the tip would be off by \d+ mm, at the reference points by', said
    )
    assert 'clustered and in one plane, far from the tip' in said
    assert len(shares) == 2
    assert shares[0].startswith('the reference points cover')
    # What one more point near the tip would give is what it gives.
    promised = float(re.search(r'one more near it would give (\d+) mm', said)[1])
    more = solved(mapping(np.vstack([CLUSTERED, TIP]), rng, deviation=0.005))
    assert 1e3 * more.tip.error == pytest.approx(promised, rel=0.3)


def test_larger_deviations_give_larger_errors():
    rng = np.random.default_rng(8)
    fine = solved(mapping(rng=rng, deviation=0.002)).tip.error
    coarse = solved(mapping(rng=rng, deviation=0.02)).tip.error
    assert coarse / fine == pytest.approx(10.0, rel=0.2)


# --- doubts ---------------------------------------------------------------------------------


def test_three_points_leave_a_choice_and_a_rough_position_decides():
    points = SPREAD[[0, 3, 4]]
    values = mapping(points, cameras={'left': LENS})
    for row in values['points']:
        row['in_plane'] = False
    found = solved(values, CAMERAS)
    assert any('3 points' in text and 'left' in text for text in found.warnings)
    assert found.rms['left'] < 1e-6
    assert found.plane is None
    values['cameras']['left'] |= {'position': [8.5, -22.0, 2.5], 'position_deviation': 1.0}
    decided = solved(values, CAMERAS)
    assert np.linalg.norm(decided.poses['left'].translation - (8.0, -23.0, 2.0)) < 0.5


def test_ambiguous_plane_is_told():
    # A small plane far away, seen from the front: two tilts look alike.
    points = np.array([(14.0, 0.0, 6.0), (14.6, 0.0, 6.0), (14.6, 0.0, 6.6), (14.0, 0.0, 6.6)])
    values = mapping(points, np.random.default_rng(1), pixel=0.3, cameras={'left': LENS})
    found = solved(values, CAMERAS)
    assert any('or as likely at' in text for text in found.warnings)
    assert any('cameras.left.position' in text for text in found.warnings)


def test_tip_that_no_camera_sees_is_told():
    found = solved(mapping(tip=[24.0, 0.0, 300.0]))
    assert math.isnan(found.tip.error)
    assert found.tip.in_plane == {}
    assert any('no camera sees the tip' in text for text in found.warnings)
    values = mapping(cameras={'left': LENS})
    for row in values['points']:
        row['in_plane'] = False
    assert any('no plane is known' in text for text in solved(values, CAMERAS).warnings)


def test_point_beside_the_plane_is_named():
    points = SPREAD.copy()
    points[3, 1] = 0.15
    values = mapping(points, np.random.default_rng(2))
    values['points'][3]['in_plane'] = True
    found = solved(values)
    (said,) = found.warnings
    assert re.match(r'points with in_plane lie \d+\.\d mm \(RMS\) off their plane', said)
    assert 'check p4' in said


@pytest.mark.parametrize('which', [0, 4, 7])
def test_mistyped_position_is_named(which):
    values = mapping(rng=np.random.default_rng(9))
    values['points'][which]['position'][0] += 1.0
    values['points'][which]['in_plane'] = False
    with pytest.raises(InputError, match=f'; p{which + 1} is likely wrong'):
        solved(values)


def test_mistyped_pixel_is_named_with_its_camera():
    values = mapping(rng=np.random.default_rng(10))
    values['points'][2]['right'][0] += 100.0
    with pytest.raises(InputError, match='; the pixel of p3 in right is likely wrong'):
        solved(values)


def test_swapped_points_are_named():
    values = mapping(SPREAD[:6], np.random.default_rng(11))
    rows = values['points']
    rows[1]['left'], rows[4]['left'] = rows[4]['left'], rows[1]['left']
    with pytest.raises(InputError, match='; p2 and p5 in left are likely swapped'):
        solved(values)


@pytest.mark.parametrize('pair', [(0, 1), (0, 4), (2, 3), (3, 6), (1, 7), (5, 7)])
def test_swapped_positions_are_named(pair):
    values = mapping(rng=np.random.default_rng(14))
    for row in values['points']:
        row['in_plane'] = False
    a, b = (values['points'][k] for k in pair)
    a['position'], b['position'] = b['position'], a['position']
    told = f'; the positions of {a["name"]} and {b["name"]} are likely swapped'
    with pytest.raises(InputError, match=told):
        solved(values)


def test_swapped_positions_are_named_where_no_pose_has_all_points_in_front():
    values = mapping(rng=np.random.default_rng(15))
    for row in values['points']:
        row['in_plane'] = False
    a, b = values['points'][0], values['points'][6]
    a['position'], b['position'] = b['position'], a['position']
    problem = localisation._problem_of(from_mapping(Reference, values), CAMERAS)
    assert best_fit(problem)[0] is None
    text = 'no pose has all points in front of the camera; the positions of p1 and p7 are likely'
    with pytest.raises(InputError, match=text):
        solved(values)


def test_search_for_swaps_is_bounded(monkeypatch):
    rng = np.random.default_rng(16)
    points = np.column_stack(
        [rng.uniform(4.0, 24.0, 30), rng.uniform(-7.0, 3.0, 30), rng.uniform(0.0, 11.0, 30)]
    )
    values = mapping(points, rng)
    a, b = values['points'][11], values['points'][27]
    a['position'], b['position'] = b['position'], a['position']
    tried = []
    fits = localisation._fits
    monkeypatch.setattr(
        localisation, '_fits', lambda problem: tried.append(problem) or fits(problem)
    )
    # The pair is among the first of more than a thousand swaps.
    names = [row['name'] for row in values['points']]
    monkeypatch.setattr(localisation, '_SWAPS', 20)
    problem = localisation._problem_of(from_mapping(Reference, values), CAMERAS)
    assert localisation._swaps(problem, names) == ['the positions of p12 and p28']
    assert len(tried) < 50


def test_small_contradiction_is_a_warning_and_widens_the_errors():
    values = mapping(rng=np.random.default_rng(12))
    plain = solved(values)
    values['points'][4]['position'][0] += 0.08
    found = solved(values)
    (said,) = found.warnings
    assert said.startswith('the measurements do not fit: residuals are')
    assert 'p5 is likely wrong' in said
    factor = math.sqrt(found.sum_of_squares / found.freedom)
    assert found.tip.error == pytest.approx(factor * plain.tip.error, rel=0.1)


def test_wrong_distance_is_found():
    values = mapping(rng=np.random.default_rng(13))
    values['distances'] = [{'between': ['p1', 'p2'], 'distance': 25.0, 'deviation': 0.005}]
    with pytest.raises(InputError, match='is likely wrong'):
        solved(values)


# --- files ----------------------------------------------------------------------------------


def test_example_gives_a_good_rig():
    example = share_directory('longreach_vision') / 'config' / 'reference_example.yaml'
    reference = load_reference(example)
    found = localise(reference, read_cameras(reference, example.parent))
    assert set(found.poses) == {'left', 'right'}
    assert found.warnings == ()
    assert found.tip.error < 0.02
    assert found.plane is not None


def change(**changes):
    """A reference of which some entries are others."""
    return {**mapping(), **changes}


def points_with(index, **changes):
    values = mapping()
    values['points'][index] |= changes
    return values


@pytest.mark.parametrize(
    ('values', 'text'),
    [
        (change(cameras={}), 'cameras: left and right are missing'),
        (change(points=[]), 'left sees 0 reference points, allowed: 3 or more'),
        (change(points=mapping()['points'][:2]), 'left sees 2 reference points'),
        (points_with(1, name='p1'), "points has the name 'p1', allowed: no two alike"),
        (points_with(1, name='left'), "points has the name 'left'"),
        (points_with(1, position=[1.0, 2.0]), 'points[1].position has 2 values, allowed: 3'),
        (points_with(1, position=[1.0, math.nan, 0.0]), 'points[1].position[1] = nan'),
        (points_with(1, left=[5000.0, 10.0]), 'p2 has the pixel (5000, 10) in left, allowed'),
        (points_with(1, deviation=0.0), 'points[1].deviation = 0.0, allowed: [1e-09, 10] m'),
        (points_with(1, colour='red'), 'points[1].colour is unknown'),
        (
            change(distances=[{'between': ['p1', 'p99'], 'distance': 1.0}]),
            "distances[0].between has 'p99', allowed: left, right, p1",
        ),
        (
            change(distances=[{'between': ['p1', 'p1'], 'distance': 1.0}]),
            "distances[0].between has 'p1' twice",
        ),
        (change(pixel_deviation=-1.0), 'pixel_deviation = -1.0'),
        (
            change(cameras={'left': {'calibration': 'left.yaml'}}),
            'points[0] has a pixel for right, but cameras has no right',
        ),
        (mapping(CLUSTERED[[0, 1, 4]] * (1.0, 0.0, 0.0)), 'of left lie along a line'),
        (mapping(SPREAD[[0, 1, 4, 5, 6]]), '2 points are said to lie in the plane'),
        (
            mapping(np.array([(5, 0, 1), (15, 0, 4), (25, 0, 7), (9, -4, 0), (19, -5, 1)], float)),
            'points with in_plane: points lie along a line',
        ),
    ],
)
def test_what_cannot_be_used_is_refused(values, text):
    with pytest.raises(InputError, match=re.escape(text)):
        solved(values)


def test_files_are_named_in_errors(tmp_path):
    file = tmp_path / 'reference.yaml'
    file.write_text(yaml.safe_dump(points_with(2, deviation=-1.0)))
    with pytest.raises(InputError, match=r'reference\.yaml: points\[2\]\.deviation = -1\.0'):
        load_reference(file)
    file.write_text(yaml.safe_dump(mapping()))
    with pytest.raises(InputError, match=r'left\.yaml cannot be read'):
        read_cameras(load_reference(file), tmp_path)
