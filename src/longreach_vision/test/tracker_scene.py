"""A tracker as a node, images for it, what it publishes, and what the library finds in them."""

import math
from typing import NamedTuple

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from longreach_msgs.msg import MarkerEstimates, MarkerObservations
from longreach_msgs.srv import InitializeMarker
from sensor_msgs.msg import CompressedImage, Image
from small_rig import write_rig

from longreach_markers import (
    Camera,
    Follower,
    ImageSets,
    MarkerOnRig,
    MountedCamera,
    Plane,
    Pose,
    Rig,
    load_rig,
)
from longreach_node import diagnostics, qos
from longreach_node.frames import header_at
from longreach_node.stamps import nanoseconds_of
from longreach_node.testing import setting
from longreach_vision.io.track_table import Messages
from longreach_vision.ros.conversions import array_to_image, ros_type
from longreach_vision.ros.tracker_node import TrackerNode
from longreach_vision.simulator.camera_simulator import simulators_of
from longreach_vision.simulator.scene import CameraLook

CAMERA = Camera('any', 320, 240, 400.0, 400.0, 159.5, 119.5, 'plumb_bob', (-0.1, 0.02, 0.0, 0.0))
SIDES = ('left', 'right')
NAMES = ('base', 'tip')


def rig(**changes):
    """Return two cameras 9 m before the plane y = 0, and two markers of 11 px in them."""
    return Rig(
        {
            side: MountedCamera(CAMERA, Pose.from_look_at((x, -9.0, 1.0), (0.0, 0.0, 1.0)))
            for side, x in zip(SIDES, (-1.5, 1.5), strict=True)
        },
        Plane(np.array([0.0, 1.0, 0.0]), 0.0),
        (
            MarkerOnRig('base', 0.25, position=(-1.5, 0.0, 0.5)),
            MarkerOnRig('tip', 0.25, position=(1.0, 0.0, 1.5)),
        ),
        **changes,
    )


def motion(time):
    rise = 0.1 * math.sin(2.0 * time)
    places = np.array([[-1.5, 0.0, 0.5], [1.0, 0.0, 1.5 + rise]])
    return places, np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.2 * math.cos(2.0 * time)]])


LOOK = CameraLook(clutter=0, blur=0.8)
PERIOD, NANOSECONDS = 66_666_667, 1_000_000_000  # [ns]


class Shot(NamedTuple):
    camera: str
    stamp: int  # [ns]
    image: np.ndarray

    def message(self):
        frame = f'{self.camera}_camera_optical'
        return array_to_image(self.image, 'mono8', header_at(self.stamp, frame))


def shots(count, skew=0, first=0, sides=SIDES, own=None, motion=motion):
    """Return images in the order of time; the right camera's are late by ``skew`` [ns]."""
    simulators, taken = simulators_of(own or rig(), LOOK), []
    for side in sides:
        for k in range(first, first + count):
            stamp = k * PERIOD + (skew if side == 'right' else 0)
            rng = np.random.default_rng([k, side == 'right'])
            picture = simulators[side].image(*motion(stamp * 1e-9), stamp * 1e-9, rng)
            taken.append(Shot(side, stamp, picture.copy()))
    return sorted(taken, key=lambda shot: shot.stamp)


def stamped_late(taken):
    return [
        shot._replace(stamp=shot.stamp + 15_000_000) if shot.camera == 'right' else shot
        for shot in taken
    ]


def by_library(taken, tmp_path):
    write_rig(rig(), tmp_path / 'library.yaml')
    # A file rounds the poses.
    own = load_rig(tmp_path / 'library.yaml')
    follower, make = Follower(own), Messages(ros_type)
    pairs = ImageSets(tuple(own.cameras), own.tracking.gap, 0.5)
    sets = [ready for shot in taken for ready in pairs.add(*shot)] + pairs.flush()
    observed, estimated = [], []
    for ready in sets:
        frame = follower.update(ready)
        for side, found in frame.observations.items():
            at = ready.stamps[side], f'{side}_camera_optical'
            observed.append(make.observations(found, side, *at))
        if not ready.late:
            estimated.append(make.estimates(frame, ready.stamp, 'world'))
    return observed, estimated


class Tracker:
    """The node, a driver in the cameras' place, and what the node publishes."""

    def __init__(self, b, capture, sides=SIDES, compressed=False):
        self.bench = b
        self.observations = b.listen(MarkerObservations, 'observations')
        self.markers = b.listen(MarkerEstimates, 'markers')
        self.reports = b.listen(DiagnosticArray, '/diagnostics', qos.DIAGNOSTICS)
        self._capture, self._log = capture, ''
        self.node = b.add(TrackerNode)
        kind, topic = (CompressedImage, '/compressed') if compressed else (Image, '')
        self._cameras = {
            side: b.publisher(kind, f'{side}/image_raw{topic}', qos.IMAGES) for side in sides
        }

    def send(self, taken):
        for shot in taken:
            self.send_message(shot.camera, shot.message())

    def send_message(self, side, message):
        camera, tracker = self._cameras[side], self.node._tracker
        before = tracker.heard
        camera.publish(message)
        # More than what waits in a queue would get lost.
        if camera.get_subscription_count():
            self.bench.until(lambda: tracker.heard != before, 'image')

    def heard(self, count):
        self.bench.until(lambda: len(self.markers) >= count, f'estimates of {count} pairs')

    def says(self, *texts):
        def found():
            self._log += self._capture.readouterr().err
            return [line for line in self._log.splitlines() if all(text in line for text in texts)]

        self.bench.until(found, f'line with {texts} in the log')
        return found()[-1]

    def reported(self, **values):
        """Wait for a status with these values, names with _ for blanks, and return it."""
        wanted = {(name, str(value)) for name, value in values.items()}
        return self._status(
            lambda one: wanted <= {(v.key.replace(' ', '_'), v.value) for v in one.values}, values
        )

    def warns(self, text, level=diagnostics.WARN):
        return self._status(lambda one: one.level == level and text in one.message, text)

    def _status(self, condition, what):
        def found():
            return [one.status[0] for one in self.reports if condition(one.status[0])]

        self.bench.until(found, f'report with {what}')
        return found()[-1]

    def are_at(self, messages, bound):
        for message in messages:
            places, _ = motion(nanoseconds_of(message.header.stamp) * 1e-9)
            for one, place in zip(message.estimates, places, strict=True):
                assert one.status == 0
                found = [one.in_plane.x, one.in_plane.y, one.in_plane.z]
                assert np.abs(np.array(found) - place).max() < bound

    def initialize(self, camera, name, *place):
        u, v, radius = place
        request = InitializeMarker.Request(camera=camera, name=name, u=u, v=v, radius=radius)
        return self.bench.call(InitializeMarker, 'tracker/initialize', request)


def with_rig(tmp_path, node='', own=None, **more):
    write_rig(own or rig(), tmp_path / 'rig.yaml')
    return setting(*node.split(), **{'rig': tmp_path / 'rig.yaml', **more})
