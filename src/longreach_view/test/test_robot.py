"""Robot descriptions: poses against the joints' definitions, and what is refused."""

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_view.robot import parse_robot, rotated

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
    robot = parse_robot(URDF)
    assert (robot.name, robot.root) == ('arm', 'base')
    assert [joint.name for joint in robot.joints] == ['turn', 'slide']
    poses = robot.poses({'turn': np.pi / 6, 'slide': 0.5})
    # The beam points along y, lifted by 30 degrees; its tip is 2.5 m out.
    out, up = 2.5 * np.cos(np.pi / 6), 2.5 * np.sin(np.pi / 6)
    np.testing.assert_allclose(poses['tip'].position, [0.0, out, 1.0 + up], atol=1e-12)
    ahead = rotated(poses['tip'].rotation, np.array([1.0, 0.0, 0.0]))
    np.testing.assert_allclose(ahead, [0.0, out / 2.5, up / 2.5], atol=1e-12)


def test_shapes_limits_and_bounds():
    robot = parse_robot(URDF)
    (tube,) = robot.shapes['beam']
    assert (tube.kind, tube.size, tube.color) == ('cylinder', (0.1, 2.0), (1.0, 0.0, 0.0, 1.0))
    assert robot.joints[1].limits == (0.0, 1.0)
    low, high = robot.bounds({})
    np.testing.assert_allclose(low, [-1.0, -0.5, -0.25], atol=1e-12)
    np.testing.assert_allclose(high, [1.0, 2.0, 1.1], atol=1e-12)


def test_a_mesh_is_named_and_left_out():
    text = URDF.replace('<box size="2 1 0.5"/>', '<mesh filename="file:///etc/passwd"/>')
    robot = parse_robot(text)
    assert robot.skipped == ('base',)
    assert robot.shapes['base'] == ()


@pytest.mark.parametrize(
    ('old', 'new', 'message'),
    [
        ('</robot>', '', 'no XML'),
        ('robot', 'rabbit', 'root <rabbit>'),
        ('xyz="2 0 0"/><axis', 'xyz="2 0 nan"/><axis', 'xyz'),
        ('xyz="2 0 0"/><axis', 'xyz="2 0"/><axis', '3 finite numbers'),
        ('<axis xyz="0 -1 0"/>', '<axis xyz="0 0 0"/>', 'turn needs'),
        ('<parent link="base"/>', '<parent link="tip"/>', 'links without parent|hangs on'),
        ('<link name="tip"/>', '<link name="tip"/><link name="alone"/>', '2 links without parent'),
    ],
)
def test_descriptions_that_cannot_be_shown_are_refused(old, new, message):
    with pytest.raises(InputError, match=message):
        parse_robot(URDF.replace(old, new))
