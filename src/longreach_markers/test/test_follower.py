"""How the tracker begins by itself, and what it does about markers that it does not find."""

import dataclasses
import math

import numpy as np
import pytest
from test_rig_tracker import CAMERA, RADIUS, small_rig
from test_rig_tracker import Stage as Cameras

from longreach_dynamics.errors import InputError
from longreach_markers.marker.detection import LOST, TRACKED
from longreach_markers.rig import MarkerOnRig
from longreach_markers.tracking.follower import Follower
from longreach_markers.tracking.image_sets import ImageSet

PLACES = np.array([[-0.9, 0.0, 0.2], [-0.2, 0.0, -0.3], [0.3, 0.0, 0.4], [0.9, 0.0, -0.1]])
# Two alike, a disc, and one of its own kind.
MARKERS = (
    MarkerOnRig('one', RADIUS),
    MarkerOnRig('two', RADIUS),
    MarkerOnRig('disc', RADIUS, 0.0),
    MarkerOnRig('thin', 0.2, 0.7),
)
RATE = 10.0
STRANGER = MarkerOnRig('stranger', RADIUS)


class Stage(Cameras):
    def __init__(self, markers, more=()):
        rig = dataclasses.replace(small_rig(), markers=markers)
        shown = dataclasses.replace(rig, markers=markers + more)
        super().__init__(shown, rig, clutter=0)
        self.follower, self.k = Follower(rig), 0

    def update(self, places, covered=None):
        """Track the next pair of images, in which the right camera does not see one marker."""
        stamp = round(self.k * 1e9 / RATE)
        self.k += 1
        images = self.images(places)
        if covered is not None:
            u, v = np.rint(self.simulators['right'].centers(places)[covered]).astype(int)
            images['right'][v - 20 : v + 20, u - 20 : u + 20] = 90
        return self.follower.update(ImageSet(dict.fromkeys(images, stamp), images, late=False))

    def until(self, places, seconds):
        for _ in range(round(seconds * RATE)):
            frame = self.update(places)
        return frame


def test_a_camera_without_images_yet_ends_nothing():
    """One marker with a position, which the other camera does not see for some seconds."""
    rig = small_rig()
    follower = Follower(dataclasses.replace(rig, markers=rig.markers[:1]))
    blank = np.full((CAMERA.height, CAMERA.width), 128, dtype=np.uint8)
    for k in range(4):
        frame = follower.update(ImageSet({'left': k * 10**9}, {'left': blank}, late=False))
    assert frame.estimates[rig.markers[0].name].status == LOST


def hidden(places, *rows):
    places = places.copy()
    places[list(rows), 0] = math.nan
    return places


def assert_tracked(frame, **places):
    for name, one in frame.estimates.items():
        if name not in places:
            assert one.status == LOST, name
            continue
        assert (one.status, one.cameras) == (TRACKED, ('left', 'right')), (name, one.reason)
        assert np.abs(one.in_plane.position - places[name]).max() < 1e-3


def test_a_disc_does_not_keep_rings_from_being_found():
    stage = Stage(MARKERS)
    frame = stage.update(PLACES)
    assert_tracked(frame, one=PLACES[0], two=PLACES[1], thin=PLACES[3])
    assert frame.estimates['disc'].reason == (
        'not initialised: 0 markers found instead of 1: disc (discs are not found in this way)'
    )
    assert stage.follower.problem.startswith('0 markers found instead of 1: disc')
    stage.until(PLACES, 2.0)
    assert 'disc' in stage.follower.problem


def test_what_was_initialised_is_no_problem_any_more():
    stage = Stage(MARKERS)
    stage.until(PLACES, 0.5)
    for side, tracker in stage.follower.tracker.trackers.items():
        picture = stage.simulators[side].image(PLACES, stage.rng)
        center = stage.simulators[side].centers(PLACES)[2]
        tracker.initialize('disc', picture, tracker.time, center, 10.0)
    stage.until(PLACES, 1.0)
    assert stage.follower.problem == ''


def test_kinds_that_are_missing_are_looked_for_again():
    stage = Stage(MARKERS)
    frame = stage.until(hidden(PLACES, 1), 0.5)
    assert_tracked(frame, thin=PLACES[3])
    assert '1 markers found instead of 2: one, two' in stage.follower.problem
    frame = stage.until(PLACES, 1.0)
    assert_tracked(frame, one=PLACES[0], two=PLACES[1], thin=PLACES[3])
    assert 'one' not in stage.follower.problem


def test_searches_become_rare_while_others_are_tracked(monkeypatch):
    stage = Stage(MARKERS)
    searched = []
    search = stage.follower.tracker.search

    def counted(images, times):
        searched.append(times['left'])
        return search(images, times)

    monkeypatch.setattr(stage.follower.tracker, 'search', counted)
    stage.until(hidden(PLACES, 1), 8.0)
    assert np.diff([0.0, *searched]) == pytest.approx([1.1, 2.1, 4.1], abs=0.11)


def test_a_search_that_cannot_be_tried_is_a_problem_only(monkeypatch):
    stage = Stage(MARKERS)
    stage.until(hidden(PLACES, 1), 0.5)

    def search(images, times):
        raise InputError('the plane is seen edge-on')

    monkeypatch.setattr(stage.follower.tracker, 'search', search)
    frame = stage.until(PLACES, 1.0)
    assert stage.follower.problem == 'the plane is seen edge-on'
    assert_tracked(frame, thin=PLACES[3])


def test_images_of_half_size_ask_for_half_the_scale():
    with pytest.raises(InputError, match=r'resized, set scale to 0\.125, otherwise cal'):
        small_rig().check_image('left', np.zeros((120, 160), np.uint8), 0.25)


def test_a_ring_too_many_spoils_its_own_kind_only():
    stage = Stage(MARKERS, (STRANGER,))
    frame = stage.update(np.vstack([PLACES, [0.4, 0.0, -0.6]]))
    assert_tracked(frame, thin=PLACES[3])
    assert '3 markers found instead of 2: one, two' in stage.follower.problem


def test_a_ring_that_one_camera_sees_does_not_count():
    stage = Stage(MARKERS, (STRANGER,))
    frame = stage.update(np.vstack([PLACES, [0.4, 0.0, -0.6]]), covered=4)
    assert_tracked(frame, one=PLACES[0], two=PLACES[1], thin=PLACES[3])


def elsewhere(*kept):
    """Return rings with positions that are those of the places only for some."""
    markers = [MARKERS[0], MARKERS[1], MARKERS[3]]
    places = [PLACES[0], PLACES[1], PLACES[3]]
    return tuple(
        one.replace(position=(place[0], 0.0, place[2] + 1.5 * (k not in kept)))
        for k, (one, place) in enumerate(zip(markers, places, strict=True))
    )


def test_where_nothing_is_at_its_position_single_kinds_are_searched():
    stage = Stage(elsewhere())
    places = PLACES[[0, 1, 3]]
    assert_tracked(stage.until(places, 1.0))
    # The other two might get each other's names.
    assert_tracked(stage.until(places, 0.5), thin=PLACES[3])


def test_where_a_marker_is_in_sight_the_others_are_awaited_at_their_positions():
    stage = Stage(elsewhere(0))
    assert_tracked(stage.until(PLACES[[0, 1, 3]], 2.5), one=PLACES[0])
