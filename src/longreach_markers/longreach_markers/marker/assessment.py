"""Assessment of a fit: whether it is the marker, and how much it is to be relied on."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from longreach_markers.marker import pixel_parameters as at
from longreach_markers.marker.edges import EdgePoints
from longreach_markers.marker.ellipses import Hypothesis, outlines_beside
from longreach_markers.marker.fit import Fit
from longreach_markers.marker.limits import DetectionLimits
from longreach_markers.marker.measurement import Measurement, eigenvalues, measure, normal_doubt
from longreach_markers.marker.observation import LOST, TRACKED, UNCERTAIN, Observation
from longreach_markers.marker.symmetric import SECTORS


def _contrast(fit: Fit) -> float:
    return abs(float(fit.parameters[at.OUTSIDE] - fit.parameters[at.BAND]))


def explains(fit: Fit, noise: float, limits: DetectionLimits, share: float | None = None) -> bool:
    """Return whether the residual is at most noise plus a small share of the contrast."""
    share = limits.unexplained if share is None else share
    allowed = math.hypot(
        limits.noise_tolerance * noise, limits.unexplained_grey + share * _contrast(fit)
    )
    return fit.converged and fit.residual < allowed


def assess(
    fit: Fit,
    hypothesis: Hypothesis,
    edges: EdgePoints,
    packed: NDArray[np.float64],
    normal: NDArray[np.float64],
    outline: NDArray[np.float64],
    shear: NDArray[np.float64],
    focal: float,
    noise: float,
    limits: DetectionLimits,
    *,
    disc: bool,
) -> Observation:
    """Return the observation of a fit, with its status."""
    p = fit.parameters
    known = bool(normal.any())
    doubt = np.zeros((2, 2))
    if known and fit.bend == 0.0:
        doubt = normal_doubt(p, fit.covariance, packed, normal, outline, shear, limits.tilt)
    measured = measure(p, fit.covariance, doubt, packed, limits, known=known)
    outer_center, outer = measured.outer_center, measured.outer
    support = float(np.count_nonzero(fit.sectors[:SECTORS])) / SECTORS
    beside = 0.0
    if support < limits.safe_rim:
        found = hypothesis._replace(
            u=outer_center[0], v=outer_center[1], a11=outer[0], a12=outer[1], a22=outer[2]
        )  # fmt: skip
        beside = float(np.mean(outlines_beside(edges, found) & ~fit.sectors[:SECTORS]))
    status, reason = _status(fit, hypothesis, outline, measured, support, beside, noise, limits)
    inner = float(np.count_nonzero(fit.sectors[SECTORS:])) / SECTORS
    least = min(limits.least_inner, limits.inner_share * support)
    if status == TRACKED and not disc and inner < least:
        status, reason = UNCERTAIN, 'its inner edge does not fit: another outline beside it?'
    if (
        status == TRACKED
        and not known
        and math.hypot(*p[at.PERSPECTIVE :]) > _most_perspective(p, focal, limits)
    ):
        status, reason = UNCERTAIN, 'its edges are not those of a circle in a plane'
    return Observation(
        status=status,
        reason=reason,
        center=measured.center,
        covariance=measured.covariance,
        ellipse=measured.ellipse,
        inner=0.0 if disc else float(p[at.RHO]),
        bright=bool(p[at.BAND] > p[at.OUTSIDE]),
        rim_support=support,
        residual=fit.residual,
        shape=outer,
    )


def _most_perspective(p: NDArray[np.float64], focal: float, limits: DetectionLimits) -> float:
    """Return the largest perspective, abs(h), of a circle in a plane."""
    minor, major = eigenvalues(*p[at.SHAPE : at.BLUR].tolist())
    tilt = math.sqrt(max((major / minor) ** 2 - 1.0, 0.0))
    return limits.perspective * major / focal * (tilt + 0.2) + 3.0 * at.PERSPECTIVE_PRIOR


def _status(
    fit: Fit,
    hypothesis: Hypothesis,
    outline: NDArray[np.float64],
    measured: Measurement,
    support: float,
    beside: float,
    noise: float,
    limits: DetectionLimits,
) -> tuple[str, str]:
    p = fit.parameters
    contrast = _contrast(fit)
    # Of correlated noise, the differences of neighbours show only a part.
    given, noise = noise, max(noise, fit.noise)
    if contrast < limits.least_contrast * max(fit.residual, 0.3):
        return LOST, f'contrast of {contrast:.0f} grey levels over {fit.residual:.1f} of residual'
    if (p[at.BAND] > p[at.OUTSIDE]) != (hypothesis.polarity < 0.0):
        return LOST, 'grey levels and edges contradict each other'
    if support < limits.least_rim:
        return LOST, f'{100 * support:.0f} % of the rim fits'
    if support < limits.trusted_rim:
        return UNCERTAIN, f'{100 * support:.0f} % of the rim fits'
    if beside > limits.beside:
        return UNCERTAIN, f'another outline beside {100 * beside:.0f} % of the rim'
    if max(p[at.BAND], p[at.OUTSIDE]) > limits.brightest:
        return UNCERTAIN, 'brighter than a sensor shows: glare'
    blur = [math.sqrt(max(one, 0.0)) for one in eigenvalues(*measured.spread.tolist())]
    if blur[0] > limits.softest or blur[1] > limits.fastest:
        return UNCERTAIN, f'edges are blurred by {blur[0]:.1f} and {blur[1]:.1f} px'
    share = limits.unexplained if support > limits.plain_rim else limits.hidden_unexplained
    if not explains(fit, noise, limits, share):
        return UNCERTAIN, f'residual of {fit.residual:.1f} grey levels: not this kind of marker'
    if fit.noise > max(given, limits.noisiest * contrast):
        return UNCERTAIN, f'residual of {fit.residual:.1f} grey levels: not only noise'
    # Sectors with a light of their own fit parts of other things, too; glare has its own limits.
    is_lit = fit.uneven and fit.burnt == 0.0 and fit.noise <= given
    if (fit.shaded or is_lit) and not (
        support > limits.shaded_rim and explains(fit, noise, limits, limits.shaded_unexplained)
    ):
        return UNCERTAIN, f'shadows: {100 * support:.0f} % of the rim fits'
    if outline.any():
        own = p[at.SHAPE : at.BLUR]
        astray = float(np.linalg.norm(own - outline * (own @ outline) / (outline @ outline)))
        if astray > limits.astray * float(np.linalg.norm(own)):
            return UNCERTAIN, 'this ellipse is not the image of a circle in the given plane'
    (a, b), (_, d) = measured.covariance.tolist()
    deviation = math.sqrt(eigenvalues(a, b, d)[1])
    if fit.burnt > 0.0 and (
        deviation > limits.glare_deviation
        or not explains(fit, noise, limits, limits.glare_unexplained)
    ):
        return UNCERTAIN, f'glare over {100 * fit.burnt:.0f} % of the rim'
    if deviation > limits.largest_deviation and fit.bend > limits.largest_deviation:
        return UNCERTAIN, f'not flat: its rim is bent by {fit.bend:.2f} px'
    if deviation > limits.largest_deviation:
        return UNCERTAIN, f'standard deviation of {deviation:.2f} px'
    return TRACKED, ''
