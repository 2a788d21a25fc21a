"""Linkages against the geometry that they stand for, and the angles at which they end."""

import math

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_dynamics.linkages import Linkage

TRIANGLE = {
    'kind': 'triangle',
    'near': 1.05,
    'far': 2.4,
    'offset_angle': math.pi / 3.0,
    'retracted': 1.9,
}
ROCKER = {'kind': 'rocker', 'lever': 0.62, 'shape': 0.25, 'offset': 1.5}
LINKAGES = [Linkage(**TRIANGLE), Linkage(**ROCKER), Linkage(**(ROCKER | {'shape': 0.49}))]
STROKE = {'triangle': 1.5, 'rocker': 1.7}


def pins(angle):
    """Return the triangle's two pins in the plane of the joint: the fixed and the turned one."""
    # The fixed side points down by the offset angle, the other along the turned link.
    fixed = 1.05 * np.array([math.cos(-math.pi / 3.0), math.sin(-math.pi / 3.0)])
    return fixed, 2.4 * np.array([math.cos(angle), math.sin(angle)])


@pytest.mark.parametrize('angle', np.radians([-5.0, 0.0, 31.0, 85.0]))
def test_triangle_is_the_distance_of_its_pins(angle):
    fixed, turned = pins(angle)
    linkage = LINKAGES[0]
    assert linkage.position(angle) == pytest.approx(
        float(np.linalg.norm(turned - fixed)) - 1.9, abs=1e-14
    )


@pytest.mark.parametrize('angle', [-2.0, -0.3, 0.0, 0.4])
def test_rocker_is_its_formula(angle):
    expected = 0.62 * (0.75 * angle + 0.25 * math.sin(angle)) + 1.5
    assert LINKAGES[1].position(angle) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize('linkage', LINKAGES)
def test_lever_arm_is_the_derivative(linkage):
    step = 1e-5
    for angle in np.linspace(*linkage.angles(STROKE[linkage.kind]), 23):
        slope = linkage.position(angle + step) - linkage.position(angle - step)
        assert linkage.arm(angle) == pytest.approx(slope / (2.0 * step), abs=1e-9)


@pytest.mark.parametrize('linkage', LINKAGES)
def test_angle_is_the_inverse_over_the_whole_stroke(linkage):
    stroke = STROKE[linkage.kind]
    positions = np.linspace(0.0, stroke, 41)
    angles = [linkage.angle(position) for position in positions]
    np.testing.assert_allclose([linkage.position(a) for a in angles], positions, atol=1e-13)
    assert np.all(np.diff(angles) > 0.0)
    assert linkage.angles(stroke) == (angles[0], angles[-1])
    assert min(linkage.arm(angle) for angle in angles) > 0.0


@pytest.mark.parametrize(
    ('linkage', 'position', 'message'),
    [
        (LINKAGES[0], 1.6, r'piston position = 1\.6 m, allowed by the linkage: \[-0\.55, 1\.55\]'),
        (LINKAGES[1], 9.0, r'piston position = 9\.0 m, allowed by the linkage: \[-1\.42168, 4\.'),
        (LINKAGES[1], math.nan, r'piston position = nan m, allowed by the linkage'),
    ],
)
def test_positions_out_of_reach(linkage, position, message):
    with pytest.raises(InputError, match=message):
        linkage.angle(position)


@pytest.mark.parametrize(
    ('base', 'changes', 'message'),
    [
        (TRIANGLE, {'near': 0.0}, r'near = 0\.0, allowed: \(0, inf\) m'),
        (TRIANGLE, {'offset_angle': math.nan}, r'offset_angle = nan, allowed: \(-inf, inf\) rad'),
        (TRIANGLE, {'near': None}, r'near is missing; kind triangle has near, far, offset_angle'),
        (TRIANGLE, {'lever': 1.0}, r'lever belongs to kind rocker; kind triangle has near'),
        (ROCKER, {'shape': 0.5}, r'shape = 0\.5, allowed: \[0, 0\.5\)'),
        (ROCKER, {'offset': None}, r'offset is missing; kind rocker has lever, shape, offset'),
        (ROCKER, {'near': 1.0}, r'near belongs to kind triangle; kind rocker has lever'),
        (ROCKER, {'kind': 'spindle'}, r"kind = 'spindle', allowed: triangle \| rocker"),
    ],
)
def test_impossible_linkages_are_refused(base, changes, message):
    with pytest.raises(InputError, match=message):
        Linkage(**(base | changes))
