"""
Ellipses, and images of circles.

A conic is the symmetric matrix C (3, 3) of p^T C p = 0 with p = (u, v, 1), negative inside. For a
circle in space it is exact in normalised coordinates; lens distortion deforms it, so that ellipses
must be fitted to undistorted points.

The projected centre of a circle is not the centre of its ellipse. The normal n of the circle's
plane in the camera frame is the vanishing line of that plane, and the centre is its pole: C* n in
normalised coordinates, C* K^-T n in pixels.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import ArrayLike

from longreach_dynamics.errors import InputError

# Relative tolerances below which a determinant and the value at the centre are rounding errors:
# the conic is a line or a point.
_FLAT, _POINT = 1e-12, 1e-13


@dataclasses.dataclass(frozen=True, eq=False)
class Ellipse:
    """
    An ellipse in the image plane.

    Parameters
    ----------
    center : ndarray, shape (2,)
        Centre [px], or in other image coordinates.
    axes : ndarray, shape (2,)
        Semi-axes, the longer first.
    angle : float
        Angle of the longer semi-axis from u towards v, in (-pi/2, pi/2] [rad]; 0 for a circle.

    Raises
    ------
    InputError
        For numbers that are not finite, and semi-axes that are not positive.
    """

    center: np.ndarray
    axes: np.ndarray
    angle: float

    def __post_init__(self) -> None:
        """Check the values; put the longer axis first and the angle into its range."""
        center = np.array(self.center, dtype=np.float64)
        axes = np.array(self.axes, dtype=np.float64)
        angle = float(self.angle)
        if center.shape != (2,) or axes.shape != (2,):
            raise InputError(
                f'center and axes have shapes {center.shape} and {axes.shape}, allowed: (2,)'
            )
        if not (np.isfinite(center).all() and np.isfinite(axes).all() and math.isfinite(angle)):
            raise InputError(f'ellipse {center}, {axes}, {angle}, allowed: finite numbers')
        if not axes.min() > 0.0:
            raise InputError(f'axes = {axes.tolist()}, allowed: (0, inf)')
        if axes[0] < axes[1]:
            axes, angle = axes[::-1].copy(), angle + math.pi / 2.0
        angle = math.remainder(angle, math.pi)
        if angle <= -math.pi / 2.0:
            angle = math.pi / 2.0
        object.__setattr__(self, 'center', center)
        object.__setattr__(self, 'axes', axes)
        object.__setattr__(self, 'angle', 0.0 if axes[0] == axes[1] else angle)

    @property
    def conic(self) -> np.ndarray:
        """Conic (3, 3), -1 at the centre."""
        c, s = math.cos(self.angle), math.sin(self.angle)
        turn = np.array([[c, s], [-s, c]]) / self.axes[:, None]
        whole = np.zeros((3, 3))
        whole[:2] = np.column_stack([turn, -turn @ self.center])
        whole[2, 2] = 1.0
        return np.asarray(whole.T @ np.diag([1.0, 1.0, -1.0]) @ whole)

    @classmethod
    def from_conic(cls, matrix: ArrayLike) -> Ellipse:
        """Return the ellipse of a conic (3, 3) of any scale and sign; InputError for others."""
        square, center, value = _central(matrix)
        sizes, directions = np.linalg.eigh(square / -value)
        axes = 1.0 / np.sqrt(sizes)
        return cls(center, axes, math.atan2(directions[1, 0], directions[0, 0]))

    def points(self, angles: ArrayLike) -> np.ndarray:
        """Return the points (n, 2) at the parameter angles (n,) of the unit circle [rad]."""
        c, s = math.cos(self.angle), math.sin(self.angle)
        along = np.column_stack([np.cos(angles), np.sin(angles)]) * self.axes
        return np.asarray(self.center + along @ np.array([[c, s], [-s, c]]))


def circle_conic(center_cam: ArrayLike, normal_cam: ArrayLike, radius: float) -> np.ndarray:
    """
    Return the conic (3, 3) of a circle's image in normalised coordinates, negative inside.

    Centre (3,) and radius [m], normal (3,) of any length, in the camera frame. A ray d meets the
    circle's plane in (n.c)/(n.d) d; on the circle, |(n.c) d - (n.d) c|^2 = r^2 (n.d)^2.
    """
    center, normal = _vector(center_cam, 'center_cam'), _direction(normal_cam)
    if not 0.0 < radius < math.inf:
        raise InputError(f'radius = {radius} m, allowed: (0, inf) m')
    distance = float(normal @ center)
    if abs(distance) < 1e-9 * max(radius, float(np.linalg.norm(center))):
        raise InputError("the circle's plane passes through the camera: its image is a line")
    nearest = center[2] - radius * math.sqrt(max(0.0, 1.0 - normal[2] ** 2))
    if not nearest > 0.0:
        raise InputError(
            f'the circle reaches to z = {nearest:g} m of the camera frame, allowed: (0, inf) m'
        )
    M = distance * np.eye(3) - np.outer(center, normal)
    conic = M.T @ M - radius**2 * np.outer(normal, normal)
    return np.asarray((conic + conic.T) / 2.0)


def projected_center(conic: ArrayLike, normal_cam: ArrayLike) -> np.ndarray:
    """
    Return the projected centre (2,) of a circle from the conic (3, 3) of its image and its normal.

    Exact, in the coordinates of the conic; for a conic in pixels pass K^-T n.
    """
    square, center, value = _central(conic)
    line = _direction(normal_cam)
    level = float(line[:2] @ center + line[2])
    size = float(np.abs(line[:2] * center).sum() + abs(line[2]))
    if not abs(level) > _POINT * size:
        raise InputError(
            f'normal_cam = {line.tolist()}: the plane is seen edge-on, allowed: one that is not'
        )
    return np.asarray(center + value / level * np.linalg.solve(square, line[:2]))


def _central(matrix: ArrayLike) -> tuple[np.ndarray, np.ndarray, float]:
    """Return an ellipse's form (2, 2), positive definite, centre (2,) and negative value there."""
    conic = np.array(matrix, dtype=np.float64)
    if conic.shape != (3, 3) or not np.isfinite(conic).all():
        raise InputError(f'conic {conic.tolist()}, allowed: 3 x 3 finite numbers')
    conic = (conic + conic.T) / 2.0
    square, edge, constant = conic[:2, :2], conic[:2, 2], float(conic[2, 2])
    trace = float(np.trace(square))
    if not np.linalg.det(square) > _FLAT * trace**2:
        raise InputError(
            f'conic {conic.tolist()} is a hyperbola, parabola or line, allowed: an ellipse'
        )
    if trace < 0.0:
        square, edge, constant = -square, -edge, -constant
    center = -np.linalg.solve(square, edge)
    value = constant + float(edge @ center)
    if not value < -_POINT * (abs(constant) + float(np.abs(edge * center).sum())):
        raise InputError(f'conic {conic.tolist()} is a point or empty, allowed: an ellipse')
    return square, center, value


def _vector(values: ArrayLike, name: str) -> np.ndarray:
    """Return a finite vector (3,)."""
    vector = np.array(values, dtype=np.float64)
    if vector.shape != (3,) or not np.isfinite(vector).all():
        raise InputError(f'{name} = {vector.tolist()}, allowed: 3 finite numbers')
    return vector


def _direction(values: ArrayLike) -> np.ndarray:
    """Return a unit normal (3,)."""
    normal = _vector(values, 'normal_cam')
    length = float(np.linalg.norm(normal))
    if not length > 1e-12:
        raise InputError(f'normal_cam = {normal.tolist()}, allowed: a vector that is not 0')
    return normal / length
