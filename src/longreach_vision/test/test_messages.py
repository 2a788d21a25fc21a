"""Tracks as messages, of ROS and of the types of a bag."""

import cv2
import numpy as np
import pytest
from longreach_msgs.msg import MarkerEstimate
from small_rig import seen_at

from longreach_markers.camera.geometry import Pose
from longreach_markers.camera.triangulation import Location
from longreach_markers.marker.detection import LOST, TRACKED, UNCERTAIN, lost
from longreach_markers.tracking.frames import Estimate, RigFrame
from longreach_tools.bag import bag_typestore
from longreach_vision.io.messages import Messages
from longreach_vision.ros.conversions import ros_type

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


def test_estimates_are_told_as_they_are_and_nan_where_unknown(types):
    flat = Location(np.array([1.0, 0.0, 3.0]), np.diag([1e-6, 0.0, 4e-6]))
    free = Location(np.array([1.0, 0.02, 3.0]), np.full((3, 3), 2e-6))
    estimates = {
        'both': Estimate('both', UNCERTAIN, 'why', ('left', 'right'), flat, free, 0.02, 0.001),
        'one': Estimate('one', TRACKED, '', ('right',), flat),
        'none': Estimate('none', LOST, 'gone'),
    }
    message = Messages(types).estimates(RigFrame(0.0, 0.004, {}, estimates), STAMP, 'boom_base')
    assert is_headed(message, 'boom_base')
    assert message.stamp_gap == 0.004
    both, one, none = message.estimates
    assert [(e.name, e.status, e.reason, e.cameras) for e in (both, one, none)] == [
        ('both', 1, 'why', MarkerEstimate.LEFT | MarkerEstimate.RIGHT),
        ('one', 0, '', MarkerEstimate.RIGHT),
        ('none', 2, 'gone', 0),
    ]
    assert (both.in_plane.x, both.in_plane.z, both.triangulated.y) == (1.0, 3.0, 0.02)
    assert both.in_plane_covariance.tolist() == [1e-6, 0, 0, 0, 0, 0, 0, 0, 4e-6]
    assert both.triangulated_covariance.tolist() == [2e-6] * 9
    assert (both.out_of_plane, both.out_of_plane_deviation) == (0.02, 0.001)
    assert np.isnan([one.triangulated.x, one.out_of_plane, one.out_of_plane_deviation]).all()
    assert np.isnan([none.in_plane.x, *none.in_plane_covariance, none.triangulated.z]).all()


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
