"""
Cameras, streams, video files and folders of pictures as ``image_raw`` and ``camera_info``.

Images are read and published in a separate thread, so that a slow or blocked camera does not block
the node.
"""

from __future__ import annotations

import threading

from rclpy.node import Node
from rclpy.task import Future

from longreach_node import diagnostics
from longreach_node.clock import steady_clock
from longreach_node.companions import Companions
from longreach_node.parameters import declare
from longreach_node.stamps import stamp_of
from longreach_vision.camera.model import read_calibration
from longreach_vision.io.images import keep_freed_memory
from longreach_vision.ros.video_feed import RETRY, VideoFeed
from longreach_vision.ros.video_parameters import VideoNodeParameters

__all__ = ['VideoNode']

# Longest wait for the end of the thread [s].
_JOIN = 2.0


class VideoNode(Node):
    """Node that publishes the images of a camera or file."""

    def __init__(self) -> None:
        # Before the middleware has threads.
        keep_freed_memory()
        super().__init__('video')
        self.done = Future()
        self._settings = settings = declare(self, VideoNodeParameters)
        # In a launch, the namespace is the name of the camera.
        name = self.get_namespace().rpartition('/')[2] or self.get_name()
        camera = read_calibration(settings.camera, name) if settings.camera else None
        self._stopped = threading.Event()
        self._feed = VideoFeed(self, settings, camera, self._stopped)
        self._diagnostics = diagnostics.Diagnostics(self, settings.source)
        self.get_logger().info(f'shows {settings.source}; images on {self._feed.images.topic}')
        self.create_timer(1.0, self._report, clock=steady_clock())
        self._end = self.create_guard_condition(self._on_end)
        above = self.get_namespace().rpartition('/')[0]
        self._companions = Companions(self, settings.companions, f'{above}/finished_videos')
        self._error: Exception | None = None
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
        images = self._feed.counts['images']
        self.get_logger().info(f'end of {self._settings.source} after {images} images')
        for text in self._feed.notes:
            self.get_logger().warning(text)
        self._companions.tell()
        self._feed.waits_for = 'the other videos'
        self._wait_for_companions()
        self.create_timer(RETRY, self._wait_for_companions, clock=steady_clock())

    def _wait_for_companions(self) -> None:
        """End the node once the others are at their ends."""
        if not self._companions.missing() and not self.done.done():
            self.done.set_result(None)

    def _report(self) -> None:
        """Publish diagnostics."""
        level, text = diagnostics.OK, 'publishing'
        if self._feed.waits_for:
            level, text = diagnostics.WARN, f'waiting for {self._feed.waits_for}'
        if self._feed.refused:
            level, text = diagnostics.WARN, '; '.join([text, *self._feed.refused])
        self._diagnostics.publish(stamp_of(self._feed.latest), level, text, self._feed.counts)

    def _run(self) -> None:
        """Publish all images, in the thread; errors are raised again in that of the node."""
        try:
            self._feed.run()
        except Exception as error:  # noqa: BLE001
            self._error = error
        # After a signal, errors are irrelevant.
        if not self._stopped.is_set() and self.context.ok():
            self._end.trigger()
