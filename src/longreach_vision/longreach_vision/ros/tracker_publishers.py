"""What the tracker publishes: observations, positions, poses, transforms, views."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped
from longreach_msgs.msg import MarkerEstimates, MarkerObservations
from rclpy.node import Node
from rclpy.publisher import Publisher
from sensor_msgs.msg import Image
from visualization_msgs.msg import MarkerArray

from longreach_markers import TRACKED, ImageSet, Pose, Rig, RigFrame, draw_cameras
from longreach_node import qos
from longreach_node.frames import Transforms, frame_name, header_at, optional_message
from longreach_vision.io.track_table import Messages, cameras_of
from longreach_vision.ros.conversions import (
    array_to_image,
    estimates_to_detections,
    observations_to_detections,
    pose_to_transform,
    ros_type,
    shapes_to_message,
)
from longreach_vision.ros.node_parameters import TrackerParameters


class _Drawing:
    """Rate limiter of a topic for display."""

    def __init__(self, publisher: Publisher) -> None:
        self.publisher = publisher
        self._next = -math.inf

    def is_due(self, now: float, rate: float) -> bool:
        """Return whether the next message is due at a time [s], and there is a subscriber."""
        if not rate:
            return False
        period = 1.0 / rate
        # If time goes back, start again.
        if now < self._next <= now + period or not self.publisher.get_subscription_count():
            return False
        # The mean rate is this one, whatever that of images is.
        self._next = period + (self._next if now - period < self._next <= now else now)
        return True


class TrackerPublishers:
    """Publishers of a tracker; ``settings`` can be replaced, ``results`` are the main ones."""

    def __init__(self, node: Node, settings: TrackerParameters, rig: Rig) -> None:
        self._node, self.settings, self._rig = node, settings, rig
        self._frame_id = settings.frame_id.lstrip('/')
        self._messages = Messages(ros_type, cameras_of(rig.cameras))
        self._radii = {marker.name: marker.radius for marker in rig.markers}
        create = node.create_publisher
        found = qos.stream(settings.lossless)
        self._observations = create(MarkerObservations, 'observations', found)
        self._markers = create(MarkerEstimates, 'markers', found)
        self.results = self._observations, self._markers
        self._shapes = _Drawing(create(MarkerArray, 'marker_shapes', qos.VISUAL))
        self._overlay = _Drawing(create(Image, 'overlay', qos.IMAGES))
        self._poses = {
            name: create(PoseStamped, f'{name}/pose', qos.VISUAL) for name in rig.cameras
        }
        self._bodies = {
            body.name: create(PoseWithCovarianceStamped, f'{body.name}/pose', found)
            for body in rig.bodies
        }
        self._transforms = Transforms(node) if settings.publish_tf else None
        # Of the images, by camera.
        self._frames: Mapping[str, str] = {}
        self._detections: dict[str, Publisher] = {}
        if optional_message(node, 'vision_msgs/Detection2DArray', 'no detections') is not None:
            for kind in ('2d', '3d'):
                name = f'vision_msgs/Detection{kind.upper()}Array'
                message = optional_message(node, name, 'no detections')
                self._detections[kind] = create(message, f'detections_{kind}', found)

    def show_cameras(self, rig: Rig, stamp: int, frames: Mapping[str, str]) -> None:
        """Publish the latched poses of the cameras, and transforms to their known frames."""
        self._frames, header = frames, header_at(stamp, self._frame_id)
        for name, mounted in rig.cameras.items():
            pose = self._messages.pose(mounted.pose)
            self._poses[name].publish(PoseStamped(header=header, pose=pose))
        if self._transforms is not None:
            poses = {name: rig.cameras[name].pose for name in frames}
            self._transforms.hold(
                [pose_to_transform(poses[name], header, frame) for name, frame in frames.items()]
            )

    def publish(self, images: ImageSet, frame: RigFrame, rig: Rig) -> None:
        """Publish the results of a set of images, with the stamps of the images."""
        for name, found in frame.observations.items():
            at = images.stamps[name], self._frames[name]
            self._observations.publish(self._messages.observations(found, name, *at))
            if self._is_asked_for('2d'):
                detections = observations_to_detections(found, header_at(*at))
                self._detections['2d'].publish(detections)
        if images.late:
            # Estimates are published in increasing order of time.
            return
        self._markers.publish(self._messages.estimates(frame, images.stamp, self._frame_id))
        header = header_at(images.stamp, self._frame_id)
        if self._is_asked_for('3d'):
            detections = estimates_to_detections(frame.estimates, self._radii, header)
            self._detections['3d'].publish(detections)
        self._publish_poses(frame, images.stamp)
        now = images.stamp * 1e-9
        if self._shapes.is_due(now, 2.0 * self.settings.overlay_rate):
            shapes = shapes_to_message(frame.estimates, self._radii, header)
            self._shapes.publisher.publish(shapes)
        if self._overlay.is_due(now, self.settings.overlay_rate):
            width = self.settings.overlay_width / len(rig.cameras)
            seen = images.images, images.times, frame.observations
            picture = draw_cameras(rig.cameras, *seen, width)
            header = header_at(images.stamp, self._frames[next(iter(images.images))])
            self._overlay.publisher.publish(array_to_image(picture, 'bgr8', header))

    def _is_asked_for(self, kind: str) -> bool:
        found = self._detections.get(kind)
        return found is not None and found.get_subscription_count() > 0

    def _publish_poses(self, frame: RigFrame, stamp: int) -> None:
        moving, header = [], header_at(stamp, self._frame_id)
        for name, body in frame.bodies.items():
            if body.pose is not None:
                self._bodies[name].publish(self._messages.body(body.pose, stamp, self._frame_id))
                moving.append((name, body.pose))
        if self._transforms is None:
            return
        for name, estimate in frame.estimates.items():
            location = estimate.triangulated or estimate.in_plane
            if estimate.status == TRACKED and location is not None:
                moving.append((name, Pose(np.eye(3), location.position)))
        self._transforms.send(
            [
                pose_to_transform(pose, header, frame_name(self._node, self.settings, name))
                for name, pose in moving
            ]
        )
