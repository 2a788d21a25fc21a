"""
Images of a camera or file, published each at its time; runs in a thread of its own.

A camera that is lost is opened again; a file waits for its listeners.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import Image

from longreach_dynamics.errors import InputError, LongreachError
from longreach_markers.camera.model import Camera
from longreach_markers.io.camera_images import CaptureOptions
from longreach_markers.io.image_sources import open_source
from longreach_markers.io.source_base import Frame, ImageSource
from longreach_node.frames import frame_name
from longreach_node.stamps import stamp_of
from longreach_vision.ros import conversions
from longreach_vision.ros.image_publishers import ImagePublishers
from longreach_vision.ros.node_parameters import VideoNodeParameters

RETRY = 0.5
"""Time between attempts to open a camera [s]."""

# Delay of a file after which it continues from the present time instead of catching up [s].
_BACKLOG = 0.2
# Longest wait for listeners to receive an image [s].
_PATIENCE = 5.0
# Time between the end of a file and the end of the node, which may end the launch [s], so that
# listeners can process the last images.
_FAREWELL = 2.0


class Beginning:
    """When feeds of files begin together, the earliest first: ``count`` of them wait for all."""

    def __init__(self, count: int, now: Callable[[], int]) -> None:
        self._firsts: list[int] = []
        self._now, self._all = now, threading.Barrier(count, self._set)

    def _set(self) -> None:
        self._found = min(self._firsts), self._now(), time.monotonic()

    def wait(self, first: int) -> tuple[int, int, float]:
        """Return earliest time of a first frame, ROS time then [ns], monotonic clock [s]."""
        self._firsts.append(first)
        with contextlib.suppress(threading.BrokenBarrierError):
            self._all.wait()
            return self._found
        return first, self._now(), time.monotonic()

    def leave(self) -> None:
        """Let the others begin, each with its own first frame."""
        self._all.abort()


class VideoFeed:
    """
    Reads the images of a source and publishes them, below the name of the camera if any.

    ``place`` is that of its pictures among those of all sources, as ``places_of`` returns it;
    ``beginning`` that of all files.
    ``stopped`` ends :meth:`run`. For diagnostics: ``counts``, ``waits_for`` (empty for nothing),
    ``latest`` stamp [ns], ``notes`` on the images and controls that the camera ``refused``.
    """

    def __init__(
        self,
        node: Node,
        settings: VideoNodeParameters,
        camera: Camera | None,
        stopped: threading.Event,
        name: str = '',
        place: tuple[int, int, int] = (0, 1, 1),
        beginning: Beginning | None = None,
    ) -> None:
        self._node, self._settings, self._camera, self._stopped = node, settings, camera, stopped
        self._place, self.beginning = place, beginning or Beginning(1, self._now)
        self.source = settings.source
        self._frame = frame_name(node, settings, settings.frame_id)
        self.images = ImagePublishers(node, name, settings.jpeg_quality)
        self.counts = dict.fromkeys(('images', 'late', 'unheard', 'lost_camera', 'damaged'), 0)
        self.waits_for = 'the source'
        self.latest = 0
        self.notes: list[str] = []
        self.refused: list[str] = []
        self._message: Image | None = None
        self._live: bool | None = None
        self._lost = math.nan

    def _now(self) -> int:
        return int(self._node.get_clock().now().nanoseconds)

    def run(self) -> None:
        """Publish all images; reconnect to a camera that was lost."""
        while not self._stopped.is_set():
            error = self._show()
            if error is None:
                return
            if not self._may_come_back(error):
                raise error
            self._stopped.wait(RETRY)

    def _show(self) -> LongreachError | None:
        try:
            source = self._open()
        except LongreachError as error:
            return error
        with source:
            self._live = source.live
            for text in (source.lossy, *source.refused):
                if text:
                    self._node.get_logger().warning(text)
            self.refused = source.refused
            if not source.live:
                self._wait_for_listeners()
            found = self._publish_all(source)
            self.notes = source.notes
            return found

    def _open(self) -> ImageSource:
        settings, camera = self._settings, self._camera
        return open_source(
            settings.source,
            color=settings.encoding == 'bgr8',
            capture=CaptureOptions(
                settings.width or (camera.width if camera else 0),
                settings.height or (camera.height if camera else 0),
                settings.frame_rate,
                settings.exposure,
                settings.pixel_format,
                settings.focus,
                settings.focus_lock,
            ),
            clock=self._now,
        )

    def _may_come_back(self, error: LongreachError) -> bool:
        # A missing camera is an input error at the start, but may have been unplugged later.
        if self._live is False or (self._live is None and isinstance(error, InputError)):
            return False
        now = time.monotonic()
        if math.isnan(self._lost):
            self._lost = now
            self.counts['lost_camera'] += 1
        left = self._settings.reconnect - (now - self._lost)
        if left <= 0.0:
            return False
        self.waits_for = 'the camera'
        self._node.get_logger().warning(
            f'{error}; retrying for {left:.0f} s', throttle_duration_sec=2.0
        )
        return True

    def _wait_for_listeners(self) -> None:
        wanted = self._settings.listeners
        self.waits_for = 'listeners'
        end = time.monotonic() + self._settings.start_timeout
        while self.images.subscribers < wanted:
            if self._stopped.wait(0.02):
                return
            if time.monotonic() > end:
                self._node.get_logger().warning(
                    f'{self.images.topic} starts with {self.images.subscribers} of {wanted}'
                    ' listeners'
                )
                return

    def _publish_all(self, source: ImageSource) -> LongreachError | None:
        """Publish the images of a source, each at its time; return a read error."""
        schedule = _Schedule(self._settings, source, self.beginning, self._place)
        frames = iter(source)
        while True:
            # An error of an image itself is permanent.
            try:
                frame = next(frames, None)
            except LongreachError as error:
                return error
            if frame is None:
                break
            stamp = schedule.stamp(frame)
            if not source.live and self._settings.pace == 'real_time':
                self._stopped.wait(schedule.left(frame))
                self.counts['late'] = schedule.late
            if self._stopped.is_set():
                return None
            self._publish(frame.image, stamp)
            self.counts['damaged'] = len(source.damaged)
            self.waits_for, self._lost = '', math.nan
            if not source.live and self._settings.pace == 'delivered':
                self._wait_until_heard()
        self._wait_until_heard()
        if not source.live and self.images.subscribers:
            self._stopped.wait(_FAREWELL)
        return None

    def _publish(self, image: np.ndarray, nanoseconds: int) -> None:
        settings, camera = self._settings, self._camera
        height, width = image.shape[:2]
        if camera and (camera.width, camera.height) != (width, height):
            raise InputError(
                f'{settings.source} gives images of {width} x {height} px, {settings.camera} is'
                f' for {camera.width} x {camera.height} px; calibrate the camera at the image size'
                ' in use'
            )
        header = stamp_of(nanoseconds), self._frame
        info = (
            conversions.camera_to_info(camera, *header)
            if camera
            else conversions.size_to_info(width, height, *header)
        )
        self._message = conversions.array_to_image(
            image, settings.encoding, *header, self._message
        )
        self.images.publish(image, self._message, info)
        self.counts['images'] += 1
        self.latest = nanoseconds

    def _wait_until_heard(self) -> None:
        end = time.monotonic() + _PATIENCE
        while not self.images.is_heard():
            if self._stopped.is_set():
                return
            if time.monotonic() > end:
                self.counts['unheard'] += 1
                return


class _Schedule:
    """Times at which frames were taken, and at which they are to be published."""

    def __init__(
        self,
        settings: VideoNodeParameters,
        source: ImageSource,
        beginning: Beginning,
        place: tuple[int, int, int],
    ) -> None:
        self._settings, self._source, self._place = settings, source, place
        self._beginning = beginning
        self._first: int | None = None
        # Publication time of the first frame, in ROS time [ns] and by the monotonic clock [s].
        self._start, self._begun = 0, 0.0
        self.late = 0

    def stamp(self, frame: Frame) -> int:
        if self._source.live and frame.stamp is not None:
            return frame.stamp
        taken = self._taken(frame)
        if self._first is None:
            self._first, self._start, self._begun = self._beginning.wait(taken)
        return taken if self._settings.stamps == 'source' else self._start + taken - self._first

    def left(self, frame: Frame) -> float:
        since = (self._taken(frame) - (self._first or 0)) * 1e-9
        left = self._begun + since - time.monotonic()
        if left < -_BACKLOG:
            # A delay is not caught up: listeners could not keep up.
            self._begun -= left
            self.late += 1
        return max(0.0, left)

    def _taken(self, frame: Frame) -> int:
        rate = self._settings.frame_rate
        if not rate and frame.stamp is not None:
            return frame.stamp
        rate = rate or self._source.frame_rate
        if not rate:
            raise InputError(
                'frame_rate = 0 Hz, allowed for pictures without times in their names: the rate'
                ' at which they were taken'
            )
        first, step, unit = self._place
        return round((first + step * frame.number) / unit * 1e9 / rate)
