"""
Simulated cameras: images and camera_info from ``marker_truth``, repeatable at any speed.

Queued samples of the truth are read before the next image is drawn: none is lost if the simulation
is faster. With a duration, the node ends after the last image: the simulation can wait for that.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from longreach_msgs.msg import MarkerPositions
from rclpy.subscription import Subscription

from longreach_dynamics.errors import InputError, shortened
from longreach_markers import load_rig
from longreach_node import diagnostics, qos
from longreach_node.clock import steady_clock
from longreach_node.stamps import nanoseconds_of, stamp_of
from longreach_vision.ros.node_parameters import (
    CameraNodeParameters,
    SimulatedParameters,
    tracking_of_rig,
)
from longreach_vision.ros.vision_node import ImagePublishers, VisionNode
from longreach_vision.simulator.camera_simulator import (
    CameraSimulator,
    frame_rng,
    simulators_of,
    warm_up,
)
from longreach_vision.simulator.marker_path import Frame, FrameTimes, markers_from_message
from longreach_vision.simulator.scene import load_look

# Period of the timer while images are due, longest time between drawn images while messages keep
# arriving, and time between the last image and the end of the node, for listeners to process it
# [s of wall time].
_PERIOD, _PATIENCE, _FAREWELL = 2e-3, 0.05, 1.5


Viewer = Callable[[str, int, np.ndarray], None]
"""Receives images: camera name, stamp [ns], array (h, w) of uint8, owned by the receiver."""


class _View(NamedTuple):
    """A camera, the delay of its stamps [ns], and the times of its images."""

    simulator: CameraSimulator
    images: ImagePublishers
    delay: int
    times: FrameTimes


class CameraNode(VisionNode):
    """Simulated cameras; a ``viewer`` receives each image without the middleware."""

    viewer: Viewer | None = None

    def __init__(
        self,
        name: str = 'camera',
        kind: type[CameraNodeParameters] = CameraNodeParameters,
        otherwise: Callable[[Any], Mapping[str, Any]] | None = None,
    ) -> None:
        super().__init__(name, kind, otherwise)
        settings = self.settings
        rig, look = load_rig(settings.rig), load_look(settings.look or None)
        simulators = simulators_of(rig.scaled(settings.scale), look.scaled(settings.scale))
        self._names = rig.names
        topics = [self.resolve_topic_name(f'{camera}/image_raw') for camera in rig.cameras]
        self.get_logger().info(
            f'draws {", ".join(self._names)} as'
            f' {self.resolve_topic_name("marker_truth")} says; {settings.frame_rate:g} images per'
            f' second on {", ".join(topics)}'
        )
        warm_up()
        self._views = [
            _View(
                one,
                ImagePublishers(self, settings, name, one.camera, f'{name}_camera_optical'),
                rig.delays[name],
                FrameTimes(settings.frame_rate, settings.skew * (k > 0)),
            )
            for k, (name, one) in enumerate(simulators.items())
        ]
        # In the order of drawing, each due since a time on the monotonic clock [s]; complete once
        # it has or had the last image.
        self._waiting: deque[tuple[_View, Frame, float]] = deque()
        self._is_complete = False
        self._counts = dict.fromkeys(('rendered', 'late', 'missed', 'invalid'), 0)
        self._diagnostics = diagnostics.Diagnostics(self, 'cameras')
        # Stamp of the latest image [ns].
        self._stamp = 0
        self._drawn = time.monotonic()
        self._heard = self._seen = 0
        self._truth: Subscription | None = None
        self._timer = self.create_timer(_PERIOD, self._work, clock=steady_clock())

    def _on_truth(self, message: MarkerPositions) -> None:
        self._heard += 1
        try:
            positions, velocities = markers_from_message(message, self._names)
        except InputError as error:
            self._counts['invalid'] += 1
            self.get_logger().warning(f'not used: {error}', throttle_duration_sec=1.0)
            return
        missing = np.array(self._names)[~np.isfinite(positions[:, 0])]
        if missing.size and self._heard - self._counts['invalid'] == 1:
            text = (
                f'not drawn, because marker_truth has no such marker: {", ".join(missing)}; it'
                f' has {", ".join(message.name)}'
            )
            self.get_logger().warning(shortened(text))
        stamp = nanoseconds_of(message.header.stamp)
        now = time.monotonic()
        frames = [
            (view, frame, now)
            for view in self._views
            for frame in view.times.add(stamp, positions, velocities)
        ]
        self._waiting.extend(frames)
        self._is_complete = 0 < round(self.settings.duration * 1e9) <= stamp
        if frames or self._is_complete:
            self._timer.reset()

    def _work(self) -> None:
        if self._truth is None:
            if self.lacks():
                return
            # The publisher of the truth waits for this node, and thereby for its listeners.
            self._truth = self.create_subscription(
                MarkerPositions, 'marker_truth', self._on_truth, qos.STREAM
            )
        if not self._waiting:
            self._rest()
            return
        if self._heard != self._seen and time.monotonic() - self._drawn < _PATIENCE:
            self._seen = self._heard
            return
        if self.settings.lossless and not self._is_heard():
            return
        self._draw(*self._waiting.popleft())
        self._drawn = time.monotonic()

    def _rest(self) -> None:
        if not self._is_complete:
            self._timer.cancel()
        elif self._is_heard() and time.monotonic() - self._drawn > _FAREWELL:
            self._timer.cancel()
            self.report()
            self.get_logger().info(f'end after {self._counts["rendered"]} images')
            self.done.set_result(None)

    def lacks(self) -> str:
        """Say which topics lack subscribers before the first image; empty for none."""
        return self.missing(self.settings.listeners, *(view.images for view in self._views))

    def _is_heard(self) -> bool:
        return all(view.images.is_heard() for view in self._views)

    def _draw(self, view: _View, frame: Frame, due: float) -> None:
        self._stamp = frame.stamp
        # As fast as possible, no image is late.
        slow = time.monotonic() - due > 1.0 / self.settings.frame_rate
        self._counts['late'] += int(slow and self.settings.real_time_factor > 0.0)
        name, seed = view.simulator.camera.name, view.simulator.scene.look.seed
        rng, moving = frame_rng(seed, name, frame.number), (frame.positions, frame.velocities)
        image = view.simulator.image(*moving, frame.stamp * 1e-9, rng)
        view.images.publish(image, frame.stamp + view.delay)
        if self.viewer is not None:
            self.viewer(name, frame.stamp + view.delay, image.copy())
        self._counts['rendered'] += 1

    def report(self) -> None:
        """Publish diagnostics."""
        self._counts['missed'] = max(view.times.missed for view in self._views)
        level = diagnostics.WARN
        text = f'waiting for {"marker_truth" if self._truth else "listeners"}'
        if self._counts['late'] or self._counts['missed'] or self._counts['invalid']:
            text = 'images are late, or samples of the truth missing or not valid'
        elif self._counts['rendered']:
            level, text = diagnostics.OK, 'drawing'
        values = {**self._counts, 'waiting': len(self._waiting)}
        self._diagnostics.publish(stamp_of(self._stamp), level, text, values)


class SimulatedNode(CameraNode):
    """Simulated cameras, and a tracker of their images, which bypass the middleware."""

    def __init__(self) -> None:
        # The cameras alone do not need it.
        from longreach_vision.ros.tracker_node import MarkerTracker

        super().__init__('simulated', SimulatedParameters, tracking_of_rig)
        self._tracker = MarkerTracker(self, 'tracker')
        self.viewer = self._tracker.add

    def change(self, settings: SimulatedParameters) -> None:
        """Continue with parameters that were changed at run time."""
        super().change(settings)
        self._tracker.change(settings)

    def lacks(self) -> str:
        """Say which topics of images and results lack subscribers."""
        return self._tracker.lacks() or super().lacks()

    def report(self) -> None:
        """Publish diagnostics of cameras and tracker."""
        super().report()
        self._tracker.report()
