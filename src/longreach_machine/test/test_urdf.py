"""Robot descriptions, as a reader of their text finds them."""

import math
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_dynamics.hydraulics import Cylinder, OilParameters, ValveParameters
from longreach_machine.urdf import (
    LIFT,
    Limit,
    add_box,
    add_joint,
    add_link,
    add_piston,
    add_tube,
    box_inertia,
    cylinder_strength,
    document,
    new_robot,
    numbers,
)

WHOLE = """<?xml version="1.0"?>
<!-- Made for a test.
     In two lines. -->
<robot name="crane">
  <material name="steel">
    <color rgba="0.45 0.48 0.52 1.0" />
  </material>
  <link name="base" />
  <link name="arm">
    <visual>
      <origin xyz="0.5 0 0" />
      <geometry>
        <box size="1 0.2 0.1" />
      </geometry>
      <material name="steel" />
    </visual>
    <collision>
      <origin xyz="0.5 0 0" />
      <geometry>
        <box size="1 0.2 0.1" />
      </geometry>
    </collision>
  </link>
  <joint name="arm_joint" type="revolute">
    <parent link="base" />
    <child link="arm" />
    <origin xyz="0 0 2" />
    <axis xyz="0 -1 0" />
    <limit lower="-1" upper="1.5" effort="10" velocity="0.333333333333" />
  </joint>
</robot>
"""


@pytest.fixture
def root():
    return new_robot('crane', ['steel'])


def reread(root, path):
    """Return an element of the text that is made of a robot."""
    found = ElementTree.fromstring(document(root, 'Made for a test.')).find(path)
    assert found is not None, path
    return found


def read(root, path, name):
    return [float(word) for word in reread(root, path).attrib[name].split()]


def turned(rpy):
    """Return the rotation that URDF means by roll, pitch, yaw: about fixed x, then y, then z."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy), np.sin(rpy)
    about_x = np.array([[1.0, 0.0, 0.0], [0.0, cr, -sr], [0.0, sr, cr]])
    about_y = np.array([[cp, 0.0, sp], [0.0, 1.0, 0.0], [-sp, 0.0, cp]])
    about_z = np.array([[cy, -sy, 0.0], [sy, cy, 0.0], [0.0, 0.0, 1.0]])
    return about_z @ about_y @ about_x


def test_the_whole_text(root):
    add_link(root, 'base')
    add_box(add_link(root, 'arm'), 'steel', (1.0, 0.2, 0.1), (0.5, 0.0, 0.0))
    limit = Limit(lower=-1.0, upper=1.5, effort=10.0, velocity=1.0 / 3.0)
    add_joint(
        root, 'arm_joint', 'revolute', 'base', 'arm', (0.0, 0.0, 2.0), axis=LIFT, limit=limit
    )
    text = document(root, 'Made for a test.\nIn two lines.')
    assert text == WHOLE
    # Nothing is indented twice.
    assert document(root, 'Made for a test.\nIn two lines.') == text


@pytest.mark.parametrize(
    ('values', 'text'),
    [
        ((), ''),
        ((0.0, 1.0, -2.5), '0 1 -2.5'),
        ((1e-7, 1.23e9), '1e-07 1230000000'),
        ((math.pi,), '3.14159265359'),
        ((np.float64(0.1) + np.float64(0.2), 3), '0.3 3'),
    ],
)
def test_numbers_are_written_to_twelve_digits(values, text):
    assert numbers(*values) == text


@pytest.mark.parametrize('value', [math.nan, -math.inf])
def test_numbers_that_no_reader_knows_are_refused(value):
    text = r'a number of the robot description = -?(nan|inf), allowed: finite; correct the machine'
    with pytest.raises(InputError, match=text):
        numbers(0.0, value)


def test_a_tube_reaches_along_x_from_begin_to_end(root):
    add_tube(add_link(root, 'rod'), 'steel', 0.25, -1.5, 0.5, side=0.75)
    sizes = reread(root, 'link/visual/geometry/cylinder').attrib
    assert sizes == {'radius': '0.25', 'length': '2'}
    assert reread(root, 'link/visual/origin').attrib['rpy'] == '0 1.57079632679 0'
    middle = np.array(read(root, 'link/visual/origin', 'xyz'))
    # A cylinder of URDF lies along z.
    half = turned(read(root, 'link/visual/origin', 'rpy')) @ [0.0, 0.0, 1.0]
    np.testing.assert_allclose(middle - half, [-1.5, 0.75, 0.0], atol=1e-11)
    np.testing.assert_allclose(middle + half, [0.5, 0.75, 0.0], atol=1e-11)


OIL = OilParameters(
    supply_pressure=200e5, tank_pressure=0.0, preload=1e5, vapour_pressure=0.0,
    bulk_modulus=1e9, density=800.0, contraction=0.6, laminar_pressure=1e5,
)  # fmt: skip
CYLINDER = Cylinder(
    name='lift', bore=0.2, rod=0.1, stroke=1.5, dead_length=0.01, line_volume=1e-3,
    valve=ValveParameters(area=1e-4, area_ratio=0.5, dead_band=0.0, time_constant=0.1),
)  # fmt: skip


def test_a_piston_slides_from_retracted_to_its_stroke(root):
    add_piston(root, 'lift', OIL, CYLINDER, 2.0, (-0.3, 0.3))
    joint = reread(root, 'joint')
    assert joint.attrib == {'name': 'lift', 'type': 'prismatic'}
    ends = [reread(root, f'joint/{end}').attrib['link'] for end in ('parent', 'child')]
    assert ends == ['lift_barrel', 'lift_rod']
    assert read(root, 'joint/origin', 'xyz') == [2.0, 0.0, 0.0]
    limits = [read(root, 'joint/limit', name)[0] for name in ('lower', 'upper')]
    assert limits == [0.0, 1.5]
    for link in ends:
        for purpose in ('visual', 'collision'):
            shapes = root.findall(f"link[@name='{link}']/{purpose}/origin")
            sides = [float(shape.attrib['xyz'].split()[1]) for shape in shapes]
            assert sides == [-0.3, 0.3]


def test_the_strength_of_a_cylinder_is_that_of_its_supply():
    force, speed = cylinder_strength(OIL, CYLINDER)
    assert force == pytest.approx(200e5 * math.pi * 0.01)
    # 0.6 sqrt(2 / 800 * 200e5) m/s through 1 cm^2 to the head side; half of it to the rod side,
    # whose area is three quarters.
    flow = 0.6 * math.sqrt(5e4) * 1e-4
    assert speed == pytest.approx(max(flow / (0.01 * math.pi), 0.5 * flow / (0.0075 * math.pi)))


def test_inertia_of_a_box():
    assert box_inertia(12.0, (1.0, 2.0, 3.0)) == pytest.approx((13.0, 10.0, 5.0))


def test_links_have_the_prefix_and_joints_do_not(root):
    add_link(root, 'base')
    add_link(root, 'arm')
    add_joint(root, 'arm_joint', 'fixed', 'base', 'arm')
    robot = ElementTree.fromstring(document(root, 'Made for a test.', '/north/'))
    assert [link.attrib['name'] for link in robot.findall('link')] == ['north/base', 'north/arm']
    joint = robot.find('joint')
    assert joint is not None
    assert joint.attrib['name'] == 'arm_joint'
    assert [end.attrib['link'] for end in joint.findall('*[@link]')] == ['north/base', 'north/arm']


def test_two_links_of_one_name_are_refused(root):
    add_link(root, 'arm')
    add_link(root, 'arm')
    with pytest.raises(InputError, match="two links named 'arm', allowed: one; rename parts"):
        document(root, 'Made for a test.')
