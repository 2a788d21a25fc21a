"""Publishers of one camera: ``image_raw``, ``image_raw/compressed`` and ``camera_info``."""

from __future__ import annotations

import cv2
import numpy as np
from rclpy.duration import Duration
from rclpy.node import Node
from sensor_msgs.msg import CameraInfo, CompressedImage, Image

from longreach_markers import Camera
from longreach_node import qos
from longreach_node.frames import frame_name, header_at
from longreach_vision.ros.conversions import array_to_image, camera_to_info
from longreach_vision.ros.node_parameters import ImageParameters


class ImagePublishers:
    """Publishers of a camera's images below its name, if any; images only while subscribed to."""

    def __init__(
        self,
        node: Node,
        settings: ImageParameters,
        name: str,
        camera: Camera | None,
        frame: str,
        encoding: str = 'mono8',
    ) -> None:
        self._settings, self._camera, self._encoding = settings, camera, encoding
        self._frame = frame_name(node, settings, frame)
        prefix, create = f'{name}/' if name else '', node.create_publisher
        self._raw = create(Image, f'{prefix}image_raw', qos.IMAGES)
        self._compressed = create(CompressedImage, f'{prefix}image_raw/compressed', qos.IMAGES)
        self._infos = create(CameraInfo, f'{prefix}camera_info', qos.IMAGES)
        self.topic_name = self._raw.topic_name
        self._message = Image()

    def get_subscription_count(self) -> int:
        """Return the number of subscribers of images, raw or compressed."""
        return sum(one.get_subscription_count() for one in (self._raw, self._compressed))

    def publish(self, image: np.ndarray, stamp: int) -> None:
        """Publish an image with its stamp [ns]."""
        header = header_at(stamp, self._frame)
        self._infos.publish(camera_to_info(self._camera, image.shape, header))
        if self._raw.get_subscription_count():
            self._raw.publish(array_to_image(image, self._encoding, header, self._message))
        if self._compressed.get_subscription_count():
            # As image_transport writes it.
            form = f'{self._encoding}; jpeg compressed {self._encoding}'
            packed = CompressedImage(header=header, format=form)
            quality = cv2.IMWRITE_JPEG_QUALITY, self._settings.jpeg_quality
            packed.data.frombytes(cv2.imencode('.jpg', image, quality)[1])
            self._compressed.publish(packed)

    def is_heard(self) -> bool:
        """Return whether all reliable subscribers have all images, after 10 ms at most."""
        wait = Duration(seconds=0.01)
        return all(one.wait_for_all_acked(wait) for one in (self._raw, self._compressed))
