"""
Cameras, streams, video files and folders of pictures as ``image_raw`` and ``camera_info``.

Each camera, and all files, have a thread: a blocked camera does not block the node.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping

import numpy as np

from longreach_dynamics.errors import InputError, LongreachError
from longreach_markers import (
    Camera,
    CaptureOptions,
    ImageSource,
    is_live,
    open_source,
    pictures_of,
    read_camera,
)
from longreach_node import diagnostics
from longreach_node.stamps import stamp_of
from longreach_vision.ros.node_parameters import VideoNodeParameters
from longreach_vision.ros.vision_node import ImagePublishers, VisionNode

RETRY = 0.5
"""Time between attempts to open a camera [s]."""

# Delay of files after which they continue from the present time instead of catching up [s].
_BACKLOG = 0.2
# Longest wait for listeners to receive an image [s].
_PATIENCE = 5.0
# Time between the end of files and the end of the node, which may end the launch [s], so that
# listeners can process the last images.
_FAREWELL = 2.0


class Channel(ImagePublishers):
    """What is published of one camera, below its name if any, with its diagnostics."""

    def __init__(
        self, node: VisionNode, settings: VideoNodeParameters, camera: Camera | None, name: str
    ) -> None:
        super().__init__(node, settings, name, camera, settings.frame_id, settings.encoding)
        self._own, self.source = settings, settings.source
        self.counts = dict.fromkeys(('images', 'late', 'unheard', 'lost_camera', 'damaged'), 0)
        self.waits_for = 'the source'
        self.latest = 0  # stamp [ns]
        self.refused: list[str] = []  # controls of the camera

    def open(self, clock: Callable[[], int]) -> ImageSource:
        """Open the source of the images."""
        settings, camera = self._own, self._camera
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
            clock=clock,
        )

    def publish(self, image: np.ndarray, stamp: int) -> None:
        """Publish an image with its stamp [ns]."""
        settings, camera = self._own, self._camera
        height, width = image.shape[:2]
        if camera and (camera.width, camera.height) != (width, height):
            raise InputError(
                f'{settings.source} gives images of {width} x {height} px, {settings.camera} is'
                f' for {camera.width} x {camera.height} px; calibrate the camera at the image size'
                ' in use'
            )
        super().publish(image, stamp)
        self.counts['images'] += 1
        self.latest, self.waits_for = stamp, ''


class VideoFeed:
    """Reads and publishes the images of one camera, or of files in the order of time."""

    def __init__(
        self,
        node: VisionNode,
        channels: Mapping[str, Channel],
        stopped: threading.Event,
    ) -> None:
        self._node, self._settings, self._stopped = node, node.settings, stopped
        self.channels = channels
        self.notes: list[str] = []
        self._live = any(is_live(one.source) for one in channels.values())
        self._was_open = False
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
        with contextlib.ExitStack() as stack:
            try:
                sources = {
                    name: stack.enter_context(one.open(self._now))
                    for name, one in self.channels.items()
                }
            except LongreachError as error:
                return error
            self._was_open = True
            for name, source in sources.items():
                for text in filter(None, (source.lossy, *source.refused)):
                    self._node.get_logger().warning(text)
                self.channels[name].refused = source.refused
            if not self._live:
                for one in self.channels.values():
                    one.waits_for = 'listeners'
                while self._node.missing(self._settings.listeners, *self.channels.values()):
                    if self._stopped.wait(0.02):
                        break
            found = self._publish_all(sources)
            self.notes = [note for source in sources.values() for note in source.notes]
            return found

    def _may_come_back(self, error: LongreachError) -> bool:
        # A missing camera is an input error at the start, but may have been unplugged later.
        if not self._live or (isinstance(error, InputError) and not self._was_open):
            return False
        (channel,) = self.channels.values()
        now = time.monotonic()
        if math.isnan(self._lost):
            self._lost = now
            channel.counts['lost_camera'] += 1
        left = self._settings.reconnect - (now - self._lost)
        if left <= 0.0:
            return False
        channel.waits_for = 'the camera'
        self._node.get_logger().warning(
            f'{error}; retrying for {left:.0f} s', throttle_duration_sec=2.0
        )
        return True

    def _publish_all(self, sources: Mapping[str, ImageSource]) -> LongreachError | None:
        """Publish the images of sources, each at its time; return a read error."""
        settings, is_file = self._settings, not self._live
        pictures = pictures_of(sources, settings.frame_rate * is_file or None, from_zero=False)
        # Time of the first image, and when it was published, by the clock [ns] and monotonic [s].
        first, start, begun = -1, 0, 0.0
        while True:
            # An error of an image itself is permanent.
            try:
                picture = next(pictures, None)
            except LongreachError as error:
                return error
            if picture is None:
                break
            channel, stamp = self.channels[picture.camera], picture.stamp
            if first < 0:
                first, start, begun = stamp, self._now(), time.monotonic()
            if is_file and settings.pace == 'real_time':
                left = begun + (stamp - first) * 1e-9 - time.monotonic()
                if left < -_BACKLOG:
                    # A delay is not caught up: listeners could not keep up.
                    begun -= left
                    channel.counts['late'] += 1
                self._stopped.wait(max(0.0, left))
            if self._stopped.is_set():
                return None
            is_now = is_file and settings.stamps == 'now'
            channel.publish(picture.image, stamp + (start - first) * is_now)
            channel.counts['damaged'] = len(sources[picture.camera].damaged)
            self._lost = math.nan
            if is_file and settings.pace == 'delivered':
                self._wait_until_heard(channel)
        for channel in self.channels.values():
            self._wait_until_heard(channel)
        if is_file and any(one.get_subscription_count() for one in self.channels.values()):
            self._stopped.wait(_FAREWELL)
        return None

    def _wait_until_heard(self, channel: Channel) -> None:
        end = time.monotonic() + _PATIENCE
        while not channel.is_heard():
            if self._stopped.is_set():
                return
            if time.monotonic() > end:
                channel.counts['unheard'] += 1
                return


# Longest wait for the end of the thread [s].
_JOIN = 2.0


class VideoNode(VisionNode):
    """Node that publishes the images of a camera or file, or of several."""

    def __init__(self) -> None:
        super().__init__('video', VideoNodeParameters)
        self._stopped = threading.Event()
        self._channels: list[tuple[Channel, diagnostics.Diagnostics]] = []
        # By the camera, or empty for all files.
        groups: dict[str, dict[str, Channel]] = {}
        for name, one in self.settings.cameras().items():
            # In a launch, the namespace is the name of the camera.
            own = name or self.get_namespace().rpartition('/')[2] or self.get_name()
            camera = read_camera(one.camera, own) if one.camera else None
            channel = Channel(self, one, camera, name)
            groups.setdefault(own * is_live(one.source), {})[name] = channel
            self._channels.append((channel, diagnostics.Diagnostics(self, one.source, name)))
            self.get_logger().info(f'shows {one.source}; images on {channel.topic_name}')
        feeds = [VideoFeed(self, group, self._stopped) for group in groups.values()]
        self._end = self.create_guard_condition(self._on_end)
        self._error: Exception | None = None
        self._ended: deque[VideoFeed] = deque()
        self._running = len(feeds)
        # A driver may block for ever; the process must be able to end nevertheless.
        self._threads = [
            threading.Thread(target=self._run, args=(feed,), daemon=True) for feed in feeds
        ]
        for thread in self._threads:
            thread.start()

    def destroy_node(self) -> None:
        """End the threads, then the node."""
        self._stopped.set()
        for thread in self._threads:
            thread.join(_JOIN)
        super().destroy_node()

    def _on_end(self) -> None:
        if self._error is not None:
            raise self._error
        while self._ended:
            feed = self._ended.popleft()
            for one in feed.channels.values():
                self.get_logger().info(f'end of {one.source} after {one.counts["images"]} images')
                one.waits_for = 'the other videos'
            for text in feed.notes:
                self.get_logger().warning(text)
            self._running -= 1
        if not self._running and not self.done.done():
            self.done.set_result(None)

    def report(self) -> None:
        """Publish diagnostics of each camera."""
        for one, report in self._channels:
            level, text = diagnostics.OK, 'publishing'
            if one.waits_for:
                level, text = diagnostics.WARN, f'waiting for {one.waits_for}'
            if one.refused:
                level, text = diagnostics.WARN, '; '.join([text, *one.refused])
            report.publish(stamp_of(one.latest), level, text, one.counts)

    def _run(self, feed: VideoFeed) -> None:
        try:
            feed.run()
        except Exception as error:  # noqa: BLE001
            self._error = self._error or error
        self._ended.append(feed)
        # After a signal, errors are irrelevant.
        if not self._stopped.is_set() and self.context.ok():
            self._end.trigger()
