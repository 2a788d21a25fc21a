"""
A bar of known length with a marker at each end: the accuracy of cameras, without their poses.

The distance d of two triangulated markers does not depend on the choice of the world. Its mean
error shows wrong calibrations, baselines and angles between the cameras, its scatter wrong times
and noise. Errors of poses and calibrations are propagated by differences: with g_k the derivatives
of d in image pair k by the coordinates of all poses, of covariance S, and their mean g, the mean
of d has the variance g^T S g, and its scatter the part mean((g_k - g)^T S (g_k - g)).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import approx_fprime

from longreach_dynamics.errors import InputError
from longreach_markers.camera.geometry import Pose
from longreach_markers.camera.triangulation import triangulate
from longreach_markers.marker.detection import TRACKED
from longreach_markers.rig import Rig
from longreach_markers.tracking.frames import RigFrame
from longreach_markers.tracking.pose_agreement import moved
from longreach_markers.tracking.sightings import json_fields

# Image pairs whose derivatives are computed; the least number of pairs for a judgement.
_SAMPLES, _LEAST = 60, 10
# Steps of differences [rad] or [m], [px]; standard deviations beyond which a mean is not
# explained, and times beyond which a scatter is not.
_STEP, _PIXEL = 1e-6, 1e-3
_SURE, _TIMES = 3.0, 2.0


# Of each marker: indices of its cameras, and pixels (k, 2) of its triangulated position.
_Seen = list[tuple[list[int], np.ndarray]]


class _Pair(NamedTuple):
    """Both markers in the images of one time."""

    distance: float  # [m]
    noise: float  # its variance from the pixels [m^2]
    seen: _Seen


@dataclasses.dataclass(frozen=True)
class DistanceCheck:
    """
    Measured against known distance of two markers.

    Parameters
    ----------
    markers : (str, str)
    length, length_deviation : float
        Known distance and its standard deviation [m].
    pairs : int
        Image pairs in which two cameras or more tracked both markers.
    mean, scatter : float
        Mean and standard deviation of the measured distance [m]; NaN without pairs.
    mean_explained, scatter_explained : float
        Standard deviations of both that pixels, poses and calibrations explain [m].
    cameras : tuple of str
        Cameras that were compared, if there are others; otherwise empty.
    """

    markers: tuple[str, str]
    length: float
    length_deviation: float
    pairs: int
    mean: float
    scatter: float
    mean_explained: float
    scatter_explained: float
    cameras: tuple[str, ...] = ()

    @property
    def error(self) -> float:
        """Mean error of the measured distance [m]."""
        return self.mean - self.length

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is not explained, with what to do."""
        one, two = self.markers
        who = ' and '.join(self.cameras) if len(self.cameras) == 2 else 'both cameras'
        who = 'two cameras' if len(self.cameras) > 2 else who
        by = f' by {who}' if len(self.cameras) == 2 else ' by all cameras' * bool(self.cameras)
        if self.pairs < _LEAST:
            text = f'{who} track {one} and {two} in {self.pairs} image pairs, allowed: at least'
            return (f'{text} {_LEAST}; carry the bar where they see it',)
        told = []
        explained = math.hypot(self.mean_explained, self.length_deviation)
        if abs(self.error) > _SURE * explained:
            told.append(
                f'{one} to {two}{by} measures {1e3 * abs(self.error):.2g} mm too'
                f' {"long" if self.error > 0.0 else "short"}, poses and length explain'
                f' {1e3 * explained:.2g} mm: measure the length again, then calibrate the cameras'
                ' and measure the reference points again; a wrong baseline or focal length changes'
                ' all lengths in proportion'
            )
        if self.scatter > _TIMES * self.scatter_explained:
            told.append(
                f'the distance of {one} and {two}{by} scatters by {1e3 * self.scatter:.2g} mm,'
                f' pixels and poses explain {1e3 * self.scatter_explained:.2g} mm: look for a'
                ' clock offset or a rolling shutter (longreach vision sync), a bar that bends, or'
                ' a calibration that does not fit at the edges of the images'
            )
        return tuple(told)

    def fields(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        values = json_fields(self)
        if not self.cameras:
            del values['cameras']
        error = None if math.isnan(self.error) else self.error
        return values | {'error': error, 'warnings': list(self.warnings)}


class KnownDistance:
    """
    Collects the distance of two markers over images of the same times.

    Parameters
    ----------
    rig : Rig
        With two cameras or more.
    markers : (str, str)
    length, length_deviation : float
        Known distance of their centres and its standard deviation [m].
    cameras : tuple of str
        Two or all cameras of a rig with more than two, in its order. Two are compared wherever
        both track the markers, whether the other cameras agree or not. Empty: all.

    Raises
    ------
    InputError
        For one camera, unknown or equal markers, and lengths that are not positive.
    """

    def __init__(
        self,
        rig: Rig,
        markers: tuple[str, str],
        length: float,
        length_deviation: float,
        cameras: tuple[str, ...] = (),
    ) -> None:
        if len(rig.cameras) < 2:
            raise InputError('the rig has one camera, allowed: two or more')
        for name in markers:
            if name not in rig.names:
                raise InputError(f'marker {name!r}, allowed: {", ".join(rig.names)}')
        if markers[0] == markers[1]:
            raise InputError(f'{markers[0]} is given twice, allowed: two markers')
        for what, value in (('length', length), ('deviation', length_deviation)):
            if not 0.0 < value < math.inf:
                raise InputError(f'{what} = {value} m, allowed: above 0')
        self._rig, self._markers, self._told = rig, markers, cameras
        self._length, self._length_deviation = length, length_deviation
        self._pairs: list[_Pair] = []

    def add(self, frame: RigFrame) -> None:
        """Add images of one time; markers that two cameras or more track count."""
        places, by = [], []
        for name in self._markers:
            one = frame.estimates[name]
            cameras, point = one.cameras, one.triangulated
            if len(self._told) == 2:
                cameras = self._told
                point = frame.disagreements.get((name, *cameras))
            elif not (one.status == TRACKED or one.is_off_plane) or len(cameras) < 2:
                return
            if point is None:
                return
            places.append(point)
            by.append([tuple(self._rig.cameras).index(camera) for camera in cameras])
        apart = places[1].position - places[0].position
        distance = float(np.linalg.norm(apart))
        along = apart / distance
        noise = float(along @ (places[0].noise + places[1].noise) @ along)
        # As the cameras would see the positions: their own pixels belong to other times.
        seen = []
        for which, place in zip(by, places, strict=True):
            mounted = [self._cameras[k] for k in which]
            pixels = [one.camera.project(one.pose.to_camera(place.position)) for one in mounted]
            seen.append((which, np.array(pixels)))
        self._pairs.append(_Pair(distance, noise, seen))

    def result(self) -> DistanceCheck:
        """Return the comparison."""
        known = (self._markers, self._length, self._length_deviation, len(self._pairs))
        if not self._pairs:
            unknown = math.nan, math.nan, math.nan, math.nan
            return DistanceCheck(*known, *unknown, self._told)
        distances = np.array([pair.distance for pair in self._pairs])
        noise = float(np.mean([pair.noise for pair in self._pairs]))
        every = max(1, len(self._pairs) // _SAMPLES)
        by_pose, by_pixel = [], []
        for pair in self._pairs[::every]:
            by_pose.append(self._by_poses(pair))
            by_pixel.append(self._by_pixels(pair))
        gradients = np.array(by_pose)
        mean = gradients.mean(axis=0)
        S = np.zeros((len(mean), len(mean)))
        for k, one in enumerate(self._cameras):
            if one.pose.covariance is not None:
                S[6 * k : 6 * k + 6, 6 * k : 6 * k + 6] = one.pose.covariance
        away = gradients - mean
        # Calibration errors of distant pixels are independent: they differ over the images.
        lens = float(np.mean(by_pixel))
        return DistanceCheck(
            *known,
            float(distances.mean()),
            float(distances.std(ddof=1)) if len(distances) > 1 else math.nan,
            math.sqrt(float(mean @ S @ mean) + lens + noise / len(distances)),
            math.sqrt(noise + lens + float(np.mean(np.sum((away @ S) * away, axis=1)))),
            self._told,
        )

    @property
    def _cameras(self) -> list[Any]:
        """All mounted cameras."""
        return list(self._rig.cameras.values())

    def _distance(self, seen: _Seen, poses: Sequence[Pose]) -> float:
        """Return the distance of two markers from their pixels, with the poses of all [m]."""
        ends = [
            triangulate(
                [self._cameras[k].camera for k in which],
                [poses[k] for k in which],
                pixels,
                np.stack([np.eye(2)] * len(which)),
            )
            for which, pixels in seen
        ]
        return float(np.linalg.norm(ends[1].position - ends[0].position))

    def _by_poses(self, pair: _Pair) -> np.ndarray:
        """Return the derivatives by rotation vectors and translations of all poses, (6 n,)."""
        used = sorted({c for which, _ in pair.seen for c in which})
        gradient = np.zeros((len(self._cameras), 6))

        def at(changes: np.ndarray) -> float:
            poses = [one.pose for one in self._cameras]
            for c, change in zip(used, changes.reshape(-1, 6), strict=True):
                poses[c] = moved(poses[c], change)
            return self._distance(pair.seen, poses)

        gradient[used] = approx_fprime(np.zeros(6 * len(used)), at, _STEP).reshape(-1, 6)
        return gradient.ravel()

    def _by_pixels(self, pair: _Pair) -> float:
        """Return the variance from errors of the calibrations [m^2]."""
        deviations = [
            deviation
            for which, _ in pair.seen
            for k in which
            for deviation in 2 * [self._cameras[k].calibration_deviation]
        ]
        if not any(deviations):
            return 0.0
        poses = [one.pose for one in self._cameras]
        sizes = [2 * len(which) for which, _ in pair.seen]

        def at(shifts: np.ndarray) -> float:
            parts = zip(pair.seen, np.split(shifts, sizes[:1]), strict=True)
            seen = [(which, pixels + part.reshape(-1, 2)) for (which, pixels), part in parts]
            return self._distance(seen, poses)

        gradient = approx_fprime(np.zeros(sum(sizes)), at, _PIXEL)
        return float(np.sum((gradient * deviations) ** 2))
