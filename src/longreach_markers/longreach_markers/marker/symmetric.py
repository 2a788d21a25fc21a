"""
Symmetric 2 x 2 matrices (a11, a12, a22) for kernels.

An ellipse is the image of the unit circle under a positive definite matrix, its shape matrix A
[px]: A y is a position relative to the centre, and y = A^-1 d with |y| = 1 is on the rim.
"""

from __future__ import annotations

import math

from numba import njit

# Sectors into which a rim is divided.
SECTORS = 48


@njit
def inverse(a11, a12, a22):  # type: ignore[no-untyped-def]
    """Return the elements (b11, b12, b22) of the inverse of a matrix."""
    determinant = a11 * a22 - a12 * a12
    return a22 / determinant, -a12 / determinant, a11 / determinant


@njit
def times(a11, a12, a22, x, y):  # type: ignore[no-untyped-def]
    """Return the product of a matrix and a vector (x, y)."""
    return a11 * x + a12 * y, a12 * x + a22 * y


@njit
def largest(a11, a12, a22):  # type: ignore[no-untyped-def]
    """Return the larger eigenvalue; for a shape matrix, the longer semi-axis [px]."""
    half = 0.5 * (a11 - a22)
    return 0.5 * (a11 + a22) + math.sqrt(half * half + a12 * a12)


@njit
def root_of_square(m11, m12, m21, m22):  # type: ignore[no-untyped-def]
    """Return the symmetric positive root (11, 12, 22) of M M^T: of the same ellipse as M."""
    q11, q12, q22 = m11 * m11 + m12 * m12, m11 * m21 + m12 * m22, m21 * m21 + m22 * m22
    root = abs(m11 * m22 - m12 * m21)
    trace = math.sqrt(q11 + q22 + 2.0 * root)
    return (q11 + root) / trace, q12 / trace, (q22 + root) / trace


@njit(error_model='numpy', inline='always')
def sector_of(x, y):  # type: ignore[no-untyped-def]
    """Return the sector of a direction, exact to 1e-5 rad (Abramowitz and Stegun 1964, 4.4.47)."""
    along, across = abs(x), abs(y)
    t = min(along, across) / max(along, across, 1e-300)
    square = t * t
    angle = 0.1801410 + square * (-0.0851330 + square * 0.0208351)
    angle = t * (0.9998660 + square * (-0.3302995 + square * angle))
    angle = 0.5 * math.pi - angle if across > along else angle
    angle = math.pi - angle if x < 0.0 else angle
    angle = -angle if y < 0.0 else angle
    sector = int((angle / (2.0 * math.pi) + 0.5) * SECTORS)
    return min(max(sector, 0), SECTORS - 1)
