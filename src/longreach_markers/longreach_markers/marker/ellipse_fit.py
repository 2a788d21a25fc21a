"""
Ellipses through edge points: least squares, and the points near an ellipse.

Arguments of several compiled functions are those of :mod:`longreach_markers.marker.ellipses`.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from longreach_dynamics.linear_algebra import cholesky, cholesky_solve
from longreach_markers.marker.symmetric import SECTORS, inverse, largest, sector_of, times

# Columns of a hypothesis in the kernels' tables.
CU, CV, A11, A12, A22, POLARITY, SUPPORT, SCORE, INNER, INNER_SUPPORT = range(10)
WIDTH = 10
# Cosine of the largest angle between gradient and normal (30 degrees).
ALONG = math.cos(math.radians(30.0))
# Least ratio of semi-axes of a marker: a circle tilted by 75 degrees.
_THINNEST = 0.25


@njit
def major_axis(row):  # type: ignore[no-untyped-def]
    """Return the longer semi-axis of a hypothesis (10,) [px]."""
    return largest(row[A11], row[A12], row[A22])


@njit
def minor_axis(row):  # type: ignore[no-untyped-def]
    """Return the shorter semi-axis of a hypothesis (10,) [px]."""
    return row[A11] + row[A22] - major_axis(row)


@njit
def gather_points(edges, chosen, row, radius, tolerance, distances, work):  # type: ignore[no-untyped-def]
    """Fit an ellipse to points within a decreasing distance; False if too few remain."""
    # chosen (n,) and row are filled; distances (n,) and work (6, 5) overwritten.
    for turn in range(4):
        size = 0
        near = tolerance if turn == 0 else (2.0 if turn == 1 else 1.3)
        _fill_distances(edges, row, 0.4, 1.8, distances)
        for index in range(distances.size):
            if distances[index] <= near:
                chosen[size] = index
                size += 1
        if size < 8 or not fit_ellipse(edges, chosen[:size], row, work):
            return False
        longest = major_axis(row)
        if not 0.3 * radius < longest < 3.0 * radius:
            return False
    row[SUPPORT] = rim_support(edges, row, 1.0, distances)
    return True


@njit(error_model='numpy')
def _fill_distances(edges, row, least, most, distances):  # type: ignore[no-untyped-def]
    """Fill the distance of each edge point from an ellipse, to first order [px]."""
    # Infinite where the gradient is not along the normal with the ellipse's polarity, or the
    # relative radius not between least and most. Without branches, so that it is vectorised.
    u, v, nu, nv = edges.u, edges.v, edges.nu, edges.nv
    cu, cv, polarity = row[CU], row[CV], row[POLARITY]
    b11, b12, b22 = inverse(row[A11], row[A12], row[A22])
    for index in range(u.size):
        du, dv = u[index] - cu, v[index] - cv
        yu, yv = b11 * du + b12 * dv, b12 * du + b22 * dv
        ku, kv = b11 * yu + b12 * yv, b12 * yu + b22 * yv
        r = math.sqrt(yu * yu + yv * yv)
        steep = math.sqrt(ku * ku + kv * kv)
        along = polarity * (ku * nu[index] + kv * nv[index])
        is_on = (along >= ALONG * steep) & (r > least) & (r < most)
        distances[index] = abs(r - 1.0) * r / steep if is_on else math.inf


@njit
def sectors_near(edges, row, nearest, farthest, distances):  # type: ignore[no-untyped-def]
    """Return the sectors of an ellipse with edge points within a range of distances [px]."""
    seen = np.zeros(SECTORS, np.bool_)
    b11, b12, b22 = inverse(row[A11], row[A12], row[A22])
    _fill_distances(edges, row, 0.5, 1.5, distances)
    for index in range(distances.size):
        if nearest <= distances[index] <= farthest:
            yu, yv = times(b11, b12, b22, edges.u[index] - row[CU], edges.v[index] - row[CV])
            seen[sector_of(yu, yv)] = True
    return seen


@njit
def rim_support(edges, row, near, distances):  # type: ignore[no-untyped-def]
    """Return the share of sectors of an ellipse with edge points within a distance [px]."""
    seen = sectors_near(edges, row, 0.0, near, distances)
    # On a short rim, the spacing of edge points is larger than a sector.
    filled = 0
    for sector in range(SECTORS):
        if seen[sector] or (seen[sector - 1] and seen[(sector + 1) % SECTORS]):
            filled += 1
    return filled / SECTORS


@njit
def fit_ellipse(edges, chosen, row, work):  # type: ignore[no-untyped-def]
    """Fit an ellipse to chosen points, update its row; False if they do not define one."""
    # Least squares of the conic, normalised to a trace of 1 of its quadratic part; weighted by the
    # gradient at the row's ellipse (Sampson), unless its A11 is 0. work (6, 5) is overwritten.
    u, v, nu, nv, size = edges.u, edges.v, edges.nu, edges.nv, chosen.size
    mean_u, mean_v = 0.0, 0.0
    for index in chosen:
        mean_u += u[index]
        mean_v += v[index]
    mean_u /= size
    mean_v /= size
    spread = 0.0
    for index in chosen:
        spread += (u[index] - mean_u) ** 2 + (v[index] - mean_v) ** 2
    scale = math.sqrt(spread / size)
    if scale < 1.0:
        return False
    b11, b12, b22 = 0.0, 0.0, 0.0
    again = row[A11] != 0.0
    if again:
        b11, b12, b22 = inverse(row[A11], row[A12], row[A22])
    # Numbers instead of arrays: this is the inner loop of the random samples.
    n00 = n10 = n11 = n20 = n21 = n22 = n30 = n31 = n32 = n33 = 0.0
    n40 = n41 = n42 = n43 = n44 = r0 = r1 = r2 = r3 = r4 = 0.0
    for index in chosen:
        x, y = (u[index] - mean_u) / scale, (v[index] - mean_v) / scale
        weight = 1.0
        if again:
            du, dv = u[index] - row[CU], v[index] - row[CV]
            yu, yv = times(b11, b12, b22, du, dv)
            ku, kv = times(b11, b12, b22, yu, yv)
            weight = 1.0 / max(ku * ku + kv * kv, 1e-12)
        square = y * y
        t0, t1 = x * x - square, 2.0 * x * y
        w0, w1, w2, w3 = weight * t0, weight * t1, weight * x, weight * y
        n00 += w0 * t0
        n10 += w1 * t0
        n11 += w1 * t1
        n20 += w2 * t0
        n21 += w2 * t1
        n22 += w2 * x
        n30 += w3 * t0
        n31 += w3 * t1
        n32 += w3 * x
        n33 += w3 * y
        n40 += w0
        n41 += w1
        n42 += w2
        n43 += w3
        n44 += weight
        r0 -= w0 * square
        r1 -= w1 * square
        r2 -= w2 * square
        r3 -= w3 * square
        r4 -= weight * square
    normal, right = work[:5], work[5]
    normal[0, 0], normal[1, 0], normal[1, 1] = n00, n10, n11
    normal[2, 0], normal[2, 1], normal[2, 2] = n20, n21, n22
    normal[3, 0], normal[3, 1], normal[3, 2], normal[3, 3] = n30, n31, n32, n33
    normal[4, 0], normal[4, 1], normal[4, 2], normal[4, 3] = n40, n41, n42, n43
    normal[4, 4] = n44
    right[0], right[1], right[2], right[3], right[4] = r0, r1, r2, r3, r4
    if not cholesky(normal):
        return False
    cholesky_solve(normal, right)
    # right[0] (x^2 - y^2) + 2 right[1] x y + y^2 + right[2] x + right[3] y + right[4] = 0
    q11, q12, q22 = right[0], right[1], 1.0 - right[0]
    determinant = q11 * q22 - q12 * q12
    if not determinant > 1e-6:
        return False
    x0 = (q12 * right[3] - q22 * right[2]) / (2.0 * determinant)
    y0 = (q12 * right[2] - q11 * right[3]) / (2.0 * determinant)
    level = q11 * x0 * x0 + 2.0 * q12 * x0 * y0 + q22 * y0 * y0 - right[4]
    if not level > 0.0:
        return False
    # Q = (conic / level); A = Q^(-1/2): the inverse square root of a symmetric 2 x 2 matrix.
    q11, q12, q22 = q11 / level, q12 / level, q22 / level
    root = math.sqrt(q11 * q22 - q12 * q12)
    trace = math.sqrt(q11 + q22 + 2.0 * root)
    a11, a12, a22 = inverse((q11 + root) / trace, q12 / trace, (q22 + root) / trace)
    row[CU], row[CV] = mean_u + scale * x0, mean_v + scale * y0
    row[A11], row[A12], row[A22] = scale * a11, scale * a12, scale * a22
    longest = major_axis(row)
    if minor_axis(row) < _THINNEST * longest:
        return False
    agreement = 0.0
    for index in chosen:
        du, dv = u[index] - row[CU], v[index] - row[CV]
        ku = q11 * du + q12 * dv
        kv = q12 * du + q22 * dv
        steep = math.sqrt(ku * ku + kv * kv)
        agreement += (ku * nu[index] + kv * nv[index]) / max(steep, 1e-12)
    row[POLARITY] = 1.0 if agreement > 0.0 else -1.0
    return abs(agreement) > 0.5 * size
