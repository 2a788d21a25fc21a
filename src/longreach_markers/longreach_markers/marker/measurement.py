"""
Centre, covariance and outer ellipse of a fitted marker.

The fit is in pinhole pixels (:mod:`longreach_markers.marker.pixel_selection`), the measurement in
those of the image. In kernels, because NumPy takes as long for some dozen operations on matrices
of 2 x 2 as the fit for a small marker.

Kernels share these arrays:

- p, shape (20,), and covariance, shape (20, 20): parameters of a fit, in the order of
  :mod:`longreach_markers.marker.pixel_model`;
- measured, shape (13,): centre u, v [px]; its covariance 11, 12, 22 [px^2]; centre u, v of the
  ellipse of the outer edge [px]; its shape matrix 11, 12, 22 [px]; covariance of the blur 11, 12,
  22 [px^2].
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from longreach_dynamics.kernels import kernel
from longreach_dynamics.linear_algebra import cholesky, cholesky_solve
from longreach_markers.camera.model import distort_point, projection_jacobian
from longreach_markers.marker import pixel_parameters as at
from longreach_markers.marker.limits import DetectionLimits
from longreach_markers.marker.observation import Ellipse
from longreach_markers.marker.symmetric import largest, root_of_square

_SIZE = 13
# Standard deviation of the relative shape of an ellipse in addition to noise, and prior odds that
# it is not that of a circle with the given normal.
_SHAPE_FLOOR, _ODDS = 5e-4, 1.0 / 9.0


class Measurement(NamedTuple):
    """Centre [px] with covariance, outer ellipse: centre, shape matrix (3,); blur (3,) [px^2]."""

    center: NDArray[np.float64]
    covariance: NDArray[np.float64]
    outer_center: NDArray[np.float64]
    outer: NDArray[np.float64]
    spread: NDArray[np.float64]

    @property
    def ellipse(self) -> Ellipse:
        """The outer edge's ellipse."""
        a11, a12, a22 = self.outer.tolist()
        shorter, longer = eigenvalues(a11, a12, a22)
        angle = 0.5 * math.atan2(2.0 * a12, a11 - a22)
        return Ellipse(self.outer_center, np.array([longer, shorter]), angle)


def measure(
    p: NDArray[np.float64],
    covariance: NDArray[np.float64],
    doubt: NDArray[np.float64],
    packed: NDArray[np.float64],
    limits: DetectionLimits,
    *,
    known: bool,
) -> Measurement:
    """Return the measurement of a fit in pixels of the image; ``doubt`` adds to its covariance."""
    # Under uneven illumination of the scene, blur moves every edge away from the light, by its
    # variance times the relative slope of the illumination; vignetting acts on the blurred image
    # and does not. Half of the shift is corrected, and the other half is the uncertainty.
    measured = np.empty(_SIZE)
    _measure(p, covariance, known, measured)
    measured[2:5] += doubt[0, 0], doubt[0, 1], doubt[1, 1]
    _to_image(packed, limits.inflation, limits.floor, measured)
    return Measurement(
        measured[:2],
        measured[[2, 3, 3, 4]].reshape(2, 2),
        measured[5:7],
        measured[7:10],
        measured[10:],
    )


def normal_doubt(
    p: NDArray[np.float64],
    covariance: NDArray[np.float64],
    packed: NDArray[np.float64],
    normal: NDArray[np.float64],
    outline: NDArray[np.float64],
    shear: NDArray[np.float64],
    most: float,
) -> NDArray[np.float64]:
    """Return the covariance (2, 2) [px^2] of a centre because the plane's normal is uncertain."""
    # If the ellipse is not that of a circle with this normal, the marker may be tilted, which
    # moves the centre, or printed out of round. The tilt is as large as the shape needs, its
    # direction open; as for bends (docs/vision.md), one marker in ten is expected to have another
    # shape.
    astray, chi_square = _astray(p, covariance, outline, shear)
    if chi_square <= 2.0:
        return np.zeros((2, 2))
    astray *= math.sqrt(1.0 - 2.0 / chi_square)
    odds = _ODDS * 2.0 / chi_square * math.exp(min(0.5 * chi_square - 1.0, 100.0))
    ray = np.append((p[at.CENTER : at.SHAPE] - packed[2:4]) / packed[:2], 1.0)
    facing = float(normal @ ray)
    square = facing * facing / float(ray @ ray)
    # A turn by a small angle t, from an angle s to the line of sight, changes the ratio of the
    # axes by sin(s) t + t^2 / 2, and about half as much of t in the other direction: 0.7 in the
    # mean. The relative difference of the shape is 1 / (1 + cos^2(s)) of that.
    slope = 0.7 * math.sqrt(max(1.0 - square, 0.0))
    turn = math.sqrt(slope * slope + 2.0 * (1.0 + square) * astray) - slope
    # The centre of the circle is off by A h from that of the ellipse.
    A = p[[at.SHAPE, at.SHAPE + 1, at.SHAPE + 1, at.SHAPE + 2]].reshape(2, 2)
    by_turn = A @ A / packed[:2] @ (np.eye(2, 3) - np.outer(normal[:2], ray) / facing)
    by_turn *= min(turn / math.sqrt(2.0), most) / facing
    return np.asarray(odds / (1.0 + odds) * by_turn @ by_turn.T)


def circle_shapes(
    packed: NDArray[np.float64], normal: NDArray[np.float64], x: float, y: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a circle's shape matrices (longer semi-axis 1 px) in pinhole pixels and the image."""
    shapes = np.empty(6)
    _circle_shapes(packed, normal, x, y, shapes)
    return shapes[:3], shapes[3:]


def eigenvalues(a11: float, a12: float, a22: float) -> tuple[float, float]:
    """Return the eigenvalues of a symmetric matrix (2, 2), the smaller first."""
    mean, half = 0.5 * (a11 + a22), math.hypot(0.5 * (a11 - a22), a12)
    return mean - half, mean + half


@kernel
def _measure(p, covariance, known, measured):  # type: ignore[no-untyped-def]
    """Fill a measurement in pinhole pixels; kernel of :func:`measure`."""
    h1, h2 = p[at.PERSPECTIVE], p[at.PERSPECTIVE + 1]
    a11, a12, a22 = p[at.SHAPE], p[at.SHAPE + 1], p[at.SHAPE + 2]
    # The ellipse of the outer edge: x = c + A e / (1 + h . e).
    size = h1 * h1 + h2 * h2
    flat = 1.0 / (1.0 - size)
    shift_u, shift_v = -flat * (a11 * h1 + a12 * h2), -flat * (a12 * h1 + a22 * h2)
    root = math.sqrt(flat)
    more = (flat - root) / size if size > 0.0 else 0.0
    b11, b12, b22 = root + more * h1 * h1, more * h1 * h2, root + more * h2 * h2
    outer = root_of_square(
        a11 * b11 + a12 * b12, a11 * b12 + a12 * b22, a12 * b11 + a22 * b12, a12 * b12 + a22 * b22
    )
    s11, s12, s22 = p[at.BLUR], p[at.BLUR + 1], p[at.BLUR + 2]
    step = p[at.OUTSIDE] - p[at.BAND]
    slope_u, slope_v = p[at.OUTSIDE + 1] - p[at.BAND + 1], p[at.OUTSIDE + 2] - p[at.BAND + 2]
    half_u = 0.5 * (s11 * slope_u + s12 * slope_v) / step
    half_v = 0.5 * (s12 * slope_u + s22 * slope_v) / step
    jacobian = np.zeros((2, at.PARAMETERS))
    jacobian[0, at.CENTER] = jacobian[1, at.CENTER + 1] = 1.0
    for sign, level in ((0.5, at.OUTSIDE + 1), (-0.5, at.BAND + 1)):
        jacobian[0, level], jacobian[0, level + 1] = sign * s11 / step, sign * s12 / step
        jacobian[1, level], jacobian[1, level + 1] = sign * s12 / step, sign * s22 / step
    center_u, center_v = p[at.CENTER] + half_u, p[at.CENTER + 1] + half_v
    outer_u, outer_v = center_u + shift_u, center_v + shift_v
    if not known:
        center_u, center_v = outer_u, outer_v
        jacobian[0, at.PERSPECTIVE], jacobian[0, at.PERSPECTIVE + 1] = -flat * a11, -flat * a12
        jacobian[1, at.PERSPECTIVE], jacobian[1, at.PERSPECTIVE + 1] = -flat * a12, -flat * a22
    c11, c12, c22 = half_u * half_u, half_u * half_v, half_v * half_v
    for i in range(at.PARAMETERS):
        by_u, by_v = 0.0, 0.0
        for j in range(at.PARAMETERS):
            by_u += covariance[i, j] * jacobian[0, j]
            by_v += covariance[i, j] * jacobian[1, j]
        c11 += jacobian[0, i] * by_u
        c12 += jacobian[0, i] * by_v
        c22 += jacobian[1, i] * by_v
    measured[0], measured[1] = center_u, center_v
    measured[2], measured[3], measured[4] = c11, c12, c22
    measured[5], measured[6] = outer_u, outer_v
    measured[7], measured[8], measured[9] = outer
    measured[10], measured[11], measured[12] = s11, s12, s22


@kernel
def _astray(p, covariance, outline, shear):  # type: ignore[no-untyped-def]
    """Return the relative difference of a shape from a circle's, and its chi-square."""
    a11, a12, a22 = p[at.SHAPE], p[at.SHAPE + 1], p[at.SHAPE + 2]
    seen, spread = np.empty(3), np.empty((3, 3))
    # Without motion: (1 - shear e_v^T) A.
    seen[0], seen[1], seen[2] = root_of_square(
        a11 - shear[0] * a12, a12 - shear[0] * a22,
        (1.0 - shear[1]) * a12, (1.0 - shear[1]) * a22,
    )  # fmt: skip
    square, along, length = 0.0, 0.0, 0.0
    for i in range(3):
        square += seen[i] * seen[i]
        along += seen[i] * outline[i]
        length += outline[i] * outline[i]
    # The scale is free: the difference is perpendicular to the shape.
    excess = (seen - outline * (along / length)) / math.sqrt(square)
    for i in range(3):
        for j in range(3):
            spread[i, j] = covariance[at.SHAPE + i, at.SHAPE + j] / square
        spread[i, i] += _SHAPE_FLOOR**2 + shear[2] ** 2
    right = excess.copy()
    if not cholesky(spread):
        return 0.0, 0.0
    cholesky_solve(spread, right)
    astray, chi_square = 0.0, 0.0
    for i in range(3):
        astray += excess[i] * excess[i]
        chi_square += excess[i] * right[i]
    return math.sqrt(astray), chi_square


@kernel
def _to_image(packed, factor, floor, measured):  # type: ignore[no-untyped-def]
    """Move a measurement from pinhole pixels to the image."""
    if packed[0] != 0.0:
        fx, fy = packed[0], packed[1]
        x, y = (measured[0] - packed[2]) / fx, (measured[1] - packed[3]) / fy
        uu, uv, vu, vv = projection_jacobian(packed, x, y)
        uu, uv, vu, vv = uu / fx, uv / fy, vu / fx, vv / fy
        measured[0], measured[1] = distort_point(packed, x, y)
        x, y = (measured[5] - packed[2]) / fx, (measured[6] - packed[3]) / fy
        measured[5], measured[6] = distort_point(packed, x, y)
        for offset in (2, 10):
            _transform(uu, uv, vu, vv, measured[offset : offset + 3])
        a11, a12, a22 = measured[7], measured[8], measured[9]
        measured[7], measured[8], measured[9] = root_of_square(
            uu * a11 + uv * a12, uu * a12 + uv * a22, vu * a11 + vv * a12, vu * a12 + vv * a22
        )
    for i in range(2, 5):
        measured[i] *= factor
    measured[2] += floor * floor
    measured[4] += floor * floor


@kernel
def _circle_shapes(packed, normal, x, y, shapes):  # type: ignore[no-untyped-def]
    """Fill both shapes; kernel of :func:`circle_shapes`."""
    fx, fy = packed[0], packed[1]
    # A step w in the plane moves the pinhole pixel by F (w_uv - ray_uv w_z), up to scale: the
    # square of the shape is F F^T - (F n) (F n)^T.
    across_u, across_v = fx * (normal[0] - x * normal[2]), fy * (normal[1] - y * normal[2])
    square = np.empty(3)
    square[0] = fx * fx * (1.0 + x * x) - across_u * across_u
    square[1] = fx * fy * x * y - across_u * across_v
    square[2] = fy * fy * (1.0 + y * y) - across_v * across_v
    _fill_unit_shape(square, shapes[:3])
    uu, uv, vu, vv = projection_jacobian(packed, x, y)
    _transform(uu / fx, uv / fy, vu / fx, vv / fy, square)
    _fill_unit_shape(square, shapes[3:])


@njit
def _fill_unit_shape(square, shape):  # type: ignore[no-untyped-def]
    """Fill the root of a square (11, 12, 22), scaled to a larger eigenvalue of 1."""
    root = math.sqrt(square[0] * square[2] - square[1] * square[1])
    longest = largest(square[0] + root, square[1], square[2] + root)
    shape[0] = (square[0] + root) / longest
    shape[1] = square[1] / longest
    shape[2] = (square[2] + root) / longest


@njit
def _transform(uu, uv, vu, vv, matrix):  # type: ignore[no-untyped-def]
    """Replace a covariance C (11, 12, 22) by J C J^T."""
    c11, c12, c22 = matrix[0], matrix[1], matrix[2]
    matrix[0] = uu * (uu * c11 + uv * c12) + uv * (uu * c12 + uv * c22)
    matrix[1] = vu * (uu * c11 + uv * c12) + vv * (uu * c12 + uv * c22)
    matrix[2] = vu * (vu * c11 + vv * c12) + vv * (vu * c12 + vv * c22)
