"""Overlays as files: videos and folders."""

from __future__ import annotations

import resource

import cv2
import numpy as np
import pytest
from small_rig import frame_at, small_rig

from longreach_dynamics.errors import InputError, LongreachError
from longreach_markers.tracking.follower import Followed
from longreach_markers.tracking.image_sets import ImageSet
from longreach_vision.io.overlay_files import VIDEOS, writing_overlay


def followed(k, rate=15.0, cameras=('left', 'right'), seen=True):
    """Return pair k of noisy images, of some cameras, in which markers are seen or not."""
    noise = np.random.default_rng(k).integers(0, 255, (300, 400), np.uint8, endpoint=True)
    frame = frame_at(k / rate)
    if not seen:
        frame.observations.clear()
    stamps = dict.fromkeys(cameras, round(1e9 * k / rate))
    return Followed(ImageSet(stamps, dict.fromkeys(cameras, noise), False), frame, {})


def overlaid(target, sets):
    """Write an overlay."""
    with writing_overlay(target, small_rig()) as write:
        for one in sets:
            write(one)


def frames_in(file):
    """Return the frames of a video."""
    capture = cv2.VideoCapture(str(file))
    frames = []
    while True:
        good, picture = capture.read()
        if not good:
            return frames
        frames.append(picture)


@pytest.mark.parametrize('ending', VIDEOS)
def test_a_video_has_every_pair_whatever_was_seen(tmp_path, ending):
    sets = [followed(k, seen=k > 2) for k in range(9)]
    sets[0], sets[5] = followed(0, cameras=('right',)), followed(5, cameras=('left',))
    overlaid(tmp_path / f'over{ending}', sets)
    assert len(frames_in(tmp_path / f'over{ending}')) == 9


def test_a_picture_of_another_size_is_no_part_of_a_video(tmp_path):
    one = followed(1)
    half = {name: image[::2, ::2] for name, image in one.images.images.items()}
    sets = [followed(0), one._replace(images=one.images.with_images(half))]
    with pytest.raises(LongreachError, match='picture of shape'):
        overlaid(tmp_path / 'over.avi', sets)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize('ending', VIDEOS)
def test_a_disk_that_is_full_is_noticed(tmp_path, ending):
    sets = [followed(k) for k in range(12)]
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(LongreachError, match=r'of 12 images \d+ can be .* the disk full'):
            overlaid(tmp_path / f'over{ending}', sets)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize('ending', VIDEOS)
@pytest.mark.parametrize('rate', [1e-3, 1e5])
def test_a_rate_that_no_video_has(tmp_path, ending, rate):
    with pytest.raises(InputError, match=rf'{rate:g} images per .* \[0\.002, 1000\] Hz'):
        overlaid(tmp_path / f'over{ending}', [followed(k, rate) for k in range(2)])


@pytest.mark.parametrize('ending', VIDEOS)
@pytest.mark.parametrize('rate', [2.1e-3, 900.0])
def test_rates_at_the_ends(tmp_path, ending, rate):
    overlaid(tmp_path / f'over{ending}', [followed(k, rate) for k in range(12)])
    assert len(frames_in(tmp_path / f'over{ending}')) == 12
