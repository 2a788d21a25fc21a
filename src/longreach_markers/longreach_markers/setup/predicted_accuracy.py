"""
Predicted accuracy of markers located with estimated poses.

Errors of poses and plane are correlated, because both stem from the same points. Their joint
covariance accounts for this.
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import numpy as np

from longreach_markers.camera.geometry import PlaneFit
from longreach_markers.setup.bundle_adjustment import Problem, State, is_in_image, projected


class EstimatedPlane(NamedTuple):
    """A plane through adjusted points."""

    fit: PlaneFit
    jacobian: np.ndarray  # by all unknowns, (3, 6 poses + 3 n)


class Prediction(NamedTuple):
    """Predicted covariance of a marker located at a point, in the axes of the world."""

    point: np.ndarray  # (3,) [m]
    in_plane: dict[str, np.ndarray]  # covariance (3, 3) by camera [m^2]; empty without a plane
    triangulated: np.ndarray | None  # (3, 3) [m^2]; None with one camera
    # Standard deviation of the length of a movement by 1 m from there in the plane, or, without
    # one, along the worst axis [m]; NaN if no camera sees both ends.
    movement: float

    @property
    def error(self) -> float:
        """Root sum of variances of the best estimate [m]; NaN if no camera sees the point."""
        every = [*self.in_plane.values()]
        if self.triangulated is not None:
            every.append(self.triangulated)
        return min((math.sqrt(float(np.trace(cov))) for cov in every), default=math.nan)


@dataclasses.dataclass(frozen=True)
class Predictor:
    """
    Computes covariances of markers located with estimated poses.

    ``covariance``: of the solution, 6 rows for each pose, then 3 for each point.
    """

    problem: Problem
    state: State
    covariance: np.ndarray
    plane: EstimatedPlane | None

    def at(self, point: np.ndarray) -> Prediction:
        """Return the prediction at a point (3,) of the world [m]."""
        seen = self.seen(point)
        in_plane = {}
        if self.plane is not None:
            in_plane = {
                self.problem.sides[c]: self._spread(*self._in_plane(c, self.plane, point))
                for c in seen
            }
        triangulated = self._spread(*self._triangulated(seen)) if len(seen) > 1 else None
        return Prediction(point, in_plane, triangulated, self._movement(point))

    def _movement(self, point: np.ndarray) -> float:
        """Return the standard deviation of a movement by 1 m from a point on [m]."""
        steps = np.eye(3) if self.plane is None else self.plane.fit.plane.axes
        found = [self._of_movement(point, point + step, step) for step in steps]
        return max(found, key=lambda one: (math.isnan(one), one))

    def _of_movement(self, start: np.ndarray, end: np.ndarray, along: np.ndarray) -> float:
        ends = [self.seen(point) for point in (start, end)]
        both = ends[0].keys() & ends[1].keys()
        if self.plane is not None:
            kinds = [[self._in_plane(c, self.plane, p) for p in (start, end)] for c in both]
        elif len(both) > 1:
            kinds = [[self._triangulated({c: one[c] for c in both}) for one in ends]]
        else:
            kinds = []
        changes = [along @ (there - here) for (_, here), (_, there) in kinds]
        return min(
            (math.sqrt(float(one @ self.covariance @ one)) for one in changes), default=math.nan
        )

    def seen(self, point: np.ndarray) -> dict[int, np.ndarray]:
        """Return the Jacobians (2, 9) of a point's pixels, for the cameras that see it."""
        found = {}
        for c, (camera, pose) in enumerate(
            zip(self.problem.cameras, self.state.poses, strict=True)
        ):
            pixels, jacobians = projected(camera, pose, point[None])
            if is_in_image(camera, pixels[0]):
                found[c] = jacobians[0]
        return found

    def _by_all(self, c: int, by_pose: np.ndarray) -> np.ndarray:
        rows = np.zeros((len(by_pose), len(self.covariance)))
        rows[:, 6 * c : 6 * c + 6] = by_pose
        return rows

    def _triangulated(self, seen: dict[int, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives of a triangulated point by pixels and by all unknowns."""
        by_point = np.vstack([jacobian[:, 6:] for jacobian in seen.values()])
        by_all = np.vstack([self._by_all(c, jacobian[:, :6]) for c, jacobian in seen.items()])
        estimator = np.linalg.solve(by_point.T @ by_point, by_point.T)
        return estimator, estimator @ by_all

    def _in_plane(
        self, c: int, plane: EstimatedPlane, point: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives of a point in the plane by pixels and by all unknowns."""
        flat, pose = plane.fit.plane, self.state.poses[c]
        on = point - float(flat.distance(point)) * flat.normal
        _, jacobians = projected(self.problem.cameras[c], pose, on[None])
        by_pose, by_point = jacobians[0, :, :6], jacobians[0, :, 6:]
        # Two equations from the pixel and one from the plane: n.(p - c) = s + rotations.
        offsets = flat.axes @ (on - flat.centroid)
        by_plane = np.array([[offsets[1], -offsets[0], 1.0]]) @ plane.jacobian
        solver = np.linalg.inv(np.vstack([by_point, flat.normal]))
        return solver[:, :2], solver @ np.vstack([-self._by_all(c, by_pose), by_plane])

    def _spread(self, by_pixels: np.ndarray, by_all: np.ndarray) -> np.ndarray:
        pixel = self.problem.pixel_deviation**2 * by_pixels @ by_pixels.T
        return np.asarray(pixel + by_all @ self.covariance @ by_all.T)
