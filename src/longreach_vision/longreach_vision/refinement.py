"""
Maximum-likelihood refinement of a circular marker in a grey image.

A marker's edges are circles in a plane. Their image, in pinhole pixels x (distortion undone), is

    x(t) = c + s A e(t) / (1 + s h . e(t)),    e(t) = (cos t, sin t)

with s = 1 for the outer edge and s = rho for the inner one: the homography of the plane with
c the projected centre of the circle, A its symmetric shape matrix, and h what perspective adds.
With the plane's normal n (in the frame of pinhole pixels, n_px = K^-T n) h follows from A and c,

    h = -A n_uv / (n_u c_u + n_v c_v + n_w),

since the vanishing line of the plane is n. Without the normal h is estimated, with what it can
be at most as its prior.

Blur makes a step of an edge with radius of curvature R, at the signed distance d from it, the
normal distribution function Phi((d + sigma^2 / (2 R)) / sigma), sigma^2 = m . S m for the edge's
normal m: S is the covariance of lens, pixel and motion blur together. Its larger eigenvalue
exceeds the smaller one by the variance of a box, the way of a motion during the exposure, whose
fourth cumulant makes a correction to Phi (Edgeworth). The grey level of a pixel
is the sum of both steps between three levels, each linear over the image for shading. All of
that - c, A, rho, S, nine grey coefficients, and h - are estimated from the pixels near both
edges by Gauss-Newton with Levenberg's damping; the inverse normal matrix times the variance of
the residuals is the covariance. Sectors of the rim whose pixels do not fit are left out and the
fit is repeated, so that something which covers a part of the marker does not move the rest.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from longreach_dynamics.kernels import kernel
from longreach_dynamics.linear_algebra import cholesky, cholesky_solve
from longreach_vision.cameras import distort_point, projection_jacobian, undistort_point
from longreach_vision.shapes import SECTORS, inverse, largest, sector_of, times

__all__ = ['PERSPECTIVE_PRIOR', 'Fit', 'fit_marker', 'image_of']

# Standard deviation of a component of h where the normal is not known: a marker of 0.3 m tilted
# by 45 degrees has 0.005 at 20 m.
PERSPECTIVE_PRIOR = 0.005

# Parameters, in this order: grey inside, rho, c, A, S, grey of the band, grey outside, h. A disc
# does without the first four; a known normal does without the last two; and a pixel near one
# edge depends on a contiguous range of the others.
_INSIDE, _RHO, _C, _A, _S, _BAND, _OUTSIDE, _H = 0, 3, 4, 6, 9, 12, 15, 18
_COUNT = 20
_TURNS = 12
# Phi and its derivative in steps, for Hermite's interpolation: exact to 1e-7, and several times
# faster than erfc and exp.
_STEPS = 16
_GRID = np.arange(-5 * _STEPS, 5 * _STEPS + 2) / _STEPS
# Farther from an edge than so many standard deviations it makes no difference any more.
_FAR = 4.9
_NORMAL_SLOPE = np.exp(-0.5 * _GRID**2) / math.sqrt(2.0 * math.pi) / _STEPS
_NORMAL_DISTRIBUTION = np.array([0.5 * math.erfc(-z / math.sqrt(2.0)) for z in _GRID])
# Standard deviation of how much gradients of shading differ, as a share of the contrast over the
# radius, and beyond what their levels explain.
_SHADING = 0.005
# Standard deviation of the shape from that which the plane's normal predicts, as a share.
_OUTLINE = 0.03
# Sectors beside a saturated one that are not used either.
_VEIL = 2
# Where a third of what is bright and not saturated is above this grey level, saturated pixels are
# no glare but the exposure: noise takes some of them above the limit.
_EXPOSED = 240.0
# Coefficients of light of third degree. It is looked for where residuals exceed the noise by this
# factor and these grey levels; it must explain so much of the excess.
_LIGHT, _CURVED, _EXPLAINED = 10, (1.1, 0.3), 0.5
# A fit that leaves a larger share of the contrast than this will find no marker.
_HOPELESS = 0.4
# Largest variance of the blur [px^2]: above, no marker is trusted.
_WIDEST = 20.0
# Error of an interpolation that is allowed [px], and where on a grid it is largest.
_GRID_ERROR, _BETWEEN = 1e-3, 1.0 / math.sqrt(3.0)
# Pixels that are added to the normal matrix together.
_BLOCK = 8


class Fit(NamedTuple):
    """
    A refined marker.

    Parameters
    ----------
    parameters : ndarray, shape (20,)
        Named by ``INSIDE``, ``RHO``, ``CENTER``, ``SHAPE``, ..
    covariance : ndarray, shape (20, 20)
        Of the parameters.
    residual : float
        Root mean square of grey levels.
    sectors : ndarray of bool, shape (2 SECTORS,)
        Parts of the rim that fit: of the outer edge, then of the inner one.
    burnt : float
        Share of the outer edge's sectors that glare saturates.
    pixels : int
        How many pixels were used.
    converged : bool
    """

    parameters: NDArray[np.float64]
    covariance: NDArray[np.float64]
    residual: float
    sectors: NDArray[np.bool_]
    burnt: float
    pixels: int
    converged: bool


def fit_marker(
    image: NDArray[np.uint8],
    packed: NDArray[np.float64],
    normal: NDArray[np.float64],
    outline: NDArray[np.float64],
    start: NDArray[np.float64],
    seen: NDArray[np.bool_],
    blur: float,
    noise: float,
) -> Fit:
    """
    Refine a marker in an image.

    Parameters
    ----------
    image : ndarray of uint8, shape (height, width)
    packed : ndarray, shape (16,)
        The camera, :attr:`Camera.packed`; focal length 0 where it is not known.
    normal : ndarray, shape (3,)
        Normal of the marker's plane in the camera's frame; zeros where it is not known.
    outline : ndarray, shape (3,)
        Shape matrix (11, 12, 22) of a circle in that plane, of any size; zeros where it is not
        known. The fit's may differ by some percent: where much of the rim is hidden, this holds
        it.
    start : ndarray, shape (6,)
        Centre [px], shape matrix (11, 12, 22) [px] and ratio of the inner edge (0: a disc) to
        begin with, as seen in the image.
    seen : ndarray of bool, shape (2 SECTORS,)
        Sectors to begin with, those of the outer edge, then those of the inner one.
    blur : float
        Standard deviation of the blur to begin with [px].
    noise : float
        Standard deviation of the noise [grey levels]: sectors are judged by it at least.
    """
    return Fit(*_fit_marker(image, packed, normal, outline, start, seen, blur, noise))


def image_of(
    packed: NDArray[np.float64], pinhole: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """
    Return the pixel of a pinhole pixel, and the derivative of the one by the other.

    Parameters
    ----------
    packed : ndarray, shape (16,)
        The camera; focal length 0 where it is not known: both are the same then.
    pinhole : ndarray, shape (2,)
        [px]

    Returns
    -------
    pixel : ndarray, shape (2,)
    jacobian : ndarray, shape (2, 2)
    """
    u, v, uu, uv, vu, vv = _image_of(packed, pinhole[0], pinhole[1])
    return np.array([u, v]), np.array([[uu, uv], [vu, vv]])


@kernel
def _image_of(packed, u, v):  # type: ignore[no-untyped-def]
    """Distort a pinhole pixel; see :func:`image_of`."""
    fx, fy = packed[0], packed[1]
    if fx == 0.0:
        return u, v, 1.0, 0.0, 0.0, 1.0
    x, y = (u - packed[2]) / fx, (v - packed[3]) / fy
    uu, uv, vu, vv = projection_jacobian(packed, x, y)
    u, v = distort_point(packed, x, y)
    return u, v, uu / fx, uv / fy, vu / fx, vv / fy


@njit
def _to_pinhole(packed, u, v):  # type: ignore[no-untyped-def]
    """Return pinhole pixels of a pixel."""
    if packed[0] == 0.0:
        return u, v
    x, y = undistort_point(packed, u, v)
    return packed[0] * x + packed[2], packed[1] * y + packed[3]


@kernel
def _fit_marker(  # type: ignore[no-untyped-def]
    image, packed, normal, outline, start, seen, blur, noise
):  # fmt: skip
    """Refine a marker; see :func:`fit_marker`."""
    disc = start[5] <= 0.0
    p = np.zeros(_COUNT)
    cu, cv = _to_pinhole(packed, start[0], start[1])
    # The image's frame turned and stretched into that of pinhole pixels: first order is enough.
    p[_C], p[_C + 1] = cu, cv
    p[_A], p[_A + 1], p[_A + 2] = start[2], start[3], start[4]
    if packed[0] != 0.0:
        _stretch(packed, start, p)
    p[_RHO] = start[5]
    p[_S], p[_S + 2] = blur * blur, blur * blur
    known = normal[0] != 0.0 or normal[1] != 0.0 or normal[2] != 0.0
    line = np.zeros(3)
    if known:
        line[0], line[1] = normal[0] / packed[0], normal[1] / packed[1]
        line[2] = normal[2] - line[0] * packed[2] - line[1] * packed[3]
        # The start is an ellipse's centre: from there to that of the circle.
        for _ in range(3):
            _perspective(p, line, known)
            h1, h2 = p[_H], p[_H + 1]
            flat = 1.0 / (1.0 - min(h1 * h1 + h2 * h2, 0.5))
            p[_C] = cu + flat * (p[_A] * h1 + p[_A + 1] * h2)
            p[_C + 1] = cv + flat * (p[_A + 1] * h1 + p[_A + 2] * h2)

    active = seen.copy()
    covariance = np.zeros((_COUNT, _COUNT))
    longest = largest(p[_A], p[_A + 1], p[_A + 2])
    reach = 1.0 + (3.5 * 1.6 + 2.0) / max(p[_A] + p[_A + 2] - longest, 2.0)
    half_u = reach * math.hypot(start[2], start[3]) + 1.0
    half_v = reach * math.hypot(start[3], start[4]) + 1.0
    u0, u1 = max(0, int(start[0] - half_u)), min(image.shape[1], int(start[0] + half_u) + 2)
    v0, v1 = max(0, int(start[1] - half_v)), min(image.shape[0], int(start[1] + half_v) + 2)
    most = max(0, u1 - u0) * max(0, v1 - v0)
    samples = np.empty((3, most))
    sector = np.empty(most, np.int64)
    residuals = np.empty(most)
    size = 0
    rms = 0.0
    converged = False
    burnt = np.zeros(2 * SECTORS, np.bool_)
    light = np.zeros(_LIGHT)
    totals = np.zeros(2 * SECTORS)
    counts = np.zeros(2 * SECTORS, np.int64)
    good = np.zeros(2 * SECTORS, np.bool_)
    for attempt in range(5):
        _perspective(p, line, known)
        band = _band(p)
        size = _select(image, packed, p, disc, band, u0, u1, v0, v1, samples, sector)
        _divide(samples[:, :size], light, cu, cv, longest)
        if attempt == 0:
            _find_burnt(samples[:, :size], sector[:size], burnt)
            active &= ~burnt
            _start_levels(p, disc, samples[:, :size], sector[:size], active)
        converged, rms = _estimate(
            p, line, known, outline, disc, samples[:, :size], sector[:size], active, residuals,
            covariance, noise,
        )  # fmt: skip
        if attempt == 0 and converged and rms > _CURVED[0] * noise + _CURVED[1]:
            converged, rms = _flatten(
                p, line, known, outline, disc, samples[:, :size], sector[:size], active,
                residuals, covariance, noise, rms, light, cu, cv, longest,
            )  # fmt: skip
        contrast = abs(p[_OUTSIDE] - p[_BAND])
        if not converged or not rms < _HOPELESS * contrast:
            converged = False
            break
        # Judge all sectors, those that were left out, too.
        totals[:] = 0.0
        counts[:] = 0
        for index in range(size):
            totals[sector[index]] += residuals[index] ** 2
            counts[sector[index]] += 1
        quality = np.full(2 * SECTORS, np.inf)
        for index in range(2 * SECTORS):
            if counts[index] > 0:
                quality[index] = math.sqrt(totals[index] / counts[index])
            elif index >= SECTORS:
                # A small inner edge has fewer pixels than sectors.
                quality[index] = 0.0
        trusted = np.sort(quality[active & (counts > 0)])
        usual = max(trusted[trusted.size // 2], noise, 0.3) if trusted.size > 0 else 1.0
        for index in range(2 * SECTORS):
            # What a sector may show beyond the usual: chance, for the few pixels it has.
            limit = usual * (1.0 + 3.0 / math.sqrt(2.0 * max(counts[index], 1))) + 0.3
            good[index] = quality[index] < limit and not burnt[index]
        changed = 0
        for index in range(2 * SECTORS):
            part, place = index // SECTORS * SECTORS, index % SECTORS
            use = good[index]
            # What lies across two sectors reaches into the next.
            for side in (-1, 1):
                next_one = part + (place + side) % SECTORS
                if not good[next_one] and not good[part + (place + 2 * side) % SECTORS]:
                    use = False
            if use != active[index]:
                changed += 1
            active[index] = use
        kept = 0
        for index in range(SECTORS):
            kept += active[index]
        if kept < SECTORS // 5:
            converged = False
            break
        wide = _band(p)
        if (changed == 0 or (attempt > 0 and changed <= 2)) and abs(wide - band) < 0.5:
            break
    return p, covariance, rms, active, np.mean(burnt[:SECTORS]), size, converged


@njit
def _find_burnt(samples, sector, burnt):  # type: ignore[no-untyped-def]
    """
    Mark sectors in which pixels are saturated, if that is glare.

    Where all of the bright side is saturated or nearly so, it is the exposure, and nothing is
    marked.
    """
    counts = np.zeros(burnt.size, np.int64)
    used = np.zeros(burnt.size, np.int64)
    for index in range(sector.size):
        used[sector[index]] += 1
        if samples[2, index] >= 254.0:
            counts[sector[index]] += 1
    there, marked = 0, 0
    for index in range(burnt.size):
        burnt[index] = counts[index] > 1
        # Those of the inner edge may have a pixel or two: the outer one tells.
        if index < SECTORS:
            there += used[index] > 0
            marked += burnt[index]
    exposed, bright = 0, 0
    for index in range(sector.size):
        if samples[2, index] < 254.0:
            exposed += samples[2, index] > _EXPOSED
            bright += samples[2, index] > 128.0
    if marked > 0.6 * there or 3 * exposed > bright:
        burnt[:] = False
        return
    # Light that saturates in one place is still too much in the next.
    for index in range(burnt.size):
        counts[index] = burnt[index]
    for index in range(burnt.size):
        part, place = index // SECTORS * SECTORS, index % SECTORS
        for step in range(-_VEIL, _VEIL + 1):
            if counts[part + (place + step) % SECTORS] > 0:
                burnt[index] = True


@njit
def _stretch(packed, start, p):  # type: ignore[no-untyped-def]
    """Map the shape matrix from the image to pinhole pixels."""
    step = 1.0
    ru, rv = _to_pinhole(packed, start[0] + step, start[1])
    lu, lv = _to_pinhole(packed, start[0] - step, start[1])
    bu, bv = _to_pinhole(packed, start[0], start[1] + step)
    au, av = _to_pinhole(packed, start[0], start[1] - step)
    j11, j21 = 0.5 * (ru - lu), 0.5 * (rv - lv)
    j12, j22 = 0.5 * (bu - au), 0.5 * (bv - av)
    # J A is no longer symmetric; (J A)(J A)^T has the symmetric root that describes the same set.
    m11 = j11 * start[2] + j12 * start[3]
    m12 = j11 * start[3] + j12 * start[4]
    m21 = j21 * start[2] + j22 * start[3]
    m22 = j21 * start[3] + j22 * start[4]
    q11, q12, q22 = m11 * m11 + m12 * m12, m11 * m21 + m12 * m22, m21 * m21 + m22 * m22
    root = math.sqrt(max(q11 * q22 - q12 * q12, 1e-12))
    trace = math.sqrt(q11 + q22 + 2.0 * root)
    p[_A], p[_A + 1], p[_A + 2] = (q11 + root) / trace, q12 / trace, (q22 + root) / trace


@njit
def _band(p):  # type: ignore[no-untyped-def]
    """Return how far from an edge pixels are used."""
    wide = largest(p[_S], p[_S + 1], p[_S + 2])
    return 3.0 * math.sqrt(max(wide, 0.25)) + 1.0


@njit
def _perspective(p, line, known):  # type: ignore[no-untyped-def]
    """Set h from the vanishing line of the plane."""
    if known:
        depth = line[0] * p[_C] + line[1] * p[_C + 1] + line[2]
        p[_H] = -(p[_A] * line[0] + p[_A + 1] * line[1]) / depth
        p[_H + 1] = -(p[_A + 1] * line[0] + p[_A + 2] * line[1]) / depth


@njit
def _select(  # type: ignore[no-untyped-def]
    image, packed, p, disc, band, u0, u1, v0, v1, samples, sector
):  # fmt: skip
    """List the pixels near the edges: pinhole position, grey level, sector; return how many."""
    # A pixel and its pinhole place differ smoothly: a grid of 3 x 3 carries a usual window, and
    # each part of one that is large for its distortion.
    parts = 1
    if packed[0] != 0.0:
        grid_u, grid_v = _grid(packed, u0, u1, v0, v1)
        worst = 0.0
        for i in range(4):
            s, t = _BETWEEN * (2 * (i % 2) - 1), _BETWEEN * (i // 2 * 2 - 1)
            u = 0.5 * (u0 + u1 - 1) + 0.5 * s * (u1 - u0)
            v = 0.5 * (v0 + v1 - 1) + 0.5 * t * (v1 - v0)
            x, y = _to_pinhole(packed, u, v)
            error = math.hypot(
                x - u - _interpolated(grid_u, s, t), y - v - _interpolated(grid_v, s, t)
            )
            # Not so for NaN, where there is no ray.
            if error > worst:
                worst = error
        # The error goes with the third power of the size.
        parts = int(min(max(math.ceil((worst / _GRID_ERROR) ** (1.0 / 3.0)), 1.0), 16.0))
    size = 0
    for i in range(parts):
        top, bottom = v0 + i * (v1 - v0) // parts, v0 + (i + 1) * (v1 - v0) // parts
        for j in range(parts):
            left, right = u0 + j * (u1 - u0) // parts, u0 + (j + 1) * (u1 - u0) // parts
            size = _select_part(
                image, packed, p, disc, band, left, right, top, bottom, samples, sector, size
            )
    return size


@njit
def _grid(packed, u0, u1, v0, v1):  # type: ignore[no-untyped-def]
    """Return how far pinhole places are from pixels at 3 x 3 places of a window."""
    grid_u, grid_v = np.empty((3, 3)), np.empty((3, 3))
    for i in range(3):
        for j in range(3):
            u = 0.5 * (u0 + u1 - 1) + 0.5 * (j - 1) * (u1 - u0)
            v = 0.5 * (v0 + v1 - 1) + 0.5 * (i - 1) * (v1 - v0)
            x, y = _to_pinhole(packed, u, v)
            grid_u[i, j], grid_v[i, j] = x - u, y - v
    return grid_u, grid_v


@njit
def _interpolated(grid, s, t):  # type: ignore[no-untyped-def]
    """Interpolate a grid of 3 x 3 at s, t in [-1, 1], columns and rows."""
    value = 0.0
    for i in range(3):
        across = (0.5 * t * (t - 1.0), 1.0 - t * t, 0.5 * t * (t + 1.0))[i]
        value += across * (
            0.5 * s * (s - 1.0) * grid[i, 0]
            + (1.0 - s * s) * grid[i, 1]
            + 0.5 * s * (s + 1.0) * grid[i, 2]
        )
    return value


@njit
def _select_part(  # type: ignore[no-untyped-def]
    image, packed, p, disc, band, u0, u1, v0, v1, samples, sector, size
):  # fmt: skip
    """Add the pixels of a part of the window; see :func:`_select`."""
    b11, b12, b22 = inverse(p[_A], p[_A + 1], p[_A + 2])
    grid_u, grid_v = _grid(packed, u0, u1, v0, v1)
    middle_u, middle_v = 0.5 * (u0 + u1 - 1), 0.5 * (v0 + v1 - 1)
    half_u, half_v = max(0.5 * (u1 - u0), 0.5), max(0.5 * (v1 - v0), 0.5)
    for row in range(v0, v1):
        t = (row - middle_v) / half_v
        r0, r1, r2 = 0.5 * t * (t - 1.0), 1.0 - t * t, 0.5 * t * (t + 1.0)
        eu0 = r0 * grid_u[0, 0] + r1 * grid_u[1, 0] + r2 * grid_u[2, 0]
        eu1 = r0 * grid_u[0, 1] + r1 * grid_u[1, 1] + r2 * grid_u[2, 1]
        eu2 = r0 * grid_u[0, 2] + r1 * grid_u[1, 2] + r2 * grid_u[2, 2]
        ev0 = r0 * grid_v[0, 0] + r1 * grid_v[1, 0] + r2 * grid_v[2, 0]
        ev1 = r0 * grid_v[0, 1] + r1 * grid_v[1, 1] + r2 * grid_v[2, 1]
        ev2 = r0 * grid_v[0, 2] + r1 * grid_v[1, 2] + r2 * grid_v[2, 2]
        for column in range(u0, u1):
            s = (column - middle_u) / half_u
            c0, c1, c2 = 0.5 * s * (s - 1.0), 1.0 - s * s, 0.5 * s * (s + 1.0)
            u = column + c0 * eu0 + c1 * eu1 + c2 * eu2
            v = row + c0 * ev0 + c1 * ev1 + c2 * ev2
            du, dv = u - p[_C], v - p[_C + 1]
            yu, yv = times(b11, b12, b22, du, dv)
            r = math.sqrt(yu * yu + yv * yv)
            if r < 1e-6:
                continue
            ku, kv = times(b11, b12, b22, yu, yv)
            slope = math.sqrt(ku * ku + kv * kv) / r
            away, part = abs(r - 1.0), 0
            if not disc and abs(r - p[_RHO]) < away:
                away, part = abs(r - p[_RHO]), SECTORS
            # Where the distortion model has no ray, nothing is near.
            if not away <= band * slope:
                continue
            samples[0, size], samples[1, size] = u, v
            samples[2, size] = image[row, column]
            sector[size] = part + sector_of(yu, yv)
            size += 1
    return size


@njit
def _estimate(  # type: ignore[no-untyped-def]
    p, line, known, outline, disc, samples, sector, active, residuals, covariance, noise
):  # fmt: skip
    """Estimate all parameters from the samples of the active sectors, by damped Gauss-Newton."""
    first, last = 4 if disc else 0, _H if known else _COUNT
    count = last - first
    normal = np.zeros((_COUNT + 1, _COUNT))
    tried = np.zeros((_COUNT + 1, _COUNT))
    factor = np.empty((count, count))
    step = np.empty(count)
    trial = p.copy()
    cost, used = _accumulate(
        p, known, outline, disc, samples, sector, active, normal, residuals, noise
    )
    if used < 2 * count:
        return False, 0.0
    damping = 1e-5
    converged = False
    for _ in range(_TURNS):
        moved = False
        better = cost
        for _ in range(6):
            factor[:] = normal[first:last, first:last]
            for index in range(count):
                factor[index, index] *= 1.0 + damping
                factor[index, index] += 1e-12
            step[:] = normal[_COUNT, first:last]
            if not cholesky(factor):
                damping = max(10.0 * damping, 1e-3)
                continue
            cholesky_solve(factor, step)
            trial[:] = p
            trial[first:last] += step
            _limit(trial, disc)
            _perspective(trial, line, known)
            better, used = _accumulate(
                trial, known, outline, disc, samples, sector, active, tried, residuals, noise
            )
            if better <= cost * (1.0 + 1e-9):
                moved = True
                break
            damping = max(10.0 * damping, 1e-3)
        if not moved:
            # No step is better: as good as it gets.
            converged = True
            break
        shift = math.hypot(trial[_C] - p[_C], trial[_C + 1] - p[_C + 1])
        gained = cost - better
        p[:] = trial
        cost = better
        normal, tried = tried, normal
        damping = max(0.1 * damping, 1e-7)
        # Steps shrink by an order of magnitude: what is left is far below the noise.
        if shift < 5e-3 and gained < 0.5 * cost / used:
            converged = True
            break
    # Covariance: the variance of the residuals times the inverse of the normal matrix.
    variance = max(cost / max(used - count, 1), 1.0 / 12.0)
    covariance[:] = 0.0
    factor[:] = normal[first:last, first:last]
    for index in range(count):
        factor[index, index] *= 1.0 + 1e-10
        factor[index, index] += 1e-12
    if not cholesky(factor):
        return False, 0.0
    for column in range(count):
        step[:] = 0.0
        step[column] = 1.0
        cholesky_solve(factor, step)
        for index in range(count):
            covariance[first + index, first + column] = variance * step[index]
    return converged, math.sqrt(cost / max(used, 1))


@njit
def _flatten(  # type: ignore[no-untyped-def]
    p, line, known, outline, disc, samples, sector, active, residuals, covariance, noise, rms,
    light, cu, cv, radius,
):  # fmt: skip
    """
    Estimate again without light of third degree, if that is what the residuals show.

    It falls on all three levels alike, which nothing else does: it may take the place of the
    images' grey levels without a part of the marker being explained away. All is left as it is
    where it explains too little. Returns as :func:`_estimate`, and fills ``light``.
    """
    before, first = p.copy(), rms
    spread = covariance.copy()
    values = samples[2].copy()
    for _ in range(2):
        _light_of(samples, sector, active, residuals, cu, cv, radius, light)
        samples[2] = values
        _divide(samples, light, cu, cv, radius)
        converged, rms = _estimate(
            p, line, known, outline, disc, samples, sector, active, residuals, covariance, noise
        )
        if not converged:
            break
    if converged and rms**2 - noise**2 < (1.0 - _EXPLAINED) * (first**2 - noise**2):
        return converged, rms
    light[:] = 0.0
    samples[2] = values
    p[:] = before
    covariance[:] = spread
    return _estimate(
        p, line, known, outline, disc, samples, sector, active, residuals, covariance, noise
    )


@njit
def _light_of(samples, sector, active, residuals, cu, cv, radius, light):  # type: ignore[no-untyped-def]
    """Add to the light what explains residuals, as a share of what the model shows."""
    normal = np.zeros((_LIGHT, _LIGHT))
    right = np.zeros(_LIGHT)
    terms = np.empty(_LIGHT)
    for index in range(samples.shape[1]):
        if not active[sector[index]]:
            continue
        x, y = (samples[0, index] - cu) / radius, (samples[1, index] - cv) / radius
        value = samples[2, index] - residuals[index]
        terms[0], terms[1], terms[2] = value, value * x, value * y
        terms[3], terms[4], terms[5] = value * x * x, value * x * y, value * y * y
        for i in range(3, 6):
            terms[3 + i] = terms[i] * x
        terms[9] = terms[5] * y
        for i in range(_LIGHT):
            for j in range(i + 1):
                normal[i, j] += terms[i] * terms[j]
            right[i] += terms[i] * residuals[index]
    if cholesky(normal):
        cholesky_solve(normal, right)
        light += right


@njit
def _divide(samples, light, cu, cv, radius):  # type: ignore[no-untyped-def]
    """Divide grey levels by light of third degree; what is linear stays with the levels."""
    if not light.any():
        return
    for index in range(samples.shape[1]):
        x, y = (samples[0, index] - cu) / radius, (samples[1, index] - cv) / radius
        bend = (light[3] + light[6] * x) * x * x + (light[4] + light[7] * x) * x * y
        bend += (light[5] + light[8] * x + light[9] * y) * y * y
        samples[2, index] /= max(1.0 + bend, 0.2)


@njit
def _limit(p, disc):  # type: ignore[no-untyped-def]
    """Keep a trial where the model makes sense."""
    smallest = 0.16
    p[_S] = min(max(p[_S], smallest), _WIDEST)
    p[_S + 2] = min(max(p[_S + 2], smallest), _WIDEST)
    bound = 0.95 * math.sqrt((p[_S] - 0.1) * (p[_S + 2] - 0.1))
    p[_S + 1] = min(max(p[_S + 1], -bound), bound)
    if not disc:
        p[_RHO] = min(max(p[_RHO], 0.1), 0.97)
    p[_A] = max(p[_A], 1.0)
    p[_A + 2] = max(p[_A + 2], 1.0)
    bound = 0.98 * math.sqrt(p[_A] * p[_A + 2])
    p[_A + 1] = min(max(p[_A + 1], -bound), bound)


@njit
def _start_levels(p, disc, samples, sector, active):  # type: ignore[no-untyped-def]
    """Set the grey levels from the pixels clear of the edges, without gradients."""
    total = np.zeros(3)
    weight = np.full(3, 1e-9)
    b11, b12, b22 = inverse(p[_A], p[_A + 1], p[_A + 2])
    for index in range(samples.shape[1]):
        if not active[sector[index]]:
            continue
        du, dv = samples[0, index] - p[_C], samples[1, index] - p[_C + 1]
        yu, yv = times(b11, b12, b22, du, dv)
        r = math.sqrt(yu * yu + yv * yv)
        if r > 1.0:
            region, clear = 0, r - 1.0
        elif disc or r > p[_RHO]:
            region, clear = 1, 1.0 - r
            if not disc:
                clear = min(clear, r - p[_RHO])
        else:
            region, clear = 2, p[_RHO] - r
        # Pixels clear of the edge count most.
        share = clear * clear + 1e-6
        total[region] += share * samples[2, index]
        weight[region] += share
    for region in range(3):
        level = _OUTSIDE if region == 0 else (_BAND if region == 1 else _INSIDE)
        p[level] = total[region] / weight[region]
        p[level + 1] = 0.0
        p[level + 2] = 0.0


@njit
def _step(z):  # type: ignore[no-untyped-def]
    """Return the normal distribution function at z, |z| <= _FAR, and its derivative."""
    place = (z + 5.0) * _STEPS
    index = int(place)
    t = place - index
    f0 = _NORMAL_DISTRIBUTION[index]
    fall = f0 - _NORMAL_DISTRIBUTION[index + 1]
    g0, g1 = _NORMAL_SLOPE[index], _NORMAL_SLOPE[index + 1]
    twist = g0 + g1 + 2.0 * fall
    bow = -3.0 * fall - 2.0 * g0 - g1
    value = f0 + t * (g0 + t * (bow + t * twist))
    return value, (g0 + t * (2.0 * bow + 3.0 * t * twist)) * _STEPS


@njit(fastmath={'contract', 'reassoc'})
def _add(normal, block):  # type: ignore[no-untyped-def]
    """Add the products of eight rows to the normal matrix: its lower triangle, and some more."""
    for i in range(_COUNT + 1):
        a, b, c, d = block[0, i], block[1, i], block[2, i], block[3, i]
        e, f, g, h = block[4, i], block[5, i], block[6, i], block[7, i]
        # Whole vectors of four numbers.
        if i < 8:
            for j in range(8):
                normal[i, j] += (
                    a * block[0, j] + b * block[1, j] + c * block[2, j] + d * block[3, j]
                    + e * block[4, j] + f * block[5, j] + g * block[6, j] + h * block[7, j]
                )  # fmt: skip
        else:
            for j in range(_COUNT):
                normal[i, j] += (
                    a * block[0, j] + b * block[1, j] + c * block[2, j] + d * block[3, j]
                    + e * block[4, j] + f * block[5, j] + g * block[6, j] + h * block[7, j]
                )  # fmt: skip


@njit(fastmath={'contract', 'reassoc', 'arcp', 'nsz'}, error_model='numpy')
def _normals(p, samples, work):  # type: ignore[no-untyped-def]
    """
    Fill, for each sample, its place and the normal of the ellipse through it.

    Rows: du, dv from the centre; r, its radius in the plane; e, its direction there; m, the
    normal in the image; 1 / |grad r|; 1 / sigma along m; half of sigma over the radius of
    curvature. A loop of its own without branches, so that it runs on vectors.
    """
    cu, cv = p[_C], p[_C + 1]
    b11, b12, b22 = inverse(p[_A], p[_A + 1], p[_A + 2])
    curved = 0.5 * (b11 * b22 - b12 * b12) ** 2
    h1, h2 = p[_H], p[_H + 1]
    s11, s12, s22 = p[_S], p[_S + 1], p[_S + 2]
    for index in range(samples.shape[1]):
        du, dv = samples[0, index] - cu, samples[1, index] - cv
        yu, yv = b11 * du + b12 * dv, b12 * du + b22 * dv
        square = yu * yu + yv * yv
        shrink = 1.0 / math.sqrt(square)
        # u = y / (1 - h . y): place in the plane, in radii of the marker.
        w = 1.0 / (1.0 - h1 * yu - h2 * yv)
        r = square * shrink * w
        eu, ev = yu * shrink, yv * shrink
        ku, kv = (eu + r * h1) * w, (ev + r * h2) * w
        mu, mv = b11 * ku + b12 * kv, b12 * ku + b22 * kv
        flat = 1.0 / math.sqrt(mu * mu + mv * mv)
        mu, mv = mu * flat, mv * flat
        variance = s11 * mu * mu + 2.0 * s12 * mu * mv + s22 * mv * mv
        sharp = 1.0 / math.sqrt(variance)
        work[0, index] = du
        work[1, index] = dv
        work[2, index] = r
        work[3, index] = eu
        work[4, index] = ev
        work[5, index] = mu
        work[6, index] = mv
        work[7, index] = flat
        work[8, index] = sharp
        # The curvature of the outer edge's ellipse is 1 / (|A|^2 |B e|^3).
        work[9, index] = curved * flat * flat * flat * variance * sharp


@njit(fastmath={'contract', 'reassoc', 'arcp', 'nsz'}, error_model='numpy')
def _accumulate(  # type: ignore[no-untyped-def]
    p, known, outline, disc, samples, sector, active, normal, residuals, noise
):  # fmt: skip
    """
    Fill the normal matrix (lower triangle; last row: the gradient) and all samples' residuals.

    Returns the sum of squares and the number of samples of the active sectors.
    """
    normal[:] = 0.0
    block = np.zeros((_BLOCK, _COUNT + 1))
    a11, a12, a22 = p[_A], p[_A + 1], p[_A + 2]
    h1, h2 = p[_H], p[_H + 1]
    rho = p[_RHO]
    curved_inside = 1.0 if disc else 1.0 / rho
    s11, s12, s22 = p[_S], p[_S + 1], p[_S + 2]
    sharpest = 0.5 * (s11 + s22) - math.hypot(0.5 * (s11 - s22), s12)
    cost = 0.0
    used = 0
    count = samples.shape[1]
    work = np.empty((10, count))
    _normals(p, samples, work)
    for index in range(count):
        du, dv, r = work[0, index], work[1, index], work[2, index]
        eu, ev, mu, mv = work[3, index], work[4, index], work[5, index], work[6, index]
        flat, sharp, bend = work[7, index], work[8, index], work[9, index]
        scale = flat * sharp
        outside = p[_OUTSIDE] + p[_OUTSIDE + 1] * du + p[_OUTSIDE + 2] * dv
        band = p[_BAND] + p[_BAND + 1] * du + p[_BAND + 2] * dv
        # Without branches: they would be mispredicted every third pixel.
        z_outer = min(max((r - 1.0) * scale + bend, -_FAR), _FAR)
        # What motion adds is a box, flatter than a normal distribution: Edgeworth's correction.
        box = 1.0 - sharpest * sharp * sharp
        box *= 0.05 * box
        phi_outer, density_outer = _step(z_outer)
        square = z_outer * z_outer
        phi_outer += box * z_outer * (square - 3.0) * density_outer
        density_outer *= 1.0 + box * (square * (6.0 - square) - 3.0)
        grey_outer = (outside - band) * density_outer
        value = band + (outside - band) * phi_outer
        phi_inner, grey_inner, z_inner = 1.0, 0.0, 0.0
        if not disc:
            inside = p[_INSIDE] + p[_INSIDE + 1] * du + p[_INSIDE + 2] * dv
            z_inner = min(max((r - rho) * scale + bend * curved_inside, -_FAR), _FAR)
            phi_inner, density_inner = _step(z_inner)
            square = z_inner * z_inner
            phi_inner += box * z_inner * (square - 3.0) * density_inner
            density_inner *= 1.0 + box * (square * (6.0 - square) - 3.0)
            grey_inner = (band - inside) * density_inner
            value += (inside - band) * (1.0 - phi_inner)
        error = samples[2, index] - value
        residuals[index] = error
        if not active[sector[index]]:
            continue
        row = block[used % _BLOCK]
        used += 1
        cost += error * error
        # An edge that moves by x along its normal changes z by -x / sigma; the point e of an
        # edge moves by s dA e.
        by_outer, by_inner = grey_outer * sharp, grey_inner * sharp
        move, stretch = by_outer + by_inner, by_outer + rho * by_inner
        by_variance = grey_outer * (bend - 0.5 * z_outer)
        by_variance += grey_inner * (bend * curved_inside - 0.5 * z_inner)
        by_variance *= sharp * sharp
        if not disc:
            share = 1.0 - phi_inner
            row[_INSIDE] = share
            row[_INSIDE + 1] = share * du
            row[_INSIDE + 2] = share * dv
            row[_RHO] = -by_inner * flat
        row[_C] = -move * mu
        row[_C + 1] = -move * mv
        row[_A] = -stretch * mu * eu
        row[_A + 1] = -stretch * (mu * ev + mv * eu)
        row[_A + 2] = -stretch * mv * ev
        row[_S] = by_variance * mu * mu
        row[_S + 1] = 2.0 * by_variance * mu * mv
        row[_S + 2] = by_variance * mv * mv
        share = phi_inner - phi_outer
        row[_BAND] = share
        row[_BAND + 1] = share * du
        row[_BAND + 2] = share * dv
        row[_OUTSIDE] = phi_outer
        row[_OUTSIDE + 1] = phi_outer * du
        row[_OUTSIDE + 2] = phi_outer * dv
        if not known:
            # x = c + s A e / (1 + s h . e): -s A e (s e_j) for each component of h.
            along = mu * (a11 * eu + a12 * ev) + mv * (a12 * eu + a22 * ev)
            bow = by_outer + rho * rho * by_inner
            row[_H] = bow * along * eu
            row[_H + 1] = bow * along * ev
        row[_COUNT] = error
        if used % _BLOCK == 0:
            _add(normal, block)
    rest = used % _BLOCK
    if rest > 0:
        block[rest:] = 0.0
        _add(normal, block)
    # Shading is alike on all three: its gradient goes with their level, about.
    size = math.sqrt(a11 * a22 - a12 * a12)
    for part in range(1 if disc else 2):
        one, other = (_BAND, _OUTSIDE) if part == 0 else (_INSIDE, _BAND)
        ratio = p[one] / max(p[other], 1.0)
        allowed = _SHADING * abs(p[_OUTSIDE] - p[_BAND]) / size
        weight = (max(noise, 0.3) / allowed) ** 2
        for k in range(1, 3):
            excess = p[one + k] - ratio * p[other + k]
            cost += weight * excess * excess
            normal[one + k, one + k] += weight
            normal[other + k, other + k] += weight * ratio * ratio
            low, high = min(one, other) + k, max(one, other) + k
            normal[high, low] -= weight * ratio
            normal[_COUNT, one + k] -= weight * excess
            normal[_COUNT, other + k] += weight * ratio * excess
    # Only what is not a multiple of the outline counts.
    length = outline[0] ** 2 + outline[1] ** 2 + outline[2] ** 2
    if length > 0.0:
        along = (a11 * outline[0] + a12 * outline[1] + a22 * outline[2]) / length
        weight = (max(noise, 0.3) / (_OUTLINE * size)) ** 2
        for i in range(3):
            excess = p[_A + i] - along * outline[i]
            cost += weight * excess * excess
            normal[_COUNT, _A + i] -= weight * excess
            normal[_A + i, _A + i] += weight
            for j in range(i + 1):
                normal[_A + i, _A + j] -= weight * outline[i] * outline[j] / length
    if not known:
        # The prior of h, in the units of the squared residuals.
        weight = max(noise, 0.3) ** 2 / (PERSPECTIVE_PRIOR * PERSPECTIVE_PRIOR)
        cost += weight * (h1 * h1 + h2 * h2)
        for i in range(_H, _COUNT):
            normal[i, i] += weight
            normal[_COUNT, i] -= weight * p[i]
    return cost, used
