"""
Model of pixels near the edges of a circular marker, and the normal equations of its fit.

The image x(t) of both edges, in undistorted (pinhole) pixels, with centre c, shape matrix A and
perspective h, is in docs/vision.md, "Maximum likelihood". A blurred edge with radius of curvature
R has, at the signed distance d, the profile Phi((d + sigma^2 / (2 R)) / sigma), with the normal
distribution function Phi and sigma^2 = m . S m for the edge's normal m: S is the covariance of
lens, pixel and motion blur together. Its larger eigenvalue exceeds the smaller one by the variance
of a box, the motion during the exposure, whose fourth cumulant gives a correction of Phi
(Edgeworth series). The grey level of a pixel is the sum of both steps between three levels, each
linear over the image. The light of sectors, a level and a slope across the edge in each, is
eliminated by the Schur complement.

:mod:`longreach_markers.marker.pixel_parameters` has the parameters, of a shadow and a bend, too.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from longreach_dynamics.linear_algebra import assign
from longreach_markers.marker.pixel_parameters import (
    BAND,
    BEND,
    BEND_SIZE,
    BLUR,
    CENTER,
    INSIDE,
    LEAST_NOISE,
    OUTSIDE,
    PARAMETERS,
    PERSPECTIVE,
    PERSPECTIVE_PRIOR,
    RHO,
    SHADOW,
    SHADOW_SIZE,
    SHAPE,
)
from longreach_markers.marker.pixel_steps import (
    BY_SQUARE,
    CURVE,
    CUTOFF,
    DENSITY,
    DENSITY_INNER,
    DU,
    DV,
    EU,
    EV,
    FLAT,
    HOLE,
    MU,
    MV,
    PHI,
    ROWS,
    SEEN,
    SHARP,
    Z_INNER,
    Z_OUTER,
    R,
    blurred_step,
    fill_block,
    fill_geometry,
    fill_steps,
    normal_density,
)
from longreach_markers.marker.products import BLOCK, add_products, add_row, product

# Prior standard deviations: q1 and q2 over the marker's size; differences of a shadow's light
# between two levels; variance of the penumbra [px^2].
_BOWED, _UNEQUAL, _PENUMBRA = 0.1, 0.1, 3.0
# Prior standard deviation of differences between shading gradients, as a share of the contrast
# over the radius, after scaling with the levels.
_SHADING = 0.005
# Prior standard deviation of the shape from that predicted by the plane's normal, as a share.
_OUTLINE = 0.03
# Grey level at which an image is clipped.
_FULL = 255.0


@njit
def _add_products(rows, extra, normal, joint, is_inside, is_outside, known):  # type: ignore[no-untyped-def]
    """Add the products of derivatives to ``normal`` (21, 20) and ``joint`` (6, 27)."""
    # rows (21, BLOCK): by p, and residuals; extra: by a shadow or bend. is_inside, is_outside,
    # known: which derivatives are not 0 (the perspective's if not known).
    first, last = 0 if is_inside else RHO, PERSPECTIVE if is_outside else OUTSIDE
    add_products(rows, first, last, normal)
    for i in range(PARAMETERS if known else PERSPECTIVE, PARAMETERS + 1):
        add_row(rows, i, rows, first, last, normal[i])
        if not known:
            for j in range(PERSPECTIVE, min(i + 1, PARAMETERS)):
                normal[i, j] += product(rows, i, rows, j)
    for i in range(extra.shape[0]):
        add_row(extra, i, rows, 0, PERSPECTIVE, joint[i])
        for j in range(PERSPECTIVE, PARAMETERS + 1):
            joint[i, j] += product(extra, i, rows, j)
        for j in range(extra.shape[0]):
            joint[i, PARAMETERS + 1 + j] += product(extra, i, extra, j)


@njit(error_model='numpy')
def fill_slopes(p, disc, samples, slopes):  # type: ignore[no-untyped-def]
    """Fill the slopes (9, n) of the model at each sample, without a shadow."""
    # Rows: distance from the nearest edge over the blur; level (0 outside, 1 band, 2 inside);
    # slope of the grey level across the outer and the inner edge [1/px]; normal u, v of the edge
    # in the image; direction u, v in the plane; pixels for a relative radius of 1.
    geometry, own = np.empty((ROWS, BLOCK)), np.empty((9, BLOCK))
    filled = np.empty((3, BLOCK))
    for begin in range(0, samples.shape[1], BLOCK):
        fill_block(samples, begin, filled)
        fill_geometry(p, filled, geometry)
        _fill_slopes(p, disc, geometry, own)
        size = min(BLOCK, samples.shape[1] - begin)
        for row in range(9):
            assign(slopes[row, begin:], own[row, :size])


@njit(error_model='numpy', inline='always')
def _fill_slopes(p, disc, geometry, slopes):  # type: ignore[no-untyped-def]
    """Fill the slopes of a block of samples from their ``geometry``; see :func:`fill_slopes`."""
    rho = p[RHO]
    ring, curved_inside = (0.0, 1.0) if disc else (1.0, 1.0 / rho)
    outside_0, outside_u, outside_v = p[OUTSIDE], p[OUTSIDE + 1], p[OUTSIDE + 2]
    band_0, band_u, band_v = p[BAND], p[BAND + 1], p[BAND + 2]
    inside_0, inside_u, inside_v = p[INSIDE], p[INSIDE + 1], p[INSIDE + 2]
    for k in range(BLOCK):
        du, dv, r = geometry[DU, k], geometry[DV, k], geometry[R, k]
        flat, sharp, curve = geometry[FLAT, k], geometry[SHARP, k], geometry[CURVE, k]
        outside = outside_0 + outside_u * du + outside_v * dv
        band = band_0 + band_u * du + band_v * dv
        inside = inside_0 + inside_u * du + inside_v * dv
        z = (r - 1.0) * flat * sharp + curve
        z_inner = (r - rho) * flat * sharp + curve * curved_inside
        away = abs(z)
        slopes[0, k] = away if disc else min(abs(z_inner), away)
        slopes[1, k] = (0.0 if r > 1.0 else 1.0) + (ring if r < rho else 0.0)
        slopes[2, k] = (outside - band) * sharp * normal_density(z)
        slopes[3, k] = ring * (band - inside) * sharp * normal_density(z_inner)
        slopes[4, k], slopes[5, k] = geometry[MU, k], geometry[MV, k]
        slopes[6, k], slopes[7, k] = geometry[EU, k], geometry[EV, k]
        slopes[8, k] = flat


@njit
def _eliminate_light(normal, sums, moments, z, sector, active, residuals):  # type: ignore[no-untyped-def]
    """Eliminate the light of sectors from the equations; return cost and eliminated count."""
    # sums (2 SECTORS, 2, 21): of the active sectors' rows, and of rows times z; moments (2
    # SECTORS, 5): of 1, z, z^2, residual, residual times z; z (n,): distance from the nearest edge
    # over the blur.
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


@njit(error_model='numpy')
def _fill_shades(p, shadow, samples, geometry, shades):  # type: ignore[no-untyped-def]
    """Fill the shade of each pixel of a block."""
    # Rows of shades (4, BLOCK): the share of the pixel in the shadow; its derivative by the
    # distance, in standard deviations, and that distance; grey level by which the product of both
    # blurred steps differs from the product of their means.
    s11, s12, s22 = p[BLUR], p[BLUR + 1], p[BLUR + 2]
    along_u, along_v = math.cos(shadow[0]), math.sin(shadow[0])
    blur_u, blur_v = s11 * along_u + s12 * along_v, s12 * along_u + s22 * along_v
    sharp = 1.0 / math.sqrt(blur_u * along_u + blur_v * along_v + shadow[2])
    for k in range(BLOCK):
        away = along_u * (samples[0, k] - shadow[6]) + along_v * (samples[1, k] - shadow[7])
        z = min(max((away - shadow[1]) * sharp, -CUTOFF), CUTOFF)
        dark, slope = blurred_step(z, 0.0)
        du, dv = geometry[DU, k], geometry[DV, k]
        outside = p[OUTSIDE] + p[OUTSIDE + 1] * du + p[OUTSIDE + 2] * dv
        band = p[BAND] + p[BAND + 1] * du + p[BAND + 2] * dv
        inside = p[INSIDE] + p[INSIDE + 1] * du + p[INSIDE + 2] * dv
        outside *= shadow[3] - 1.0
        band *= shadow[4] - 1.0
        inside *= shadow[5] - 1.0
        # Correlation of both blurs.
        common = (blur_u * geometry[MU, k] + blur_v * geometry[MV, k]) * geometry[SHARP, k] * sharp
        both = (outside - band) * geometry[DENSITY, k]
        both *= 1.0 + 0.5 * common * geometry[Z_OUTER, k] * z
        inner = (band - inside) * geometry[DENSITY_INNER, k]
        both += inner * (1.0 + 0.5 * common * geometry[Z_INNER, k] * z)
        shades[0, k], shades[1, k], shades[2, k] = dark, slope, z
        shades[3, k] = common * slope * both


@njit(error_model='numpy', inline='always')
def _fill_rows(p, disc, shadow, samples, geometry, shades, rows, errors):  # type: ignore[no-untyped-def]
    """Fill derivatives by p, except the perspective, and residuals."""
    # rows (21, BLOCK) are 0 for pixels that are not used, errors (BLOCK,) the residuals of all;
    # the last row of geometry becomes 0 for clipped pixels. Also fills the change of the grey
    # level with a movement of the edges in proportion to the square of their radius.
    rho = p[RHO]
    curved_inside = 1.0 if disc else 1.0 / rho
    dim_outside = dim_band = dim_inside = 0.0
    if shadow.size == SHADOW_SIZE:
        dim_outside, dim_band, dim_inside = shadow[3] - 1.0, shadow[4] - 1.0, shadow[5] - 1.0
    # Numbers, not elements of arrays, so that the loop is vectorised.
    outside_0, outside_u, outside_v = p[OUTSIDE], p[OUTSIDE + 1], p[OUTSIDE + 2]
    band_0, band_u, band_v = p[BAND], p[BAND + 1], p[BAND + 2]
    inside_0, inside_u, inside_v = p[INSIDE], p[INSIDE + 1], p[INSIDE + 2]
    for k in range(BLOCK):
        du, dv, dark = geometry[DU, k], geometry[DV, k], shades[0, k]
        light_outside, light_band = 1.0 + dim_outside * dark, 1.0 + dim_band * dark
        light_inside = 1.0 + dim_inside * dark
        outside = (outside_0 + outside_u * du + outside_v * dv) * light_outside
        band = (band_0 + band_u * du + band_v * dv) * light_band
        inside = (inside_0 + inside_u * du + inside_v * dv) * light_inside
        phi, hole = geometry[PHI, k], geometry[HOLE, k]
        value = band + (outside - band) * phi + (inside - band) * hole + shades[3, k]
        error = samples[2, k] - min(value, _FULL)
        errors[k] = error
        error *= geometry[SEEN, k]
        rows[PARAMETERS, k] = error
        # A clipped value only says that the level is at least that.
        seen = geometry[SEEN, k] if value < _FULL else 0.0
        geometry[SEEN, k] = seen
        eu, ev, mu, mv = geometry[EU, k], geometry[EV, k], geometry[MU, k], geometry[MV, k]
        flat, sharp, curve = geometry[FLAT, k], geometry[SHARP, k], geometry[CURVE, k]
        # Moving an edge by x along its normal changes z by -x / sigma; the point e of an edge
        # moves by s dA e.
        by_outer = seen * (outside - band) * geometry[DENSITY, k] * sharp
        by_inner = seen * (band - inside) * geometry[DENSITY_INNER, k] * sharp
        move, stretch = by_outer + by_inner, by_outer + rho * by_inner
        geometry[BY_SQUARE, k] = by_outer + rho * rho * by_inner
        by_variance = by_outer * (curve - 0.5 * geometry[Z_OUTER, k])
        by_variance += by_inner * (curve * curved_inside - 0.5 * geometry[Z_INNER, k])
        by_variance *= sharp
        share = seen * hole * light_inside
        rows[INSIDE, k] = share
        rows[INSIDE + 1, k] = share * du
        rows[INSIDE + 2, k] = share * dv
        rows[RHO, k] = -by_inner * flat
        rows[CENTER, k] = -move * mu
        rows[CENTER + 1, k] = -move * mv
        rows[SHAPE, k] = -stretch * mu * eu
        rows[SHAPE + 1, k] = -stretch * (mu * ev + mv * eu)
        rows[SHAPE + 2, k] = -stretch * mv * ev
        rows[BLUR, k] = by_variance * mu * mu
        rows[BLUR + 1, k] = 2.0 * by_variance * mu * mv
        rows[BLUR + 2, k] = by_variance * mv * mv
        share = seen * (1.0 - hole - phi) * light_band
        rows[BAND, k] = share
        rows[BAND + 1, k] = share * du
        rows[BAND + 2, k] = share * dv
        share = seen * phi * light_outside
        rows[OUTSIDE, k] = share
        rows[OUTSIDE + 1, k] = share * du
        rows[OUTSIDE + 2, k] = share * dv


@njit(error_model='numpy')
def _add_shadow(p, shadow, samples, geometry, shades, rows, extra):  # type: ignore[no-untyped-def]
    """Fill the derivatives by a shadow's parameters (6, BLOCK), and add its blur to ``rows``."""
    s11, s12, s22 = p[BLUR], p[BLUR + 1], p[BLUR + 2]
    along_u, along_v = math.cos(shadow[0]), math.sin(shadow[0])
    sharp = 1.0 / math.sqrt(
        s11 * along_u**2 + 2.0 * s12 * along_u * along_v + s22 * along_v**2 + shadow[2]
    )
    for k in range(BLOCK):
        du, dv, dark = geometry[DU, k], geometry[DV, k], shades[0, k]
        phi, hole, seen = geometry[PHI, k], geometry[HOLE, k], geometry[SEEN, k]
        # Shares of the levels in the pixel, and its change with the distance from the shadow.
        outside = seen * phi * (p[OUTSIDE] + p[OUTSIDE + 1] * du + p[OUTSIDE + 2] * dv)
        band = seen * (1.0 - hole - phi) * (p[BAND] + p[BAND + 1] * du + p[BAND + 2] * dv)
        inside = seen * hole * (p[INSIDE] + p[INSIDE + 1] * du + p[INSIDE + 2] * dv)
        slope = outside * (shadow[3] - 1.0) + band * (shadow[4] - 1.0)
        slope = (slope + inside * (shadow[5] - 1.0)) * shades[1, k] * sharp
        own_u, own_v = samples[0, k] - shadow[6], samples[1, k] - shadow[7]
        extra[0, k] = slope * (along_u * own_v - along_v * own_u)
        extra[1, k] = -slope
        by_variance = -0.5 * slope * shades[2, k] * sharp
        extra[2, k] = by_variance
        extra[3, k] = outside * dark
        extra[4, k] = band * dark
        extra[5, k] = inside * dark
        # The blur is also that of the shadow.
        rows[BLUR, k] += by_variance * along_u * along_u
        rows[BLUR + 1, k] += 2.0 * by_variance * along_u * along_v
        rows[BLUR + 2, k] += by_variance * along_v * along_v


@njit(error_model='numpy')
def _fill_bend(q, geometry, extra):  # type: ignore[no-untyped-def]
    """Fill the derivatives by a bend's parameters (3, BLOCK)."""
    for k in range(BLOCK):
        eu, ev = geometry[EU, k], geometry[EV, k]
        facing = q[3] * geometry[MU, k] + q[4] * geometry[MV, k]
        height = -facing * geometry[BY_SQUARE, k]
        extra[0, k] = height
        extra[1, k] = height * (eu * eu - ev * ev)
        extra[2, k] = height * 2.0 * eu * ev


@njit(error_model='numpy')
def _fill_perspective(p, geometry, rows):  # type: ignore[no-untyped-def]
    """Fill the derivatives by the perspective in ``rows`` (21, BLOCK)."""
    a11, a12, a22 = p[SHAPE], p[SHAPE + 1], p[SHAPE + 2]
    for k in range(BLOCK):
        # x = c + s A e / (1 + s h . e): -s A e (s e_j) for each component of h.
        eu, ev = geometry[EU, k], geometry[EV, k]
        along = geometry[MU, k] * (a11 * eu + a12 * ev) + geometry[MV, k] * (a12 * eu + a22 * ev)
        along *= geometry[BY_SQUARE, k]
        rows[PERSPECTIVE, k] = along * eu
        rows[PERSPECTIVE + 1, k] = along * ev


@njit(error_model='numpy')
def fill_normal_equations(  # type: ignore[no-untyped-def]
    p, extension, known, outline, disc, samples, sector, active, normal, joint, residuals, noise,
    local,
):  # fmt: skip
    """Fill normal matrix and residuals; return cost, and samples minus eliminated parameters."""
    # extension: parameters of a shadow (8,) or a bend (6,), or none; outline (3,): expected shape
    # of any scale, 0 unknown. Filled: normal (21, 20), lower triangle, last row products with
    # residuals, with priors weighted by noise; joint (6, 27), likewise for the extension: products
    # with the derivatives by p, with the residuals, among themselves; residuals (n,), measured
    # minus modelled [grey levels]. local: level and slope of each sector's light are eliminated;
    # not with an extension.
    normal[:] = 0.0
    joint[:] = 0.0
    a11, a12, a22 = p[SHAPE], p[SHAPE + 1], p[SHAPE + 2]
    cost = 0.0
    used = 0
    count = samples.shape[1]
    nearest = np.zeros(count if local else 0)
    moments = np.zeros((active.size if local else 0, 5))
    sums = np.zeros((active.size if local else 0, 2, PARAMETERS + 1))
    table = np.zeros((PARAMETERS + ROWS + 9, BLOCK))
    rows, geometry = table[: PARAMETERS + 1], table[PARAMETERS + 1 : PARAMETERS + 1 + ROWS]
    filled, shades, errors = table[-8:-5], table[-5:-1], table[-1]
    shaded, bent = extension.size == SHADOW_SIZE, extension.size == BEND_SIZE
    more = SHADOW if shaded else (BEND if bent else 0)
    extra = np.zeros((more, BLOCK))
    for begin in range(0, count, BLOCK):
        size = min(BLOCK, count - begin)
        fill_block(samples, begin, filled)
        fill_geometry(p, filled, geometry)
        for k in range(size):
            is_active = active[sector[begin + k]]
            used += is_active
            geometry[SEEN, k] = 1.0 if is_active else 0.0
        geometry[SEEN, size:] = 0.0
        is_inside, is_outside = fill_steps(p, disc, extension, geometry)
        if shaded:
            _fill_shades(p, extension, filled, geometry, shades)
        _fill_rows(p, disc, extension, filled, geometry, shades, rows, errors)
        cost += product(rows, PARAMETERS, rows, PARAMETERS)
        assign(residuals[begin:], errors[:size])
        if shaded:
            _add_shadow(p, extension, filled, geometry, shades, rows, extra)
        if bent:
            _fill_bend(extension, geometry, extra)
        if not known:
            _fill_perspective(p, geometry, rows)
        if local:
            for k in range(size):
                index = begin + k
                z = geometry[Z_OUTER, k]
                if not disc and abs(geometry[Z_INNER, k]) < abs(z):
                    z = geometry[Z_INNER, k]
                nearest[index] = z
                part = sector[index]
                moments[part, 0] += 1.0
                moments[part, 1] += z
                moments[part, 2] += z * z
                moments[part, 3] += residuals[index]
                moments[part, 4] += z * residuals[index]
                if active[part]:
                    for i in range(PARAMETERS + 1):
                        sums[part, 0, i] += rows[i, k]
                        sums[part, 1, i] += z * rows[i, k]
        _add_products(rows, extra, normal, joint, is_inside, is_outside, known)
    if local:
        cost, eliminated = _eliminate_light(
            normal, sums, moments, nearest, sector, active, residuals
        )
        used -= eliminated
    # Prior: the gradients of the three levels are proportional to the levels.
    size = math.sqrt(a11 * a22 - a12 * a12)
    if shaded:
        cost += _add_shadow_priors(extension, joint, noise)
    if bent:
        for k in range(BEND):
            weight = (max(noise, LEAST_NOISE) / (extension[5] if k == 0 else _BOWED * size)) ** 2
            cost += weight * extension[k] * extension[k]
            joint[k, PARAMETERS + 1 + k] += weight
            joint[k, PARAMETERS] -= weight * extension[k]
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
        cost += weight * (p[PERSPECTIVE] ** 2 + p[PERSPECTIVE + 1] ** 2)
        for i in range(PERSPECTIVE, PARAMETERS):
            normal[i, i] += weight
            normal[PARAMETERS, i] -= weight * p[i]
    return cost, used
