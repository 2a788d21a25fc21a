"""The robot description with the sizes of a crane file."""

import xml.etree.ElementTree as ElementTree

import pytest

from longreach_crane.description import robot_description


@pytest.mark.parametrize(
    ('path', 'name', 'expected'),
    [
        # The load hangs a cable's length below the car, the cable is drawn from one to the other.
        ("joint[@name='load_joint']/origin", 'xyz', [0.0, 0.0, -7.25]),
        ("link[@name='cable']//cylinder", 'length', [7.25]),
        ("link[@name='cable']/visual/origin", 'xyz', [0.0, 0.0, -3.625]),
        ("joint[@name='car_joint']/limit", 'lower', [-2.0]),
        ("joint[@name='car_joint']/limit", 'upper', [8.0]),
        ("link[@name='car']/inertial/mass", 'value', [12.5]),
        ("link[@name='load']/inertial/mass", 'value', [80.0]),
        # A cube of 0.5 m: m a^2 / 6.
        ("link[@name='load']//inertia", 'iyy', [80.0 / 24.0]),
        # The track reaches beyond both limits by 0.5 m.
        ("link[@name='track']/visual/origin", 'xyz', [3.0, 0.0, 0.2]),
        ("link[@name='track']//box", 'size', [11.0, 0.1, 0.1]),
        # A positive angle has the load at larger x: a turn about -y.
        ("joint[@name='cable_joint']/axis", 'xyz', [0.0, -1.0, 0.0]),
    ],
)
def test_sizes(crane, path, name, expected):
    other = crane.replace(
        cable_length=7.25, car_mass=12.5, load_mass=80.0, minimum_position=-2.0,
        maximum_position=8.0,
    )  # fmt: skip
    element = ElementTree.fromstring(robot_description(other)).find(path)
    assert [float(word) for word in element.attrib[name].split()] == pytest.approx(expected)
