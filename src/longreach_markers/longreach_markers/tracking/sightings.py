"""Sightings of markers by the cameras of a rig, collected for the assessment of these cameras."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict, deque
from typing import Any, NamedTuple

import numpy as np
import scipy

from longreach_dynamics.tables import for_json
from longreach_markers.marker.detection import TRACKED
from longreach_markers.rig import Rig
from longreach_markers.tracking.frames import RigFrame, typical_chi_square
from longreach_markers.tracking.image_motion import BURST

# Intervals of which the median is the usual one.
_NEIGHBOURS = 9
# Weights of successive gaps between both rays in the difference that shows their noise, and its
# standard deviation for gaps of 1.
_DIFFERENCE = (1.0, -2.0, 1.0)
_LENGTH = math.hypot(*_DIFFERENCE)
# Number of latest differences, and of those from which on noise is known; the least ratio of their
# variance to the stated one for which covariances of pixels are increased.
_LATEST, _ENOUGH, _EXCESS = 300, 60, 1.5
# Deviations from which on they are no noise.
_NO_NOISE = 6.0


class Gap(NamedTuple):
    """Distance between the rays of two cameras to a marker."""

    time: float  # [s]
    gap: float  # [px]
    chi_square: float
    scale: float  # displacement of a position by a gap [m/px]


class Sightings:
    """
    Latest sightings of each marker, by each camera and by each two.

    Parameters
    ----------
    rig : Rig
    limit : int, optional
        Number of latest sightings kept of each marker and camera; all by default.

    Attributes
    ----------
    rig : Rig
    """

    def __init__(self, rig: Rig, limit: int | None = None) -> None:
        self.rig = rig
        # Time, u, v and the covariance of the centre, sum of the radii of both edges.
        self._pixels: dict[tuple[str, str], deque[tuple[float, ...]]] = defaultdict(
            lambda: deque(maxlen=limit)
        )
        # By the names of two cameras, and by marker.
        self._gaps: dict[tuple[str, str], dict[str, deque[Gap]]] = defaultdict(
            lambda: defaultdict(lambda: deque(maxlen=limit))
        )

    def add(self, frame: RigFrame) -> None:
        """Add the result of the images of one time; only what is TRACKED is kept."""
        for camera, observed in frame.observations.items():
            for name, one in observed.items():
                if one.status == TRACKED:
                    (uu, uv), (_, vv) = one.covariance.tolist()
                    u, v = one.center.tolist()
                    at = frame.times[camera] + self.rig.cameras[camera].row_delay(v)
                    radii = one.radius * (1.0 + one.inner)
                    self._pixels[camera, name].append((at, u, v, uu, uv, vv, radii))
        for (name, *pair), point in frame.disagreements.items():
            first = self.rig.cameras[pair[0]]
            # A gap is the length of a vector in four pixel coordinates; one camera alone is off
            # by the square root of two of it.
            away = math.dist(point.position, first.pose.translation)
            scale = math.sqrt(2.0) * away / first.camera.fx
            gap = Gap(frame.time, point.gap, point.chi_square, scale)
            self._gaps[pair[0], pair[1]][name].append(gap)

    def between(self, first: str, second: str) -> Sightings:
        """Return the same sightings, which go on growing, for two cameras of the rig alone."""
        cameras = {name: self.rig.cameras[name] for name in (first, second)}
        two = Sightings(dataclasses.replace(self.rig, cameras=cameras))
        two._pixels, two._gaps = self._pixels, self._gaps
        return two

    def gaps(self, first: str, second: str, since: float) -> dict[str, list[Gap]]:
        """Return distances between the rays of two cameras by marker, from a time on [s]."""
        found = self._gaps.get((first, second), {})
        seen = {name: [one for one in own if one.time >= since] for name, own in found.items()}
        return {name: own for name, own in seen.items() if own}

    def table(self, camera: str, marker: str, since: float = -math.inf) -> np.ndarray:
        """
        Return the sightings of a marker by a camera since a time [s], in increasing order of time.

        Of images in a burst the last one: those before it were stamped when they were read, late.
        """
        found = self._pixels.get((camera, marker), ())
        table = np.array(found, dtype=np.float64).reshape(-1, 7)
        # Late images come out of order.
        _, order = np.unique(table[:, 0], return_index=True)
        table = table[order]
        if len(table) > 1:
            gaps = np.diff(table[:, 0])
            usual = scipy.ndimage.median_filter(gaps, _NEIGHBOURS, mode='nearest')
            table = table[np.append(gaps > BURST * usual, True)]
        return np.asarray(table[table[:, 0] >= since])


class GapNoise:
    """``excess`` is the factor of the stated variances of pixels that the latest gaps show."""

    def __init__(self) -> None:
        # Latest gaps between two rays by marker and cameras [px], squares of their differences
        # over the stated variance, and the factor of the pixels' variances that follows.
        self._gaps: dict[tuple[str, str, str], deque[float]] = defaultdict(
            lambda: deque(maxlen=len(_DIFFERENCE))
        )
        self._scatter: deque[float] = deque(maxlen=_LATEST)
        self.excess = 1.0

    def add(self, frame: RigFrame) -> None:
        """Add the gaps in the images of one time."""
        stated = self.excess
        for key, point in frame.disagreements.items():
            gaps = self._gaps[key]
            gaps.append(point.gap)
            if len(gaps) == len(_DIFFERENCE):
                # Motion has hardly any influence: wrong poses and times are not noise.
                off = float(np.dot(_DIFFERENCE, gaps)) / _LENGTH
                self._scatter.append(stated * (off / point.gap_noise) ** 2)
        if len(self._scatter) >= _ENOUGH:
            squares = np.array(self._scatter)
            # Bumps, wrong stamps and swaps are no noise. Not the median of what is left: errors
            # of compression have long tails.
            noise = squares[squares < _NO_NOISE**2 * typical_chi_square(squares)]
            excess = float(np.mean(noise)) if len(noise) else 1.0
            self.excess = excess if excess > _EXCESS else 1.0


def json_fields(result: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as a JSON object, with None for unknown numbers."""
    return dict(for_json(dataclasses.asdict(result)))
