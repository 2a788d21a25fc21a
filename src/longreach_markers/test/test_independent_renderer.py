"""
The renderer that judges the detector, against closed forms and plain point sampling.

And the Cramer-Rao bound and the report.
"""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from evaluation import Case, bound, evaluate, fisher_information, rms
from independent_renderer import (
    PinholeCamera,
    Scene,
    back_project,
    plane_axes,
    project,
    render,
    render_exact,
    rim_points,
    truth,
    window_of,
)
from scipy.ndimage import map_coordinates


def matched(scene):
    """Return a detector that knows all but the centre of a marker: one Gauss-Newton step."""
    step = 0.1

    def moved(u, v):
        center = back_project(scene.camera, truth(scene)[0] + [u, v]) * scene.center[2]
        return render_exact(scene.changed(center=tuple(center), window=window_of(scene)))

    exact = moved(0.0, 0.0)
    differences = moved(step, 0.0) - moved(-step, 0.0), moved(0.0, step) - moved(0.0, -step)
    slopes = np.stack([difference.ravel() for difference in differences], axis=1) / (2.0 * step)
    covariance = (scene.noise**2 + 1.0 / 12.0) * np.linalg.inv(slopes.T @ slopes)

    def detect(image, at, radius, camera, normal):
        shift = np.linalg.lstsq(slopes, (image - exact).ravel(), rcond=None)[0]
        return 'TRACKED', project(camera, np.array(scene.center)) + shift, covariance

    return detect


CAMERA = PinholeCamera()
LENS = PinholeCamera(distortion=(-0.2, 0.05, 8e-4, -5e-4, 0.02))
# Straight on: 20 px radius, its centre on no special place of the pixels.
DISC = Scene(
    center=(0.1013, -0.0377, 20.0), background=200.0, marker=50.0, blur=0.8, window=None, noise=0.0
)
TILTED = DISC.changed(
    camera=LENS, center=(4.1, -3.2, 20.0), normal=(0.6, 0.3, -0.8), inner=0.5, radius=0.12
)


def moments(exact):
    """Return sum, centroid (u, v) and spread (2, 2) of what differs from the background."""
    mass = exact - DISC.background
    places = np.argwhere(np.ones(exact.shape))[:, ::-1]
    total, centroid = mass.sum(), mass.ravel() @ places / mass.sum()
    away = places - centroid
    return total, centroid, (away.T * mass.ravel()) @ away / total


def on_the_rim(rendered):
    return map_coordinates(rendered.exact, rendered.rim.T[::-1], order=3)


@pytest.mark.slow
def test_judge_shares_no_code_with_what_it_judges():
    loaded = 'import sys, evaluation; print([m for m in sys.modules if m.startswith("longreach")])'
    done = subprocess.run(
        [sys.executable, '-c', loaded],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == '[]'


@pytest.mark.parametrize('blur', [0.0, 0.7, 1.5])
def test_disc_straight_on_keeps_area_and_centroid(blur):
    rendered = render(DISC.changed(blur=blur))
    total, centroid, _ = moments(rendered.exact)
    radius = CAMERA.fx * DISC.radius / DISC.center[2]
    assert total / (DISC.marker - DISC.background) == pytest.approx(math.pi * radius**2, rel=2e-5)
    # Its outline is a circle about the projected centre, because it is parallel to the sensor.
    # Without blur the pixels are too few for the exact centroid (aliasing).
    np.testing.assert_allclose(centroid, rendered.center, atol=1e-5 if blur else 1e-3)


@pytest.mark.parametrize('scene', [TILTED, TILTED.changed(motion=4.0, motion_direction=0.5)])
def test_error_falls_with_the_square_of_the_cells(scene):
    scene = scene.changed(radius=0.06)
    limit = render_exact(scene, 24)
    errors = [render_exact(scene, cells) - limit for cells in (4, 8)]
    largest = [np.abs(error).max() for error in errors]
    assert largest[1] < 0.15  # of a contrast of 150
    assert np.sqrt(np.mean(errors[1] ** 2)) < 0.025
    assert largest[0] / largest[1] > 3.0
    # Displacements that explain them best [px].
    slopes = np.reshape(np.gradient(limit), (2, -1))
    shifts, *_ = np.linalg.lstsq(slopes.T, np.reshape(errors, (2, -1)).T, rcond=None)
    assert np.abs(shifts).max() < 2e-5


def test_pixels_are_those_of_point_sampling():
    # A second way through: rays through random points of each pixel and its neighbourhood.
    scene = TILTED.changed(blur=0.8, window=None)
    u0, v0, width, height = window_of(scene)
    exact = render_exact(scene)
    rng = np.random.default_rng(3)
    normal, center = plane_axes(scene)[2], np.array(scene.center)
    for row, column in [(height // 2, width // 2 + 5), (height // 2 + 9, width // 2), (12, 40)]:
        count = 40_000
        points = np.array([u0 + column, v0 + row]) + rng.uniform(-0.5, 0.5, (count, 2))
        points += rng.normal(0.0, scene.blur, (count, 2))
        rays = back_project(scene.camera, points.T).T
        hits = rays * ((normal @ center) / (rays @ normal))[:, None] - center
        away = np.linalg.norm(hits, axis=1) / scene.radius
        levels = np.where(away > 1.0, scene.background, scene.marker)
        levels = np.where(away < scene.inner, scene.inside, levels)
        deviation = levels.std() / math.sqrt(count)
        assert exact[row, column] == pytest.approx(levels.mean(), abs=4.0 * deviation + 0.1)


def test_ellipse_is_the_outline_of_the_image():
    rendered = render(TILTED)
    u, v = (rendered.rim - rendered.ellipse.center).T
    away = np.hypot(u, v)
    np.testing.assert_allclose([away.max(), away.min()], rendered.ellipse.axes, rtol=2e-4)
    # Both halves of it.
    for half in (away[u > 0.0], away[u < 0.0]):
        np.testing.assert_allclose([half.max(), half.min()], rendered.ellipse.axes, rtol=2e-4)
    # Half way between the grey levels, but for the blur on a bent edge.
    assert np.mean(on_the_rim(rendered)) == pytest.approx(125.0, abs=3.0)


def test_motion_widens_along_its_direction_only():
    length, direction = 6.0, 0.6
    along = np.array([math.cos(direction), math.sin(direction)])
    still = DISC.changed(radius=0.05, window=(1200, 970, 90, 90))
    moving = still.changed(motion=length, motion_direction=direction)
    (_, at, spread), (_, middle, wide) = (moments(render_exact(one)) for one in (still, moving))
    np.testing.assert_allclose([at, middle], [truth(still)[0] - (1200, 970)] * 2, atol=1e-4)
    expected = length**2 / 12.0 * np.outer(along, along)
    np.testing.assert_allclose(wide - spread, expected, atol=2e-3)


def test_bound_of_a_disc_is_the_integral_over_its_edge():
    # A piece ds of an edge with contrast C, blurred to b and under noise s, adds
    # n n' C^2 / (2 sqrt(pi) b s^2) ds to the information; over a circle n n' averages to 1/2.
    scene = DISC.changed(noise=3.0, center=(0.0, 0.0, 20.0))
    blur = math.sqrt(0.8**2 + 1.0 / 12.0)
    edge = 150.0**2 / (2.0 * math.sqrt(math.pi) * blur)
    information = math.pi * 20.0 * edge / (3.0**2 + 1.0 / 12.0)
    matrix, _ = fisher_information(scene)
    np.testing.assert_allclose(matrix[:2, :2] / information, np.eye(2), atol=0.015)
    # Unknown shading takes some of it.
    assert 1.0 < information * bound(scene).known[0, 0] < 1.15


@pytest.mark.parametrize('bow', [-0.08, 0.08])
def test_bent_paper_has_its_rim_where_rays_meet_it(bow):
    flat, bent = (
        render(TILTED.changed(bow=one, bow_direction=0.7, inner=0.0)) for one in (0.0, bow)
    )
    # Half of the contrast of 150 grey levels, 75 per pixel, but for the curvature of the edge.
    np.testing.assert_allclose(on_the_rim(flat), 125.0, atol=4.0)
    np.testing.assert_allclose(on_the_rim(bent), on_the_rim(flat), atol=1.5)
    assert np.max(np.hypot(*(bent.rim - flat.rim).T)) > 0.5


def test_bending_keeps_lengths():
    bent = rim_points(TILTED.changed(bow=0.08, bow_direction=0.7), count=2000)
    around = np.linalg.norm(np.diff(bent, axis=0, append=bent[:1]), axis=1).sum()
    assert around == pytest.approx(2.0 * np.pi * TILTED.radius, rel=1e-5)
    height = (bent - np.array(TILTED.center)) @ np.array(TILTED.normal)
    height /= np.linalg.norm(TILTED.normal) * TILTED.radius
    assert height.max() == pytest.approx(0.08, rel=0.02)
    assert height.min() == pytest.approx(0.0, abs=1e-3)


def test_report_counts_what_is_wrong_and_what_is_flagged():
    cases = [Case(DISC, np.zeros(2), 1.0)] * 4
    found = iter([('TRACKED', 0.01), ('TRACKED', 0.6), ('UNCERTAIN', 3.0), ('LOST', None)])
    exact = render(DISC).center

    def detector(*_):
        status, error = next(found)
        return status, None if error is None else exact + np.array([error, 0.0]), 1e-4 * np.eye(2)

    report = evaluate(detector, cases)
    assert (report.wrong, report.flagged) == ([1], 0.5)
    assert report.rms == pytest.approx(math.sqrt((0.01**2 + 0.6**2) / 4.0), rel=1e-6)
    assert report.normalised == pytest.approx((1.0 + 3600.0) / 4.0)


@pytest.mark.slow
def test_an_efficient_estimator_reaches_the_bound():
    scene = DISC.changed(noise=4.0, inner=0.5, radius=0.06)
    cases = [Case(scene.changed(seed=k), np.zeros(2), 1.0) for k in range(200)]
    report = evaluate(matched(scene), cases)
    information, _ = fisher_information(scene)
    least = rms(np.linalg.inv(information[:2, :2]))
    assert not report.wrong
    assert report.rms / least == pytest.approx(1.0, abs=0.15)
    assert report.normalised == pytest.approx(1.0, abs=0.3)
