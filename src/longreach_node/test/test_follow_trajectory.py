"""
The action ~/follow_joint_trajectory, with stand-ins of rclpy's action server and control_msgs.

They have the fields of control_msgs/action/FollowJointTrajectory; what the real server calls is
called, in its order.
"""

import asyncio
import sys
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from builtin_interfaces.msg import Duration
from rclpy.action.server import CancelResponse, GoalResponse
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from longreach_dynamics.errors import InputError
from longreach_machine.trajectories import Reference, Trajectory
from longreach_machine.trajectory_goals import PATH
from longreach_node import follow_trajectory
from longreach_node.follow_trajectory import TrajectoryAction

JOINTS = ('first', 'second')
THERE = [1.0, 0.5]


class FollowJointTrajectory:
    """The generated type, in as far as it is used."""

    Result = Feedback = SimpleNamespace


def tolerance(name, position, velocity=0.0):
    return SimpleNamespace(name=name, position=position, velocity=velocity, acceleration=0.0)


def request(**fields):
    """Return a goal to THERE within 2 s."""
    point = JointTrajectoryPoint(positions=THERE, time_from_start=Duration(sec=2))
    values = {
        'trajectory': JointTrajectory(joint_names=JOINTS, points=[point]),
        'multi_dof_trajectory': SimpleNamespace(points=[]),
        'path_tolerance': [],
        'component_path_tolerance': [],
        'goal_tolerance': [],
        'component_goal_tolerance': [],
        'goal_time_tolerance': Duration(),
    }
    return SimpleNamespace(**{**values, **fields})


class Rig:
    """A controller of two joints that follow their reference, and the action's server."""

    def __init__(self, monkeypatch):
        server = Mock()
        monkeypatch.setattr(follow_trajectory, 'ActionServer', server)
        self.log = []
        say = SimpleNamespace(info=self.log.append, warning=self.log.append)
        node = SimpleNamespace(get_logger=lambda: say)
        self.follow, self.stop = Mock(), Mock()
        self.action = TrajectoryAction(node, JOINTS, self.plan, self.stop, FollowJointTrajectory)
        assert server.call_args.args == (node, FollowJointTrajectory, '~/follow_joint_trajectory')
        self.server = server.call_args.kwargs
        self.goals = 0

    def plan(self, message, tolerance):
        self.tolerance = tolerance
        if list(message.joint_names) != list(JOINTS):
            raise InputError('wrong joints')
        rows = [[0.0, 0.0], *(list(point.positions) for point in message.points)]
        return Trajectory([10.0, 12.0], rows), self.follow

    def send(self, goal):
        """Return the handle of a goal, or None when it is rejected."""
        if self.server['goal_callback'](goal) is not GoalResponse.ACCEPT:
            return None
        self.goals += 1
        handle = Mock(request=goal, is_cancel_requested=False)
        handle.goal_id.uuid = [self.goals] * 16
        self.server['handle_accepted_callback'](handle)
        handle.execute.assert_called_once_with()
        return handle

    def cycle(self, time, error=0.0):
        reference = Trajectory([10.0, 12.0], [[0.0, 0.0], THERE]).at(time)
        self.action.on_cycle(Header(), time, reference, reference.angles - error)

    def result(self, handle):
        """Return code and text of a goal that has ended, and how."""
        result = asyncio.run(self.server['execute_callback'](handle))
        (end,) = (n for n in ('succeed', 'abort', 'canceled') if getattr(handle, n).called)
        return result.error_code, result.error_string, end


@pytest.fixture
def rig(monkeypatch):
    return Rig(monkeypatch)


def test_a_goal_that_is_reached(rig):
    handle = rig.send(request())
    rig.follow.assert_called_once_with()
    for k in range(100):
        rig.cycle(10.0 + 0.02 * k, error=0.001)
    # Not more often than each 0.05 s.
    feedback = [call.args[0] for call in handle.publish_feedback.call_args_list]
    assert 30 <= len(feedback) <= 41
    assert feedback[17].joint_names == list(JOINTS)
    assert feedback[17].error.positions.tolist() == pytest.approx([0.001] * 2)
    assert feedback[17].desired.velocities[0] > 0.0
    times = [point.desired.time_from_start for point in feedback]
    assert (times[0].sec, times[0].nanosec) == (0, 0)
    assert times[-1].sec == 1
    rig.cycle(12.0)
    assert rig.result(handle) == (0, 'goal reached 0.000 s after its time', 'succeed')
    rig.stop.assert_not_called()


@pytest.mark.parametrize(
    ('fields', 'time', 'error', 'code'),
    [
        ({'path_tolerance': [tolerance('first', 0.01)]}, 11.0, 0.02, -4),
        ({}, 11.0, 0.1, -4),
        ({'goal_tolerance': [tolerance('second', 0.005)]}, 17.1, 0.006, -5),
        ({'goal_time_tolerance': Duration(sec=1)}, 13.1, 0.02, -5),
    ],
)
def test_tolerances_end_a_goal(rig, fields, time, error, code):
    handle = rig.send(request(**fields))
    # It begins at a machine that is further away than that.
    allowed = fields.get('path_tolerance', [tolerance('first', PATH)])[0].position
    np.testing.assert_array_equal(rig.tolerance, [allowed, PATH])
    rig.cycle(time, error)
    found, text, end = rig.result(handle)
    assert (found, end) == (code, 'abort')
    assert 'allowed: ' in text
    rig.stop.assert_called_once_with()


@pytest.mark.parametrize(
    ('fields', 'error'),
    [
        ({'trajectory': JointTrajectory(joint_names=JOINTS)}, 'no points, allowed: one or more'),
        ({'multi_dof_trajectory': SimpleNamespace(points=[1])}, 'multi_dof_trajectory has points'),
        (
            {'trajectory': JointTrajectory(points=[JointTrajectoryPoint()])},
            'goal rejected: wrong joints',
        ),
        ({'path_tolerance': [tolerance('third', 0.1)]}, "path_tolerance = 'third', allowed"),
        ({'goal_tolerance': [tolerance('first', 0.1, 0.3)]}, 'limits velocity or acceleration'),
        ({'component_path_tolerance': [1]}, 'component tolerances given, allowed: none'),
        ({'goal_time_tolerance': Duration(sec=-1)}, 'goal_time_tolerance has sec = -1'),
    ],
)
def test_goals_that_are_rejected(rig, fields, error):
    assert rig.send(request(**fields)) is None
    assert error in rig.log[-1]
    rig.follow.assert_not_called()


def test_a_canceled_goal_lets_the_joints_rest(rig):
    handle = rig.send(request())
    rig.cycle(11.0)
    assert rig.server['cancel_callback'](handle) is CancelResponse.ACCEPT
    handle.is_cancel_requested = True
    rig.cycle(11.1)
    assert rig.result(handle)[1:] == ('canceled: the joints come to rest', 'canceled')
    rig.stop.assert_called_once_with()


def test_a_new_goal_ends_the_one_before(rig):
    first, second = rig.send(request()), rig.send(request())
    assert rig.result(first) == (-1, 'the goal was given up: a new goal has come', 'abort')
    rig.action.replace('a trajectory was sent by hand')
    assert rig.result(second)[1].endswith('a trajectory was sent by hand')
    # And now there is none to end.
    rig.action.replace('nothing')
    rig.cycle(11.0)


def test_without_control_msgs_there_is_no_action(monkeypatch):
    monkeypatch.setitem(sys.modules, 'control_msgs.action', None)
    assert follow_trajectory.action_types() is None
    log = []
    node = SimpleNamespace(get_logger=lambda: SimpleNamespace(info=log.append))
    action = TrajectoryAction(node, JOINTS, None, None, None)
    action.on_cycle(Header(), 0.0, Reference(np.zeros(2), np.zeros(2)), np.zeros(2))
    action.replace('nothing')
    assert log == ['control_msgs is not installed: no action ~/follow_joint_trajectory']
