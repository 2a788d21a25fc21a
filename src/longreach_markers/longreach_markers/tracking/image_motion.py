"""
Motion of markers in the images of one camera.

Each marker has a constant-velocity Kalman filter in the image: state (u, v, du/dt, dv/dt), white
noise acceleration with the spectral density q = a^2 T, where a is the acceleration of the
parameters and T = 0.1 s its assumed duration. Over a time t the filter's covariance grows by

    q [t^3/3, t^2/2; t^2/2, t]   for each of u and v.

The predicted covariance defines the search window, and the gate for measurements. A marker that is
not visible is predicted with a decaying velocity and a covariance that grows to a bound.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from longreach_dynamics.kernels import kernel
from longreach_markers.camera.model import Camera
from longreach_markers.marker.detection import TRACKED, Observation
from longreach_markers.rig import MarkerOnRig, TrackingParameters

SAME = 0.5
"""Ellipses whose centres are closer than this share of the radius are the same."""

BURST = 0.25
"""Share of the usual interval within which images follow each other in a burst."""

# Images of one camera that are nearer in time count as one, with the later stamp [s].
_AT_ONCE = 1e-3
# Standard deviation added to an UNCERTAIN centre, as a share of the radius.
_UNCERTAIN_CENTER = 0.05
# Assumed duration of an acceleration [s].
_LASTING = 0.1
# Measurements from which positions are interpolated, and their largest age [s]; one more is kept
# to see the cubic term.
_KEPT, _KEPT_TIME = 3, 0.4
# Positions kept to estimate how markers move by themselves and relative to each other, and number
# of velocities needed for that.
_PATH, _ENOUGH = 31, 5
# Age up to which accelerations and directions are used [s]; speeds are at any age.
_LOOK_BACK = 2.0
# Uncertainty of the quadratic term of the interpolation, as a share of it.
_CURVED = 0.3


@kernel
def _predict(state, covariance, time, way, fade, density, largest, new_state, new_covariance):  # type: ignore[no-untyped-def]
    """Predict state (u, v [px], du/dt, dv/dt [px/s]) and covariance after a time [s]."""
    # way: displacement over velocity [s] and fade: share left of a decaying velocity; density: of
    # the acceleration [px^2/s^3]; largest (2,): bounds of the standard deviations.
    for i in range(2):
        new_state[i] = state[i] + way * state[2 + i]
        new_state[2 + i] = fade * state[2 + i]
    P, Q = covariance, new_covariance
    for i in range(2):
        for j in range(2):
            Q[i, j] = P[i, j] + way * (P[2 + i, j] + P[i, 2 + j]) + way * way * P[2 + i, 2 + j]
            Q[i, 2 + j] = fade * (P[i, 2 + j] + way * P[2 + i, 2 + j])
            Q[2 + i, 2 + j] = fade * fade * P[2 + i, 2 + j]
    long = abs(time)
    for i in range(2):
        Q[i, i] += density * long * long * long / 3.0
        Q[i, 2 + i] += density * time * long / 2.0
        Q[2 + i, 2 + i] += density * long
    for k in range(2):
        a, b, c = Q[2 * k, 2 * k], Q[2 * k, 2 * k + 1], Q[2 * k + 1, 2 * k + 1]
        most = 0.5 * (a + c) + math.hypot(0.5 * (a - c), b)
        if most > largest[k] * largest[k]:
            share = largest[k] * largest[k] / most
            # Scale the correlation as well, so that an old position says little about the
            # velocity.
            for i in range(2):
                for j in range(2):
                    Q[2 * k + i, 2 * k + j] *= share
                    Q[i, 2 + j] *= share
    for i in range(2):
        for j in range(2):
            Q[2 + j, i] = Q[i, 2 + j]


@kernel
def _correct(state, covariance, center, noise):  # type: ignore[no-untyped-def]
    """Update state and covariance with a measured position [px] and its covariance."""
    a, b = covariance[0, 0] + noise[0, 0], covariance[0, 1] + noise[0, 1]
    d = covariance[1, 1] + noise[1, 1]
    area = a * d - b * b
    gain = np.empty((4, 2))
    for i in range(4):
        gain[i, 0] = (covariance[i, 0] * d - covariance[i, 1] * b) / area
        gain[i, 1] = (covariance[i, 1] * a - covariance[i, 0] * b) / area
    du, dv = center[0] - state[0], center[1] - state[1]
    old = covariance.copy()
    for i in range(4):
        state[i] += gain[i, 0] * du + gain[i, 1] * dv
        for j in range(4):
            covariance[i, j] -= gain[i, 0] * old[0, j] + gain[i, 1] * old[1, j]
    for i in range(4):
        for j in range(i):
            covariance[i, j] = covariance[j, i] = 0.5 * (covariance[i, j] + covariance[j, i])


class Prediction(NamedTuple):
    """Predicted position of a marker."""

    center: np.ndarray  # (2,), at most one radius outside the image [px]
    covariance: np.ndarray  # (2, 2) [px^2]
    velocity: np.ndarray  # (2,) [px/s]
    speed_deviation: float  # of the velocity [px/s]
    reach: float  # radius of the search window [px]
    outside: bool  # whether the centre is outside the image

    def meets(self, other: Prediction) -> bool:
        """Return whether both search windows overlap."""
        return math.dist(self.center, other.center) < self.reach + other.reach

    def distance(self, center: np.ndarray, noise: np.ndarray) -> float:
        """Return the squared Mahalanobis distance of a position (2,) with covariance (2, 2)."""
        (a, b), (_, d) = self.covariance.tolist()
        (e, f), (_, h) = noise.tolist()
        a, b, d = a + e, b + f, d + h
        u, v = (center - self.center).tolist()
        return float((d * u * u - 2.0 * b * u * v + a * v * v) / (a * d - b * b))


@dataclasses.dataclass(eq=False)
class Track:
    """State of one marker in the images of a camera, of the filter at ``time`` [s]."""

    marker: MarkerOnRig
    reference: Observation  # its appearance
    state: np.ndarray
    covariance: np.ndarray
    time: float
    lost: bool = False  # not in the latest image
    doubt: str = ''  # marker it may have been confused with while hidden
    trusted_time: float = -math.inf  # last TRACKED [s]
    # Measurements, one of each image: time, center, covariance.
    latest: deque[tuple[float, np.ndarray, np.ndarray]] = dataclasses.field(
        default_factory=lambda: deque(maxlen=_KEPT + 1)
    )
    image_time: float = math.nan  # stamp of the last one [s]
    path: deque[tuple[float, float, float]] = dataclasses.field(
        default_factory=lambda: deque(maxlen=_PATH)
    )

    @property
    def was_seen(self) -> bool:
        """Whether it has been TRACKED since its initialisation."""
        return self.trusted_time > -math.inf

    def is_at(self, center: np.ndarray) -> bool:
        """Return whether it is in sight at a centre (2,) [px]."""
        return not self.lost and math.dist(self.state[:2], center) < SAME * self.reference.radius

    def keep(self, image_time: float, time: float, seen: Observation) -> None:
        """Keep an observation for interpolation, in place of an earlier one in the same image."""
        # With a rolling shutter, two centres in one image have two times, too near for a
        # difference. So have images in a burst: the earlier one was stamped when it was read,
        # late.
        if self.latest:
            # Of the present rate, which may have risen.
            intervals = [
                b[0] - a[0]
                for a, b in itertools.pairwise(self.latest)
                if time - a[0] <= _KEPT_TIME
            ]
            least = max(_AT_ONCE, BURST * min(intervals, default=0.0))
            if self.image_time == image_time or time - self.latest[-1][0] < least:
                self.latest.pop()
                if self.path:
                    self.path.pop()
        self.latest.append((time, seen.center, seen.covariance))
        self.image_time = image_time


class ImageMotion:
    """Parameters and models shared by the filters of one camera's markers."""

    def __init__(self, camera: Camera, parameters: TrackingParameters) -> None:
        self.camera = camera
        self.parameters = parameters
        self._density = parameters.acceleration**2 * _LASTING
        self._speed = parameters.acceleration * parameters.fade
        # With this value, the gate equals the smallest search window.
        self._least = np.eye(2) * (parameters.least_window / parameters.gate) ** 2

    def expect(
        self,
        marker: MarkerOnRig,
        reference: Observation,
        center: np.ndarray,
        velocity: np.ndarray,
        time: float,
        window: float,
    ) -> Track:
        """Return the track of a marker near a position that has not been observed yet."""
        covariance = np.eye(4) * self._speed**2
        covariance[:2, :2] = np.eye(2) * (window / self.parameters.gate) ** 2
        state = np.array([*center, *velocity])
        return Track(marker, reference, state, covariance, time, lost=True)

    def predict(self, track: Track, time: float) -> Prediction:
        """Return the predicted position of a marker at a time [s]."""
        state, whole, outside = self._propagate(track, time)
        covariance = whole[:2, :2] + self._least
        (a, b), (_, d) = covariance.tolist()
        deviation = math.sqrt(0.5 * (a + d) + math.hypot(0.5 * (a - d), b))
        reach = min(self.parameters.gate * deviation, self.parameters.window)
        speed_deviation = math.sqrt(max(whole[2, 2], whole[3, 3]))
        return Prediction(state[:2], covariance, state[2:], speed_deviation, reach, outside)

    def correct(self, track: Track, time: float, center: np.ndarray, noise: np.ndarray) -> None:
        """Update a track with a position (2,) [px], its covariance (2, 2) [px^2] and time [s]."""
        state, covariance, _ = self._propagate(track, time)
        _correct(state, covariance, center, noise)
        if time - track.time > _KEPT_TIME:
            track.latest.clear()
        while track.latest and track.latest[-1][0] >= time:
            track.latest.pop()
        track.state, track.covariance, track.time = state, covariance, time

    def center_at(self, track: Track, time: float) -> tuple[np.ndarray, np.ndarray] | None:
        """Return a marker's position near the time of the latest images, from up to three."""
        # With the covariance of the measurements, a share of the quadratic term, and the cubic
        # term that a fourth one shows.
        if track.lost or not track.latest:
            return None
        newest, center, covariance = track.latest[-1]
        if time == newest:
            return center, covariance
        known = [one for one in track.latest if newest - one[0] <= _KEPT_TIME]
        is_old = track.time != newest or abs(time - newest) > _KEPT_TIME
        if is_old or len(known) < _KEPT:
            prediction = self.predict(track, time)
            return prediction.center, prediction.covariance

        def through(count: int) -> tuple[np.ndarray, np.ndarray]:
            """Return the polynomial through the latest measurements, and its covariance."""
            place, noise = np.zeros(2), np.zeros((2, 2))
            for own, seen, spread in known[-count:]:
                others = [one[0] for one in known[-count:] if one[0] != own]
                weight = math.prod((time - t) / (own - t) for t in others)
                place, noise = place + weight * seen, noise + weight * weight * spread
            return place, noise

        curved, noise = through(_KEPT)
        terms = _CURVED * (curved - through(_KEPT - 1)[0]), through(_KEPT + 1)[0] - curved
        return curved, noise + np.diag(np.square(terms).sum(axis=0))

    def spread(self, track: Track, time: float) -> float:
        """Return the uncertainty of a marker's prediction, from its motion so far [px]."""
        _, spread = self.drift(track.path or [(track.time, 0.0, 0.0)], time)
        return math.hypot(spread, math.sqrt(track.covariance[0, 0]))

    def drift(
        self, path: Sequence[tuple[float, float, float]], time: float, share: float = 1.0
    ) -> tuple[tuple[float, float], float]:
        """Extrapolate a path (time, u, v); return the position and its uncertainty [px]."""
        # Half of what the largest observed acceleration and speed allow from the end of the path
        # on, within its duration; for a short path, the general bounds times a share of the speed.
        speed, acceleration = share * self._speed, self.parameters.acceleration
        end, u, v = path[-1]
        velocities = [
            (at, (own_u - its_u) / (at - before), (own_v - its_v) / (at - before))
            for (before, its_u, its_v), (at, own_u, own_v) in itertools.pairwise(path)
            if at - before < _KEPT_TIME
        ]
        if len(velocities) >= _ENOUGH:
            speed = max(math.hypot(du, dv) for _, du, dv in velocities)
            acceleration = max(
                math.hypot(du - its_u, dv - its_v) / (at - before)
                for (before, its_u, its_v), (at, du, dv) in itertools.pairwise(velocities)
            )
        lasting, way = min(time - end, _LOOK_BACK), 0.0
        if velocities and velocities[-1][0] == end:
            way, _ = self._fading(lasting)
            u, v = u + way * velocities[-1][1], v + way * velocities[-1][2]
        off = 0.5 * acceleration * lasting * lasting + speed * (time - end - way)
        return (u, v), 0.5 * (off + self.parameters.least_window)

    def _fading(self, since: float) -> tuple[float, float]:
        """Return displacement over velocity [s] after a time [s], and the share of it left."""
        longest = self.parameters.fade
        if since <= longest:
            return since, 1.0
        fade = math.exp(1.0 - since / longest)
        return longest * (2.0 - fade), fade

    def _propagate(self, track: Track, time: float) -> tuple[np.ndarray, np.ndarray, bool]:
        """Return state (4,), covariance (4, 4) at a time [s], and whether it is outside."""
        since = time - track.time
        way, fade = self._fading(since)
        state, covariance = np.empty(4), np.empty((4, 4))
        largest = np.array([math.hypot(self.camera.width, self.camera.height), self._speed])
        _predict(
            track.state, track.covariance, since, way, fade, self._density, largest,
            state, covariance,
        )  # fmt: skip
        radius, outside = track.reference.radius, False
        for i, size in enumerate((self.camera.width, self.camera.height)):
            if not -0.5 <= state[i] <= size - 0.5:
                outside = True
                # A marker that has left the image returns where it left.
                near = min(max(float(state[i]), -radius), size - 1.0 + radius)
                if near != state[i]:
                    state[i], state[2 + i] = near, 0.0
        return state, covariance, outside


def noise_of(seen: Observation) -> np.ndarray:
    """Return the covariance (2, 2) of an observation for the filter."""
    if seen.status == TRACKED:
        return seen.covariance
    return np.asarray(seen.covariance + np.eye(2) * (_UNCERTAIN_CENTER * seen.radius) ** 2)


def warm_up() -> None:
    """Compile the kernels, or load them from the cache."""
    state, covariance = np.zeros(4), np.eye(4)
    _predict(state, covariance, 0.1, 0.1, 1.0, 1.0, np.ones(2), np.empty(4), np.empty((4, 4)))
    _correct(state, covariance, np.zeros(2), np.eye(2))
