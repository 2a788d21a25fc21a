"""The plant as a node: logs come and go by service, a head that hangs is in the topics."""

import dataclasses

import numpy as np
import pytest
from geometry_msgs.msg import InertiaStamped
from harvesters import REALISTIC
from longreach_msgs.srv import AttachLoad
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from visualization_msgs.msg import Marker, MarkerArray

from longreach_harvester.kinematics import tip_at
from longreach_harvester.machine import Harvester
from longreach_harvester.nodes import PlantNode
from longreach_harvester.parameters import default_file
from longreach_harvester.scenario import LogEvent
from longreach_machine.machine import BY_SCENARIO
from longreach_node import qos
from longreach_node.testing import bench, setting

FILE = default_file().parent / 'harvester_realistic.yaml'


@pytest.fixture
def rig():
    """A plant, paused in its first sample."""
    with bench(*setting(real_time_factor=0.0, start_paused=True, file=FILE)) as b:
        b.joints = b.listen(JointState, 'joint_states')
        b.plant = b.add(PlantNode)
        b.until(lambda: b.joints, 'first sample')
        yield b


def attach(b, **fields):
    return b.call(AttachLoad, 'plant/attach_load', AttachLoad.Request(**fields))


def test_logs_come_and_go_by_service(rig):
    changes = rig.listen(InertiaStamped, 'load', qos.CHANGES)
    answer = attach(rig, mass=300.0)
    assert (answer.success, answer.message) == (True, '300 kg in the grapple from 0 s on')
    machine = Harvester(REALISTIC, rig.plant.machine.scenario)
    state = machine.attach(machine.initial_state(), 300.0)
    assert rig.call(Trigger, 'plant/step').success
    state = machine.advance(state, BY_SCENARIO, 0.0, 0.01)
    np.testing.assert_array_equal(rig.plant.state.y, state.y)
    answer = rig.call(Trigger, 'plant/release_load')
    assert (answer.success, answer.message) == (True, '300 kg released at 0.01 s')
    assert not rig.call(Trigger, 'plant/release_load').success
    rig.until(lambda: len(changes) == 3, 'changes of the load')
    shown = [(change.header.stamp.nanosec, change.inertia.m) for change in changes]
    assert shown == [(0, 0.0), (0, 300.0), (10_000_000, 0.0)]
    # What a recording that begins anew has no more is published again.
    assert rig.call(Trigger, 'plant/reset').success
    rig.until(lambda: len(changes) == 4, 'the load after the reset')
    assert (changes[3].header.stamp.nanosec, changes[3].inertia.m) == (0, 0.0)


def test_a_log_is_refused_before_those_of_the_scenario(rig):
    machine = rig.plant.machine
    later = machine.scenario.replace(attach=(LogEvent(time=1.0, mass=5.0),))
    rig.plant.machine = dataclasses.replace(machine, scenario=later)
    answer = attach(rig, mass=300.0)
    assert not answer.success
    assert 'the scenario changes the log at 1 s, allowed: to attach one after' in answer.message


def test_impossible_logs_are_refused(rig):
    for fields in ({'beam': 'stick'}, {'position': 0.5}):
        answer = attach(rig, mass=100.0, **fields)
        assert not answer.success
        assert 'allowed for a harvester: neither' in answer.message


def test_the_swing_of_the_head_is_drawn_beside_the_vertical(rig):
    shown = rig.listen(MarkerArray, 'forces', qos.VISUAL)
    rig.until(lambda: shown, 'drawing')
    # The first drawing removes that of a plant that ran before.
    first, *markers = shown[0].markers
    assert first.action == Marker.DELETEALL
    lines = {marker.ns: marker.points for marker in markers}
    assert set(lines) == {'boom', 'stick', 'vertical', 'head'}
    down, along = ([(p.x, p.y, p.z) for p in lines[name]] for name in ('vertical', 'head'))
    # At rest it hangs straight down.
    np.testing.assert_allclose(down, along, atol=1e-6)
    np.testing.assert_allclose(down[0], tip_at(REALISTIC, rig.plant.state.y[:3]))
