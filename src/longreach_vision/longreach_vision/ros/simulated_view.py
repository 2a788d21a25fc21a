"""Simulated cameras with their publishers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np
from rclpy.node import Node

from longreach_node.frames import frame_name
from longreach_node.stamps import seconds_to_nanoseconds, stamp_of
from longreach_vision.camera.geometry import Pose
from longreach_vision.camera.model import Camera
from longreach_vision.rig import MountedCamera
from longreach_vision.ros import conversions
from longreach_vision.ros.camera_parameters import CameraNodeParameters
from longreach_vision.ros.image_publishers import ImagePublishers
from longreach_vision.simulator.camera_simulator import CameraSimulator
from longreach_vision.simulator.marker_path import Frame, FrameTimes
from longreach_vision.simulator.scene import Scene

__all__ = ['SimulatedView', 'SimulatedViews']


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


class SimulatedViews(tuple[SimulatedView, ...]):
    """The views of all cameras of a rig; all but the first are later by ``skew``."""

    __slots__ = ()

    def __new__(
        cls,
        node: Node,
        settings: CameraNodeParameters,
        cameras: Mapping[str, MountedCamera],
        scene: Scene,
    ) -> Self:
        """Make them with their publishers."""
        return super().__new__(
            cls,
            [
                SimulatedView(
                    node,
                    name,
                    frame_name(node, settings, f'{name}_camera_optical'),
                    mounted.camera.scaled(settings.scale).replace(name=name),
                    mounted.pose,
                    scene,
                    FrameTimes(settings.frame_rate, settings.skew if index else 0.0),
                    seconds_to_nanoseconds(mounted.delay),
                    mounted.line_time / settings.scale,
                    settings.jpeg_quality,
                )
                for index, (name, mounted) in enumerate(cameras.items())
            ],
        )

    def is_heard(self) -> bool:
        """Return whether all reliable subscribers have the images, after a short wait."""
        return all(view.images.is_heard() for view in self)

    def is_watched(self, wanted: int) -> bool:
        """Return whether the images of each camera have a number of subscribers."""
        return all(view.images.subscribers >= wanted for view in self)
