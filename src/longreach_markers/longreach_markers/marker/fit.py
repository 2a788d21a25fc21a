"""
Maximum-likelihood refinement of a circular marker in a grey image.

Sectors of the rim whose pixels do not fit are left out and the fit is repeated, so that an
occluder does not shift the result. Functions share the arrays of
:func:`longreach_markers.marker.pixel_model.fill_normal_equations`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from longreach_dynamics.kernels import kernel
from longreach_dynamics.linear_algebra import assign
from longreach_markers.marker import pixel_parameters as at
from longreach_markers.marker.estimate import estimate_parameters
from longreach_markers.marker.pixel_model import fill_slopes
from longreach_markers.marker.pixel_parameters import set_perspective, start_levels
from longreach_markers.marker.pixel_selection import (
    LIGHT_TERMS,
    add_light,
    divide_by_light,
    edge_reach,
    find_burnt,
    select_pixels,
    shape_to_pinhole,
    to_pinhole,
)
from longreach_markers.marker.residuals import (
    CORRELATIONS,
    bend_significance,
    correlation_factor,
    index_pixels,
    measure_noise,
    shorter_axis,
    square_beside_light,
)
from longreach_markers.marker.shadows import find_shadow
from longreach_markers.marker.symmetric import SECTORS, largest

# Selections of sectors.
_ATTEMPTS = 5
# Cubic light is estimated if residuals exceed the noise by this factor and this many grey levels;
# it must explain this share of the excess.
_CURVED, _EXPLAINED = (1.1, 0.3), 0.5
# Light of either kind is not estimated where it explains less than this share of the excess while
# all else stays as it is: estimating all of it again explains little more.
_HOPEFUL = 0.1
# Sectors get their own light if residuals exceed the noise by this factor and this many grey
# levels.
_UNEVEN = (1.05, 0.12)
# The edge of a shadow is estimated, too, where less of the rim fits; by how much more of it must
# fit then, if the residuals are not explained better.
_PLAIN, _GAINED = 0.85, 0.1
# Bent paper is estimated, too, where chi-square of 2 degrees of freedom shows it; most of the rim
# must fit then, since occluders can look like it. Its first prior standard deviation over the
# radius.
_BENT_SIGNIFICANT, _WHOLE, _BOW = 12.0, 0.95, 0.05
# Correlated noise above this share of the contrast is another object.
_NOISIEST = 0.15
# Kinds of fits.
_PLAINLY, _SHADED, _BOWED = 0, 1, 2
# A fit with a larger residual as a share of the contrast is abandoned.
_HOPELESS = 0.4


class Fit(NamedTuple):
    """A refined marker; covariances are 0 where a parameter was not estimated."""

    parameters: NDArray[np.float64]  # (20,) of pixel_parameters, in pinhole pixels
    covariance: NDArray[np.float64]  # (20, 20)
    residual: float  # RMS [grey levels]
    sectors: NDArray[np.bool_]  # (2 SECTORS,) that fit, outer then inner edge
    burnt: float  # share of the outer edge saturated by glare
    converged: bool
    shaded: bool  # with a shadow's edge
    bend: float  # height of a bent rim in the image [px]; 0: flat
    noise: float  # standard deviation, as given, or of correlated residuals [grey levels]
    uneven: bool  # with the light of sectors

    @property
    def support(self) -> float:
        """Share of the outer edge's sectors that fit; 0 if the fit did not converge."""
        count = np.count_nonzero(self.sectors[:SECTORS])
        return float(count / SECTORS) if self.converged else 0.0


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
    """Refine a marker in an image."""
    given = image, packed, normal, outline, start, seen, blur, noise
    best, signs = _fitted(*given, _PLAINLY)
    support, is_uneven = best.support, best.uneven
    if max(signs) > _BENT_SIGNIFICANT:
        bent, _ = _fitted(*given, _BOWED)
        if bent.support > _WHOLE and (
            bent.support > support + _GAINED
            or (signs[1] > _BENT_SIGNIFICANT and bent.residual < best.residual)
        ):
            best, support = bent, bent.support
    rms, noise = best.residual, best.noise
    # The edge of a shadow would be light in some sectors.
    if support >= _PLAIN and not (is_uneven and rms >= _CURVED[0] * noise + _CURVED[1]):
        return best
    shaded, _ = _fitted(*given, _SHADED)
    gained = shaded.support - support
    if shaded.converged and (
        gained > _GAINED or (gained > -0.05 and _is_explained.py_func(rms, shaded.residual, noise))
    ):
        return shaded
    return best


def _fitted(*given) -> tuple[Fit, tuple[float, float]]:  # type: ignore[no-untyped-def]
    """Return :func:`_fit` of the same arguments, and chi-square of a bend, first and last."""
    *fields, first, last = _fit(*given)
    return Fit(*fields), (first, last)


@njit
def _correlated_noise(  # type: ignore[no-untyped-def]
    p, samples, window, slopes, sector, active, burnt, residuals, correlation, noise, rms
):  # fmt: skip
    """Return whether the noise is correlated, and what it is then: differences are too small."""
    trusted = active.copy()
    _judge_sectors(residuals, sector, burnt, noise, trusted)
    places = index_pixels(samples, window)
    measured = measure_noise(places, slopes, sector, trusted, residuals, correlation)
    if not 0.0 < measured < _NOISIEST * abs(p[at.OUTSIDE] - p[at.BAND]):
        return False, noise
    return True, max(noise, min(measured, rms))


@kernel
def _fit(image, packed, normal, outline, start, seen, blur, noise, kind):  # type: ignore[no-untyped-def]
    """Fit a marker plainly, with a shadow's edge, or bent; arguments as of :func:`fit_marker`."""
    # Returns the fields of Fit, and chi-square of a bend in the residuals of the first sectors and
    # of the last ones (0 where it is not tested).
    shaded, bent = kind == _SHADED, kind == _BOWED
    disc = start[5] <= 0.0
    known = normal[0] != 0.0 or normal[1] != 0.0 or normal[2] != 0.0
    cu, cv = to_pinhole(packed, start[0], start[1])
    p, line = np.zeros(at.PARAMETERS), np.zeros(3)
    _start(packed, normal, known, start, cu, cv, blur, p, line)
    longest = largest(p[at.SHAPE], p[at.SHAPE + 1], p[at.SHAPE + 2])
    shortest = p[at.SHAPE] + p[at.SHAPE + 2] - longest
    window, frame = _window(image, start, shortest), (cu, cv, longest)
    samples, sector, residuals = np.empty((5, 0))[:, :0], np.empty(0, np.int64), np.empty(0)
    covariance = np.zeros((at.PARAMETERS, at.PARAMETERS))
    active = seen.copy()
    burnt = np.zeros(2 * SECTORS, np.bool_)
    light = np.zeros(LIGHT_TERMS)
    rms = 0.0
    # False, but no constant: for one, numba would compile the estimate once more.
    local = converged = shaded and bent
    extension = np.zeros(0)
    correlation = np.zeros(CORRELATIONS)
    is_correlated = False
    is_uneven = False
    signs = np.zeros(2)
    # Of the centre, because the paper may be bent; whether the last residuals were tested for it.
    doubt = np.zeros((2, 2))
    is_tested = False
    slopes = np.empty((9, 0))
    if bent:
        extension = np.zeros(at.BEND_SIZE)
        extension[5] = _BOW * longest
    attempt = changed = 0
    for attempt in range(_ATTEMPTS):
        set_perspective(p, line, known)
        reach = edge_reach(p)
        samples, sector = select_pixels(image, packed, p, disc, reach, window)
        residuals = np.empty(sector.size)
        divide_by_light(samples, light, frame)
        if bent:
            extension[3], extension[4] = _tilt(packed, normal, known, p)
            if attempt > 0:
                extension[5] = max(math.hypot(extension[1], extension[2]), 0.01)
        if attempt == 0:
            find_burnt(samples, sector, burnt)
            if shaded:
                extension = find_shadow(samples, sector, burnt, p, disc)
                if extension.size == 0:
                    break
                # Edge points are missing where the shadow is dark.
                active[:] = True
            active &= ~burnt
            start_levels(p, disc, samples, sector, active)
            if shaded:
                _lighten(p, samples, sector, disc, extension)
        converged, rms = estimate_parameters(
            p, extension, line, known, outline, disc, samples, sector, active, residuals,
            covariance, noise, local,
        )  # fmt: skip
        if attempt == 0 and converged:
            slopes = _slopes(p, disc, samples)
        if attempt == 0 and converged and rms > _UNEVEN[0] * noise + _UNEVEN[1]:
            is_correlated, noise = _correlated_noise(
                p, samples, window, slopes, sector, active, burnt, residuals, correlation, noise,
                rms,
            )  # fmt: skip
        if attempt == 0 and converged and kind == _PLAINLY:
            signs[0] = bend_significance(
                p, *_tilt(packed, normal, known, p), slopes, sector, active, residuals, rms * rms,
                doubt,
            )  # fmt: skip
            is_tested = True
            if burnt.any():
                # Glare extends beyond the saturated sectors.
                local = rms > _UNEVEN[0] * noise + _UNEVEN[1]
            elif rms > _CURVED[0] * noise + _CURVED[1]:
                is_tested = False
                converged, rms = _flatten(
                    p, line, known, outline, disc, samples, sector, active, residuals,
                    covariance, noise, rms, light, frame, local,
                )  # fmt: skip
            if local:
                converged, rms = estimate_parameters(
                    p, extension, line, known, outline, disc, samples, sector, active, residuals,
                    covariance, noise, local,
                )  # fmt: skip
        contrast = abs(p[at.OUTSIDE] - p[at.BAND])
        if not converged or not rms < _HOPELESS * contrast:
            converged = False
            break
        changed = _judge_sectors(residuals, sector, burnt, noise, active)
        if active.sum() < SECTORS // 5:
            converged = False
            break
        few = (changed == 0 and not bent) or (attempt > 0 and changed <= 2)
        if few and abs(edge_reach(p) - reach) < 0.5:
            break
    factor = 1.0
    if converged:
        slopes = _slopes(p, disc, samples)
    if converged and is_correlated:
        places = index_pixels(samples, window)
        factor = correlation_factor(places, slopes, sector, active, correlation)
        # Beyond the noise, residuals are regarded as before.
        factor = 1.0 + (factor - 1.0) * min(noise / max(rms, 1e-9), 1.0) ** 2
    if converged and kind == _PLAINLY and not local:
        if attempt == 0 and changed == 0 and is_tested and factor == 1.0:
            signs[1] = signs[0]
        else:
            signs[1] = bend_significance(
                p, *_tilt(packed, normal, known, p), slopes, sector, active, residuals,
                factor * rms * rms, doubt,
            )  # fmt: skip
        if rms > _UNEVEN[0] * noise + _UNEVEN[1]:
            left = square_beside_light(slopes, sector, active, residuals)
            is_uneven = rms * rms - left > _HOPEFUL * (rms * rms - noise * noise)
        if is_uneven:
            # Not earlier: an occluder could be mistaken for light.
            trial, spread = p.copy(), covariance.copy()
            found, less = estimate_parameters(
                trial, extension, line, known, outline, disc, samples, sector, active, residuals,
                spread, noise, is_uneven,
            )  # fmt: skip
            if found and _is_explained(rms, less, noise):
                p, covariance, rms = trial, spread, less
                # Sectors with a light of their own would have other residuals.
                doubt[:] = 0.0
    covariance *= factor
    covariance[at.CENTER : at.SHAPE, at.CENTER : at.SHAPE] += (0.0 if local else 1.0) * doubt
    bend = math.hypot(extension[1], extension[2]) if bent else 0.0
    return (
        p, covariance, rms, active, np.mean(burnt[:SECTORS]), converged, shaded, bend, noise,
        local or is_uneven, signs[0], signs[1],
    )  # fmt: skip


@njit
def _tilt(packed, normal, known, p):  # type: ignore[no-untyped-def]
    """Return the unit vector (u, v) along which heights over the plane move a point's image."""
    if not known:
        return shorter_axis(p)
    tilt_u = packed[0] * normal[0] - (p[at.CENTER] - packed[2]) * normal[2]
    tilt_v = packed[1] * normal[1] - (p[at.CENTER + 1] - packed[3]) * normal[2]
    size = max(math.hypot(tilt_u, tilt_v), 1e-9)
    return tilt_u / size, tilt_v / size


@njit
def _slopes(p, disc, samples):  # type: ignore[no-untyped-def]
    """Return the slopes (9, n) of :func:`longreach_markers.marker.pixel_model.fill_slopes`."""
    slopes = np.empty((9, samples.shape[1]))
    fill_slopes(p, disc, samples, slopes)
    return slopes


@njit
def _lighten(p, samples, sector, disc, shadow):  # type: ignore[no-untyped-def]
    """Set the grey levels of ``p`` (20,) to those on the lit side of a shadow (8,)."""
    lit = np.zeros(2 * SECTORS, np.bool_)
    away = np.empty(sector.size)
    for index in range(sector.size):
        du, dv = samples[0, index] - shadow[6], samples[1, index] - shadow[7]
        away[index] = math.cos(shadow[0]) * du + math.sin(shadow[0]) * dv - shadow[1]
        if away[index] < -1.0:
            lit[sector[index]] = True
    for index in range(sector.size):
        if away[index] > -1.0:
            lit[sector[index]] = False
    if lit.any():
        start_levels(p, disc, samples, sector, lit)


@njit
def _start(packed, normal, known, start, cu, cv, blur, p, line):  # type: ignore[no-untyped-def]
    """Set initial parameters except grey levels, and the vanishing line of the plane."""
    p[at.CENTER], p[at.CENTER + 1] = cu, cv
    p[at.SHAPE], p[at.SHAPE + 1], p[at.SHAPE + 2] = shape_to_pinhole(
        packed, start[0], start[1], start[2], start[3], start[4]
    )
    p[at.RHO] = start[5]
    p[at.BLUR], p[at.BLUR + 2] = blur * blur, blur * blur
    if known:
        line[0], line[1] = normal[0] / packed[0], normal[1] / packed[1]
        line[2] = normal[2] - line[0] * packed[2] - line[1] * packed[3]
        # From the centre of the ellipse to that of the circle.
        for _ in range(3):
            set_perspective(p, line, known)
            h1, h2 = p[at.PERSPECTIVE], p[at.PERSPECTIVE + 1]
            flat = 1.0 / (1.0 - min(h1 * h1 + h2 * h2, 0.5))
            p[at.CENTER] = cu + flat * (p[at.SHAPE] * h1 + p[at.SHAPE + 1] * h2)
            p[at.CENTER + 1] = cv + flat * (p[at.SHAPE + 1] * h1 + p[at.SHAPE + 2] * h2)


@njit
def _window(image, start, shortest):  # type: ignore[no-untyped-def]
    """Return first and past-the-last column and row of a marker's window."""
    reach = 1.0 + (3.5 * 1.6 + 2.0) / max(shortest, 2.0)
    half_u = reach * math.hypot(start[2], start[3]) + 1.0
    half_v = reach * math.hypot(start[3], start[4]) + 1.0
    u0, u1 = max(0, int(start[0] - half_u)), min(image.shape[1], int(start[0] + half_u) + 2)
    v0, v1 = max(0, int(start[1] - half_v)), min(image.shape[0], int(start[1] + half_v) + 2)
    return u0, u1, v0, v1


@njit
def _judge_sectors(residuals, sector, burnt, noise, active):  # type: ignore[no-untyped-def]
    """Select the sectors that fit, also of those left out before; return how many changed."""
    totals = np.zeros(2 * SECTORS)
    counts = np.zeros(2 * SECTORS, np.int64)
    for index in range(sector.size):
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
    usual = max(trusted[trusted.size // 2], noise, at.LEAST_NOISE) if trusted.size > 0 else 1.0
    good = np.zeros(2 * SECTORS, np.bool_)
    for index in range(2 * SECTORS):
        # Random scatter, for the number of pixels of the sector.
        limit = usual * (1.0 + 3.0 / math.sqrt(2.0 * max(counts[index], 1))) + 0.3
        good[index] = quality[index] < limit and not burnt[index]
    changed = 0
    for index in range(2 * SECTORS):
        part, turn = index // SECTORS * SECTORS, index % SECTORS
        use = good[index]
        # An occluder across two sectors extends into the next.
        for side in (-1, 1):
            next_one = part + (turn + side) % SECTORS
            if not good[next_one] and not good[part + (turn + 2 * side) % SECTORS]:
                use = False
        if use != active[index]:
            changed += 1
        active[index] = use
    return changed


@njit
def _is_explained(before, after, noise):  # type: ignore[no-untyped-def]
    """Return whether light explains enough of the excess of residuals over noise (all RMS)."""
    return after**2 - noise**2 < (1.0 - _EXPLAINED) * (before**2 - noise**2)


@njit
def _flatten(  # type: ignore[no-untyped-def]
    p, line, known, outline, disc, samples, sector, active, residuals, covariance, noise, rms,
    light, frame, local,
):  # fmt: skip
    """Estimate again with cubic light divided out, if the residuals show such light."""
    # The polynomial is common to all three levels: it cannot explain away a part of the marker.
    # local is False: for a constant numba would compile all of the estimate once more.
    before, first = p.copy(), rms
    values = samples[2].copy()
    for turn in range(2):
        gained = add_light(samples, sector, active, residuals, frame, light)
        if turn == 0 and gained < _HOPEFUL * (rms**2 - noise**2):
            light[:] = 0.0
            return True, rms
        assign(samples[2], values)
        divide_by_light(samples, light, frame)
        converged, rms = estimate_parameters(
            p, np.zeros(0), line, known, outline, disc, samples, sector, active, residuals,
            covariance, noise, local,
        )  # fmt: skip
        if not converged:
            break
    if converged and _is_explained(first, rms, noise):
        return converged, rms
    light[:] = 0.0
    assign(samples[2], values)
    assign(p, before)
    return estimate_parameters(
        p, np.zeros(0), line, known, outline, disc, samples, sector, active, residuals, covariance,
        noise, local,
    )  # fmt: skip
