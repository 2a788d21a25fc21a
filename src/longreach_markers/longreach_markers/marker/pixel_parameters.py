"""
Parameters of the model of a marker's pixels, their limits and start.

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

from longreach_markers.marker.symmetric import inverse, times

# In this order, a pixel near one edge depends on a contiguous range of parameters, and parameters
# that are not estimated for a disc or a known normal are at the ends.
INSIDE, RHO, CENTER, SHAPE, BLUR, BAND, OUTSIDE, PERSPECTIVE = 0, 3, 4, 6, 9, 12, 15, 18
PARAMETERS = 20
# Estimated parameters of a shadow, and length of the array.
SHADOW, SHADOW_SIZE = 6, 8
# The same of a bend.
BEND, BEND_SIZE = 3, 6
# Standard deviation of the prior of h without normal: a marker of 0.3 m tilted by 45 degrees has
# 0.005 at 20 m.
PERSPECTIVE_PRIOR = 0.005
# Lower bound of the standard deviation of the noise, about that of rounding [grey levels].
LEAST_NOISE = 0.3
# Least and largest variance of the blur [px^2]; beyond the largest, no marker is TRACKED.
_SHARPEST, _WIDEST = 0.16, 20.0


@njit
def set_perspective(p, line, known):  # type: ignore[no-untyped-def]
    """Set h of p from centre, shape and the plane's normal ``line``, if it is known."""
    if known:
        depth = line[0] * p[CENTER] + line[1] * p[CENTER + 1] + line[2]
        p[PERSPECTIVE] = -(p[SHAPE] * line[0] + p[SHAPE + 1] * line[1]) / depth
        p[PERSPECTIVE + 1] = -(p[SHAPE + 1] * line[0] + p[SHAPE + 2] * line[1]) / depth


@njit
def limit_parameters(p, disc):  # type: ignore[no-untyped-def]
    """Limit p: A and S stay positive definite, and rho (not for a disc) within [0.1, 0.97]."""
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
    """Set grey levels from pixels away from the edges, and their gradients to 0."""
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
