"""Between the library's objects and messages: every field, there and back."""

from __future__ import annotations

import math

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from longreach_msgs.msg import HydraulicState, ValveCommand
from longreach_msgs.srv import AttachLoad
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from visualization_msgs.msg import Marker

from longreach_boom import conversions
from longreach_boom.hydraulic_state import Flows
from longreach_boom.parameters import BoomParameters
from longreach_boom.scenario import HangingLoad
from longreach_boom.state import BoomCommand, StateParts
from longreach_boom.visuals import BeamShape, MarkerMotion
from longreach_dynamics.errors import InputError
from longreach_node.hydraulic_messages import hydraulic_state, valve_command

STAMP = Time(sec=47, nanosec=930_000_000)
HEADER = Header(stamp=STAMP, frame_id='boom_base')
NAMES = ['cylinder_1', 'cylinder_2', 'cylinder_3', 'cylinder_4']
BEAMS = ['beam_1', 'beam_2', 'beam_3', 'beam_4']


def numbers(start: float) -> np.ndarray:
    return start + np.arange(4) / 3.0


def test_hydraulics() -> None:
    parts = StateParts(np.zeros(12), np.zeros(12), numbers(1.0), numbers(2.0), numbers(3.0))
    flows = Flows(numbers(4.0), numbers(5.0))
    message = conversions.hydraulics_to_message(NAMES, parts, flows, HEADER)
    again = deserialize_message(serialize_message(message), HydraulicState)
    assert (again.header, again.name) == (HEADER, NAMES)
    fields = ('head_pressure', 'rod_pressure', 'spool', 'head_flow', 'rod_flow')
    for start, field in enumerate(fields, start=1):
        assert list(getattr(again, field)) == numbers(start).tolist(), field


def test_sensors_fill_their_own_fields_only() -> None:
    message = hydraulic_state(NAMES, numbers(1.0), numbers(2.0), HEADER)
    assert (message.header, message.name) == (HEADER, NAMES)
    assert list(message.head_pressure) == numbers(1.0).tolist()
    assert list(message.rod_pressure) == numbers(2.0).tolist()
    assert not any(len(getattr(message, f)) for f in ('head_flow', 'rod_flow', 'spool'))


def test_markers() -> None:
    positions, velocities = np.arange(6.0).reshape(2, 3), np.arange(6.0, 12.0).reshape(2, 3)
    motion = MarkerMotion(('truck', 'marker_1'), positions, velocities)
    message = conversions.markers_to_message(motion, HEADER)
    assert (message.header, message.name) == (HEADER, ['truck', 'marker_1'])
    assert [(p.x, p.y, p.z) for p in message.position] == [(0.0, 1.0, 2.0), (3.0, 4.0, 5.0)]
    assert [(v.x, v.y, v.z) for v in message.velocity] == [(6.0, 7.0, 8.0), (9.0, 10.0, 11.0)]


def test_shape_is_both_sides_of_each_beam() -> None:
    line = np.array([[0.0, 1.0], [2.0, 3.0]])
    shapes = [
        BeamShape(
            name,
            line + i,
            np.stack([line + i - [0.0, 0.25], line + i + [0.0, 0.25]]),
            0.5,
            np.zeros(2),
        )
        for i, name in enumerate(BEAMS[:2])
    ]
    colours = [np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])] * 2
    first, second = conversions.shape_to_message(shapes, colours, HEADER).markers
    assert first.header == HEADER
    assert first.type == Marker.TRIANGLE_LIST
    assert first.pose.orientation.w == 1.0
    assert first.scale.x == first.scale.y == first.scale.z == 1.0
    assert (first.ns, first.id) != (second.ns, second.id)
    # Two triangles on each side of the beam, which cover 2 m by 0.5 m.
    corners = np.array([[p.x, p.y, p.z] for p in first.points]).reshape(4, 3, 3)
    assert (corners[:2, :, 1] < -0.5).all()
    assert (corners[2:, :, 1] > 0.5).all()
    edges = corners[:, 1:] - corners[:, :1]
    assert np.linalg.norm(np.cross(edges[:, 0], edges[:, 1]), axis=1) / 2.0 == pytest.approx(0.5)
    assert {tuple(p) for p in corners[:2, :, ::2].reshape(-1, 2).tolist()} == {
        (0.0, 0.75), (2.0, 2.75), (0.0, 1.25), (2.0, 3.25),
    }  # fmt: skip
    # Each corner has the colour of its place along the beam.
    assert len(first.colors) == len(first.points)
    for point, colour in zip(first.points, first.colors, strict=True):
        assert (colour.r, colour.a) == ((0.1 if point.x < 1.0 else 0.4), 1.0)


def test_commands() -> None:
    command = BoomCommand((1.0 / 3.0, -1.0, 0.0, 1.0))
    message = valve_command(NAMES, HEADER, command.spools)
    again = deserialize_message(serialize_message(message), ValveCommand)
    assert (again.header, again.name) == (HEADER, NAMES)
    assert conversions.command_from_message(again, NAMES) == command


def test_a_command_by_names_in_any_order_closes_the_others() -> None:
    message = ValveCommand(name=['cylinder_3', 'cylinder_1'], spool=[0.3, -0.1])
    assert conversions.command_from_message(message, NAMES) == BoomCommand((-0.1, 0.0, 0.3, 0.0))
    message = ValveCommand(spool=[0.1, 0.2, 0.3, 0.4])
    assert conversions.command_from_message(message, NAMES) == BoomCommand((0.1, 0.2, 0.3, 0.4))


@pytest.mark.parametrize(
    ('names', 'spools', 'error'),
    [
        ([], [0.0] * 3, 'has 3 values, allowed: 4'),
        ([], [], 'has 0 values, allowed: 4'),
        (['cylinder_1'], [0.0, 0.0], 'has 2 values, allowed: 1'),
        (['boom'], [0.0], r"the name 'boom', allowed, each once: cylinder_1 \| cylinder_2"),
        (['cylinder_1', 'cylinder_1'], [0.0, 0.0], "the name 'cylinder_1', allowed, each once"),
        ([], [0.0, 0.0, math.nan, 0.0], r'for cylinder_3 = nan, allowed: \[-1, 1\]'),
        ([], [0.0, 1.01, 0.0, 0.0], r'for cylinder_2 = 1\.01, allowed: \[-1, 1\]'),
        (['cylinder_4'], [-math.inf], r'for cylinder_4 = -inf, allowed: \[-1, 1\]'),
    ],
)
def test_commands_that_cannot_be(names: list[str], spools: list[float], error: str) -> None:
    with pytest.raises(InputError, match=error):
        conversions.command_from_message(ValveCommand(name=names, spool=spools), NAMES)


def test_the_boom_takes_no_forces() -> None:
    message = ValveCommand(force=[0.0] * 4)
    with pytest.raises(InputError, match='4 forces, allowed: spool positions only'):
        conversions.command_from_message(message, NAMES)


def test_loads(boom: BoomParameters) -> None:
    assert conversions.load_from_request(AttachLoad.Request(mass=5.0)).position is None
    load = conversions.load_from_request(AttachLoad.Request(mass=5.0, position=math.nan))
    assert load == HangingLoad(5.0)
    load = conversions.load_from_request(AttachLoad.Request(mass=5.0, beam='beam_2', position=0.0))
    assert load == HangingLoad(5.0, 'beam_2', 0.0)
    for request, error in (
        (AttachLoad.Request(mass=0.0), r'mass = 0\.0, allowed: \(0'),
        (AttachLoad.Request(mass=math.nan), 'mass = nan, allowed'),
        (AttachLoad.Request(mass=1.0, position=-2.0), r'position = -2\.0, allowed'),
        (AttachLoad.Request(mass=1.0, position=math.inf), 'position = inf, allowed'),
    ):
        with pytest.raises(InputError, match=error):
            conversions.load_from_request(request)


def sample() -> tuple[JointState, HydraulicState]:
    names = [*NAMES[::-1], 'else', *(f'{beam}_joint' for beam in BEAMS)]
    joints = JointState(name=names, position=[4.0, 3.0, 2.0, 1.0, 9.0, 0.1, 0.2, 0.3, 0.4])
    hydraulics = HydraulicState(name=NAMES, head_pressure=[5.0] * 4, rod_pressure=[6.0] * 4)
    return joints, hydraulics


def test_measurements_go_by_names(boom: BoomParameters) -> None:
    measured = conversions.measurement_from_messages(boom, *sample())
    assert measured.angles.tolist() == [0.1, 0.2, 0.3, 0.4]
    assert measured.pistons.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert measured.head_pressures.tolist() == [5.0] * 4
    assert measured.rod_pressures.tolist() == [6.0] * 4


def test_measurements_that_are_none(boom: BoomParameters) -> None:
    joints, hydraulics = sample()
    joints.position[1] = math.nan
    with pytest.raises(InputError, match='joint_states has nan for cylinder_3, allowed: finite'):
        conversions.measurement_from_messages(boom, joints, hydraulics)
    joints, hydraulics = sample()
    hydraulics.rod_pressure = hydraulics.rod_pressure[:2]
    with pytest.raises(InputError, match='hydraulics has no value for cylinder_3'):
        conversions.measurement_from_messages(boom, joints, hydraulics)
