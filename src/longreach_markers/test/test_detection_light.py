"""Detection in bad light, at the border, and in full frames."""

import dataclasses
import math
import re
from pathlib import Path

import cv2
import numpy as np
import pytest
from exact_marker import SIZE, draw, taken
from independent_views import digitised, view
from small_rig import START, small_rig, write_rig
from test_detection import (
    AT,
    CAMERA,
    FACING,
    HEIGHT,
    WIDTH,
    error,
    is_right_or_flagged,
    marker,
    near,
)

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import rule_of
from longreach_markers.camera.model import Camera
from longreach_markers.io.image_sources import Picture
from longreach_markers.marker.detection import LOST, TRACKED, UNCERTAIN, detect, find_markers
from longreach_markers.marker.limits import LIMITS, DetectionLimits
from longreach_markers.rig import load_rig
from longreach_markers.tracking.follower import Follower, follow

# --- light, and what lies on the marker ------------------------------------------------------


@pytest.mark.parametrize('turn', [0.0, 2.2])
def test_slanted_light_is_known_to_shift_edges(turn):
    """On the scene it shifts them by the variance of the blur times its slope, vignetting not."""
    slope, radius, blur = 0.3, 11.0, 1.1

    def light(x, y):
        return 1.0 + slope * (math.cos(turn) * x + math.sin(turn) * y)

    levels = (120.0, 30.0, 125.0)
    on_scene, center = marker(radius=radius, blur=blur, levels=levels, light=light)
    even, _ = marker(radius=radius, blur=blur, levels=levels)
    v, u = np.mgrid[:HEIGHT, :WIDTH]
    in_lens = even * np.clip(light((u - AT[0]) / radius, (v - AT[1]) / radius), 0.0, 2.0)
    seen = [detect(taken(one, 0.2), near(center), radius) for one in (on_scene, in_lens)]
    errors = [one.center - center for one in seen]
    shift = math.dist(*errors)
    assert shift == pytest.approx(slope / radius * (blur**2 + 1.0 / 12.0), rel=0.3)
    for one, off in zip(seen, errors, strict=True):
        assert one.status == TRACKED
        assert math.hypot(*off) < 0.65 * shift
        assert off @ np.linalg.solve(one.covariance, off) < 4.0


@pytest.mark.parametrize(
    ('name', 'light'),
    [
        ('bowl', lambda x, y: 1.0 + 0.15 * (x * x + y * y)),
        ('hill', lambda x, y: 1.0 - 0.2 * np.minimum(x * x + 0.3 * x * y, 3.0)),
        ('wave', lambda x, y: 1.0 + 0.2 * np.sin(0.5 * math.pi * (0.6 * x + 0.8 * y) + 0.7)),
    ],
)
@pytest.mark.parametrize('inner', [0.0, 0.5])
def test_curved_light_is_no_reason_to_lose_a_marker(name, light, inner):
    levels = (110.0, 30.0, 130.0)
    exact, center = marker(radius=18.0, inner=inner, levels=levels, light=light)
    seen = detect(taken(exact, 1.0), near(center), 18.0)
    assert error(seen, center) < 0.03, name
    assert seen.rim_support > 0.9
    assert seen.residual < 2.0


@pytest.mark.parametrize('grey', [50.0, 70.0])
@pytest.mark.parametrize('turn', np.arange(6))
def test_a_lid_on_the_marker_is_not_taken_for_it(grey, turn):
    direction = np.array([math.cos(turn), math.sin(turn)])
    place, radius = np.array(AT), 17.0
    lid = place + 14.0 * direction, 0.8 * radius, grey
    exact, center = marker(radius=radius, inner=0.7, lid=lid)
    seen = detect(taken(exact, 1.0), near(center, -3.0 * direction), radius, camera=CAMERA)
    assert is_right_or_flagged(seen, center, 0.2)


@pytest.mark.parametrize('white', [255.0, 290.0, 330.0])
def test_white_beyond_the_sensors_range_moves_no_centre(white):
    def slanted(turn):
        return lambda u, v: 1.0 + 0.05 * (math.cos(turn) * u + math.sin(turn) * v)

    squares = []
    for seed in range(12):
        light = slanted(2.0 * math.pi * seed / 12.0)
        levels = (white, 40.0, white)
        exact, center = marker(AT, 15.0 + 0.7 * seed, inner=0.6, levels=levels, light=light)
        image = taken(exact, seed=seed)
        seen = detect(image, near(center), 20.0, camera=CAMERA, normal_cam=FACING)
        assert error(seen, center) < 0.04, seed
        off = seen.center - center
        squares.append(off @ np.linalg.solve(seen.covariance, off) / 2.0)
    # What is stated is true, too.
    assert np.mean(squares) < 2.0


@pytest.mark.parametrize('seed', range(4))
@pytest.mark.parametrize('known', [False, True])
def test_a_near_round_board_is_not_taken_for_a_rings_outer_edge(known, seed):
    rng = np.random.default_rng(seed)
    camera = Camera('c', WIDTH, HEIGHT, 4000.0, 4000.0, 98.0, 81.0, 'plumb_bob', ())
    view = {'camera': camera, 'normal_cam': FACING} if known else {'camera': camera}
    for margin in (0.15, 0.25, 0.35):
        turn, radius = rng.uniform(0.0, 2.0 * math.pi), rng.uniform(14.0, 24.0)
        off = 0.08 * radius * np.array([math.cos(turn), math.sin(turn)])
        disc = {'inner': 0.0, 'camera': camera}
        board, _ = marker(
            np.add(AT, off), (1.0 + margin) * radius, levels=(0.0, 200.0, 90.0), **disc
        )
        exact, center = marker(AT, radius, levels=(0.0, 40.0, 200.0), ground=board, **disc)
        seen = detect(taken(exact, seed=seed), near(center), radius, **view)
        assert is_right_or_flagged(seen, center, 0.5), (margin, turn, radius)


def test_a_lid_that_is_nearer_is_what_was_meant():
    exact, _ = marker(radius=17.0, inner=0.7, lid=((120.0, 78.0), 14.0, 50.0))
    seen = detect(taken(exact, 1.0), (119.0, 78.5), 14.0)
    assert error(seen, (120.0, 78.0)) < 0.2


def test_a_size_far_from_the_expected_one_is_flagged():
    exact, center = marker(radius=9.0, inner=0.0, lid=((103.0, 62.0), 9.0, 200.0))
    seen = detect(taken(exact, 1.0), near(center), 17.0)
    assert seen.status != TRACKED
    assert error(detect(taken(exact, 1.0), near(center), 10.0), center) < 0.1


# --- at the border --------------------------------------------------------------------------


@pytest.mark.parametrize(
    'at', [(18.2, 80.0), (181.0, 80.0), (100.0, 18.5), (100.0, 141.0), (18.4, 18.8)]
)
def test_a_marker_next_to_the_border_is_whole(at):
    exact, center = marker(at, 14.0)
    seen = detect(taken(exact), near(center, (1.0, 1.0)), 14.0)
    assert error(seen, center) < 0.03
    assert seen.rim_support > 0.9


@pytest.mark.parametrize('u', [14.0, 8.0, 3.0, 0.0, -0.4])
def test_a_marker_partly_outside_is_right_or_flagged(u):
    exact, center = marker((u, 80.0), 16.0)
    seen = detect(taken(exact), (max(u, -0.5), 80.0), 16.0, camera=CAMERA, normal_cam=FACING)
    assert is_right_or_flagged(seen, center)


@pytest.mark.parametrize('size', [16, 17, 20, 25])
def test_tiny_images(size):
    image = np.random.default_rng(size).integers(0, 256, (size, size), dtype=np.uint8)
    assert detect(image, (0.5 * size, 0.5 * size), 6.0).status != TRACKED
    assert find_markers(image) == []


# --- the full frame -------------------------------------------------------------------------


def test_rings_are_found_in_a_full_frame_and_clutter_is_not():
    camera = Camera('c', 640, 480, 1500.0, 1500.0, 320.0, 240.0, 'plumb_bob', ())
    random = np.random.default_rng(4)
    ground = np.full((480, 640), 140.0)
    for _ in range(60):
        a, b = random.integers(0, 640, (2, 2)).tolist()
        cv2.line(ground, a, b, random.uniform(0.0, 250.0), 2)
    for _ in range(8):
        # Discs alone are no rings.
        at = random.integers(20, 460, 2).tolist()
        cv2.circle(ground, at, int(random.integers(6, 20)), random.uniform(0.0, 250.0), -1)
    centers = []
    for at in ((120.3, 90.2), (420.8, 130.5), (250.1, 330.7), (540.4, 400.1)):
        u, v = round(at[0]), round(at[1])
        ground[v - 36 : v + 36, u - 36 : u + 36] = 205.0
        ground, center = marker(at, 16.0, camera=camera, ground=ground)
        centers.append(center)
    image = taken(ground)
    found = find_markers(image, camera=camera, normal_cam=FACING)
    assert len(found) == 4
    # From top to bottom.
    order = sorted(centers, key=lambda center: center[1])
    np.testing.assert_allclose([one.center for one in found], order, atol=0.03)
    assert all(one.status == TRACKED and one.rim_support >= 0.6 for one in found)
    assert find_markers(image, (20.0, 60.0)) == []
    alone = find_markers(image)
    np.testing.assert_allclose([one.center for one in alone], order, atol=0.03)


def test_half_a_ring_is_not_found_without_being_asked_for():
    exact, center = marker(radius=20.0)
    exact[:, int(center[0]) - 2 :] = 200.0
    assert find_markers(taken(exact)) == []


# --- thresholds ----------------------------------------------------------------------------------


FIELDS = dataclasses.fields(DetectionLimits)


def test_each_limit_has_a_unit_and_a_basis():
    text = (Path(__file__).parents[3] / 'docs/vision.md').read_text()
    basis = dict(re.findall(r'^\| `(\w+)` \| (.+) \|$', text, re.MULTILINE))
    sources = '\n'.join(
        file.read_text() for file in Path(__file__).parents[2].glob('longreach_*/test/test_*.py')
    )
    for field in FIELDS:
        assert rule_of(field).unit
        for name in re.findall(r'test_\w+', basis[field.name]):
            assert f'def {name}(' in sources, name


def seen(hidden=0.0, **limits):
    """What is found of a dark ring, of whose width a share is hidden from the right."""
    image = draw(shape=20.0 * np.eye(2), levels=(180.0, 50.0, 180.0))
    if hidden:
        image[:, round(56.3 - 40.0 * hidden) :] = 110.0
    image = taken(image, 1.5, seed=1)
    camera = Camera('any', SIZE, SIZE, 2000.0, 2000.0, 36.0, 36.0)
    look = {'camera': camera, 'normal_cam': (0.0, 0.0, 1.0), 'limits': LIMITS.replace(**limits)}
    return detect(image, (36.0, 36.0), 20.0, **look)


def test_detection_obeys_its_limits():
    plain = seen()
    assert (plain.status, plain.rim_support) == (TRACKED, 1.0)
    for limits, reason in (
        ({'largest_deviation': 1e-4}, 'standard deviation of'),
        ({'softest': 0.1}, 'edges are blurred by'),
        ({'brightest': 100.0}, 'glare'),
        ({'unexplained': 0.0, 'unexplained_grey': 0.01, 'noise_tolerance': 0.1}, 'residual of'),
    ):
        found = seen(**limits)
        assert found.status == UNCERTAIN
        assert reason in found.reason
    assert seen(least_contrast=1e3).status == LOST
    one, two = (seen(inflation=k * LIMITS.inflation, floor=0.0).covariance for k in (1.0, 2.0))
    assert two == pytest.approx(2.0 * one)
    with pytest.raises(InputError, match=r'radius = 20 px; allowed: \[4, 15\] px'):
        seen(largest=15.0)
    # The plane is seen at 80 deg less the angle of the ray.
    look = {'camera': Camera('any', 100, 100, 200.0, 200.0, 50.0, 50.0), 'normal_cam': (0, 0, 1)}
    limits = LIMITS.replace(elevation=np.radians(80.0))
    with pytest.raises(InputError, match='allowed: at least 80 deg'):
        detect(np.zeros((100, 100), np.uint8), (99.0, 50.0), 20.0, limits=limits, **look)


def test_less_of_the_rim_may_be_enough():
    half = seen(0.45)
    assert half.status == TRACKED
    share = half.rim_support
    assert 0.4 < share < 0.75
    strict = seen(0.45, trusted_rim=share + 0.05)
    assert strict.status == UNCERTAIN
    assert strict.reason.endswith('% of the rim fits')
    assert seen(0.45, trusted_rim=share + 0.1, least_rim=share + 0.05).status == LOST


def test_a_rig_file_has_limits(tmp_path):
    file = tmp_path / 'rig.yaml'
    write_rig(small_rig(), file)
    text = file.read_text()
    file.write_text(f'{text}detection: {{softest: 0.2, fastest: 0.3}}\n')
    rig = load_rig(file)
    assert rig.detection == LIMITS.replace(softest=0.2, fastest=0.3)
    assert rig.scaled(0.9).detection == rig.detection
    rng = np.random.default_rng(1)
    pictures = [
        Picture(side, 0, digitised(view(rig, side, lambda _: START), rng), side)
        for side in rig.cameras
    ]
    ((_, frame, _),) = follow(Follower(rig), pictures)
    assert {one.status for one in frame.estimates.values()} == {UNCERTAIN}
    file.write_text(f'{text}detection: {{softest: 4.0}}\n')
    with pytest.raises(InputError, match=r'softest = 4 px, allowed: at most fastest = 3\.2'):
        load_rig(file)
