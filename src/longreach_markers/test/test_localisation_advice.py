"""What is said about poses: doubts are told, and what is wrong is named."""

import math
import re

import numpy as np
import pytest
from known_rig import CAMERAS, CLUSTERED, LENS, SPREAD, mapping, solved

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import from_mapping
from longreach_markers.setup import localisation
from longreach_markers.setup.bundle_adjustment import best_fit
from longreach_markers.setup.localisation import reference_file


def test_spread_points_are_far_better_than_clustered_ones():
    rng = np.random.default_rng(7)
    spread, clustered = (solved(mapping(p, rng, deviation=0.005)) for p in (SPREAD, CLUSTERED))
    # In the plane, across the line of sight.
    near, far = (
        min(math.sqrt(np.trace(cov) / 2.0) for cov in found.tip.in_plane.values())
        for found in (spread, clustered)
    )
    assert 0.002 < near < 0.006
    assert 0.015 < far < 0.06
    assert spread.warnings == ()
    (said, *shares) = clustered.warnings
    assert re.match(r'a marker at the tip would be off by \d+ mm, at the reference points', said)
    assert 'clustered and in one plane, far from the tip' in said
    assert len(shares) == 2
    assert shares[0].startswith('the reference points cover')


@pytest.mark.parametrize('deviation', [5.0, 0.01])
@pytest.mark.parametrize('cameras', [CAMERAS, {'left': LENS}])
def test_lengths_in_millimetres_are_told(deviation, cameras):
    values = mapping(rng=np.random.default_rng(7), deviation=0.005, cameras=cameras)
    for row in values['points']:
        row['position'] = [1e3 * number for number in row['position']]
        row['deviation'] = deviation
    told = r'left stands 2\.\d+e\+04 m from its points, .*: are lengths in millimetres\? give'
    if deviation == 0.01 and len(cameras) == 2:
        with pytest.raises(InputError, match=f'do not fit.*; {told}'):
            solved(values, cameras)
    else:
        warnings = solved(values, cameras).warnings
        assert sum(bool(re.search(told, text)) for text in warnings) == 1


@pytest.mark.parametrize('far', [1.0, 20.0])
def test_large_scenes_are_not_taken_for_millimetres(far):
    values = mapping(rng=np.random.default_rng(7), deviation=0.005)
    for row in values['points']:
        row['position'] = [far * number for number in row['position']]
        row['deviation'] *= far
    assert not any('millimetres' in text for text in solved(values).warnings)


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
    assert any('or equally likely at' in text for text in found.warnings)
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
    with pytest.raises(InputError, match='; p2 and p5 do not fit the others: swapped'):
        solved(values)


def test_of_four_points_none_is_named_as_any_three_agree():
    values = mapping(SPREAD[:4], np.random.default_rng(11))
    rows = values['points']
    rows[1]['left'], rows[2]['left'] = rows[2]['left'], rows[1]['left']
    with pytest.raises(InputError) as caught:
        solved(values)
    assert 'fit the others' not in str(caught.value)


def swapped(rng, one, other):
    """A reference, without points of the plane, with two positions in each other's place."""
    values = mapping(rng=rng)
    for row in values['points']:
        row['in_plane'] = False
    a, b = values['points'][one], values['points'][other]
    a['position'], b['position'] = b['position'], a['position']
    return values


@pytest.mark.slow_after(1)
@pytest.mark.parametrize('pair', [(0, 1), (0, 4), (2, 3), (3, 6), (1, 7), (5, 7)])
def test_swapped_positions_are_named(pair):
    values = swapped(np.random.default_rng(14), *pair)
    told = f'; p{pair[0] + 1} and p{pair[1] + 1} do not fit the others: swapped or mistyped'
    with pytest.raises(InputError, match=told):
        solved(values)


@pytest.mark.slow
def test_swapped_positions_are_named_where_no_pose_has_all_points_in_front():
    values = swapped(np.random.default_rng(15), 0, 6)
    problem = localisation._problem_of(from_mapping(reference_file(CAMERAS), values), CAMERAS)
    assert best_fit(problem)[0] is None
    text = 'no pose has all points in front of the camera; p1 and p7 do not fit the others'
    with pytest.raises(InputError, match=text):
        solved(values)


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
