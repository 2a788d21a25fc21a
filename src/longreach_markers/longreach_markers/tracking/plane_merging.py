"""
Positions of a marker in its plane by several cameras, merged to one.

Errors of the plane are common to all cameras, those of their poses are not. What separates the
cameras' positions is remembered, so that the position does not jump where some do not see it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from longreach_markers.camera.geometry import Plane
from longreach_markers.camera.triangulation import Location
from longreach_markers.rig import MountedCamera

# Sightings in the mean difference of the cameras' positions: more would lag behind a marker that
# moves.
_REMEMBERED = 5


@dataclasses.dataclass(frozen=True, eq=False)
class _Apart:
    """Differences of a marker's positions by several cameras in the plane, by camera."""

    count: int  # sightings in the mean
    apart: dict[str, np.ndarray]  # (3,), from the first camera's position, mean of the latest [m]
    noise: dict[str, np.ndarray]  # (3, 3), of each position, of the mean [m^2]
    systematic_apart: float  # trace of the systematic covariance of the differences [m^2]
    systematic: np.ndarray  # (3, 3), of the merged position [m^2]
    gains: dict[str, np.ndarray]  # (3, 3), weight of the position in the merged one
    places: dict[str, np.ndarray]  # (3,), latest positions [m]
    drift: float  # variance of the differences per square of a distance moved


class PlaneMerger:
    """Merges positions in the plane by the cameras of a rig, and remembers how they differ."""

    def __init__(self, cameras: Mapping[str, MountedCamera]) -> None:
        self._cameras = cameras
        self._apart: dict[str, _Apart] = {}

    def off_plane(
        self, found: Location, sides: tuple[str, ...], plane: Plane, away: float
    ) -> Location:
        """Add to a covariance the error of a position in the plane of a marker that is off it."""
        # At a distance h from the plane it is displaced by h (r / n.r - n) along each ray r; the
        # largest of the cameras' displacements bounds their mean. Its direction is left open.
        shifts = []
        for side in sides:
            ray = found.position - self._cameras[side].pose.translation
            shifts.append(away * math.dist(ray / (plane.normal @ ray), plane.normal))
        extra = max(shifts) ** 2 * plane.axes.T @ plane.axes
        systematic = np.zeros((3, 3)) if found.systematic is None else found.systematic
        return found._replace(covariance=found.covariance + extra, systematic=systematic + extra)

    def as_with_all(
        self,
        name: str,
        sides: Sequence[str],
        located: Sequence[Location],
        weights: Mapping[str, np.ndarray],
        merged: Location,
    ) -> Location:
        """Return the position that all cameras would give, from some of them."""
        # Errors of poses and plane separate the positions p_i of the cameras by vectors that
        # change slowly with the place, and are known from the latest images of all: so that the
        # position does not jump where some are hidden, it is displaced by sum_i (G_i - H_i) (p_i -
        # p_1), with the weights G_i of all and H_i of those in sight. It is trusted less the
        # farther the marker has moved, as far as the poses are uncertain.
        known = self._apart.get(name)
        if known is None or merged.systematic is None or not set(sides) < set(known.gains):
            return merged
        moved = [one.position - known.places[s] for s, one in zip(sides, located, strict=True)]
        lost = known.drift * max(float(one @ one) for one in moved)
        trust = 1.0
        if lost > 0.0:
            trust = known.systematic_apart / (known.systematic_apart + lost)
        position, noise = merged.position.copy(), merged.noise.copy()
        for side, gain in known.gains.items():
            more = trust * (gain - weights.get(side, np.zeros((3, 3))))
            position += more @ known.apart[side]
            noise += more @ known.noise[side] @ more.T
        systematic = trust * known.systematic + (1.0 - trust) * merged.systematic
        return Location(position, noise + systematic, systematic=systematic)

    def _note_apart(
        self,
        name: str,
        sides: Sequence[str],
        located: Sequence[Location],
        gains: dict[str, np.ndarray],
        merged: Location,
        between: float,
    ) -> None:
        """Remember by how much the cameras' positions differ, for :meth:`as_with_all`."""
        before = self._apart.get(name)
        if before is not None and set(before.gains) != set(sides):
            if set(before.gains) > set(sides):
                # Of more cameras: still valid for those in sight.
                return
            before = None
        count = 1 if before is None else min(before.count + 1, _REMEMBERED)
        first = located[0]
        apart, drift = {}, 0.0
        for side, one in zip(sides, located, strict=True):
            mean = one.position - first.position
            if before is not None:
                mean = before.apart[side] + (mean - before.apart[side]) / count
            apart[side] = mean
            pose = self._cameras[side].pose
            if pose.covariance is not None:
                away = one.position - pose.translation
                drift += float(np.trace(pose.covariance[:3, :3]))
                drift += float(np.trace(pose.covariance[3:, 3:]) / (away @ away))
        # Of one difference, in the mean of all from the first camera.
        others = len(located) - 1
        noise = others * first.noise + sum(one.noise for one in located[1:])
        assert merged.systematic is not None
        self._apart[name] = _Apart(
            count,
            apart,
            {side: one.noise / count for side, one in zip(sides, located, strict=True)},
            float(between - np.trace(noise)) / others,
            merged.systematic,
            gains,
            {side: one.position for side, one in zip(sides, located, strict=True)},
            2.0 * drift / len(located),
        )

    def merge(
        self,
        sides: Sequence[str],
        located: Sequence[Location],
        plane: Plane,
        name: str,
        *,
        trusted: bool,
    ) -> Location:
        """Return the minimum-variance linear combination of positions in the plane."""
        # p = p_1 + K d with d_i = p_i - p_1 and K = -C(p_1, d) C(d)^-1, from the covariances A_ij
        # of the positions. The common part, A_ij for two cameras, is the error of the plane: a
        # height error h moves each position by h r_i, r_i = (p_i - t_i) / n.(p_i - t_i).
        count = len(located)
        first = located[0].position
        height = height_variance(plane, np.mean([one.position for one in located], axis=0))
        rays = [
            item.position - self._cameras[side].pose.translation
            for side, item in zip(sides, located, strict=True)
        ]
        slopes = np.array([ray / (plane.normal @ ray) for ray in rays])
        blocks = height * slopes[:, None, :, None] * slopes[None, :, None, :]
        for k, item in enumerate(located):
            blocks[k, k] = item.covariance
        between = blocks[1:, 1:] + blocks[0, 0] - blocks[1:, :1] - blocks[:1, 1:]
        toward = blocks[0, 0] - blocks[0, 1:]
        inside = plane.axes
        # Both coordinates in the plane of all differences, (2 k - 2, 2 k - 2).
        apart = inside @ between @ inside.T
        apart = apart.transpose(0, 2, 1, 3).reshape(2 * count - 2, -1)
        try:
            np.linalg.cholesky(apart)
        except np.linalg.LinAlgError:
            # Without pixel errors.
            return located[0]
        ahead = (inside @ toward @ inside.T).transpose(1, 0, 2).reshape(2, -1)
        gain = np.hsplit(ahead @ np.linalg.inv(apart), count - 1)
        weights = [inside.T @ one @ inside for one in gain]
        weights.insert(0, np.eye(3) - sum(weights))
        position = first.copy()
        covariance, noise = np.zeros((3, 3)), np.zeros((3, 3))
        for k, item in enumerate(located):
            position += weights[k] @ (item.position - first)
            noise += weights[k] @ item.noise @ weights[k].T
            for i in range(count):
                covariance += weights[k] @ blocks[k, i] @ weights[i].T
        merged = Location(position, covariance, systematic=covariance - noise)
        gains = dict(zip(sides, weights, strict=True))
        if trusted:
            spread = sum(float(np.trace(between[k, k])) for k in range(count - 1))
            self._note_apart(name, sides, located, gains, merged, spread)
        return self.as_with_all(name, sides, located, gains, merged)


def height_variance(plane: Plane, point: np.ndarray) -> float:
    """Return the variance of the plane's height along its normal at a point (3,) [m^2]."""
    if plane.covariance is None:
        return 0.0
    along = plane.axes @ (point - plane.centroid)
    slope = np.array([along[1], -along[0], 1.0])
    return float(slope @ plane.covariance @ slope)
