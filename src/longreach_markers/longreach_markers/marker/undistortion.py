"""
Pinhole pixels: pixels of the same camera without distortion.

A marker's edges are fitted in pinhole pixels, where the image of a plane is a homography. Without
calibration (focal length 0) they are equal to the pixels of the image.
"""

from __future__ import annotations

from numba import njit

from longreach_markers.camera.model import undistort_point
from longreach_markers.marker.symmetric import root_of_square


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
    right_u, right_v = to_pinhole(packed, u + 1.0, v)
    left_u, left_v = to_pinhole(packed, u - 1.0, v)
    below_u, below_v = to_pinhole(packed, u, v + 1.0)
    above_u, above_v = to_pinhole(packed, u, v - 1.0)
    j11, j21 = 0.5 * (right_u - left_u), 0.5 * (right_v - left_v)
    j12, j22 = 0.5 * (below_u - above_u), 0.5 * (below_v - above_v)
    # J A is not symmetric; the symmetric root describes the same ellipse.
    return root_of_square(
        j11 * a11 + j12 * a12, j11 * a12 + j12 * a22, j21 * a11 + j22 * a12, j21 * a12 + j22 * a22
    )
