"""
Estimate of the parameters of a marker from the pixels of some sectors, by Levenberg-Marquardt.

The covariance is the inverse normal matrix times the variance of the residuals. Functions share
the arrays of :func:`longreach_markers.marker.pixel_model.fill_normal_equations`.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from longreach_dynamics.linear_algebra import assign, cholesky, cholesky_solve
from longreach_markers.marker import pixel_parameters as at
from longreach_markers.marker.pixel_model import fill_normal_equations
from longreach_markers.marker.pixel_parameters import (
    limit_parameters,
    limit_shadow,
    set_perspective,
)

# Iterations, and trials of a step.
_STEPS, _TRIALS = 12, 6
# The light of a sector is not exactly a level and a slope: variances are multiplied by this.
_BENT = 1.5
# Where fewer of the sectors are used, only their pixels are processed in each iteration.
_MOST_ACTIVE = 0.8


@njit
def estimate_parameters(  # type: ignore[no-untyped-def]
    p, extension, line, known, outline, disc, samples, sector, active, residuals, covariance,
    noise, local,
):  # fmt: skip
    """Estimate all parameters from the active sectors; return whether converged, and the RMS."""
    first, last = at.CENTER if disc else 0, at.PERSPECTIVE if known else at.PARAMETERS
    own = last - first
    # The last parameter of a shadow is the light inside the inner edge.
    more = 0
    if extension.size == at.SHADOW_SIZE:
        more = at.SHADOW - 1 if disc else at.SHADOW
    elif extension.size == at.BEND_SIZE:
        more = at.BEND
    count = own + more
    normal = np.zeros((at.PARAMETERS + 1, at.PARAMETERS))
    tried = np.zeros((at.PARAMETERS + 1, at.PARAMETERS))
    factor = np.empty((count, count))
    step = np.empty(count)
    joint = np.zeros((at.SHADOW, at.PARAMETERS + 1 + at.SHADOW))
    tried_joint = np.zeros((at.SHADOW, at.PARAMETERS + 1 + at.SHADOW))
    trial, trial_extension = p.copy(), extension.copy()
    # Pixels of other sectors are not needed until the end.
    whole, all_sectors, all_residuals = samples, sector, residuals
    is_part = np.count_nonzero(active) < _MOST_ACTIVE * active.size
    if is_part:
        chosen = np.flatnonzero(active[sector])
        samples, sector, residuals = samples[:3, chosen], sector[chosen], residuals[chosen]
    cost, used = fill_normal_equations(
        p, extension, known, outline, disc, samples, sector, active, normal, joint, residuals,
        noise, local,
    )  # fmt: skip
    if used < 2 * count:
        return False, 0.0
    damping, least = 1e-5, 1e-7
    if extension.size == at.BEND_SIZE:
        # Of a disc, only the prior determines the constant part.
        damping, least = 1e-9, 1e-10
    converged = False
    for _ in range(_STEPS):
        moved = False
        better = cost
        for _ in range(_TRIALS):
            _join(normal, joint, first, last, more, factor, step)
            for index in range(count):
                factor[index, index] *= 1.0 + damping
                factor[index, index] += 1e-12
            if not cholesky(factor):
                damping = max(10.0 * damping, 1e-3)
                continue
            cholesky_solve(factor, step)
            assign(trial, p)
            trial[first:last] += step[:own]
            limit_parameters(trial, disc)
            assign(trial_extension, extension)
            trial_extension[:more] += step[own:]
            limit_shadow(trial_extension)
            set_perspective(trial, line, known)
            better, used = fill_normal_equations(
                trial, trial_extension, known, outline, disc, samples, sector, active, tried,
                tried_joint, residuals, noise, local,
            )  # fmt: skip
            if better <= cost * (1.0 + 1e-9):
                moved = True
                break
            damping = max(10.0 * damping, 1e-3)
        if not moved:
            # No step decreases the cost: converged to rounding.
            converged = True
            break
        shift = math.hypot(
            trial[at.CENTER] - p[at.CENTER], trial[at.CENTER + 1] - p[at.CENTER + 1]
        )
        gained = cost - better
        assign(p, trial)
        cost = better
        assign(extension, trial_extension)
        normal, tried = tried, normal
        joint, tried_joint = tried_joint, joint
        damping = max(0.1 * damping, least)
        # Convergence is fast: the remaining error is far below the noise.
        if shift < 5e-3 and gained < 0.5 * cost / used:
            converged = True
            break
    if is_part:
        fill_normal_equations(
            p, extension, known, outline, disc, whole, all_sectors, active, tried, tried_joint,
            all_residuals, noise, local,
        )  # fmt: skip
    # Covariance: variance of the residuals times the inverse normal matrix.
    variance = max(cost / max(used - count, 1), 1.0 / 12.0) * (_BENT if local else 1.0)
    covariance[:] = 0.0
    _join(normal, joint, first, last, more, factor, step)
    for index in range(count):
        factor[index, index] *= 1.0 + 1e-10
        factor[index, index] += 1e-12
    if not cholesky(factor):
        return False, 0.0
    for column in range(own):
        step[:] = 0.0
        step[column] = 1.0
        cholesky_solve(factor, step)
        for index in range(own):
            covariance[first + index, first + column] = variance * step[index]
    return converged, math.sqrt(cost / max(used, 1))


@njit
def _join(normal, joint, first, last, more, factor, right):  # type: ignore[no-untyped-def]
    """Fill lower triangle and right-hand side for parameters from ``first``, and ``more``."""
    own = last - first
    for k in range(own):
        assign(factor[k], normal[first + k, first:last])
    assign(right, normal[at.PARAMETERS, first:last])
    for k in range(more):
        assign(factor[own + k], joint[k, first:last])
        right[own + k] = joint[k, at.PARAMETERS]
        for other in range(more):
            factor[own + k, own + other] = joint[k, at.PARAMETERS + 1 + other]
