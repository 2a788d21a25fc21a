"""The controllers as a node: in lockstep with the plant it is the library's closed loop."""

import numpy as np
import pytest
from builtin_interfaces.msg import Duration
from harvesters import STANDARD, shipped
from longreach_msgs.msg import HydraulicState, ValveCommand
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from longreach_dynamics.machine import BY_SCENARIO
from longreach_harvester.control import load_controller
from longreach_harvester.controller_node import ControllerNode
from longreach_harvester.follower import HarvesterFollower, Measurement
from longreach_harvester.machine import Harvester
from longreach_harvester.parameters import JOINTS, default_file, load_harvester
from longreach_harvester.plant_node import PlantNode
from longreach_harvester.scenario import load_scenario
from longreach_harvester.spec import HARVESTER
from longreach_node import qos
from longreach_node.stamps import stamp_of
from longreach_node.testing import bench, setting

POSE = (0.1, 0.55, -1.2)
SAMPLE = 10_000_000  # [ns]
pytestmark = pytest.mark.usefixtures('patient')


@pytest.mark.parametrize(
    ('name', 'machine'), [('tip', 'harvester'), ('sine', 'harvester'), ('tip', 'realistic')]
)
def test_in_lockstep_it_is_the_librarys_closed_loop(name, machine):
    scenario = HARVESTER.find_scenario(name)
    file = default_file()
    if machine == 'realistic':
        file = file.parent / 'harvester_realistic.yaml'
    given = setting('plant', 'controller', scenario=scenario, file=file, lockstep=True)
    with bench(*given, *setting('plant', real_time_factor=0.0, duration=3.0)) as b:
        b.add(ControllerNode)
        plant = b.add(PlantNode)
        b.until(plant.done.done, 'end')
    expected = Harvester(load_harvester(file), load_scenario(scenario))
    state = expected.advance(expected.initial_state(), BY_SCENARIO, 0.0, 3.0)
    np.testing.assert_array_equal(plant.state.y, state.y)
    assert plant.state.spools == state.spools
    assert np.abs(plant.state.y[2] - expected.scenario.angles[2]) > 0.05


def test_without_a_scenario_it_holds_the_pose_and_follows_what_is_sent(capfd):
    with bench() as b:
        commands, node = b.listen(ValveCommand, 'valve_command'), b.add(ControllerNode)
        joints = b.publisher(JointState, 'joint_states')
        hydraulics = b.publisher(HydraulicState, 'hydraulics')
        trajectory = b.publisher(JointTrajectory, 'trajectory', qos.SET_POINT)
        b.until(lambda: b.driver.count_publishers('valve_command') == 1)

        def answer(k, angles=POSE):
            """Return the spools after sample k of joints that stay where they are."""
            header = Header(stamp=stamp_of(k * SAMPLE))
            joints.publish(JointState(header=header, name=JOINTS, position=angles))
            hydraulics.publish(HydraulicState(header=header, name=JOINTS))
            b.until(lambda: len(commands) > k, f'answer to sample {k}')
            return tuple(commands[k].spool)

        assert answer(0) == (0.0, 0.0, 0.0)
        assert answer(1, (0.1, 0.54, -1.2))[1] > 0.05, 'the boom has sunk'
        point = JointTrajectoryPoint(positions=[0.3], time_from_start=Duration(sec=2))
        trajectory.publish(JointTrajectory(joint_names=['swing'], points=[point]))
        b.until(lambda: node._state.trajectory.duration > 1.0, 'trajectory')
        *_, left = (answer(k) for k in range(2, 103))
        assert left[0] > 0.1, 'the swing is half of the way behind'
        assert left[2] == 0.0
        point.positions = [4.0]
        trajectory.publish(JointTrajectory(joint_names=['boom'], points=[point]))
        b.settle()
    said = ''.join(capfd.readouterr())
    assert 'trajectory ignored: waypoint 0 of the trajectory: boom = 4 rad, allowed by' in said


def test_joints_without_a_sine_stay_closed_until_a_trajectory_moves_them():
    guidance = HarvesterFollower(STANDARD, load_controller(), shipped('sine'))
    away = Measurement(np.array([0.0, 0.60, -1.6]))
    state, spools = guidance.answer(None, 0.0, away)
    assert spools == (0.0, 0.0, 0.0)
    # The boom is not looked after, so it is not left behind either.
    assert guidance.answer(state, 0.01, away)[0].resumptions == 0
    # Taken over anew in mid-run, the stick goes back to its sine, the boom is left alone.
    late = Measurement(np.array([0.0, 0.60, -1.4]))
    state, _ = guidance.answer(None, 2.0, late)
    reference = guidance.cycle(state, 3.0, late)[0].trajectory.at(3.0)
    assert np.isnan(reference.angles[:2]).all()
    assert np.isfinite(reference.angles[2])


def test_a_scenario_of_one_cycle_is_followed():
    guidance = HarvesterFollower(STANDARD, load_controller(), shipped('sine', duration=0.004))
    still = Measurement(np.array([0.0, 0.60, -1.6]))
    assert guidance.answer(None, 0.0, still)[1] == (0.0, 0.0, 0.0)
