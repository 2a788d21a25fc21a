"""
The action ``~/follow_joint_trajectory``, for MoveIt and clients of joint_trajectory_controller.

Only this module imports ``control_msgs``; without that package there is no action, and a log
message says so. The tolerances of a goal are checked in
:mod:`longreach_machine.trajectory_goals`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from rclpy.action.server import ActionServer, CancelResponse, GoalResponse
from rclpy.node import Node
from rclpy.task import Future
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from longreach_dynamics.errors import InputError
from longreach_machine.trajectories import Reference, Trajectory
from longreach_machine.trajectory_goals import (
    GOAL,
    GOAL_TIME,
    PATH,
    Goal,
    Outcome,
    Tolerances,
    Verdict,
    positions_of,
)
from longreach_node.stamps import duration_of, nanoseconds_from

# Feedback at most this often [s of the samples' time].
_FEEDBACK_PERIOD = 0.05


def action_types() -> Any:
    """Return control_msgs.action.FollowJointTrajectory, None where it is not installed."""
    try:
        return import_module('control_msgs.action').FollowJointTrajectory
    except ModuleNotFoundError:
        return None


def tolerances_of(goal: Any, joints: Sequence[str]) -> Tolerances:
    """Return the tolerances of a goal; what it leaves at 0 gets this module's defaults."""
    if goal.component_path_tolerance or goal.component_goal_tolerance:
        raise InputError('component tolerances given, allowed: none, no joint has more than one')
    limits = []
    for name, default in (('path_tolerance', PATH), ('goal_tolerance', GOAL)):
        given = getattr(goal, name)
        for tolerance in given:
            if tolerance.velocity > 0.0 or tolerance.acceleration > 0.0:
                raise InputError(
                    f'{name} of {tolerance.name} limits velocity or acceleration, allowed:'
                    ' position only; leave the others at 0'
                )
        pairs = [(tolerance.name, tolerance.position) for tolerance in given]
        limits.append(positions_of(pairs, joints, default, name))
    goal_time = nanoseconds_from(goal.goal_time_tolerance, 'goal_time_tolerance') * 1e-9
    return Tolerances(limits[0], limits[1], goal_time or GOAL_TIME)


class TrajectoryAction:
    """The action server of a controller of ``joints``; ``action`` is of :func:`action_types`."""

    # ``plan`` takes a message and path tolerances (N,) [rad]; it returns the trajectory in
    # absolute time and a function that begins to follow it, or raises InputError.

    def __init__(
        self,
        node: Node,
        joints: Sequence[str],
        plan: Callable[[JointTrajectory, np.ndarray], tuple[Trajectory, Callable[[], None]]],
        stop: Callable[[], None],
        action: Any,
    ) -> None:
        self._node, self._joints, self._plan, self._stop = node, tuple(joints), plan, stop
        self._action = action
        self._goal: Goal | None = None
        self._planned: tuple[Goal, Callable[[], None]] | None = None
        self._handle: Any = None
        self._verdicts: dict[bytes, Future] = {}  # by the goal's identity
        self._last_feedback = 0.0
        if action is None:
            node.get_logger().info(
                'control_msgs is not installed: no action ~/follow_joint_trajectory'
            )
            return
        self._server = ActionServer(
            node,
            action,
            '~/follow_joint_trajectory',
            execute_callback=self._execute,
            goal_callback=self._on_goal,
            handle_accepted_callback=self._on_accepted,
            cancel_callback=self._on_cancel,
        )

    # --- what the controller calls -----------------------------------------------------------

    def on_cycle(
        self,
        header: Any,
        time: float,
        reference: Reference,
        angles: np.ndarray,
        behind: np.ndarray | float = 0.0,
    ) -> None:
        """Judge the goal by a sample, as its :meth:`Goal.judge` does; send feedback."""
        if self._goal is None:
            return
        verdict = self._goal.judge(time, angles, behind)
        if verdict is not None:
            if verdict.outcome is not Outcome.SUCCESSFUL:
                self._stop()
            self.end(verdict)
        elif time >= self._last_feedback + _FEEDBACK_PERIOD or time < self._last_feedback:
            self._last_feedback = time
            self._handle.publish_feedback(self._feedback(header, time, reference, angles))

    def replace(self, why: str) -> None:
        """End the goal, if there is one, because something else is followed from now on."""
        if self._goal is not None:
            self.end(Verdict(Outcome.INVALID_GOAL, f'the goal was given up: {why}'))

    def end(self, verdict: Verdict) -> None:
        """End the goal with a verdict."""
        self._node.get_logger().info(f'goal ended: {verdict.text}')
        self._goal = None
        self._verdicts[_identity(self._handle)].set_result(verdict)

    # --- what the action server calls --------------------------------------------------------

    def _on_goal(self, goal: Any) -> GoalResponse:
        """Accept or reject a goal; an action has no place for the reason but the log."""
        try:
            if goal.multi_dof_trajectory.points:
                raise InputError('multi_dof_trajectory has points, allowed: none')
            if not goal.trajectory.points:
                raise InputError('the trajectory has no points, allowed: one or more')
            tolerances = tolerances_of(goal, self._joints)
            trajectory, begin = self._plan(goal.trajectory, tolerances.path)
        except InputError as error:
            self._node.get_logger().warning(f'goal rejected: {error}')
            return GoalResponse.REJECT
        self._planned = Goal(self._joints, trajectory, tolerances), begin
        return GoalResponse.ACCEPT

    def _on_accepted(self, handle: Any) -> None:
        """Begin the goal that was accepted; the one before it ends."""
        assert self._planned is not None
        goal, begin = self._planned
        self.replace('a new goal has come')
        begin()
        self._goal, self._handle = goal, handle
        self._verdicts[_identity(handle)] = Future()
        points = len(handle.request.trajectory.points)
        self._node.get_logger().info(f'goal accepted: {points} points')
        handle.execute()

    def _on_cancel(self, handle: Any) -> CancelResponse:
        """Let the joints come to rest, and end the goal."""
        if self._goal is not None and _identity(handle) == _identity(self._handle):
            self._stop()
            self.end(Verdict(Outcome.SUCCESSFUL, 'canceled: the joints come to rest'))
        return CancelResponse.ACCEPT

    async def _execute(self, handle: Any) -> Any:
        """Wait for the end of a goal, and return its result."""
        verdict: Verdict = await self._verdicts[_identity(handle)]
        del self._verdicts[_identity(handle)]
        if handle.is_cancel_requested:
            handle.canceled()
        elif verdict.outcome is Outcome.SUCCESSFUL:
            handle.succeed()
        else:
            handle.abort()
        result = self._action.Result()
        result.error_code = int(verdict.outcome)
        result.error_string = verdict.text
        return result

    def _feedback(self, header: Any, time: float, reference: Reference, angles: np.ndarray) -> Any:
        """Return feedback about a cycle."""
        assert self._goal is not None
        feedback = self._action.Feedback()
        feedback.header = header
        feedback.joint_names = list(self._joints)
        # Of the trajectory, whose start may be yet to come.
        time = max(time - float(self._goal.trajectory.times[0]), 0.0)
        feedback.desired = _point(time, reference.angles, reference.rates)
        feedback.actual = _point(time, angles)
        feedback.error = _point(time, reference.angles - angles)
        return feedback


def _identity(handle: Any) -> bytes:
    """Return what tells a goal from all others."""
    return bytes(handle.goal_id.uuid)


def _point(
    time: float, angles: np.ndarray, rates: np.ndarray | None = None
) -> JointTrajectoryPoint:
    """Return a point of a trajectory at a time [s]."""
    return JointTrajectoryPoint(
        positions=angles.tolist(),
        velocities=[] if rates is None else rates.tolist(),
        time_from_start=duration_of(time),
    )
