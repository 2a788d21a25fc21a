"""
Correlation of noise, and signs of bent paper, in the residuals of a marker's fit.

Noise is measured by differences of residuals away from the edges, where a wrong shape of the edges
has no influence: half of the mean squared difference of pixels at a distance l is the variance of
the noise times 1 - c(l), with c(l) its correlation, and illumination that varies slowly drops out.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from longreach_dynamics.linear_algebra import cholesky, cholesky_solve
from longreach_markers.marker.pixel_parameters import RHO, SHAPE
from longreach_markers.marker.symmetric import SECTORS

# Largest difference of rows and columns of correlated pixels; at _FAR and beyond, noise is
# regarded as independent.
_LAGS, _FAR = 3, 4
# Shape of an array of correlations: differences of rows, from 0, and columns, from -_FAR.
CORRELATIONS = (_FAR + 1, 2 * _FAR + 1)
# Distance from an edge, in standard deviations of the blur, from which its shape has no influence.
_FLAT = 2.2
# Correlation of neighbours from which it counts, and fewest pairs of pixels.
_CORRELATED, _PAIRS = 0.25, 60
# Least mean square of differences at the distance _LAGS over that at _FAR.
_SATURATED = 0.85
# Largest factor of the variance.
_MOST = 20.0
# Parameters of the test for a bend: centre, shape and rho; the same and the two of second order;
# and the constant height. Distance from an edge, as above, from which pixels tell nothing.
_FLAT_TERMS, _BEND, _STEEP = 6, 8, 3.0
# Prior share of markers on bent paper.
_BENT_BEFORE = 0.1


@njit
def index_pixels(samples, window):  # type: ignore[no-untyped-def]
    """Return the index of the sample at each pixel of a window (v1 - v0, u1 - u0), -1 for none."""
    u0, u1, v0, v1 = window
    indices = np.full((v1 - v0, u1 - u0), -1, np.int64)
    for index in range(samples.shape[1]):
        indices[int(samples[4, index]) - v0, int(samples[3, index]) - u0] = index
    return indices


@njit
def measure_noise(indices, slopes, sector, active, residuals, correlation):  # type: ignore[no-untyped-def]
    """Return the noise [grey levels] away from edges; 0 if uncorrelated or pixels are few."""
    # indices is that of index_pixels, slopes of fill_slopes; fills correlation.
    correlation[:] = 0.0
    far, pairs = 0.0, 0
    totals, counts = np.zeros(correlation.shape), np.zeros(correlation.shape)
    rows, columns = indices.shape
    for row in range(rows):
        for column in range(columns):
            here = indices[row, column]
            if here < 0 or slopes[0, here] < _FLAT or not active[sector[here]]:
                continue
            for i in range(min(_FAR + 1, rows - row)):
                for j in range(max(-_FAR, -column), min(_FAR + 1, columns - column)):
                    # Each pair once.
                    if i == 0 and j <= 0:
                        continue
                    there = indices[row + i, column + j]
                    if there < 0 or slopes[0, there] < _FLAT or not active[sector[there]]:
                        continue
                    if slopes[1, here] == slopes[1, there]:
                        totals[i, j + _FAR] += (residuals[here] - residuals[there]) ** 2
                        counts[i, j + _FAR] += 1.0
    for i in range(_FAR + 1):
        for j in range(-_FAR, _FAR + 1):
            if max(i, abs(j)) == _FAR:
                far += totals[i, j + _FAR]
                pairs += counts[i, j + _FAR]
    if pairs < _PAIRS or far == 0.0:
        return 0.0
    variance = far / pairs
    # Differences that still grow are those of light.
    less, fewer = 0.0, 0.0
    for i in range(_FAR):
        for j in range(-_LAGS, _LAGS + 1):
            if max(i, abs(j)) == _LAGS:
                less += totals[i, j + _FAR]
                fewer += counts[i, j + _FAR]
    if less < _SATURATED * variance * fewer:
        return 0.0
    near = totals[0, _FAR + 1] + totals[1, _FAR]
    if near > (1.0 - _CORRELATED) * variance * (counts[0, _FAR + 1] + counts[1, _FAR]):
        return 0.0
    for i in range(_LAGS + 1):
        for j in range(-_LAGS, _LAGS + 1):
            if counts[i, j + _FAR] > 0.0:
                correlation[i, j + _FAR] = 1.0 - totals[i, j + _FAR] / (
                    counts[i, j + _FAR] * variance
                )
    return math.sqrt(0.5 * variance)


@njit
def correlation_factor(indices, slopes, sector, active, correlation):  # type: ignore[no-untyped-def]
    """Return the factor by which correlation increases the variance of the centre, at least 1."""
    # The estimate is a sum of residuals times the derivatives J by the centre, with the variance 1
    # + 2 sum_l c(l) sum_i J_i . J_(i+l) / sum_i J_i . J_i relative to independent residuals.
    rows, columns = indices.shape
    products = np.zeros(correlation.shape)
    whole = 0.0
    for row in range(rows):
        for column in range(columns):
            here = indices[row, column]
            if here < 0 or not active[sector[here]]:
                continue
            move = slopes[2, here] + slopes[3, here]
            ju, jv = move * slopes[4, here], move * slopes[5, here]
            whole += ju * ju + jv * jv
            for i in range(min(_LAGS + 1, rows - row)):
                for j in range(max(-_LAGS, -column), min(_LAGS + 1, columns - column)):
                    if i == 0 and j <= 0:
                        continue
                    there = indices[row + i, column + j]
                    if there >= 0 and active[sector[there]]:
                        move = slopes[2, there] + slopes[3, there]
                        products[i, j + _FAR] += move * (
                            ju * slopes[4, there] + jv * slopes[5, there]
                        )
    factor = 1.0 + 2.0 * np.sum(correlation * products) / max(whole, 1e-9)
    return min(max(factor, 1.0), _MOST)


@njit
def bend_significance(  # type: ignore[no-untyped-def]
    p, tilt_u, tilt_v, slopes, sector, active, residuals, variance, doubt
):  # fmt: skip
    """Return chi-square, of 2 degrees of freedom, of bent paper in the residuals of a fit."""
    # Residuals are explained by small changes of centre, shape and rho with and without a bend of
    # second order. doubt (2, 2) [px^2], filled, is what the centre's covariance lacks by it, by a
    # prior that makes chi-square x most likely (docs/vision.md): s = 1 - 2 / x of the estimate is
    # no noise, x is (2 / x) exp(x / 2 - 1) times as likely as with flat paper, which gives the
    # probability w of a bend, and with the shift d of the centre and its variance V, doubt is w s
    # (V + s d d^T); zero where x <= 2. tilt: direction in which heights move a point's image.
    rho = p[RHO]
    doubt[:] = 0.0
    normal = np.zeros((_BEND + 2, _BEND + 1))
    row = np.zeros(_BEND + 2)
    for index in range(sector.size):
        if not active[sector[index]] or slopes[0, index] > _STEEP:
            continue
        outer, inner = slopes[2, index], slopes[3, index]
        mu, mv, eu, ev = slopes[4:8, index]
        move, stretch = outer + inner, outer + rho * inner
        row[0], row[1] = move * mu, move * mv
        row[2], row[3], row[4] = (
            stretch * mu * eu,
            stretch * (mu * ev + mv * eu),
            stretch * mv * ev,
        )
        row[5] = inner * slopes[8, index]
        height = (outer + rho * rho * inner) * (tilt_u * mu + tilt_v * mv)
        row[6], row[7] = height * (eu * eu - ev * ev), 2.0 * height * eu * ev
        row[8] = height
        row[9] = residuals[index]
        for i in range(_BEND + 2):
            for j in range(min(i, _BEND) + 1):
                normal[i, j] += row[i] * row[j]
    for i in range(_BEND + 1):
        normal[i, i] = normal[i, i] * (1.0 + 1e-6) + 1e-6
    # The last two of the Cholesky factor's solution are what the bend explains beyond the others.
    factor = normal[:_BEND, :_BEND].copy()
    right = normal[_BEND + 1, :_BEND].copy()
    if not cholesky(factor):
        return 0.0
    gained = 0.0
    for i in range(_BEND):
        for k in range(i):
            right[i] -= factor[i, k] * right[k]
        right[i] *= factor[i, i]
        if i >= _FLAT_TERMS:
            gained += right[i] ** 2
    chi_square = gained / variance
    if chi_square <= 2.0:
        return chi_square
    second = right[7] * factor[7, 7]
    first = (right[6] - factor[7, 6] * second) * factor[6, 6]
    bent = normal[: _BEND + 1].copy()
    bent[_BEND, _BEND] += variance / max(first * first + second * second, 1e-12)
    if not cholesky(bent):
        return chi_square
    # A leading block of the factor is that of the block.
    flat = factor[:_FLAT_TERMS, :_FLAT_TERMS]
    found, without = normal[_BEND + 1].copy(), normal[_BEND + 1, :_FLAT_TERMS].copy()
    cholesky_solve(bent, found)
    cholesky_solve(flat, without)
    share = 1.0 - 2.0 / chi_square
    odds = _BENT_BEFORE / (1.0 - _BENT_BEFORE) * (1.0 - share)
    odds *= math.exp(min(0.5 * chi_square - 1.0, 100.0))
    weight = odds / (1.0 + odds) * share
    for j in range(2):
        column, less = np.zeros(_BEND + 1), np.zeros(_FLAT_TERMS)
        column[j] = less[j] = 1.0
        cholesky_solve(bent, column)
        cholesky_solve(flat, less)
        for i in range(2):
            shifts = (found[i] - without[i]) * (found[j] - without[j])
            doubt[i, j] = weight * (variance * (column[i] - less[i]) + share * shifts)
    return chi_square


@njit
def square_beside_light(slopes, sector, active, residuals):  # type: ignore[no-untyped-def]
    """Return the mean square of residuals beside level and slope of the light in each sector."""
    # Sums of 1, z, z^2, residual, residual times z, squared residual.
    sums = np.zeros((active.size, 6))
    for index in range(sector.size):
        part = sector[index]
        if not active[part]:
            continue
        # Level 0 is outside of the outer edge, 1 outside of the inner one.
        is_outside = slopes[1, index] == (0.0 if part < SECTORS else 1.0)
        z = slopes[0, index] if is_outside else -slopes[0, index]
        row = sums[part]
        row[0] += 1.0
        row[1] += z
        row[2] += z * z
        row[3] += residuals[index]
        row[4] += residuals[index] * z
        row[5] += residuals[index] ** 2
    left, free = 0.0, 0.0
    for part in range(active.size):
        count, by_z, by_square, level, slope, square = sums[part]
        if count > 2.0:
            spread = max(by_square - by_z * by_z / count, 1e-6)
            left += square - level * level / count
            left -= (slope - by_z * level / count) ** 2 / spread
            free += count - 2.0
    return left / max(free, 1.0)


@njit
def shorter_axis(p):  # type: ignore[no-untyped-def]
    """Return the direction (u, v) of the shorter axis of the ellipse with parameters p (20,)."""
    turn = 0.5 * math.atan2(2.0 * p[SHAPE + 1], p[SHAPE] - p[SHAPE + 2])
    return -math.sin(turn), math.cos(turn)
