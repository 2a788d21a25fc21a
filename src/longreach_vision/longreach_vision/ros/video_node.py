"""
Cameras, streams, video files and folders of pictures as ``image_raw`` and ``camera_info``.

Images of each camera, and of all files, are read and published in a separate thread, so that a
slow or blocked camera does not block the node.
"""

from __future__ import annotations

import threading
from collections import deque

from rclpy.node import Node
from rclpy.task import Future

from longreach_markers.camera.files import read_calibration
from longreach_markers.io.image_sources import is_live
from longreach_markers.io.images import keep_freed_memory
from longreach_node import diagnostics
from longreach_node.clock import steady_clock
from longreach_node.parameters import declare
from longreach_node.stamps import stamp_of
from longreach_vision.ros.node_parameters import VideoNodeParameters
from longreach_vision.ros.video_feed import Channel, VideoFeed

# Longest wait for the end of the thread [s].
_JOIN = 2.0


class VideoNode(Node):
    """Node that publishes the images of a camera or file, or of several."""

    def __init__(self) -> None:
        # Before the middleware has threads.
        keep_freed_memory()
        super().__init__('video')
        self.done = Future()
        settings = declare(self, VideoNodeParameters)
        self._stopped = threading.Event()
        self._channels: list[tuple[Channel, diagnostics.Diagnostics]] = []
        # By the camera, or empty for all files.
        groups: dict[str, dict[str, Channel]] = {}
        for name, one in settings.cameras().items():
            # In a launch, the namespace is the name of the camera.
            own = name or self.get_namespace().rpartition('/')[2] or self.get_name()
            camera = read_calibration(one.camera, own) if one.camera else None
            channel = Channel(self, one, camera, name)
            groups.setdefault(own * is_live(one.source), {})[name] = channel
            self._channels.append((channel, diagnostics.Diagnostics(self, one.source, name)))
            self.get_logger().info(f'shows {one.source}; images on {channel.images.topic}')
        feeds = [VideoFeed(self, settings, group, self._stopped) for group in groups.values()]
        self.create_timer(1.0, self._report, clock=steady_clock())
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

    def _report(self) -> None:
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
