"""
Cameras, streams, video files and folders of pictures as ``image_raw`` and ``camera_info``.

Images are read and published in a separate thread, so that a slow or blocked camera does not block
the node.
"""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from collections.abc import Callable

import numpy as np
from rclpy.node import Node
from rclpy.task import Future
from sensor_msgs.msg import Image

from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.parameters import choice, quantity
from longreach_node import diagnostics
from longreach_node.clock import steady_clock
from longreach_node.companions import Companions
from longreach_node.frames import FrameParameters, frame_name
from longreach_node.parameters import declare
from longreach_node.stamps import stamp_of
from longreach_vision.camera.model import read_calibration
from longreach_vision.io.image_sources import CaptureOptions, Frame, ImageSource, open_source
from longreach_vision.io.images import keep_freed_memory
from longreach_vision.ros import conversions
from longreach_vision.ros.image_publishers import JPEG_QUALITY, ImagePublishers

__all__ = ['VideoNode', 'VideoNodeParameters']

# Delay of a file after which it continues from the present time instead of catching up [s].
_BACKLOG = 0.2
# Longest wait for listeners to receive an image [s].
_PATIENCE = 5.0
# Time between attempts to open a camera [s].
_RETRY = 0.5
# Longest wait for the end of the thread [s].
_JOIN = 2.0
# Time between the end of a file and the end of the node, which may end the launch [s], so that
# listeners can process the last images.
_FAREWELL = 2.0


@dataclasses.dataclass(frozen=True)
class VideoNodeParameters(FrameParameters):
    """Parameters of the video node."""

    source: str = quantity(
        "camera (/dev/video0, or its number as a text: '0'), address of a stream, video file,"
        ' picture, folder, or pattern of pictures',
        '',
    )
    camera: str = quantity(
        'calibration file; empty for none: camera_info then has the size only', '', default=''
    )
    frame_id: str = quantity('optical frame of the camera', '', default='camera_optical')
    encoding: str = choice('encoding of the images', ('mono8', 'bgr8'), default='mono8')
    frame_rate: float = quantity(
        "images per second; 0 for the source's own", 'Hz', at_least=0.0, at_most=1e4, default=0.0
    )
    loop: bool = quantity('start a file again at its end', default=False)
    pace: str = choice(
        'timing of a file: its own times, or each image as soon as the reliable listeners have the'
        ' previous one',
        ('real_time', 'delivered'),
        default='real_time',
    )
    stamps: str = choice(
        'stamps of a file: from now on, or its own times (from 0 if it has none), for several'
        ' synchronised cameras',
        ('now', 'source'),
        default='now',
    )
    jpeg_quality: int = quantity(
        'quality of image_raw/compressed, which is published while it has subscribers',
        at_least=1,
        at_most=100,
        default=JPEG_QUALITY,
    )
    listeners: int = quantity(
        'number of subscribers of images at which a file starts',
        at_least=0,
        at_most=100,
        default=0,
    )
    start_timeout: float = quantity(
        'longest wait for listeners', 's', at_least=0.0, at_most=1e4, default=10.0
    )
    width: int = quantity(
        "requested image width of a camera; 0 for that of the calibration, or the camera's"
        ' default',
        'px',
        at_least=0,
        at_most=100_000,
        default=0,
    )
    height: int = quantity(
        'requested image height, likewise', 'px', at_least=0, at_most=100_000, default=0
    )
    exposure: float = quantity(
        'exposure time of a camera; 0: automatic', 's', at_least=0.0, at_most=10.0, default=0.0
    )
    pixel_format: str = quantity(
        "four letters such as GREY, YUYV, MJPG; empty for the camera's default", '', default=''
    )
    bits: int = quantity(
        'significant bits of 16-bit pictures, from 9 on; 0: as many as the largest value needs',
        at_least=0,
        at_most=16,
        default=0,
    )
    companions: int = quantity(
        'number of other video nodes in the namespace above that must reach their ends before this'
        ' node ends, so that the end of a shorter file does not end the launch',
        at_least=0,
        at_most=100,
        default=0,
    )
    focus: float = quantity(
        'position of the lens of a camera in units of the driver, without autofocus; -1: as it is',
        at_least=-1.0,
        at_most=1e6,
        default=-1.0,
    )
    focus_lock: bool = quantity(
        'switch the autofocus of a camera off, and leave its lens where it is', default=False
    )
    reconnect: float = quantity(
        'time during which connecting to a lost camera is retried, after which the node ends',
        's',
        at_least=0.0,
        at_most=1e6,
        default=1e6,
    )

    def check(self) -> None:
        """Raise InputError for an empty frame name."""
        super().check()
        if not self.frame_id.strip('/ '):
            raise InputError(f'frame_id = {self.frame_id!r}, allowed: the name of a frame')


class VideoNode(Node):
    """Node that publishes the images of a camera or file."""

    def __init__(self) -> None:
        # Before the middleware has threads.
        keep_freed_memory()
        super().__init__('video')
        self.done = Future()
        self._settings = declare(self, VideoNodeParameters)
        self._frame = frame_name(self, self._settings, self._settings.frame_id)
        # In a launch, the namespace is the name of the camera.
        name = self.get_namespace().rpartition('/')[2] or self.get_name()
        file = self._settings.camera
        self._camera = read_calibration(file, name) if file else None
        self._counts = dict.fromkeys(('images', 'late', 'unheard', 'lost_camera', 'damaged'), 0)
        self._waits_for = 'the source'
        # Stamp of the latest image [ns], used for diagnostics of a file.
        self._latest = 0
        self._message: Image | None = None
        self._diagnostics = diagnostics.Diagnostics(self, self._settings.source)
        self._images = ImagePublishers(self, '', self._settings.jpeg_quality)
        self.get_logger().info(f'shows {self._settings.source}; images on {self._images.topic}')
        self.create_timer(1.0, self._report, clock=steady_clock())
        self._end = self.create_guard_condition(self._on_end)
        above = self.get_namespace().rpartition('/')[0]
        self._companions = Companions(self, self._settings.companions, f'{above}/finished_videos')
        self._error: Exception | None = None
        self._live: bool | None = None
        self._notes: list[str] = []
        self._refused: list[str] = []
        self._lost = math.nan
        self._stopped = threading.Event()
        # A driver may block for ever; the process must be able to end nevertheless.
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def destroy_node(self) -> None:
        """End the thread, then the node."""
        self._stopped.set()
        self._thread.join(_JOIN)
        super().destroy_node()

    def _on_end(self) -> None:
        """End the node when the thread has ended."""
        if self._error is not None:
            raise self._error
        images = self._counts['images']
        self.get_logger().info(f'end of {self._settings.source} after {images} images')
        for text in self._notes:
            self.get_logger().warning(text)
        self._companions.tell()
        self._waits_for = 'the other videos'
        self._wait_for_companions()
        self.create_timer(_RETRY, self._wait_for_companions, clock=steady_clock())

    def _wait_for_companions(self) -> None:
        """End the node once the others are at their ends."""
        if not self._companions.missing() and not self.done.done():
            self.done.set_result(None)

    def _report(self) -> None:
        """Publish diagnostics."""
        level, text = diagnostics.OK, 'publishing'
        if self._waits_for:
            level, text = diagnostics.WARN, f'waiting for {self._waits_for}'
        if self._refused:
            level, text = diagnostics.WARN, '; '.join([text, *self._refused])
        self._diagnostics.publish(stamp_of(self._latest), level, text, self._counts)

    def _now(self) -> int:
        """Return ROS time [ns]."""
        return int(self.get_clock().now().nanoseconds)

    # --- in the thread -----------------------------------------------------------------------

    def _run(self) -> None:
        """Publish all images; errors are raised again in the node's thread."""
        try:
            self._feed()
        except Exception as error:  # noqa: BLE001
            self._error = error
        # After a signal, errors are irrelevant.
        if not self._stopped.is_set() and self.context.ok():
            self._end.trigger()

    def _feed(self) -> None:
        """Publish all images; reconnect to a camera that was lost."""
        while not self._stopped.is_set():
            error = self._show()
            if error is None:
                return
            if not self._may_come_back(error):
                raise error
            self._stopped.wait(_RETRY)

    def _show(self) -> LongreachError | None:
        """Publish images to the end; return the error of a source that cannot be read any more."""
        try:
            source = self._open()
        except LongreachError as error:
            return error
        with source:
            self._live = source.live
            for text in (source.lossy, *source.refused):
                if text:
                    self.get_logger().warning(text)
            self._refused = source.refused
            if not source.live:
                self._wait_for_listeners()
            found = self._publish_all(source)
            self._notes = source.notes
            return found

    def _open(self) -> ImageSource:
        """Open the source."""
        settings, camera = self._settings, self._camera
        return open_source(
            settings.source,
            color=settings.encoding == 'bgr8',
            loop=settings.loop,
            bits=settings.bits,
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
        """Return whether a lost camera may still come back in time."""
        # A missing camera is an input error at the start, but may have been unplugged later.
        if self._live is False or (self._live is None and isinstance(error, InputError)):
            return False
        now = time.monotonic()
        if math.isnan(self._lost):
            self._lost = now
            self._counts['lost_camera'] += 1
        left = self._settings.reconnect - (now - self._lost)
        if left <= 0.0:
            return False
        self._waits_for = 'the camera'
        self.get_logger().warning(f'{error}; retrying for {left:.0f} s', throttle_duration_sec=2.0)
        return True

    def _wait_for_listeners(self) -> None:
        """Wait for the required number of subscribers before a file starts."""
        wanted = self._settings.listeners
        self._waits_for = 'listeners'
        end = time.monotonic() + self._settings.start_timeout
        while self._images.subscribers < wanted:
            if self._stopped.wait(0.02):
                return
            if time.monotonic() > end:
                self.get_logger().warning(
                    f'{self._images.topic} starts with {self._images.subscribers} of {wanted}'
                    ' listeners'
                )
                return

    def _publish_all(self, source: ImageSource) -> LongreachError | None:
        """Publish the images of a source, each at its time; return a read error."""
        schedule = _Schedule(self._settings, source, self._now)
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
                self._counts['late'] = schedule.late
            if self._stopped.is_set():
                return None
            self._publish(frame.image, stamp)
            self._counts['damaged'] = len(source.damaged)
            self._waits_for, self._lost = '', math.nan
            if not source.live and self._settings.pace == 'delivered':
                self._wait_until_heard()
        self._wait_until_heard()
        if not source.live and self._images.subscribers:
            self._stopped.wait(_FAREWELL)
        return None

    def _publish(self, image: np.ndarray, nanoseconds: int) -> None:
        """Publish an image with its camera_info."""
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
        self._images.publish(image, self._message, info)
        self._counts['images'] += 1
        self._latest = nanoseconds

    def _wait_until_heard(self) -> None:
        """Wait until the reliable listeners have received the published image."""
        end = time.monotonic() + _PATIENCE
        while not self._images.is_heard():
            if self._stopped.is_set():
                return
            if time.monotonic() > end:
                self._counts['unheard'] += 1
                return


class _Schedule:
    """
    Times at which frames were taken, and at which they are to be published.

    Parameters
    ----------
    settings : VideoNodeParameters
    source : ImageSource
    now : callable
        Returns ROS time [ns].
    """

    def __init__(
        self, settings: VideoNodeParameters, source: ImageSource, now: Callable[[], int]
    ) -> None:
        self._settings, self._source, self._now = settings, source, now
        self._first: int | None = None
        # Publication time of the first frame, in ROS time [ns] and by the monotonic clock [s].
        self._start, self._begun = 0, 0.0
        self.late = 0

    def stamp(self, frame: Frame) -> int:
        """Return the stamp of a frame [ns]."""
        if self._source.live and frame.stamp is not None:
            return frame.stamp
        taken = self._taken(frame)
        if self._first is None:
            self._first, self._start, self._begun = taken, self._now(), time.monotonic()
        return taken if self._settings.stamps == 'source' else self._start + taken - self._first

    def left(self, frame: Frame) -> float:
        """Return the time until a frame of a file is to be published [s]."""
        since = (self._taken(frame) - (self._first or 0)) * 1e-9
        left = self._begun + since - time.monotonic()
        if left < -_BACKLOG:
            # A delay is not caught up: listeners could not keep up.
            self._begun -= left
            self.late += 1
        return max(0.0, left)

    def _taken(self, frame: Frame) -> int:
        """Return the time of a frame of a file [ns]."""
        rate = self._settings.frame_rate
        if not rate and frame.stamp is not None:
            return frame.stamp
        rate = rate or self._source.frame_rate
        if not rate:
            raise InputError(
                'frame_rate = 0 Hz, allowed for pictures without times in their names: the rate'
                ' at which they were taken'
            )
        return round(frame.number * 1e9 / rate)
