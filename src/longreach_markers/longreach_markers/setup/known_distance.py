"""
A bar of known length with a marker at each end: the accuracy of cameras, without their poses.

The distance d of two triangulated markers does not depend on the choice of the world. Its mean
error shows wrong calibrations, baselines and angles between the cameras, its scatter wrong times
and noise. With g_k the derivatives of d in image set k by the coordinates of all poses, of
covariance S, and their mean g, the mean of d has the variance g^T S g, and its scatter the part
mean((g_k - g)^T S (g_k - g)).
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError, check_among, check_within
from longreach_markers.marker.detection import TRACKED
from longreach_markers.rig import Rig
from longreach_markers.tracking.bodies import pixel_derivatives, pose_covariances
from longreach_markers.tracking.frames import RigFrame
from longreach_markers.tracking.sightings import json_fields

# Least number of pairs for a judgement; standard deviations beyond which a mean is not explained,
# and times beyond which a scatter is not.
_LEAST, _SURE, _TIMES = 10, 3.0, 2.0


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
        Sets of images in which two cameras or more tracked both markers.
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
        who, by = ('two cameras', ' by all cameras') if self.cameras else ('both cameras', '')
        if len(self.cameras) == 2:
            who = ' and '.join(self.cameras)
            by = f' by {who}'
        if self.pairs < _LEAST:
            text = f'{who} track {one} and {two} in {self.pairs} image sets, allowed: at least'
            return (f'{text} {_LEAST}; carry the bar where they see it',)
        found = []
        explained = math.hypot(self.mean_explained, self.length_deviation)
        if abs(self.error) > _SURE * explained:
            found.append(
                f'{one} to {two}{by} measures {1e3 * abs(self.error):.2g} mm too'
                f' {"long" if self.error > 0.0 else "short"}, poses and length explain'
                f' {1e3 * explained:.2g} mm: measure the length again, then calibrate the cameras'
                ' and measure the reference points again; a wrong baseline or focal length changes'
                ' all lengths in proportion'
            )
        if self.scatter > _TIMES * self.scatter_explained:
            found.append(
                f'the distance of {one} and {two}{by} scatters by {1e3 * self.scatter:.2g} mm,'
                f' pixels and poses explain {1e3 * self.scatter_explained:.2g} mm: look for a'
                ' clock offset or a rolling shutter (longreach vision sync), a bar that bends, or'
                ' a calibration that does not fit at the edges of the images'
            )
        return tuple(found)

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
            check_among('marker', name, rig.names)
        if markers[0] == markers[1]:
            raise InputError(f'{markers[0]} is given twice, allowed: two markers')
        for what, value in (('length', length), ('deviation', length_deviation)):
            check_within(what, value, '(0, inf) m')
        self._rig = rig
        none = math.nan
        self._result = DistanceCheck(
            markers, length, length_deviation, 0, none, none, none, none, cameras
        )
        # Of images: distance [m], its variances from pixels and calibrations [m^2], and its
        # derivatives by rotation vectors and translations of all poses.
        self._pairs: list[list[float]] = []

    def add(self, frame: RigFrame) -> None:
        """Add images of one time; markers that two cameras or more track count."""
        seen, told = [], self._result.cameras
        for name in self._result.markers:
            one = frame.estimates[name]
            cameras, point = one.cameras, one.triangulated
            if len(told) == 2:
                cameras, point = told, frame.disagreements.get((name, *told))
            elif not (one.status == TRACKED or one.is_off_plane) or len(cameras) < 2:
                return
            if point is None:
                return
            seen.append((cameras, point))
        apart = seen[1][1].position - seen[0][1].position
        distance = float(np.linalg.norm(apart))
        along, by_poses = apart / distance, np.zeros(6 * len(self._rig.cameras))
        noise = lens = 0.0
        for sign, (cameras, point) in zip((-1.0, 1.0), seen, strict=True):
            noise += float(along @ point.noise @ along)
            by_point, poses = pixel_derivatives(self._rig, cameras, point.position)
            by_pixels = along @ np.linalg.pinv(by_point)
            # Pixels stay: a change of the poses is compensated by the point.
            by_poses -= sign * by_pixels @ poses
            used = [one for name, one in self._rig.cameras.items() if name in cameras]
            deviations = np.repeat([one.calibration_deviation for one in used], 2)
            # Errors of distant pixels are independent.
            lens += float(np.sum((by_pixels * deviations) ** 2))
        self._pairs.append([distance, noise, lens, *by_poses])

    def result(self) -> DistanceCheck:
        """Return the comparison."""
        if not self._pairs:
            return self._result
        pairs = np.array(self._pairs)
        distances, gradients = pairs[:, 0], pairs[:, 3:]
        (noise, lens), mean = pairs[:, 1:3].mean(axis=0).tolist(), gradients.mean(axis=0)
        S, away = pose_covariances(self._rig), gradients - mean
        return dataclasses.replace(
            self._result,
            pairs=len(distances),
            mean=float(distances.mean()),
            scatter=float(distances.std(ddof=1)) if len(distances) > 1 else math.nan,
            mean_explained=math.sqrt(float(mean @ S @ mean) + lens + noise / len(distances)),
            scatter_explained=math.sqrt(
                noise + lens + float(np.mean(np.sum((away @ S) * away, axis=1)))
            ),
        )
