"""Between messages and the library's objects."""

import array
import sys
from functools import partial
from importlib import import_module
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseWithCovariance
from sensor_msgs.msg import Image
from small_rig import seen_at
from visualization_msgs.msg import Marker

from longreach_markers.camera.model import Camera
from longreach_markers.camera.triangulation import Location
from longreach_markers.marker.detection import LOST, TRACKED, UNCERTAIN, lost
from longreach_markers.tracking.frames import Estimate
from longreach_vision.ros.conversions import (
    array_to_image,
    camera_to_info,
    estimates_to_detections,
    image_to_gray,
    observations_to_detections,
    shapes_to_message,
)

STAMP = Time(sec=12, nanosec=345)
LENS = (-0.1, 0.02, 1e-3, -2e-3, 0.0)
CAMERA = Camera('left', 2452, 2054, 2600.0, 2601.5, 1220.25, 1030.5, distortion=LENS)


# --- images ----------------------------------------------------------------------------------


def test_there_and_back():
    image = np.random.default_rng(1).integers(0, 255, (5, 7), np.uint8)
    message = array_to_image(image, 'mono8', STAMP, 'left_optical')
    assert (message.header.stamp, message.header.frame_id) == (STAMP, 'left_optical')
    assert (message.height, message.width, message.encoding) == (5, 7, 'mono8')
    assert message.step * 5 == len(message.data) == image.nbytes
    assert bool(message.is_bigendian) == (sys.byteorder == 'big')
    shown = image_to_gray(message)
    np.testing.assert_array_equal(shown, image)
    # It is a view.
    message.data[8] = 5
    assert shown[1, 1] == 5


def test_a_message_is_filled_again():
    first = array_to_image(np.full((4, 6), 7, np.uint8), 'mono8', STAMP, 'a')
    memory = first.data
    again = array_to_image(np.full((4, 6), 9, np.uint8), 'mono8', Time(sec=13), 'b', first)
    assert again is first
    assert again.data is memory
    assert (set(again.data), again.header.stamp.sec, again.header.frame_id) == ({9}, 13, 'b')
    larger = array_to_image(np.full((5, 6), 3, np.uint8), 'mono8', STAMP, 'b', first)
    assert (len(larger.data), larger.height, set(larger.data)) == (30, 5, {3})


def test_padding_and_order_of_bytes_are_taken_from_the_message():
    message = Image(height=2, width=1, encoding='mono16', is_bigendian=1, step=3)
    message.data = array.array('B', [0xFF, 0xFF, 0xAA, 0x01, 0x01, 0xAA])
    assert image_to_gray(message).tolist() == [[255], [1]]


# --- cameras ---------------------------------------------------------------------------------


def test_a_camera_as_a_message():
    eight = (-0.1, 0.02, 1e-3, -2e-3, 0.01, 0.1, 0.0, 0.0)
    camera = CAMERA.replace(model='rational_polynomial', distortion=eight)
    info = camera_to_info(camera, STAMP, 'left_optical')
    assert (info.width, info.height) == (camera.width, camera.height)
    assert (info.distortion_model, tuple(info.d)) == (camera.model, eight)
    assert (info.header.stamp, info.header.frame_id) == (STAMP, 'left_optical')
    assert info.k.tolist() == [2600.0, 0.0, 1220.25, 0.0, 2601.5, 1030.5, 0.0, 0.0, 1.0]
    assert info.p.tolist() == [2600, 0, 1220.25, 0, 0, 2601.5, 1030.5, 0, 0, 0, 1, 0]
    assert info.r.tolist() == np.eye(3).ravel().tolist()


# --- markers ---------------------------------------------------------------------------------


def test_shapes_show_where_markers_are_and_take_lost_ones_away():
    place = Location(np.array([1.0, 0.0, 3.0]), np.eye(3))
    estimates = {
        'tip': Estimate('tip', TRACKED, '', ('left',), place),
        'foot': Estimate('foot', LOST, 'gone'),
    }
    shapes = shapes_to_message(estimates, {'tip': 0.2, 'foot': 0.1}, STAMP, 'world').markers
    assert [(shape.ns, shape.action) for shape in shapes] == [
        ('tip/place', Marker.ADD),
        ('tip/name', Marker.ADD),
        ('foot/place', Marker.DELETE),
        ('foot/name', Marker.DELETE),
    ]
    sphere, text = shapes[:2]
    assert (sphere.pose.position.x, sphere.pose.position.z, sphere.scale.x) == (1.0, 3.0, 0.4)
    # In a view 40 m high and 800 pixels, 20 pixels; the lower edge is above the sphere.
    assert (text.text, text.scale.z) == ('tip', 1.0)
    assert text.pose.position.z - text.scale.z / 2 > 3.0 + sphere.scale.z / 2
    assert sphere.color.g > sphere.color.r


# --- vision_msgs -----------------------------------------------------------------------------


@pytest.fixture
def vision_msgs(monkeypatch):
    try:
        import_module('vision_msgs.msg')
    except ImportError:
        kinds = ModuleType('vision_msgs.msg')

        def detection(**given):
            center = SimpleNamespace(position=SimpleNamespace())
            return SimpleNamespace(**given, bbox=SimpleNamespace(center=center))

        kinds.Detection2D = kinds.Detection3D = detection
        kinds.Detection2DArray = kinds.Detection3DArray = partial(SimpleNamespace, detections=[])
        kinds.ObjectHypothesisWithPose = lambda: SimpleNamespace(
            hypothesis=SimpleNamespace(), pose=PoseWithCovariance()
        )
        monkeypatch.setitem(sys.modules, 'vision_msgs', ModuleType('vision_msgs'))
        monkeypatch.setitem(sys.modules, 'vision_msgs.msg', kinds)


def test_markers_in_an_image_as_detections(vision_msgs):
    observed = {'tip': seen_at(101.5, 55.25), 'base': lost('hidden', np.array([3.0, 4.0]), 9.0)}
    told = observations_to_detections(observed, Time(sec=3), 'left')
    assert (told.header.stamp.sec, told.header.frame_id) == (3, 'left')
    (one,) = told.detections
    assert one.id == one.results[0].hypothesis.class_id == 'tip'
    assert one.results[0].hypothesis.score == 1.0
    box = one.bbox
    assert [box.center.position.x, box.center.position.y] == [101.6, 55.35]
    assert [box.size_x, box.size_y] == pytest.approx([24.0, 19.2])
    assert box.center.theta == 0.3
    assert one.results[0].pose.covariance[0] == -1.0


def test_markers_in_space_as_detections(vision_msgs):
    covariance = np.diag([1e-6, 4e-6, 9e-6])
    place = Location(np.array([1.0, 2.0, 3.0]), covariance)
    estimates = {
        'tip': Estimate('tip', UNCERTAIN, 'soft', ('left',), in_plane=place),
        'base': Estimate('base', LOST, 'hidden'),
    }
    told = estimates_to_detections(estimates, {'tip': 0.2, 'base': 0.1}, Time(sec=3), 'world')
    (one,) = told.detections
    (found,) = one.results
    assert (found.hypothesis.class_id, found.hypothesis.score) == ('tip', 0.0)
    assert (found.pose.pose.position.x, found.pose.pose.position.z) == (1.0, 3.0)
    told_covariance = np.array(found.pose.covariance).reshape(6, 6)
    np.testing.assert_array_equal(told_covariance[:3, :3], covariance)
    assert np.diag(told_covariance)[3:].min() > 3.0
    assert (one.bbox.size.x, one.bbox.center.position.y) == (0.4, 2.0)
