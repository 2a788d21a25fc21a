"""
Conversion between objects of the library and messages, without calculations.

Images are converted by :mod:`longreach_markers.io.images`, not by cv_bridge, so that a recording
gives the same tracks everywhere: some versions of cv_bridge ignore row padding, or swap bytes with
functions that NumPy 2 removed.
"""

from __future__ import annotations

import array
import functools
import math
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, TransformStamped, Vector3
from sensor_msgs.msg import CameraInfo, CompressedImage, Image
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

from longreach_dynamics.errors import InputError
from longreach_markers.camera.geometry import Pose
from longreach_markers.camera.model import Camera
from longreach_markers.io.images import to_message_fields
from longreach_markers.marker.detection import LOST, TRACKED, UNCERTAIN, Observation
from longreach_markers.tracking.frames import Estimate
from longreach_node.stamps import nanoseconds_of
from longreach_vision.io.bag_files import image_to_gray as image_to_gray
from longreach_vision.io.messages import Messages

# RGB colour of each status in RViz, as in the overlays.
_COLOURS = {TRACKED: (0.24, 0.86, 0.31), UNCERTAIN: (1.0, 0.65, 0.0), LOST: (1.0, 0.24, 0.24)}
_TEXT = (0.1, 0.1, 0.1)
# Height of a label, and its height above the marker's centre, in marker diameters: legible when
# the view is 100 diameters wide.
_NAME, _ABOVE = 2.5, 2.5
# Variance of an angle of which nothing is known [rad^2].
_ANY_ANGLE = math.pi**2 / 3.0


# --- images ----------------------------------------------------------------------------------


def image_stamp(message: Image | CompressedImage) -> int:
    """Return the stamp of an image [ns]."""
    stamp = message.header.stamp
    if stamp.sec < 0 or stamp.nanosec >= 1_000_000_000:
        raise InputError(
            f'stamp has sec = {stamp.sec}, nanosec = {stamp.nanosec}, allowed: 0 or more, and'
            ' [0, 999999999]; correct the clock or the driver of the camera'
        )
    return nanoseconds_of(stamp)


def array_to_image(
    image: np.ndarray, encoding: str, stamp: Time, frame_id: str, message: Image | None = None
) -> Image:
    """Return an array as an image message."""
    fields = to_message_fields(image, encoding)
    if message is None:
        message = Image()
    message.header = Header(stamp=stamp, frame_id=frame_id)
    message.height, message.width, message.step = fields.height, fields.width, fields.step
    message.encoding = encoding
    message.is_bigendian = int(fields.is_bigendian)
    if len(message.data) == fields.data.nbytes:
        np.frombuffer(message.data, np.uint8)[:] = np.frombuffer(fields.data, np.uint8)
    else:
        # The message accepts an array.array of bytes as it is; other sequences are checked item by
        # item.
        data = array.array('B')
        data.frombytes(fields.data)
        message.data = data
    return message


# --- cameras ---------------------------------------------------------------------------------


def camera_to_info(camera: Camera, stamp: Time, frame_id: str) -> CameraInfo:
    """Return the camera_info of a camera."""
    k = camera.matrix
    return CameraInfo(
        header=Header(stamp=stamp, frame_id=frame_id),
        width=camera.width,
        height=camera.height,
        distortion_model=camera.model,
        d=list(camera.distortion),
        k=k.ravel(),
        r=np.eye(3).ravel(),
        p=np.column_stack([k, np.zeros(3)]).ravel(),
    )


@functools.cache
def ros_type(kind: str) -> Any:
    """Return a type of messages by its name, such as ``geometry_msgs/msg/Point``."""
    package, _, name = kind.split('/')
    return getattr(import_module(f'{package}.msg'), name)


def pose_to_transform(pose: Pose, stamp: Time, frame_id: str, child: str) -> TransformStamped:
    """Return a pose as the transform from its own frame, ``child``, to ``frame_id``."""
    message = TransformStamped(header=Header(stamp=stamp, frame_id=frame_id), child_frame_id=child)
    placed = Messages(ros_type).pose(pose)
    x, y, z = pose.translation.tolist()
    message.transform.translation = Vector3(x=x, y=y, z=z)
    message.transform.rotation = placed.orientation
    return message


def size_to_info(width: int, height: int, stamp: Time, frame_id: str) -> CameraInfo:
    """Return the camera_info of an uncalibrated camera (k = 0); size in [px]."""
    return CameraInfo(header=Header(stamp=stamp, frame_id=frame_id), width=width, height=height)


# --- markers ---------------------------------------------------------------------------------


def shapes_to_message(
    estimates: Mapping[str, Estimate], radii: Mapping[str, float], stamp: Time, frame_id: str
) -> MarkerArray:
    """Return markers as coloured spheres with labels; a lost marker is deleted."""
    header = Header(stamp=stamp, frame_id=frame_id)
    shapes = []
    for name, estimate in estimates.items():
        place = Marker(header=header, ns=f'{name}/place', type=Marker.SPHERE)
        text = Marker(header=header, ns=f'{name}/name', type=Marker.TEXT_VIEW_FACING, text=name)
        shapes += [place, text]
        location = estimate.triangulated or estimate.in_plane
        if location is None:
            place.action = text.action = Marker.DELETE
            continue
        diameter = 2.0 * radii[name]
        for shape, colour, size, above in (
            (place, _COLOURS[estimate.status], diameter, 0.0),
            (text, _TEXT, _NAME * diameter, _ABOVE * diameter),
        ):
            x, y, z = location.position.tolist()
            r, g, b = colour
            shape.action = Marker.ADD
            shape.pose.position = Point(x=x, y=y, z=z + above)
            shape.pose.orientation.w = 1.0
            shape.scale = Vector3(x=size, y=size, z=size)
            shape.color = ColorRGBA(r=r, g=g, b=b, a=1.0)
    return MarkerArray(markers=shapes)


# --- vision_msgs, where installed ------------------------------------------------------------


def observations_to_detections(
    observations: Mapping[str, Observation], stamp: Time, frame_id: str
) -> Any:
    """
    Return the markers seen in an image, without LOST ones, as a vision_msgs/Detection2DArray.

    The score is 1 for TRACKED and 0 for UNCERTAIN; the box [px] encloses the ellipse along its
    axes.
    """
    kinds: Any = import_module('vision_msgs.msg')
    header = Header(stamp=stamp, frame_id=frame_id)
    message = kinds.Detection2DArray(header=header)
    for name, seen in observations.items():
        if seen.status == LOST:
            continue
        found = kinds.Detection2D(header=header, id=name)
        found.results = [_hypothesis(kinds, name, seen.status)]
        # By convention.
        found.results[0].pose.covariance[0] = -1.0
        u, v = np.asarray(seen.ellipse.center).tolist()
        found.bbox.center.position.x, found.bbox.center.position.y = u, v
        found.bbox.center.theta = float(seen.ellipse.angle)
        found.bbox.size_x, found.bbox.size_y = (2.0 * np.asarray(seen.ellipse.axes)).tolist()
        message.detections.append(found)
    return message


def estimates_to_detections(
    estimates: Mapping[str, Estimate], radii: Mapping[str, float], stamp: Time, frame_id: str
) -> Any:
    """
    Return the markers in space, triangulated if possible, as a vision_msgs/Detection3DArray.

    The variances of the orientation are those of any angle; the box is a cube around the marker.
    """
    kinds: Any = import_module('vision_msgs.msg')
    header = Header(stamp=stamp, frame_id=frame_id)
    message = kinds.Detection3DArray(header=header)
    for name, estimate in estimates.items():
        location = estimate.triangulated or estimate.in_plane
        if location is None or estimate.status == LOST:
            continue
        found = kinds.Detection3D(header=header, id=name)
        found.results = [_hypothesis(kinds, name, estimate.status)]
        covariance = np.diag([0.0, 0.0, 0.0, *3 * [_ANY_ANGLE]])
        covariance[:3, :3] = location.covariance
        place = Messages(ros_type).pose(Pose(np.eye(3), location.position))
        found.results[0].pose.pose = found.bbox.center = place
        found.results[0].pose.covariance = covariance.ravel()
        size = 2.0 * radii[name]
        found.bbox.size = Vector3(x=size, y=size, z=size)
        message.detections.append(found)
    return message


def _hypothesis(kinds: Any, name: str, status: str) -> Any:
    found = kinds.ObjectHypothesisWithPose()
    found.hypothesis.class_id = name
    found.hypothesis.score = float(status == TRACKED)
    return found
