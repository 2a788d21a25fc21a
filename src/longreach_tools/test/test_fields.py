"""Numbers in messages by name: of rclpy and of recordings alike."""

import pytest
from builtin_interfaces.msg import Duration
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import Point
from longreach_msgs.msg import (
    CraneStatus,
    HydraulicState,
    MarkerEstimate,
    MarkerEstimates,
    MarkerPositions,
    Terrain,
)
from sensor_msgs.msg import JointState, Joy
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint
from visualization_msgs.msg import Marker

from longreach_dynamics.errors import InputError
from longreach_tools.bag import bag_typestore, read_bag
from longreach_tools.fields import (
    Signal,
    near_names,
    numeric_arrays,
    numeric_fields,
    parse_signal,
    read_field,
)
from longreach_tools.testing import write_bag


def joints():
    return JointState(name=['a', 'b'], position=[1.0, 2.0], velocity=[3.0, 4.0], effort=[5.0])


def markers():
    message = MarkerEstimates(stamp_gap=0.25)
    for name, x in (('tip', 1.5), ('truck', 2.5)):
        one = MarkerEstimate(name=name, out_of_plane=0.5)
        one.in_plane.x = x
        message.estimates.append(one)
    return message


def trajectory(points=1):
    values = {'positions': [0.5, 0.75], 'velocities': [0.0], 'effort': [1.0, 2.0]}
    point = JointTrajectoryPoint(**values, time_from_start=Duration(sec=2, nanosec=500_000_000))
    return JointTrajectory(joint_names=['a', 'b'], points=[point] * points)


POINT = Point(x=1.0, y=2.0, z=3.0)
MESSAGES = {
    'joints': (joints(), 'velocity[b]', 4.0),
    'flag': (CraneStatus(brake=True, angle=0.5), 'brake', 1.0),
    'markers': (markers(), 'estimates[truck].in_plane.x', 2.5),
    'covariance': (markers(), 'estimates[tip].in_plane_covariance[8]', 0.0),
    'positions': (MarkerPositions(name=['tip'], position=[POINT]), 'position[tip].z', 3.0),
    'trajectory': (trajectory(), 'points[0].positions[b]', 0.75),
    'as many points as joints': (trajectory(2), 'points[1].positions[b]', 0.75),
    'duration': (trajectory(), 'points[0].time_from_start', 2.5),
    'index': (Joy(axes=[0.0, 0.5]), 'axes[1]', 0.5),
    'diagnostics': (
        DiagnosticArray(status=[DiagnosticStatus(name='crane/plant', level=b'\x02')]),
        'status[crane/plant].level',
        2.0,
    ),
    'same names': (
        JointState(name=['a', 'a'], position=[1.0, 2.0], velocity=[0.0], effort=[0.0]),
        'position[1]',
        2.0,
    ),
}


@pytest.mark.parametrize('name', MESSAGES)
def test_a_field_of_a_message_and_of_a_recording_is_the_same(name, tmp_path):
    message, field, value = MESSAGES[name]
    assert read_field(message, field) == value
    known = numeric_fields(message)
    assert known[field] == value
    bag = write_bag(tmp_path / 'bag', 'machine', [('topic', 0, message)])
    ((_, _, recorded),) = read_bag(bag)
    assert numeric_fields(recorded) == known
    assert [read_field(recorded, one) for one in known] == list(known.values())


def test_transforms_are_named_by_their_frames():
    types = bag_typestore().types
    place = types['geometry_msgs/msg/Vector3'](1.0, 2.0, 3.0)
    turn = types['geometry_msgs/msg/Quaternion'](0.0, 0.0, 0.0, 1.0)
    moved = types['geometry_msgs/msg/Transform'](place, turn)
    entry = types['geometry_msgs/msg/TransformStamped'](Header(), 'car', moved)
    message = types['tf2_msgs/msg/TFMessage']([entry])
    assert read_field(message, 'transforms[car].transform.translation.z') == 3.0
    assert next(iter(numeric_fields(message))) == 'transforms[car].transform.translation.x'


def test_fields_are_in_the_order_of_the_definition_without_header_and_text():
    named = [f'{field}[{name}]' for field in ('position', 'velocity') for name in 'ab']
    assert list(numeric_fields(joints())) == [*named, 'effort[0]']
    assert 'REASON_NONE' not in numeric_fields(CraneStatus())


def test_long_arrays_and_lists_are_no_fields_unless_their_entries_have_names():
    ground = Terrain(firm=[0.5] * 20, loose=[0.0] * 16)
    assert 'firm[0]' not in numeric_fields(ground)
    assert 'loose[15]' in numeric_fields(ground)
    assert {name: len(values) for name, values in numeric_arrays(ground).items()} == {'firm': 20}
    # An index reads them all the same.
    assert read_field(ground, 'firm[19]') == 0.5
    many = HydraulicState(name=[f'c{k}' for k in range(20)], spool=[0.5] * 20)
    assert numeric_fields(many)['spool[c19]'] == 0.5
    line = Marker(points=[POINT] * 17)
    assert not [name for name in numeric_fields(line) if name.startswith('points')]


@pytest.mark.parametrize('field', ['position[c]', 'position[7]', 'position[1]', 'effort[b]'])
def test_an_entry_that_one_message_lacks_is_unknown(field):
    assert read_field(joints(), field) is None


@pytest.mark.parametrize(
    ('field', 'text'),
    [
        ('postion[a]', r'no numeric field of JointState; similar: position\[a\]'),
        ('name[a]', 'no numeric field'),
        ('position[a].x', 'no numeric field'),
        ('position[', r"field 'position\[', allowed"),
        ('header.stamp.sec', 'no numeric field'),
    ],
)
def test_what_is_no_field_is_refused(field, text):
    with pytest.raises(InputError, match=text):
        read_field(joints(), field)


def test_signals_are_a_topic_and_a_field():
    signal = parse_signal('/crane/joint_states.position[car.joint].x')
    assert signal == Signal('/crane/joint_states', 'position[car.joint].x')
    assert str(signal) == '/crane/joint_states.position[car.joint].x'
    assert parse_signal('sensors') == Signal('sensors', '')


@pytest.mark.parametrize('text', ['', '.x', '/a.', '/a.x[', '/a.[0]', '/a.x..y', '/a.x]', '/a.1'])
def test_a_wrongly_written_signal_is_refused(text):
    with pytest.raises(InputError, match=r'allowed: TOPIC or TOPIC\.field'):
        parse_signal(text)


def test_similar_names_come_first():
    known = ['angle', 'angular_velocity', 'car_position', 'force']
    assert near_names('car_postion', known).split(', ')[0] == 'car_position'
    assert near_names('velocity', known) == 'angular_velocity'
    assert near_names('xyz', known, 2) == 'angle, angular_velocity'
