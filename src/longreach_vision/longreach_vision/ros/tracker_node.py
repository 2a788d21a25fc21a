"""
Tracker node: from images of one camera or more to observations and marker positions.

The tracking itself is in :mod:`longreach_vision.ros.marker_tracker`.
"""

from __future__ import annotations

from functools import partial

from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import CompressedImage, Image

from longreach_markers.io.images import keep_freed_memory
from longreach_node import qos
from longreach_node.clock import steady_clock
from longreach_node.parameters import declare
from longreach_vision.ros.marker_tracker import MarkerTracker
from longreach_vision.ros.node_parameters import TrackerParameters, tracking_of_rig

# Queue of a lossless subscription while the tracker is busy: images, bytes, and the number of
# images that are kept however large they are.
_LOSSLESS, _ROOM, _LEAST = 50, 250_000_000, 5


class TrackerNode(Node):
    """Node that tracks markers in the images of one camera or more."""

    def __init__(self) -> None:
        # Before the middleware has threads.
        keep_freed_memory()
        super().__init__('tracker')
        self._settings = declare(
            self, TrackerParameters, lambda new: self._tracker.change(new), tracking_of_rig
        )
        self._tracker = MarkerTracker(self, self._settings)
        self._start = self.create_timer(0.02, self._listen, clock=steady_clock())
        self._listen()

    def _listen(self) -> None:
        if self._tracker.is_waiting():
            return
        self.destroy_timer(self._start)
        is_packed = self._settings.transport == 'compressed'
        kind, ending = (CompressedImage, '/compressed') if is_packed else (Image, '')
        for camera in self._tracker.cameras:
            image = partial(self._tracker.on_image, camera)
            topic = f'{camera}/image_raw{ending}'
            self.create_subscription(kind, topic, image, self._profile(camera))

    def _profile(self, camera: str) -> QoSProfile:
        if not self._settings.lossless:
            return qos.LATEST_IMAGES
        depth = max(_LEAST, min(_LOSSLESS, _ROOM // self._tracker.pixels(camera)))
        return QoSProfile(
            history=qos.IMAGES.history, depth=depth, reliability=qos.IMAGES.reliability
        )
