"""Images of two cameras in time: what belongs together, whatever the order in which it comes."""

import math
import random

import cv2
import numpy as np
import pytest
from small_rig import small_rig

from longreach_dynamics.errors import InputError
from longreach_markers.io.image_sources import Picture, open_source, pictures_of
from longreach_markers.tracking import image_sets
from longreach_markers.tracking.follower import Follower, follow
from longreach_markers.tracking.image_sets import ImageSets

MS = 1_000_000  # [ns]
CAMERAS = ('left', 'right')


def pairs(tolerance=0.02, timeout=0.5, cameras=CAMERAS):
    return ImageSets(cameras, tolerance, timeout)


def both_at(times):
    return [(camera, at) for at in times for camera in CAMERAS]


def image_of(text):
    return np.frombuffer(text.encode(), np.uint8)


def feed(pairs, images):
    """Add images (camera, stamp [ms]); each has the bytes of a text that says which one it is."""
    return [
        ready
        for camera, stamp in images
        for ready in pairs.add(camera, stamp * MS, image_of(f'{camera} {stamp}'))
    ]


def by_camera(sets):
    found = [{name: at // MS for name, at in ready.stamps.items()} for ready in sets]
    for ready, row in zip(sets, found, strict=True):
        named = {name: image.tobytes().decode() for name, image in ready.images.items()}
        assert named == {name: f'{name} {at}' for name, at in row.items()}
    return found


def stamps(sets):
    return [(row.get('left'), row.get('right')) for row in by_camera(sets)]


@pytest.mark.parametrize('offset', [-33, -20, -7, 7, 20, 33])
def test_cameras_that_are_not_synchronous_pair_with_the_nearest(offset):
    made = pairs(tolerance=0.05)
    images = [
        (name, at + offset * (name == 'right')) for name, at in both_at(range(100, 1420, 66))
    ]
    images.sort(key=lambda image: image[1])
    found = stamps([*feed(made, images), *made.flush()])
    away = [right - left for left, right in found if None not in (left, right)]
    # At the half of the time between images either neighbour is right.
    assert set(away) <= {offset, -offset if offset in (-33, 33) else offset}
    assert len(away) >= 19


def test_the_neighbour_of_a_dropped_image_is_not_taken_for_it():
    # At 30 Hz the neighbour is within the tolerance.
    made = pairs(tolerance=0.05)
    images = both_at(range(0, 330, 33))
    images.remove(('right', 33 * 4))
    found = feed(made, images)
    assert stamps(found) == [(33 * k, None if k == 4 else 33 * k) for k in range(10)]
    assert made.counts('dropped') == {'left': 0, 'right': 1}


def test_images_whose_stamps_jitter_are_not_lost():
    made = pairs()
    rng = random.Random(1)
    feed(made, [('left', 67 * k + rng.randint(-8, 8)) for k in range(300)])
    feed(made, [('right', 67 * k - 66 * (k == 4)) for k in range(10)])
    feed(made, [('right', 67 * k) for k in range(12, 20)])
    assert made.counts('dropped') == {'left': 0, 'right': 3}


def test_a_camera_that_is_missing_is_waited_for_once():
    made = pairs(timeout=0.3)
    found = feed(made, [('left', 66 * k) for k in range(6)])
    # 330 ms are more than the timeout; from then on none waits.
    assert stamps(found) == [(66 * k, None) for k in range(6)]
    assert len(feed(made, [('left', 396)])) == 1
    assert made.counts('alone') == {'left': 7, 'right': 0}
    assert math.isnan(made.nearest_gap)
    # It comes back.
    assert stamps(feed(made, [('left', 462), ('right', 462)])) == [(462, None)]
    found = feed(made, [('right', 528), ('left', 528)])
    assert stamps(found) == [(None, 462), (528, 528)]
    assert [ready.late for ready in found] == [True, False]
    assert made.counts('late') == {'left': 0, 'right': 1}
    (note,) = made.notes
    # They are given to the tracker, and their observations to bags and topics.
    assert note.startswith('1 images of right come after later ones of other cameras: they are tr')


def test_time_that_goes_back_begins_anew():
    made = pairs()
    feed(made, [('left', 9000), ('right', 9000), ('left', 9066)])
    # Three images make it certain.
    assert not feed(made, [('left', 0), ('right', 0)])
    assert made.restarts == 0
    assert stamps(feed(made, [('left', 66), ('right', 66)])) == [(0, 0), (66, 66)]
    assert made.restarts == 1
    assert made.waiting == 0
    assert made.counts('misdated') == {'left': 0, 'right': 0}


@pytest.mark.parametrize('wrong', [0, 7000, 15_000, 10**9])
@pytest.mark.parametrize('camera', CAMERAS)
def test_one_wrong_stamp_costs_one_image(camera, wrong):
    made = pairs()
    times = range(10_000, 10_000 + 66 * 12, 66)
    images = both_at(times)
    k = images.index((camera, 10_000 + 66 * 5))
    missing = images[k]
    images[k] = (camera, wrong)
    found = feed(made, images)
    assert stamps(found) == [
        tuple(None if (name, at) == missing else at for name in CAMERAS) for at in times
    ]
    assert made.restarts == 0
    assert made.counts('misdated') == {name: int(name == camera) for name in CAMERAS}
    assert made.waiting == 0


@pytest.mark.parametrize('cameras', [CAMERAS, ('left', 'right', 'top', 'low')])
@pytest.mark.parametrize('wrong', [0, 15_000])
def test_a_set_with_wrong_stamps_is_left_out(wrong, cameras):
    made = pairs(cameras=cameras)
    times = [10_000 + 66 * k for k in range(8)]
    images = [(name, at) for at in (*times[:4], wrong, *times[5:]) for name in cameras]
    expected = [dict.fromkeys(cameras, at) for at in times if at != times[4]]
    assert by_camera(feed(made, images)) == expected
    assert (made.restarts, made.jumps) == (0, 0)
    assert made.counts('misdated') == dict.fromkeys(cameras, 1)


def test_wrong_stamps_at_the_start_are_recovered_from():
    later = [10**9 + 66 * k for k in range(5)]
    for first, restarts in ((0, 0), (2 * 10**9, 1)):
        made = pairs()
        found = feed(made, both_at([first, *later]))
        assert stamps(found) == [(at, at) for at in (first, *later)]
        assert made.restarts == restarts
    # Of one camera alone.
    made = pairs()
    found = feed(made, [('left', 0), ('right', 10**9 - 66), *both_at(later)])
    assert stamps(found)[-5:] == [(at, at) for at in later]


def test_a_jump_of_the_clock_is_no_loss_of_images():
    made = pairs()
    far = 2_147_480_000_000
    starts = [(0, 12), (far, 8), (66 * 20, 12)]
    images = both_at(at + 66 * k for at, count in starts for k in range(count))
    found = feed(made, images)
    assert len(found) == len(images) // 2
    assert (made.jumps, made.restarts) == (1, 1)
    assert made.counts('dropped') == {'left': 0, 'right': 0}
    # What is lost afterwards counts.
    feed(made, both_at([66 * 34, 66 * 35]))
    assert made.counts('dropped') == {'left': 2, 'right': 2}
    # At the end of a recording, too.
    feed(made, both_at([far]))
    made.finish()
    assert made.counts('dropped') == {'left': 2, 'right': 2}


@pytest.mark.parametrize('count', [1, 2, 3, 4, 9])
def test_images_of_a_slow_camera_are_all_given_out(count):
    made = pairs()
    times = [5000 * k for k in range(count)]
    found = [*feed(made, both_at(times)), *made.finish()]
    assert stamps(found) == [(at, at) for at in times]


def test_a_camera_whose_clock_is_set_goes_on():
    made = pairs()
    images = both_at(range(0, 330, 66))
    images += [
        (name, at + 20_000 * (name == 'right')) for name, at in both_at(range(330, 1320, 66))
    ]
    found = [*feed(made, images), *made.flush()]
    for name in CAMERAS:
        assert sum(name in ready.stamps for ready in found) == 20


def interleaved(rng, streams):
    """Return images in an order in which no camera is ahead by more than 300 ms."""
    rest = {name: list(stream) for name, stream in streams.items()}
    images = []
    while any(rest.values()):
        heads = {name: stream[0] for name, stream in rest.items() if stream}
        first = min(heads.values())
        name = rng.choice([name for name, at in heads.items() if at <= first + 300])
        images.append((name, rest[name].pop(0)))
    return images


@pytest.mark.parametrize(
    ('arguments', 'match'),
    [
        ((('left', 'left'), 0.1, 0.1), 'cameras'),
        (((), 0.1, 0.1), 'cameras'),
        ((CAMERAS, -0.1, 0.1), r'tolerance = -0.1 s, allowed: \[0, inf\)'),
        ((CAMERAS, 0.1, math.nan), 'timeout = nan s'),
    ],
)
def test_what_cannot_be_is_refused(arguments, match):
    with pytest.raises(InputError, match=match):
        ImageSets(*arguments)


def test_images_that_wait_for_a_dead_camera_have_limited_room(monkeypatch):
    monkeypatch.setattr(image_sets, 'ROOM', 1000)
    pairs = ImageSets(('left', 'right'), 0.02, 5.0)

    def image(k):
        return np.full(100, k, np.uint8)

    most = given = 0
    for k in range(150):
        given += len(pairs.add('left', k * 33_000_000, image(k)))
        most = max(most, pairs.waiting)
    # Not the 150 of five seconds; none is lost.
    assert most <= 11
    assert given + pairs.waiting == 150
    # Both cameras are paired again as soon as it is back.
    for k in (151, 152):
        for name in CAMERAS:
            sets = pairs.add(name, k * 33_000_000, image(k))
    assert len(sets[-1].images) == 2


@pytest.mark.parametrize('camera', CAMERAS)
def test_copies_of_an_image_are_counted_and_not_used(camera):
    made = ImageSets(CAMERAS, 0.0, 0.5)
    rng, found = np.random.default_rng(1), []
    shown = {name: rng.integers(0, 255, (40, 30)) for name in CAMERAS}
    for k in range(12):
        for name in CAMERAS:
            if name != camera or k not in (3, 4, 8):
                shown[name] = shown[name].copy()
                # One pixel is another one: no copy.
                shown[name][7, 11] += 1
            found += made.add(name, k * 33 * MS, shown[name])
    assert made.counts('repeated')[camera] == 3
    assert [len(ready.images) for ready in found] == [2, 2, 2, 1, 1, 2, 2, 2, 1, 2, 2, 2]
    assert sum(made.counts('dropped').values()) == 0
    made.add(camera, 11 * 33 * MS, shown[camera] + 1)
    repeated, standing = made.notes
    assert repeated.startswith(f'3 images of {camera} repeat the previous one')
    assert standing.startswith(
        f'1 images of {camera} have stamps that are not later than the prev'
    )


# More than two cameras

THREE = ('left', 'right', 'top')


def test_a_set_has_the_images_of_all_cameras():
    made = pairs(0.0, cameras=THREE)
    assert not feed(made, [('top', 0), ('left', 0)])
    (first,) = feed(made, [('right', 0)])
    assert list(first.stamps) == list(THREE)
    # Not synchronous: each with the nearest image, the time is that of the first camera.
    made = pairs(0.03, cameras=THREE)
    images = [
        (n, 66 * k + d) for k in range(5) for n, d in (('top', 0), ('left', 9), ('right', 20))
    ]
    found = by_camera([*feed(made, images), *made.flush()])
    assert found == [{'left': 66 * k + 9, 'right': 66 * k + 20, 'top': 66 * k} for k in range(5)]
    assert made.paired == 5


def test_of_three_cameras_one_may_drop_an_image_or_die():
    made = pairs(cameras=THREE)
    images = [(name, 66 * k) for k in range(40) for name in THREE]
    images = [one for one in images if one != ('right', 132) and (one[0] != 'top' or one[1] < 330)]
    found = by_camera([*feed(made, images), *made.flush()])
    assert len(found) == made.paired == 40
    assert found[2] == {'left': 132, 'top': 132}
    assert all(list(one) == ['left', 'right'] for one in found[5:])
    assert made.counts('alone') == dict.fromkeys(THREE, 0)
    # None waits for the dead one for longer than the timeout, and none after that.
    made = pairs(cameras=THREE)
    given = [len(feed(made, [(name, 66 * k) for name in ('left', 'right')])) for k in range(40)]
    assert given[:8] == [0] * 8
    assert given[9:] == [1] * 31


@pytest.mark.parametrize('cameras', [CAMERAS, THREE])
@pytest.mark.parametrize('seed', range(12))
def test_the_order_of_arrival_does_not_matter(seed, cameras):
    rng = random.Random(seed)
    streams = {
        name: [66 * k + offset + rng.randint(-3, 3) for k in range(1, 60) if rng.random() > 0.1]
        for name, offset in zip(cameras, rng.sample([0, 5, 20, 31], len(cameras)), strict=True)
    }
    results = []
    for _ in range(5):
        made = pairs(0.05, cameras=cameras)
        results.append(by_camera([*feed(made, interleaved(rng, streams)), *made.flush()]))
        given = sorted(at for ready in results[-1] for at in ready.values())
        assert given == sorted(at for stream in streams.values() for at in stream)
    assert all(result == results[0] for result in results)
    assert sum(len(one) == len(cameras) for one in results[0]) > 25


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
