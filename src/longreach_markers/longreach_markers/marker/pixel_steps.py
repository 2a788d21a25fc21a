"""
Pixels near the edges of a marker: where they are relative to them, and the blurred steps there.

Part of the kernels of :mod:`longreach_markers.marker.pixel_model`, which has the formulas.
"""

from __future__ import annotations

import math

from numba import njit

from longreach_markers.marker.pixel_parameters import (
    BEND_SIZE,
    BLUR,
    CENTER,
    PERSPECTIVE,
    RHO,
    SHAPE,
)
from longreach_markers.marker.products import BLOCK, product
from longreach_markers.marker.symmetric import inverse

# Distance from an edge, in standard deviations of the blur, beyond which it has no influence.
CUTOFF = 4.9
# exp(-x) = (exp(-x / 16))^16 for x = z^2 / 2 within that, by a Taylor series about the middle of
# the range, accurate to 1e-8; and Phi(z) = 1 - phi(z) sum_k c_k t^k, t = 1 / (1 + c_0 z), accurate
# to 1e-7 (Abramowitz and Stegun 1964, 26.2.17). Without tables or branches, so that loops are
# vectorised.
_MIDDLE = 0.375
_E0, _E1, _E2, _E3, _E4, _E5, _E6, _E7, _E8 = (
    math.exp(-_MIDDLE) * (-1.0) ** k / math.factorial(k) for k in range(9)
)
_NORMAL_TOP = 1.0 / math.sqrt(2.0 * math.pi)
_C0 = 0.2316419
_C1, _C2, _C3, _C4, _C5 = 0.319381530, -0.356563782, 1.781477937, -1.821255978, 1.330274429
# Rows of the kernels' table of pixels, in :func:`fill_geometry` and :func:`fill_steps`.
DU, DV, R, EU, EV, MU, MV, FLAT, SHARP, CURVE = range(10)
Z_OUTER, Z_INNER, PHI, DENSITY, HOLE, DENSITY_INNER, SEEN, BY_SQUARE = range(10, 18)
ROWS = 18


@njit(error_model='numpy', inline='always')
def normal_density(z):  # type: ignore[no-untyped-def]
    """Return the density of the normal distribution at z; 0 beyond CUTOFF."""
    square = z * z
    x = min(square, CUTOFF * CUTOFF) * (1.0 / 32.0) - _MIDDLE
    e = _E4 + x * (_E5 + x * (_E6 + x * (_E7 + x * _E8)))
    e = _E0 + x * (_E1 + x * (_E2 + x * (_E3 + x * e)))
    e *= e
    e *= e
    e *= e
    e *= e
    return _NORMAL_TOP * e if square < CUTOFF * CUTOFF else 0.0


@njit(error_model='numpy', inline='always')
def blurred_step(z, box):  # type: ignore[no-untyped-def]
    """Return a step blurred by lens and motion at z, 0 or 1 beyond CUTOFF, and its derivative."""
    # Motion blur is a box, with an Edgeworth correction: box is minus its fourth cumulant over
    # 24 sigma^4.
    density = normal_density(z)
    square = z * z
    t = 1.0 / (1.0 + _C0 * abs(z))
    tail = t * (_C1 + t * (_C2 + t * (_C3 + t * (_C4 + t * _C5)))) * density
    phi = 1.0 - tail if z > 0.0 else tail
    phi += box * z * (square - 3.0) * density
    density *= 1.0 + box * (square * (6.0 - square) - 3.0)
    return phi, density


@njit
def fill_block(samples, begin, filled):  # type: ignore[no-untyped-def]
    """Fill a block (3, BLOCK) with the samples (3, n) from ``begin``, and more of the last."""
    size = min(BLOCK, samples.shape[1] - begin)
    for i in range(3):
        for k in range(size):
            filled[i, k] = samples[i, begin + k]
        for k in range(size, BLOCK):
            filled[i, k] = samples[i, begin + size - 1]


@njit(error_model='numpy', inline='always')
def fill_geometry(p, samples, geometry):  # type: ignore[no-untyped-def]
    """Fill position and normal of the ellipse for each sample."""
    # First rows of geometry (ROWS, BLOCK): du, dv from the centre; r, the radius in the plane; e,
    # the direction there; m, the normal in the image; 1 / |grad r|; 1 / sigma along m; half of
    # sigma over the radius of curvature. Without branches, so that it is vectorised.
    cu, cv = p[CENTER], p[CENTER + 1]
    b11, b12, b22 = inverse(p[SHAPE], p[SHAPE + 1], p[SHAPE + 2])
    curved = 0.5 * (b11 * b22 - b12 * b12) ** 2
    h1, h2 = p[PERSPECTIVE], p[PERSPECTIVE + 1]
    s11, s12, s22 = p[BLUR], p[BLUR + 1], p[BLUR + 2]
    for k in range(BLOCK):
        du, dv = samples[0, k] - cu, samples[1, k] - cv
        yu, yv = b11 * du + b12 * dv, b12 * du + b22 * dv
        square = yu * yu + yv * yv
        shrink = 1.0 / math.sqrt(square)
        # u = y / (1 - h . y): position in the plane, in radii of the marker.
        w = 1.0 / (1.0 - h1 * yu - h2 * yv)
        r = square * shrink * w
        eu, ev = yu * shrink, yv * shrink
        ku, kv = (eu + r * h1) * w, (ev + r * h2) * w
        mu, mv = b11 * ku + b12 * kv, b12 * ku + b22 * kv
        flat = 1.0 / math.sqrt(mu * mu + mv * mv)
        mu, mv = mu * flat, mv * flat
        variance = s11 * mu * mu + 2.0 * s12 * mu * mv + s22 * mv * mv
        sharp = 1.0 / math.sqrt(variance)
        geometry[DU, k], geometry[DV, k], geometry[R, k] = du, dv, r
        geometry[EU, k], geometry[EV, k] = eu, ev
        geometry[MU, k], geometry[MV, k] = mu, mv
        geometry[FLAT, k], geometry[SHARP, k] = flat, sharp
        # The curvature of the outer edge's ellipse is 1 / (|A|^2 |B e|^3).
        geometry[CURVE, k] = curved * flat * flat * flat * variance * sharp


@njit(error_model='numpy', inline='always')
def fill_steps(p, disc, extension, geometry):  # type: ignore[no-untyped-def]
    """Fill blurred steps at both edges; return whether a pixel has parts inside, and outside."""
    # Rows of geometry after those of fill_geometry: distances z in sigma, outer and inner; share
    # outside of the outer edge and its derivative by z; share inside of the inner edge and its
    # negative derivative.
    rho = p[RHO]
    ring, curved_inside = (0.0, 1.0) if disc else (1.0, 1.0 / rho)
    s11, s12, s22 = p[BLUR], p[BLUR + 1], p[BLUR + 2]
    sharpest = 0.5 * (s11 + s22) - math.hypot(0.5 * (s11 - s22), s12)
    for k in range(BLOCK):
        scale = geometry[FLAT, k] * geometry[SHARP, k]
        geometry[Z_OUTER, k] = (geometry[R, k] - 1.0) * scale + geometry[CURVE, k]
        geometry[Z_INNER, k] = (geometry[R, k] - rho) * scale + geometry[CURVE, k] * curved_inside
    if extension.size == BEND_SIZE:
        for k in range(BLOCK):
            eu, ev = geometry[EU, k], geometry[EV, k]
            facing = extension[3] * geometry[MU, k] + extension[4] * geometry[MV, k]
            height = extension[1] * (eu * eu - ev * ev) + extension[2] * 2.0 * eu * ev
            height = facing * (extension[0] + height) * geometry[SHARP, k]
            geometry[Z_OUTER, k] -= height
            geometry[Z_INNER, k] -= rho * rho * height
    for k in range(BLOCK):
        box = 1.0 - sharpest * geometry[SHARP, k] * geometry[SHARP, k]
        box *= 0.05 * box
        z = min(max(geometry[Z_OUTER, k], -CUTOFF), CUTOFF)
        phi, density = blurred_step(z, box)
        geometry[Z_OUTER, k], geometry[PHI, k], geometry[DENSITY, k] = z, phi, density
        z = min(max(geometry[Z_INNER, k], -CUTOFF), CUTOFF)
        phi, density = blurred_step(z, box)
        geometry[Z_INNER, k] = z
        geometry[HOLE, k], geometry[DENSITY_INNER, k] = ring * (1.0 - phi), ring * density
    is_inside = product(geometry, HOLE, geometry, HOLE) != 0.0
    return is_inside, product(geometry, PHI, geometry, PHI) != 0.0
