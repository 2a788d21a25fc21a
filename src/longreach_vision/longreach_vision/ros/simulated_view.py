"""Simulated cameras with their publishers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from rclpy.node import Node

from longreach_markers.rig import MountedCamera
from longreach_node.frames import frame_name
from longreach_node.stamps import seconds_to_nanoseconds, stamp_of
from longreach_vision.ros import conversions
from longreach_vision.ros.camera_parameters import CameraNodeParameters
from longreach_vision.ros.image_publishers import ImagePublishers
from longreach_vision.simulator.camera_simulator import CameraSimulator, frame_rng
from longreach_vision.simulator.marker_path import Frame, FrameTimes
from longreach_vision.simulator.scene import Scene

Viewer = Callable[[str, int, np.ndarray], None]
"""Receives images: camera name, stamp [ns], array (h, w) of uint8, owned by the receiver."""


class SimulatedView:
    """
    A camera with its publishers; images are drawn into a reused message.

    The scene is at the scale of the settings; the seed is that of noise and dropped images; images
    are by ``skew`` [s] later than those of the first camera.
    """

    def __init__(
        self,
        node: Node,
        settings: CameraNodeParameters,
        name: str,
        mounted: MountedCamera,
        scene: Scene,
        seed: int,
        skew: float,
    ) -> None:
        self.name, self._seed, self._drop_rate = name, seed, settings.drop_rate
        self.times = FrameTimes(settings.frame_rate, skew)
        self._delay = seconds_to_nanoseconds(mounted.delay)
        camera = mounted.camera.scaled(settings.scale).replace(name=name)
        header = stamp_of(0), frame_name(node, settings, f'{name}_camera_optical')
        blank = np.zeros((camera.height, camera.width), dtype=np.uint8)
        self._message = conversions.array_to_image(blank, 'mono8', *header)
        self._info = conversions.camera_to_info(camera, *header)
        self._buffer = np.frombuffer(self._message.data, np.uint8).reshape(blank.shape)
        line_time = mounted.line_time / settings.scale
        self._simulator = CameraSimulator(camera, mounted.pose, scene, self._buffer, line_time)
        self.images = ImagePublishers(node, name, settings.jpeg_quality)

    def is_dropped(self, frame: Frame) -> bool:
        """Return whether an image is one of those that are dropped."""
        lot = frame_rng(self._seed, f'{self.name} dropped', frame.number).random()
        return bool(lot < self._drop_rate)

    def show(self, frame: Frame, viewer: Viewer | None) -> None:
        """Draw and publish an image; with a viewer, which gets a copy, only to subscribers."""
        rng = frame_rng(self._seed, self.name, frame.number)
        self._simulator.image(frame.positions, frame.velocities, frame.stamp * 1e-9, rng)
        stamp = frame.stamp + self._delay
        self._message.header.stamp = self._info.header.stamp = stamp_of(stamp)
        if viewer is None or self.images.subscribers:
            self.images.publish(self._buffer, self._message, self._info)
        else:
            self.images.publish_info(self._info)
        if viewer is not None:
            viewer(self.name, stamp, self._buffer.copy())
