"""
Markers through time, in the images of one small camera.

The scenes are rendered: where the markers are is known exactly. Wrong is an unflagged observation
more than half a pixel from its own marker, of whatever cause.
"""

import dataclasses
import math
import re

import cv2
import numpy as np
import pytest
from quick_views import QuickView

from longreach_dynamics.errors import InputError
from longreach_markers.camera.geometry import Plane, Pose
from longreach_markers.camera.model import Camera
from longreach_markers.marker.detection import LOST, TRACKED, UNCERTAIN
from longreach_markers.rig import MarkerOnRig, MountedCamera, Rig, TrackingParameters
from longreach_markers.tracking.rig_tracker import RigTracker

RATE = 15.0
CAMERA = Camera('left', 320, 240, 420.0, 420.0, 159.5, 119.5, 'plumb_bob', (-0.1, 0.02, 0.0, 0.0))
POSE = Pose.from_look_at((-1.0, -6.0, 0.3), (0.0, 0.0, 0.0))
PLANE = Plane(np.array([0.0, 1.0, 0.0]), 0.0)
MOUNTED = MountedCamera(CAMERA, POSE)
# Its image is 10.5 px large.
RADIUS = 0.15
HIDDEN = 90


class Stage:
    """Markers before the camera, and what tracks them."""

    def __init__(
        self, places, markers=None, *, seed=1, clutter=5, noise=2.5, line_time=0.0, **parameters
    ):
        self.places = np.array(places, dtype=float).reshape(-1, 3)
        if markers is None:
            markers = [
                MarkerOnRig(name, RADIUS, position=tuple(place))
                for name, place in zip('abcdef', self.places.tolist(), strict=False)
            ]
        self.names = tuple(marker.name for marker in markers)
        mounted = dataclasses.replace(MOUNTED, line_time=line_time)
        rig = Rig({'left': mounted}, PLANE, tuple(markers), TrackingParameters(**parameters))
        self.simulator = QuickView(rig, 'left', clutter=clutter, noise=noise, seed=seed)
        self.rng = np.random.default_rng(seed)
        self.stereo = RigTracker(rig)
        self.tracker = self.stereo.trackers['left']
        self.seen = {}
        self.centers = np.zeros((0, 2))

    def image(self, places=None, hide=()):
        places = self.places if places is None else places
        picture = self.simulator.image(places, self.rng)
        if hide:
            picture[:, hide[0] : hide[1]] = HIDDEN
        self.centers = self.simulator.centers(places)
        return picture

    def start(self, places=None):
        image = self.image(places)
        self.seen = self.stereo.start({'left': image}, {'left': 0.0})['left']
        return self.seen

    def update(self, time, places=None, hide=()):
        self.seen = self.tracker.update(self.image(places, hide), time)
        return self.seen

    def errors(self):
        return np.array(
            [
                math.dist(self.seen[name].center, center)
                for name, center in zip(self.names, self.centers, strict=True)
            ]
        )

    def statuses(self):
        return [self.seen[name].status for name in self.names]

    def run(self, frames, motion=None, hidden=lambda _: (), rate=RATE):
        """Return statuses in images with numbers, in which no marker may be wrong unflagged."""
        found = []
        for k in frames:
            self.update(k / rate, motion(k / rate) if callable(motion) else motion, hidden(k))
            found.append(self.statuses())
            wrong = (np.array(found[-1]) == TRACKED) & ~(self.errors() < 0.5)
            assert not wrong.any(), (k, self.seen)
        return found

    def assert_found(self, largest=0.03):
        assert self.statuses() == [TRACKED] * len(self.names)
        assert self.errors().max() < largest


def row(count, step=0.6):
    return [[(k - (count - 1) / 2) * step, 0.0, 0.0] for k in range(count)]


# Start


def test_start_by_pixels_goes_before_positions():
    pixels = Stage(row(2))
    pixels.image()
    markers = [
        MarkerOnRig('a', RADIUS, position=(0.0, 0.0, 3.0), left=(*pixels.centers[0], 9.0)),
        MarkerOnRig('b', RADIUS, position=tuple((pixels.places[1] + (0.1, 0.0, -0.1)).tolist())),
    ]
    stage = Stage(row(2), markers)
    stage.start()
    stage.assert_found()


@pytest.mark.parametrize(
    ('pixel', 'reason'),
    [
        ((-0.7, 100.0, 10.0), 'lies outside the image'),
        ((100.0, 100.0, 3.0), 'radius = 3 px; allowed: [4, 400] px'),
    ],
)
def test_a_pixel_that_cannot_be_used_leaves_the_others_alone(pixel, reason):
    places = row(2)
    markers = [
        MarkerOnRig('a', RADIUS, left=pixel),
        MarkerOnRig('b', RADIUS, position=tuple(places[1])),
    ]
    stage = Stage(places, markers, clutter=0)
    stage.start()
    assert stage.statuses() == [LOST, TRACKED]
    assert reason in stage.seen['a'].reason
    frame = stage.stereo.update({'left': stage.image()}, {'left': 1 / RATE})
    assert reason in frame.estimates['a'].reason
    assert frame.estimates['b'].status == TRACKED


def test_a_ring_where_the_plane_is_seen_edge_on_is_no_marker():
    camera = Camera('left', 800, 600, 500.0, 500.0, 399.5, 299.5)
    # The plane's horizon is in the image.
    mounted = MountedCamera(camera, Pose.from_look_at((0.0, -3.0, 0.0), (4.0, 0.0, 0.0)))
    rig = Rig({'left': mounted}, PLANE, (MarkerOnRig('a', 0.12),))
    image = np.full((4 * 600, 4 * 800), 210, np.uint8)
    for u in (400, 740):
        for size, light in ((1.0, 40), (0.5, 210)):
            axes = (round(48 * size), round(28.8 * size))
            cv2.ellipse(image, (4 * u + 2, 4 * 300 + 2), axes, 90, 0, 360, light, -1)
    image = cv2.resize(
        cv2.GaussianBlur(image, (0, 0), 3), (800, 600), interpolation=cv2.INTER_AREA
    )
    stereo = RigTracker(rig)
    assert not stereo.search({'left': image}, {'left': 0.0})
    assert stereo.trackers['left'].tracks['a'].state[:2] == pytest.approx([400.0, 300.0], abs=0.5)


@pytest.mark.parametrize(
    ('markers', 'places', 'order'),
    [
        # Alike markers have names along the plane.
        ([{}, {}, {}], [[0.6, 0.0, -0.3], [-0.8, 0.0, 0.2], [0.1, 0.0, 0.4]], [1, 2, 0]),
        # Of what is left beside one with a position.
        ([{}, {'position': (0.0, 0.0, 0.0)}, {}], row(3), [0, 1, 2]),
        # Kinds are told apart.
        (
            [{'inner': 0.75}, {'bright': True}, {'radius': 0.24}],
            [[0.9, 0.0, 0.3], [0.1, 0.0, 0.3], [-0.8, 0.0, 0.0]],
            [0, 1, 2],
        ),
    ],
)
def test_search_names_markers(markers, places, order):
    given = [
        MarkerOnRig(name, **{'radius': RADIUS, **one})
        for name, one in zip('abc', markers, strict=True)
    ]
    stage = Stage(places, given, clutter=0)
    stage.start()
    stage.centers = stage.centers[order]
    stage.assert_found()
    assert not any(track.lost for track in stage.tracker.tracks.values())


def test_marker_that_is_not_there_at_the_start_is_awaited():
    stage = Stage(row(2))
    places = stage.places.copy()
    places[1, 0] = math.nan
    stage.start(places)
    assert stage.statuses() == [TRACKED, LOST]
    assert stage.run([1], places) == [[TRACKED, LOST]]
    assert stage.run([2]) == [[TRACKED] * 2]


# Initialisation


@pytest.mark.parametrize(
    ('marker', 'shift', 'hidden', 'reason'),
    [
        ((RADIUS,), (60.0, 40.0), 0, 'no ellipse'),
        ((RADIUS, 0.5, True), (0.0, 0.0), 0, 'dark on bright instead of'),
        ((RADIUS, 0.8), (0.0, 0.0), 0, r'inner edge at 0\.50 .* expected 0\.80'),
        ((0.3,), (0.0, 0.0), 0, r'radius of 10\.\d px, expected 2\d'),
        ((1.2 * RADIUS,), (0.0, 0.0), 0, r'radius of 10\.\d px, expected 12'),
        # Half of it is hidden.
        ((RADIUS,), (0.0, 0.0), 30, 'not this kind of marker|of the rim fits'),
    ],
)
def test_wrong_initialisation_is_refused(marker, shift, hidden, reason):
    stage = Stage(row(1), clutter=0)
    image = stage.image()
    column = int(stage.centers[0, 0]) + 1
    image[:, column : column + hidden] = HIDDEN
    rig = Rig({'left': MOUNTED}, PLANE, (MarkerOnRig('a', *marker),))
    tracker = RigTracker(rig).trackers['left']
    seen = tracker.initialize('a', image, 0.0, stage.centers[0] + shift, 10.0)
    assert seen.status != TRACKED
    assert re.search(reason, seen.reason)
    assert not hidden or seen.rim_support < 0.6
    assert not tracker.tracks


def test_initialising_at_another_marker_takes_its_place():
    stage = Stage(row(2))
    stage.start()
    image = stage.image()
    seen = stage.tracker.initialize('a', image, 1 / RATE, stage.centers[1], 10.0)
    assert seen.status == TRACKED
    assert stage.tracker.tracks['b'].lost
    found = stage.tracker.update(image, 1 / RATE)
    assert math.dist(found['a'].center, stage.centers[1]) < 0.03
    # The other one may be found again, but not here.
    assert found['b'].status != TRACKED or math.dist(found['b'].center, stage.centers[1]) > 10.0


@pytest.mark.parametrize('ratio', [1.06, 0.94])
def test_initialising_at_another_marker_that_fits_better_is_refused(ratio):
    markers = [
        MarkerOnRig('a', RADIUS, position=(-0.3, 0.0, 0.0)),
        MarkerOnRig('b', ratio * RADIUS, position=(0.3, 0.0, 0.0)),
    ]
    stage = Stage(row(2), markers)
    stage.start()
    stage.update(1 / RATE)
    image = stage.image()
    seen = stage.tracker.initialize('a', image, 1 / RATE, stage.centers[1], 10.0)
    assert seen.status == UNCERTAIN
    assert seen.reason.startswith('b is tracked here and fits better')
    found = stage.update(2 / RATE)
    assert [one.status for one in found.values()] == [TRACKED] * 2
    # Nobody is there any more who says otherwise.
    stage.tracker.tracks['b'].lost = True
    assert stage.tracker.initialize('a', image, 2 / RATE, stage.centers[1], 10.0).status == TRACKED


# Motion


def swinging(places, amplitude, frequency):
    way = np.array([1.0, 0.0, 0.4])
    return lambda time: places + way * (amplitude * math.sin(2.0 * math.pi * frequency * time))


@pytest.mark.parametrize(
    ('count', 'frames', 'amplitude', 'frequency', 'rate'),
    [
        *((3, [k for k in range(1, 60) if k % lost], 0.3, 0.5, RATE) for lost in (2, 3, 5)),
        # A slow stream is followed as far as windows reach.
        (1, range(1, 20), 0.2, 0.1, 1.0 / 0.7),
    ],
)
def test_dropped_frames_and_slow_streams(count, frames, amplitude, frequency, rate):
    stage = Stage(row(count))
    stage.start()
    found = stage.run(frames, swinging(stage.places, amplitude, frequency), rate=rate)
    assert found == [[TRACKED] * count] * len(frames)


@pytest.mark.parametrize('frames', [1, 4, 12, 40])
def test_occlusion(frames):
    stage = Stage(row(2, 1.0))
    motion = swinging(stage.places, 0.12, 0.3)
    stage.start()
    first, last = 20, 20 + frames
    assert stage.run(range(1, first), motion) == [[TRACKED] * 2] * 19
    hidden = stage.run(range(first, last), motion, lambda _: (160, 230))
    assert hidden == [[TRACKED, LOST]] * frames
    assert stage.seen['b'].reason
    assert np.isnan(stage.seen['b'].covariance).all()
    found = stage.run(range(last, 50 + frames), motion)
    assert [one for one, _ in found] == [TRACKED] * 30
    assert [two for _, two in found[2:]] == [TRACKED] * 28


def test_prediction_of_a_lost_marker_widens_and_slows_down():
    stage = Stage([[-0.5, 0.0, 0.0]])
    stage.start()
    stage.run(range(1, 8), lambda time: stage.places + np.array([0.06 * RATE * time, 0.0, 0.0]))
    tracker, time = stage.tracker, 7 / RATE
    speed = 0.06 * RATE * 70.0
    soon, later, late = (tracker.predict('a', time + after) for after in (0.1, 1.0, 20.0))
    assert soon.velocity[0] == pytest.approx(speed, rel=0.1)
    assert abs(later.velocity[0]) < 0.3 * speed
    assert abs(late.velocity[0]) < 1e-3 * speed
    assert 0.0 < late.center[0] - soon.center[0] < 0.8 * speed
    spreads = [np.sqrt(np.diag(one.covariance)).max() for one in (soon, later, late)]
    assert spreads[0] < spreads[1] < spreads[2]
    assert soon.reach < later.reach == late.reach == tracker.parameters.window


def test_marker_leaves_the_image_and_comes_back():
    stage = Stage([[0.9, 0.0, 0.2], [0.0, 0.0, -0.3]])
    stage.start()
    seen = set()
    for k in range(1, 75):
        # From the image's right edge 50 px out, and back.
        way = 0.9 * (1.0 - math.cos(2.0 * math.pi * k / 75))
        places = stage.places + np.array([[way, 0.0, 0.0], [0.0, 0.0, 0.0]])
        ((status, other),) = stage.run([k], places)
        assert other == TRACKED
        u = stage.centers[0, 0]
        if u > CAMERA.width + 12.0:
            assert status == LOST
            assert stage.seen['a'].reason == 'outside the image'
        if u < CAMERA.width - 20.0:
            assert status == TRACKED, (k, stage.seen['a'].reason)
        seen.add(status)
    assert seen == {TRACKED, UNCERTAIN, LOST}


OUTSIDE = np.array([9.0, 0.0, 0.0])


def test_marker_that_left_the_image_is_found_elsewhere():
    # Its window is 60 px large where it left, at the right edge.
    stage = Stage([[0.9, 0.0, 0.5], [0.0, 0.0, -0.3], [0.5, 0.0, -0.3]])
    stage.start()
    out = stage.places.copy()
    out[0] += OUTSIDE
    assert stage.run(range(1, 45), out)[-1] == [LOST, TRACKED, TRACKED]
    back = stage.places.copy()
    back[0] = [-1.6, 0.0, 0.2]
    assert stage.run(range(45, 50), back)[-1] == [TRACKED] * 3


def test_two_alike_markers_that_left_the_image_are_flagged():
    stage = Stage([[0.9, 0.0, 0.5], [0.0, 0.0, -0.3], [0.9, 0.0, -0.5]])
    stage.start()
    out = stage.places.copy()
    out[[0, 2]] += OUTSIDE
    stage.run(range(1, 45), out)
    back = out.copy()
    back[2] = [-1.6, 0.0, 0.2]
    stage.run(range(45, 60), back)
    # The ring may be either of them.
    assert sorted(stage.statuses()) == [LOST, TRACKED, UNCERTAIN]
    back[0] = [-1.0, 0.0, 0.5]
    assert stage.run(range(60, 75), back)[-1] == [UNCERTAIN, TRACKED, UNCERTAIN]
    assert re.match('may be', stage.seen['a'].reason)
    # Until one of them is initialised again.
    stage.tracker.initialize('a', stage.image(back), 75 / RATE, stage.centers[0], 10.0)
    assert stage.run(range(76, 86), back)[-1] == [TRACKED] * 3


def test_a_ring_elsewhere_is_not_a_marker_that_was_just_hidden():
    # It is neither of two: the one is expected near its place, the other looks different.
    stage = Stage([[0.9, 0.0, 0.5], [0.0, 0.0, -0.3]])
    stage.start()
    other = np.array([[9.0, 0.0, 0.5], [-1.6, 0.0, 0.2]])
    stage.run(range(1, 5), other)
    assert stage.statuses() == [LOST, LOST]


def test_marker_that_looks_different_is_not_found_again():
    stage = Stage(row(1))
    stage.start()
    stage.update(1 / RATE)
    stage.run(range(2, 5), np.full((1, 3), math.nan))
    for index, other in enumerate([(0.11,), (RADIUS, 0.75), (RADIUS, 0.5, True)]):
        image = Stage(row(1), [MarkerOnRig('a', *other)]).image()
        assert stage.tracker.update(image, (5 + index) / RATE)['a'].status != TRACKED, other
    assert stage.run([9]) == [[TRACKED]]


# What is refused


def test_images_times_markers_and_pixels_that_cannot_be():
    stage = Stage(row(1))
    with pytest.raises(InputError, match='a is not tracked by the camera left, tracked: nothing'):
        stage.tracker.predict('a', 0.0)
    stage.start()
    stage.update(1.0)
    image = stage.image()
    for picture, time, text in (
        (np.zeros((90, 100), np.uint8), 2.0, 'has 100 x 90 px, allowed .* left: 320 x 240'),
        (np.zeros((240, 320)), 2.0, 'array of uint8'),
        (image, 1.0, r'allowed: after 1\.000000 s'),
        (image, math.nan, r'allowed: after 1\.000000 s'),
    ):
        with pytest.raises(InputError, match=text):
            stage.tracker.update(picture, time)
    for name, place, text in (
        ('z', (100.0, 100.0), "marker = 'z', allowed: a"),
        ('a', (math.nan, 100.0), r'^a: pixel\[0\] = nan, allowed: finite'),
    ):
        with pytest.raises(InputError, match=text):
            stage.tracker.initialize(name, image, 0.0, place, 10.0)
    # Nothing has happened.
    stage.update(1.0 + 1 / RATE)
    assert stage.statuses() == [TRACKED]
