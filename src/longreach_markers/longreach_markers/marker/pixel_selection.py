"""
Selection of pixels for the fit of a circular marker, and correction of uneven light.

A marker's edges are fitted in pinhole pixels, those of the same camera without distortion, where
the image of a plane is a homography; without calibration (focal length 0) they are equal to the
pixels of the image. Samples are pixels near the edges: u, v, and grey level. Each belongs to
a sector of the outer edge, numbered from 0, or of the inner edge, numbered from SECTORS. Sectors
saturated by glare are left out; light that varies nonlinearly is divided out.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from longreach_dynamics.linear_algebra import cholesky, cholesky_solve
from longreach_markers.camera.model import undistort_point
from longreach_markers.marker.pixel_parameters import BLUR, CENTER, RHO, SHAPE
from longreach_markers.marker.products import BLOCK, add_products
from longreach_markers.marker.symmetric import SECTORS, inverse, largest, root_of_square, sector_of

# Cubic polynomial of light: 1, x, y, x^2, xy, y^2, x^3, x^2 y, x y^2, y^3.
LIGHT_TERMS = 10
# Grey level from which a pixel is saturated.
_SATURATED = 254.0
# Unused sectors on each side of a saturated one.
_VEIL = 1
# If a third of the bright unsaturated pixels are above this grey level, saturation is due to the
# exposure and not to glare.
_EXPOSED = 240.0
# Columns whose distances are computed together.
_STRIP = 32
# Interpolation tolerance [px], and the position of the largest error on a grid.
_GRID_ERROR, _BETWEEN = 1e-3, 1.0 / math.sqrt(3.0)


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


@njit
def edge_reach(p):  # type: ignore[no-untyped-def]
    """Return the largest distance from an edge of pixels that are used [px]; p has shape (20,)."""
    wide = largest(p[BLUR], p[BLUR + 1], p[BLUR + 2])
    return 3.0 * math.sqrt(max(wide, 0.25)) + 1.0


@njit
def select_pixels(image, packed, p, disc, reach, window):  # type: ignore[no-untyped-def]
    """Return the pixels of a window within ``reach`` [px] of the edges, and sectors (N,)."""
    # Rows (5, N): u, v in pinhole pixels, grey level, column and row in the image.
    u0, u1, v0, v1 = window
    most = max(0, u1 - u0) * max(0, v1 - v0)
    samples, sector = np.empty((5, most)), np.empty(most, np.int64)
    # Distortion is smooth: quadratic interpolation on 3 x 3 points covers a usual window, and each
    # part of a window that is divided because its distortion is large.
    parts = 1
    if packed[0] != 0.0:
        grid_u, grid_v = _grid(packed, u0, u1, v0, v1)
        worst = 0.0
        for i in range(4):
            s, t = _BETWEEN * (2 * (i % 2) - 1), _BETWEEN * (i // 2 * 2 - 1)
            u = 0.5 * (u0 + u1 - 1) + 0.5 * s * (u1 - u0)
            v = 0.5 * (v0 + v1 - 1) + 0.5 * t * (v1 - v0)
            x, y = to_pinhole(packed, u, v)
            error = math.hypot(
                x - u - _interpolated(grid_u, s, t), y - v - _interpolated(grid_v, s, t)
            )
            # False for NaN, where there is no ray.
            if error > worst:
                worst = error
        # The error is of third order in the size.
        parts = int(min(max(math.ceil((worst / _GRID_ERROR) ** (1.0 / 3.0)), 1.0), 16.0))
    outer, inner = 0, 0
    for i in range(parts):
        top, bottom = v0 + i * (v1 - v0) // parts, v0 + (i + 1) * (v1 - v0) // parts
        for j in range(parts):
            left, right = u0 + j * (u1 - u0) // parts, u0 + (j + 1) * (u1 - u0) // parts
            outer, inner = _select_part(
                image, packed, p, disc, reach, left, right, top, bottom, samples, sector, outer,
                inner,
            )  # fmt: skip
    # Pixels near the inner edge come after the others.
    last = samples.shape[1] - inner
    for index in range(inner):
        sector[outer + index] = sector[last + index]
        for i in range(5):
            samples[i, outer + index] = samples[i, last + index]
    return samples[:, : outer + inner], sector[: outer + inner]


@njit
def _grid(packed, u0, u1, v0, v1):  # type: ignore[no-untyped-def]
    """Return pinhole minus image pixels (u, v) at 3 x 3 points of a window [px]."""
    grid_u, grid_v = np.empty((3, 3)), np.empty((3, 3))
    for i in range(3):
        for j in range(3):
            u = 0.5 * (u0 + u1 - 1) + 0.5 * (j - 1) * (u1 - u0)
            v = 0.5 * (v0 + v1 - 1) + 0.5 * (i - 1) * (v1 - v0)
            x, y = to_pinhole(packed, u, v)
            grid_u[i, j], grid_v[i, j] = x - u, y - v
    return grid_u, grid_v


@njit
def _interpolated(grid, s, t):  # type: ignore[no-untyped-def]
    """Interpolate a grid (3, 3) at s, t in [-1, 1], columns and rows."""
    value = 0.0
    for i in range(3):
        across = (0.5 * t * (t - 1.0), 1.0 - t * t, 0.5 * t * (t + 1.0))[i]
        value += across * (
            0.5 * s * (s - 1.0) * grid[i, 0]
            + (1.0 - s * s) * grid[i, 1]
            + 0.5 * s * (s + 1.0) * grid[i, 2]
        )
    return value


@njit(error_model='numpy')
def _select_part(  # type: ignore[no-untyped-def]
    image, packed, p, disc, reach, u0, u1, v0, v1, samples, sector, outer, inner
):  # fmt: skip
    """Add the pixels of a part of the window; return the new numbers near the two edges."""
    # Those near the inner edge are at the end of the arrays.
    b11, b12, b22 = inverse(p[SHAPE], p[SHAPE + 1], p[SHAPE + 2])
    cu, cv = p[CENTER], p[CENTER + 1]
    # A disc's inner edge is far away.
    rho = -1e9 if disc else p[RHO]
    grid_u, grid_v = _grid(packed, u0, u1, v0, v1)
    middle_u, middle_v = 0.5 * (u0 + u1 - 1), 0.5 * (v0 + v1 - 1)
    half_u, half_v = max(0.5 * (u1 - u0), 0.5), max(0.5 * (v1 - v0), 0.5)
    strip = np.empty((5, _STRIP))
    for row in range(v0, v1):
        # Within a row, interpolation needs three values each for u and v.
        t = (row - middle_v) / half_v
        r0, r1, r2 = 0.5 * t * (t - 1.0), 1.0 - t * t, 0.5 * t * (t + 1.0)
        eu0 = r0 * grid_u[0, 0] + r1 * grid_u[1, 0] + r2 * grid_u[2, 0]
        eu1 = r0 * grid_u[0, 1] + r1 * grid_u[1, 1] + r2 * grid_u[2, 1]
        eu2 = r0 * grid_u[0, 2] + r1 * grid_u[1, 2] + r2 * grid_u[2, 2]
        ev0 = r0 * grid_v[0, 0] + r1 * grid_v[1, 0] + r2 * grid_v[2, 0]
        ev1 = r0 * grid_v[0, 1] + r1 * grid_v[1, 1] + r2 * grid_v[2, 1]
        ev2 = r0 * grid_v[0, 2] + r1 * grid_v[1, 2] + r2 * grid_v[2, 2]
        for begin in range(u0, u1, _STRIP):
            # A loop without branches, so that it is vectorised.
            for k in range(_STRIP):
                s = (begin + k - middle_u) / half_u
                c0, c1, c2 = 0.5 * s * (s - 1.0), 1.0 - s * s, 0.5 * s * (s + 1.0)
                u = begin + k + c0 * eu0 + c1 * eu1 + c2 * eu2
                v = row + c0 * ev0 + c1 * ev1 + c2 * ev2
                yu = b11 * (u - cu) + b12 * (v - cv)
                yv = b12 * (u - cu) + b22 * (v - cv)
                square = yu * yu + yv * yv
                r = math.sqrt(square)
                ku, kv = b11 * yu + b12 * yv, b12 * yu + b22 * yv
                away, away_inner = abs(r - 1.0), abs(r - rho)
                nearest = min(away, away_inner)
                strip[0, k], strip[1, k] = u, v
                # Negative, or NaN without a ray: the pixel is skipped.
                near = reach * math.sqrt(ku * ku + kv * kv) - nearest * r
                strip[2, k] = near if square > 1e-12 else -1.0
                strip[3, k] = away - away_inner
                strip[4, k] = sector_of(yu, yv)
            for k in range(min(_STRIP, u1 - begin)):
                if not strip[2, k] >= 0.0:
                    continue
                if strip[3, k] > 0.0:
                    inner += 1
                    place, part = samples.shape[1] - inner, SECTORS
                else:
                    place, part = outer, 0
                    outer += 1
                samples[0, place], samples[1, place] = strip[0, k], strip[1, k]
                samples[2, place] = image[row, begin + k]
                samples[3, place], samples[4, place] = begin + k, row
                sector[place] = part + int(strip[4, k])
    return outer, inner


@njit
def find_burnt(samples, sector, burnt):  # type: ignore[no-untyped-def]
    """Mark sectors saturated by glare; none if most of the bright side is: overexposed."""
    counts = np.zeros(burnt.size, np.int64)
    used = np.zeros(burnt.size, np.int64)
    for index in range(sector.size):
        used[sector[index]] += 1
        if samples[2, index] >= _SATURATED:
            counts[sector[index]] += 1
    there, marked = 0, 0
    for index in range(burnt.size):
        burnt[index] = counts[index] > 1
        # Sectors of the inner edge may have only one or two pixels: use the outer edge.
        if index < SECTORS:
            there += used[index] > 0
            marked += burnt[index]
    exposed, bright = 0, 0
    for index in range(sector.size):
        if samples[2, index] < _SATURATED:
            exposed += samples[2, index] > _EXPOSED
            bright += samples[2, index] > 128.0
    if marked > 0.6 * there or 3 * exposed > bright:
        burnt[:] = False
        return
    # Glare that saturates one sector affects its neighbours.
    for index in range(burnt.size):
        counts[index] = burnt[index]
    for index in range(burnt.size):
        part, turn = index // SECTORS * SECTORS, index % SECTORS
        for step in range(-_VEIL, _VEIL + 1):
            if counts[part + (turn + step) % SECTORS] > 0:
                burnt[index] = True


@njit
def add_light(samples, sector, active, residuals, frame, light):  # type: ignore[no-untyped-def]
    """Add the cubic light that explains residuals; return the explained mean square."""
    # samples have fitted grey levels; frame: origin u, v in pinhole pixels and unit of length;
    # light (LIGHT_TERMS,): the light minus 1.
    (cu, cv, radius), count, gained = frame, 0, 0.0
    rows = np.zeros((12, BLOCK))
    sums = np.zeros((12, 12))
    for begin in range(0, samples.shape[1], BLOCK):
        size = min(BLOCK, samples.shape[1] - begin)
        for k in range(size):
            index = begin + k
            is_active = active[sector[index]]
            count += is_active
            error = residuals[index] if is_active else 0.0
            # Relative to the modelled grey level.
            value = samples[2, index] - error if is_active else 0.0
            x, y = (samples[0, index] - cu) / radius, (samples[1, index] - cv) / radius
            rows[0, k], rows[1, k], rows[2, k] = value, value * x, value * y
            rows[3, k], rows[4, k], rows[5, k] = value * x * x, value * x * y, value * y * y
            rows[6, k], rows[7, k] = value * x * x * x, value * x * x * y
            rows[8, k], rows[9, k] = value * x * y * y, value * y * y * y
            rows[LIGHT_TERMS, k] = error
        rows[:, size:] = 0.0
        add_products(rows, 0, 12, sums)
    normal = sums[:LIGHT_TERMS, :LIGHT_TERMS].copy()
    right = sums[LIGHT_TERMS, :LIGHT_TERMS].copy()
    if cholesky(normal):
        before = right.copy()
        cholesky_solve(normal, right)
        for i in range(LIGHT_TERMS):
            gained += before[i] * right[i]
        light += right
    return gained / max(count, 1)


@njit
def divide_by_light(samples, light, frame):  # type: ignore[no-untyped-def]
    """Divide grey levels by the nonlinear part of a polynomial as in :func:`add_light`."""
    if not light.any():
        return
    cu, cv, radius = frame
    for index in range(samples.shape[1]):
        x, y = (samples[0, index] - cu) / radius, (samples[1, index] - cv) / radius
        bend = (light[3] + light[6] * x) * x * x + (light[4] + light[7] * x) * x * y
        bend += (light[5] + light[8] * x + light[9] * y) * y * y
        samples[2, index] /= max(1.0 + bend, 0.2)
