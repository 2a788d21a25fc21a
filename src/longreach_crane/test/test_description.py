"""The robot description with the sizes of a crane file."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from longreach_crane.description import robot_description
from longreach_crane.parameters import CraneParameters


def tree(crane: CraneParameters) -> ElementTree.Element:
    return ElementTree.fromstring(robot_description(crane))


def numbers(root: ElementTree.Element, path: str, name: str) -> list[float]:
    element = root.find(path)
    assert element is not None, path
    return [float(word) for word in element.attrib[name].split()]


def test_of_another_crane(crane: CraneParameters) -> None:
    other = crane.replace(
        cable_length=7.25, car_mass=12.5, load_mass=80.0,
        minimum_position=-2.0, maximum_position=8.0,
    )  # fmt: skip
    root = tree(other)
    # The load hangs a cable's length below the car, the cable is drawn from one to the other.
    assert numbers(root, "joint[@name='load_joint']/origin", 'xyz') == [0.0, 0.0, -7.25]
    assert numbers(root, "link[@name='cable']//cylinder", 'length') == [7.25]
    assert numbers(root, "link[@name='cable']/visual/origin", 'xyz') == [0.0, 0.0, -3.625]
    assert numbers(root, "joint[@name='car_joint']/limit", 'lower') == [-2.0]
    assert numbers(root, "joint[@name='car_joint']/limit", 'upper') == [8.0]
    assert numbers(root, "link[@name='car']/inertial/mass", 'value') == [12.5]
    assert numbers(root, "link[@name='load']/inertial/mass", 'value') == [80.0]
    # A cube of 0.5 m: m a^2 / 6.
    assert numbers(root, "link[@name='load']//inertia", 'iyy') == pytest.approx([80.0 / 24.0])
    # The track reaches from end to end.
    (x, _, _), (size, _, _) = (
        numbers(root, "link[@name='track']/visual/origin", 'xyz'),
        numbers(root, "link[@name='track']//box", 'size'),
    )
    assert x - size / 2 < -2.0
    assert x + size / 2 > 8.0


def test_joints_are_those_of_joint_states(crane: CraneParameters) -> None:
    joints = {j.attrib['name']: j.attrib['type'] for j in tree(crane).findall('joint')}
    assert joints == {
        'car_joint': 'prismatic',
        'cable_joint': 'continuous',
        'load_joint': 'fixed',
    }
    # A positive angle has the load at larger x: a turn about -y.
    assert numbers(tree(crane), "joint[@name='cable_joint']/axis", 'xyz') == [0.0, -1.0, 0.0]
