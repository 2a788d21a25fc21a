"""Messages of the nodes, where no run of them shows it; forces as they are seen."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from longreach_msgs.msg import Terrain, ValveCommand
from rclpy.serialization import deserialize_message, serialize_message
from std_msgs.msg import Header
from visualization_msgs.msg import Marker

from longreach_dynamics.errors import InputError
from longreach_excavator import nodes
from longreach_excavator.kinematics import pin_places
from longreach_excavator.machine import CLOSED, Excavator, ExcavatorCommand
from longreach_excavator.motion import SIZE
from longreach_excavator.scenario import dig_scenario
from longreach_excavator.terrain import heights
from longreach_excavator.visuals import bucket_load, force_arrows, ground_line
from longreach_machine.machine import BY_SCENARIO

HEADER = Header(stamp=Time(sec=47, nanosec=930_000_000), frame_id='excavator_base')


def test_the_soil_acts_at_the_tooth():
    seen = {'soil_x': 3.0, 'soil_z': -5.0, 'tip_x': 7.0, 'tip_z': -2.0, 'soil_moment': 0.0}
    torque = nodes.soil_force_to_message(seen, HEADER).wrench.torque
    moment = np.cross([7.0, 0.0, -2.0], [3.0, 0.0, -5.0])
    assert [torque.x, torque.y, torque.z] == moment.tolist()
    # A moment about the tooth is positive where it lifts, about -y.
    pressed = nodes.soil_force_to_message(seen | {'soil_moment': 40.0}, HEADER)
    assert pressed.wrench.torque.y == moment[1] - 40.0


def test_terrain(excavator):
    machine = Excavator(excavator, dig_scenario(depth='terrain'))
    state = machine.advance(machine.initial_state(), BY_SCENARIO, 0.0, 1.0)
    ground, volume = machine.constants.ground, state.y[SIZE]
    message = nodes.terrain_to_message(ground, state.y, HEADER)
    again = deserialize_message(serialize_message(message), Terrain)
    assert again.header == HEADER
    assert (again.start, again.cell) == (ground.start, 0.05)
    surfaces = np.add(again.firm, again.loose)
    assert surfaces.tolist() == heights(state.y[SIZE:]).tolist()
    assert again.bucket_volume == volume > 0.1
    assert again.bucket_mass == pytest.approx(volume * 17e3 / 9.81)
    tooth = complex(*(machine.observed(state)[f'tip_{axis}'] for axis in 'xz'))
    (middle, diameter), line = bucket_load(ground, state.y, tooth), ground_line(ground, state.y)
    # The drawn cylinder has the volume, and is between D and the tooth.
    assert math.pi / 4.0 * diameter**2 * ground.width == pytest.approx(volume)
    assert abs(middle - tooth) < excavator.bucket.length
    load = (middle, diameter, ground.width)
    *_, drawn, body = nodes.forces_to_message({}, line, HEADER, load).markers
    assert (drawn.ns, body.ns, body.type) == ('ground', 'load', Marker.CYLINDER)
    assert max(p.z for p in drawn.points) == pytest.approx(line[:, 1].max(), abs=0.05)
    assert (body.action, body.scale.z) == (Marker.ADD, 1.1)
    empty = (middle, 0.0, ground.width)
    (*_, none) = nodes.forces_to_message({}, line, HEADER, empty).markers
    assert none.action == Marker.DELETE


@pytest.mark.parametrize(
    ('given', 'command'),
    [
        ({'spool': [1.0 / 3.0, -1.0, 0.0]}, ExcavatorCommand((1.0 / 3.0, -1.0, 0.0))),
        ({'force': [1e5, -2e5, 3e4]}, ExcavatorCommand(CLOSED.spools, (1e5, -2e5, 3e4))),
        ({'name': ['bucket'], 'force': [3e4]}, ExcavatorCommand(CLOSED.spools, (None, None, 3e4))),
    ],
)
def test_commands(excavator, given, command):
    plant = SimpleNamespace(described=excavator)
    assert nodes.PlantNode.command_of(plant, ValveCommand(**given)) == command


def test_forces_that_no_cylinder_has(excavator):
    message = ValveCommand(force=[0.0, math.nan, 0.0])
    with pytest.raises(InputError, match=r'for arm = nan N, allowed: \[-824479'):
        nodes.PlantNode.command_of(SimpleNamespace(described=excavator), message)


def test_an_empty_chamber_has_the_vapour_pressure(excavator):
    """What the state counts below is missing oil, not a pressure."""
    machine = Excavator(excavator.with_value('oil.vapour_pressure', 2e3), dig_scenario())
    state = machine.initial_state()
    state.y[6:12] = -2.4e7, 7e5, 7e5, 7e5, 7e5, 1e3
    shown = machine.hydraulic_sample(state, CLOSED)
    assert shown.head_pressure + shown.rod_pressure == (2e3, 7e5, 7e5, 7e5, 7e5, 2e3)


def test_arrows_start_at_pins_and_a_metre_is_fifty_kilonewtons(standard):
    machine = Excavator(standard, dig_scenario())
    state = machine.initial_state()
    observed = machine.observed(state)
    arrows = force_arrows(standard, state.y, observed)
    starts = [start for start, _ in arrows.values()]
    assert starts == pin_places(standard, state.y[:3]).tolist()
    links = (standard.boom, standard.arm, standard.bucket)
    # At rest the bucket's joint and its rod PK carry the bucket; the boom's foot and its cylinder
    # all.
    for arrow, part, carried in (('bucket_arm', 'pk', links[2:]), ('boom_chassis', 'boom', links)):
        weight = standard.gravity * sum(link.mass for link in carried)
        held = 50e3 * arrows[arrow][1] + complex(observed[f'{part}_x'], observed[f'{part}_z'])
        assert abs(held - 1j * weight) < 1e-6 * weight
