"""
Cameras, streams, video files and folders of pictures as ``image_raw`` and ``camera_info``.

Images of each source are read and published in a separate thread, so that a slow or blocked camera
does not block the node.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Mapping

from rclpy.node import Node
from rclpy.task import Future

from longreach_dynamics.errors import InputError
from longreach_markers.camera.files import read_calibration
from longreach_markers.io.images import keep_freed_memory
from longreach_markers.io.pictures import places_of
from longreach_markers.io.source_base import ImageSource
from longreach_markers.io.stored_images import stored_source
from longreach_node import diagnostics
from longreach_node.clock import steady_clock
from longreach_node.parameters import declare
from longreach_node.stamps import stamp_of
from longreach_vision.ros.node_parameters import VideoNodeParameters
from longreach_vision.ros.video_feed import Beginning, VideoFeed

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
        self._feeds: list[tuple[VideoFeed, diagnostics.Diagnostics]] = []
        cameras = settings.cameras()
        places = self._places({name: one.source for name, one in cameras.items()})
        together = None
        if places:
            together = Beginning(len(places), lambda: int(self.get_clock().now().nanoseconds))
        for name, one in cameras.items():
            # In a launch, the namespace is the name of the camera.
            own = name or self.get_namespace().rpartition('/')[2] or self.get_name()
            camera = read_calibration(one.camera, own) if one.camera else None
            where = (places[name], together) if name in places else ()
            feed = VideoFeed(self, one, camera, self._stopped, name, *where)
            self._feeds.append((feed, diagnostics.Diagnostics(self, one.source, name)))
            self.get_logger().info(f'shows {one.source}; images on {feed.images.topic}')
        self.create_timer(1.0, self._report, clock=steady_clock())
        self._end = self.create_guard_condition(self._on_end)
        self._error: Exception | None = None
        self._ended: deque[VideoFeed] = deque()
        self._running = len(self._feeds)
        # A driver may block for ever; the process must be able to end nevertheless.
        self._threads = [
            threading.Thread(target=self._run, args=(feed,), daemon=True)
            for feed, _ in self._feeds
        ]
        for thread in self._threads:
            thread.start()

    def _places(self, specs: Mapping[str, str]) -> dict[str, tuple[int, int, int]]:
        known: dict[str, ImageSource] = {}
        for name, spec in specs.items():
            # What is no file, or wrong with it, is the matter of its feed.
            with (
                contextlib.suppress(InputError, OSError, RuntimeError, ValueError),
                stored_source(spec) as source,
            ):
                known[name] = source
        found = dict(zip(known, places_of(known), strict=True))
        for source in known.values():
            # The feed of a source without numbers tells that itself.
            if source.numbers is not None and source.unnumbered:
                self.get_logger().warning(source.unnumbered)
        return found

    def destroy_node(self) -> None:
        """End the threads, then the node."""
        self._stopped.set()
        for feed, _ in self._feeds:
            feed.beginning.leave()
        for thread in self._threads:
            thread.join(_JOIN)
        super().destroy_node()

    def _on_end(self) -> None:
        if self._error is not None:
            raise self._error
        while self._ended:
            feed = self._ended.popleft()
            self.get_logger().info(f'end of {feed.source} after {feed.counts["images"]} images')
            for text in feed.notes:
                self.get_logger().warning(text)
            feed.waits_for = 'the other videos'
            self._running -= 1
        if not self._running and not self.done.done():
            self.done.set_result(None)

    def _report(self) -> None:
        for feed, report in self._feeds:
            level, text = diagnostics.OK, 'publishing'
            if feed.waits_for:
                level, text = diagnostics.WARN, f'waiting for {feed.waits_for}'
            if feed.refused:
                level, text = diagnostics.WARN, '; '.join([text, *feed.refused])
            report.publish(stamp_of(feed.latest), level, text, feed.counts)

    def _run(self, feed: VideoFeed) -> None:
        try:
            feed.run()
        except Exception as error:  # noqa: BLE001
            self._error = self._error or error
        feed.beginning.leave()
        self._ended.append(feed)
        # After a signal, errors are irrelevant.
        if not self._stopped.is_set() and self.context.ok():
            self._end.trigger()
