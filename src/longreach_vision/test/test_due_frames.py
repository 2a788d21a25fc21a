"""Images that are to be drawn: those of samples as they arrive, and those of a path."""

from __future__ import annotations

import numpy as np

from longreach_vision.simulator.due_frames import DueFrames
from longreach_vision.simulator.marker_path import FrameTimes, MarkerPath

PLACE = np.zeros((1, 3))


def times() -> list[FrameTimes]:
    """Return the image times of two cameras, the second of which is 10 ms later."""
    return [FrameTimes(10.0), FrameTimes(10.0, 0.01)]


def test_samples_complete_images_up_to_the_duration():
    frames = DueFrames(times(), duration=0.2)
    assert not frames.add(-1, PLACE, PLACE, now=1.0)
    assert frames.add(50_000_000, PLACE, PLACE, now=2.0)
    assert [(one.camera, one.frame.stamp, one.due) for one in frames.waiting] == [
        (0, 0, 2.0),
        (1, 10_000_000, 2.0),
    ]
    assert not frames.is_complete
    assert frames.add(200_000_000, PLACE, PLACE, now=3.0)
    assert frames.is_complete
    assert not frames.has_path


def test_a_path_has_its_pace():
    frames = DueFrames(times(), duration=0.0)
    path = MarkerPath(('one',), np.array([0.0, 0.1]), np.zeros((2, 1, 3)))
    frames.follow(path, real_time_factor=0.5, begin=100.0)
    due = []
    while frames.has_next(100.0, lambda: False):
        one = frames.waiting.popleft()
        due.append((one.camera, round(one.due, 6)))
    assert due == [(0, 100.0), (1, 100.02), (0, 100.2)]
    assert frames.is_complete


def test_without_a_pace_a_path_waits_for_its_listeners():
    frames = DueFrames(times()[:1], duration=0.0)
    path = MarkerPath(('one',), np.array([0.0, 0.1]), np.zeros((2, 1, 3)))
    frames.follow(path, real_time_factor=0.0, begin=100.0)
    assert not frames.has_next(101.0, lambda: False)
    assert frames.has_next(102.0, lambda: True)
    assert frames.waiting.popleft().due == 102.0
    assert not frames.is_complete
