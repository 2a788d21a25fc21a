"""What a tracker node tells about its work."""

import math

import numpy as np
from small_rig import seen_at

from longreach_markers.marker.detection import LOST, TRACKED
from longreach_markers.tracking.diagnostics import TrackingReport
from longreach_markers.tracking.frames import Estimate, RigFrame
from longreach_markers.tracking.image_sets import ImageSets

TOPICS = {'left': '/yard/left/image_raw', 'right': '/yard/right/image_raw'}
FRAME = 66_000_000  # [ns]


class Work:
    def __init__(self, topics=TOPICS):
        self.topics = topics
        self.pairs = ImageSets(tuple(topics), 0.02, 0.2)
        self.report = TrackingReport(self.pairs, topics, 0.02)

    def images(self, count, *cameras):
        for k in range(count):
            self.image(k * FRAME, *cameras)

    def image(self, stamp, *cameras):
        for camera in cameras or self.topics:
            self.report.add_image(camera, good=True)
            self.pairs.add(camera, stamp, np.zeros(1, np.uint8))

    def found(self, seen=None, **statuses):
        estimates = {name: Estimate(name, status, '') for name, status in statuses.items()}
        self.report.add_frame(RigFrame(0.0, 0.0, seen or {}, estimates), 0.002)

    def state(self, **options):
        return self.report.state(**{'silent': False} | options)


def test_all_is_well():
    work = Work()
    work.images(10, 'left', 'right')
    work.found(tip=TRACKED)
    assert work.state() == (True, 'tracking')
    assert work.report.unpaired == ''
    values = work.report.values()
    assert (values['paired'], values['left frames'], values['right bad']) == (10, 10, 0)
    assert (values['milliseconds_per_image'], values['tip']) == (2.0, 'TRACKED')
    # Times are those since the last report.
    again = work.report.values()
    assert math.isnan(again['milliseconds_per_image'])  # type: ignore[arg-type]


def test_markers_that_are_lost_and_bad_images_are_said():
    work = Work()
    work.report.add_image('right', good=False)
    work.found(tip=TRACKED, foot=TRACKED)
    assert work.state() == (False, 'tracking; 1 images were not valid')
    # Once.
    work.report.values()
    assert work.state() == (True, 'waiting for the next image')
    work.found(tip=TRACKED, foot=TRACKED)
    assert work.state() == (True, 'tracking')
    work.found(tip=LOST, foot=TRACKED)
    assert work.state() == (False, 'lost: tip')


def test_a_camera_that_sees_no_marker_is_said():
    work = Work()
    for k in range(30):
        assert work.report.silent == ''
        work.image(k * FRAME)
        seen = {'left': {'tip': seen_at(9.0, 9.0)}, 'right': {'tip': seen_at(9.0, 9.0, LOST)}}
        work.found(seen, tip=TRACKED)
    good, text = work.state()
    assert not good
    assert text.startswith('right tracks no marker in its latest 30 images, left does')
    values = work.report.values()
    assert (values['left sightings'], values['right sightings']) == (30, 0)
    # Both in the dark is the markers' fault.
    seen['left'] = seen['right']
    for _ in range(30):
        work.found(seen, tip=TRACKED)
    assert work.report.silent == ''


def test_images_that_cannot_be_used_are_not_missing():
    work = Work()
    work.report.add_image('left', good=False)
    is_good, text = work.state()
    assert not is_good
    topics = '/yard/left/image_raw, /yard/right/image_raw'
    assert text == f'no valid images on {topics}; 1 images were not valid'
    work.images(12, 'right')
    assert work.report.unpaired.startswith('no usable images on /yard/left/image_raw, 12 sets')


def test_stamps_that_stand_still_are_said():
    work = Work()
    work.images(1, 'left', 'right')
    work.found(tip=TRACKED)
    for _ in range(3):
        work.images(1, 'left', 'right')
    text = 'tracking; 6 images were not later than the previous one'
    assert work.state() == (False, text)
    work.images(12, 'right')
    assert work.report.unpaired.startswith('no usable images on /yard/left/image_raw')


def test_images_far_from_those_before_are_said_as_long_as_they_come():
    work = Work()
    for k in range(5):
        work.image(10_000_000_000 + k * FRAME)
    work.found(tip=TRACKED)
    assert work.state() == (True, 'tracking')
    for _ in range(3):
        work.report.values()
        for _ in range(4):
            work.image(0)
        text = 'no valid image; 8 images were far from the previous one'
        assert work.state() == (False, text)
    # Some are good again.
    work.found(tip=TRACKED)
    text = 'tracking; 8 images were far from the previous one'
    assert work.state() == (False, text)
    work.report.values()
    work.image(10_000_000_000 + 5 * FRAME)
    work.found(tip=TRACKED)
    assert work.state() == (True, 'tracking')


def test_images_that_came_but_were_not_tracked_are_no_tracking():
    work = Work()
    work.images(2, 'left', 'right')
    work.found(tip=TRACKED)
    work.report.values()
    work.image(2 * FRAME)
    assert work.state() == (False, 'no valid image')
    work.report.values()
    work.image(3 * FRAME, 'left')
    assert work.state() == (False, 'images wait for their partners')


def test_silence_and_what_is_waited_for_are_said():
    work = Work()
    silence = False, 'no images on /yard/left/image_raw, /yard/right/image_raw'
    assert work.state() == silence
    assert work.state(silent=True, waits='waits for 2') == (False, 'waits for 2')
    work.images(1, 'left', 'right')
    work.found(tip=TRACKED)
    assert work.state(waits='waits for 2') == (True, 'tracking')
    assert work.state(silent=True) == silence


def test_images_without_partners_are_said_with_topics_counts_and_gap():
    work = Work()
    for k in range(12):
        work.image(k * FRAME, 'left')
        work.image(k * FRAME + 30_000_000, 'right')
    text = work.report.unpaired
    assert '/yard/left/image_raw and /yard/right/image_raw' in text
    assert 'allowed: 0.02 s (tracking.gap of the rig)' in text
    assert 'stamps are +0.030000 s apart' in text


def test_clocks_that_differ_are_no_missing_camera():
    work = Work()
    said = []
    for k in range(30):
        work.image(k * FRAME, 'left')
        work.image(k * FRAME + 9_000_000_000_000, 'right')
        said.append(work.report.unpaired)
    assert all(text == '' or text.startswith('no pairs: ') for text in said)
    assert said[-1]


def test_a_third_camera_that_stops_is_said():
    work = Work({**TOPICS, 'top': '/yard/top/image_raw'})
    for k in range(40):
        work.image(k * FRAME, *(TOPICS if k >= 5 else ()))
        work.found(tip=TRACKED)
        assert k >= 5 or work.report.unpaired == ''
    text = 'no usable images on /yard/top/image_raw, '
    assert work.report.unpaired.startswith(text)
    assert work.report.unpaired.endswith(' sets of the other cameras: estimates do without it')
    good, told = work.state()
    assert not good
    assert told.startswith(text)
