"""
Model of pixels near the edges of a circular marker, and the normal equations of its fit.

The edges of a marker are circles in a plane. Their image, in undistorted (pinhole) pixels x, is

    x(t) = c + s A e(t) / (1 + s h . e(t)),    e(t) = (cos t, sin t)

with s = 1 for the outer edge and s = rho for the inner edge: the homography of the plane with c
the projected centre of the circle, A its symmetric shape matrix, and h the perspective. With the
plane's normal n (in the frame of pinhole pixels, n_px = K^-T n), h follows from A and c,

    h = -A n_uv / (n_u c_u + n_v c_v + n_w),

since the vanishing line of the plane is n. Without the normal, h is estimated with a prior.

A blurred edge with radius of curvature R has, at the signed distance d, the profile
Phi((d + sigma^2 / (2 R)) / sigma), with the normal distribution function Phi and
sigma^2 = m . S m for the edge's normal m: S is the covariance of lens, pixel and motion blur
together. Its larger eigenvalue exceeds the smaller one by the variance of a box, the motion
during the exposure, whose fourth cumulant gives a correction of Phi (Edgeworth series). The grey
level of a pixel is the sum of both steps between three levels, each linear over the image to
represent shading. Uneven light such as glare can be represented by a level and a slope across the
edge in each sector of the rim, which are eliminated by the Schur complement.

The parameters p, shape (20,), and their first indices:

===============  ==============================================================
``INSIDE``       within the inner edge: grey level at c, and its gradient [1/px]
``RHO``          radius of the inner edge over that of the outer one
``CENTER``       c [px]
``SHAPE``        A (11, 12, 22) [px]
``BLUR``         S (11, 12, 22) [px^2]
``BAND``         the same between the edges; for a disc, within the outer edge
``OUTSIDE``      the same outside of the outer edge
``PERSPECTIVE``  h
===============  ==============================================================

A disc has no parameters before ``CENTER``; with a known normal, h is not estimated.

The straight edge of a shadow across the marker multiplies the levels on one side by a share of the
light. Its parameters, shape (8,), are: direction of the normal into the shadow [rad]; distance
from the origin along it [px]; variance of the penumbra, in addition to the blur [px^2]; the shares
of the light outside, between the edges, and inside, which differ little where a camera is
nonlinear; and the origin u, v [px], which is not estimated. Where a blurred shadow crosses a
blurred edge, the mean of the product of both steps is not the product of their means: for normal
distributions of correlation c, Phi2(z, y; c) = Phi(z) Phi(y) + phi(z) phi(y) (c + c^2 z y / 2 +
...).

Paper bent to a cylinder has the height q (1 + cos(2 phi - a)) over the plane along its rim, for
either sign of q, and rho^2 of it along the inner edge. Seen at an angle, heights move the edges
along the direction d of the tilt, the shorter axis of the ellipse. The parameters of a bend, shape
(6,), are: q0, q1, q2 of the height q0 + q1 cos 2 phi + q2 sin 2 phi [px in the image]; d, which is
not estimated; and the prior standard deviation of q0, abs(q). The part of second order moves the
centre of the ellipse and distorts its outline by as much; the constant one moves all of the rim
from the middle of the paper, which only a ring shows.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from longreach_vision.marker.symmetric import inverse, times

__all__ = [
    'BAND',
    'BEND',
    'BEND_SIZE',
    'BLUR',
    'CENTER',
    'INSIDE',
    'LEAST_NOISE',
    'OUTSIDE',
    'PARAMETERS',
    'PERSPECTIVE',
    'PERSPECTIVE_PRIOR',
    'RHO',
    'SHADOW',
    'SHADOW_SIZE',
    'SHAPE',
    'fill_normal_equations',
    'fill_slopes',
    'limit_parameters',
    'limit_shadow',
    'set_perspective',
    'start_levels',
]

# In this order, a pixel near one edge depends on a contiguous range of parameters, and parameters
# that are not estimated for a disc or a known normal are at the ends.
INSIDE, RHO, CENTER, SHAPE, BLUR, BAND, OUTSIDE, PERSPECTIVE = 0, 3, 4, 6, 9, 12, 15, 18
PARAMETERS = 20
# Estimated parameters of a shadow, and length of the array.
SHADOW, SHADOW_SIZE = 6, 8
# The same of a bend.
BEND, BEND_SIZE = 3, 6
# Prior standard deviation of q1 and q2 over the marker's size.
_BOWED = 0.1
# Prior standard deviations: differences of a shadow's light between two levels; variance of the
# penumbra [px^2].
_UNEQUAL, _PENUMBRA = 0.1, 3.0
# Standard deviation of the prior of h without normal: a marker of 0.3 m tilted by 45 degrees has
# 0.005 at 20 m.
PERSPECTIVE_PRIOR = 0.005
# Lower bound of the standard deviation of the noise, about that of rounding [grey levels].
LEAST_NOISE = 0.3
# Table of Phi and its derivative for Hermite interpolation: accurate to 1e-7, and several times
# faster than erfc and exp.
_STEPS = 16
_GRID = np.arange(-5 * _STEPS, 5 * _STEPS + 2) / _STEPS
# Distance from an edge, in standard deviations of the blur, beyond which it has no influence.
_FAR = 4.9
_NORMAL_TOP = 1.0 / math.sqrt(2.0 * math.pi)
_NORMAL_SLOPE = np.exp(-0.5 * _GRID**2) / math.sqrt(2.0 * math.pi) / _STEPS
_NORMAL_DISTRIBUTION = np.array([0.5 * math.erfc(-z / math.sqrt(2.0)) for z in _GRID])
# Prior standard deviation of differences between shading gradients, as a share of the contrast
# over the radius, after scaling with the levels.
_SHADING = 0.005
# Prior standard deviation of the shape from that predicted by the plane's normal, as a share.
_OUTLINE = 0.03
# Least and largest variance of the blur [px^2]; beyond the largest, no marker is TRACKED.
_SHARPEST, _WIDEST = 0.16, 20.0
# Grey level at which an image is clipped.
_FULL = 255.0
# Pixels added to the normal matrix at a time.
_BLOCK = 8


@njit
def set_perspective(p, line, known):  # type: ignore[no-untyped-def]
    """
    Set h from centre, shape, and vanishing line of the plane, if known.

    Parameters
    ----------
    p : ndarray, shape (20,)
    line : ndarray, shape (3,)
        The plane's normal in the frame of pinhole pixels, of any length.
    known : bool
        Whether the normal is known; otherwise h is left unchanged.
    """
    if known:
        depth = line[0] * p[CENTER] + line[1] * p[CENTER + 1] + line[2]
        p[PERSPECTIVE] = -(p[SHAPE] * line[0] + p[SHAPE + 1] * line[1]) / depth
        p[PERSPECTIVE + 1] = -(p[SHAPE + 1] * line[0] + p[SHAPE + 2] * line[1]) / depth


@njit
def limit_parameters(p, disc):  # type: ignore[no-untyped-def]
    """
    Limit parameters, shape (20,), to the domain of the model.

    A and S stay positive definite, and rho (not for a disc) within [0.1, 0.97].
    """
    p[BLUR] = min(max(p[BLUR], _SHARPEST), _WIDEST)
    p[BLUR + 2] = min(max(p[BLUR + 2], _SHARPEST), _WIDEST)
    bound = 0.95 * math.sqrt((p[BLUR] - 0.1) * (p[BLUR + 2] - 0.1))
    p[BLUR + 1] = min(max(p[BLUR + 1], -bound), bound)
    if not disc:
        p[RHO] = min(max(p[RHO], 0.1), 0.97)
    p[SHAPE] = max(p[SHAPE], 1.0)
    p[SHAPE + 2] = max(p[SHAPE + 2], 1.0)
    bound = 0.98 * math.sqrt(p[SHAPE] * p[SHAPE + 2])
    p[SHAPE + 1] = min(max(p[SHAPE + 1], -bound), bound)


@njit
def limit_shadow(shadow):  # type: ignore[no-untyped-def]
    """Limit the parameters of a shadow, shape (8,), to the domain of the model; others stay."""
    if shadow.size == SHADOW_SIZE:
        shadow[2] = min(max(shadow[2], 0.0), _WIDEST)
        for k in range(3, 6):
            shadow[k] = min(max(shadow[k], 0.02), 1.5)


@njit
def start_levels(p, disc, samples, sector, active):  # type: ignore[no-untyped-def]
    """
    Set the grey levels from pixels away from the edges, and their gradients to 0.

    Parameters
    ----------
    p : ndarray, shape (20,)
        Centre, shape and rho are used; the levels are filled.
    disc : bool
    samples : ndarray, shape (3, n)
        u, v in pinhole pixels [px] and grey level of each pixel.
    sector : ndarray of int64, shape (n,)
        Sector of each pixel.
    active : ndarray of bool, shape (2 SECTORS,)
        Sectors to be used.
    """
    total = np.zeros(3)
    weight = np.full(3, 1e-9)
    b11, b12, b22 = inverse(p[SHAPE], p[SHAPE + 1], p[SHAPE + 2])
    for index in range(samples.shape[1]):
        if not active[sector[index]]:
            continue
        du, dv = samples[0, index] - p[CENTER], samples[1, index] - p[CENTER + 1]
        yu, yv = times(b11, b12, b22, du, dv)
        r = math.sqrt(yu * yu + yv * yv)
        if r > 1.0:
            region, clear = 0, r - 1.0
        elif disc or r > p[RHO]:
            region, clear = 1, 1.0 - r
            if not disc:
                clear = min(clear, r - p[RHO])
        else:
            region, clear = 2, p[RHO] - r
        # Pixels away from the edge have the largest weight.
        share = clear * clear + 1e-6
        total[region] += share * samples[2, index]
        weight[region] += share
    for region in range(3):
        level = OUTSIDE if region == 0 else (BAND if region == 1 else INSIDE)
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


@njit(fastmath={'contract', 'reassoc', 'arcp', 'nsz'}, error_model='numpy')
def _blurred_step(z, box):  # type: ignore[no-untyped-def]
    """
    Return a step blurred by lens and motion at z, |z| <= _FAR, and its derivative.

    Motion blur is a box, with an Edgeworth correction. ``box`` is minus its fourth cumulant over
    24 sigma^4.
    """
    phi, density = _step(z)
    square = z * z
    phi += box * z * (square - 3.0) * density
    density *= 1.0 + box * (square * (6.0 - square) - 3.0)
    return phi, density


@njit(fastmath={'contract', 'reassoc'})
def _add_block(normal, block):  # type: ignore[no-untyped-def]
    """Add the products of eight rows (8, m) to the lower triangle of the normal matrix."""
    for i in range(PARAMETERS + 1):
        a, b, c, d = block[0, i], block[1, i], block[2, i], block[3, i]
        e, f, g, h = block[4, i], block[5, i], block[6, i], block[7, i]
        # Whole vectors of four values.
        if i < 8:
            for j in range(8):
                normal[i, j] += (
                    a * block[0, j] + b * block[1, j] + c * block[2, j] + d * block[3, j]
                    + e * block[4, j] + f * block[5, j] + g * block[6, j] + h * block[7, j]
                )  # fmt: skip
        else:
            for j in range(PARAMETERS):
                normal[i, j] += (
                    a * block[0, j] + b * block[1, j] + c * block[2, j] + d * block[3, j]
                    + e * block[4, j] + f * block[5, j] + g * block[6, j] + h * block[7, j]
                )  # fmt: skip


@njit(fastmath={'contract', 'reassoc', 'arcp', 'nsz'}, error_model='numpy')
def _fill_places(p, samples, places):  # type: ignore[no-untyped-def]
    """
    Fill position and normal of the ellipse for each sample.

    ``p`` (20,) and ``samples`` (3, n) are as in :func:`fill_normal_equations`. Rows of ``places``:
    du, dv from the centre; r, the radius in the plane; e, the direction there; m, the normal in
    the image; 1 / |grad r|; 1 / sigma along m; half of sigma over the radius of curvature. A
    separate loop without branches, so that it is vectorised.
    """
    cu, cv = p[CENTER], p[CENTER + 1]
    b11, b12, b22 = inverse(p[SHAPE], p[SHAPE + 1], p[SHAPE + 2])
    curved = 0.5 * (b11 * b22 - b12 * b12) ** 2
    h1, h2 = p[PERSPECTIVE], p[PERSPECTIVE + 1]
    s11, s12, s22 = p[BLUR], p[BLUR + 1], p[BLUR + 2]
    for index in range(samples.shape[1]):
        du, dv = samples[0, index] - cu, samples[1, index] - cv
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
        places[0, index] = du
        places[1, index] = dv
        places[2, index] = r
        places[3, index] = eu
        places[4, index] = ev
        places[5, index] = mu
        places[6, index] = mv
        places[7, index] = flat
        places[8, index] = sharp
        # The curvature of the outer edge's ellipse is 1 / (|A|^2 |B e|^3).
        places[9, index] = curved * flat * flat * flat * variance * sharp


@njit
def fill_slopes(p, disc, samples, slopes):  # type: ignore[no-untyped-def]
    """
    Fill the slopes of the model at each sample, without a shadow.

    Parameters
    ----------
    p : ndarray, shape (20,)
    disc : bool
    samples : ndarray, shape (3 or more, n)
        u, v in pinhole pixels [px], first.
    slopes : ndarray, shape (9, n)
        Filled: distance from the nearest edge over the blur; level (0 outside, 1 band, 2 inside);
        slope of the grey level across the outer edge and across the inner one [1/px]; normal u, v
        of the edge in the image; direction u, v in the plane; pixels for a relative radius of 1.
    """
    places = np.empty((10, samples.shape[1]))
    _fill_places(p, samples, places)
    rho = p[RHO]
    for index in range(samples.shape[1]):
        du, dv, r = places[0, index], places[1, index], places[2, index]
        flat, sharp, bend = places[7, index], places[8, index], places[9, index]
        outside = p[OUTSIDE] + p[OUTSIDE + 1] * du + p[OUTSIDE + 2] * dv
        band = p[BAND] + p[BAND + 1] * du + p[BAND + 2] * dv
        z = (r - 1.0) * flat * sharp + bend
        slopes[0, index], slopes[1, index] = abs(z), 0.0 if r > 1.0 else 1.0
        slopes[2, index] = (outside - band) * sharp * _NORMAL_TOP * math.exp(-0.5 * z * z)
        slopes[3, index] = 0.0
        if not disc:
            inside = p[INSIDE] + p[INSIDE + 1] * du + p[INSIDE + 2] * dv
            z = (r - rho) * flat * sharp + bend / rho
            slopes[0, index] = min(abs(z), slopes[0, index])
            slopes[1, index] += 1.0 if r < rho else 0.0
            slopes[3, index] = (band - inside) * sharp * _NORMAL_TOP * math.exp(-0.5 * z * z)
        slopes[4, index], slopes[5, index] = places[5, index], places[6, index]
        slopes[6, index], slopes[7, index] = places[3, index], places[4, index]
        slopes[8, index] = flat


@njit
def _eliminate_light(normal, sums, moments, z, sector, active, residuals):  # type: ignore[no-untyped-def]
    """
    Eliminate the light of each sector from normal matrix and residuals.

    Parameters
    ----------
    normal : ndarray, shape (21, 20)
        Normal matrix of the active sectors, without priors.
    sums : ndarray, shape (2 SECTORS, 2, 21)
        Sums of the active sectors' rows, and of rows times z.
    moments : ndarray, shape (2 SECTORS, 5)
        Sums over a sector's pixels of 1, z, z^2, residual, and residual times z.
    z : ndarray, shape (n,)
        Distance of each pixel from the nearest edge, over the blur.
    sector, active, residuals
        See :func:`fill_normal_equations`; residuals of all sectors are updated.

    Returns
    -------
    cost : float
        Sum of squares of the active sectors' residuals.
    eliminated : int
        Number of levels and slopes in active sectors.
    """
    light = np.zeros((active.size, 2))
    eliminated = 0
    for part in range(active.size):
        count = moments[part, 0]
        if count == 0.0:
            continue
        middle = moments[part, 1] / count
        square = max(moments[part, 2] - middle * moments[part, 1], 1e-6)
        light[part, 1] = (moments[part, 4] - middle * moments[part, 3]) / square
        light[part, 0] = moments[part, 3] / count - middle * light[part, 1]
        if not active[part]:
            continue
        eliminated += 2
        for i in range(PARAMETERS + 1):
            level = sums[part, 0, i]
            slope = (sums[part, 1, i] - middle * level) / square
            level /= count
            for j in range(min(i + 1, PARAMETERS)):
                other = sums[part, 0, j]
                normal[i, j] -= level * other + slope * (sums[part, 1, j] - middle * other)
    cost = 0.0
    for index in range(sector.size):
        part = sector[index]
        residuals[index] -= light[part, 0] + light[part, 1] * z[index]
        if active[part]:
            cost += residuals[index] ** 2
    return cost, eliminated


@njit
def _add_shadow_priors(shadow, joint, noise):  # type: ignore[no-untyped-def]
    """Add the priors of a shadow (8,) to ``joint`` (6, 27), and return their cost."""
    own = joint[:, PARAMETERS + 1 :]
    cost = 0.0
    weight = (max(noise, LEAST_NOISE) / _UNEQUAL) ** 2
    for k in (4, 5):
        # Differences from the light between the edges.
        other = 3 if k == 4 else 5
        excess = shadow[other] - shadow[4]
        cost += weight * excess * excess
        own[other, other] += weight
        own[4, 4] += weight
        own[other, 4] -= weight
        own[4, other] -= weight
        joint[other, PARAMETERS] -= weight * excess
        joint[4, PARAMETERS] += weight * excess
    weight = (max(noise, LEAST_NOISE) / _PENUMBRA) ** 2
    cost += weight * shadow[2] ** 2
    own[2, 2] += weight
    joint[2, PARAMETERS] -= weight * shadow[2]
    return cost


@njit(fastmath={'contract', 'reassoc', 'arcp', 'nsz'}, error_model='numpy')
def fill_normal_equations(  # type: ignore[no-untyped-def]
    p, extension, known, outline, disc, samples, sector, active, normal, joint, residuals, noise,
    local,
):  # fmt: skip
    """
    Fill the normal matrix with the gradient, and the residuals of all samples.

    Parameters
    ----------
    p : ndarray, shape (20,)
    extension : ndarray, shape (8,), (6,) or (0,)
        Parameters of a shadow, or of a bend; empty for none.
    known : bool
        The plane's normal is known: p contains its h.
    outline : ndarray, shape (3,)
        Expected shape matrix (11, 12, 22), of any scale; zeros if unknown.
    disc : bool
        The marker has no inner edge.
    samples : ndarray, shape (3, n)
        u, v in pinhole pixels [px] and grey level of each pixel.
    sector : ndarray of int64, shape (n,)
        Sector of each pixel.
    active : ndarray of bool, shape (2 SECTORS,)
        Sectors to be used.
    normal : ndarray, shape (21, 20)
        Lower triangle filled: sums of products of grey level derivatives; in the last row,
        products
            of derivatives and residuals. Includes the priors, in units of squared grey levels.
    joint : ndarray, shape (6, 27)
        With a shadow or a bend, filled likewise for its parameters: products with the derivatives
        by p, with the residuals, and among themselves.
    residuals : ndarray, shape (n,)
        Filled for all sectors: measured minus modelled [grey levels].
    noise : float
        Standard deviation of the noise, which weights the priors [grey levels].
    local : bool
        Each sector has its own light (level and slope across the edge), which is eliminated; not
        with a shadow or a bend.

    Returns
    -------
    cost : float
        Sum of squares of the active sectors' residuals, plus the priors.
    used : int
        Number of samples in active sectors, minus eliminated parameters.
    """
    normal[:] = 0.0
    block = np.zeros((_BLOCK, PARAMETERS + 1))
    a11, a12, a22 = p[SHAPE], p[SHAPE + 1], p[SHAPE + 2]
    h1, h2 = p[PERSPECTIVE], p[PERSPECTIVE + 1]
    rho = p[RHO]
    curved_inside = 1.0 if disc else 1.0 / rho
    s11, s12, s22 = p[BLUR], p[BLUR + 1], p[BLUR + 2]
    sharpest = 0.5 * (s11 + s22) - math.hypot(0.5 * (s11 - s22), s12)
    cost = 0.0
    used = 0
    count = samples.shape[1]
    nearest = np.zeros(count if local else 0)
    moments = np.zeros((active.size if local else 0, 5))
    sums = np.zeros((active.size if local else 0, 2, PARAMETERS + 1))
    places = np.empty((10, count))
    _fill_places(p, samples, places)
    shaded, bent = extension.size == SHADOW_SIZE, extension.size == BEND_SIZE
    # Shorter names.
    shadow, q = extension, extension
    facing = double_u = double_v = high = 0.0
    extra = np.zeros(SHADOW)
    lit_outside = lit_band = lit_inside = 0.0
    in_shadow = shadow_grey = shadow_z = 0.0
    shade_u = shade_v = shade_sharp = shade_du = shade_dv = 0.0
    dim_outside = dim_band = dim_inside = 0.0
    light_outside = light_band = light_inside = 1.0
    if shaded or bent:
        joint[:] = 0.0
    if shaded:
        shade_u, shade_v = math.cos(shadow[0]), math.sin(shadow[0])
        shade_sharp = 1.0 / math.sqrt(
            s11 * shade_u**2 + 2.0 * s12 * shade_u * shade_v + s22 * shade_v**2 + shadow[2]
        )
    for index in range(count):
        du, dv, r = places[0, index], places[1, index], places[2, index]
        eu, ev, mu, mv = places[3, index], places[4, index], places[5, index], places[6, index]
        flat, sharp, bend = places[7, index], places[8, index], places[9, index]
        scale = flat * sharp
        outside = p[OUTSIDE] + p[OUTSIDE + 1] * du + p[OUTSIDE + 2] * dv
        band = p[BAND] + p[BAND + 1] * du + p[BAND + 2] * dv
        if shaded:
            shade_du, shade_dv = samples[0, index] - shadow[6], samples[1, index] - shadow[7]
            away = shade_u * shade_du + shade_v * shade_dv - shadow[1]
            shadow_z = min(max(away * shade_sharp, -_FAR), _FAR)
            in_shadow, shadow_grey = _step(shadow_z)
            lit_outside, lit_band = outside, band
            outside *= 1.0 + (shadow[3] - 1.0) * in_shadow
            band *= 1.0 + (shadow[4] - 1.0) * in_shadow
        if bent:
            facing = q[3] * mu + q[4] * mv
            double_u, double_v = eu * eu - ev * ev, 2.0 * eu * ev
            high = facing * (q[0] + q[1] * double_u + q[2] * double_v) * sharp
        # Without branches: they would be mispredicted for every third pixel.
        z_outer = min(max((r - 1.0) * scale + bend - high, -_FAR), _FAR)
        box = 1.0 - sharpest * sharp * sharp
        box *= 0.05 * box
        phi_outer, density_outer = _blurred_step(z_outer, box)
        grey_outer = (outside - band) * density_outer
        value = band + (outside - band) * phi_outer
        phi_inner, grey_inner, z_inner, density_inner = 1.0, 0.0, 0.0, 0.0
        if not disc:
            inside = p[INSIDE] + p[INSIDE + 1] * du + p[INSIDE + 2] * dv
            if shaded:
                lit_inside = inside
                inside *= 1.0 + (shadow[5] - 1.0) * in_shadow
            z_inner = (r - rho) * scale + bend * curved_inside - rho * rho * high
            z_inner = min(max(z_inner, -_FAR), _FAR)
            phi_inner, density_inner = _blurred_step(z_inner, box)
            grey_inner = (band - inside) * density_inner
            value += (inside - band) * (1.0 - phi_inner)
        if shaded:
            dim_outside = lit_outside * (shadow[3] - 1.0)
            dim_band = lit_band * (shadow[4] - 1.0)
            dim_inside = lit_inside * (shadow[5] - 1.0)
            # Correlation of both blurs.
            common = (s11 * mu + s12 * mv) * shade_u + (s12 * mu + s22 * mv) * shade_v
            common *= sharp * shade_sharp
            both = common * density_outer * (1.0 + 0.5 * common * z_outer * shadow_z)
            value += (dim_outside - dim_band) * both * shadow_grey
            if not disc:
                both = common * density_inner * (1.0 + 0.5 * common * z_inner * shadow_z)
                value += (dim_band - dim_inside) * both * shadow_grey
        # A clipped value only says that the level is at least that.
        seen = 1.0 if value < _FULL else 0.0
        grey_outer *= seen
        grey_inner *= seen
        error = samples[2, index] - min(value, _FULL)
        residuals[index] = error
        z = z_outer
        if local:
            if not disc and abs(z_inner) < abs(z_outer):
                z = z_inner
            nearest[index] = z
            part = sector[index]
            moments[part, 0] += 1.0
            moments[part, 1] += z
            moments[part, 2] += z * z
            moments[part, 3] += error
            moments[part, 4] += z * error
        if not active[sector[index]]:
            continue
        row = block[used % _BLOCK]
        used += 1
        cost += error * error
        # Moving an edge by x along its normal changes z by -x / sigma; the point e of an edge
        # moves by s dA e.
        by_outer, by_inner = grey_outer * sharp, grey_inner * sharp
        move, stretch = by_outer + by_inner, by_outer + rho * by_inner
        by_variance = grey_outer * (bend - 0.5 * z_outer)
        by_variance += grey_inner * (bend * curved_inside - 0.5 * z_inner)
        by_variance *= sharp * sharp
        if shaded:
            # Shares of the levels in the pixel, and its change with the distance from the shadow.
            of_outside, of_band = seen * phi_outer, seen * (phi_inner - phi_outer)
            of_inside = seen * (1.0 - phi_inner)
            slope = of_outside * dim_outside + of_band * dim_band + of_inside * dim_inside
            slope *= shadow_grey * shade_sharp
            extra[0] = slope * (shade_u * shade_dv - shade_v * shade_du)
            extra[1] = -slope
            extra[2] = -0.5 * slope * shadow_z * shade_sharp
            extra[3] = of_outside * lit_outside * in_shadow
            extra[4] = of_band * lit_band * in_shadow
            extra[5] = of_inside * lit_inside * in_shadow
            light_outside = 1.0 + (shadow[3] - 1.0) * in_shadow
            light_band = 1.0 + (shadow[4] - 1.0) * in_shadow
            light_inside = 1.0 + (shadow[5] - 1.0) * in_shadow
        if bent:
            extra[0] = -facing * (by_outer + rho * rho * by_inner)
            extra[1], extra[2] = extra[0] * double_u, extra[0] * double_v
        if not disc:
            share = seen * (1.0 - phi_inner) * light_inside
            row[INSIDE] = share
            row[INSIDE + 1] = share * du
            row[INSIDE + 2] = share * dv
            row[RHO] = -by_inner * flat
        row[CENTER] = -move * mu
        row[CENTER + 1] = -move * mv
        row[SHAPE] = -stretch * mu * eu
        row[SHAPE + 1] = -stretch * (mu * ev + mv * eu)
        row[SHAPE + 2] = -stretch * mv * ev
        row[BLUR] = by_variance * mu * mu
        row[BLUR + 1] = 2.0 * by_variance * mu * mv
        row[BLUR + 2] = by_variance * mv * mv
        if shaded:
            # The blur is also that of the shadow.
            row[BLUR] += extra[2] * shade_u * shade_u
            row[BLUR + 1] += 2.0 * extra[2] * shade_u * shade_v
            row[BLUR + 2] += extra[2] * shade_v * shade_v
        share = seen * (phi_inner - phi_outer) * light_band
        row[BAND] = share
        row[BAND + 1] = share * du
        row[BAND + 2] = share * dv
        share = seen * phi_outer * light_outside
        row[OUTSIDE] = share
        row[OUTSIDE + 1] = share * du
        row[OUTSIDE + 2] = share * dv
        if not known:
            # x = c + s A e / (1 + s h . e): -s A e (s e_j) for each component of h.
            along = mu * (a11 * eu + a12 * ev) + mv * (a12 * eu + a22 * ev)
            bow = by_outer + rho * rho * by_inner
            row[PERSPECTIVE] = bow * along * eu
            row[PERSPECTIVE + 1] = bow * along * ev
        row[PARAMETERS] = error
        if shaded or bent:
            for k in range(SHADOW if shaded else BEND):
                for i in range(PARAMETERS + 1):
                    joint[k, i] += extra[k] * row[i]
                for i in range(SHADOW if shaded else BEND):
                    joint[k, PARAMETERS + 1 + i] += extra[k] * extra[i]
        if local:
            for i in range(PARAMETERS + 1):
                sums[sector[index], 0, i] += row[i]
                sums[sector[index], 1, i] += z * row[i]
        if used % _BLOCK == 0:
            _add_block(normal, block)
    rest = used % _BLOCK
    if rest > 0:
        block[rest:] = 0.0
        _add_block(normal, block)
    if local:
        cost, eliminated = _eliminate_light(
            normal, sums, moments, nearest, sector, active, residuals
        )
        used -= eliminated
    # Prior: the gradients of the three levels are proportional to the levels.
    size = math.sqrt(a11 * a22 - a12 * a12)
    if shaded:
        cost += _add_shadow_priors(shadow, joint, noise)
    if bent:
        for k in range(BEND):
            weight = (max(noise, LEAST_NOISE) / (q[5] if k == 0 else _BOWED * size)) ** 2
            cost += weight * q[k] * q[k]
            joint[k, PARAMETERS + 1 + k] += weight
            joint[k, PARAMETERS] -= weight * q[k]
    for part in range(1 if disc else 2):
        one, other = (BAND, OUTSIDE) if part == 0 else (INSIDE, BAND)
        ratio = p[one] / max(p[other], 1.0)
        allowed = _SHADING * abs(p[OUTSIDE] - p[BAND]) / size
        weight = (max(noise, LEAST_NOISE) / allowed) ** 2
        for k in range(1, 3):
            excess = p[one + k] - ratio * p[other + k]
            cost += weight * excess * excess
            normal[one + k, one + k] += weight
            normal[other + k, other + k] += weight * ratio * ratio
            low, high = min(one, other) + k, max(one, other) + k
            normal[high, low] -= weight * ratio
            normal[PARAMETERS, one + k] -= weight * excess
            normal[PARAMETERS, other + k] += weight * ratio * excess
    # Only the component that is not a multiple of the outline counts.
    length = outline[0] ** 2 + outline[1] ** 2 + outline[2] ** 2
    if length > 0.0:
        along = (a11 * outline[0] + a12 * outline[1] + a22 * outline[2]) / length
        weight = (max(noise, LEAST_NOISE) / (_OUTLINE * size)) ** 2
        for i in range(3):
            excess = p[SHAPE + i] - along * outline[i]
            cost += weight * excess * excess
            normal[PARAMETERS, SHAPE + i] -= weight * excess
            normal[SHAPE + i, SHAPE + i] += weight
            for j in range(i + 1):
                normal[SHAPE + i, SHAPE + j] -= weight * outline[i] * outline[j] / length
    if not known:
        # Prior of h, in units of squared residuals.
        weight = max(noise, LEAST_NOISE) ** 2 / (PERSPECTIVE_PRIOR * PERSPECTIVE_PRIOR)
        cost += weight * (h1 * h1 + h2 * h2)
        for i in range(PERSPECTIVE, PARAMETERS):
            normal[i, i] += weight
            normal[PARAMETERS, i] -= weight * p[i]
    return cost, used
