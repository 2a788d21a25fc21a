"""Robot descriptions, as a reader of their text finds them."""

import math

import pytest

from longreach_dynamics.errors import InputError
from longreach_dynamics.hydraulics import Cylinder, OilParameters, ValveParameters
from longreach_machine.urdf import (
    add_link,
    add_tube,
    box_inertia,
    cylinder_strength,
    document,
    new_robot,
    numbers,
)


@pytest.fixture
def root():
    return new_robot('crane', ['steel'])


@pytest.mark.parametrize('value', [math.nan, -math.inf])
def test_numbers_that_no_reader_knows_are_refused(value):
    text = r'a number of the robot description = -?(nan|inf), allowed: finite; correct the machine'
    with pytest.raises(InputError, match=text):
        numbers(0.0, value)


OIL = OilParameters(
    supply_pressure=200e5, tank_pressure=0.0, preload=1e5, vapour_pressure=0.0,
    bulk_modulus=1e9, density=800.0, contraction=0.6, laminar_pressure=1e5,
)  # fmt: skip
CYLINDER = Cylinder(
    name='lift', bore=0.2, rod=0.1, stroke=1.5, dead_length=0.01, line_volume=1e-3,
    valve=ValveParameters(area=1e-4, area_ratio=0.5, dead_band=0.0, time_constant=0.1),
)  # fmt: skip


def test_the_strength_of_a_cylinder_is_that_of_its_supply():
    force, speed = cylinder_strength(OIL, CYLINDER)
    assert force == pytest.approx(200e5 * math.pi * 0.01)
    # 0.6 sqrt(2 / 800 * 200e5) m/s through 1 cm^2 to the head side; half of it to the rod side,
    # whose area is three quarters.
    flow = 0.6 * math.sqrt(5e4) * 1e-4
    assert speed == pytest.approx(max(flow / (0.01 * math.pi), 0.5 * flow / (0.0075 * math.pi)))


def test_inertia_of_a_box():
    assert box_inertia(12.0, (1.0, 2.0, 3.0)) == pytest.approx((13.0, 10.0, 5.0))


def test_what_is_seen_is_what_collides(root):
    add_tube(add_link(root, 'rod'), 'steel', 0.25, -1.5, 0.5, side=0.75)
    kinds = [
        [part.find(kind) for kind in ('origin', 'geometry/cylinder')]
        for part in root.iter()
        if part.tag in ('visual', 'collision')
    ]
    assert len(kinds) == 2
    assert [one.attrib for one in kinds[0]] == [one.attrib for one in kinds[1]]


def test_two_links_of_one_name_are_refused(root):
    add_link(root, 'arm')
    add_link(root, 'arm')
    with pytest.raises(InputError, match=r"a link of the robot .* has the name 'arm' twice"):
        document(root, 'Made for a test.')
