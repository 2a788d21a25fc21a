"""Overlays as files: videos and folders."""

import numpy as np
import pytest
from small_commands import full_disk
from small_rig import frame_at, small_rig

from longreach_dynamics.errors import InputError, LongreachError
from longreach_markers.io.image_sources import open_source
from longreach_markers.tracking.follower import Followed
from longreach_markers.tracking.image_sets import ImageSet
from longreach_vision.io.picture_files import VIDEOS, writing_overlay


def followed(k, rate=15.0, cameras=('left', 'right'), seen=True):
    """Return pair k of noisy images, of some cameras, in which markers are seen or not."""
    noise = np.random.default_rng(k).integers(0, 255, (300, 400), np.uint8, endpoint=True)
    frame = frame_at(k / rate)
    if not seen:
        frame.observations.clear()
    stamps = dict.fromkeys(cameras, round(1e9 * k / rate))
    return Followed(ImageSet(stamps, dict.fromkeys(cameras, noise), False), frame, {})


def overlaid(target, sets):
    with writing_overlay(target, small_rig()) as write:
        for one in sets:
            write(one)


def frames_in(file):
    with open_source(str(file)) as source:
        return sum(1 for _ in source)


@pytest.mark.parametrize('ending', VIDEOS)
def test_a_video_has_every_pair_whatever_was_seen(tmp_path, ending):
    sets = [followed(k, seen=k > 2) for k in range(9)]
    sets[0], sets[5] = followed(0, cameras=('right',)), followed(5, cameras=('left',))
    overlaid(tmp_path / f'over{ending}', sets)
    assert frames_in(tmp_path / f'over{ending}') == 9


@pytest.mark.parametrize('ending', VIDEOS)
def test_a_disk_that_is_full_is_noticed(tmp_path, ending):
    sets = [followed(k) for k in range(12)]
    text = r'of 12 images \d+ can be .* the disk full'
    with full_disk(100_000), pytest.raises(LongreachError, match=text):
        overlaid(tmp_path / f'over{ending}', sets)
    assert list(tmp_path.iterdir()) == []


def test_the_rate_of_a_video_is_not_that_of_a_gap_at_its_start(tmp_path):
    overlaid(tmp_path / 'over.avi', [followed(k) for k in (0, *range(8, 31))])
    with open_source(str(tmp_path / 'over.avi')) as source:
        assert source.frame_rate == pytest.approx(15.0, rel=1e-6)
        assert sum(1 for _ in source) == 24


@pytest.mark.parametrize('ending', VIDEOS)
@pytest.mark.parametrize(('rate', 'end'), [(1e-3, 2.1e-3), (1e5, 900.0)])
def test_rates_beyond_those_of_videos_and_at_their_ends(tmp_path, ending, rate, end):
    overlaid(tmp_path / f'at_end{ending}', [followed(k, end) for k in range(12)])
    assert frames_in(tmp_path / f'at_end{ending}') == 12
    with pytest.raises(InputError, match=rf'{rate:g} images per .* \[0\.002, 1000\] Hz'):
        overlaid(tmp_path / f'over{ending}', [followed(k, rate) for k in range(2)])
