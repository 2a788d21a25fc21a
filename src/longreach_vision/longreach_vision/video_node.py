"""
Cameras, streams, video files and folders of pictures as ``image_raw`` and ``camera_info``.

Images are fetched and published in a thread of its own, so that neither a slow camera nor one that
hangs stops the node.
"""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from collections.abc import Callable

import numpy as np
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.task import Future
from sensor_msgs.msg import CameraInfo, Image

from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.parameters import choice, quantity
from longreach_node import diagnostics, qos
from longreach_node.clock import steady_clock
from longreach_node.frames import FrameParameters, frame_name
from longreach_node.parameters import declare
from longreach_node.stamps import stamp_of
from longreach_vision import conversions
from longreach_vision.cameras import read_camera
from longreach_vision.images import keep_freed_memory
from longreach_vision.sources import CaptureOptions, Frame, ImageSource, open_source

__all__ = ['VideoNode', 'VideoNodeParameters']

# A file that is so late [s] goes on from where it is.
_BACKLOG = 0.2
# Longest wait for listeners to have an image [s].
_PATIENCE = 5.0
# Between attempts to open a camera [s].
_RETRY = 0.5
# For the thread to end [s].
_JOIN = 2.0
# From the end of a file to that of the node, which may end all others [s]: listeners have its
# images and still work on them.
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
        'calibration file; empty for none: camera_info then says the size only', '', default=''
    )
    frame_id: str = quantity("the camera's optical frame", '', default='camera_optical')
    encoding: str = choice('of the images', ('mono8', 'bgr8'), default='mono8')
    frame_rate: float = quantity(
        "images per second; 0 for the source's own", 'Hz', at_least=0.0, at_most=1e4, default=0.0
    )
    loop: bool = quantity('begin a file again at its end', default=False)
    pace: str = choice(
        "of a file: its own time, or each image when all reliable listeners' middleware has the"
        ' one before',
        ('real_time', 'delivered'),
        default='real_time',
    )
    stamps: str = choice(
        'of a file: on from now, or as the file says (from 0 on when it does not), alike for'
        ' several cameras',
        ('now', 'source'),
        default='now',
    )
    listeners: int = quantity(
        'a file begins when image_raw has so many', at_least=0, at_most=100, default=0
    )
    start_timeout: float = quantity(
        'longest wait for listeners', 's', at_least=0.0, at_most=1e4, default=10.0
    )
    width: int = quantity(
        "columns that a camera is asked for; 0 for the calibration's, or the camera's own",
        'px',
        at_least=0,
        at_most=100_000,
        default=0,
    )
    height: int = quantity('rows, the same', 'px', at_least=0, at_most=100_000, default=0)
    exposure: float = quantity(
        'exposure time of a camera; 0 is automatic', 's', at_least=0.0, at_most=10.0, default=0.0
    )
    pixel_format: str = quantity(
        "four letters such as GREY, YUYV, MJPG; empty for the camera's own", '', default=''
    )
    bits: int = quantity('that count in pictures of 16 bits', at_least=9, at_most=16, default=16)
    reconnect: float = quantity(
        'so long a camera that does not answer is tried again',
        's',
        at_least=0.0,
        at_most=1e6,
        default=10.0,
    )

    def check(self) -> None:
        """Raise InputError for an empty name of the frame."""
        super().check()
        if not self.frame_id.strip('/ '):
            raise InputError(f'frame_id = {self.frame_id!r}, allowed: the name of a frame')


class VideoNode(Node):
    """Images of a camera or file."""

    def __init__(self) -> None:
        # Before the middleware has threads.
        keep_freed_memory()
        super().__init__('video')
        self.done = Future()
        self._settings = declare(self, VideoNodeParameters)
        self._frame = frame_name(self, self._settings, self._settings.frame_id)
        self._camera = read_camera(self._settings.camera) if self._settings.camera else None
        self._counts = dict.fromkeys(('images', 'late', 'unheard', 'lost_camera'), 0)
        self._waits_for = 'the source'
        # Of the latest image [ns]: a file's diagnostics have its times, as all else that it gives.
        self._latest = 0
        self._message: Image | None = None
        self._diagnostics = diagnostics.Diagnostics(self, self._settings.source)
        self._images = self.create_publisher(Image, 'image_raw', qos.IMAGES)
        self._infos = self.create_publisher(CameraInfo, 'camera_info', qos.IMAGES)
        self.get_logger().info(
            f'shows {self._settings.source}; images on {self._images.topic_name}'
        )
        self.create_timer(1.0, self._report, clock=steady_clock())
        self._end = self.create_guard_condition(self._on_end)
        self._error: Exception | None = None
        self._live: bool | None = None
        self._lost = math.nan
        self._stopped = threading.Event()
        # A driver may hang for ever: the process must be able to end without it.
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def destroy_node(self) -> None:
        """End the thread, then the node."""
        self._stopped.set()
        self._thread.join(_JOIN)
        super().destroy_node()

    def _on_end(self) -> None:
        """End the node as the thread has ended."""
        if self._error is not None:
            raise self._error
        images = self._counts['images']
        self.get_logger().info(f'end of {self._settings.source} after {images} images')
        self.done.set_result(None)

    def _report(self) -> None:
        """Publish diagnostics."""
        level, text = diagnostics.OK, 'publishing'
        if self._waits_for:
            level, text = diagnostics.WARN, f'waiting for {self._waits_for}'
        self._diagnostics.publish(stamp_of(self._latest), level, text, self._counts)

    def _now(self) -> int:
        """Return ROS time [ns]."""
        return int(self.get_clock().now().nanoseconds)

    # --- in the thread -----------------------------------------------------------------------

    def _run(self) -> None:
        """Publish all images; an error is raised again where the node works."""
        try:
            self._feed()
        except Exception as error:  # noqa: BLE001
            self._error = error
        # What a signal has ended needs no second end, and its errors mean nothing.
        if not self._stopped.is_set() and self.context.ok():
            self._end.trigger()

    def _feed(self) -> None:
        """Publish all images, of a camera that was lost as soon as it is there again."""
        while not self._stopped.is_set():
            error = self._show()
            if error is None:
                return
            if not self._may_come_back(error):
                raise error
            self._stopped.wait(_RETRY)

    def _show(self) -> LongreachError | None:
        """Publish images to the end; return the error of a source that cannot be read (on)."""
        try:
            source = self._open()
        except LongreachError as error:
            return error
        with source:
            self._live = source.live
            if not source.live:
                self._wait_for_listeners()
            return self._publish_all(source)

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
            ),
            clock=self._now,
        )

    def _may_come_back(self, error: LongreachError) -> bool:
        """Tell whether what was lost is a camera, and has time left to come back."""
        # A camera that is pulled out is not there, which at the start is bad input.
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
        self.get_logger().warning(
            f'{error}; tried again for {left:.0f} s', throttle_duration_sec=2.0
        )
        return True

    def _wait_for_listeners(self) -> None:
        """Wait until as many listen as shall see the first image of a file."""
        wanted = self._settings.listeners
        self._waits_for = 'listeners'
        end = time.monotonic() + self._settings.start_timeout
        while self._images.get_subscription_count() < wanted:
            if self._stopped.wait(0.02):
                return
            if time.monotonic() > end:
                found = self._images.get_subscription_count()
                self.get_logger().warning(
                    f'{self._images.topic_name} begins with {found} listeners of {wanted}'
                )
                return

    def _publish_all(self, source: ImageSource) -> LongreachError | None:
        """Publish the images of a source, each at its time; return the error of reading."""
        schedule = _Schedule(self._settings, source, self._now)
        frames = iter(source)
        while True:
            # What is wrong with an image that came does not go away by itself.
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
            self._waits_for, self._lost = '', math.nan
            if not source.live and self._settings.pace == 'delivered':
                self._wait_until_heard()
        self._wait_until_heard()
        if not source.live and self._images.get_subscription_count():
            self._stopped.wait(_FAREWELL)
        return None

    def _publish(self, image: np.ndarray, nanoseconds: int) -> None:
        """Publish an image with its camera_info."""
        settings, camera = self._settings, self._camera
        height, width = image.shape[:2]
        if camera and (camera.width, camera.height) != (width, height):
            raise InputError(
                f'{settings.source} gives images of {width} x {height} px, {settings.camera} is'
                f' for {camera.width} x {camera.height} px; calibrate the camera at the size that'
                ' it is used with'
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
        self._infos.publish(info)
        self._images.publish(self._message)
        self._counts['images'] += 1
        self._latest = nanoseconds

    def _wait_until_heard(self) -> None:
        """Wait until the middleware of all reliable listeners has what was published."""
        end = time.monotonic() + _PATIENCE
        while not self._images.wait_for_all_acked(Duration(seconds=0.01)):
            if self._stopped.is_set():
                return
            if time.monotonic() > end:
                self._counts['unheard'] += 1
                return


class _Schedule:
    """
    When frames were taken, and when they are to be published.

    Parameters
    ----------
    settings : VideoNodeParameters
    source : ImageSource
    now : callable
        Gives ROS time [ns].
    """

    def __init__(
        self, settings: VideoNodeParameters, source: ImageSource, now: Callable[[], int]
    ) -> None:
        self._settings, self._source, self._now = settings, source, now
        self._first: int | None = None
        # The first frame's time to be published, by ROS [ns] and on this machine [s].
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
        """Return how long it is until a frame of a file is to be published [s]."""
        since = (self._taken(frame) - (self._first or 0)) * 1e-9
        left = self._begun + since - time.monotonic()
        if left < -_BACKLOG:
            # Not made up for: nobody could follow.
            self._begun -= left
            self.late += 1
        return max(0.0, left)

    def _taken(self, frame: Frame) -> int:
        """Return when a frame of a file was taken, by the file [ns]."""
        rate = self._settings.frame_rate
        if not rate and frame.stamp is not None:
            return frame.stamp
        rate = rate or self._source.frame_rate
        if not rate:
            raise InputError(
                'frame_rate = 0 Hz, allowed for pictures without times in their names: the rate'
                ' that they were taken at'
            )
        return round(frame.number * 1e9 / rate)
