"""
Pinhole pixels: pixels of the same camera without distortion.

A marker's edges are fitted in pinhole pixels, where the image of a plane is a homography. Without
calibration (focal length 0) they are equal to the pixels of the image.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from longreach_dynamics.kernels import kernel
from longreach_markers.camera.model import distort_point, projection_jacobian, undistort_point


def image_of(
    packed: NDArray[np.float64], pinhole: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """
    Return the image pixel (2,) of a pinhole pixel (2,), and its Jacobian (2, 2).

    ``packed`` is :attr:`Camera.packed`, with focal length 0 for an unknown camera.
    """
    u, v, uu, uv, vu, vv = _image_of(packed, pinhole[0], pinhole[1])
    return np.array([u, v]), np.array([[uu, uv], [vu, vv]])


@kernel
def _image_of(packed, u, v):  # type: ignore[no-untyped-def]
    """Distort the pinhole pixel (u, v); kernel of :func:`image_of`."""
    fx, fy = packed[0], packed[1]
    if fx == 0.0:
        return u, v, 1.0, 0.0, 0.0, 1.0
    x, y = (u - packed[2]) / fx, (v - packed[3]) / fy
    uu, uv, vu, vv = projection_jacobian(packed, x, y)
    u, v = distort_point(packed, x, y)
    return u, v, uu / fx, uv / fy, vu / fx, vv / fy


@njit
def to_pinhole(packed, u, v):  # type: ignore[no-untyped-def]
    """Return the pinhole pixel (u, v) of an image pixel; NaN where there is no ray."""
    if packed[0] == 0.0:
        return u, v
    x, y = undistort_point(packed, u, v)
    return packed[0] * x + packed[2], packed[1] * y + packed[3]


@njit
def shape_to_pinhole(packed, u, v, a11, a12, a22):  # type: ignore[no-untyped-def]
    """Transform an ellipse's shape matrix at u, v to pinhole pixels, to first order."""
    if packed[0] == 0.0:
        return a11, a12, a22
    step = 1.0
    right_u, right_v = to_pinhole(packed, u + step, v)
    left_u, left_v = to_pinhole(packed, u - step, v)
    below_u, below_v = to_pinhole(packed, u, v + step)
    above_u, above_v = to_pinhole(packed, u, v - step)
    j11, j21 = 0.5 * (right_u - left_u), 0.5 * (right_v - left_v)
    j12, j22 = 0.5 * (below_u - above_u), 0.5 * (below_v - above_v)
    # J A is not symmetric; the symmetric root of (J A)(J A)^T describes the same ellipse.
    m11 = j11 * a11 + j12 * a12
    m12 = j11 * a12 + j12 * a22
    m21 = j21 * a11 + j22 * a12
    m22 = j21 * a12 + j22 * a22
    q11, q12, q22 = m11 * m11 + m12 * m12, m11 * m21 + m12 * m22, m21 * m21 + m22 * m22
    root = math.sqrt(max(q11 * q22 - q12 * q12, 1e-12))
    trace = math.sqrt(q11 + q22 + 2.0 * root)
    return (q11 + root) / trace, q12 / trace, (q22 + root) / trace
