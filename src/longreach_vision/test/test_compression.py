"""Rendered markers in videos: what compression between frames costs is part of the covariance."""

import math

import numpy as np
import pytest
from independent_views import digitised, view, write_video
from small_commands import call
from small_rig import NAMES, START, small_rig, write_small_rig
from swinging import followed

from longreach_markers import Follower, open_source
from longreach_markers.tracking import sightings

COUNT, RATE = 60, 30.0


def places(time):
    swing = 0.12 * np.sin(2.0 * np.pi * 0.7 * time + np.array([0.0, 1.0]))
    return START + swing[:, None] * np.array([0.5, 0.0, 1.0])


@pytest.fixture(scope='module')
def pictures():
    rig, rng = small_rig(), np.random.default_rng(4)
    return {
        side: [digitised(view(rig, side, places, k / RATE), rng) for k in range(COUNT)]
        for side in rig.cameras
    }


def ratio(shown):
    """Return the mean squared error in the plane over its covariance, after a second."""
    rig, squares = small_rig(), []
    frames = followed(Follower(rig), lambda side, k: shown[side][k], COUNT, RATE)
    for k, frame in list(enumerate(frames))[COUNT // 2 :]:
        for name, place in zip(NAMES, places(k / RATE), strict=True):
            if frame.estimates[name].status == 'TRACKED':
                found = frame.estimates[name].in_plane
                error = rig.plane.axes @ (found.position - place)
                stated = rig.plane.axes @ found.covariance @ rig.plane.axes.T
                squares.append(float(error @ np.linalg.solve(stated, error)) / 2.0)
    assert len(squares) > COUNT // 2
    return float(np.mean(squares))


def written(folder, shown):
    return {
        side: write_video(folder / f'{side}.mp4', images, 'mp4v', RATE)
        for side, images in shown.items()
    }


@pytest.mark.slow
def test_errors_of_compression_between_frames_are_stated(tmp_path, pictures, monkeypatch):
    files = written(tmp_path, pictures)
    shown = {
        side: [frame.image for frame in open_source(str(file))] for side, file in files.items()
    }
    found = ratio(shown)
    assert 0.4 < ratio(pictures) < 2.0
    monkeypatch.setattr(sightings, '_EXCESS', math.inf)
    # A part: errors of both cameras are alike here (correlation 0.4), which is no gap of the rays.
    assert found < 0.96 * ratio(shown)


@pytest.mark.slow
def test_track_says_it(capfd, tmp_path, pictures):
    files = written(tmp_path, {k: v[:4] for k, v in pictures.items()})
    call('track', *files.values(), '--rig', write_small_rig(tmp_path))
    told = capfd.readouterr()
    for file in files.values():
        assert f'{file} is compressed between frames' in told.err
    assert 'record MJPEG' in told.err


@pytest.mark.slow
def test_without_noise_apart_from_stated_nothing_is_added(pictures):
    follower = Follower(small_rig())
    followed(follower, lambda side, k: pictures[side][k], COUNT, RATE)
    assert follower.tracker.gap_noise.excess == 1.0
