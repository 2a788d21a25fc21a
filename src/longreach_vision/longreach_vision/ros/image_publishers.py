"""Publishers of one camera: ``image_raw``, ``image_raw/compressed`` and ``camera_info``."""

from __future__ import annotations

import numpy as np
from rclpy.duration import Duration
from rclpy.node import Node
from sensor_msgs.msg import CameraInfo, CompressedImage, Image

from longreach_markers.io.compressed_images import jpeg_of
from longreach_node import qos


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

    def is_heard(self) -> bool:
        """Return whether all reliable subscribers have all images, after 10 ms at most."""
        wait = Duration(seconds=0.01)
        return all(one.wait_for_all_acked(wait) for one in (self._raw, self._compressed))
