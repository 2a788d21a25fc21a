"""Publishers and parameters of a camera: ``image_raw``, ``compressed`` and ``camera_info``."""

from __future__ import annotations

import dataclasses

import numpy as np
from rclpy.duration import Duration
from rclpy.node import Node
from sensor_msgs.msg import CameraInfo, CompressedImage, Image

from longreach_dynamics.parameters import quantity
from longreach_markers.io.compressed_images import jpeg_of
from longreach_node import qos
from longreach_node.frames import FrameParameters


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImageParameters(FrameParameters):
    """Parameters of every node that publishes images."""

    jpeg_quality: int = quantity(
        'quality of image_raw/compressed, which is published while it has subscribers',
        at_least=1,
        at_most=100,
        default=95,
    )
    listeners: int = quantity(
        'number of subscribers of images of each camera for which file, path or marker_truth wait',
        at_least=0,
        default=0,
    )
    start_timeout: float = quantity(
        'longest wait for listeners', 's', at_least=0.0, at_most=1e4, default=10.0
    )


class ImagePublishers:
    """Publishers of a camera's images below its name, if any; JPEG only while subscribed to."""

    def __init__(self, node: Node, camera: str, quality: int) -> None:
        prefix = f'{camera}/' if camera else ''
        self._quality = quality
        create = node.create_publisher
        self._raw = create(Image, f'{prefix}image_raw', qos.IMAGES)
        self._compressed = create(CompressedImage, f'{prefix}image_raw/compressed', qos.IMAGES)
        self._infos = create(CameraInfo, f'{prefix}camera_info', qos.IMAGES)
        self.topic = self._raw.topic_name

    @property
    def subscribers(self) -> int:
        """Number of subscribers of images, raw or compressed."""
        return sum(one.get_subscription_count() for one in (self._raw, self._compressed))

    def publish(self, image: np.ndarray, message: Image, info: CameraInfo) -> None:
        """Publish an image."""
        self.publish_info(info)
        self._raw.publish(message)
        if self._compressed.get_subscription_count():
            # As image_transport writes it.
            form = f'{message.encoding}; jpeg compressed {message.encoding}'
            packed = CompressedImage(header=message.header, format=form)
            packed.data.frombytes(jpeg_of(image, self._quality))
            self._compressed.publish(packed)

    def publish_info(self, info: CameraInfo) -> None:
        """Publish the camera_info of an image that is not published."""
        self._infos.publish(info)

    def is_heard(self, seconds: float = 0.01) -> bool:
        """Return whether all reliable subscribers have all images, after a wait at most [s]."""
        wait = Duration(seconds=seconds)
        return all(one.wait_for_all_acked(wait) for one in (self._raw, self._compressed))
