"""Images of a rig's cameras as they arrive in a node: converted, checked, with intrinsics."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import CameraInfo, CompressedImage, Image

from longreach_dynamics.errors import InputError
from longreach_markers.camera.model import Camera
from longreach_markers.io.images import BitDepth
from longreach_markers.rig import MountedCamera, Rig
from longreach_markers.tracking.follower import size_error
from longreach_vision.ros import conversions
from longreach_vision.ros.node_parameters import TrackerParameters

# Largest number of images waiting for their camera_info at the start.
_EARLY = 6
# Least time between warnings of one kind [s of wall time].
_WARNINGS = 2.0
# Relative change of the focal length, other than that of the height, of images that were cut.
_CUT = 0.1


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
    [ns], image (h, w) of uint8 and frame_id, ``changed`` when intrinsics are new: whether others
    were known. ``heard`` is the arrival of the latest image, or the start, on the monotonic clock
    [s].
    """

    def __init__(
        self,
        node: Node,
        settings: TrackerParameters,
        rig: Rig,
        warn: LimitedWarnings,
        count: Callable[[str, bool], None],
        hand_on: Callable[[str, int, np.ndarray, str], None],
        changed: Callable[[bool], None],
    ) -> None:
        self._mounted, self._scale, self._warn = rig.cameras, settings.scale, warn
        self._count, self._hand_on, self._changed = count, hand_on, changed
        self._logger = node.get_logger()
        suffix = '/compressed' if settings.transport == 'compressed' else ''
        self.topics = {
            camera: str(node.resolve_topic_name(f'{camera}/image_raw{suffix}'))
            for camera in rig.cameras
        }
        self._is_calibrated = settings.calibration == 'rig'
        self._known: dict[str, Camera] = {}
        if self._is_calibrated:
            self._known = {name: one.camera for name, one in rig.cameras.items()}
        self._early: list[tuple[str, int, np.ndarray, str]] = []
        self._encodings: dict[str, str] = {}
        self._depths = {name: BitDepth(settings.bits) for name in rig.cameras}
        self.heard = time.monotonic()

    def cameras(self) -> dict[str, MountedCamera]:
        """Return the cameras of the rig with the current intrinsics."""
        return {
            name: _with_intrinsics(one, self._known.get(name, one.camera))
            for name, one in self._mounted.items()
        }

    def on_info(self, camera: str, message: CameraInfo) -> None:
        """Update the intrinsics of a camera; tracks continue with changed ones."""
        if self._is_calibrated:
            return
        try:
            found = conversions.camera_info_to_camera(message, camera)
        except InputError as error:
            self._warn(f'info {camera}', str(error))
            return
        if found == self._known.get(camera):
            return
        is_known = camera in self._known
        if is_known:
            self._logger.info(f'camera_info of {camera} has changed: tracking continues with it')
        self._known[camera] = found
        own = self._mounted[camera].camera
        if (found.width, found.height) != (own.width, own.height):
            self._warn(
                f'size {camera}',
                f'camera_info of {camera} has {found.width} x {found.height} px, the rig'
                f' {own.width} x {own.height} px: windows and given pixels are those of the rig;'
                ' if images were resized, set scale',
            )
        self._changed(is_known)
        early, self._early = self._early, []
        for image in early:
            self.add(*image)

    def on_image(self, camera: str, message: Image | CompressedImage) -> None:
        """Process an image; one that cannot be used is counted and skipped."""
        try:
            stamp = conversions.image_stamp(message)
            image = conversions.image_to_gray(message, self._depths[camera])
        except InputError as error:
            self._refuse(camera, str(error))
            return
        is_packed = isinstance(message, CompressedImage)
        encoding = message.format if is_packed else message.encoding
        self._note_encoding(camera, image.shape, encoding)
        self.add(camera, stamp, image, message.header.frame_id)

    def _note_encoding(self, camera: str, shape: tuple[int, ...], encoding: str) -> None:
        """Log size and encoding of a camera's images when they are new."""
        if self._encodings.get(camera) == encoding:
            return
        self._encodings[camera] = encoding
        note = self._depths[camera].note
        self._logger.info(
            f'{self.topics[camera]}: {shape[1]} x {shape[0]}, {encoding}{"; " * bool(note)}{note}'
        )

    def add(self, camera: str, stamp: int, image: np.ndarray, frame_id: str = '') -> None:
        """Process an image as an array."""
        self.heard = time.monotonic()
        known = self._known.get(camera)
        if known is None and len(self._early) < _EARLY:
            self._early.append((camera, stamp, image, frame_id))
        elif known is None:
            self._refuse(camera, f'no valid camera_info of {camera} received yet')
        elif image.shape != (known.height, known.width):
            where = 'the rig' if self._is_calibrated else 'camera_info'
            text = size_error(image, known, camera, where=where, scale=self._scale)
            self._refuse(camera, text)
        else:
            self._count(camera, True)
            self._hand_on(camera, stamp, image, frame_id)

    def _refuse(self, camera: str, text: str) -> None:
        """Count an image that cannot be used, and warn."""
        self.heard = time.monotonic()
        self._count(camera, False)
        self._warn(f'image {camera}', f'{self.topics[camera]}: {text}')


def _with_intrinsics(mounted: MountedCamera, camera: Camera) -> MountedCamera:
    """Return a camera of the rig with other intrinsics, those of resized images too."""
    ratio = camera.height / mounted.camera.height
    # A part of the image has the focal length of the whole.
    if abs(camera.fy / mounted.camera.fy / ratio - 1.0) > _CUT:
        ratio = 1.0
    return mounted.resized(camera, ratio)
