"""Serialised markers: equal to the messages that they were, and what is refused."""

import numpy as np
import pytest
from geometry_msgs.msg import Point
from rclpy.serialization import serialize_message
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray, UVCoordinate

from longreach_dynamics.errors import InputError
from longreach_machine.markers import read_markers
from longreach_tools.fields import numeric_fields


def message():
    """Return markers whose texts and lists have lengths that leave gaps for alignment."""
    first = Marker(ns='beam', id=7, type=Marker.TRIANGLE_LIST, text='5 m', frame_locked=True)
    first.header.frame_id = 'boom/boom_base'
    first.header.stamp.sec, first.header.stamp.nanosec = 3, 4
    first.pose.position.y, first.pose.orientation.z, first.pose.orientation.w = 2.0, 0.6, 0.8
    first.scale.x, first.color = 0.25, ColorRGBA(r=0.5, a=1.0)
    first.points = [Point(x=float(k), z=0.1) for k in range(3)]
    first.colors = [ColorRGBA(g=float(k), a=0.5) for k in range(3)]
    first.texture_resource, first.texture.format = 'wood', 'png'
    first.texture.header.frame_id, first.texture.data = 'none', b'12345'
    first.uv_coordinates = [UVCoordinate(u=1.0)]
    first.mesh_resource, first.mesh_file.filename = 'package://a/b', 'c.stl'
    first.mesh_file.data = b'123'
    return MarkerArray(markers=[first, Marker(action=Marker.DELETE, ns='ü')])


def test_markers_are_those_of_the_message():
    first, second = read_markers(serialize_message(message())).markers
    assert (first.frame, first.name, first.number, first.kind) == ('boom/boom_base', 'beam', 7, 11)
    assert first.position.tolist() == [0.0, 2.0, 0.0]
    assert first.rotation.tolist() == [0.8, 0.0, 0.0, 0.6]
    assert first.scale.tolist() == [0.25, 0.0, 0.0]
    assert first.color.tolist() == [0.5, 0.0, 0.0, 1.0]
    np.testing.assert_array_equal(first.points, [[0, 0, 0.1], [1, 0, 0.1], [2, 0, 0.1]])
    assert first.colors.tolist() == [[0.0, k, 0.0, 0.5] for k in range(3)]
    assert first.text == '5 m'
    assert first.stamp == 3_000_000_004
    assert (second.name, second.action, second.points.shape) == ('ü', Marker.DELETE, (0, 3))


def test_their_numbers_are_signals():
    found = numeric_fields(read_markers(serialize_message(message())))
    assert found['markers[beam].position[1]'] == 2.0


@pytest.mark.parametrize('cut', [3, 4, 6, 20, 150, 500])
def test_what_is_cut_off_is_refused(cut):
    with pytest.raises(InputError, match=f'{cut} bytes are no visualization_msgs/msg/MarkerArray'):
        read_markers(bytes(serialize_message(message()))[:cut])


def test_another_encoding_is_refused():
    with pytest.raises(InputError, match='begins with 0003, allowed: 0000 or 0001'):
        read_markers(b'\0\3\0\0' + bytes(8))
