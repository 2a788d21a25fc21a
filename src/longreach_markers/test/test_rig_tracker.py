"""
Markers in space from two cameras.

Most tests render small images; those of noise have the rig of the boom, at 22 to 30 m, and one of
them a renderer that shares no code with the library.
"""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from quick_views import QuickView

from longreach_dynamics.errors import InputError, LongreachError
from longreach_markers.camera.geometry import Plane, Pose
from longreach_markers.camera.model import Camera
from longreach_markers.marker.detection import LOST, TRACKED, UNCERTAIN
from longreach_markers.rig import MarkerOnRig, MountedCamera, Rig
from longreach_markers.tracking.image_motion import Track
from longreach_markers.tracking.rig_tracker import RigTracker

RATE = 15.0
CAMERA = Camera('any', 320, 240, 420.0, 420.0, 159.5, 119.5, 'plumb_bob', (-0.1, 0.02, 0.0, 0.0))
PLACES = np.array([[-0.7, 0.0, 0.2], [0.1, 0.0, -0.3], [0.8, 0.0, 0.3]])
RADIUS = 0.15
SIDES = ('left', 'right')


def small_rig(*, positions=True):
    poses = {
        'left': Pose.from_look_at((-1.5, -6.0, 0.3), (0.0, 0.0, 0.0)),
        'right': Pose.from_look_at((1.5, -6.2, 0.2), (0.0, 0.0, 0.0)),
    }
    markers = tuple(
        MarkerOnRig(name, RADIUS, position=tuple(place) if positions else None)
        for name, place in zip('abc', PLACES.tolist(), strict=True)
    )
    cameras = {side: MountedCamera(CAMERA, pose) for side, pose in poses.items()}
    return Rig(cameras, Plane(np.array([0.0, 1.0, 0.0]), 0.0), markers)


class Stage:
    def __init__(self, rig, tracked=None, seed=1, clutter=4):
        """Render with one rig, track with it or with another one."""
        self.rig = rig
        self.tracker = RigTracker(tracked or rig)
        self.simulators = {
            side: QuickView(rig, side, clutter=clutter, seed=seed) for side in rig.cameras
        }
        self.rng = np.random.default_rng(seed)

    def images(self, places):
        pictures = {}
        for side, simulator in self.simulators.items():
            own = places[side] if isinstance(places, dict) else places
            pictures[side] = simulator.image(own, self.rng)
        return pictures

    def start(self, places=PLACES):
        images = self.images(places)
        return self.tracker.start(images, dict.fromkeys(images, 0.0))

    def update(self, time, places=PLACES, sides=SIDES):
        images = self.images(places)
        kept = {side: images[side] for side in sides}
        return self.tracker.update(kept, dict.fromkeys(kept, time))


def moving(time):
    swing = math.sin(math.pi * time)
    return PLACES + np.array([0.3, 0.0, 0.15]) * swing


def assert_tracked(frame, cameras=SIDES, places=None, largest=1e-3):
    for estimate in frame.estimates.values():
        assert (estimate.status, estimate.reason, estimate.cameras) == (TRACKED, '', cameras)
    if places is not None:
        found = [estimate.in_plane.position for estimate in frame.estimates.values()]
        assert np.abs(found - places).max() < largest


def normalised(location, truth, axes):
    error = axes @ (location.position - truth)
    return float(error @ np.linalg.solve(axes @ location.covariance @ axes.T, error)) / len(axes)


def test_positions_are_right_and_their_covariances_honest():
    stage = Stage(small_rig())
    stage.start()
    inside, space, away = [], [], []
    for k in range(1, 40):
        frame = stage.update(k / RATE, moving(k / RATE))
        assert frame.time == k / RATE
        assert frame.gap == 0.0
        assert list(frame.estimates) == ['a', 'b', 'c']
        assert_tracked(frame, SIDES, moving(k / RATE), 5e-4)
        for estimate, truth in zip(frame.estimates.values(), moving(k / RATE), strict=True):
            assert np.abs(estimate.triangulated.position - truth).max() < 2e-3
            inside.append(normalised(estimate.in_plane, truth, stage.rig.plane.axes))
            space.append(normalised(estimate.triangulated, truth, np.eye(3)))
            away.append((estimate.out_of_plane / estimate.out_of_plane_deviation) ** 2)
    for squares in (inside, space, away):
        assert 0.4 < np.mean(squares) < 2.0


def test_marker_that_one_camera_does_not_see():
    stage = Stage(small_rig())
    stage.start()
    images = stage.images(PLACES)
    images['right'][:] = 90
    frame = stage.tracker.update(images, dict.fromkeys(SIDES, 1 / RATE))
    assert_tracked(frame, ('left',))
    assert all(one.status == LOST for one in frame.observations['right'].values())
    for image in images.values():
        image[:] = 90
    frame = stage.tracker.update(images, dict.fromkeys(SIDES, 2 / RATE))
    for estimate in frame.estimates.values():
        assert estimate.status == LOST
        assert estimate.reason
        assert estimate.cameras == ()
        assert estimate.in_plane is None
        assert estimate.triangulated is None


@pytest.mark.parametrize('skew', [0.005, -0.005, 0.03, 0.048])
def test_cameras_that_are_not_synchronous(skew):
    stage = Stage(small_rig())
    stage.start()
    errors, squares = [], []
    for k in range(1, 40):
        times = {'left': k / RATE, 'right': k / RATE + skew}
        images = stage.images({side: moving(time) for side, time in times.items()})
        frame = stage.tracker.update(images, times)
        assert frame.time == times['left']
        assert frame.gap == pytest.approx(skew)
        if k < 5:
            continue
        assert_tracked(frame)
        for estimate, truth in zip(frame.estimates.values(), moving(frame.time), strict=True):
            errors.append(estimate.triangulated.position - truth)
            squares.append(normalised(estimate.triangulated, truth, np.eye(3)))
    # 5 ms are 5 mm at this speed.
    assert np.sqrt(np.mean(np.square(errors))) < 1e-3
    assert 0.1 < np.mean(squares) < 2.0


def test_without_a_speed_images_of_two_times_do_not_fit():
    stage = Stage(small_rig())
    stage.start()
    skew = 0.02
    for k in range(4):
        times = {'left': (k + 1) / RATE, 'right': (k + 1) / RATE + skew}
        # At 1 m/s.
        shift = np.array([1.0, 0.0, 0.0])
        images = stage.images({s: PLACES + (t - 0.5) * shift for s, t in times.items()})
        if k == 0:
            stage.tracker.start(images, times)
        frame = stage.tracker.update(images, times)
        if k > 0:
            assert_tracked(frame)
            continue
        for estimate in frame.estimates.values():
            assert estimate.status == UNCERTAIN
            assert estimate.reason == 'speed not known yet, images 20 ms apart'
            assert estimate.triangulated is not None


@pytest.mark.parametrize('after', [1e-6, 5e-4, 0.01])
def test_an_image_in_a_burst_moves_no_other(after):
    stage = Stage(small_rig())
    stage.start()
    for k in range(8):
        times = {side: (k + 1) / RATE + 0.01 * (side == 'right') for side in ('left', 'right')}
        # At 0.4 m/s.
        places = {s: PLACES + (t - 0.5) * np.array([0.4, 0.0, 0.0]) for s, t in times.items()}
        images = stage.images(places)
        if k == 0:
            stage.tracker.start(images, times)
        if k == 6:
            # It is read, and stamped, just before the next one.
            late = times['right'] + 1.0 / RATE - after
            stage.tracker.update({'left': images['left']}, {'left': times['left']})
            stage.tracker.update({'right': images['right']}, {'right': late})
        else:
            frame = stage.tracker.update(images, times)
    assert_tracked(frame)
    for estimate, place in zip(frame.estimates.values(), places['left'], strict=True):
        assert normalised(estimate.triangulated, place, np.eye(3)) < 5.0


def test_of_a_burst_the_last_image_is_kept_at_any_rate():
    seen = SimpleNamespace(center=np.zeros(2), covariance=np.eye(2))
    track = Track(None, seen, np.zeros(4), np.eye(4), 0.0)
    slow = np.arange(6) / 6.0
    # The rate rises; the last but one is read late, and stamped just before the last.
    fast = slow[-1] + np.arange(1, 31) / 30.0
    for time in (*slow, *fast, fast[-1] + 1.0 / 30.0 - 1e-6, fast[-1] + 1.0 / 30.0):
        track.keep(time, time, seen)
        track.path.append((time, 0.0, 0.0))
    for times in ([one[0] for one in track.latest], [one[0] for one in track.path][-20:]):
        assert np.diff(times)[:-1] == pytest.approx(1.0 / 30.0)
        assert times[-1] - times[-2] == pytest.approx(1.0 / 30.0)


def test_images_too_far_apart_are_not_paired():
    stage = Stage(small_rig())
    stage.start()
    for time in 0.05 * np.arange(1, 12):
        stage.tracker.update(stage.images(PLACES), dict.fromkeys(('left', 'right'), time))
    # As far as is allowed, but for rounding.
    assert 0.65 - 0.6 > stage.tracker.rig.tracking.gap == 0.05
    frame = stage.tracker.update(stage.images(PLACES), {'left': 0.6, 'right': 0.65})
    assert all(estimate.cameras == ('left', 'right') for estimate in frame.estimates.values())
    frame = stage.tracker.update(stage.images(PLACES), {'left': 1.0, 'right': 1.06})
    assert frame.gap == pytest.approx(0.06)
    assert all(estimate.cameras == ('left',) for estimate in frame.estimates.values())
    assert list(frame.observations) == ['left', 'right']


def test_sway_out_of_the_plane_is_flagged():
    stage = Stage(small_rig())
    stage.start()
    for k in range(1, 15):
        places = moving(k / RATE) + np.array([0.0, min(0.1, 0.01 * k), 0.0])
        frame = stage.update(k / RATE, places)
    for estimate, truth in zip(frame.estimates.values(), places, strict=True):
        assert estimate.status == UNCERTAIN
        assert 'mm out of the plane' in estimate.reason
        assert estimate.out_of_plane == pytest.approx(
            0.1, abs=4.0 * estimate.out_of_plane_deviation
        )
        assert np.abs(estimate.triangulated.position - truth).max() < 2e-3
        # The plane says something else.
        assert np.abs(estimate.in_plane.position - truth)[[0, 2]].max() > 2e-3
    for estimate in stage.update(15 / RATE, places, ('left',)).estimates.values():
        assert estimate.status == UNCERTAIN
        assert 'mm out of the plane when several cameras saw it' in estimate.reason


def test_small_sway_is_no_fault():
    stage = Stage(small_rig())
    stage.start()
    for k in range(1, 6):
        places = PLACES + np.array([0.0, 0.006 * k, 0.0])
        frame = stage.update(k / RATE, places)
    assert_tracked(frame)
    assert frame.estimates['a'].out_of_plane == pytest.approx(0.03, abs=2e-3)
    # One camera alone remembers it.
    alone = stage.update(6 / RATE, places, ('left',))
    assert_tracked(alone, ('left',))
    for estimate, truth in zip(alone.estimates.values(), places, strict=True):
        assert normalised(estimate.in_plane, truth, stage.rig.plane.axes) < 2.0


@pytest.mark.parametrize('side', SIDES)
def test_a_camera_that_contradicts_does_not_teach_the_other_one(side):
    stage, rate, shown = Stage(small_rig()), 30.0, {}
    stage.start()
    worst, alone = 0.0, 0
    for k in range(1, 60):
        images = stage.images(moving(k / rate))
        # For 9 images it shows the same picture.
        shown = shown if 20 < k < 30 else images
        images[side] = shown[side]
        frame = stage.tracker.update(images, dict.fromkeys(SIDES, k / rate))
        for estimate, truth in zip(frame.estimates.values(), moving(k / rate), strict=True):
            if estimate.status == TRACKED and len(estimate.cameras) == 1:
                alone += 1
                axes = stage.rig.plane.axes
                worst = max(worst, normalised(estimate.in_plane, truth, axes))
    assert alone > 10
    # 130 where the latest positions of both were taken for the effect of their poses.
    assert worst < 12.0


@pytest.mark.parametrize(('rate', 'frequency'), [(24.0, 1.0), (30.0, 2.0), (40.0, 2.0)])
def test_pairs_of_different_stamps_have_honest_covariances(rate, frequency):
    stage, squares = Stage(small_rig()), []
    stage.start()
    rng = np.random.default_rng(3)

    def place(time):
        swing = math.sin(2.0 * math.pi * frequency * time) / frequency
        return PLACES + np.array([0.15, 0.0, 0.08]) * swing

    for k in range(0, 140, 2):
        # Of two images of each camera one is missing, in every second pair another one.
        times = {s: (k + 1 + int(rng.random() < 0.5)) / rate for s in SIDES}
        images = stage.images({s: place(time) for s, time in times.items()})
        frame = stage.tracker.update(images, times)
        if k < 8 or frame.gap == 0.0:
            continue
        for estimate, truth in zip(frame.estimates.values(), place(frame.time), strict=True):
            assert estimate.status == TRACKED
            squares.append(normalised(estimate.triangulated, truth, np.eye(3)))
    assert len(squares) > 40
    # Up to 35 with the quadratic term alone, which is zero where the acceleration is.
    assert max(squares) < 12.0
    assert np.mean(squares) < 2.0


# Start


def test_search_that_does_not_add_up_says_what_both_cameras_see():
    stage = Stage(small_rig(positions=False))
    places = PLACES.copy()
    places[1, 0] = math.nan
    with pytest.raises(LongreachError, match=r'2 markers found instead of 3.*left: .*right: '):
        stage.start(places)


@pytest.mark.parametrize('apart', [-0.002, 0.002, 0.12])
def test_markers_above_each_other_are_not_named_by_noise(apart):
    stage = Stage(small_rig(positions=False))
    places = np.array([[0.0, 0.0, 0.5], [apart, 0.0, -0.3], [0.8, 0.0, 0.3]])
    if apart > 0.5 * RADIUS:
        assert list(stage.start(places)['left']) == ['a', 'b', 'c']
        return
    text = r'a and b would be [\d.]+ mm apart along the first axis .* Give each marker a position'
    with pytest.raises(LongreachError, match=text):
        stage.start(places)


def test_marker_that_one_camera_cannot_see_at_the_start():
    stage = Stage(small_rig(positions=False))
    images = stage.images(PLACES)
    u = stage.simulators['right'].centers(PLACES)[2, 0]
    images['right'][:, int(u - 20) : int(u + 20)] = 90
    seen = stage.tracker.start(images, dict.fromkeys(SIDES, 0.0))
    assert list(seen['left']) == ['a', 'b', 'c']
    assert list(seen['right']) == ['a', 'b']
    # It is looked for where the left camera shows it.
    stage.update(1 / RATE)
    frame = stage.update(2 / RATE)
    assert frame.estimates['c'].cameras == SIDES


# Cameras that help each other


def test_camera_finds_a_marker_again_where_the_other_one_shows_it():
    stage = Stage(small_rig())
    stage.start()
    for k in range(1, 30):
        # As the right camera is covered, markers move by 1 m: more than its window.
        shift = np.array([0.5 - 0.5 * math.cos(min(math.pi * k / 20.0, math.pi)), 0.0, 0.0])
        images = stage.images(PLACES + shift)
        if 3 <= k < 20:
            images['right'][:] = 90
        frame = stage.tracker.update(images, dict.fromkeys(SIDES, k / RATE))
        if 3 <= k < 20:
            assert frame.estimates['a'].cameras == ('left',)
    assert_tracked(frame, SIDES, PLACES + shift)


@pytest.mark.parametrize('is_exchanged', [False, True])
def test_camera_ends_a_doubt_of_the_other_one(is_exchanged):
    stage = Stage(small_rig())
    stage.start()
    stage.update(1 / RATE)
    right = stage.tracker.trackers['right']
    for again in range(1 + is_exchanged):
        if again:
            right.resolve('a', exchange=True)
        right.tracks['a'].doubt, right.tracks['b'].doubt = 'b', 'a'
    frame = stage.update(2 / RATE)
    assert frame.observations['right']['a'].status == UNCERTAIN
    frame = stage.update(3 / RATE)
    centers = stage.simulators['right'].centers(PLACES)
    for name, center in zip('abc', centers, strict=True):
        assert math.dist(frame.observations['right'][name].center, center) < 0.05
    assert_tracked(frame)


def test_images_of_unknown_cameras_are_refused():
    stage = Stage(small_rig())
    image = stage.images(PLACES)['left']
    for images in ({}, {'top': image}):
        with pytest.raises(InputError, match='allowed: left, right, at least one'):
            stage.tracker.update(images, dict.fromkeys(images, 1.0))
