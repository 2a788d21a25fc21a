"""Images of a rig's cameras as they arrive in a node: converted and checked."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import CompressedImage, Image

from longreach_dynamics.errors import InputError
from longreach_markers.io.images import BitDepth
from longreach_markers.rig import Rig
from longreach_markers.tracking.follower import size_error
from longreach_node.stamps import nanoseconds_from
from longreach_vision.io.bag_files import image_to_gray
from longreach_vision.ros.node_parameters import TrackerParameters

# Least time between warnings of one kind [s of wall time].
_WARNINGS = 2.0


class LimitedWarnings:
    """Warnings in the log of a node, of each kind one in 2 s at most."""

    def __init__(self, node: Node) -> None:
        self._logger = node.get_logger()
        self._latest: dict[str, float] = {}

    def __call__(self, kind: str, text: str) -> None:
        """Warn, unless there was a warning of this kind just now."""
        now = time.monotonic()
        if now - self._latest.get(kind, -math.inf) > _WARNINGS:
            self._latest[kind] = now
            self._logger.warning(text)


class ImageIntake:
    """
    Takes the messages of a rig's cameras, and hands on the images that can be tracked.

    ``count`` is called with camera and usability of each image, ``hand_on`` with camera, stamp
    [ns], image (h, w) of uint8 and frame_id. ``heard`` is the arrival of the latest image, or the
    start, on the monotonic clock [s].
    """

    def __init__(
        self,
        node: Node,
        settings: TrackerParameters,
        rig: Rig,
        warn: LimitedWarnings,
        count: Callable[[str, bool], None],
        hand_on: Callable[[str, int, np.ndarray, str], None],
    ) -> None:
        self._mounted, self._scale, self._warn = rig.cameras, settings.scale, warn
        self._count, self._hand_on = count, hand_on
        self._logger = node.get_logger()
        suffix = '/compressed' if settings.transport == 'compressed' else ''
        self.topics = {
            camera: str(node.resolve_topic_name(f'{camera}/image_raw{suffix}'))
            for camera in rig.cameras
        }
        self._encodings: dict[str, str] = {}
        self._depths = {name: BitDepth() for name in rig.cameras}
        self.heard = time.monotonic()

    def on_image(self, camera: str, message: Image | CompressedImage) -> None:
        """Process an image; one that cannot be used is counted and skipped."""
        try:
            stamp = nanoseconds_from(message.header.stamp, "the driver's stamp")
            image = image_to_gray(message, self._depths[camera])
        except InputError as error:
            self._refuse(camera, str(error))
            return
        is_packed = isinstance(message, CompressedImage)
        encoding = message.format if is_packed else message.encoding
        if self._encodings.get(camera) != encoding:
            self._encodings[camera] = encoding
            note = self._depths[camera].note
            size = f'{image.shape[1]} x {image.shape[0]}'
            text = f'{self.topics[camera]}: {size}, {encoding}{"; " * bool(note)}{note}'
            self._logger.info(text)
        self.add(camera, stamp, image, message.header.frame_id)

    def add(self, camera: str, stamp: int, image: np.ndarray, frame_id: str = '') -> None:
        """Process an image as an array."""
        self.heard = time.monotonic()
        known = self._mounted[camera].camera
        if image.shape != (known.height, known.width):
            self._refuse(camera, size_error(image, known, camera, scale=self._scale))
        else:
            self._count(camera, True)
            self._hand_on(camera, stamp, image, frame_id)

    def _refuse(self, camera: str, text: str) -> None:
        self.heard = time.monotonic()
        self._count(camera, False)
        self._warn(f'image {camera}', f'{self.topics[camera]}: {text}')
