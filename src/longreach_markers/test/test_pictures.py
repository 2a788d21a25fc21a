"""Images of files in the order of time."""

import cv2
import numpy as np
import pytest
from small_rig import small_rig

from longreach_dynamics.errors import InputError
from longreach_markers.io.image_sources import open_source
from longreach_markers.io.pictures import Picture, pictures_of
from longreach_markers.tracking.follower import Follower, follow

BLANK = np.zeros((8, 8), np.uint8)


def folder(path, *names):
    path.mkdir()
    for name in names:
        cv2.imwrite(str(path / name), BLANK)
    return open_source(str(path))


def order(sources, rate=None):
    return [(p.camera, p.stamp) for p in pictures_of(sources, rate)]


def test_images_come_in_the_order_of_time(tmp_path):
    left = folder(tmp_path / 'left', 'a_0.100.png', 'b_0.300.png')
    right = folder(tmp_path / 'right', 'a_0.050.png', 'b_0.100.png', 'c_0.400.png')
    ms = 1_000_000
    found = [('right', 50), ('left', 100), ('right', 100), ('left', 300), ('right', 400)]
    assert order({'left': left, 'right': right}) == [(side, at * ms) for side, at in found]


def test_a_rate_stands_for_all_times(tmp_path):
    left = folder(tmp_path / 'left', '1.png', '2.png')
    right = folder(tmp_path / 'right', 'a_7.5.png', 'b_9.5.png')
    both = [(side, stamp) for stamp in (0, 100_000_000) for side in ('left', 'right')]
    assert order({'left': left, 'right': right}, 10.0) == both
    with pytest.raises(InputError, match=r'left has no times .* give --rate'):
        order({'left': left, 'right': right})


def test_an_image_of_another_size():
    small = Picture('right', 0, np.zeros((150, 200), np.uint8), 'right/1.png')
    text = r'right/1\.png: image has 200 x 150 px.*400 x 300.*multiply the scale by 0\.5'
    with pytest.raises(InputError, match=text):
        list(follow(Follower(small_rig()), [small]))
    # Of another shape it was not resized.
    cut = small._replace(image=np.zeros((300, 200), np.uint8))
    with pytest.raises(InputError, match=r'300 px; calibrate the camera at the image size'):
        list(follow(Follower(small_rig()), [cut]))


def test_images_recorded_late_are_paired_and_those_that_cannot_be_used_are_told():
    second = 1_000_000_000
    stamps = {'left': [k * second // 10 for k in range(40)]}
    stamps['right'] = list(stamps['left'])
    # A stamp far from the others, and one that goes back at the very end.
    stamps['left'][20] += 5 * second
    stamps['right'][-1] = 0
    blank = np.zeros((300, 400), np.uint8)
    # As in a bag: those of the right camera come 4 s later.
    pictures = [
        Picture(side, at, blank, f'{side} {at}') for side, times in stamps.items() for at in times
    ]
    follower = Follower(small_rig())
    found = [len(one.images.images) for one in follow(follower, pictures)]
    assert found == [1 + (k not in (20, 39)) for k in range(40)]
    assert [note.partition(':')[0] for note in follower.notes] == [
        f'1 images of {side} have stamps far from that of the previous one' for side in stamps
    ]


def test_images_that_wait_when_time_goes_back_are_tracked_before_the_error():
    blank = np.zeros((300, 400), np.uint8)
    # The right camera gives nothing.
    pictures = [Picture('left', k * 10**8, blank, f'image {k}') for k in (*range(20), 0, 1, 2)]
    found = follow(Follower(small_rig()), pictures)
    times = [next(found).frame.time for _ in range(20)]
    assert times == pytest.approx([0.1 * k for k in range(20)])
    with pytest.raises(InputError, match=r'^image 2: time goes back to 0\.200 s, allowed: one'):
        next(found)
