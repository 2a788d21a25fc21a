"""
The tracker on a node: from images of one camera or more to observations and marker positions.

The results depend on the images and their stamps only, not on the time of arrival: recorded images
give the same tracks again, provided that none is lost on the way (``lossless``).
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from longreach_msgs.srv import InitializeMarker
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node
from sensor_msgs.msg import CameraInfo, CompressedImage, Image

from longreach_dynamics.errors import InputError
from longreach_node import diagnostics
from longreach_node.stamps import seconds_to_nanoseconds, stamp_of
from longreach_vision.camera.model import Camera
from longreach_vision.io.images import BitDepth
from longreach_vision.marker.detection import TRACKED, Observation
from longreach_vision.rig import Rig, load_rig
from longreach_vision.ros import conversions
from longreach_vision.ros.tracker_parameters import TrackerParameters
from longreach_vision.ros.tracker_publishers import StampedImage, TrackerPublishers
from longreach_vision.tracking.clock_offset import ClockOffset, OffsetEstimator
from longreach_vision.tracking.diagnostics import TrackingReport
from longreach_vision.tracking.follower import Follower, size_error, warm_up
from longreach_vision.tracking.image_sets import ImagePairs, ImageSet
from longreach_vision.tracking.pose_agreement import Agreement, compare_poses
from longreach_vision.tracking.sightings import Sightings

__all__ = ['MarkerTracker']

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


_Judgement = TypeVar('_Judgement', ClockOffset, Agreement)


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
        rig = dataclasses.replace(load_rig(settings.rig), tracking=settings.tracking)
        self._rig = rig.scaled(settings.scale)
        try:
            self._rig.check_pixels()
        except InputError as error:
            raise InputError(f'{settings.rig}, scale = {settings.scale:g}: {error}') from error
        self.cameras = tuple(self._rig.cameras)
        self._publishers = TrackerPublishers(node, settings, self._rig)
        topics = (publisher.topic_name for publisher in self._publishers.results)
        node.get_logger().info(
            f'tracks {", ".join(self._rig.names)} in'
            f' {", ".join(map(self._topic, self.cameras))}; results on {", ".join(topics)}'
        )
        warm_up()
        self._known: dict[str, Camera] = {}
        if settings.calibration == 'rig':
            self._known = {name: one.camera for name, one in self._rig.cameras.items()}
        self._pairs: ImagePairs[StampedImage] = ImagePairs(
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
        self._diagnostics = diagnostics.Diagnostics(node, 'markers', part)
        node.create_service(InitializeMarker, '~/initialize', self._on_initialize)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        node.create_timer(_PERIOD, self._on_timer, clock=steady)

    def change(self, settings: TrackerParameters) -> None:
        """Continue with parameters that were changed at run time; tracks are kept."""
        self._settings = self._publishers.settings = settings
        tracking = settings.tracking.scaled(settings.scale)
        self._rig = dataclasses.replace(self._rig, tracking=tracking)
        if self._follower is not None:
            self._follower.tracker.use(tracking)
        self._pairs.tolerance = seconds_to_nanoseconds(tracking.gap)
        self._report.change(tracking.gap, settings.latency)

    # --- what comes in -----------------------------------------------------------------------

    def pixels(self, camera: str) -> int:
        """Return the number of pixels of a camera's images."""
        known = self._rig.cameras[camera].camera
        return known.width * known.height

    def has_recorders(self) -> bool:
        """Return whether the required number of subscribers is present."""
        wanted = self._settings.recorders
        return all(one.get_subscription_count() >= wanted for one in self._publishers.results)

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
        self._note_encoding(camera, image.shape, message.encoding)
        self.add(camera, stamp, image, message.header.frame_id)

    def on_compressed(self, camera: str, message: CompressedImage) -> None:
        """Process a compressed image; one that cannot be decoded is counted and skipped."""
        try:
            stamp = conversions.image_stamp(message)
            image = conversions.compressed_to_gray(message, self._depths[camera])
        except InputError as error:
            self._refuse(camera, str(error))
            return
        self._note_encoding(camera, image.shape, message.format)
        self.add(camera, stamp, image, message.header.frame_id)

    def _note_encoding(self, camera: str, shape: tuple[int, ...], encoding: str) -> None:
        """Log size and encoding of a camera's images when they are new."""
        if self._encodings.get(camera) == encoding:
            return
        self._encodings[camera] = encoding
        note = self._depths[camera].note
        self._node.get_logger().info(
            f'{self._topic(camera)}: {shape[1]} x {shape[0]}, {encoding}, converted by'
            f' {conversions.converter_of(encoding)}{"; " * bool(note)}{note}'
        )

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
        frame_id = frame_id or self._publishers.camera_frame(camera)
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
        ready = self._pairs.add(camera, stamp, StampedImage(image, frame_id))
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

    def _track(self, images: ImageSet[StampedImage]) -> None:
        """Track the markers in a set of images, and publish the results."""
        if self._follower is None:
            rig = self._rig_as_known()
            self._follower = Follower(rig)
            self._judge(rig)
            self._latest.clear()
            frames = {name: one.frame_id for name, one in images.images.items()}
            self._publishers.show_cameras(rig, images.stamp, frames)
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
        self._publishers.publish(images, frame, self._follower.tracker.rig)
        if self._report.unpaired:
            self._warn('pairs', self._report.unpaired)
        if self._report.silent:
            self._warn('sightings', self._report.silent)

    def _judge(self, rig: Rig) -> None:
        """Begin to collect what clocks and poses are judged by."""
        self._sightings = Sightings(rig, _SIGHTINGS)
        # Of each camera against the first one.
        self._offsets = [OffsetEstimator(pair) for pair in self._sightings.pairs]

    def _rig_as_known(self) -> Rig:
        """Return the rig with the current intrinsics."""
        cameras = {
            name: dataclasses.replace(one, camera=self._known.get(name, one.camera))
            for name, one in self._rig.cameras.items()
        }
        return dataclasses.replace(self._rig, cameras=cameras)

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
        if request.name not in self._rig.names:
            raise InputError(f'name = {request.name!r}, allowed: {" | ".join(self._rig.names)}')
        latest = self._latest.get(request.camera)
        if self._follower is None or latest is None:
            raise InputError(f'no image on {self._topic(request.camera)} yet; check the camera')
        tracker = self._follower.tracker.trackers[request.camera]
        return tracker.initialize(request.name, *latest, (request.u, request.v), request.radius)

    # --- reports -----------------------------------------------------------------------------

    def _topic(self, camera: str) -> str:
        """Return the resolved topic name of a camera."""
        suffix = '/compressed' if self._settings.transport == 'compressed' else ''
        return str(self._node.resolve_topic_name(f'{camera}/image_raw{suffix}'))

    def _warn(self, kind: str, text: str) -> None:
        """Warn at a limited rate for each kind of warning."""
        now = time.monotonic()
        if now - self._warned.get(kind, -math.inf) > _WARNINGS:
            self._warned[kind] = now
            self._node.get_logger().warning(text)

    def _judge_cameras(self) -> None:
        """Judge clocks and poses by the latest sightings, and warn."""
        offset = _worst([one.estimate(search=False) for one in self._offsets])
        self._judged = time.monotonic()
        self._report.offset = offset
        agreement = _worst(compare_poses(self._sightings))
        self._report.agreement = agreement
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
            topics = (one.topic_name for one in self._publishers.results)
            waits = f'waiting for {self._settings.recorders} subscribers on {" and ".join(topics)}'
        silent = time.monotonic() - self._heard > _SILENCE
        good, text = self._report.state(silent=silent, waits=waits)
        level = diagnostics.OK if good else diagnostics.WARN
        self._diagnostics.publish(stamp_of(self._stamp), level, text, self._report.values())


def _worst(found: Sequence[_Judgement | None]) -> _Judgement | None:
    """Return the first result with a warning, or else the first one; None for one camera."""
    return next((one for one in found if one is not None and one.warning), next(iter(found), None))
