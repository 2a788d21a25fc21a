"""Commands to valves, values by name, messages that ask for motions of joints."""

import math

import numpy as np
import pytest
from builtin_interfaces.msg import Duration, Time
from longreach_msgs.msg import ValveCommand
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from longreach_dynamics.errors import InputError
from longreach_node.conversions import (
    MOST_POINTS,
    check_size,
    finite_values,
    joint_values,
    order_from_message,
    spools_from_message,
    values_from_command,
)

NAMES = ['a', 'b', 'c']
JOINTS = ['beam_1_joint', 'beam_2_joint', 'beam_3_joint', 'beam_4_joint']


def test_a_command_by_names_in_any_order_closes_the_others():
    message = ValveCommand(name=['c', 'a'], spool=[0.3, -0.1])
    assert spools_from_message(message, NAMES, 'valve_command') == (-0.1, 0.0, 0.3)
    message = ValveCommand(spool=[0.1, 0.2, 0.3])
    assert spools_from_message(message, NAMES, 'valve_command') == (0.1, 0.2, 0.3)
    message = ValveCommand(name=['b'], force=[5.0])
    assert values_from_command(message, NAMES, 'valve_command', True) == ({}, {'b': 5.0})


@pytest.mark.parametrize(
    ('fields', 'error'),
    [
        ({'spool': [0.0] * 2}, 'has 2 values, allowed: 3'),
        ({'name': ['a'], 'spool': [0.0, 0.0]}, 'has 2 values, allowed: 1'),
        ({'name': ['d'], 'spool': [0.0]}, r"the name 'd', allowed, each once: a \| b"),
        ({'name': ['a', 'a'], 'spool': [0.0] * 2}, "the name 'a', allowed, each once"),
        ({'spool': [0.0, math.nan, 0.0]}, r'for b = nan, allowed: \[-1, 1\]'),
        ({'spool': [0.0, 0.0, -1.01]}, r'for c = -1\.01, allowed: \[-1, 1\]'),
        ({'force': [0.0] * 3}, '3 forces, allowed: spool positions only'),
    ],
)
def test_commands_that_cannot_be(fields, error):
    with pytest.raises(InputError, match=error):
        spools_from_message(ValveCommand(**fields), NAMES, 'valve_command')


def test_values_by_name_are_finite_and_complete():
    found = finite_values('joint_states', ['b', 'x', 'a'], [2.0, math.nan, 1.0], ['a', 'b'])
    np.testing.assert_array_equal(found, [1.0, 2.0])
    with pytest.raises(InputError, match='joint_states has no value for c'):
        finite_values('joint_states', ['a'], [1.0], ['c'])
    with pytest.raises(InputError, match='joint_states has nan for a, allowed: finite'):
        finite_values('joint_states', ['a'], [math.nan], ['a'])


# --- joints ----------------------------------------------------------------------------------


def test_values_are_by_name_or_all_in_order():
    told = joint_values('joint_position', 'rad', ['beam_3_joint'], [0.3], JOINTS)
    assert told == {'beam_3_joint': 0.3}
    assert list(joint_values('joint_position', 'rad', [], [1, 2, 3, 4], JOINTS)) == JOINTS
    with pytest.raises(InputError, match='joint_position for beam_1_joint = nan rad, allowed'):
        joint_values('joint_position', 'rad', ['beam_1_joint'], [math.nan], JOINTS)


def test_a_trajectory_has_a_largest_size():
    check_size(bytes(400 * MOST_POINTS))
    with pytest.raises(InputError, match=r'has 2,000,001 bytes, allowed: 2,000,000'):
        check_size(bytes(400 * MOST_POINTS + 1))
    many = JointTrajectory(points=[point(1.0, 1.0, 2.0, 3.0, 4.0)] * (MOST_POINTS + 1))
    with pytest.raises(InputError, match='has 5001 points, allowed: up to 5000; send'):
        order_from_message(many, JOINTS)


def point(seconds, *positions):
    whole = math.floor(seconds)
    time = Duration(sec=whole, nanosec=round((seconds - whole) * 1e9))
    return JointTrajectoryPoint(positions=positions, time_from_start=time)


def test_orders():
    message = JointTrajectory(
        header=Header(stamp=Time(sec=47, nanosec=930_000_000)),
        joint_names=['beam_3_joint', 'beam_1'],
        points=[point(0.5, 0.1, 0.2), point(2.25, 0.3, 0.4)],
    )
    order = order_from_message(message, JOINTS)
    assert order.joints == (2, 0)
    assert order.times == [0.5, 2.25]
    assert order.angles == [[0.1, 0.2], [0.3, 0.4]]
    assert order.start == 47.93
    order = order_from_message(JointTrajectory(points=[point(1.0, 1, 2, 3, 4)]), JOINTS)
    assert (order.joints, order.start) == ((0, 1, 2, 3), 0.0)
    assert order_from_message(JointTrajectory(), JOINTS).times == []


@pytest.mark.parametrize(
    ('names', 'positions', 'error'),
    [
        (['arm'], [0.1], r"the joint 'arm', allowed, each once: beam_1_joint \| beam_2_joint"),
        (['beam_1', 'beam_1_joint'], [0.1, 0.2], "the joint 'beam_1_joint', allowed, each once"),
        (['beam_1'], [0.1, 0.2], 'point 0 of the trajectory has 2 values, allowed: 1'),
        ([], [], 'has 0 values, allowed: 4'),
    ],
)
def test_orders_that_cannot_be(names, positions, error):
    message = JointTrajectory(joint_names=names, points=[point(1.0, *positions)])
    with pytest.raises(InputError, match=error):
        order_from_message(message, JOINTS)


@pytest.mark.parametrize(
    ('place', 'value', 'error'),
    [
        ('positions', math.nan, 'has nan in positions of beam_3 in point 1, allowed: finite'),
        ('velocities', math.inf, 'has inf in velocities of beam_3 in point 1, allowed: finite'),
        ('accelerations', math.nan, 'has nan in accelerations of beam_3 in point 1, allowed'),
        ('time_from_start', Duration(sec=-1), 'time_from_start of point 1 has sec = -1 and'),
        ('time_from_start', Duration(nanosec=10**9), 'point 1 has sec = 0 and nanosec = 1000000'),
        (
            'stamp',
            Time(sec=-1),
            'header.stamp of the trajectory has sec = -1 and nanosec = 0, all',
        ),
        ('stamp', Time(nanosec=4 * 10**9), 'trajectory has sec = 0 and nanosec = 4000000000'),
    ],
)
def test_numbers_and_times_that_cannot_be(place, value, error):
    points = [point(seconds, 0.1, 0.2) for seconds in (0.5, 2.25)]
    for each in points:
        each.velocities = each.accelerations = [0.0, 0.0]
    message = JointTrajectory(joint_names=['beam_1', 'beam_3'], points=points)
    if place == 'stamp':
        message.header.stamp = value
    elif place == 'time_from_start':
        points[1].time_from_start = value
    else:
        setattr(points[1], place, [0.0, value])
    with pytest.raises(InputError, match=error):
        order_from_message(message, JOINTS)
    # An order to stop comes at once, whatever its stamp.
    if place == 'stamp':
        message.points = []
        assert order_from_message(message, JOINTS).start == 0.0
