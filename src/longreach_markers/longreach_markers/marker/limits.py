"""
Thresholds of the detection of one marker.

What each is based on - a property of the model, a test, an experiment on rendered windows - is in
docs/vision.md, "Status of a marker".
"""

from __future__ import annotations

import dataclasses
import math
from functools import partial
from typing import Any

from longreach_dynamics.parameters import Parameters, quantity


def _limit(unit: str, description: str, default: float, **bounds: Any) -> Any:
    """Return a field that is a positive number, or within other bounds."""
    bounds = bounds or {'above': 0.0, 'at_most': 1e6}
    return quantity(description, unit, default=default, **bounds)


_px, _ratio, _grey, _rad = (partial(_limit, unit) for unit in ('px', '1', 'grey levels', 'rad'))
_share = partial(_limit, '1', at_least=0.0, at_most=1.0)


@dataclasses.dataclass(frozen=True)
class DetectionLimits(Parameters):
    """Thresholds of the detection; the defaults suit markers of 8 px diameter and more."""

    # --- what is searched ---
    smallest: float = _px('least radius of a marker', 4.0)
    largest: float = _px('largest radius of a marker', 400.0)
    elevation: float = _rad(
        "least angle between the marker's plane and the line of sight",
        math.radians(5.0), above=0.0, at_most=1.5,
    )  # fmt: skip
    edge: float = _ratio('least gradient of an edge point, in deviations of its noise', 4.0)
    least_edge: float = _limit('grey levels/px', 'least gradient of an edge point', 2.5)

    # --- which hypothesis ---
    plain_rim: float = _share('share of the rim from which on a marker is not occluded', 0.85)
    plain_radius: float = _ratio(
        'largest ratio of the radius to the expected one, or its inverse, for the search to end',
        1.2, above=1.0, at_most=10.0,
    )  # fmt: skip
    smallest_ratio: float = _ratio('least relative radius of a partly seen marker', 0.7)
    largest_ratio: float = _ratio('largest relative radius of a partly seen marker', 1.4)
    inner_ratio: float = _ratio('relative radius below which a disc may be an inner edge', 0.85)
    smallest_rival: float = _ratio('least relative radius of a rival of a partly seen marker', 0.6)
    largest_rival: float = _ratio('largest relative radius of a rival', 1.6)
    nearer: float = _ratio('distance in radii by which a rival is nearer to the position', 0.2)

    # --- rim ---
    trusted_rim: float = _share('least share of the rim that fits, for TRACKED', 0.4)
    least_rim: float = _share('least share of the rim that fits, for UNCERTAIN; below: LOST', 0.3)
    new_rim: float = _share('least share of the rim of a marker that nothing is known of', 0.6)
    strict_rim: float = _share('the same in a strict search, as without a position', 0.75)
    strict_band: float = _px('least width of the band of a ring in a strict search', 3.0)
    noisiest: float = _share('largest correlated noise, as a share of the contrast', 0.15)
    strict_noise: float = _share('the same in a strict search', 0.05)
    safe_rim: float = _share('share of the rim below which an outline beside it is a doubt', 0.6)
    beside: float = _share('share of the rim with another outline beside it that is a doubt', 0.12)
    least_inner: float = _share('share of the inner edge that is always enough', 0.4)
    inner_share: float = _share('least share of the inner edge, relative to the outer one', 0.6)

    # --- grey levels ---
    least_contrast: float = _ratio('least contrast in standard deviations of the residual', 6.0)
    noise_tolerance: float = _ratio('factor of the estimated noise that a residual may have', 1.1)
    unexplained: float = _share('residual beyond the noise, as a share of the contrast', 0.02)
    hidden_unexplained: float = _share('the same where less than plain_rim fits', 0.01)
    glare_unexplained: float = _share('the same with saturated pixels at the rim', 0.01)
    shaded_unexplained: float = _share("the same with a shadow's edge or light of sectors", 0.008)
    shaded_rim: float = _share("least rim with a shadow's edge or light of sectors", 0.6)
    unexplained_grey: float = _grey('residual that is always allowed beyond the noise', 0.6)
    softest: float = _px('largest standard deviation of the blur of lens and focus', 1.8)
    fastest: float = _px('largest standard deviation of the blur along the motion', 3.2)
    brightest: float = _grey('largest grey level of a fit, extrapolated beyond saturation', 380.0)

    # --- geometry and covariance ---
    largest_deviation: float = _px('largest standard deviation of a TRACKED centre', 0.08)
    glare_deviation: float = _px('the same with saturated pixels at the rim', 0.07)
    perspective: float = _ratio('largest perspective without normal, over that of a plane', 1.5)
    astray: float = _share('largest relative difference from a circle in the given plane', 0.06)
    tilt: float = _rad(
        'largest standard deviation of the given normal, where an ellipse contradicts it',
        math.radians(5.0), at_least=0.0, at_most=1.0,
    )  # fmt: skip
    inflation: float = _ratio('factor of the variance of the centre', 1.3)
    floor: float = _px('deviation added to the centre in quadrature', 0.001, at_least=0, at_most=1)

    relations = (
        'smallest <= largest',
        'least_rim <= trusted_rim',
        'smallest_ratio <= largest_ratio',
        'smallest_rival <= largest_rival',
        'softest <= fastest',
    )


LIMITS = DetectionLimits()
"""The default limits."""
