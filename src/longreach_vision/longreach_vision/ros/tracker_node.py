"""
Tracker node: from images of one camera or more to observations and marker positions.

Results depend on images and their stamps, not on the time of arrival: with ``lossless``, recorded
images give the same tracks again.
"""

from __future__ import annotations

import dataclasses
import math
import time
from functools import partial

import numpy as np
from longreach_msgs.srv import InitializeMarker
from rclpy.qos import QoSProfile
from sensor_msgs.msg import CompressedImage, Image

from longreach_dynamics.errors import InputError, named
from longreach_markers import (
    TRACKED,
    BitDepth,
    CameraMonitor,
    Follower,
    ImageSet,
    ImageSets,
    Observation,
    TrackingReport,
    image_to_gray,
    load_rig,
    lost,
    warm_up,
)
from longreach_node import diagnostics, qos
from longreach_node.clock import steady_clock
from longreach_node.frames import frame_name
from longreach_node.stamps import nanoseconds_from, seconds_to_nanoseconds, stamp_of
from longreach_vision.io.track_table import Messages
from longreach_vision.ros.conversions import ros_type
from longreach_vision.ros.node_parameters import TrackerParameters, tracking_of_rig
from longreach_vision.ros.tracker_publishers import TrackerPublishers
from longreach_vision.ros.vision_node import VisionNode

# Time without any image after which waiting images are no longer held back, and least time
# between warnings of one kind [s of wall time].
_SILENCE, _WARNINGS = 2.0, 2.0
# Counters of images that are not used, and what is said of one.
_NOT_USED = {
    'misdated': ', far from the previous one; it is dropped unless the next ones continue there',
    'disordered': ', allowed: after the previous one; it is dropped. Check that the driver stamps'
    ' each image, and once only',
    'repeated': ' repeats the previous one, pixel by pixel; it is not used. Check the driver, and'
    ' how the images were recorded',
}


class MarkerTracker:
    """The tracker on a node: publishers, service ``~/initialize``, diagnostics of ``part``."""

    def __init__(self, node: VisionNode, part: str = '') -> None:
        self._node, settings = node, node.settings
        self._warned: dict[str, float] = {}
        rig = dataclasses.replace(load_rig(settings.rig), tracking=settings.tracking)
        self._rig = rig.scaled(settings.scale)
        with named(f'{settings.rig}, scale = {settings.scale:g}: '):
            self._rig.check_pixels()
        self.cameras = tuple(self._rig.cameras)
        self._publishers = TrackerPublishers(node, settings, self._rig)
        suffix = '/compressed' if settings.transport == 'compressed' else ''
        self._topics = {
            camera: str(node.resolve_topic_name(f'{camera}/image_raw{suffix}'))
            for camera in self.cameras
        }
        self._encodings: dict[str, str] = {}
        self._depths = {name: BitDepth() for name in self.cameras}
        topics = (publisher.topic_name for publisher in self._publishers.results)
        node.get_logger().info(
            f'tracks {", ".join(self._rig.names)} in {", ".join(self._topics.values())}; results'
            f' on {", ".join(topics)}'
        )
        warm_up()
        self._sets = ImageSets(self.cameras, self._rig.tracking.gap, settings.timeout)
        self._delays = self._rig.delays
        self._follower: Follower | None = None
        self._latest: dict[str, tuple[np.ndarray, float]] = {}
        # Frames of the cameras' images, and those whose transforms were published.
        self._frames: dict[str, str] = {}
        self._shown: dict[str, str] = {}
        self._stamp = 0
        # Arrival of the latest image, or the start, on the monotonic clock [s].
        self.heard = time.monotonic()
        self._judge = CameraMonitor(self._rig, self.heard)
        self._report = TrackingReport(
            self._sets, self._topics, self._rig.tracking.gap, settings.latency
        )
        self._diagnostics = diagnostics.Diagnostics(node, 'markers', part)
        node.create_service(InitializeMarker, '~/initialize', self._on_initialize)

    def change(self, settings: TrackerParameters) -> None:
        """Continue with parameters that were changed at run time; tracks are kept."""
        self._publishers.settings = settings
        tracking = settings.tracking.scaled(settings.scale)
        self._rig = dataclasses.replace(self._rig, tracking=tracking)
        if self._follower is not None:
            self._follower.tracker.use(self._rig)
        self._sets.tolerance = seconds_to_nanoseconds(tracking.gap)
        self._report.change(tracking.gap, settings.latency)

    # --- what comes in -----------------------------------------------------------------------

    def pixels(self, camera: str) -> int:
        """Return the number of pixels of a camera's images."""
        known = self._rig.cameras[camera].camera
        return known.width * known.height

    def lacks(self) -> str:
        """Say which results lack subscribers before images are subscribed to; empty for none."""
        return self._node.missing(self._node.settings.recorders, *self._publishers.results)

    def _warn(self, kind: str, text: str) -> None:
        """Warn, unless there was a warning of this kind just now."""
        now = time.monotonic()
        if now - self._warned.get(kind, -math.inf) > _WARNINGS:
            self._warned[kind] = now
            self._node.get_logger().warning(text)

    def on_image(self, camera: str, message: Image | CompressedImage) -> None:
        """Process an image; one that cannot be used is counted and skipped."""
        try:
            stamp = nanoseconds_from(message.header.stamp, "the driver's stamp")
            image = image_to_gray(message, self._depths[camera])
        except InputError as error:
            self._refuse(camera, str(error))
            return
        encoding = message.format if isinstance(message, CompressedImage) else message.encoding
        if self._encodings.get(camera) != encoding:
            self._encodings[camera] = encoding
            note = self._depths[camera].note
            size = f'{image.shape[1]} x {image.shape[0]}'
            text = f'{self._topics[camera]}: {size}, {encoding}{"; " * bool(note)}{note}'
            self._node.get_logger().info(text)
        self.add(camera, stamp, image, message.header.frame_id)

    def _refuse(self, camera: str, text: str) -> None:
        self.heard = time.monotonic()
        self._report.add_image(camera, good=False)
        self._warn(f'image {camera}', f'{self._topics[camera]}: {text}')

    def add(self, camera: str, stamp: int, image: np.ndarray, frame_id: str = '') -> None:
        """Track the images that are complete with this one, an array stamped in ns."""
        try:
            self._rig.check_image(camera, image, self._node.settings.scale)
        except InputError as error:
            self._refuse(camera, str(error))
            return
        self.heard = time.monotonic()
        self._report.add_image(camera, good=True)
        self._note_frame(camera, frame_id)
        stamp -= self._delays[camera]
        topic, time_ = self._topics[camera], f'{stamp * 1e-9:.3f} s'
        before = {what: self._sets.counts(what)[camera] for what in _NOT_USED}
        restarts, jumps = self._sets.restarts, self._sets.jumps
        ready = self._sets.add(camera, stamp, image)
        log = self._node.get_logger()
        if self._sets.restarts != restarts:
            self._follower = None
            log.info(f'time went back to {time_}: tracking restarts')
        if self._sets.jumps != jumps:
            log.info(f'time jumped ahead to {time_} on {topic}: tracking continues')
        for what, text in _NOT_USED.items():
            if self._sets.counts(what)[camera] > before[what]:
                self._warn(f'{what} {camera}', f'{topic}: image of {time_}{text}')
        for images in ready:
            self._track(images)

    def _note_frame(self, camera: str, frame_id: str) -> None:
        own = frame_name(self._node, self._node.settings, f'{camera}_camera_optical')
        frame = frame_id or own
        taken = {
            known: self._topics[name] for name, known in self._frames.items() if name != camera
        }
        taken[self._node.settings.frame_id.lstrip('/')] = 'the world'
        if frame in taken:
            if self._frames.get(camera) != own:
                self._node.get_logger().warning(
                    f'{self._topics[camera]}: frame_id {frame!r} is also that of {taken[frame]};'
                    f' {own!r} is used instead. Set a frame_id of its own in the driver'
                )
            frame = own
        self._frames[camera] = frame

    # --- tracking ----------------------------------------------------------------------------

    def _track(self, images: ImageSet) -> None:
        if self._follower is None or self._frames != self._shown:
            self._shown = dict(self._frames)
            self._publishers.show_cameras(self._rig, images.stamp, self._shown)
        if self._follower is None:
            self._follower = Follower(self._rig)
            self._judge = CameraMonitor(self._rig, time.monotonic())
            self._latest.clear()
        self._latest.update({name: (images.images[name], at) for name, at in images.times.items()})
        begun = time.perf_counter()
        try:
            frame = self._follower.update(images)
        except InputError as error:
            self._warn('tracking', str(error))
            return
        latency = 1e-9 * (self._node.get_clock().now().nanoseconds - images.stamp)
        self._report.add_frame(frame, (time.perf_counter() - begun) / len(images.images), latency)
        self._judge.add(frame)
        if self._follower.problem:
            self._warn('start', self._follower.problem)
        self._stamp = images.stamp
        self._publishers.publish(images, frame, self._follower.tracker.rig)
        if self._report.unpaired:
            self._warn('pairs', self._report.unpaired)
        if self._report.silent:
            self._warn('sightings', self._report.silent)

    def _on_initialize(
        self, request: InitializeMarker.Request, response: InitializeMarker.Response
    ) -> InitializeMarker.Response:
        try:
            found = self._initialized(request)
            response.success = found.status == TRACKED
            u, v = found.center.tolist()
            response.message = f'{request.name} is tracked from ({u:.1f}, {v:.1f}) px on'
            if not response.success:
                response.message = f'refused: {found.reason}; the previous track is kept'
        except InputError as error:
            response.message = str(error)
            found = lost(response.message, np.array([request.u, request.v]), request.radius)
        response.observation = Messages(ros_type).observation(request.name, found)
        return response

    def _initialized(self, request: InitializeMarker.Request) -> Observation:
        if request.camera not in self.cameras:
            raise InputError(f'camera = {request.camera!r}, allowed: {" | ".join(self.cameras)}')
        if request.name not in self._rig.names:
            raise InputError(f'name = {request.name!r}, allowed: {" | ".join(self._rig.names)}')
        latest = self._latest.get(request.camera)
        if self._follower is None or latest is None:
            raise InputError(f'no image on {self._topics[request.camera]} yet; check the camera')
        tracker = self._follower.tracker.trackers[request.camera]
        return tracker.initialize(request.name, *latest, (request.u, request.v), request.radius)

    # --- reports -----------------------------------------------------------------------------

    def report(self) -> None:
        """Publish diagnostics, and track images that wait for a camera that is silent."""
        if self._sets.waiting and time.monotonic() - self.heard > _SILENCE:
            for images in self._sets.flush():
                self._track(images)
        if self._judge.work(time.monotonic()):
            self._report.offset, self._report.doubt = self._judge.offset, self._judge.warning
            if self._judge.warning:
                self._warn('cameras', self._judge.warning)
        silent, lacks = time.monotonic() - self.heard > _SILENCE, self.lacks()
        waits = f'waiting for {lacks}' if lacks else ''
        good, text = self._report.state(silent=silent, waits=waits)
        level = diagnostics.OK if good else diagnostics.WARN
        self._diagnostics.publish(stamp_of(self._stamp), level, text, self._report.values())


# Queue of a lossless subscription while the tracker is busy: images, bytes, and the number of
# images that are kept however large they are.
_LOSSLESS, _ROOM, _LEAST = 50, 250_000_000, 5


class TrackerNode(VisionNode):
    """Node that tracks markers in the images of one camera or more."""

    def __init__(self) -> None:
        super().__init__('tracker', TrackerParameters, tracking_of_rig)
        self._tracker = MarkerTracker(self)
        self._start = self.create_timer(0.02, self._listen, clock=steady_clock())
        self._listen()

    def change(self, settings: TrackerParameters) -> None:
        """Continue with parameters that were changed at run time."""
        super().change(settings)
        self._tracker.change(settings)

    def report(self) -> None:
        """Publish diagnostics."""
        self._tracker.report()

    def _listen(self) -> None:
        if self._tracker.lacks():
            return
        self.destroy_timer(self._start)
        is_packed = self.settings.transport == 'compressed'
        kind, ending = (CompressedImage, '/compressed') if is_packed else (Image, '')
        for camera in self._tracker.cameras:
            image = partial(self._tracker.on_image, camera)
            topic = f'{camera}/image_raw{ending}'
            self.create_subscription(kind, topic, image, self._profile(camera))

    def _profile(self, camera: str) -> QoSProfile:
        if not self.settings.lossless:
            return qos.LATEST_IMAGES
        depth = max(_LEAST, min(_LOSSLESS, _ROOM // self._tracker.pixels(camera)))
        return QoSProfile(
            history=qos.IMAGES.history, depth=depth, reliability=qos.IMAGES.reliability
        )
