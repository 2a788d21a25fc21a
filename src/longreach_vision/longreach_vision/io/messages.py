"""
Tracks as messages, of ROS or of the types of a bag, whose fields are keywords.

The status is 0 for tracked, 1 for seen but unreliable, 2 for lost. Unknown values are NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from longreach_markers.camera.geometry import Pose
from longreach_markers.camera.triangulation import Location
from longreach_markers.marker.detection import LOST, TRACKED, UNCERTAIN, Observation
from longreach_markers.tracking.bodies import covariance_in_world
from longreach_markers.tracking.frames import Estimate, RigFrame

STATUSES = (TRACKED, UNCERTAIN, LOST)
"""Statuses in the order of their numbers."""

KINDS = ('in_plane', 'triangulated')
"""Kinds of estimates: in the plane, and triangulated without that assumption."""

CAMERAS = ('left', 'right')
"""Cameras in the order of their bits in the field ``cameras``, by default."""

OBSERVATIONS = 'longreach_msgs/msg/MarkerObservations'
ESTIMATES = 'longreach_msgs/msg/MarkerEstimates'
BODY = 'geometry_msgs/msg/PoseWithCovarianceStamped'

_SECOND = 1_000_000_000  # [ns]


def cameras_of(cameras: Iterable[str]) -> tuple[str, ...]:
    """Return the cameras of messages and tables for those of a rig: left and right, or those."""
    names = tuple(cameras)
    return CAMERAS if set(names) <= set(CAMERAS) else names


class Messages:
    """Makes messages: ``types`` returns the type of a name, stamps are in [ns]."""

    def __init__(
        self, types: Callable[[str], Callable[..., Any]], cameras: Sequence[str] = CAMERAS
    ) -> None:
        self._types, self._cameras = types, tuple(cameras)

    def _make(self, kind: str, **fields: Any) -> Any:
        return self._types(kind)(**fields)

    def _point(self, values: np.ndarray) -> Any:
        point = dict(zip('xyz', values.tolist(), strict=True))
        return self._make('geometry_msgs/msg/Point', **point)

    def header(self, stamp: int, frame_id: str) -> Any:
        """Return a header."""
        second, rest = divmod(stamp, _SECOND)
        time = self._make('builtin_interfaces/msg/Time', sec=second, nanosec=rest)
        return self._make('std_msgs/msg/Header', stamp=time, frame_id=frame_id)

    def observation(self, name: str, seen: Observation) -> Any:
        """Return the observation of a marker in an image."""
        return self._make(
            OBSERVATIONS.removesuffix('s'),
            name=name,
            status=STATUSES.index(seen.status),
            reason=seen.reason,
            center=np.array(seen.center, dtype=np.float64),
            covariance=np.array(seen.covariance, dtype=np.float64).ravel(),
            ellipse_center=np.array(seen.ellipse.center, dtype=np.float64),
            axes=np.array(seen.ellipse.axes, dtype=np.float64),
            angle=float(seen.ellipse.angle),
            rim_support=float(seen.rim_support),
            residual=float(seen.residual),
        )

    def observations(
        self, found: Mapping[str, Observation], camera: str, stamp: int = 0, frame_id: str = ''
    ) -> Any:
        """Return all observations in an image."""
        return self._make(
            OBSERVATIONS,
            header=self.header(stamp, frame_id),
            camera=camera,
            observations=[self.observation(*pair) for pair in found.items()],
        )

    def estimate(self, name: str, found: Estimate) -> Any:
        """Return the estimate of a marker."""
        fields: dict[str, Any] = {
            'name': name,
            'status': STATUSES.index(found.status),
            'reason': found.reason,
            'cameras': sum(1 << self._cameras.index(camera) for camera in found.cameras),
            'out_of_plane': float(found.out_of_plane),
            'out_of_plane_deviation': float(found.out_of_plane_deviation),
        }
        for kind in KINDS:
            location: Location | None = getattr(found, kind)
            place = np.full(3, math.nan) if location is None else location.position
            spread = np.full((3, 3), math.nan) if location is None else location.covariance
            noise = spread if location is None else location.noise
            fields[kind] = self._point(place)
            fields[f'{kind}_covariance'] = np.array(spread, dtype=np.float64).ravel()
            fields[f'{kind}_noise_covariance'] = np.array(noise, dtype=np.float64).ravel()
        return self._make(ESTIMATES.removesuffix('s'), **fields)

    def estimates(self, frame: RigFrame, stamp: int = 0, frame_id: str = '') -> Any:
        """Return all estimates of a set of images."""
        return self._make(
            ESTIMATES,
            header=self.header(stamp, frame_id),
            stamp_gap=frame.gap,
            chi_square=frame.chi_square,
            estimates=[self.estimate(*pair) for pair in frame.estimates.items()],
        )

    def pose(self, pose: Pose) -> Any:
        """Return a pose without time and frame."""
        turn = dict(zip('xyzw', pose.quaternion.tolist(), strict=True))
        return self._make(
            'geometry_msgs/msg/Pose',
            position=self._point(pose.translation),
            orientation=self._make('geometry_msgs/msg/Quaternion', **turn),
        )

    def body(self, pose: Pose, stamp: int, frame_id: str) -> Any:
        """Return a body's pose; the covariance has position first, and the parent's axes."""
        covariance = covariance_in_world(pose).ravel()
        placed = self._make(
            'geometry_msgs/msg/PoseWithCovariance', pose=self.pose(pose), covariance=covariance
        )
        return self._make(BODY, header=self.header(stamp, frame_id), pose=placed)
