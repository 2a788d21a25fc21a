"""The controller as a node: it must answer what BoomFollower does, cycle by cycle."""

import math

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from longreach_msgs.msg import HydraulicState, ValveCommand
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from longreach_boom.follower import BoomFollower, Measurement
from longreach_boom.model import constants_of
from longreach_boom.nodes import ControllerNode, PlantNode
from longreach_boom.state import piston_positions
from longreach_machine.control import JointController
from longreach_node import diagnostics, qos
from longreach_node.stamps import nanoseconds_of, stamp_of
from longreach_node.testing import bench, setting

SAMPLE = 5_000_000  # [ns]
pytestmark = pytest.mark.usefixtures('patient')
SITE = np.radians((70.0, -50.0, -35.0, -30.0))
WAVE = """
duration: 1.5
pose: site
loads: [{mass: 90.0}]
release: [0.102]
trajectory:
  - {time: 0.1, angles_deg: [70, -50, -35, -30]}
  - {time: 1.4, angles_deg: [69.5, -49, -34, -28]}
"""


def pushed(k):
    """Return angles [rad] of a boom that moves; not a solution of anything."""
    return SITE + 0.01 * math.sin(0.3 * k)


class Rig:
    """A controller, and a driver in the plant's place."""

    def __init__(self, b, boom):
        self.bench, self.boom = b, boom
        self.commands = b.listen(ValveCommand, 'valve_command')
        self.reports = b.listen(DiagnosticArray, '/diagnostics', qos.DIAGNOSTICS)
        self.node = b.add(ControllerNode)
        self.joints = b.publisher(JointState, 'joint_states')
        self.hydraulics = b.publisher(HydraulicState, 'hydraulics')
        self.trajectory = b.publisher(JointTrajectory, 'trajectory', qos.SET_POINT)
        b.until(lambda: b.driver.count_publishers('valve_command') == 1)

    def measured(self, k):
        angles = pushed(k)
        pistons = piston_positions(angles, constants_of(self.boom))
        return Measurement(angles, pistons, np.full(4, 1.5e7), np.full(4, 5e6))

    def send_joints(self, k):
        measured = self.measured(k)
        names = [f'{beam.name}_joint' for beam in self.boom.beams]
        names += [cylinder.name for cylinder in self.boom.cylinders]
        position = [*measured.angles.tolist(), *measured.pistons.tolist()]
        header = Header(stamp=stamp_of(k * SAMPLE))
        self.joints.publish(JointState(header=header, name=names, position=position))

    def send_hydraulics(self, k, head=1.5e7):
        self.hydraulics.publish(
            HydraulicState(
                header=Header(stamp=stamp_of(k * SAMPLE)),
                name=[cylinder.name for cylinder in self.boom.cylinders],
                head_pressure=[head] * 4,
                rod_pressure=[5e6] * 4,
            )
        )

    def send(self, *samples):
        for k in samples:
            self.send_joints(k)
            self.send_hydraulics(k)

    def answers(self, count):
        """Wait for so many commands, and make sure that there are no more."""
        self.bench.until(lambda: len(self.commands) >= count, f'command number {count}')
        self.bench.settle(10)
        assert len(self.commands) == count
        return [(nanoseconds_of(c.header.stamp) // SAMPLE, tuple(c.spool)) for c in self.commands]


@pytest.fixture
def rig(boom):
    """A controller that holds the pose of its first sample."""
    with bench() as b:
        yield Rig(b, boom)


def expected(rig, samples):
    """Return the library's answers."""
    guidance = BoomFollower(rig.boom, None, 0.005)
    state = guidance.begin(pushed(samples[0]))
    told = []
    for k in samples:
        state, command = guidance.cycle(state, k * SAMPLE / 1e9, rig.measured(k))
        told.append((k, command))
    return told


def test_streamed_positions_are_followed(rig, capfd):
    stream = rig.bench.publisher(JointState, 'joint_position', qos.SET_POINT)
    # As topic_based_ros2_control sends it.
    names = [f'{beam.name}_joint' for beam in rig.boom.beams]
    good = JointState(name=names, position=[1.2, -0.9, -0.6, -0.4])
    stream.publish(good)
    rig.bench.settle()
    rig.send(0, 1)
    rig.answers(2)
    stream.publish(good)
    stream.publish(JointState(name=['arm'], position=[0.0]))
    stream.publish(JointState(position=[9.0] * 4))
    rig.bench.settle()
    rig.send(*range(2, 30))
    told = rig.answers(30)
    guidance = BoomFollower(rig.boom, None, 0.005)
    state = guidance.begin(pushed(0))
    for k in range(30):
        if k == 2:
            wanted = dict(enumerate(good.position))
            state = guidance.stream(state, SAMPLE / 1e9, wanted)
        state, command = guidance.cycle(state, k * SAMPLE / 1e9, rig.measured(k))
        assert told[k] == (k, command)
    said = ''.join(capfd.readouterr())
    assert 'ignored: no sample of the boom has come yet' in said


def test_gains_can_be_set_at_run_time(rig):
    samples = [0, 5, 6, 7]
    rig.send(0, 5)
    rig.answers(2)
    (result,) = rig.node.set_parameters([Parameter('proportional_gain', value=4.0)])
    assert result.successful
    rig.send(6, 7)
    told = rig.answers(4)
    usual = expected(rig, samples)
    assert told[:2] == usual[:2]
    assert told[2:] != usual[2:]
    (result,) = rig.node.set_parameters([Parameter('integral_gain', value=-0.5)])
    assert not result.successful
    assert 'integral_gain = -0.5, allowed: -1, or from 0 on' in result.reason
    (result,) = rig.node.set_parameters([Parameter('proportional_gain', value=-1.0)])
    assert rig.node.follower.machine == rig.boom


def test_a_boom_that_does_not_follow_is_reported(rig, capfd):
    rig.send(0, 1)
    rig.answers(2)
    rig.trajectory.publish(trajectory(1, 1.21, -0.9, -0.6, -0.4))
    rig.bench.settle()
    # It stays where it is.
    for k in range(2, 400, 20):
        rig.send(*range(k, k + 20))
        rig.answers(k + 20)
    state = rig.node._state
    assert state.resumptions >= 1
    rig.bench.until(lambda: rig.reports, 'report')
    status = rig.reports[-1].status[0]
    assert {v.key: v.value for v in status.values}['left behind'] == str(state.resumptions)
    assert status.level == diagnostics.WARN
    assert f'{state.resumptions} left behind' in status.message
    assert 'the boom did not follow the reference' in ''.join(capfd.readouterr())


def trajectory(seconds, *positions, names=()):
    point = JointTrajectoryPoint(positions=positions)
    point.time_from_start.sec = seconds
    return JointTrajectory(joint_names=names, points=[point])


@pytest.mark.parametrize(
    ('stamp', 'text'),
    [(1_700_000_000, 'begins in 1.7e+09 s, at'), (1, 'should have begun 1.505 s ago, at')],
)
def test_a_trajectory_with_a_stamp_of_another_clock_is_named(stamp, text, rig, capfd):
    rig.send(500, 501)
    rig.answers(2)
    message = trajectory(2, 1.2, -0.9, -0.6, -0.4)
    message.header.stamp.sec = stamp
    rig.trajectory.publish(message)
    rig.bench.settle()
    assert f'the trajectory {text} its header.stamp' in ''.join(capfd.readouterr())


def test_a_reset_plant_gives_the_same_run_again(tmp_path):
    file = tmp_path / 'scenario.yaml'
    file.write_text(WAVE)
    words = setting(lockstep=True, scenario=file)
    with bench(*words, *setting('plant', real_time_factor=0.0)) as b:
        hydraulics = b.listen(HydraulicState, 'hydraulics')
        b.add(ControllerNode)
        plant = b.add(PlantNode)
        b.until(lambda: plant.sample > 150, 'a moving boom')
        assert b.call(Trigger, 'plant/pause').success
        b.settle()
        count = len(hydraulics)
        assert b.call(Trigger, 'plant/reset').success
        assert b.call(Trigger, 'plant/resume').success
        b.until(lambda: len(hydraulics) > count + 150, 'the same again')
    first, again = hydraulics[:count], hydraulics[count:]
    assert again[0].header.stamp == stamp_of(0)
    assert again[:150] == first[:150]


def test_a_cycle_runs_before_the_node_listens(monkeypatch):
    calls = []

    def record(owner, name):
        function = getattr(owner, name)

        def recorded(*arguments, **named):
            calls.append(name)
            return function(*arguments, **named)

        monkeypatch.setattr(owner, name, recorded)

    record(JointController, 'cycle')
    record(ControllerNode, 'listen')
    with bench() as b:
        b.add(ControllerNode)
    assert calls == ['cycle', 'listen']
