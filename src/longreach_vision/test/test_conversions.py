"""Between messages and the library's objects."""

import dataclasses
import sys
from functools import partial
from importlib import import_module
from types import ModuleType, SimpleNamespace

import cv2
import numpy as np
import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseWithCovariance
from small_rig import NAMES, frame_at, seen_at
from std_msgs.msg import Header
from visualization_msgs.msg import Marker

from longreach_markers import (
    LOST,
    TRACKED,
    UNCERTAIN,
    Camera,
    Estimate,
    Location,
    Pose,
    image_to_gray,
)
from longreach_markers.marker.detection import lost
from longreach_tools.bag import bag_typestore
from longreach_vision.io.track_table import Messages, message_row, row_of
from longreach_vision.ros.conversions import (
    array_to_image,
    camera_to_info,
    estimates_to_detections,
    observations_to_detections,
    ros_type,
    shapes_to_message,
)

HEADER = Header(stamp=Time(sec=12, nanosec=345), frame_id='left_optical')
LENS = (-0.1, 0.02, 1e-3, -2e-3, 0.0)
CAMERA = Camera('left', 2452, 2054, 2600.0, 2601.5, 1220.25, 1030.5, distortion=LENS)


# --- images ----------------------------------------------------------------------------------


def test_there_and_back():
    image = np.random.default_rng(1).integers(0, 255, (5, 7), np.uint8)
    message = array_to_image(image, 'mono8', HEADER)
    assert message.header == HEADER
    assert (message.height, message.width, message.encoding) == (5, 7, 'mono8')
    assert message.step * 5 == len(message.data) == image.nbytes
    assert bool(message.is_bigendian) == (sys.byteorder == 'big')
    shown = image_to_gray(message)
    np.testing.assert_array_equal(shown, image)
    # It is a view.
    message.data[8] = 5
    assert shown[1, 1] == 5


def test_a_message_is_filled_again():
    first = array_to_image(np.full((4, 6), 7, np.uint8), 'mono8', HEADER)
    memory = first.data
    again = array_to_image(np.full((4, 6), 9, np.uint8), 'mono8', Header(frame_id='b'), first)
    assert again is first
    assert again.data is memory
    assert (set(again.data), again.header.frame_id) == ({9}, 'b')
    larger = array_to_image(np.full((5, 6), 3, np.uint8), 'mono8', HEADER, first)
    assert (len(larger.data), larger.height, set(larger.data)) == (30, 5, {3})


# --- cameras ---------------------------------------------------------------------------------


def test_a_camera_as_a_message():
    eight = (-0.1, 0.02, 1e-3, -2e-3, 0.01, 0.1, 0.0, 0.0)
    camera = CAMERA.replace(model='rational_polynomial', distortion=eight)
    info = camera_to_info(camera, (), HEADER)
    assert (info.width, info.height) == (camera.width, camera.height)
    assert (info.distortion_model, tuple(info.d)) == (camera.model, eight)
    assert info.header == HEADER
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
    shapes = shapes_to_message(estimates, {'tip': 0.2, 'foot': 0.1}, HEADER).markers
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
    told = observations_to_detections(observed, HEADER)
    assert told.header == HEADER
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
    told = estimates_to_detections(estimates, {'tip': 0.2, 'base': 0.1}, HEADER)
    (one,) = told.detections
    (found,) = one.results
    assert (found.hypothesis.class_id, found.hypothesis.score) == ('tip', 0.0)
    assert (found.pose.pose.position.x, found.pose.pose.position.z) == (1.0, 3.0)
    told_covariance = np.array(found.pose.covariance).reshape(6, 6)
    np.testing.assert_array_equal(told_covariance[:3, :3], covariance)
    assert np.diag(told_covariance)[3:].min() > 3.0
    assert (one.bbox.size.x, one.bbox.center.position.y) == (0.4, 2.0)


STAMP = 12_000_000_345


@pytest.fixture(params=['ros', 'bag'])
def types(request):
    return ros_type if request.param == 'ros' else bag_typestore().types.__getitem__


def is_headed(message, frame_id):
    header = message.header
    return (header.stamp.sec, header.stamp.nanosec, header.frame_id) == (12, 345, frame_id)


def test_observations_are_told_as_they_are(types):
    observations = {
        'one': seen_at(101.5, 55.25),
        'two': seen_at(101.5, 55.25, UNCERTAIN),
        'three': lost('nothing here', np.array([7.0, 8.0]), 12.0),
    }
    message = Messages(types).observations(observations, 'left', STAMP, 'left_optical')
    assert is_headed(message, 'left_optical')
    assert message.camera == 'left'
    one, two, three = message.observations
    told = [(one.name, one.status, one.reason) for one in message.observations]
    assert told == [('one', 0, ''), ('two', 1, 'too soft'), ('three', 2, 'nothing here')]
    assert one.center.tolist() == two.center.tolist() == [101.5, 55.25]
    assert one.covariance.tolist() == [4e-4, 1e-4, 1e-4, 9e-4]
    assert one.ellipse_center.tolist() == [101.6, 55.35]
    assert (one.axes.tolist(), one.angle) == ([12.0, 0.8 * 12.0], 0.3)
    assert (one.rim_support, one.residual) == (0.9, 1.5)
    assert three.center.tolist() == [7.0, 8.0]
    assert np.isnan(three.covariance).all()


@pytest.mark.parametrize('status', [UNCERTAIN, LOST])
def test_estimates_are_told_as_they_are_and_nan_where_unknown(types, status):
    frame = dataclasses.replace(frame_at(12.0, status, gap=0.004), observations={})
    frame.estimates['one'].triangulated.covariance[:] = np.arange(9.0).reshape(3, 3)
    message = Messages(types).estimates(frame, STAMP, 'boom_base')
    assert is_headed(message, 'boom_base')
    told = [(one.name, one.reason) for one in message.estimates]
    assert told == [('one', ''), ('two', 'why not')]
    assert message.estimates[0].triangulated_covariance.tolist() == [*range(9)]
    # What else there is, is in the row of a table.
    np.testing.assert_array_equal(
        message_row(12.0, NAMES, message, [None, None]), row_of(frame, NAMES)
    )


def test_the_pose_of_a_body_has_the_covariance_that_ros_defines(types):
    """Position first, and rotations about the fixed axes of the parent frame."""
    rng = np.random.default_rng(1)
    rotation = cv2.Rodrigues(np.array([0.3, -0.8, 1.1]))[0]
    root = 1e-3 * rng.standard_normal((6, 6))
    pose = Pose(rotation, np.array([1.0, 2.0, 3.0]), root @ root.T)
    drawn = np.empty((20_000, 6))
    for row, error in zip(drawn, rng.standard_normal((20_000, 6)) @ root.T, strict=True):
        turned = rotation @ cv2.Rodrigues(error[:3])[0]
        row[:3], row[3:] = error[3:], cv2.Rodrigues(turned @ rotation.T)[0].ravel()
    message = Messages(types).body(pose, STAMP, 'world')
    assert is_headed(message, 'world')
    place, turn = message.pose.pose.position, message.pose.pose.orientation
    found = Pose.from_quaternion((turn.x, turn.y, turn.z, turn.w), (place.x, place.y, place.z))
    np.testing.assert_allclose(found.matrix, pose.matrix, atol=1e-12)
    told = message.pose.covariance.reshape(6, 6)
    scale = np.sqrt(np.diag(told))
    # Correlations of 20,000 draws have errors of 0.007.
    np.testing.assert_allclose(
        np.cov(drawn.T) / np.outer(scale, scale), told / np.outer(scale, scale), atol=0.04
    )
