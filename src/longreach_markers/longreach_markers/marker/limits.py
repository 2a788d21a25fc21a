"""
Thresholds of the detection of one marker, each with its unit and basis.

The basis of a threshold is the ``source`` of its field: a property of the model, the name of a
test, or an experiment: what changes without it in 900 independently rendered windows, 60 of each
kind of ``test/evaluation.py`` with the seed 77. By default 203 of them are flagged, and the RMS
error of the others is 0.018 px with a mean squared error over variance of 0.80.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, quantity


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
        'at a radius of 4 px the edges of a ring with inner = 0.5 are 2 px apart, twice the blur',
    )
    largest: float = _positive(
        'largest radius of a marker',
        'px',
        400.0,
        'a window of some 1000 px, the size of an image: more is a close-up of the marker',
    )
    elevation: float = quantity(
        "least angle between the marker's plane and the line of sight",
        'rad',
        above=0.0,
        at_most=1.5,
        default=math.radians(5.0),
        source='sin(5 deg) = 0.09: the minor axis is 9 % of the major one, and opposite edges '
        'overlap',
    )
    edge: float = _positive(
        'least gradient of an edge point, in standard deviations of its noise',
        '1',
        4.0,
        'exceeded by the noise of two components with a probability of exp(-8) = 3e-4',
    )
    least_edge: float = _positive(
        'least gradient of an edge point',
        'grey levels/px',
        2.5,
        'quantisation and texture of images without noise; a contrast of 9 grey levels at'
        ' a blur of 1 px has 3.6',
    )

    # --- which hypothesis ---

    plain_rim: float = _share(
        'share of the rim from which on a marker counts as not occluded, and the search ends',
        0.85,
        'windows: with 0.3, 3 of 900 flagged ones are TRACKED and the RMS error grows by 14 %',
    )
    plain_radius: float = quantity(
        'largest ratio of the radius to the expected one, or its inverse, for the search to end',
        above=1.0,
        at_most=10.0,
        default=1.2,
        source='the guess of the radius is within 15 % in the windows',
    )
    smallest_ratio: float = _positive(
        'least radius relative to the expected one, unless most of the rim is seen',
        '1',
        0.7,
        'test_a_size_far_from_the_expected_one_is_flagged; an inner edge at 0.5 is excluded',
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
        'the guess of the radius is within 15 % in the windows',
    )
    smallest_rival: float = _positive(
        'least relative radius of another ellipse that makes a partly visible marker doubtful',
        '1',
        0.6,
        'test_a_lid_on_the_marker_is_not_taken_for_it',
    )
    largest_rival: float = _positive(
        'largest relative radius of such an ellipse', '1', 1.6, 'as smallest_rival'
    )
    nearer: float = _positive(
        'distance by which such an ellipse is nearer to the expected position, in radii',
        '1',
        0.2,
        'test_a_lid_that_is_nearer_is_what_was_meant',
    )

    # --- rim ---

    trusted_rim: float = _share(
        'least share of the rim that fits, for TRACKED',
        0.4,
        'windows: with 0.3, 7 of 900 flagged ones are TRACKED and the RMS error grows by 9 %',
    )
    least_rim: float = _share(
        'least share of the rim that fits, for UNCERTAIN; below: LOST',
        0.3,
        'an arc of 108 deg hardly determines centre and shape of an ellipse',
    )
    new_rim: float = _share(
        'least share of the rim of a marker found without prior knowledge',
        0.6,
        'test_half_a_ring_is_not_found_without_being_asked_for',
    )
    strict_rim: float = _share(
        'the same in a strict search, as of detect without a position',
        0.75,
        'test_letters_are_hardly_rings',
    )
    strict_band: float = _positive(
        'least width of the band of a ring in a strict search',
        'px',
        3.0,
        'test_letters_are_hardly_rings',
    )
    noisiest: float = _share(
        'largest standard deviation of correlated noise, as a share of the contrast',
        0.15,
        'more is not taken for noise by the fit',
    )
    strict_noise: float = _share(
        'the same in a strict search',
        0.05,
        'test_letters_of_a_font_are_no_rings: letters that are no ellipses have 0.06 and 0.14;'
        ' test_a_strict_search_finds_rings',
    )
    safe_rim: float = _share(
        'share of the rim below which an outline beside it makes a marker doubtful',
        0.6,
        'test_a_lid_on_the_marker_is_not_taken_for_it',
    )
    beside: float = _share(
        'share of the rim with another outline beside it, from which on it does',
        0.12,
        '6 of 48 sectors; test_a_second_outline_beside_a_part_of_the_rim_is_flagged',
    )
    least_inner: float = _share(
        'share of the inner edge that is always enough',
        0.4,
        'with 0.33, a window of 1800 in dappled shade with 0.35 is TRACKED and off by 0.48 px; a'
        ' ring of 12 x 7 px drawn without noise has over 0.4. Without, the squared error over the'
        ' variance grows; test_a_near_round_board_is_not_taken_for_a_rings_outer_edge',
    )
    inner_share: float = _share(
        'least share of the inner edge, relative to that of the outer one',
        0.6,
        'as least_inner: an occluder hides about the same share of both edges',
    )

    # --- grey levels ---

    least_contrast: float = _positive(
        'least contrast in standard deviations of the residual',
        '1',
        6.0,
        'test_weak_contrast_is_lost',
    )
    noise_tolerance: float = _positive(
        'factor of the estimated noise that a residual may have',
        '1',
        1.1,
        'windows: without, 4 of 900 flagged ones are TRACKED and the RMS error grows by 17 %',
    )
    unexplained: float = _share(
        'residual beyond the noise, as a share of the contrast',
        0.02,
        'test_polygons_are_no_markers, test_what_sensors_do_is_borne_or_flagged',
    )
    hidden_unexplained: float = _share(
        'the same where less than plain_rim fits',
        0.01,
        'windows: without, 3 of 900 flagged ones are TRACKED and the RMS error grows by 17 %; with'
        ' 0.015, 10 of 1800 in dappled shade are TRACKED, with an error of 0.14 px',
    )
    glare_unexplained: float = _share(
        'the same with saturated pixels at the rim',
        0.01,
        'glare below saturation is not detected by itself; '
        'test_glare_and_what_covers_much_are_flagged',
    )
    shaded_unexplained: float = _share(
        'the same where the edge of a shadow or the light of sectors was estimated',
        0.008,
        'several shadows are not explained by one edge, nor is a spot with sharp edges by light;'
        ' of 1800 windows in dappled shade this and shaded_rim flag 40 with a z^2 of 7',
    )
    shaded_rim: float = _share(
        'least share of the rim where the edge of a shadow or the light of sectors was estimated',
        0.6,
        'as shaded_unexplained; windows: without, 3 of 900 flagged ones are TRACKED',
    )
    unexplained_grey: float = _positive(
        'residual that is always allowed beyond the noise',
        'grey levels',
        0.6,
        'twice the quantisation of 1 / sqrt(12) = 0.29 grey levels',
    )
    softest: float = _positive(
        'largest standard deviation of the blur of lens and focus',
        'px',
        1.8,
        'test_blur_that_no_lens_has_is_flagged',
    )
    fastest: float = _positive(
        'largest standard deviation of the blur along the motion',
        'px',
        3.2,
        'motion by 11 px during the exposure, whose box has a standard deviation of 11 / sqrt(12)',
    )
    brightest: float = _positive(
        'largest grey level of a fit, extrapolated beyond saturation',
        'grey levels',
        380.0,
        '1.5 times full scale: test_white_beyond_the_sensors_range_moves_no_centre',
    )

    # --- geometry and covariance ---

    largest_deviation: float = _positive(
        'largest standard deviation of the centre of a TRACKED marker',
        'px',
        0.08,
        'goal of 0.1 px per axis, with a margin for what is not modelled',
    )
    glare_deviation: float = _positive(
        'the same with saturated pixels at the rim', 'px', 0.07, 'as glare_unexplained'
    )
    perspective: float = _positive(
        'largest perspective of a fit without normal, relative to a plane tilted like its ellipse',
        '1',
        1.5,
        'uncertainty of the tilt that follows from the axes of the ellipse',
    )
    astray: float = _share(
        'largest relative difference between the ellipse and a circle in the given plane',
        0.06,
        'test_a_shape_that_the_plane_cannot_have_is_flagged',
    )
    tilt: float = quantity(
        'largest standard deviation of the given normal, where an ellipse contradicts it',
        'rad',
        at_least=0.0,
        at_most=1.0,
        default=math.radians(5.0),
        source='a sheet fixed by hand; test_a_tilted_or_stretched_marker_has_an_honest_covariance',
    )
    inflation: float = _positive(
        'factor of the variance of the centre',
        '1',
        1.3,
        'nonlinear shading and other effects that are not modelled',
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
