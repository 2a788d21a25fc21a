"""Tracks, truth and images in bags; what is written here is what the node publishes."""

import contextlib
import dataclasses
import math

import cv2
import numpy as np
import pytest
from geometry_msgs.msg import Point, PoseWithCovarianceStamped, Vector3
from longreach_msgs.msg import MarkerEstimates, MarkerObservations, MarkerPositions
from rclpy.serialization import deserialize_message, serialize_message
from rosbags.rosbag2 import Reader, Writer
from sensor_msgs.msg import CompressedImage, JointState
from small_commands import small_path
from small_rig import NAMES, frame_at, seen_at
from std_msgs.msg import Header
from test_track_table import tracks_of

from longreach_dynamics.errors import InputError, LongreachError
from longreach_markers import BodyEstimate, Pose, image_to_gray
from longreach_node.frames import header_at
from longreach_node.stamps import stamp_of
from longreach_tools.bag import bag_typestore, open_bag
from longreach_tools.testing import contents, write_bag
from longreach_vision.io.bag_files import (
    BagImages,
    read_tracks,
    read_truth,
    writing_tracks,
)
from longreach_vision.io.track_table import row_of
from longreach_vision.ros.conversions import array_to_image

pytest.importorskip('rosbags.rosbag2')

BEGIN = 1_700_000_000_123_456_789
TOPICS = {name: f'/vision/{name}/image_raw' for name in ('left', 'right')}


def frames():
    """Frames and their stamps; the right image is 2 ms later, and missing once."""
    found = []
    for k, status in enumerate(('TRACKED', 'UNCERTAIN', 'LOST')):
        stamp = BEGIN + 66_666_667 * k
        stamps = {'left': stamp, 'right': stamp + 2_000_000}
        # As the tracker takes it: off by 200 ns, because of the size of the times.
        gap = stamps['right'] * 1e-9 - stamp * 1e-9
        frame = frame_at(stamp * 1e-9, status, gap=gap)
        if k == 2:
            del frame.observations['right'], stamps['right']
            object.__setattr__(frame, 'gap', math.nan)
        found.append((frame, stamps))
    return found


def written(path):
    with writing_tracks(path, frame_id='boom_base') as write:
        for frame, stamps in frames():
            write(frame, stamps)
    return path


def test_other_programs_can_read_it(tmp_path):
    pose = Pose(np.eye(3), np.array([1.0, 2.0, 3.0]), 1e-6 * np.eye(6))
    known, unknown = BodyEstimate('tip', '', pose=pose), BodyEstimate('tip', 'hidden')
    with writing_tracks(tmp_path / 'bag', frame_id='boom_base', bodies=['tip']) as write:
        for body, (frame, stamps) in zip((known, unknown, known), frames(), strict=True):
            write(dataclasses.replace(frame, bodies={'tip': body}), stamps)
    with open_bag(tmp_path / 'bag') as bag:
        assert not bag.problem
        for topic in bag.topics.values():
            # Players take theirs.
            assert not topic.qos
    with Reader(tmp_path / 'bag') as bag:
        assert all(connection.digest.startswith('RIHS01_') for connection in bag.connections)
    found = contents(tmp_path / 'bag')
    kinds = {'observations': MarkerObservations, 'markers': MarkerEstimates}
    kinds['tip/pose'] = PoseWithCovarianceStamped
    told = {
        name: [
            (time, deserialize_message(data, kind).header)
            for time, data in found[f'/vision/{name}']
        ]
        for name, kind in kinds.items()
    }
    lefts = [BEGIN + 66_666_667 * k for k in range(3)]
    assert [time for time, _ in told['markers']] == lefts
    assert [time for time, _ in told['tip/pose']] == [lefts[0], lefts[2]]
    assert {one.frame_id for _, one in told['markers'] + told['tip/pose']} == {'boom_base'}
    assert [(time - BEGIN, one.frame_id) for time, one in told['observations'][:2]] == [
        (0, 'vision/left_camera_optical'),
        (2_000_000, 'vision/right_camera_optical'),
    ]
    assert all(stamp_of(time) == one.stamp for rows in told.values() for time, one in rows)


def test_tracks_and_reasons_come_back(tmp_path):
    tracks = read_tracks(written(tmp_path / 'bag'))
    expected = tracks_of(*(frame for frame, _ in frames()))
    assert (tracks.names, tracks.columns) == (NAMES, expected.columns)
    for k, column in enumerate(tracks.columns):
        np.testing.assert_array_equal(tracks.table[:, k], expected.table[:, k], err_msg=column)
    assert tracks.reasons == {
        name: [frame.estimates[name].reason for frame, _ in frames()] for name in NAMES
    }
    assert tracks.why_not('two') == [('why not', 2)]


def test_the_right_image_is_that_of_the_pair(tmp_path):
    # Images of the right camera 40 ms after the left ones, and 20 ms before the next.
    pairs = []
    with writing_tracks(tmp_path / 'bag') as write:
        for k in range(4):
            frame = frame_at(0.06 * k, gap=0.04)
            frame.observations['right']['one'] = seen_at(50.0 + k, 60.0)
            stamp = 60_000_000 * k
            write(frame, {'left': stamp, 'right': stamp + 40_000_000})
            pairs.append(row_of(frame, NAMES))
    tracks = read_tracks(tmp_path / 'bag')
    np.testing.assert_allclose(tracks.table, pairs, rtol=0.0, atol=1e-15)
    np.testing.assert_array_equal(tracks.column('one', 'right_u'), [50.0, 51.0, 52.0, 53.0])


def test_a_disk_that_refuses_leaves_no_half_of_a_bag(monkeypatch, tmp_path):
    def full(*_):
        raise OSError(28, 'No space left on device')

    for method in ('write', 'close'):
        with monkeypatch.context() as patch:
            patch.setattr(f'rosbags.rosbag2.Writer.{method}', full)
            text = r'bag cannot be written: .*No space left on device; make room$'
            with pytest.raises(LongreachError, match=text):
                written(tmp_path / 'bag')
        assert not list(tmp_path.iterdir())
    with contextlib.suppress(ValueError), writing_tracks(tmp_path / 'bag') as write:
        write(*frames()[0])
        raise ValueError
    assert not list(tmp_path.iterdir())


def test_bags_that_cannot_be_written_or_hold_no_tracks(tmp_path):
    written(tmp_path / 'bag')
    for name, namespace, text in (
        ('bag', 'vision', 'is not empty'),
        ('other', 'my ns', "topic name '/my ns/observations'; allowed"),
    ):
        with pytest.raises(InputError, match=text), writing_tracks(tmp_path / name, namespace):
            pass
    assert not (tmp_path / 'other').exists()
    with pytest.raises(InputError, match='/other/markers'):
        read_tracks(tmp_path / 'bag', 'other')
    with pytest.raises(InputError, match='nowhere'):
        read_tracks(tmp_path / 'nowhere')
    # A late image is no new position.
    with writing_tracks(tmp_path / 'empty') as write:
        write(frame_at(0.0), {'left': 0, 'right': 0}, late=True)
    assert len(contents(tmp_path / 'empty')['/vision/observations']) == 2
    with pytest.raises(InputError, match=r'no message on /vision/markers; was it tracked\?'):
        read_tracks(tmp_path / 'empty')


# --- the truth -------------------------------------------------------------------------------


def truth_message(stamp, names, positions, velocities):
    """Return positions (n, 3) [m] and velocities of markers as the plant tells them at [ns]."""
    return MarkerPositions(
        header=Header(stamp=stamp_of(stamp), frame_id='boom_base'),
        name=list(names),
        position=[Point(x=x, y=y, z=z) for x, y, z in positions.tolist()],
        velocity=[Vector3(x=x, y=y, z=z) for x, y, z in velocities.tolist()],
    )


def truth_rows(times):
    path, stamps = small_path(0.5), [round(time * 1e9) for time in times]
    return [
        ('marker_truth', stamp, truth_message(stamp, NAMES, *path.at(time)))
        for stamp, time in zip(stamps, times, strict=True)
    ]


def test_the_truth_of_a_bag(tmp_path):
    times = np.linspace(0.0, 0.5, 26)
    bag = write_bag(tmp_path / 'bag', 'boom', truth_rows(times))
    found, path = read_truth(bag), small_path(0.5)
    assert found.names == NAMES
    np.testing.assert_allclose(found.times, times, atol=1e-12)
    for time in (0.0, 0.13, 0.5):
        for told, true in zip(found.at(time), path.at(time), strict=True):
            np.testing.assert_allclose(told, true, atol=2e-3)
    for told, true in zip(found.at(0.2), path.at(0.2), strict=True):
        np.testing.assert_array_equal(told, true)


def test_truths_that_are_none(tmp_path):
    def refused(name, rows, text, topic=''):
        with pytest.raises(InputError, match=text):
            read_truth(write_bag(tmp_path / name, 'boom', rows), topic)

    rows = truth_rows([0.0, 0.1, 0.2])
    refused('bag', rows, '/crane/marker_truth', '/crane/marker_truth')
    two = [(name, k, message) for k, (_, _, message) in enumerate(rows) for name in ('a', 'b')]
    refused('two', two, r'MarkerPositions: /boom/a, /boom/b, allowed: one')
    assert read_truth(tmp_path / 'two', '/boom/b').names == NAMES
    # The bag's own times go on, those of the messages do not.
    late = [(name, k, message) for k, (name, _, message) in enumerate(rows[::-1])]
    refused('reset', late, 'time on /boom/marker_truth goes back')
    rows[1][2].position = rows[1][2].position[:1]
    refused('short', rows, r'short: /boom/marker_truth: .* 2 names, 1 positions')
    empty = [('marker_truth', 0, MarkerPositions(header=Header()))]
    refused('empty', empty, r'empty: /boom/marker_truth: .*no markers')
    rows[1][2].name = ['one', 'three']
    refused('other', rows, r'markers one, three after one, two')
    state = JointState(header=Header(), name=['a'], position=[1.0])
    text = 'has sensor_msgs/msg/JointState, allowed: longreach_msgs/msg/MarkerPositions'
    refused('joints', [('truth', 0, state)], text, '/boom/truth')


# --- images ----------------------------------------------------------------------------------


def image_message(pixels, encoding, stamp):
    return array_to_image(pixels, encoding, header_at(stamp, 'camera'))


def test_images_of_a_bag(tmp_path):
    rng = np.random.default_rng(3)
    grey = rng.integers(0, 256, (6, 8), dtype=np.uint8)
    colour = rng.integers(0, 256, (6, 8, 3), dtype=np.uint8)
    deep = rng.integers(0, 4096, (6, 8), dtype=np.uint16)
    rows = [
        ('left/image_raw', 5, image_message(grey, 'mono8', BEGIN)),
        ('right/image_raw', 6, image_message(colour, 'bgr8', BEGIN + 1)),
        ('left/image_raw', 7, image_message(deep, 'mono16', BEGIN + 2)),
    ]
    bag = write_bag(tmp_path / 'bag', 'vision', rows)
    found = list(BagImages(bag, TOPICS))
    assert [(p.camera, p.stamp) for p in found] == [
        ('left', BEGIN),
        ('right', BEGIN + 1),
        ('left', BEGIN + 2),
    ]
    for picture, (_, _, message) in zip(found, rows, strict=True):
        np.testing.assert_array_equal(picture.image, image_to_gray(message, 12))
    assert 'image 1 on /vision/left/image_raw' in found[2].name
    assert [p.camera for p in BagImages(bag, {'right': TOPICS['right']})] == ['right']


def packed_message(pixels, stamp, cut=None):
    message = CompressedImage(format='mono8; jpeg compressed mono8')
    message.header.stamp = stamp_of(stamp)
    quality = cv2.IMWRITE_JPEG_QUALITY, 100
    message.data.frombytes(cv2.imencode('.jpg', pixels, quality)[1][:cut])
    return message


def test_compressed_images_of_a_bag_are_read_where_raw_ones_are_missing(tmp_path):
    grey = np.full((40, 60), 90, np.uint8)
    rows = [
        ('left/image_raw/compressed', 0, packed_message(grey, BEGIN)),
        ('left/image_raw/compressed', 1, packed_message(grey + 9, BEGIN + 1, cut=300)),
        ('left/image_raw/compressed', 2, packed_message(grey + 20, BEGIN + 2)),
        # Raw images are better than compressed ones.
        ('right/image_raw/compressed', 0, packed_message(grey, BEGIN)),
        ('right/image_raw', 0, image_message(grey + 1, 'mono8', BEGIN)),
    ]
    bag = write_bag(tmp_path / 'bag', 'vision', rows)
    images = BagImages(bag, TOPICS)
    found = [(p.camera, p.stamp - BEGIN, int(p.image[5, 5])) for p in images]
    assert sorted(found) == [('left', 0, 90), ('left', 2, 110), ('right', 0, 91)]
    (note,) = images.notes
    assert note.startswith(f'1 of 4 images of {bag} cannot be decoded')
    assert 'image 1 on /vision/left/image_raw/compressed: image is truncated after 300' in note


def test_a_topic_without_messages_does_not_hide_compressed_images(tmp_path):
    message, store = packed_message(np.full((40, 60), 90, np.uint8), BEGIN), bag_typestore()
    with Writer(tmp_path / 'bag', version=9) as writer:
        for topic in TOPICS.values():
            writer.add_connection(topic, 'sensor_msgs/msg/Image', typestore=store)
        kind = 'sensor_msgs/msg/CompressedImage'
        left = writer.add_connection(f'{TOPICS["left"]}/compressed', kind, typestore=store)
        writer.write(left, 0, serialize_message(message))
    assert [p.camera for p in BagImages(tmp_path / 'bag', TOPICS)] == ['left']


def test_images_that_cannot_be_used(tmp_path):
    grey = np.full((40, 60), 90, np.uint8)
    cut = [('left/image_raw/compressed', k, packed_message(grey, k, cut=99)) for k in range(2)]
    damaged = write_bag(tmp_path / 'damaged', 'vision', cut)
    with pytest.raises(InputError, match=r'image 0 on /vision/left/.*compressed: .* trunc'):
        list(BagImages(damaged, {'left': '/vision/left/image_raw'}))
    good = image_message(np.zeros((6, 8), np.uint8), 'mono8', 0)
    short = image_message(np.zeros((6, 8), np.uint8), 'mono8', 1)
    short.height = 60
    rows = [('left/image_raw', 0, good), ('left/image_raw', 1, short)]
    bag = write_bag(tmp_path / 'bag', 'vision', [*rows, *truth_rows([0.0])])
    images = iter(BagImages(bag, {'left': '/vision/left/image_raw'}))
    assert next(images).image.shape == (6, 8)
    with pytest.raises(InputError, match=r'image 1 on /vision/left/image_raw: .* truncated'):
        next(images)
    with pytest.raises(InputError, match=r'has longreach_msgs/msg/MarkerPositions, allowed: sens'):
        list(BagImages(bag, {'left': '/vision/marker_truth'}))
    with pytest.raises(InputError, match='/vision/right/image_raw'):
        list(BagImages(bag, {'right': '/vision/right/image_raw'}))
