"""
Conversion of objects of the library to messages, without calculations.

Not by cv_bridge, of which some versions ignore row padding: a recording gives the same tracks
everywhere.
"""

from __future__ import annotations

import array
import functools
import math
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from geometry_msgs.msg import Point, TransformStamped, Vector3
from sensor_msgs.msg import CameraInfo, Image
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

from longreach_markers import LOST, TRACKED, UNCERTAIN, Camera, Estimate, Observation, Pose
from longreach_vision.io.track_table import Messages

# RGB colour of each status in RViz, as in the overlays.
_COLOURS = {TRACKED: (0.24, 0.86, 0.31), UNCERTAIN: (1.0, 0.65, 0.0), LOST: (1.0, 0.24, 0.24)}
_TEXT = (0.1, 0.1, 0.1)
# Height of a label, and its height above the marker's centre, in marker diameters: legible when
# the view is 100 diameters wide.
_NAME, _ABOVE = 2.5, 2.5
# Variance of an angle of which nothing is known [rad^2].
_ANY_ANGLE = math.pi**2 / 3.0


# --- images ----------------------------------------------------------------------------------


def array_to_image(
    image: np.ndarray, encoding: str, header: Header, message: Image | None = None
) -> Image:
    """Return an array as an image message, by default a new one."""
    whole = np.ascontiguousarray(image)
    message = message or Image()
    message.header, message.encoding = header, encoding
    message.height, message.width = image.shape[:2]
    message.step, message.is_bigendian = whole.nbytes // message.height, sys.byteorder == 'big'
    if len(message.data) == whole.nbytes:
        np.frombuffer(message.data, np.uint8)[:] = whole.view(np.uint8).ravel()
    else:
        # The message accepts an array.array of bytes as it is; other sequences are checked item by
        # item.
        data = array.array('B')
        data.frombytes(whole.data.cast('B'))
        message.data = data
    return message


# --- cameras ---------------------------------------------------------------------------------


def camera_to_info(camera: Camera | None, shape: Sequence[int], header: Header) -> CameraInfo:
    """Return the camera_info of a camera; without one (k = 0) that of images of a shape."""
    if camera is None:
        return CameraInfo(header=header, height=shape[0], width=shape[1])
    k = camera.matrix
    return CameraInfo(
        header=header,
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


def pose_to_transform(pose: Pose, header: Header, child: str) -> TransformStamped:
    """Return a pose as the transform from its own frame, ``child``, to that of the header."""
    message = TransformStamped(header=header, child_frame_id=child)
    x, y, z = pose.translation.tolist()
    message.transform.translation = Vector3(x=x, y=y, z=z)
    message.transform.rotation = Messages(ros_type).pose(pose).orientation
    return message


# --- markers ---------------------------------------------------------------------------------


def shapes_to_message(
    estimates: Mapping[str, Estimate], radii: Mapping[str, float], header: Header
) -> MarkerArray:
    """Return markers as coloured spheres with labels; a lost marker is deleted."""
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


def observations_to_detections(observations: Mapping[str, Observation], header: Header) -> Any:
    """Return the markers seen in an image, in boxes along the axes of their ellipses [px]."""
    kinds: Any = import_module('vision_msgs.msg')
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
    estimates: Mapping[str, Estimate], radii: Mapping[str, float], header: Header
) -> Any:
    """Return the markers in space, triangulated if possible, of any orientation, in cubes."""
    kinds: Any = import_module('vision_msgs.msg')
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
