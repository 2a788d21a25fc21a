"""Stamps, frames, transforms, named qualities of service, and diagnostics."""

import dataclasses
import sys
from unittest.mock import Mock, call

import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import TransformStamped
from rclpy.node import Node

from longreach_dynamics.errors import InputError
from longreach_node import diagnostics, qos
from longreach_node.frames import FrameParameters, Transforms, frame_name
from longreach_node.parameters import declare
from longreach_node.stamps import nanoseconds_of, seconds_to_nanoseconds, stamp_of
from longreach_node.testing import bench


@pytest.mark.parametrize(
    ('seconds', 'nanoseconds', 'stamp'),
    [
        (0.0, 0, (0, 0)),
        (0.01, 10_000_000, (0, 10_000_000)),
        # As doubles, 0.29 and 0.57 lie below what they mean.
        (0.29, 290_000_000, (0, 290_000_000)),
        (59.57, 59_570_000_000, (59, 570_000_000)),
        (1e9 + 0.5, 1_000_000_000_500_000_000, (1_000_000_000, 500_000_000)),
    ],
)
def test_stamps(seconds, nanoseconds, stamp):
    assert seconds_to_nanoseconds(seconds) == nanoseconds
    message = stamp_of(nanoseconds)
    assert (message.sec, message.nanosec) == stamp
    assert nanoseconds_of(message) == nanoseconds


def test_diagnostics():
    node = Mock()
    # Namespaces stay apart: two cranes are two components.
    node.get_fully_qualified_name.return_value = '/crane/plant'
    component = diagnostics.Diagnostics(node, 'simulation')
    component.publish(Time(sec=3), diagnostics.WARN, '2 overruns', {'overruns': 2, 'time': 0.5})
    ((array,), _) = component.publisher.publish.call_args
    (status,) = array.status
    assert (array.header.stamp, status.level) == (Time(sec=3), diagnostics.WARN)
    assert (status.name, status.hardware_id) == ('crane/plant', 'simulation')
    assert status.message == '2 overruns'
    assert {v.key: v.value for v in status.values} == {'overruns': '2', 'time': '0.5'}


@pytest.mark.parametrize(
    ('namespace', 'words', 'name'),
    [
        ('/north', (), 'north/track'),
        ('/site/north', (), 'site/north/track'),
        ('/', (), 'track'),
        ('/north', ('frame_prefix:=""',), 'track'),
        ('/north', ('frame_prefix:=south_',), 'south_track'),
        # As launch files give it when the namespace begins with a slash; tf2 refuses the slash.
        ('/north', ('frame_prefix:=/north/',), 'north/track'),
        ('/north', ('frame_prefix:="{namespace}_"',), 'north_track'),
    ],
)
def test_frames_begin_with_the_prefix(namespace, words, name):
    given = [word for text in words for word in ('-p', text)]
    with bench('-r', f'__ns:={namespace}', *given) as b:
        node = b.add(lambda: Node('node'))
        assert frame_name(node, declare(node, FrameParameters), 'track') == name


def test_a_prefix_with_white_space_is_refused():
    with pytest.raises(InputError, match=r"frame_prefix = 'a b', allowed: a text without white"):
        FrameParameters(frame_prefix='a b')


@dataclasses.dataclass
class TFMessage:
    """In the place of tf2_msgs/TFMessage, without type support."""

    transforms: list[TransformStamped]


def test_transforms_go_to_their_topics(monkeypatch):
    monkeypatch.setitem(sys.modules, 'tf2_msgs.msg', Mock(TFMessage=TFMessage))
    publishers = {'/tf_static': Mock(), '/tf': Mock()}
    node = Mock()
    node.create_publisher.side_effect = lambda *given: publishers[given[1]]
    transforms = Transforms(node)
    # Those of tf2_ros: a listener that comes later gets the static ones.
    assert node.create_publisher.call_args_list == [
        call(TFMessage, '/tf_static', qos.STATIC_TRANSFORMS),
        call(TFMessage, '/tf', qos.TRANSFORMS),
    ]
    one, two = TransformStamped(child_frame_id='one'), TransformStamped(child_frame_id='two')
    transforms.hold([one, two])
    transforms.send([two])
    transforms.send([])
    publishers['/tf_static'].publish.assert_called_once_with(TFMessage([one, two]))
    publishers['/tf'].publish.assert_called_once_with(TFMessage([two]))


def test_without_tf2_it_is_said_once(monkeypatch, capfd):
    monkeypatch.setitem(sys.modules, 'tf2_msgs.msg', None)
    with bench() as b:
        transforms = Transforms(b.add(lambda: Node('node')))
        transforms.hold([TransformStamped()])
        transforms.send([TransformStamped()])
    assert capfd.readouterr().err.count('tf2_msgs is not installed: no transforms on /tf') == 1
