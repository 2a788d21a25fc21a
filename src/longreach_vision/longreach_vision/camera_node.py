"""
Simulated cameras: ``marker_truth``, or a path from a file, in; images and camera_info out.

Image k of a camera is of the time k / frame_rate of simulation, the right one's later by ``skew``.
Its stamp is that time, the middle of the exposure, and its noise a function of seed, camera and k:
a run repeats however fast it was. Truth that waits is taken before the next image is drawn: a
simulation that runs ahead loses none of it; the images follow as fast as they can be drawn, and
with a duration the node ends after the last of them, and the simulation can wait for that.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from longreach_msgs.msg import MarkerPositions
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.subscription import Subscription
from rclpy.task import Future
from sensor_msgs.msg import CameraInfo, Image

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import quantity
from longreach_node import diagnostics, qos
from longreach_node.frames import FrameParameters, frame_name
from longreach_node.parameters import declare
from longreach_node.stamps import nanoseconds_of, seconds_to_nanoseconds, stamp_of
from longreach_vision import conversions
from longreach_vision.cameras import Camera
from longreach_vision.geometry import Pose
from longreach_vision.images import keep_freed_memory
from longreach_vision.rendering import CameraSimulator, frame_rng, warm_up
from longreach_vision.rig import load_rig
from longreach_vision.scene import (
    Frame,
    FrameTimes,
    MarkerPath,
    Scene,
    frames_of,
    load_look,
    scene_of,
)

__all__ = ['CameraNode', 'CameraNodeParameters']

# Between looks at what is to be drawn, while there is something [s].
_PERIOD = 2e-3
# While messages keep coming, an image is drawn this often at least [s].
_PATIENCE = 0.05
# Between reports [s of wall time].
_REPORTS = 1.0
# From the last image, which its listeners have, to the end, so that they can work on it [s].
_FAREWELL = 1.5


@dataclasses.dataclass(frozen=True)
class CameraNodeParameters(FrameParameters):
    """Parameters of the camera node."""

    rig: str = quantity('rig file: cameras, plane, markers', '')
    look: str = quantity('look file; empty for the installed one', '', default='')
    path: str = quantity(
        'CSV file of time, NAME.x, NAME.z to render; empty for the topic marker_truth',
        '',
        default='',
    )
    frame_rate: float = quantity(
        'images per second of simulation, of each camera',
        'Hz',
        above=0.0,
        at_most=1e3,
        default=15.0,
    )
    scale: float = quantity(
        'size of the images over that of the cameras', above=0.0, at_most=1.0, default=1.0
    )
    skew: float = quantity(
        'time by which all cameras but the first are late', 's', at_least=0.0, default=0.0
    )
    drop_rate: float = quantity(
        'share of images that get lost, for tests', at_least=0.0, below=1.0, default=0.0
    )
    real_time_factor: float = quantity(
        'speed of time against real time; 0: a path goes on when listeners have the image before',
        at_least=0.0,
        at_most=1e4,
        default=1.0,
    )
    lossless: bool = quantity(
        'an image waits until reliable listeners have the one before', default=False
    )
    duration: float = quantity(
        'time of marker_truth, or since the beginning of a path, after which the node ends; 0 is'
        ' never',
        's',
        at_least=0.0,
        default=0.0,
    )
    listeners: int = quantity(
        'path and marker_truth wait until each image_raw has so many', at_least=0, default=0
    )
    start_timeout: float = quantity(
        'longest wait for listeners', 's', at_least=0.0, at_most=1e4, default=10.0
    )


class _Waiting(NamedTuple):
    """An image that is to be drawn."""

    view: _View
    frame: Frame
    due: float  # by the monotonic clock [s]


class _View:
    """A camera with its topics; pictures are drawn into the message that is published."""

    def __init__(
        self,
        node: Node,
        name: str,
        frame_id: str,
        camera: Camera,
        pose: Pose,
        scene: Scene,
        times: FrameTimes,
    ) -> None:
        self.name, self.times = name, times
        blank = np.zeros((camera.height, camera.width), dtype=np.uint8)
        self._message = conversions.array_to_image(blank, 'mono8', stamp_of(0), frame_id)
        self._info = conversions.camera_to_info(camera, stamp_of(0), frame_id)
        self._buffer = np.frombuffer(self._message.data, np.uint8).reshape(blank.shape)
        self._simulator = CameraSimulator(camera, pose, scene, self._buffer)
        self.images = node.create_publisher(Image, f'{name}/image_raw', qos.IMAGES)
        self._infos = node.create_publisher(CameraInfo, f'{name}/camera_info', qos.IMAGES)

    def draw(self, frame: Frame, rng: np.random.Generator) -> np.ndarray:
        """Return an image; the next one takes its place."""
        self._simulator.image(frame.positions, frame.velocities, frame.stamp * 1e-9, rng)
        return self._buffer

    def publish(self, frame: Frame, unheard: bool) -> None:
        """Publish the image that was drawn; where nobody listens only if asked to."""
        self._message.header.stamp = self._info.header.stamp = stamp_of(frame.stamp)
        self._infos.publish(self._info)
        if unheard or self.images.get_subscription_count():
            self.images.publish(self._message)


Viewer = Callable[[str, int, np.ndarray], None]


class CameraNode(Node):
    """
    Cameras that look at markers, simulated.

    Parameters
    ----------
    name : str
        The node's name.
    kind : type
        Class of its parameters.

    Attributes
    ----------
    viewer : callable, optional
        Gets each image without the middleware: name of the camera, stamp [ns], and an array that
        is its own. Where there is one, images are published while somebody listens only.
    """

    viewer: Viewer | None = None

    def __init__(
        self, name: str = 'camera', kind: type[CameraNodeParameters] = CameraNodeParameters
    ) -> None:
        # Before the middleware has threads.
        keep_freed_memory()
        super().__init__(name)
        self.done = Future()
        self.settings = settings = declare(self, kind)
        rig, look = load_rig(settings.rig), load_look(settings.look or None)
        self._seed = look.seed
        self._scene = scene_of(rig, look.scaled(settings.scale))
        topics = [self.resolve_topic_name(f'{camera}/image_raw') for camera in rig.cameras]
        self.get_logger().info(
            f'draws {", ".join(self._scene.names)} as'
            f' {settings.path or self.resolve_topic_name("marker_truth")} says;'
            f' {settings.frame_rate:g} images per second on {", ".join(topics)}'
        )
        warm_up()
        self._views = [
            _View(
                self,
                name,
                frame_name(self, settings, f'{name}_camera_optical'),
                mounted.camera.scaled(settings.scale).replace(name=name),
                mounted.pose,
                self._scene,
                FrameTimes(settings.frame_rate, settings.skew if index else 0.0),
            )
            for index, (name, mounted) in enumerate(rig.cameras.items())
        ]
        self._counts = dict.fromkeys(('rendered', 'dropped', 'late', 'missed', 'invalid'), 0)
        self._diagnostics = diagnostics.Diagnostics(self, 'cameras')
        # Of the latest image [ns].
        self._stamp = 0
        self._waiting: deque[_Waiting] = deque()
        self._born = self._drawn = time.monotonic()
        self._heard = self._seen = 0
        self._complete = False
        self._truth: Subscription | None = None
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = self.create_timer(_PERIOD, self._work, clock=steady)
        self.create_timer(_REPORTS, self._report, clock=steady)
        self._path: Iterator[_Waiting] | None = None
        if settings.path:
            self._path = self._along(MarkerPath.from_csv(settings.path).of(self._scene.names))

    def _on_truth(self, message: MarkerPositions) -> None:
        """Note the images that a sample of the truth completes."""
        self._heard += 1
        try:
            positions, velocities = conversions.markers_from_message(message, self._scene.names)
        except InputError as error:
            self._counts['invalid'] += 1
            self.get_logger().warning(f'not used: {error}', throttle_duration_sec=1.0)
            return
        if self._heard - self._counts['invalid'] == 1:
            self._warn_of_missing(positions, message)
        stamp, now = nanoseconds_of(message.header.stamp), time.monotonic()
        frames = [
            _Waiting(view, frame, now)
            for view in self._views
            for frame in view.times.add(stamp, positions, velocities)
        ]
        self._waiting.extend(frames)
        self._complete = 0 < seconds_to_nanoseconds(self.settings.duration) <= stamp
        if frames or self._complete:
            self._timer.reset()

    def _warn_of_missing(self, positions: np.ndarray, message: MarkerPositions) -> None:
        """Warn of markers of the rig that the truth does not have."""
        missing = [
            name
            for name, there in zip(self._scene.names, np.isfinite(positions[:, 0]), strict=True)
            if not there
        ]
        if missing:
            self.get_logger().warning(
                f'not drawn, because marker_truth has no such marker: {", ".join(missing)}; it'
                f' has {", ".join(message.name)}'
            )

    def _along(self, path: MarkerPath) -> Iterator[_Waiting]:
        """Yield the images of a path, with the time at which each is due; 0 for at once."""
        begun, factor = time.monotonic(), self.settings.real_time_factor
        times = [view.times for view in self._views]
        for index, frame in frames_of(path, times, self.settings.duration or math.inf):
            due = begun + (frame.stamp * 1e-9 - path.times[0]) / factor if factor else 0.0
            yield _Waiting(self._views[index], frame, due)

    def _work(self) -> None:
        """Draw the next image, unless messages come first."""
        now = time.monotonic()
        if not self._has_listeners(now):
            return
        if self._path is None and self._truth is None:
            # Whoever tells the truth waits for this one, and with it for those listeners.
            self._truth = self.create_subscription(
                MarkerPositions, 'marker_truth', self._on_truth, qos.STREAM
            )
        if not self._waiting and not (self._path is not None and self._take(now)):
            self._rest()
            return
        if self._heard != self._seen and now - self._drawn < _PATIENCE:
            self._seen = self._heard
            return
        if self._waiting[0].due > now or (self.settings.lossless and not self._is_heard()):
            return
        self._draw(self._waiting.popleft())
        self._drawn = time.monotonic()

    def _take(self, now: float) -> bool:
        """Take the next image of the path; false when there is none now, or no more."""
        assert self._path is not None
        if not (self.settings.real_time_factor or self._is_heard()):
            return False
        image = next(self._path, None)
        if image is None:
            self._complete = True
            return False
        self._waiting.append(image._replace(due=image.due or now))
        return True

    def _rest(self) -> None:
        """Wait for what is to be drawn; end when no more comes, and listeners have it all."""
        if not self._complete:
            if self._path is None:
                self._timer.cancel()
        elif self._is_heard() and time.monotonic() - self._drawn > _FAREWELL:
            self._timer.cancel()
            self._report()
            self.get_logger().info(f'end after {self._counts["rendered"]} images')
            self.done.set_result(None)

    def _is_heard(self) -> bool:
        """Tell whether all reliable listeners have what was published, after a short wait."""
        wait = Duration(seconds=0.01)
        return all(view.images.wait_for_all_acked(wait) for view in self._views)

    def _has_listeners(self, now: float) -> bool:
        """Tell whether those are there that the first image waits for."""
        if self._truth or self._counts['rendered']:
            return True
        if now - self._born > self.settings.start_timeout:
            self.get_logger().warning(
                'begins without all the listeners that were to be waited for', once=True
            )
            return True
        return self.is_watched()

    def is_watched(self) -> bool:
        """Tell whether as many listen as shall see the first image."""
        wanted = self.settings.listeners
        return all(view.images.get_subscription_count() >= wanted for view in self._views)

    def _draw(self, waiting: _Waiting) -> None:
        """Draw and publish an image, unless it is to get lost."""
        view, frame = waiting.view, waiting.frame
        lot = frame_rng(self._seed, f'{view.name} dropped', frame.number).random()
        if lot < self.settings.drop_rate:
            self._counts['dropped'] += 1
        else:
            # As fast as possible, none is.
            slow = time.monotonic() - waiting.due > 1.0 / self.settings.frame_rate
            self._counts['late'] += int(slow and self.settings.real_time_factor > 0.0)
            image = view.draw(frame, frame_rng(self._seed, view.name, frame.number))
            self._counts['rendered'] += 1
            view.publish(frame, unheard=self.viewer is None)
            if self.viewer is not None:
                self.viewer(view.name, frame.stamp, image.copy())
        self._stamp = frame.stamp

    def _report(self) -> None:
        """Publish diagnostics."""
        self._counts['missed'] = max(view.times.missed for view in self._views)
        level, text = diagnostics.OK, 'drawing'
        if self._counts['late'] or self._counts['missed'] or self._counts['invalid']:
            level = diagnostics.WARN
            text = 'images are late, or samples of the truth missing or not valid'
        elif not self._counts['rendered']:
            level = diagnostics.WARN
            text = f'waiting for {"marker_truth" if self._truth else "listeners"}'
        values = {**self._counts, 'waiting': len(self._waiting)}
        self._diagnostics.publish(stamp_of(self._stamp), level, text, values)
