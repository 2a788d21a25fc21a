"""
What the detector must reach on independently rendered windows; docs/vision.md has the figures.

Errors are per axis and RMS unless said otherwise. The figures are those of scenes of 2452 x 2054
with radii of 10 to 30 px, tilt to 60 deg, blur 0.7 to 1.0 px, noise 2 to 4 grey levels and shading
of up to 10 %, each kind with its own disturbance on top.
"""

import math

import numpy as np
import pytest
from evaluation import KINDS, evaluate, scenes
from independent_renderer import Scene, render
from scipy.stats import binom

from longreach_markers.camera.model import Camera
from longreach_markers.marker.detection import TRACKED, UNCERTAIN, detect

COUNT = 60
MANY = 2000
# Largest error [px]; the documented share of windows that are flagged, of 200 windows in the table
# of docs/vision.md, or of 60 windows with the seed 77 (marker/limits.py); and the factor by which
# the mean squared error and the stated variance may differ.
GOALS = {
    'base': (0.012, 0.0, 2.0),
    'shading': (0.02, 0.0, 2.0),
    'noise': (0.02, 0.0, 2.0),
    'motion_3': (0.02, 0.0, math.inf),
    'motion_6': (0.06, 0.03, math.inf),
    'bar': (0.05, 0.04, math.inf),
    'hidden': (0.2, 0.15, math.inf),
    'glare_third': (0.04, 0.9, math.inf),
    'neighbours': (0.02, 0.0, 2.0),
    'highlight': (0.04, 0.28, 2.0),
    # Where light bends within a sector variances are too small; without the light's own levels and
    # slopes they would be six times too small.
    'light_spot': (0.04, 0.03, 3.0),
    'shadow': (0.03, 0.01, 2.0),
    'shadow_rim': (0.03, 0.07, math.inf),
    'dappled': (0.05, 0.55, math.inf),
    'smoothed': (0.02, 0.0, 2.0),
    'median': (0.025, 0.05, 2.0),
    'normal_2': (0.012, 0.0, 2.0),
    'normal_4': (0.012, 0.0, 2.0),
    # Without any bends the variance would be 300 times too small; without those that are not
    # significant, 1.3 to 3.3 times.
    'bowed': (0.03, 0.32, 2.0),
    'jpeg_85': (0.015, 0.1, 2.0),
}
# A rate of which 200 windows show nothing, and how likely chance exceeds the bounds.
NONE_SEEN, BY_CHANCE = 1e-3, 1e-3


def window_camera(camera):
    *values, distortion = camera
    return Camera('window', *values, 'plumb_bob', distortion)


def tracked(image, at, radius, camera, normal):
    found = detect(image, at, radius, camera=window_camera(camera), normal_cam=normal)
    return found.status, found.center, found.covariance


def tracked_alone(image, at, radius, camera, normal):
    found = detect(image, at, radius)
    return found.status, found.center, found.covariance


@pytest.mark.slow_after(1)
@pytest.mark.parametrize('kind', GOALS)
def test_centre_is_as_exact_and_its_covariance_as_honest_as_promised(kind):
    reached = evaluate(tracked, scenes(kind, COUNT, seed=11))
    largest, flagged, honest = GOALS[kind]
    assert not reached.wrong, reached
    # Not more often than documented, but for what chance allows.
    most = binom.ppf(1.0 - BY_CHANCE, COUNT, max(flagged, NONE_SEEN))
    assert round(COUNT * reached.flagged) <= most, reached
    # Nothing to compare where all is flagged.
    assert reached.flagged == 1.0 or reached.rms <= largest, reached
    assert 1.0 / honest <= reached.normalised <= honest, reached


@pytest.mark.slow
def test_centre_is_near_the_best_that_is_possible():
    reached = evaluate(tracked, scenes('base', COUNT, seed=11), bounds=COUNT)
    assert reached.ratio <= 1.5, reached


@pytest.mark.slow
@pytest.mark.parametrize('sag', [0.0, 0.002, 0.005, 0.01, 0.02, 0.04, 0.08])
def test_covariance_knows_of_bends_of_any_size(sag):
    # 0.2 % cannot be seen at all, 8 % of most; without bends that are not significant, z^2 would
    # be 2.1, 3.8, 2.6 and 1.9 from 0.2 to 2 %.
    cases = [
        case._replace(scene=case.scene.changed(bow=math.copysign(sag, case.scene.bow)))
        for case in scenes('bowed', 100, seed=15)
    ]
    reached = evaluate(tracked, cases)
    assert not reached.wrong, reached
    assert 0.5 <= reached.normalised <= 2.0, reached


# Noise that is correlated, and markers that are not parallel to the plane.
@pytest.mark.parametrize('kind', ['smoothed', 'median', 'normal_2', 'normal_4', 'jpeg_85'])
def test_few_windows_show_an_honest_covariance(kind):
    # As above, with the scatter of 12 windows.
    reached = evaluate(tracked, scenes(kind, 12, seed=12))
    assert not reached.wrong, reached
    assert reached.flagged <= 0.5, reached
    assert 0.3 <= reached.normalised <= 2.5, reached


# 24 px, tilted by 40 degrees.
TILTED = Scene(
    center=(0.31, -0.22, 20.0), normal=(0.5, 0.4, -0.77), radius=0.12, background=200.0,
    marker=50.0, inside=190.0, inner=0.5, noise=0.0, bow_direction=0.6,
)  # fmt: skip


def seen(scene, normal=None):
    rendered = render(scene, 4)
    found = detect(
        rendered.image, rendered.center + np.array([2.0, -1.5]), 23.0,
        camera=window_camera(rendered.camera), normal_cam=normal or scene.normal,
    )  # fmt: skip
    return found, found.center - rendered.center


@pytest.mark.parametrize('inner', [0.0, 0.5])
def test_a_tilted_or_stretched_marker_has_an_honest_covariance(inner):
    scene = TILTED.changed(inner=inner)
    aside = 0.07 * np.array([0.77, 0.0, 0.5])
    right, least = seen(scene)
    tilted, error = seen(scene, tuple(np.array(scene.normal) + aside))
    assert tilted.status == right.status == TRACKED
    # 0.03 px, of which the ellipse shows that the normal is wrong, but not how.
    assert (error - least) @ np.linalg.solve(tilted.covariance, error - least) < 4.0
    for roll in (0.0, 0.8, 1.6):
        stretched, error = seen(scene.changed(aspect=0.02, roll=roll))
        assert stretched.status == TRACKED
        # The centre of a stretched print is where it was: no tilt is read from it.
        assert np.hypot(*(error - least)) < 0.003
        assert stretched.covariance[0, 0] < 2.0 * tilted.covariance[0, 0]


@pytest.mark.slow
@pytest.mark.parametrize('aspect', [0.005, 0.01, 0.02])
def test_covariance_knows_of_prints_out_of_round(aspect):
    cases = [c._replace(scene=c.scene.changed(aspect=aspect)) for c in scenes('base', COUNT, 11)]
    reached = evaluate(tracked, cases)
    assert not reached.wrong, reached
    assert 0.3 <= reached.normalised <= 1.0, reached


@pytest.mark.parametrize('bow', [-0.06, 0.03, 0.08])
def test_a_bent_ring_keeps_its_centre(bow):
    found, error = seen(TILTED.changed(bow=bow))
    assert found.status == TRACKED, found.reason
    # 0.1 to 0.4 px where the paper is regarded as flat.
    assert np.hypot(*error) < 0.03


def test_a_bent_disc_is_flagged():
    # To which side the paper is bent cannot be seen.
    found, error = seen(TILTED.changed(inner=0.0, bow=0.06))
    assert found.status == UNCERTAIN
    assert 'not flat' in found.reason
    assert error @ np.linalg.solve(found.covariance, error) < 9.0


def test_a_spot_of_light_in_a_disc_is_no_inner_edge():
    # Of all that the spot does not hide, a ring with this inner edge is the best explanation.
    case = scenes('dappled', 23, seed=77)[22]
    assert case.scene.inner == 0.0
    reached = evaluate(tracked, [case])
    assert not reached.wrong, reached
    assert reached.flagged == 1.0, reached


@pytest.mark.slow
def test_glare_over_more_than_a_third_is_flagged():
    reached = evaluate(tracked, scenes('glare_more', COUNT, seed=11))
    assert reached.flagged == 1.0, reached


@pytest.mark.slow
def test_centre_of_the_ellipse_needs_no_camera():
    reached = evaluate(tracked_alone, scenes('base', COUNT, 11), COUNT, ellipse_center=True)
    assert not reached.wrong, reached
    assert reached.flagged <= 0.02, reached
    assert reached.rms <= 0.012, reached
    assert reached.ratio <= 1.5, reached


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_window_is_wrong_without_a_flag():
    reached = evaluate(tracked, scenes('all', MANY, seed=20))
    assert not reached.wrong, (reached, [KINDS[k % len(KINDS)] for k in reached.wrong])


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_clutter_is_no_marker_in_many_windows():
    reached = evaluate(tracked, scenes('empty', 500, seed=21))
    assert reached.flagged == 1.0, reached
