"""Covariances of positions of two cameras, and the noise that gaps between their rays show."""

import dataclasses
import math

import numpy as np
import pytest
from independent_renderer import Scene as IndependentScene
from independent_renderer import render_exact, window_of
from independent_views import digitised, pinhole, view
from known_rig import LENS, POSES, SPREAD, TIP, mapping, moved_pose, solved
from small_rig import START, seen_at
from small_rig import small_rig as near_rig
from test_rig_tracker import CAMERA, RATE, SIDES, Stage, small_rig

from longreach_dynamics.resources import share_directory
from longreach_markers.camera.geometry import Plane, intersect, pixel_ray
from longreach_markers.camera.triangulation import Location, locate_in_plane, triangulate
from longreach_markers.marker.detection import TRACKED
from longreach_markers.rig import MountedCamera, TrackingParameters, load_rig
from longreach_markers.tracking.frames import Estimate, RigFrame
from longreach_markers.tracking.image_motion import ImageMotion
from longreach_markers.tracking.rig_tracker import RigTracker
from longreach_markers.tracking.sightings import GapNoise


def test_merged_covariance_holds_what_the_plane_may_be_off():
    rng = np.random.default_rng(2)
    root = rng.standard_normal((3, 3))
    covariance = 1e-5 * root @ root.T
    rig = small_rig()
    plane = Plane(rig.plane.normal, 0.0, covariance, np.array([0.5, 0.0, 0.2]))
    tracker = RigTracker(dataclasses.replace(rig, plane=plane))
    truth = np.array([0.4, 0.0, 0.3])
    spread = 0.3**2 * np.eye(2)

    views = [(mounted.camera, mounted.pose) for mounted in rig.cameras.values()]

    def seen(place):
        return [camera.project(pose.to_camera(place)) for camera, pose in views]

    single = [
        locate_in_plane(*one, plane, pixel, spread).covariance
        for one, pixel in zip(views, seen(truth), strict=True)
    ]
    errors = []
    for turn_1, turn_2, shift in rng.multivariate_normal(np.zeros(3), covariance, 3000):
        # The marker is where its plane really is; both cameras see it there.
        along = plane.axes @ (truth - plane.centroid)
        real = truth + (along[1] * turn_1 - along[0] * turn_2 + shift) * plane.normal
        pixels = np.array(seen(real)) + 0.3 * rng.standard_normal((2, 2))
        located = [
            Location(intersect(*pixel_ray(*one, pixel), plane), own)
            for one, pixel, own in zip(views, pixels, single, strict=True)
        ]
        merged = tracker._merger.merge(SIDES, located, plane, '', trusted=False)
        errors.append(merged.position - real)
    stated = merged.covariance
    found = np.cov(np.array(errors).T)
    assert np.diag(found) == pytest.approx(np.diag(stated), rel=0.1)
    assert found == pytest.approx(stated, abs=0.1 * np.abs(stated).max())
    # Better than each by itself.
    for own in single:
        assert np.trace(stated) < np.trace(own)


# Noise at the distance of the boom


def independent_windows(rig, place):
    """Return windows without noise, by a renderer that shares no code, and where they are."""
    windows = {}
    for side, mounted in rig.cameras.items():
        place_cam, normal = mounted.pose.to_camera(place), rig.normal_cam(side)
        scene = IndependentScene(pinhole(mounted), tuple(place_cam), tuple(normal), 0.18, 0.5)
        windows[side] = render_exact(scene), window_of(scene)
    return windows


def test_noise_and_oscillation_in_independent_images():
    rig = load_rig(share_directory('longreach_vision') / 'config' / 'rig_boom.yaml')
    rig = dataclasses.replace(rig, markers=(rig.markers[2],))
    middle = np.array(rig.markers[0].position)
    rng = np.random.default_rng(8)
    tracker = RigTracker(rig)
    heights = 1e-3 * np.sin(2.0 * math.pi * np.arange(8) / 8.0)
    places = middle + np.stack([0.0 * heights, 0.0 * heights, heights], axis=1)
    rendered = [independent_windows(rig, place) for place in places]
    images = {side: np.full((2054, 2452), 200, np.uint8) for side in SIDES}
    found = []
    for k in range(41):
        for side, (exact, (u0, v0, width, height)) in rendered[k % 8].items():
            images[side][v0 : v0 + height, u0 : u0 + width] = digitised(exact, rng, 3.0)
        times = dict.fromkeys(images, k / RATE)
        if k == 0:
            tracker.start(images, times)
            continue
        estimate = tracker.update(images, times).estimates['marker_2']
        assert estimate.status == TRACKED
        found.append(estimate.in_plane.position - places[k % 8])
    errors = np.array(found)[:, [0, 2]]
    assert np.sqrt((errors**2).sum(axis=1).mean()) < 1e-4
    assert np.mean(heights**2) / (errors**2).sum(axis=1).mean() > 20.0


def test_a_place_without_a_ray_is_no_place():
    # As strong a lens as is allowed: just outside of the image nothing has a ray.
    camera = CAMERA.replace(distortion=(-0.65, 0.0, 0.0, 0.0))
    rig = small_rig()
    cameras = {side: MountedCamera(camera, one.pose) for side, one in rig.cameras.items()}
    stage = Stage(dataclasses.replace(rig, cameras=cameras))
    stage.start()
    left, right = (stage.tracker.trackers[side] for side in SIDES)
    stage.update(1 / RATE)
    del left.tracks['a']
    track = right.tracks['a']
    track.state[:] = (2.0, 2.0, -300.0, -225.0)
    stage.tracker._help({'left': track.time + 0.02, 'right': track.time})
    assert 'a' not in left.tracks


def test_a_marker_that_is_no_more_than_uncertain_is_not_extrapolated_from_old_sightings():
    motion = ImageMotion(CAMERA, TrackingParameters())

    def place(time):
        return np.array([160.0 + 40.0 * math.sin(4.0 * time), 120.0])

    marker = small_rig().markers[0]
    track = motion.expect(marker, seen_at(160.0, 120.0), place(0.0), np.zeros(2), 0.0, 10.0)
    track.lost = False
    for k in range(15):
        time = k / RATE
        motion.correct(track, time, place(time), 0.25 * np.eye(2))
        if k < 4:
            # TRACKED.
            track.latest.append((time, place(time), 1e-4 * np.eye(2)))
        center, _ = motion.center_at(track, time + 0.005)
        assert k < 4 or np.abs(center - place(time + 0.005)).max() < 8.0, k


# --- noise of pixels from the scatter of the gaps -----------------------------------------------


def noted(gaps):
    """Return the factor of variances after gaps (images, markers) stated as 1 px of noise."""
    found = GapNoise()
    for k, row in enumerate(gaps):
        estimates, observations = {}, {'left': {}, 'right': {}}
        for name, gap in zip('abcde', row, strict=False):
            # What is stated grows with the factor, as covariances of the tracker do.
            noise = math.sqrt(found.excess)
            point = Location(np.zeros(3), np.eye(3), gap=float(gap), gap_noise=noise)
            pairs = {('left', 'right'): point}
            estimates[name] = Estimate(name, 'TRACKED', '', pairs=pairs)
            for seen in observations.values():
                seen[name] = seen_at(100.0, 100.0)
        found.add(RigFrame(k / 30.0, 0.0, observations, estimates))
    return found.excess


@pytest.mark.parametrize(('markers', 'images'), [(1, 70), (3, 30), (5, 24)])
@pytest.mark.parametrize('step', [20.0, 50.0, 1000.0])
def test_a_bumped_camera_is_no_noise(markers, images, step):
    gaps = np.random.default_rng(markers).normal(size=(images, markers))
    gaps[images // 2 :] += step
    assert noted(gaps) == 1.0


def test_exchanged_stamps_of_one_camera_are_no_noise():
    gaps = np.random.default_rng(0).normal(size=(256, 3))
    for k in range(20, 255, 18):
        gaps[k : k + 2] += np.array([[100.0], [-100.0]])
    assert noted(gaps) == 1.0


@pytest.mark.parametrize('markers', [1, 2, 5])
@pytest.mark.parametrize('deviation', [2.0, 7.0, 30.0])
def test_noise_is_not_taken_for_bumps(markers, deviation):
    gaps = deviation * np.random.default_rng(markers).normal(size=(400, markers))
    assert noted(gaps) == pytest.approx(deviation**2, rel=0.3)


# --- noise apart from systematic errors ----------------------------------------------------------


INSIDE = np.ix_([0, 2], [0, 2])  # of the plane
# Standard deviations of a pose: rotation [rad], position [m].
TURN, SHIFT = 1e-3, 3e-3
POSE_COVARIANCE = np.diag([TURN**2] * 3 + [SHIFT**2] * 3)


def wrong_rig(seed):
    """Return the small rig with poses that are wrong by draws of their stated covariance."""
    rng, rig, cameras = np.random.default_rng(seed), near_rig(), {}
    for side, one in rig.cameras.items():
        pose = dataclasses.replace(one.pose, covariance=POSE_COVARIANCE)
        error = rng.multivariate_normal(np.zeros(6), POSE_COVARIANCE)
        cameras[side] = dataclasses.replace(one, pose=moved_pose(pose, error))
    return dataclasses.replace(rig, cameras=cameras)


def tracked(rig, seed, places, sides):
    rng, tracker, true = np.random.default_rng(seed), RigTracker(rig), near_rig()
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
    found = tracked(near_rig(), 2, [START] * 2 + [sway] * 3, [SIDES] * 5)
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
    left = dataclasses.replace(near_rig().cameras['left'], calibration_deviation=0.2)
    rig = dataclasses.replace(near_rig(), cameras={'left': left})
    assert rig.scaled(0.5).cameras['left'].calibration_deviation == 0.1
