"""
Simulated cameras as a node, fed with the truth.

What it must publish is said by the library: pictures of the same motion, times and seed.
"""

import contextlib
import functools
from collections.abc import Callable

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from longreach_msgs.msg import MarkerPositions
from sensor_msgs.msg import CameraInfo, Image
from test_bag_files import truth_message
from tracker_scene import CAMERA, NAMES, rig

from longreach_dynamics.errors import InputError
from longreach_markers import image_to_gray
from longreach_node import diagnostics, qos
from longreach_node.stamps import nanoseconds_of
from longreach_node.testing import bench, setting
from longreach_vision.ros import camera_node
from longreach_vision.ros.camera_node import CameraNode
from longreach_vision.ros.conversions import camera_to_info
from longreach_vision.simulator.camera_simulator import drawn_pictures, simulators_of
from longreach_vision.simulator.marker_path import MarkerPath, markers_from_message
from longreach_vision.simulator.scene import CameraLook

SAMPLE = 5_000_000  # [ns]
LOOK = CameraLook(clutter=4)


def motion(times):
    t = np.asarray(times, dtype=float)
    places, rates = np.zeros((2, *t.shape, 2, 3))
    places[..., 0, 2] = 0.5
    places[..., 1, 0] = 0.4 * np.sin(3.0 * t)
    places[..., 1, 2] = 1.2 + 0.3 * np.cos(2.0 * t)
    rates[..., 1, 0] = 1.2 * np.cos(3.0 * t)
    rates[..., 1, 2] = -0.6 * np.sin(2.0 * t)
    return places, rates


def truth(k, names=NAMES):
    return truth_message(k * SAMPLE, names, *motion(k * SAMPLE / 1e9))


def expected(times):
    knots = np.arange(0.0, 3.0, 0.005)
    path = MarkerPath(NAMES, knots, *motion(knots))
    left = {'left': simulators_of(rig(), LOOK)['left']}
    return [one.image for one in drawn_pictures(left, path, np.array(times))]


class Listener:
    def __init__(self, b, name):
        self.images = b.listen(Image, f'{name}/image_raw', qos.IMAGES)
        self.infos = b.listen(CameraInfo, f'{name}/camera_info')

    def stamps(self):
        return [nanoseconds_of(image.header.stamp) for image in self.images]

    def arrays(self):
        return [image_to_gray(image) for image in self.images]


class Cameras:
    """The node, what it publishes, and a driver in the plant's place."""

    def __init__(self, b):
        self.bench = b
        self.left, self.right = Listener(b, 'left'), Listener(b, 'right')
        self.reports = b.listen(DiagnosticArray, '/diagnostics', qos.DIAGNOSTICS)
        self.node = b.add(CameraNode)

    @functools.cached_property
    def truth(self):
        """Where the truth is published, once the node listens."""
        return self.bench.publisher(MarkerPositions, 'marker_truth')

    def send(self, samples):
        for k in samples:
            self.truth.publish(truth(k))

    def counts(self):
        return {pair.key: pair.value for pair in self.reports[-1].status[0].values}


Start = Callable[..., Cameras]


@pytest.fixture
def start(monkeypatch):
    monkeypatch.setattr(camera_node, 'load_rig', lambda _: rig())
    monkeypatch.setattr(camera_node, 'load_look', lambda _: LOOK)
    with contextlib.ExitStack() as stack:

        def make(**parameters):
            parameters = {'rig': 'rig.yaml', 'listeners': 1, 'frame_rate': 20.0, **parameters}
            return Cameras(stack.enter_context(bench(*setting(**parameters))))

        yield make


# --- from the truth ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('parameters', 'right_late'),
    [
        ({}, 0),
        # 1/15 s is no multiple of 5 ms: cubic polynomials are good to far below a grey level.
        ({'frame_rate': 15.0}, 0),
        ({'skew': 0.007}, 7_000_000),
    ],
)
def test_images_are_those_of_the_library(start, capfd, parameters, right_late):
    cameras, rate = start(**parameters), parameters.get('frame_rate', 20.0)
    b, left, right = cameras.bench, cameras.left, cameras.right
    told = f'draws base, tip as /marker_truth says; {rate:g} images per second on'
    assert f'{told} /left/image_raw, /right/image_raw\n' in capfd.readouterr().err
    cameras.send(range(42))
    stamps = [round(k * 1e9 / rate) for k in range(int(0.2 * rate) + 1)]
    b.until(lambda: len(left.images) == len(left.infos) == len(stamps), 'images')
    b.until(lambda: len(right.images) == len(right.infos) >= len(stamps) - (right_late > 0))
    b.settle(10)
    assert left.stamps() == stamps
    late = [stamp + right_late for stamp in stamps]
    assert right.stamps() == [stamp for stamp in late if stamp <= 205_000_000]
    wanted = expected(np.array(stamps) / 1e9)
    assert all(np.array_equal(*pair) for pair in zip(left.arrays(), wanted, strict=True))
    assert not np.array_equal(left.arrays()[0], right.arrays()[0])
    for name, one in (('left', left), ('right', right)):
        assert [info.header for info in one.infos] == [image.header for image in one.images]
        assert one.images[0].header.frame_id == f'{name}_camera_optical'
        assert one.infos[0] == camera_to_info(CAMERA, (240, 320), one.infos[0].header)


def test_a_flood_of_truth_loses_nothing(start):
    cameras = start(frame_rate=100.0)
    # In one go, as of a plant that runs ahead; less than what middleware keeps for a reader.
    cameras.send(range(801))
    cameras.bench.until(lambda: cameras.node._counts['rendered'] == 802, 'all images')
    cameras.bench.until(lambda: cameras.right.stamps()[-1] == 4_000_000_000, 'the last image')
    assert cameras.node._heard == 801
    assert cameras.left.stamps() == sorted(cameras.left.stamps())


def test_truth_that_is_missing_or_wrong_is_counted(start):
    cameras = start()
    b, left, reports = cameras.bench, cameras.left, cameras.reports
    b.until(lambda: reports, 'a report before the first image')
    status = reports[-1].status[0]
    assert status.message in ('waiting for listeners', 'waiting for marker_truth')
    assert status.level == diagnostics.WARN
    wrong = truth(6)
    wrong.position[1].x = float('nan')
    cameras.truth.publish(wrong)
    b.until(lambda: cameras.counts()['invalid'] == '1', 'a report of what is not valid')
    # A marker that the truth does not have is not drawn.
    cameras.truth.publish(truth(0, ('base', 'other')))
    b.until(lambda: left.images)
    windows = cameras.node._views[0].simulator.windows
    assert windows[0, 2] > windows[0, 0]
    assert not windows[1].any()
    cameras.send(range(1, 6))
    cameras.send(range(10, 201))
    b.until(lambda: len(left.images) == 21)
    b.until(lambda: reports and cameras.counts()['rendered'] == '42')
    assert (cameras.counts()['missed'], cameras.counts()['invalid']) == ('4', '1')
    assert reports[-1].status[0].level == diagnostics.WARN
    # Time that begins anew is drawn anew.
    cameras.send(range(1))
    b.until(lambda: len(left.images) == 22)
    assert left.stamps()[-1] == 0


def test_it_begins_when_somebody_listens_and_ends_after_the_last_image(start):
    cameras = start(listeners=2, duration=0.1, scale=0.25)
    b, left, right = cameras.bench, cameras.left, cameras.right
    b.settle(30)
    assert b.driver.count_subscribers('marker_truth') == 0
    others = [b.listen(Image, f'{name}/image_raw', qos.IMAGES) for name in ('left', 'right')]
    # A plant's last sample is that of the end.
    cameras.send(range(21))
    b.until(lambda: all(len(other) == 3 for other in others))
    b.until(cameras.node.done.done, 'the end')
    assert left.stamps() == right.stamps() == [0, 50_000_000, 100_000_000]
    assert (left.images[0].height, left.images[0].width) == (60, 80)
    assert left.infos[0] == camera_to_info(CAMERA.scaled(0.25), (60, 80), left.infos[0].header)


def test_a_viewer_gets_each_image_as_its_own(start):
    cameras, seen = start(lossless=True), []
    cameras.node.viewer = lambda *image: seen.append(image)
    cameras.send(range(21))
    left, right = cameras.left, cameras.right
    cameras.bench.until(lambda: len(left.images) == len(right.images) == 3)
    assert [image[:2] for image in seen] == [
        (name, k * 50_000_000) for k in range(3) for name in ('left', 'right')
    ]
    for (_, _, image), published in zip(seen[::2], left.arrays(), strict=True):
        assert np.array_equal(image, published)


def test_markers_of_a_message():
    positions, velocities = markers_from_message(truth(7), ('tip', 'none', 'base'))
    places, rates = motion(7 * SAMPLE / 1e9)
    assert positions[[0, 2]].tolist() == places[[1, 0]].tolist()
    assert velocities[[0, 2]].tolist() == rates[[1, 0]].tolist()
    assert np.isnan([positions[1], velocities[1]]).all()
    short, doubled, endless = truth(0), truth(0, ('tip', 'tip')), truth(0)
    short.velocity = short.velocity[:1]
    endless.velocity[0].z = float('inf')
    for message, match in (
        (short, '2 names, 2 positions and 1 velocities'),
        (doubled, "the name 'tip' twice"),
        (endless, 'inf.* for base, allowed: finite numbers'),
    ):
        with pytest.raises(InputError, match=match):
            markers_from_message(message, NAMES)
