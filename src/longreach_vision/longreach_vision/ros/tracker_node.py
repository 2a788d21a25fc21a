"""
Tracker node: from images of one camera or two to observations and marker positions.

The results depend on the images and their stamps only, not on the time of arrival: recorded images
give the same tracks again, provided that none is lost on the way (``lossless``).
"""

from __future__ import annotations

import dataclasses
import math
import time
from typing import NamedTuple

import numpy as np
from geometry_msgs.msg import PoseStamped
from longreach_msgs.msg import MarkerEstimates, MarkerObservations
from longreach_msgs.srv import InitializeMarker
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from sensor_msgs.msg import CameraInfo, Image
from visualization_msgs.msg import MarkerArray

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import choice, quantity
from longreach_node import diagnostics, qos
from longreach_node.frames import FrameParameters, frame_name
from longreach_node.parameters import declare
from longreach_node.stamps import stamp_of
from longreach_vision.camera.model import Camera
from longreach_vision.io.images import BitDepth, keep_freed_memory
from longreach_vision.io.overlay import draw, side_by_side
from longreach_vision.marker.detection import TRACKED, Observation
from longreach_vision.rig import Rig, load_rig
from longreach_vision.ros import conversions
from longreach_vision.tracking.clock_offset import OffsetEstimator
from longreach_vision.tracking.diagnostics import TrackingReport
from longreach_vision.tracking.follower import Follower, size_error, warm_up
from longreach_vision.tracking.image_sets import TIMEOUT, ImagePairs, ImageSet
from longreach_vision.tracking.pose_agreement import AgreementEstimator
from longreach_vision.tracking.rig_tracker import StereoFrame
from longreach_vision.tracking.sightings import Sightings

__all__ = ['MarkerTracker', 'TrackerNode', 'TrackerParameters']

# Period of the check for missing images, and of diagnostics [s of wall time].
_PERIOD = 1.0
# Time without any image after which waiting images are no longer held back [s of wall time].
_SILENCE = 2.0
# Least time between warnings of one kind [s of wall time].
_WARNINGS = 2.0
# Time between estimates of the offset of the cameras' clocks [s of wall time], and the number of
# latest sightings of each marker for it.
_CLOCKS, _SIGHTINGS = 10.0, 600
# Largest number of images waiting for their camera_info at the start.
_EARLY = 6
# Counters of problems with stamps.
_STAMPS = 'misdated', 'standing'
# Queue of a lossless subscription while the tracker is busy: at 5 MB, at most 250 MB.
_LOSSLESS = 50


@dataclasses.dataclass(frozen=True)
class TrackerParameters(FrameParameters):
    """Parameters of the tracker node."""

    rig: str = quantity('rig file: cameras, plane, markers', '')
    scale: float = quantity(
        'image size relative to the cameras', above=0.0, at_most=1.0, default=1.0
    )
    calibration: str = choice(
        "source of the intrinsics: the rig's files, or camera_info; poses are those of the rig",
        ('rig', 'topic'),
        default='rig',
    )
    bits: int = quantity(
        'significant bits of 16-bit images, from 9 on; 0: as many as the largest value needs',
        at_least=0,
        at_most=16,
        default=0,
    )
    frame_id: str = quantity(
        'frame of the poses in the rig, without frame_prefix', '', default='world'
    )
    timeout: float = quantity(
        "lag of one camera's images behind the other's after which images are processed alone",
        's',
        at_least=0.0,
        at_most=1e3,
        default=TIMEOUT,
    )
    latency: float = quantity(
        'time from the stamp of an image to its results above which diagnostics warn; longer than'
        ' a minute counts as stamps of another clock',
        's',
        above=0.0,
        at_most=1e3,
        default=1.0,
    )
    lossless: bool = quantity(
        'subscribe to images reliably and publish latched results, for recordings and simulations;'
        ' requires reliable publishers',
        default=False,
    )
    recorders: int = quantity(
        'number of subscribers of observations and markers before images are subscribed to',
        at_least=0,
        default=0,
    )
    start_timeout: float = quantity(
        'longest wait for these subscribers', 's', at_least=0.0, at_most=1e4, default=10.0
    )
    overlay_rate: float = quantity(
        'rate of overlays, and half the rate of RViz markers, if subscribed to; 0: none',
        'Hz',
        at_least=0.0,
        at_most=1e3,
        default=5.0,
    )
    overlay_width: int = quantity(
        'width of the overlay of all cameras', 'px', at_least=64, at_most=20_000, default=1280
    )

    def check(self) -> None:
        """Raise InputError for an empty frame name."""
        super().check()
        if not self.frame_id.strip('/ '):
            raise InputError(f'frame_id = {self.frame_id!r}, allowed: the name of a frame')


class _Picture(NamedTuple):
    """An image with its frame."""

    image: np.ndarray
    frame_id: str


class _Drawing:
    """Rate limiter of a topic for display."""

    def __init__(self, publisher: Publisher, rate: float) -> None:
        self.publisher = publisher
        self._period = 1.0 / rate if rate else math.inf
        self._latest = -math.inf

    def is_due(self, now: float) -> bool:
        """Return whether the next message is due at a time [s], and there is a subscriber."""
        # If time goes back, start again.
        if 0.0 <= now - self._latest < self._period or math.isinf(self._period):
            return False
        if not self.publisher.get_subscription_count():
            return False
        self._latest = now
        return True


class MarkerTracker:
    """
    The tracker on a node: publishers, service ``~/initialize``, diagnostics.

    Parameters
    ----------
    node : Node
    settings : TrackerParameters
    part : str
        Name of its diagnostics, on a node with other parts.

    Raises
    ------
    InputError
        For an invalid rig.
    """

    def __init__(self, node: Node, settings: TrackerParameters, part: str = '') -> None:
        self._node, self._settings = node, settings
        self._rig = load_rig(settings.rig).scaled(settings.scale)
        try:
            self._rig.check_pixels()
        except InputError as error:
            raise InputError(f'{settings.rig}, scale = {settings.scale:g}: {error}') from error
        self.cameras = tuple(self._rig.cameras)
        topics = [node.resolve_topic_name(name) for name in ('observations', 'markers')]
        node.get_logger().info(
            f'tracks {", ".join(self._rig.names)} in'
            f' {", ".join(map(self._topic, self.cameras))}; results on {", ".join(topics)}'
        )
        warm_up()
        self._radii = {marker.name: marker.radius for marker in self._rig.markers}
        self._known: dict[str, Camera] = {}
        if settings.calibration == 'rig':
            self._known = {name: one.camera for name, one in self._rig.cameras.items()}
        self._pairs: ImagePairs[_Picture] = ImagePairs(
            self.cameras,
            self._rig.tracking.gap,
            settings.timeout,
            size=lambda one: one.image.nbytes,
        )
        self._delays = self._rig.delays
        self._judge(self._rig)
        self._judged = time.monotonic()
        self._restarts = self._jumps = 0
        self._early: list[tuple[str, int, np.ndarray, str]] = []
        self._follower: Follower | None = None
        self._latest: dict[str, tuple[np.ndarray, float]] = {}
        self._stamp = 0
        self._heard = self._born = time.monotonic()
        self._report = TrackingReport(
            self._pairs,
            {name: self._topic(name) for name in self.cameras},
            self._rig.tracking.gap,
            settings.latency,
        )
        self._warned: dict[str, float] = {}
        self._encodings: dict[str, str] = {}
        self._depths = {name: BitDepth(settings.bits) for name in self.cameras}
        create = node.create_publisher
        found = qos.stream(settings.lossless)
        self._observations = create(MarkerObservations, 'observations', found)
        self._markers = create(MarkerEstimates, 'markers', found)
        rate = settings.overlay_rate
        self._shapes = _Drawing(create(MarkerArray, 'marker_shapes', qos.VISUAL), 2.0 * rate)
        self._overlay = _Drawing(create(Image, 'overlay', qos.IMAGES), rate)
        self._poses = {
            name: create(PoseStamped, f'{name}/pose', qos.VISUAL) for name in self.cameras
        }
        self._diagnostics = diagnostics.Diagnostics(node, 'markers', part)
        node.create_service(InitializeMarker, '~/initialize', self._on_initialize)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        node.create_timer(_PERIOD, self._on_timer, clock=steady)

    # --- what comes in -----------------------------------------------------------------------

    def has_recorders(self) -> bool:
        """Return whether the required number of subscribers is present."""
        wanted = self._settings.recorders
        publishers = (self._observations, self._markers)
        return all(one.get_subscription_count() >= wanted for one in publishers)

    def is_waiting(self) -> bool:
        """Return whether images are not subscribed to yet, because subscribers are missing."""
        is_late = time.monotonic() - self._born > self._settings.start_timeout
        return not (is_late or self.has_recorders())

    def on_info(self, camera: str, message: CameraInfo) -> None:
        """Update the intrinsics of a camera; changed intrinsics restart the tracks."""
        if self._settings.calibration != 'topic':
            return
        try:
            found = conversions.camera_info_to_camera(message, camera)
        except InputError as error:
            self._warn(f'info {camera}', str(error))
            return
        if found == self._known.get(camera):
            return
        if camera in self._known:
            self._pairs.clear()
        self._known[camera] = found
        self._follower = None
        early, self._early = self._early, []
        for image in early:
            self.add(*image)

    def on_image(self, camera: str, message: Image) -> None:
        """Process an image; one that cannot be used is counted and skipped."""
        try:
            stamp = conversions.image_stamp(message)
            image = conversions.image_to_gray(message, self._depths[camera])
        except InputError as error:
            self._refuse(camera, str(error))
            return
        if self._encodings.get(camera) != message.encoding:
            self._encodings[camera] = message.encoding
            self._node.get_logger().info(
                f'{self._topic(camera)}: {message.width} x {message.height}, {message.encoding},'
                f' converted by {conversions.converter_of(message.encoding)}'
                f'{"; " * bool(note := self._depths[camera].note)}{note}'
            )
        self.add(camera, stamp, image, message.header.frame_id)

    def add(self, camera: str, stamp: int, image: np.ndarray, frame_id: str = '') -> None:
        """
        Add an image as an array.

        Parameters
        ----------
        camera : str
        stamp : int
            [ns]
        image : ndarray of uint8, shape (height, width)
            Stored until its pair is complete.
        frame_id : str
            Optical frame of the camera; by default the name used by
                 :class:`~longreach_vision.ros.camera_node.CameraNode`.
        """
        self._heard = time.monotonic()
        frame_id = frame_id or frame_name(self._node, self._settings, f'{camera}_camera_optical')
        known = self._known.get(camera)
        if known is None and len(self._early) < _EARLY:
            self._early.append((camera, stamp, image, frame_id))
            return
        if known is None:
            self._refuse(camera, f'no valid camera_info of {camera} received yet')
            return
        if image.shape != (known.height, known.width):
            where = 'the rig' if self._settings.calibration == 'rig' else 'camera_info'
            self._refuse(
                camera,
                size_error(image, known, camera, where=where, scale=self._settings.scale),
            )
            return
        self._report.add_image(camera, good=True)
        stamp -= self._delays[camera]
        misdated, standing = (self._pairs.counts(what)[camera] for what in _STAMPS)
        ready = self._pairs.add(camera, stamp, _Picture(image, frame_id))
        if self._pairs.restarts != self._restarts:
            self._restarts = self._pairs.restarts
            self._follower = None
            self._node.get_logger().info(
                f'time went back to {stamp * 1e-9:.3f} s: tracking restarts'
            )
        if self._pairs.jumps != self._jumps:
            self._jumps = self._pairs.jumps
            self._node.get_logger().info(
                f'time jumped ahead to {stamp * 1e-9:.3f} s on {self._topic(camera)}: tracking'
                ' continues'
            )
        at = f'{self._topic(camera)}: image of {stamp * 1e-9:.3f} s'
        if self._pairs.counts('misdated')[camera] > misdated:
            self._warn(
                f'stamp {camera}',
                f'{at}, far from the previous one; it is dropped unless the next ones continue'
                ' from there',
            )
        if self._pairs.counts('standing')[camera] > standing:
            self._warn(
                f'stamp {camera}',
                f'{at}, allowed: after the previous one; it is dropped. Check that the driver'
                ' stamps each image, and once only',
            )
        for images in ready:
            self._track(images)

    def _refuse(self, camera: str, text: str) -> None:
        """Count an image that cannot be used, and warn."""
        self._heard = time.monotonic()
        self._report.add_image(camera, good=False)
        self._warn(f'image {camera}', f'{self._topic(camera)}: {text}')

    # --- tracking ----------------------------------------------------------------------------

    def _track(self, images: ImageSet[_Picture]) -> None:
        """Track the markers in a set of images, and publish the results."""
        if self._follower is None:
            rig = self._rig_as_known()
            self._follower = Follower(rig)
            self._judge(rig)
            self._latest.clear()
            # Once: they wait in the publishers for viewers and recorders that come later.
            header = stamp_of(images.stamp), self._settings.frame_id.lstrip('/')
            for name, mounted in rig.cameras.items():
                pose = conversions.pose_to_message(mounted.pose, *header)
                self._poses[name].publish(pose)
        arrays = images.with_images({name: one.image for name, one in images.images.items()})
        self._latest.update({name: (arrays.images[name], at) for name, at in arrays.times.items()})
        begun = time.perf_counter()
        try:
            frame = self._follower.update(arrays)
        except InputError as error:
            self._warn('tracking', str(error))
            return
        latency = 1e-9 * (self._node.get_clock().now().nanoseconds - images.stamp)
        self._report.add_frame(frame, (time.perf_counter() - begun) / len(images.images), latency)
        self._sightings.add(frame)
        if self._follower.problem:
            self._warn('start', self._follower.problem)
        self._stamp = images.stamp
        self._publish(images, frame)
        if self._report.unpaired:
            self._warn('pairs', self._report.unpaired)
        if self._report.silent:
            self._warn('sightings', self._report.silent)

    def _judge(self, rig: Rig) -> None:
        """Begin to collect what clocks and poses are judged by."""
        self._sightings = Sightings(rig, _SIGHTINGS)
        self._offsets = OffsetEstimator(self._sightings)
        self._agreement = AgreementEstimator(self._sightings)

    def _rig_as_known(self) -> Rig:
        """Return the rig with the current intrinsics."""
        cameras = {
            name: dataclasses.replace(one, camera=self._known.get(name, one.camera))
            for name, one in self._rig.cameras.items()
        }
        return dataclasses.replace(self._rig, cameras=cameras)

    def _publish(self, images: ImageSet[_Picture], frame: StereoFrame) -> None:
        """Publish the results, with the stamps of the images."""
        for name, found in frame.observations.items():
            self._observations.publish(
                conversions.observations_to_message(
                    found, name, stamp_of(images.stamps[name]), images.images[name].frame_id
                )
            )
        if images.late:
            # Estimates are published in increasing order of time.
            return
        header = stamp_of(images.stamp), self._settings.frame_id.lstrip('/')
        self._markers.publish(
            conversions.estimates_to_message(frame.estimates, frame.gap, *header, frame.chi_square)
        )
        now = images.stamp * 1e-9
        if self._shapes.is_due(now):
            shapes = conversions.shapes_to_message(frame.estimates, self._radii, *header)
            self._shapes.publisher.publish(shapes)
        if self._overlay.is_due(now):
            self._publish_overlay(images, frame)

    def _publish_overlay(self, images: ImageSet[_Picture], frame: StereoFrame) -> None:
        """Publish the overlays of all cameras in one picture."""
        width = self._settings.overlay_width / len(self.cameras)
        pictures = []
        for name, mounted in self._rig.cameras.items():
            if name in images.images:
                image, caption = images.images[name].image, f'{name} {images.times[name]:.2f} s'
            else:
                camera = self._known.get(name, mounted.camera)
                image = np.zeros((camera.height, camera.width), np.uint8)
                caption = f'{name}: no image'
            seen = frame.observations.get(name, {})
            pictures.append(draw(image, seen, min(1.0, width / image.shape[1]), caption=caption))
        first = next(iter(images.images.values()))
        message = conversions.array_to_image(
            side_by_side(pictures), 'bgr8', stamp_of(images.stamp), first.frame_id
        )
        self._overlay.publisher.publish(message)

    def _on_initialize(
        self, request: InitializeMarker.Request, response: InitializeMarker.Response
    ) -> InitializeMarker.Response:
        """Start tracking a marker at a given pixel."""
        try:
            observation = self._initialized(request)
        except InputError as error:
            response.message = str(error)
            return response
        response.observation = conversions.observation_to_message(request.name, observation)
        if observation.status != TRACKED:
            response.message = f'refused: {observation.reason}; the previous track is kept'
            return response
        u, v = observation.center.tolist()
        response.success = True
        response.message = f'{request.name} is tracked from ({u:.1f}, {v:.1f}) px on'
        return response

    def _initialized(self, request: InitializeMarker.Request) -> Observation:
        """Return the result of an initialisation; raise InputError for an invalid request."""
        if request.camera not in self.cameras:
            raise InputError(f'camera = {request.camera!r}, allowed: {" | ".join(self.cameras)}')
        if request.name not in self._radii:
            raise InputError(f'name = {request.name!r}, allowed: {" | ".join(self._radii)}')
        latest = self._latest.get(request.camera)
        if self._follower is None or latest is None:
            raise InputError(f'no image on {self._topic(request.camera)} yet; check the camera')
        tracker = self._follower.tracker.trackers[request.camera]
        return tracker.initialize(request.name, *latest, (request.u, request.v), request.radius)

    # --- reports -----------------------------------------------------------------------------

    def _topic(self, camera: str) -> str:
        """Return the resolved topic name of a camera."""
        return str(self._node.resolve_topic_name(f'{camera}/image_raw'))

    def _warn(self, kind: str, text: str) -> None:
        """Warn at a limited rate for each kind of warning."""
        now = time.monotonic()
        if now - self._warned.get(kind, -math.inf) > _WARNINGS:
            self._warned[kind] = now
            self._node.get_logger().warning(text)

    def _judge_cameras(self) -> None:
        """Judge clocks and poses by the latest sightings, and warn."""
        offset = self._offsets.estimate(search=False)
        self._judged = time.monotonic()
        self._report.offset = offset
        self._report.agreement = agreement = self._agreement.estimate()
        if offset is not None and offset.warning:
            self._warn('clocks', offset.warning)
        elif agreement is not None and agreement.warning:
            self._warn('agreement', agreement.warning)

    def _on_timer(self) -> None:
        """Publish diagnostics; process waiting images if no more arrive."""
        if self._pairs.waiting and time.monotonic() - self._heard > _SILENCE:
            for images in self._pairs.flush():
                self._track(images)
        if time.monotonic() - self._judged > _CLOCKS:
            self._judge_cameras()
        waits = ''
        if self.is_waiting():
            topics = (one.topic_name for one in (self._observations, self._markers))
            waits = f'waiting for {self._settings.recorders} subscribers on {" and ".join(topics)}'
        silent = time.monotonic() - self._heard > _SILENCE
        good, text = self._report.state(silent=silent, waits=waits)
        level = diagnostics.OK if good else diagnostics.WARN
        self._diagnostics.publish(stamp_of(self._stamp), level, text, self._report.values())


class TrackerNode(Node):
    """Node that tracks markers in the images of one camera or two."""

    def __init__(self) -> None:
        # Before the middleware has threads.
        keep_freed_memory()
        super().__init__('tracker')
        self._settings = declare(self, TrackerParameters)
        self._tracker = MarkerTracker(self, self._settings)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._start = self.create_timer(0.02, self._listen, clock=steady)
        self._listen()

    def _listen(self) -> None:
        """Subscribe to images once the required subscribers of the results are present."""
        if self._tracker.is_waiting():
            return
        self.destroy_timer(self._start)
        profile = self._profile()
        for camera in self._tracker.cameras:
            self._subscribe(camera, profile)

    def _profile(self) -> QoSProfile:
        """Return the QoS of image subscriptions."""
        if not self._settings.lossless:
            return qos.LATEST_IMAGES
        return QoSProfile(
            history=qos.IMAGES.history, depth=_LOSSLESS, reliability=qos.IMAGES.reliability
        )

    def _subscribe(self, camera: str, profile: QoSProfile) -> None:
        """Subscribe to the topics of one camera."""
        self.create_subscription(
            CameraInfo,
            f'{camera}/camera_info',
            lambda message: self._tracker.on_info(camera, message),
            profile,
        )
        self.create_subscription(
            Image,
            f'{camera}/image_raw',
            lambda message: self._tracker.on_image(camera, message),
            profile,
        )
