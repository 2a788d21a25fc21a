"""
How markers move through the images of one camera.

Each marker has a constant-velocity Kalman filter in the image: state (u, v, du/dt, dv/dt), white
noise of acceleration with the spectral density q = a^2 T, a the acceleration of the parameters and
T = 0.1 s, which it is taken to last. Over a time t the filter's covariance grows by

    q [t^3/3, t^2/2; t^2/2, t]   for each of u and v.

The predicted covariance is the window in which the marker is looked for, and the gate that what
is found there must pass. A marker that is not seen is predicted until it is: with what was last
known, a velocity that fades, and a covariance that grows to a bound.

Pixels are (u, v) with integer centres.
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
from longreach_vision.cameras import Camera
from longreach_vision.detection import Observation
from longreach_vision.rig import MarkerOnRig, TrackingParameters

__all__ = ['ImageMotion', 'Prediction', 'Track', 'warm_up']

# How long an acceleration lasts [s].
_LASTING = 0.1
# Windows that a standard deviation may grow to.
_FARTHEST = 10.0
# What is kept for interpolation: sightings, within this time [s].
_KEPT, _KEPT_TIME = 3, 0.4
# Places that are kept, to know how markers move by themselves and against each other, and how many
# velocities are enough for that.
_PATH, _ENOUGH = 31, 5
# Time that a judgement by them holds for [s].
_LOOK_BACK = 2.0
# Part of what a parabola adds to a straight line that it may be wrong by.
_CURVED = 0.3


@kernel
def _predict(state, covariance, time, way, fade, density, largest, new_state, new_covariance):  # type: ignore[no-untyped-def]
    """
    Fill state (4,) and covariance (4, 4) after a time, in which a velocity makes a way.

    Standard deviations of the place stay below ``largest[0]``, of the velocity below [1].
    """
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
            Q[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] *= share
            # By as much, so that an old place says little of the velocity.
            Q[:2, 2:] *= share
    for i in range(2):
        for j in range(2):
            Q[2 + j, i] = Q[i, 2 + j]


@kernel
def _correct(state, covariance, center, noise):  # type: ignore[no-untyped-def]
    """Take a measured place (2,) with its covariance (2, 2) into state and covariance."""
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
    """Where a marker is expected."""

    center: np.ndarray  # (2,), not farther out of the image than a radius [px]
    covariance: np.ndarray  # (2, 2) [px^2]
    velocity: np.ndarray  # (2,) [px/s]
    reach: float  # how far from it the marker is looked for [px]
    outside: bool  # the centre is not in the image

    def distance(self, center: np.ndarray, noise: np.ndarray) -> float:
        """Return the squared Mahalanobis distance of a place (2,) with covariance (2, 2)."""
        (a, b), (_, d) = self.covariance.tolist()
        (e, f), (_, h) = noise.tolist()
        a, b, d = a + e, b + f, d + h
        u, v = (center - self.center).tolist()
        return float((d * u * u - 2.0 * b * u * v + a * v * v) / (a * d - b * b))


@dataclasses.dataclass(eq=False)
class Track:
    """
    What a camera knows of one marker.

    Parameters
    ----------
    marker : MarkerOnRig
    reference : Observation
        What it looks like.
    state, covariance : ndarray, shapes (4,) and (4, 4)
        Of the filter, at ``time``.
    time : float
        Of the latest measurement that was taken [s].
    lost : bool
        Whether that of the latest image was none.
    doubt : str
        Another marker that it may be since both were hidden; empty for none.
    """

    marker: MarkerOnRig
    reference: Observation
    state: np.ndarray
    covariance: np.ndarray
    time: float
    lost: bool = False
    doubt: str = ''
    trusted_time: float = -math.inf  # when it was TRACKED
    latest: deque[tuple[float, np.ndarray, np.ndarray]] = dataclasses.field(
        default_factory=lambda: deque(maxlen=_KEPT)
    )
    path: deque[tuple[float, float, float]] = dataclasses.field(
        default_factory=lambda: deque(maxlen=_PATH)
    )


class ImageMotion:
    """
    What the filters of one camera's markers share.

    Parameters
    ----------
    camera : Camera
    parameters : TrackingParameters
    """

    def __init__(self, camera: Camera, parameters: TrackingParameters) -> None:
        self.camera = camera
        self.parameters = parameters
        self._density = parameters.acceleration**2 * _LASTING
        self._speed = parameters.acceleration * parameters.fade
        # With this, the gate is as wide as the least window.
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
        """
        Return the track of a marker that is somewhere near a place, and has not been seen yet.

        Parameters
        ----------
        marker : MarkerOnRig
        reference : Observation
            What it looks like.
        center, velocity : ndarray, shape (2,)
            [px], [px/s]
        time : float
            [s]
        window : float
            Distance within which it is [px].
        """
        covariance = np.eye(4) * self._speed**2
        covariance[:2, :2] = np.eye(2) * (window / self.parameters.gate) ** 2
        state = np.array([*center, *velocity])
        return Track(marker, reference, state, covariance, time, lost=True)

    def predict(self, track: Track, time: float) -> Prediction:
        """Return where a marker is expected at a time [s]."""
        state, whole, outside = self._propagate(track, time)
        covariance = whole[:2, :2] + self._least
        (a, b), (_, d) = covariance.tolist()
        deviation = math.sqrt(0.5 * (a + d) + math.hypot(0.5 * (a - d), b))
        reach = min(self.parameters.gate * deviation, self.parameters.window)
        return Prediction(state[:2], covariance, state[2:], reach, outside)

    def correct(self, track: Track, time: float, center: np.ndarray, noise: np.ndarray) -> None:
        """Take a place (2,) [px] with its covariance (2, 2) [px^2], measured at a time [s]."""
        state, covariance, _ = self._propagate(track, time)
        _correct(state, covariance, center, noise)
        if time - track.time > _KEPT_TIME:
            track.latest.clear()
        while track.latest and track.latest[-1][0] >= time:
            track.latest.pop()
        track.state, track.covariance, track.time = state, covariance, time

    def center_at(self, track: Track, time: float) -> tuple[np.ndarray, np.ndarray] | None:
        """
        Return where a marker was or will be near the latest images, from up to three of them.

        The parabola through the latest sightings. Its covariance has that of the sightings, and
        a part of what the parabola adds to a straight line: a motion has more than that.

        Returns
        -------
        center, covariance : ndarray, shapes (2,) and (2, 2)
            [px], [px^2]; the filter's prediction with fewer than three sightings, and where the
            marker was no more than UNCERTAIN since, or long ago. None for one that is lost.
        """
        if track.lost or not track.latest:
            return None
        newest, center, covariance = track.latest[-1]
        if time == newest:
            return center, covariance
        is_old = track.time != newest or abs(time - newest) > _KEPT_TIME
        if is_old or len(track.latest) < _KEPT or newest - track.latest[0][0] > _KEPT_TIME:
            prediction = self.predict(track, time)
            return prediction.center, prediction.covariance
        times = [one[0] for one in track.latest]
        curved, straight = np.zeros(2), np.zeros(2)
        noise = np.zeros((2, 2))
        for i, (own, place, spread) in enumerate(track.latest):
            weight = math.prod((time - t) / (own - t) for t in times if t != own)
            curved += weight * place
            noise += weight * weight * spread
            if i:
                other = times[3 - i]
                straight += (time - other) / (own - other) * place
        return curved, noise + np.diag((_CURVED * (curved - straight)) ** 2)

    def spread(self, track: Track, time: float) -> float:
        """Return by how much the prediction of a marker may be wrong, by how it moved so far."""
        _, spread = self.drift(track.path or [(track.time, 0.0, 0.0)], time)
        return math.hypot(spread, math.sqrt(track.covariance[0, 0]))

    def drift(
        self, path: Sequence[tuple[float, float, float]], time: float, share: float = 1.0
    ) -> tuple[tuple[float, float], float]:
        """
        Return where a path (time, u, v) leads to, and by how much that may be wrong [px].

        The half of what its largest acceleration and speed can do from its end on, in no more
        time than it has; what they may be at all, times a share of the speed, for a short one.
        """
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
        since = min(time - end, _LOOK_BACK)
        way = 0.0
        if velocities and velocities[-1][0] == end:
            way, _ = self._fading(since)
            u, v = u + way * velocities[-1][1], v + way * velocities[-1][2]
        off = 0.5 * acceleration * since * since + speed * (since - way)
        return (u, v), 0.5 * (off + self.parameters.least_window)

    def _fading(self, since: float) -> tuple[float, float]:
        """Return the way [s] of a velocity after a time [s], and its share that is left."""
        longest = self.parameters.fade
        if since <= longest:
            return since, 1.0
        fade = math.exp(1.0 - since / longest)
        return longest * (2.0 - fade), fade

    def _propagate(self, track: Track, time: float) -> tuple[np.ndarray, np.ndarray, bool]:
        """Return state (4,) and covariance (4, 4) at a time, and whether it is outside."""
        parameters = self.parameters
        since = time - track.time
        way, fade = self._fading(since)
        state, covariance = np.empty(4), np.empty((4, 4))
        largest = np.array([_FARTHEST * parameters.window, self._speed])
        _predict(
            track.state, track.covariance, since, way, fade, self._density, largest,
            state, covariance,
        )  # fmt: skip
        radius, outside = track.reference.radius, False
        for i, size in enumerate((self.camera.width, self.camera.height)):
            if not -0.5 <= state[i] <= size - 0.5:
                outside = True
                # One that has left comes back where it did.
                near = min(max(float(state[i]), -radius), size - 1.0 + radius)
                if near != state[i]:
                    state[i], state[2 + i] = near, 0.0
        return state, covariance, outside


def warm_up() -> None:
    """Compile the kernels, or load them from the cache."""
    state, covariance = np.zeros(4), np.eye(4)
    _predict(state, covariance, 0.1, 0.1, 1.0, 1.0, np.ones(2), np.empty(4), np.empty((4, 4)))
    _correct(state, covariance, np.zeros(2), np.eye(2))
