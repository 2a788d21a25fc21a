"""
The action ~/follow_joint_trajectory, with stand-ins of rclpy's action server and control_msgs.

The stand-ins have the fields of control_msgs/action/FollowJointTrajectory, and call what the real
server calls, in its order.
"""

from __future__ import annotations

import asyncio
import dataclasses
import math
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from builtin_interfaces.msg import Duration
from rclpy.action.server import CancelResponse, GoalResponse
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from longreach_dynamics.errors import InputError
from longreach_dynamics.trajectories import Reference, Trajectory
from longreach_dynamics.trajectory_goals import GOAL, PATH
from longreach_node import follow_trajectory
from longreach_node.follow_trajectory import TrajectoryAction, tolerances_of

JOINTS = ('first', 'second')
THERE = [1.0, 0.5]


@dataclasses.dataclass
class Result:
    error_code: int = 0
    error_string: str = ''


class FollowJointTrajectory:
    """The generated type, in as far as it is used."""

    Result = Result

    class Feedback(SimpleNamespace):
        """As of control_msgs 6.3."""

        index = 0


def tolerance(name: str, position: float, velocity: float = 0.0) -> SimpleNamespace:
    return SimpleNamespace(name=name, position=position, velocity=velocity, acceleration=0.0)


def request(**fields: Any) -> SimpleNamespace:
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


class Handle:
    """A goal in the hands of the server."""

    count = 0

    def __init__(self, server: Server, goal: SimpleNamespace) -> None:
        Handle.count += 1
        self.goal_id = SimpleNamespace(uuid=[Handle.count] * 16)
        self.request = goal
        self.is_cancel_requested = False
        self.ended = ''
        self.feedback: list[Any] = []
        self.coroutine: Any = None
        self._server = server
        self.publish_feedback = self.feedback.append

    def execute(self) -> None:
        self.coroutine = self._server.callbacks['execute_callback'](self)

    def succeed(self) -> None:
        self.ended = 'succeeded'

    def abort(self) -> None:
        self.ended = 'aborted'

    def canceled(self) -> None:
        self.ended = 'canceled'

    def result(self) -> Result:
        """Let the execution go to its end, for which all must be known."""

        async def wait() -> Result:
            return await self.coroutine

        return asyncio.run(wait())


class Server:
    """Stands for rclpy.action.ActionServer."""

    def __init__(self, node: Any, _: Any, name: str, **callbacks: Any) -> None:
        self.name = name
        self.callbacks = callbacks
        node.server = self

    def send(self, goal: SimpleNamespace) -> Handle | None:
        if self.callbacks['goal_callback'](goal) is not GoalResponse.ACCEPT:
            return None
        handle = Handle(self, goal)
        self.callbacks['handle_accepted_callback'](handle)
        return handle

    def cancel(self, handle: Handle) -> None:
        assert self.callbacks['cancel_callback'](handle) is CancelResponse.ACCEPT
        handle.is_cancel_requested = True


class Rig:
    """A controller of two joints that follow their reference exactly, unless told otherwise."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(follow_trajectory, 'ActionServer', Server)
        self.log: list[str] = []
        say = SimpleNamespace(info=self.log.append, warning=self.log.append)
        self.node: Any = SimpleNamespace(get_logger=lambda: say)
        self.followed = self.stopped = 0
        self.action = TrajectoryAction(
            self.node, JOINTS, self.plan, self.stop, FollowJointTrajectory
        )
        self.server: Server = self.node.server

    def plan(self, message: JointTrajectory, tolerance: np.ndarray) -> tuple[Trajectory, Any]:
        self.tolerance = tolerance
        if list(message.joint_names) != list(JOINTS):
            raise InputError('wrong joints')
        rows = [[0.0, 0.0], *(list(point.positions) for point in message.points)]
        return Trajectory([10.0, 12.0], rows), self.follow

    def follow(self) -> None:
        self.followed += 1

    def stop(self) -> None:
        self.stopped += 1

    def cycle(self, time: float, error: float = 0.0) -> None:
        reference = Trajectory([10.0, 12.0], [[0.0, 0.0], THERE]).at(time)
        self.action.on_cycle(Header(), time, reference, reference.angles - error)


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    return Rig(monkeypatch)


def test_a_goal_that_is_reached(rig: Rig) -> None:
    assert rig.server.name == '~/follow_joint_trajectory'
    handle = rig.server.send(request())
    assert handle is not None
    assert rig.followed == 1
    for k in range(100):
        rig.cycle(10.0 + 0.02 * k, error=0.001)
    # Not more often than each 0.05 s.
    assert 30 <= len(handle.feedback) <= 41
    feedback = handle.feedback[17]
    assert feedback.joint_names == list(JOINTS)
    assert feedback.error.positions.tolist() == pytest.approx([0.001] * 2)
    assert feedback.desired.velocities[0] > 0.0
    assert feedback.index == 1
    rig.cycle(12.0)
    assert handle.result() == Result(0, 'goal reached 0.000 s after its time')
    assert handle.ended == 'succeeded'
    assert rig.stopped == 0


@pytest.mark.parametrize(
    ('fields', 'time', 'error', 'code'),
    [
        ({'path_tolerance': [tolerance('first', 0.01)]}, 11.0, 0.02, -4),
        ({}, 11.0, 0.1, -4),
        ({'goal_tolerance': [tolerance('second', 0.005)]}, 17.1, 0.006, -5),
        ({'goal_time_tolerance': Duration(sec=1)}, 13.1, 0.02, -5),
    ],
)
def test_tolerances_end_a_goal(
    rig: Rig, fields: dict[str, Any], time: float, error: float, code: int
) -> None:
    handle = rig.server.send(request(**fields))
    assert handle is not None
    # It begins at a machine that is further away than that.
    allowed = fields.get('path_tolerance', [tolerance('first', PATH)])[0].position
    np.testing.assert_array_equal(rig.tolerance, [allowed, PATH])
    rig.cycle(time, error)
    result = handle.result()
    assert result.error_code == code
    assert 'allowed: ' in result.error_string
    assert handle.ended == 'aborted'
    assert rig.stopped == 1


@pytest.mark.parametrize(
    ('fields', 'error'),
    [
        ({'trajectory': JointTrajectory(joint_names=JOINTS)}, 'no points, allowed: one or more'),
        ({'multi_dof_trajectory': SimpleNamespace(points=[1])}, 'multi_dof_trajectory has points'),
        (
            {'trajectory': JointTrajectory(points=[JointTrajectoryPoint()])},
            'goal rejected: wrong joints',
        ),
        ({'path_tolerance': [tolerance('third', 0.1)]}, "path_tolerance names 'third', allowed"),
        ({'goal_tolerance': [tolerance('first', 0.1, 0.3)]}, 'limits velocity or acceleration'),
        ({'component_path_tolerance': [1]}, 'component tolerances given, allowed: none'),
        ({'goal_time_tolerance': Duration(sec=-1)}, 'goal_time_tolerance has sec = -1'),
    ],
)
def test_goals_that_are_rejected(rig: Rig, fields: dict[str, Any], error: str) -> None:
    assert rig.server.send(request(**fields)) is None
    assert error in rig.log[-1]
    assert rig.followed == 0


def test_a_canceled_goal_lets_the_joints_rest(rig: Rig) -> None:
    handle = rig.server.send(request())
    assert handle is not None
    rig.cycle(11.0)
    rig.server.cancel(handle)
    rig.cycle(11.1)
    assert handle.result().error_string == 'canceled: the joints come to rest'
    assert (handle.ended, rig.stopped) == ('canceled', 1)


def test_a_new_goal_ends_the_one_before(rig: Rig) -> None:
    first = rig.server.send(request())
    second = rig.server.send(request())
    assert first is not None
    assert second is not None
    assert first.result() == Result(-1, 'the goal was given up: a new goal has come')
    assert first.ended == 'aborted'
    rig.action.replace('a trajectory was sent by hand')
    assert second.result().error_string.endswith('a trajectory was sent by hand')
    # And now there is none to end.
    rig.action.replace('nothing')
    rig.cycle(11.0)


def test_defaults_of_tolerances() -> None:
    tolerances = tolerances_of(request(), JOINTS)
    np.testing.assert_array_equal(tolerances.path, [PATH] * 2)
    np.testing.assert_array_equal(tolerances.goal, [GOAL] * 2)
    erased = tolerances_of(request(path_tolerance=[tolerance('first', -1.0)]), JOINTS)
    assert erased.path[0] == math.inf


def test_feedback_of_an_older_control_msgs_has_no_index(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Older:
        """As in Jazzy: other attributes than its fields are an error, as in generated types."""

        __slots__ = ('actual', 'desired', 'error', 'header', 'joint_names')

    monkeypatch.setattr(FollowJointTrajectory, 'Feedback', Older)
    handle = rig.server.send(request())
    assert handle is not None
    rig.cycle(11.0)
    (feedback,) = handle.feedback
    assert feedback.joint_names == list(JOINTS)


def test_without_control_msgs_there_is_no_action(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, 'control_msgs.action', None)
    assert follow_trajectory.action_types() is None
    log: list[str] = []
    node: Any = SimpleNamespace(get_logger=lambda: SimpleNamespace(info=log.append))
    action = TrajectoryAction(node, JOINTS, None, None, None)  # type: ignore[arg-type]
    action.on_cycle(Header(), 0.0, Reference(np.zeros(2), np.zeros(2)), np.zeros(2))
    action.replace('nothing')
    assert log == ['control_msgs is not installed: no action ~/follow_joint_trajectory']
