"""
How well a marker would be located with estimated poses, before any is seen.

Poses and plane hold the same errors of the same points. Their covariance in common knows this,
which adding up that of each would not.
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import numpy as np

from longreach_vision.adjustment import Problem, State, is_in_image, projected
from longreach_vision.geometry import PlaneFit

__all__ = ['EstimatedPlane', 'Prediction', 'Predictor']


class EstimatedPlane(NamedTuple):
    """A plane through adjusted points."""

    fit: PlaneFit
    jacobian: np.ndarray  # by all that is estimated, (3, 6 poses + 3 n)


class Prediction(NamedTuple):
    """Where a marker would be located that is at a point, and how well; in the world's axes."""

    point: np.ndarray  # (3,) [m]
    in_plane: dict[str, np.ndarray]  # covariance (3, 3) by camera [m^2]; empty without a plane
    triangulated: np.ndarray | None  # (3, 3) [m^2]; None with one camera

    @property
    def error(self) -> float:
        """Root of the variances' sum of the best estimate [m]; NaN where no camera sees it."""
        every = [*self.in_plane.values()]
        if self.triangulated is not None:
            every.append(self.triangulated)
        return min((math.sqrt(float(np.trace(cov))) for cov in every), default=math.nan)


@dataclasses.dataclass(frozen=True)
class Predictor:
    """
    Covariances of markers that are located with an estimate.

    Parameters
    ----------
    problem : Problem
    state : State
        Its solution.
    covariance : ndarray, shape (6 poses + 3 n, 6 poses + 3 n)
        Of the solution.
    plane : EstimatedPlane, optional
    """

    problem: Problem
    state: State
    covariance: np.ndarray
    plane: EstimatedPlane | None

    def at(self, point: np.ndarray) -> Prediction:
        """Return the prediction at a point (3,) of the world [m]."""
        seen = self._seen(point)
        in_plane = {}
        if self.plane is not None:
            in_plane = {self.problem.sides[c]: self._in_plane(c, self.plane, point) for c in seen}
        triangulated = self._triangulated(seen) if len(seen) > 1 else None
        return Prediction(point, in_plane, triangulated)

    def is_seen(self, point: np.ndarray) -> bool:
        """Tell whether any camera sees a point (3,) of the world [m]."""
        return bool(self._seen(point))

    def with_point(self, point: np.ndarray) -> Predictor:
        """Return the predictor if one more point had been measured, as well as the middle one."""
        sigma = float(np.median(self.problem.deviations))
        information = np.linalg.inv(self.covariance)
        seen = self._seen(point)
        if seen:
            # Its coordinates are one and the same error for all cameras.
            by_point, by_all = self._jacobians(seen)
            noise = sigma**2 * by_point @ by_point.T
            noise += self.problem.pixel_deviation**2 * np.eye(len(by_point))
            information = information + by_all.T @ np.linalg.solve(noise, by_all)
        return dataclasses.replace(self, covariance=np.linalg.inv(information))

    def _seen(self, point: np.ndarray) -> dict[int, np.ndarray]:
        """Return the Jacobians (2, 9) of a point's pixels, by the cameras that see it."""
        found = {}
        for c, (camera, pose) in enumerate(
            zip(self.problem.cameras, self.state.poses, strict=True)
        ):
            pixels, jacobians = projected(camera, pose, point[None])
            if is_in_image(camera, pixels[0]):
                found[c] = jacobians[0]
        return found

    def _jacobians(self, seen: dict[int, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return those of all pixels of a point: by the point, and by all that is estimated."""
        by_point = np.vstack([jacobian[:, 6:] for jacobian in seen.values()])
        by_all = np.vstack([self._by_all(c, jacobian[:, :6]) for c, jacobian in seen.items()])
        return by_point, by_all

    def _by_all(self, c: int, by_pose: np.ndarray) -> np.ndarray:
        """Return rows by a camera's pose as rows by all that is estimated."""
        rows = np.zeros((len(by_pose), len(self.covariance)))
        rows[:, 6 * c : 6 * c + 6] = by_pose
        return rows

    def _triangulated(self, seen: dict[int, np.ndarray]) -> np.ndarray:
        """Return the covariance of a point that several cameras see."""
        by_point, by_all = self._jacobians(seen)
        estimator = np.linalg.solve(by_point.T @ by_point, by_point.T)
        return self._spread(estimator, estimator @ by_all)

    def _in_plane(self, c: int, plane: EstimatedPlane, point: np.ndarray) -> np.ndarray:
        """Return the covariance of the point of the plane that a camera sees near a point."""
        flat, pose = plane.fit.plane, self.state.poses[c]
        on = point - float(flat.distance(point)) * flat.normal
        _, jacobians = projected(self.problem.cameras[c], pose, on[None])
        by_pose, by_point = jacobians[0, :, :6], jacobians[0, :, 6:]
        # Two equations from the pixel and one from the plane: n.(p - c) = s + turns.
        offsets = flat.axes @ (on - flat.centroid)
        by_plane = np.array([[offsets[1], -offsets[0], 1.0]]) @ plane.jacobian
        solver = np.linalg.inv(np.vstack([by_point, flat.normal]))
        return self._spread(
            solver[:, :2], solver @ np.vstack([-self._by_all(c, by_pose), by_plane])
        )

    def _spread(self, by_pixels: np.ndarray, by_all: np.ndarray) -> np.ndarray:
        """Return the covariance from pixels and from all that is estimated."""
        pixel = self.problem.pixel_deviation**2 * by_pixels @ by_pixels.T
        return np.asarray(pixel + by_all @ self.covariance @ by_all.T)
