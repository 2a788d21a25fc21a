"""Results of tracking: positions of markers in space at one time."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping

import numpy as np

from longreach_markers.camera.geometry import Pose
from longreach_markers.camera.triangulation import Location
from longreach_markers.marker.observation import TRACKED, Observation

# Median of the chi-square distribution with 1 degree of freedom.
_MEDIAN = 0.4549


@dataclasses.dataclass(frozen=True, eq=False)
class Estimate:
    """
    Estimated position of a marker.

    Parameters
    ----------
    name : str
    status : str
        ``TRACKED``, ``UNCERTAIN`` or ``LOST``: the worse status of the cameras used; also
        UNCERTAIN if their observations are inconsistent, or were moved to a common time without
        known velocity.
    reason : str
        Why the status is not TRACKED; empty otherwise.
    cameras : tuple of str
        Cameras used: an uncertain one is not used if another tracks the marker.
    in_plane : Location, optional
        Position in the world, assuming that it moves in its plane [m].
    triangulated : Location, optional
        Position without this assumption; requires two cameras or more.
    out_of_plane : float
        Distance of the triangulated position from the marker's plane along the normal [m]; NaN
        without a triangulated position.
    out_of_plane_deviation : float
        Standard deviation of out_of_plane [m].
    is_off_plane : bool
        UNCERTAIN only because it is out of the plane: the triangulated position is reliable.
    pairs : mapping of Location
        Positions triangulated by each two of the cameras used, whose rays meet: whether they
        agree.
    off_plane : float
        Significant distance from the marker's plane when several cameras saw it last [m]; 0
        otherwise.
    """

    name: str
    status: str
    reason: str
    cameras: tuple[str, ...] = ()
    in_plane: Location | None = None
    triangulated: Location | None = None
    out_of_plane: float = math.nan
    out_of_plane_deviation: float = math.nan
    is_off_plane: bool = False
    pairs: Mapping[tuple[str, str], Location] = dataclasses.field(default_factory=dict)
    off_plane: float = 0.0


@dataclasses.dataclass(frozen=True, eq=False)
class BodyEstimate:
    """
    Estimated pose of a rigid body.

    Parameters
    ----------
    name : str
    reason : str
        Why there is no pose; empty if there is one.
    markers : tuple of str
        Markers used.
    pose : Pose, optional
        T_world_body, with the covariance of rotation vector in the body [rad] and translation in
        the world [m], shape (6, 6).
    systematic : ndarray, shape (6, 6), optional
        The part of the covariance that does not average out over images: from camera poses,
        plane, calibrations, and the positions of the markers on the body.
    chi_square : float
        Of the residuals, with ``freedom`` degrees of freedom; NaN if unknown.
    freedom : int
    """

    name: str
    reason: str
    markers: tuple[str, ...] = ()
    pose: Pose | None = None
    systematic: np.ndarray | None = None
    chi_square: float = math.nan
    freedom: int = 0

    @property
    def noise(self) -> np.ndarray | None:
        """The part of the covariance from the pixels (6, 6), independent in each image."""
        if self.pose is None or self.pose.covariance is None or self.systematic is None:
            return None
        return np.asarray(self.pose.covariance - self.systematic)


@dataclasses.dataclass(frozen=True, eq=False)
class RigFrame:
    """
    Results of the images of one time.

    Parameters
    ----------
    time : float
        Time of the first camera's image, and of the estimates [s].
    gap : float
        Time of the other image minus this [s], the largest in magnitude of several; NaN with one
        camera.
    observations : dict of dict of Observation
        Observations by camera and marker, at the time of each image.
    estimates : dict of Estimate
        Estimates of all markers of the rig, by name.
    chi_square : float
        Typical squared distance of two cameras' rays over its variance, from the latest
        sightings by each two of them: 1 is expected; NaN if unknown.
    bodies : dict of BodyEstimate
        Poses of the rigid bodies of the rig, by name.
    times : mapping
        Time of each camera's image [s].
    """

    time: float
    gap: float
    observations: dict[str, dict[str, Observation]]
    estimates: dict[str, Estimate]
    chi_square: float = math.nan
    bodies: dict[str, BodyEstimate] = dataclasses.field(default_factory=dict)
    times: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def disagreements(self) -> dict[tuple[str, str, str], Location]:
        """Points triangulated by two cameras that both TRACK the marker: marker, both cameras."""
        return {
            (name, *pair): point
            for name, one in self.estimates.items()
            for pair, point in one.pairs.items()
            if all(self.observations[camera][name].status == TRACKED for camera in pair)
        }


def typical_chi_square(values: Collection[float] | np.ndarray) -> float:
    """Return the typical value of squares with 1 degree of freedom; 1 is expected, NaN if none."""
    return float(np.median(np.asarray(values))) / _MEDIAN if len(values) else math.nan
