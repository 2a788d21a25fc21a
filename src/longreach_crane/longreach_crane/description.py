"""The robot description of a crane, with the sizes of its crane file."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from longreach_crane.parameters import CraneParameters
from longreach_dynamics.resources import share_directory

__all__ = ['ROOT_FRAME', 'robot_description']

# The frame of the track, along whose x axis the car's position counts.
ROOT_FRAME = 'track'


def robot_description(crane: CraneParameters) -> str:
    """
    Return the URDF of a crane: urdf/crane.urdf with its limits, cable length and masses.

    Parameters
    ----------
    crane : CraneParameters
    """
    tree = ElementTree.parse(share_directory('longreach_crane') / 'urdf' / 'crane.urdf')
    root = tree.getroot()
    length = crane.cable_length
    low, high = crane.minimum_position, crane.maximum_position

    def element(path: str) -> ElementTree.Element:
        found = root.find(path)
        assert found is not None, f'crane.urdf has no {path}'
        return found

    limit = element("joint[@name='car_joint']/limit")
    limit.set('lower', f'{low:.9g}')
    limit.set('upper', f'{high:.9g}')
    element("link[@name='track']/visual/origin").set('xyz', f'{(low + high) / 2:.9g} 0 0.2')
    element("link[@name='track']/visual/geometry/box").set('size', f'{high - low + 1:.9g} 0.1 0.1')
    element("link[@name='cable']/visual/origin").set('xyz', f'0 0 {-length / 2:.9g}')
    element("link[@name='cable']/visual/geometry/cylinder").set('length', f'{length:.9g}')
    element("joint[@name='load_joint']/origin").set('xyz', f'0 0 {-length:.9g}')
    element("link[@name='car']/inertial/mass").set('value', f'{crane.car_mass:.9g}')
    element("link[@name='load']/inertial/mass").set('value', f'{crane.load_mass:.9g}')
    return ElementTree.tostring(root, encoding='unicode', xml_declaration=True)
