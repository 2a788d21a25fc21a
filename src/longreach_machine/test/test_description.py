"""Robot descriptions: places against the joints' definitions, and what is refused."""

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_machine.description import parse_description

URDF = """<?xml version="1.0"?>
<robot name="arm">
  <material name="red"><color rgba="1 0 0 1"/></material>
  <link name="tip"/>
  <link name="base"><visual><geometry><box size="2 1 0.5"/></geometry></visual></link>
  <link name="beam">
    <visual>
      <origin xyz="1 0 0" rpy="0 1.5707963267948966 0"/>
      <geometry><cylinder radius="0.1" length="2"/></geometry>
      <material name="red"/>
    </visual>
  </link>
  <joint name="slide" type="prismatic">
    <parent link="beam"/><child link="tip"/>
    <origin xyz="2 0 0"/><axis xyz="2 0 0"/><limit lower="0" upper="1" effort="1" velocity="1"/>
  </joint>
  <joint name="turn" type="revolute">
    <parent link="base"/><child link="beam"/>
    <origin xyz="0 0 1" rpy="0 0 1.5707963267948966"/><axis xyz="0 -1 0"/>
  </joint>
</robot>"""


def test_poses_follow_joints_whose_parents_come_later_in_the_file():
    robot = parse_description(URDF)
    assert (robot.name, robot.root) == ('arm', 'base')
    assert list(robot.joints) == ['turn', 'slide']
    places = robot.place({'turn': np.pi / 6, 'slide': 0.5})
    # The beam points along y, lifted by 30 degrees; its tip is 2.5 m out.
    out, up = 2.5 * np.cos(np.pi / 6), 2.5 * np.sin(np.pi / 6)
    np.testing.assert_allclose(places['tip'][:3, 3], [0.0, out, 1.0 + up], atol=1e-12)
    np.testing.assert_allclose(places['tip'][:3, 0], [0.0, out / 2.5, up / 2.5], atol=1e-12)


MIMIC = """
  <joint name="{}" type="revolute"><parent link="tip"/><child link="{}"/><axis xyz="0 0 1"/>
    <mimic joint="{}" multiplier="{}" offset="{}"/></joint><link name="{}"/></robot>"""


def test_a_joint_mimics_one_that_mimics_another():
    text = URDF.replace('</robot>', MIMIC.format('a', 'c', 'b', 3.0, 0.0, 'c'))
    robot = parse_description(
        text.replace('</robot>', MIMIC.format('b', 'd', 'turn', 2.0, 0.1, 'd'))
    )
    assert robot.joints['a'].position({'turn': 0.2}) == pytest.approx(3.0 * (2.0 * 0.2 + 0.1))
    assert robot.joints['a'].leader == 'turn'
    with pytest.raises(InputError, match=r'joint [ab] mimics itself'):
        parse_description(text.replace('</robot>', MIMIC.format('b', 'd', 'a', 1.0, 0.0, 'd')))


def test_shapes_limits_and_bounds():
    robot = parse_description(URDF)
    (tube,) = [shape for shape in robot.shapes if shape.link == 'beam']
    assert (tube.kind, tube.size, tube.color) == ('cylinder', (0.1, 2.0), (1.0, 0.0, 0.0, 1.0))
    assert robot.joints['slide'].limits == (0.0, 1.0)
    low, high = robot.bounds({})
    np.testing.assert_allclose(low, [-1.0, -0.5, -0.25], atol=1e-12)
    np.testing.assert_allclose(high, [1.0, 2.0, 1.1], atol=1e-12)


def test_a_mesh_is_named_and_left_out():
    text = URDF.replace('<box size="2 1 0.5"/>', '<mesh filename="file:///etc/passwd"/>')
    robot = parse_description(text)
    assert robot.skipped == ('base',)
    assert [shape.link for shape in robot.shapes] == ['beam']


@pytest.mark.parametrize(
    ('old', 'new', 'message'),
    [
        ('</robot>', '', 'not a URDF'),
        ('robot', 'rabbit', 'root element <rabbit>'),
        ('xyz="2 0 0"/><axis', 'xyz="2 0 nan"/><axis', 'allowed: 3 finite numbers'),
        ('xyz="2 0 0"/><axis', 'xyz="2 0"/><axis', '3 finite numbers'),
        ('<axis xyz="0 -1 0"/>', '<axis xyz="0 0 0"/>', 'turn: its axis has no length'),
        ('<parent link="base"/>', '<parent link="tip"/>', 'links without a parent|form a loop'),
        ('<link name="tip"/>', '<link name="tip"/><link name="alone"/>', '2 links without a par'),
        ('</robot>', MIMIC.format('a', 'beam', 'turn', 1, 0, 'c'), '2 joints have the child beam'),
        ('</robot>', MIMIC.format('turn', 'c', 'b', 1, 0, 'c'), '2 joints have the name turn'),
        ('</robot>', MIMIC.format('a', 'c', 'turn', 'nan', 0, 'c'), "'nan', allowed: 1 finite"),
    ],
)
def test_descriptions_that_cannot_be_shown_are_refused(old, new, message):
    with pytest.raises(InputError, match=message):
        parse_description(URDF.replace(old, new))
