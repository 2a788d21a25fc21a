"""The tracker as a node publishes what the library finds, and bad input does not end it."""

import array
import dataclasses
import itertools
import math
from contextlib import ExitStack
from types import SimpleNamespace

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped
from longreach_msgs.msg import (
    MarkerEstimate,
    MarkerEstimates,
    MarkerObservation,
    MarkerObservations,
    MarkerPositions,
)
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from sensor_msgs.msg import Image
from small_commands import only, with_camera
from std_msgs.msg import Header
from test_bag_files import packed_message, truth_message
from tracker_scene import (
    CAMERA,
    NAMES,
    NANOSECONDS,
    PERIOD,
    SIDES,
    Tracker,
    by_library,
    motion,
    rig,
    shots,
    stamped_late,
    with_rig,
)
from visualization_msgs.msg import MarkerArray

from longreach_dynamics.errors import InputError
from longreach_markers import (
    Body,
    MarkerOnBody,
    MarkerOnRig,
    MountedCamera,
    Pose,
    Rig,
    TrackingParameters,
)
from longreach_node import diagnostics, qos
from longreach_node.frames import Transforms
from longreach_node.stamps import nanoseconds_of
from longreach_node.testing import bench
from longreach_vision.ros.camera_node import CameraNode, SimulatedNode
from longreach_vision.ros.tracker_node import TrackerNode
from longreach_vision.ros.tracker_publishers import _Drawing


@pytest.fixture
def start(tmp_path, capfd, monkeypatch):
    # Most tests wait for a report.
    monkeypatch.setattr('longreach_vision.ros.vision_node.PERIOD', 0.2)
    with ExitStack() as stack:

        def make(own=None, **parameters):
            sides = tuple((own or rig()).cameras)
            found = stack.enter_context(bench(*with_rig(tmp_path, '', own, **parameters)))
            compressed = parameters.get('transport') == 'compressed'
            return Tracker(found, capfd, sides, compressed)

        yield make


# --- tracks ----------------------------------------------------------------------------------


@pytest.mark.parametrize('how', ['lossless', 'lossy', 'not synchronous', 'with a delay'])
def test_tracks_are_those_of_the_library(start, tmp_path, how):
    own, taken = rig(), shots(8, skew=7_000_000 if how == 'not synchronous' else 0)
    sent = taken
    if how == 'with a delay':
        own = with_camera(own, 'right', delay=0.015)
        sent = stamped_late(taken)
    tracker = start(own, lossless='false' if how == 'lossy' else 'true')
    tracker.says(
        'tracks base, tip in /left/image_raw, /right/image_raw; results on /observations, /markers'
    )
    tracker.send(sent)
    tracker.heard(8)
    tracker.bench.until(lambda: len(tracker.observations) == 16)
    status = tracker.reported(paired=8, left_frames=8, right_bad=0, tip='TRACKED').level
    assert status == diagnostics.OK
    observed, estimated = by_library(taken, tmp_path)
    if how != 'with a delay':
        assert tracker.observations == observed
    assert str(tracker.markers) == str(estimated)
    gap = 7e-3 if how == 'not synchronous' else 0.0
    assert [message.stamp_gap for message in tracker.markers] == [pytest.approx(gap)] * 8
    tracker.are_at(tracker.markers[4:], 1e-3)
    tracker.says('left/image_raw: 320 x 240, mono8')


def test_compressed_images_are_tracked_and_damaged_ones_counted(start):
    tracker = start(transport='compressed', lossless='true')
    for shot in shots(6):
        is_cut = shot.camera == 'left' and shot.stamp == 2 * PERIOD
        message = packed_message(shot.image, shot.stamp, 1000 if is_cut else None)
        tracker.send_message(shot.camera, message)
    tracker.heard(6)
    tracker.says('left/image_raw/compressed', 'image is truncated after 1000 bytes')
    tracker.says('left/image_raw/compressed: 320 x 240, mono8; jpeg compressed mono8')
    tracker.reported(left_frames=5, left_bad=1, right_frames=6, right_bad=0)
    tracker.are_at(tracker.markers, 2e-3)


# --- rigid bodies and transforms --------------------------------------------------------------

PLACES = np.array([[-1.0, 0.0, 0.5], [1.0, 0.0, 0.8], [0.2, 0.0, 1.9]])


def rig_with_body():
    markers = tuple(
        MarkerOnRig(name, 0.25, position=tuple(place.tolist()))
        for name, place in zip('abc', PLACES, strict=True)
    )
    on_body = tuple(
        MarkerOnBody(name, tuple((place - PLACES[0]).tolist()))
        for name, place in zip('abc', PLACES, strict=True)
    )
    return dataclasses.replace(rig(), markers=markers, bodies=(Body('boom_tip', on_body),))


def test_poses_of_bodies_and_transforms(start, monkeypatch):
    held, sent = [], []
    monkeypatch.setattr(Transforms, 'hold', lambda _, given: held.append(given))
    monkeypatch.setattr(Transforms, 'send', lambda _, given: sent.append(given))
    tracker = start(rig_with_body(), frame_id='site', frame_prefix='north/', lossless='true')
    poses = tracker.bench.listen(PoseWithCovarianceStamped, 'boom_tip/pose')
    taken = shots(6, own=rig_with_body(), motion=lambda _: (PLACES, 0.0 * PLACES))
    # One marker is hidden in the last two pairs.
    for shot in taken[8:]:
        mounted = rig_with_body().cameras[shot.camera]
        u, v = CAMERA.project(mounted.pose.to_camera(PLACES[2])).astype(int)
        shot.image[v - 20 : v + 20, u - 20 : u + 20] = 90
    tracker.send(taken)
    tracker.heard(6)
    assert [nanoseconds_of(one.header.stamp) for one in poses] == [k * PERIOD for k in range(4)]
    pose = poses[-1].pose.pose
    found = [pose.position.x, pose.position.y, pose.position.z]
    assert np.abs(found - PLACES[0]).max() < 3e-3
    assert abs(pose.orientation.w - 1.0) < 1e-5
    assert np.all(np.diag(poses[-1].pose.covariance.reshape(6, 6)) > 0.0)
    reason = '2 of 3 markers tracked, required: 3; not tracked: c'
    assert tracker.reported(paired=6, boom_tip=reason).level == diagnostics.WARN
    (cameras,) = held
    # As in the headers of the images.
    assert [(one.header.frame_id, one.child_frame_id) for one in cameras] == [
        ('site', 'left_camera_optical'),
        ('site', 'right_camera_optical'),
    ]
    # Their poses are told to who comes late, too.
    late = tracker.bench.listen(PoseStamped, 'right/pose', qos.VISUAL)
    tracker.bench.until(lambda: late, 'pose of right')
    assert late[0].header.frame_id == 'site'
    expected = rig_with_body().cameras['right'].pose
    placed, told = late[0].pose, cameras[1].transform
    for at, turn in ((placed.position, placed.orientation), (told.translation, told.rotation)):
        again = Pose.from_quaternion((turn.x, turn.y, turn.z, turn.w), (at.x, at.y, at.z))
        np.testing.assert_allclose(again.matrix, expected.matrix, atol=1e-8)
    children = [[one.child_frame_id for one in transforms] for transforms in sent]
    assert children[0] == ['north/boom_tip', 'north/a', 'north/b', 'north/c']
    # A marker that is lost, and the body without it, have none.
    assert children[-1] == ['north/a', 'north/b']
    assert nanoseconds_of(sent[-1][0].header.stamp) == 5 * PERIOD
    place = sent[-1][1].transform.translation
    assert np.abs(np.array([place.x, place.y, place.z]) - PLACES[1]).max() < 5e-3


@pytest.mark.parametrize(
    ('given', 'used', 'text'),
    [
        (('cam_left', 'cam_right'), ('cam_left', 'cam_right'), ''),
        (('any', 'any'), ('any', 'right_camera_optical'), "'any' is also that of /left/image_raw"),
        (('world', ''), ('left_camera_optical', 'right_camera_optical'), 'that of the world'),
    ],
)
def test_each_camera_has_a_frame(start, monkeypatch, given, used, text):
    """Also one whose first image comes late, and where drivers give the same frame to several."""
    held = []
    monkeypatch.setattr(Transforms, 'hold', lambda _, sent: held.append(sent))
    tracker = start(lossless='true', timeout=0.1)
    for shot in shots(4, sides=SIDES[:1]) + shots(3, first=4):
        message = shot.message()
        message.header.frame_id = given[SIDES.index(shot.camera)]
        tracker.send_message(shot.camera, message)
    tracker.bench.until(lambda: len(tracker.observations) >= 8)
    assert [[one.child_frame_id for one in sent] for sent in held] == [[used[0]], [*used]]
    found = {one.camera: one.header.frame_id for one in tracker.observations}
    assert found == dict(zip(SIDES, used, strict=True))
    if text:
        tracker.says('/image_raw: frame_id', text)


# --- parameters at run time -------------------------------------------------------------------


def set_parameter(tracker, name, value):
    request = SetParameters.Request(parameters=[Parameter(name, value=value).to_parameter_msg()])
    return tracker.bench.call(SetParameters, 'tracker/set_parameters', request).results[0]


def test_parameters_are_those_of_the_rig_and_changed_while_it_tracks(start):
    own = rig(tracking=TrackingParameters(gate=4.0, window=50.0))
    tracker = start(own, window=60.0, lossless='true')
    value = tracker.node.get_parameter
    assert (value('gate').value, value('window').value) == (4.0, 60.0)
    taken = shots(8, skew=7_000_000)
    tracker.send(taken[:8])
    tracker.heard(4)
    assert all(math.isfinite(one.stamp_gap) for one in tracker.markers)
    assert set_parameter(tracker, 'gap', 0.005).successful
    tracker.send(taken[8:])
    tracker.heard(11)
    # Images 7 ms apart are no pairs any more; tracks go on.
    assert all(math.isnan(one.stamp_gap) for one in tracker.markers[4:])
    assert all(one.status == 0 for message in tracker.markers[4:] for one in message.estimates)
    assert set_parameter(tracker, 'acceleration', 900.0).successful
    assert value('acceleration').value == 900.0
    answer = set_parameter(tracker, 'least_window', 80.0)
    assert answer.reason == 'least_window = 80 px, allowed: at most window = 60 px'
    assert (answer.successful, value('least_window').value) == (False, own.tracking.least_window)


def test_the_limit_of_the_latency_is_changed_while_it_tracks(start):
    tracker = start(latency=60.0)
    # All images are of the past.
    now = tracker.node.get_clock().now().nanoseconds - NANOSECONDS
    taken = [shot._replace(stamp=shot.stamp + now) for shot in shots(5)]
    tracker.send(taken[:6])
    assert tracker.reported(paired=3).message == 'tracking'
    assert set_parameter(tracker, 'latency', 1e-9).successful
    tracker.send(taken[6:])
    tracker.warns('late, allowed: 1e-09 s')


def test_an_offset_of_the_clocks_is_reported(start, monkeypatch):
    monkeypatch.setattr('longreach_markers.tracking.pose_agreement._ROUND', 0.0)
    # The images end before the clocks are judged.
    monkeypatch.setattr('longreach_vision.ros.tracker_node._SILENCE', 60.0)
    monkeypatch.setattr(Transforms, '__init__', pytest.fail)
    tracker = start(lossless='true', publish_tf='false')
    tracker.send(stamped_late(shots(24)))
    tracker.heard(24)
    assert 'of tip are wrong by up to' in tracker.says('stamps of right', 'longreach vision sync')
    values = {pair.key: pair.value for pair in tracker.warns('stamps of right').values}
    assert float(values['clock_offset']) == pytest.approx(0.015, abs=1e-3)


@pytest.mark.parametrize('sides', [SIDES, ('right',)])
def test_a_last_image_does_not_wait_for_another_camera(start, sides):
    tracker = start(only(rig(), *sides), lossless='true')
    tracker.send([*shots(2, sides=sides), *shots(1, first=2, sides=sides[:1])])
    tracker.heard(3)
    bit = {'left': MarkerEstimate.LEFT, 'right': MarkerEstimate.RIGHT}[sides[0]]
    assert {one.cameras for one in tracker.markers[-1].estimates} == {bit}
    if sides != SIDES:
        assert tracker.reported(right_frames=3, tip='TRACKED').level == diagnostics.OK


# --- images that cannot be used --------------------------------------------------------------


def misdated(count, stamps, **given):
    taken = enumerate(shots(count, **given))
    return [shot._replace(stamp=stamps.get(k, shot.stamp)) for k, shot in taken]


ZEROS = dict.fromkeys(range(10), 0)
KEPT, LEFT_OUT = {'left_dropped': 0, 'left_misdated': 0}, {'left_misdated': 1, 'left_bad': 0}


@pytest.mark.parametrize(
    ('taken', 'text', 'values'),
    [
        (lambda: shots(2, first=100) + shots(3), 'time went back to 0.0', {}),
        (lambda: shots(3) + shots(2, first=100), 'time jumped ahead to 6.', KEPT),
        (lambda: misdated(8, {6: 2 * 10**10}, first=100), 'far from the previous one', LEFT_OUT),
        (lambda: misdated(10, ZEROS, sides=('left',)), 'image of 0.000 s, allowed: after', {}),
    ],
)
def test_stamps_that_are_wrong_are_said(start, taken, text, values):
    tracker = start(lossless='true')
    tracker.send(taken())
    tracker.says('/left/image_raw' if 'back' not in text else text, text)
    tracker.reported(**values)


@pytest.mark.parametrize(
    ('changes', 'text'),
    [
        ({'encoding': 'yuv_of_mars'}, "encoding = 'yuv_of_mars', allowed: mono8"),
        (
            {'header': Header(stamp=Time(nanosec=15 * 10**8))},
            'sec = 0 and nanosec = 1500000000, al',
        ),
        ({'height': 120, 'data': array.array('B', bytes(38_400))}, '120 px, allowed by the rig'),
    ],
)
def test_a_bad_image_is_counted_and_survived(start, changes, text):
    tracker = start(lossless='true')
    for k, shot in enumerate(shots(6)):
        message = shot.message()
        for name, value in changes.items() if k == 5 else ():
            setattr(message, name, value)
        tracker.send_message(shot.camera, message)
    tracker.heard(6)
    tracker.says('/right/image_raw', text)
    cameras = [message.estimates[0].cameras for message in tracker.markers]
    assert cameras == [3, 3, 1, 3, 3, 3]
    tracker.reported(right_bad=1, right_frames=5, left_bad=0)
    tracker.warns('1 images were not valid')
    # It is over.
    del tracker.reports[:]
    tracker.warns('waiting for the next image', diagnostics.OK)


def test_three_cameras(start, monkeypatch):
    own, sides = rig(), (*SIDES, 'top')
    top = MountedCamera(CAMERA, Pose.from_look_at((0.3, -8.5, 4.0), (0.0, 0.0, 1.0)))
    own = dataclasses.replace(own, cameras={**own.cameras, 'top': top})
    # Clocks and poses are judged at once.
    monkeypatch.setattr('longreach_markers.tracking.pose_agreement._ROUND', 0.0)
    tracker = start(own, lossless='true')
    taken = shots(26, sides=sides, own=own)
    tracker.send([one for one in taken if one.camera != 'top' or one.stamp < 4 * PERIOD])
    tracker.heard(16)
    for one in tracker.markers[0].estimates:
        # Bits in the order of the rig.
        assert (one.status, one.cameras) == (0, 7)
    place = tracker.markers[0].estimates[0].triangulated
    assert math.dist((place.x, place.y, place.z), (-1.5, 0.0, 0.5)) < 3e-3
    assert {one.camera for one in tracker.observations} == set(sides)
    # A camera that stops is told although the others go on.
    tracker.says('no usable images on /top/image_raw', 'estimates do without it')
    assert tracker.markers[-1].estimates[0].cameras == 3


# --- initialisation --------------------------------------------------------------------------


def test_a_marker_is_initialised_where_somebody_has_seen_it(start):
    own = rig()
    mounted = own.cameras['left']
    at = mounted.camera.project(mounted.pose.to_camera(motion(0.0)[0][1]))
    # The rig says nothing of where the tip is, and too little for a search.
    lost = (own.markers[0], own.markers[1].replace(position=(-0.5, 0.0, 2.0)))
    tracker = start(Rig(own.cameras, own.plane, lost), lossless='true')
    early = tracker.initialize('left', 'tip', *at, 11.0)
    assert not early.success
    assert 'no image on /left/image_raw yet' in early.message
    tracker.send(shots(2))
    tracker.heard(2)
    assert tracker.markers[-1].estimates[1].status == MarkerEstimate.LEFT * 2
    for camera, name, u, text in (
        ('middle', 'tip', 60.0, "camera = 'middle', allowed: left | right"),
        ('left', 'nose', 60.0, "name = 'nose', allowed: base | tip"),
        ('left', 'tip', 60.0, 'the previous track is kept'),
        ('left', 'tip', 6000.0, 'outside the image'),
    ):
        refused = tracker.initialize(camera, name, u, 40.0, 11.0)
        assert not refused.success
        assert text in refused.message
        assert refused.observation.status == MarkerObservation.LOST
    done = tracker.initialize('left', 'tip', at[0] + 3.0, at[1] - 2.0, 10.0)
    assert done.success, done.message
    assert done.observation.name == 'tip'
    tracker.send(shots(2, first=2))
    tracker.heard(4)
    # What is refused keeps the track.
    assert not tracker.initialize('left', 'tip', 60.0, 40.0, 11.0).success
    tracker.send(shots(2, first=4))
    tracker.heard(6)
    assert [message.estimates[1].status for message in tracker.markers[2:]] == [0] * 4


# --- what is looked at -----------------------------------------------------------------------


@pytest.mark.parametrize(('images', 'rate'), [(15.0, 5.0), (15.0, 10.0), (10.0, 10.0), (5.0, 9.0)])
def test_the_rate_of_what_is_looked_at_is_that_of_the_parameter(images, rate):
    drawing = _Drawing(SimpleNamespace(get_subscription_count=lambda: 1))
    for begin in (1.78e9, 0.0):
        # Time goes back in between.
        stamps = [round(1e9 * (begin + k / images)) for k in range(600)]
        drawn = sum(drawing.is_due(1e-9 * stamp, rate) for stamp in stamps)
        assert drawn == pytest.approx(600.0 * min(rate / images, 1.0), abs=2.0)


def test_overlay_and_shapes_are_there_for_those_who_look(start):
    tracker = start(lossless='true', overlay_width=320, overlay_rate=1000.0)
    tracker.send(shots(1))
    tracker.heard(1)
    overlays = tracker.bench.listen(Image, 'overlay', qos.IMAGES)
    shapes = tracker.bench.listen(MarkerArray, 'marker_shapes', qos.STREAM)
    first = itertools.count(1)

    def looked():
        tracker.send(shots(1, first=next(first)))
        return bool(overlays and shapes)

    # Publisher and subscription find each other when they do: what comes before is not seen.
    tracker.bench.until(looked, 'overlay')
    del overlays[:], shapes[:]
    tracker.send(shots(2, first=next(first)))
    tracker.bench.until(lambda: len(overlays) >= 2 and shapes, 'two overlays')
    picture = np.frombuffer(overlays[0].data, np.uint8).reshape(120, 320, 3)
    assert overlays[0].encoding == 'bgr8'
    # As large while a camera is missing.
    del overlays[:]
    tracker.send(shots(12, first=next(first) + 1, sides=('left',)))
    tracker.bench.until(lambda: overlays)
    assert (overlays[-1].height, overlays[-1].width) == (120, 320)
    # Something in colour was drawn over the grey images.
    assert (np.ptp(picture.astype(int), axis=2) > 60).sum() > 50
    assert [shape.ns.partition('/')[0] for shape in shapes[0].markers[::2]] == [*NAMES]
    assert shapes[0].markers[0].header.frame_id == 'world'


# --- start -----------------------------------------------------------------------------------


def test_images_are_asked_for_when_recorders_listen(tmp_path):
    with bench(*with_rig(tmp_path, recorders=1)) as b:
        b.add(TrackerNode)
        reports = b.listen(DiagnosticArray, '/diagnostics', qos.DIAGNOSTICS)
        b.until(lambda: reports)
        text = 'waiting for 1 subscribers on /observations and /markers'
        assert reports[-1].status[0].message == text
        assert b.driver.count_subscribers('left/image_raw') == 0
        b.listen(MarkerObservations, 'observations')
        b.listen(MarkerEstimates, 'markers')
        b.until(lambda: b.driver.count_subscribers('left/image_raw') == 1, 'subscription')


@pytest.mark.parametrize(
    ('parameters', 'match'),
    [
        ({'rig': 'nowhere.yaml'}, 'nowhere.yaml cannot be read'),
        # A given pixel is too small then.
        ({'scale': 0.5}, r'scale = 0\.5: .* radius 3\.5 px'),
        ({'frame_id': '/'}, "frame_id = '/', allowed: the name of a frame"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, parameters, match):
    own = rig()
    small = (own.markers[0].replace(left=(92.0, 140.0, 7.0)), own.markers[1])
    told = with_rig(tmp_path, '', dataclasses.replace(own, markers=small), **parameters)
    with bench(*told) as b, pytest.raises(InputError, match=match):
        b.add(TrackerNode)


# --- in one process --------------------------------------------------------------------------


def test_in_one_process_it_is_the_same(tmp_path):
    shown = {'duration': 0.45, 'frame_rate': 20.0, 'real_time_factor': 0.0, 'lossless': 'true'}
    found = []
    for kinds, told in (
        ((SimulatedNode,), with_rig(tmp_path, 'simulated', **shown, recorders=1)),
        (
            (TrackerNode, CameraNode),
            with_rig(tmp_path, 'camera', **shown, listeners=1)
            + with_rig(tmp_path, 'tracker', lossless='true', recorders=1),
        ),
    ):
        with bench(*told) as b:
            b.listen(MarkerObservations, 'observations')
            markers = b.listen(MarkerEstimates, 'markers')
            nodes = [b.add(kind) for kind in kinds]
            publisher = b.publisher(MarkerPositions, 'marker_truth')
            for k in range(46):
                publisher.publish(truth_message(k * 10_000_000, NAMES, *motion(0.01 * k)))
            b.until(nodes[-1].done.done, 'the end')
            b.until(lambda markers=markers: len(markers) >= 10, 'all pairs')
            found.append(str(markers))
    assert found[0] == found[1]
    assert "status=0, reason='', cameras=3" in found[0]


def test_a_lossless_queue_is_bounded_in_bytes(start):
    large = CAMERA.replace(width=4000, height=3000, cx=1999.5, cy=1499.5)
    node = start(with_camera(rig(), 'left', camera=large), lossless='true').node
    # 250 MB of 12 megapixels.
    assert (node._profile('left').depth, node._profile('right').depth) == (20, 50)
