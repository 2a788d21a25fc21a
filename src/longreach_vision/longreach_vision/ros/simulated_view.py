"""One simulated camera with its publishers."""

from __future__ import annotations

import numpy as np
from rclpy.node import Node

from longreach_node.stamps import stamp_of
from longreach_vision.camera.geometry import Pose
from longreach_vision.camera.model import Camera
from longreach_vision.ros import conversions
from longreach_vision.ros.image_publishers import ImagePublishers
from longreach_vision.simulator.camera_simulator import CameraSimulator
from longreach_vision.simulator.marker_path import Frame, FrameTimes
from longreach_vision.simulator.scene import Scene

__all__ = ['SimulatedView']


class SimulatedView:
    """A camera with its publishers; images are drawn into a reused message."""

    def __init__(
        self,
        node: Node,
        name: str,
        frame_id: str,
        camera: Camera,
        pose: Pose,
        scene: Scene,
        times: FrameTimes,
        delay: int,
        line_time: float,
        quality: int,
    ) -> None:
        self.name, self.times, self._delay = name, times, delay
        blank = np.zeros((camera.height, camera.width), dtype=np.uint8)
        self._message = conversions.array_to_image(blank, 'mono8', stamp_of(0), frame_id)
        self._info = conversions.camera_to_info(camera, stamp_of(0), frame_id)
        self._buffer = np.frombuffer(self._message.data, np.uint8).reshape(blank.shape)
        self._simulator = CameraSimulator(camera, pose, scene, self._buffer, line_time)
        self.images = ImagePublishers(node, name, quality)

    def draw(self, frame: Frame, rng: np.random.Generator) -> np.ndarray:
        """Draw and return an image; it is overwritten by the next one."""
        self._simulator.image(frame.positions, frame.velocities, frame.stamp * 1e-9, rng)
        return self._buffer

    def stamp(self, frame: Frame) -> int:
        """Return the stamp of an image [ns]."""
        return frame.stamp + self._delay

    def publish(self, frame: Frame, unheard: bool) -> None:
        """Publish the drawn image; without subscribers only if ``unheard``."""
        self._message.header.stamp = self._info.header.stamp = stamp_of(self.stamp(frame))
        if unheard or self.images.subscribers:
            self.images.publish(self._buffer, self._message, self._info)
        else:
            self.images.publish_info(self._info)
