"""Noise apart from systematic errors: of rendered markers, and where one camera drops out."""

import dataclasses

import numpy as np
import pytest
from independent_views import digitised, view
from known_rig import LENS, POSES, SPREAD, TIP, mapping, moved_pose, solved
from small_rig import START, small_rig

from longreach_markers.camera.geometry import Plane
from longreach_markers.camera.triangulation import locate_in_plane, triangulate
from longreach_markers.marker.detection import TRACKED
from longreach_markers.tracking.rig_tracker import RigTracker

SIDES = ('left', 'right')
INSIDE = np.ix_([0, 2], [0, 2])  # of the plane
# Standard deviations of a pose: rotation [rad], position [m].
TURN, SHIFT = 1e-3, 3e-3
POSE_COVARIANCE = np.diag([TURN**2] * 3 + [SHIFT**2] * 3)


def wrong_rig(seed):
    """Return the small rig with poses that are wrong by draws of their stated covariance."""
    rng, rig, cameras = np.random.default_rng(seed), small_rig(), {}
    for side, one in rig.cameras.items():
        pose = dataclasses.replace(one.pose, covariance=POSE_COVARIANCE)
        error = rng.multivariate_normal(np.zeros(6), POSE_COVARIANCE)
        cameras[side] = dataclasses.replace(one, pose=moved_pose(pose, error))
    return dataclasses.replace(rig, cameras=cameras)


def tracked(rig, seed, places, sides):
    rng, tracker, true = np.random.default_rng(seed), RigTracker(rig), small_rig()
    exact = {}
    found = []
    for k, (place, used) in enumerate(zip(places, sides, strict=True)):
        images = {}
        for side in used:
            key = side, place.tobytes()
            if key not in exact:
                exact[key] = view(true, side, lambda _, place=place: place)
            images[side] = digitised(exact[key], rng)
        times = dict.fromkeys(images, k / 15.0)
        if k == 0:
            tracker.start(images, times)
        found.append(tracker.update(images, times).estimates)
    return found[1:]


def test_noise_averages_out_and_systematic_errors_do_not():
    count = 25
    z_noise, z_mean, shares = [], [], []
    for seed in range(4):
        found = tracked(wrong_rig(seed), seed, [START] * (count + 1), [SIDES] * (count + 1))
        for k, name in enumerate(('one', 'two')):
            for kind in ('in_plane', 'triangulated'):
                seen = [getattr(one[name], kind) for one in found]
                inside = np.array([one.position for one in seen])[:, [0, 2]]
                noise = np.mean([one.noise[INSIDE] for one in seen], axis=0)
                systematic = np.mean([one.systematic[INSIDE] for one in seen], axis=0)
                np.testing.assert_allclose(seen[0].noise + seen[0].systematic, seen[0].covariance)
                scatter = inside - inside.mean(axis=0)
                squares = np.einsum('ki,ij,kj->k', scatter, np.linalg.inv(noise), scatter)
                z_noise.append(squares.sum() / (2.0 * (count - 1)))
                error = inside.mean(axis=0) - START[k, [0, 2]]
                stated = systematic + noise / count
                z_mean.append(error @ np.linalg.solve(stated, error) / 2.0)
                shares.append(error @ error / np.trace(noise / count))
    assert 0.5 < np.mean(z_noise) < 2.0
    assert 0.2 < np.mean(z_mean) < 3.0
    # A mean of independent errors would be far better than it is.
    assert np.median(shares) > 100.0


@pytest.mark.parametrize('side', SIDES)
def test_no_step_where_a_camera_drops_out(side):
    both, alone = 12, 12
    for seed in range(3):
        sides = [SIDES] * (both + 1) + [(side,)] * alone
        found = tracked(wrong_rig(seed), seed, [START] * len(sides), sides)
        for name in ('one', 'two'):
            assert all(one[name].status == TRACKED for one in found)
            seen = [one[name].in_plane for one in found]
            places = np.array([one.position for one in seen])
            step = places[both:].mean(axis=0) - places[:both].mean(axis=0)
            noise = seen[0].noise / 2.0 + seen[-1].noise / alone
            # Half of the noise of one image, where the poses' errors are ten times larger.
            assert np.linalg.norm(step) < 3.0 * np.sqrt(np.trace(noise))
            assert np.sqrt(np.trace(seen[-1].systematic)) > 10.0 * np.linalg.norm(step)


def test_a_camera_alone_is_trusted_as_such_far_from_where_both_were():
    far = START + np.array([0.6, 0.0, -0.5])
    way = [START + share * (far - START) for share in np.linspace(0.0, 1.0, 16)]
    rig = wrong_rig(1)
    found = tracked(rig, 1, [START] * 6 + way, [SIDES] * 6 + [('left',)] * 16)
    last = found[-1]['one'].in_plane
    error = (last.position - far[0])[[0, 2]]
    assert error @ np.linalg.solve(last.covariance[INSIDE], error) < 12.0
    # Between that of both cameras at the start and that of one.
    start = found[4]['one'].in_plane
    assert np.trace(last.systematic) > 1.02 * np.trace(start.systematic)


def test_a_marker_off_its_plane_is_less_certain_in_the_plane():
    sway = START + np.array([0.0, 0.04, 0.0])
    found = tracked(small_rig(), 2, [START] * 2 + [sway] * 3, [SIDES] * 5)
    for k, name in enumerate(('one', 'two')):
        one = found[-1][name]
        assert one.status == TRACKED
        error = (one.in_plane.position - sway[k])[[0, 2]]
        covariance = one.in_plane.covariance[INSIDE]
        assert error @ np.linalg.pinv(covariance) @ error < 12.0
        at_rest = found[0][name].in_plane.covariance[INSIDE]
        assert np.trace(covariance) > 10.0 * np.trace(at_rest)


def test_the_predicted_error_of_a_movement_is_that_of_its_scatter():
    ratios = []
    for seed in range(12):
        found = solved(mapping(SPREAD, np.random.default_rng(seed)))
        plane = found.plane.plane
        for step in np.eye(3)[[0, 2]]:
            pixels = LENS.project(POSES['left'].to_camera(np.array([TIP, TIP - step])))
            end, start = (
                locate_in_plane(LENS, found.poses['left'], plane, pixel, 1e-8 * np.eye(2)).position
                for pixel in pixels
            )
            error = float((end - start) @ step) - 1.0
            ratios.append(error / found.tip.movement)
        # Positions are far less exact than movements.
        assert found.tip.error > 10.0 * found.tip.movement
    assert 0.5 < np.sqrt(np.mean(np.square(ratios))) < 1.5


def test_errors_of_the_calibration_are_systematic():
    poses = POSES['left'], POSES['right']
    point, plane = np.array([14.0, 0.0, 5.0]), Plane(np.array([0.0, 1.0, 0.0]), 0.0)
    pixels = np.array([LENS.project(pose.to_camera(point)) for pose in poses])
    noise = 0.01**2 * np.eye(2)
    flat = locate_in_plane(LENS, poses[0], plane, pixels[0], noise, 0.1)
    np.testing.assert_allclose(flat.systematic, 100.0 * flat.noise, atol=1e-12)
    both = triangulate((LENS, LENS), poses, pixels, np.array([noise, noise]), (0.1, 0.1))
    np.testing.assert_allclose(both.systematic, 100.0 * both.noise, atol=1e-12)
    left = dataclasses.replace(small_rig().cameras['left'], calibration_deviation=0.2)
    rig = dataclasses.replace(small_rig(), cameras={'left': left})
    assert rig.scaled(0.5).cameras['left'].calibration_deviation == 0.1
