"""
Symmetric 2 x 2 matrices (a11, a12, a22), as kernels need them.

An ellipse is the image of the unit circle under a positive definite one, its shape matrix A [px]:
A y is a place relative to the centre, and y = A^-1 d with |y| = 1 is on the rim.
"""

from __future__ import annotations

import math

from numba import njit

__all__ = ['SECTORS', 'inverse', 'largest', 'sector_of', 'times']

# Sectors of a rim, in which it is seen or not.
SECTORS = 48


@njit
def inverse(a11, a12, a22):  # type: ignore[no-untyped-def]
    """Return the inverse matrix (b11, b12, b22)."""
    determinant = a11 * a22 - a12 * a12
    return a22 / determinant, -a12 / determinant, a11 / determinant


@njit
def times(a11, a12, a22, x, y):  # type: ignore[no-untyped-def]
    """Return the matrix times a vector (x, y)."""
    return a11 * x + a12 * y, a12 * x + a22 * y


@njit
def largest(a11, a12, a22):  # type: ignore[no-untyped-def]
    """Return the larger eigenvalue: of a shape matrix the longer semi-axis."""
    return 0.5 * (a11 + a22) + math.hypot(0.5 * (a11 - a22), a12)


@njit
def sector_of(x, y):  # type: ignore[no-untyped-def]
    """Return the sector in which a direction (x, y) lies, 0 to SECTORS - 1."""
    sector = int((math.atan2(y, x) / (2.0 * math.pi) + 0.5) * SECTORS)
    return min(sector, SECTORS - 1)
