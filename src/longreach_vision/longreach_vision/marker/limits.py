"""
Thresholds of the detection of one marker, each with its unit and basis.

The basis of a threshold is the ``source`` of its field: a property of the model, or a number
chosen between two populations, wrong and right fits, of the independently rendered windows of
``test/evaluation.py``. The effect of each threshold on these windows is in docs/vision.md.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, quantity

__all__ = ['LIMITS', 'DetectionLimits']


def _share(description: str, default: float, source: str) -> Any:
    """Return a field that is a share, 0 to 1."""
    return quantity(description, at_least=0.0, at_most=1.0, default=default, source=source)


def _positive(description: str, unit: str, default: float, source: str) -> Any:
    """Return a field that is a positive number."""
    return quantity(description, unit, above=0.0, at_most=1e6, default=default, source=source)


@dataclasses.dataclass(frozen=True)
class DetectionLimits(Parameters):
    """Thresholds of the detection; the defaults suit markers of 8 px diameter and more."""

    # --- what is searched ---

    smallest: float = _positive(
        'least radius of a marker',
        'px',
        4.0,
        'below, blur of 1 px makes the edges of a ring overlap, 2 px apart for half the radius',
    )
    largest: float = _positive(
        'largest radius of a marker', 'px', 400.0, 'time and memory of a fit, 10 ms and more'
    )
    elevation: float = quantity(
        "least angle between the marker's plane and the line of sight",
        'rad',
        above=0.0,
        at_most=1.5,
        default=math.radians(5.0),
        source='below, the minor axis is 9 % of the major one: opposite edges overlap',
    )
    edge: float = _positive(
        'least gradient of an edge point, in standard deviations of its noise',
        '1',
        4.0,
        'normal noise exceeds it in 3e-4 of the pixels (two components); chains need several',
    )
    least_edge: float = _positive(
        'least gradient of an edge point',
        'grey levels/px',
        2.5,
        'quantisation to 1 grey level and texture in images almost without noise',
    )

    # --- which hypothesis ---

    plain_rim: float = _share(
        'share of the rim from which on a marker counts as not occluded, and the search ends',
        0.85,
        'lens blur and clutter leave more; a bar of a fifth of the radius hides 10 to 20 %',
    )
    plain_radius: float = quantity(
        'largest ratio of the radius to the expected one, or its inverse, for the search to end',
        above=1.0,
        at_most=10.0,
        default=1.2,
        source='guesses of the radius are within 15 % in the windows',
    )
    smallest_ratio: float = _positive(
        'least radius relative to the expected one, unless most of the rim is seen',
        '1',
        0.7,
        'an inner edge at 0.5 is excluded, a guess that is 15 % too large is not',
    )
    largest_ratio: float = _positive(
        'largest radius relative to the expected one, unless most of the rim is seen',
        '1',
        1.4,
        'inverse of smallest_ratio; cards begin at 1.6 of the radius',
    )
    inner_ratio: float = _positive(
        'radius relative to the expected one below which a disc may be the inner edge of a ring',
        '1',
        0.85,
        'guesses of the radius are within 15 % in the windows',
    )
    smallest_rival: float = _positive(
        'least relative radius of another ellipse that makes a partly visible marker doubtful',
        '1',
        0.6,
        'outlines of lids and boards about as large as the marker',
    )
    largest_rival: float = _positive(
        'largest relative radius of such an ellipse', '1', 1.6, 'as smallest_rival'
    )
    nearer: float = _positive(
        'distance by which such an ellipse is nearer to the expected position, in radii',
        '1',
        0.2,
        'the centre of a marker of which 30 % is seen is off by less before the fit',
    )

    # --- rim ---

    trusted_rim: float = _share(
        'least share of the rim that fits, for TRACKED',
        0.4,
        'with less, systematic errors of an occluder exceed the stated deviation',
    )
    least_rim: float = _share(
        'least share of the rim that fits, for UNCERTAIN; below: LOST',
        0.3,
        'centre and shape of an ellipse are hardly determined by an arc of 108 deg',
    )
    new_rim: float = _share(
        'least share of the rim of a marker found without prior knowledge',
        0.6,
        'arcs of clutter in whole images: none of 500 empty windows has more',
    )
    strict_rim: float = _share(
        'the same in a strict search, as of detect without a position',
        0.75,
        'letters such as O in print: few are above it',
    )
    strict_band: float = _positive(
        'least width of the band of a ring in a strict search', 'px', 3.0, 'as strict_rim'
    )
    safe_rim: float = _share(
        'share of the rim below which an outline beside it makes a marker doubtful',
        0.6,
        'an occluder with an elliptical outline that touches the rim',
    )
    beside: float = _share(
        'share of the rim with another outline beside it, from which on it does',
        0.12,
        '6 of 48 sectors: more than a straight edge that crosses the rim has',
    )
    least_inner: float = _share(
        'share of the inner edge that is always enough',
        0.33,
        'the outer edge may be that of a board, the inner one the outer edge of the marker',
    )
    inner_share: float = _share(
        'least share of the inner edge, relative to that of the outer one',
        0.6,
        'as least_inner; an occluder hides about the same share of both',
    )

    # --- grey levels ---

    least_contrast: float = _positive(
        'least contrast in standard deviations of the residual',
        '1',
        6.0,
        'false alarms of clutter have less; weak prints in the dark have more',
    )
    noise_tolerance: float = _positive(
        'factor of the estimated noise that a residual may have',
        '1',
        1.1,
        'standard error of the estimate in a window of 60 px, three times',
    )
    unexplained: float = _share(
        'residual beyond the noise, as a share of the contrast',
        0.02,
        'lens and sensor leave up to 1.5 % (tests of what sensors do); polygons and lids more',
    )
    hidden_unexplained: float = _share(
        'the same where less than plain_rim fits',
        0.015,
        'remains of an occluder in the sectors that are used shift the centre',
    )
    glare_unexplained: float = _share(
        'the same with saturated pixels at the rim',
        0.01,
        'glare below saturation is not detected by itself',
    )
    shaded_unexplained: float = _share(
        'the same where the edge of a shadow was estimated',
        0.008,
        'several shadows are not explained by one edge',
    )
    shaded_rim: float = _share(
        'least share of the rim where the edge of a shadow was estimated',
        0.6,
        'several shadows are not explained by one edge',
    )
    unexplained_grey: float = _positive(
        'residual that is always allowed beyond the noise',
        'grey levels',
        0.6,
        'twice the quantisation of 0.29 grey levels',
    )
    softest: float = _positive(
        'largest standard deviation of the blur of lens and focus',
        'px',
        1.8,
        'the fit is honest up to a disc of 2.5 px; beyond, a blurred disc is not normal',
    )
    fastest: float = _positive(
        'largest standard deviation of the blur along the motion',
        'px',
        3.2,
        'motion of 10 px during the exposure: the box exceeds its Edgeworth series',
    )
    brightest: float = _positive(
        'largest grey level of a fit, extrapolated beyond saturation',
        'grey levels',
        380.0,
        '1.5 times full scale: glare has softer edges and is brighter',
    )

    # --- geometry and covariance ---

    largest_deviation: float = _positive(
        'largest standard deviation of the centre of a TRACKED marker',
        'px',
        0.08,
        'the goal of 0.1 px per axis, with a margin for what is not modelled',
    )
    glare_deviation: float = _positive(
        'the same with saturated pixels at the rim', 'px', 0.07, 'as glare_unexplained'
    )
    perspective: float = _positive(
        'largest perspective of a fit without normal, relative to a plane tilted like its ellipse',
        '1',
        1.5,
        'uncertainty of the tilt from the axes of the ellipse',
    )
    astray: float = _share(
        'largest relative difference between the ellipse and a circle in the given plane',
        0.06,
        'a normal that is 4 deg off at a tilt of 45 deg',
    )
    inflation: float = _positive(
        'factor of the variance of the centre',
        '1',
        1.3,
        'nonlinear shading and other effects that are not modelled: mean squared errors over'
        ' variances are below 1 with it in all windows without glare',
    )
    floor: float = quantity(
        'standard deviation added to the centre in quadrature',
        'px',
        at_least=0.0,
        at_most=1.0,
        default=0.001,
        source='lens and sensor',
    )

    def check(self) -> None:
        """Raise InputError for limits in the wrong order."""
        for low, high in (
            ('smallest', 'largest'),
            ('least_rim', 'trusted_rim'),
            ('smallest_ratio', 'largest_ratio'),
            ('smallest_rival', 'largest_rival'),
            ('softest', 'fastest'),
        ):
            if not getattr(self, low) <= getattr(self, high):
                raise InputError(
                    f'{low} = {getattr(self, low):g}, allowed: at most {high} ='
                    f' {getattr(self, high):g}'
                )


LIMITS = DetectionLimits()
"""The default limits."""
