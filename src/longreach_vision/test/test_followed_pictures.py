"""Images drawn in the order of time, and the tracker that follows them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from small_path import small_path
from small_rig import small_rig

from longreach_dynamics.errors import InputError, LongreachError
from longreach_markers.io.image_sources import open_source
from longreach_markers.io.pictures import pictures_of
from longreach_markers.tracking.follower import Follower, follow
from longreach_vision.simulator.marker_path import MarkerPath
from longreach_vision.simulator.scene import CameraLook
from longreach_vision.simulator.sequences import (
    drawn_pictures,
    frame_times,
    render_sequence,
    simulators_of,
)

LOOK = CameraLook(clutter=0)


def test_drawn_images_are_those_of_files(tmp_path):
    rig, path = small_rig(), small_path(0.2)
    times = frame_times(path, 15.0)
    np.testing.assert_allclose(times, np.arange(4) / 15.0, atol=1e-9)
    places = render_sequence(simulators_of(rig, LOOK), path, times, tmp_path / 'seen')
    sources = {name: open_source(str(place)) for name, place in places.items()}
    drawn = drawn_pictures(simulators_of(rig, LOOK), path, times)
    # All at once: none may be drawn over.
    for one, other in zip(list(pictures_of(sources)), list(drawn), strict=True):
        assert (one.camera, one.stamp) == (other.camera, other.stamp)
        np.testing.assert_array_equal(one.image, other.image)


def test_times_of_images_on_a_path():
    path = small_path(1.0)
    assert len(frame_times(path, 10.0)) == 11
    np.testing.assert_allclose(frame_times(path, 10.0, 0.3), [0.0, 0.1, 0.2, 0.3])
    late = MarkerPath(('one',), np.array([0.72, 0.78]), np.zeros((2, 1, 3)))
    with pytest.raises(InputError, match=r'no image at 10 Hz falls on the path of \[0\.72, 0\.78'):
        frame_times(late, 10.0)
    early = MarkerPath(('one',), np.array([-5.0, -1.0]), np.zeros((2, 1, 3)))
    with pytest.raises(InputError, match=r'path of \[-5, -1\] s, allowed: times from 0 on'):
        frame_times(early, 10.0)


def test_the_tracker_follows_pair_by_pair():
    rig, path = small_rig(), small_path(0.5)
    times = frame_times(path, 15.0)
    followed = list(follow(Follower(rig), drawn_pictures(simulators_of(rig, LOOK), path, times)))
    assert [one.images.stamp for one in followed] == [round(time * 1e9) for time in times]
    for one in followed:
        assert {e.status for e in one.frame.estimates.values()} == {'TRACKED'}
        truth = path.at(one.frame.time)[0]
        for place, name in zip(truth, rig.names, strict=True):
            found = one.frame.estimates[name].in_plane
            assert np.abs(found.position - place).max() < 5e-4
    # Markers were looked for where they were.
    last = followed[-1]
    for camera, seen in last.frame.observations.items():
        for name, (u, v, half) in last.windows[camera].items():
            assert np.abs(seen[name].center - (u, v)).max() < half


def test_one_camera_and_images_of_which_some_are_missing():
    rig, path = small_rig(), small_path(0.5)
    times = frame_times(path, 15.0)
    drawn = list(drawn_pictures(simulators_of(rig, LOOK), path, times))
    holes = [p for k, p in enumerate(drawn) if k != 5]
    followed = list(follow(Follower(rig), holes))
    assert len(followed) == len(times)
    assert [len(one.images.images) for one in followed] == [2, 2, 1, *[2] * (len(times) - 3)]
    assert followed[2].frame.estimates['one'].cameras == ('left',)


def test_an_error_comes_after_what_was_complete():
    rig, path = small_rig(), small_path(0.5)
    drawn = drawn_pictures(simulators_of(rig, LOOK), path, frame_times(path, 15.0))

    def broken():
        yield from itertools.islice(drawn, 5)
        raise LongreachError('left.avi breaks off')

    frames = follow(Follower(rig), broken())
    assert [next(frames).images.stamp for _ in range(3)] == [0, 66_666_667, 133_333_333]
    with pytest.raises(LongreachError, match='breaks off'):
        next(frames)


def test_first_stamps_of_zero_do_not_end_the_tracks():
    rig, path = small_rig(), small_path(0.7)
    drawn = list(drawn_pictures(simulators_of(rig, LOOK), path, frame_times(path, 15.0)))
    now = 1_790_000_000_000_000_000
    drawn[2:] = [picture._replace(stamp=picture.stamp + now) for picture in drawn[2:]]
    followed = list(follow(Follower(rig), drawn))
    assert len(followed) == 11
    for one in followed:
        assert {e.status for e in one.frame.estimates.values()} == {'TRACKED'}


def test_time_that_goes_back_ends_the_tracks_with_advice_for_users():
    rig, path = small_rig(), small_path(0.7)
    drawn = list(drawn_pictures(simulators_of(rig, LOOK), path, frame_times(path, 15.0)))
    now = 5_000_000_000
    again = [*(one._replace(stamp=one.stamp + now) for one in drawn[:10]), *drawn[10:]]
    frames = follow(Follower(rig), again)
    assert [next(frames).images.stamp - now for _ in range(5)] == [p.stamp for p in drawn[:10:2]]
    with pytest.raises(InputError, match=r'time goes back to 0\.\d+ s, .* in its own bag') as info:
        next(frames)
    assert 'reset' not in str(info.value)


def test_one_wrong_stamp_does_not_end_the_tracks():
    rig, path = small_rig(), small_path(0.7)
    drawn = list(drawn_pictures(simulators_of(rig, LOOK), path, frame_times(path, 15.0)))
    drawn[8] = drawn[8]._replace(stamp=drawn[8].stamp + 5_000_000_000)
    followed = list(follow(Follower(rig), drawn))
    assert [len(one.images.images) for one in followed] == [2, 2, 2, 2, 1, *[2] * 6]
    for one in followed:
        assert {e.status for e in one.frame.estimates.values()} == {'TRACKED'}
