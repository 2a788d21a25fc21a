"""What the nodes of cameras, videos and the tracker share: start, reports, published images."""

from __future__ import annotations

import contextlib
import ctypes
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

import cv2
import numpy as np
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.task import Future
from sensor_msgs.msg import CameraInfo, CompressedImage, Image

from longreach_markers import Camera
from longreach_node import qos
from longreach_node.clock import steady_clock
from longreach_node.frames import frame_name, header_at
from longreach_node.parameters import declare
from longreach_vision.ros.conversions import array_to_image, camera_to_info
from longreach_vision.ros.node_parameters import ImageParameters, StartParameters

PERIOD = 1.0
"""Period of diagnostics [s of wall time]."""

# Parameters of glibc's mallopt.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
# Memory kept, and glibc's largest allowed M_MMAP_THRESHOLD [bytes].
_KEPT, _LARGEST_BLOCK = 256 << 20, 32 << 20


class VisionNode(Node):
    """A node with parameters of a kind, which may change at run time, until it is ``done``."""

    settings: Any

    def __init__(
        self,
        name: str,
        kind: type[StartParameters],
        otherwise: Callable[[Any], Mapping[str, Any]] | None = None,
    ) -> None:
        # Before the middleware has threads.
        _keep_freed_memory()
        super().__init__(name)
        self.done = Future()
        self.settings = declare(self, kind, self.change, otherwise)
        self._born, self._is_late = time.monotonic(), False
        self.create_timer(PERIOD, self.report, clock=steady_clock())

    def change(self, settings: Any) -> None:
        """Continue with parameters that were changed at run time."""
        self.settings = settings

    def report(self) -> None:
        """Publish diagnostics."""
        raise NotImplementedError

    def missing(self, wanted: int, *publishers: Any) -> str:
        """Say which topics lack subscribers at the start; empty for none, or after the wait."""
        topics = [one.topic_name for one in publishers if one.get_subscription_count() < wanted]
        text = f'{wanted} subscribers on {" and ".join(topics)}' if topics else ''
        is_over = time.monotonic() - self._born > self.settings.start_timeout
        if text and is_over and not self._is_late:
            self.get_logger().warning(f'starts without {text}')
        self._is_late = self._is_late or is_over
        return '' if self._is_late else text


class ImagePublishers:
    """Publishers of a camera's images below its name, if any; images only while subscribed to."""

    def __init__(
        self,
        node: VisionNode,
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


def _keep_freed_memory() -> None:
    """Let this process keep freed memory of images, at most 256 MB."""
    # glibc returns such blocks to the system at once, and the page faults of the next image of
    # 5 MB triple the time to receive it.
    if any(name.startswith('MALLOC_') for name in os.environ):
        return
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_BLOCK)
        mallopt(_M_TRIM_THRESHOLD, _KEPT)
        mallopt(_M_TOP_PAD, _LARGEST_BLOCK)
