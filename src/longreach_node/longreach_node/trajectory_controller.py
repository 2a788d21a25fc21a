"""
Base of joint controllers: a trajectory, a stream of joint positions, or the action is followed.

What is followed is decided in :mod:`longreach_dynamics.trajectory_following`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from longreach_msgs.msg import HydraulicState
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory

from longreach_dynamics.errors import InputError
from longreach_dynamics.trajectories import Trajectory
from longreach_dynamics.trajectory_following import (
    FAR,
    FARTHEST,
    FollowerState,
    TrajectoryFollower,
)
from longreach_dynamics.trajectory_goals import PATH
from longreach_node import qos
from longreach_node.follow_trajectory import TrajectoryAction, action_types
from longreach_node.frames import header_at
from longreach_node.joint_messages import check_size, joint_values, order_from_message
from longreach_node.paired_controller import PairedControllerNode

LEFT_BEHIND = 'left behind'
"""Kind of incident, for :meth:`PairedControllerNode.listen`."""

# A start further ahead [s] is rather a stamp of another clock than a plan.
_LONG_WAIT = 10.0
# A stamp further in the past [s] is more than the way of a message.
_LATE = 1.0
# Shortest time between two lines about trajectories [s]: `longreach NAME move` waits for its line.
_SAID = 0.1

Command = TypeVar('Command')


class TrajectoryControllerNode(PairedControllerNode[Command]):
    """
    Base of joint controllers.

    A subclass sets ``frame`` and ``follower``, calls :meth:`follow` before
    :meth:`PairedControllerNode.listen`, and provides :meth:`measurement_of` and
    :meth:`message_of`.

    Attributes
    ----------
    machine : str
        Name of the machine for error messages.
    frame : str
        Of the commands.
    follower : TrajectoryFollower
        May be replaced between cycles.
    """

    machine: str
    frame: str
    follower: TrajectoryFollower[Any, Any]

    def follow(self, joints: Sequence[str]) -> None:
        """Take trajectories and positions of joints, which are named as in joint_states."""
        self._names = list(joints)
        self._state: FollowerState | None = None
        self._action = TrajectoryAction(self, joints, self._plan, self._stop, action_types())
        self.create_subscription(
            JointTrajectory, 'trajectory', self._on_trajectory, qos.SET_POINT, raw=True
        )
        self.create_subscription(
            JointState, 'joint_position', self._on_joint_position, qos.SET_POINT
        )

    def measurement_of(self, joints: JointState, hydraulics: HydraulicState) -> Any:
        """Return what the follower knows of the machine; InputError for no sample of it."""
        raise NotImplementedError

    def message_of(self, command: Any, header: Header) -> Command:
        """Return the follower's command as a message."""
        raise NotImplementedError

    def forget(self) -> None:
        """Forget everything: the next sample is the first."""
        self._action.replace('time began anew')
        self._state = None

    def run_cycle(self, stamp: int, joints: JointState, hydraulics: HydraulicState) -> Command:
        """Return the command to a sample."""
        time, before = stamp / 1e9, self._state
        self._state, command = self.follower.answer(
            before, time, self.measurement_of(joints, hydraulics)
        )
        if before is not None and self._state.left_behind > before.left_behind:
            self.count(
                LEFT_BEHIND,
                f'the {self.machine} did not follow the reference and was more than'
                f' {math.degrees(FAR):g} deg away from it for a while, or'
                f' {math.degrees(FARTHEST):g} deg, at t = {time:.6g} s: the reference goes on from'
                f' where the {self.machine} is; do the commands reach the plant, can it lift its'
                ' load?',
            )
        header = header_at(stamp, self.frame)
        self._action.on_cycle(header, time, self._state.reference(time), self._state.angles)
        return self.message_of(command, header)

    def state_text(self) -> str:
        """Return what the controller does."""
        open_loop = self._state is None or self._state.trajectory is None
        return 'valves as the scenario says' if open_loop else 'controlling'

    def _on_trajectory(self, message: bytes) -> None:
        """Follow a trajectory that was sent by hand."""
        try:
            check_size(message)
            trajectory = deserialize_message(message, JointTrajectory)
            _, begin = self._plan(trajectory, PATH)
        except InputError as error:
            self.get_logger().warning(f'trajectory ignored: {error}', throttle_duration_sec=_SAID)
            return
        self._action.replace('a trajectory was sent by hand')
        begin()
        points = len(trajectory.points)
        self.get_logger().info(f'trajectory by hand: {points} points', throttle_duration_sec=_SAID)

    def _on_joint_position(self, message: JointState) -> None:
        """Follow the latest of a stream of joint positions."""
        try:
            state = self._present()
            told = joint_values(
                'joint_position', 'rad', message.name, message.position, self._names
            )
            wanted = {self._names.index(name): position for name, position in told.items()}
            state = self.follower.stream(state, state.time, wanted)
        except InputError as error:
            self.warn(f'ignored: {error}')
            return
        self._action.replace('joint positions are streamed')
        self._state = state

    def _plan(
        self, message: JointTrajectory, tolerance: float | np.ndarray
    ) -> tuple[Trajectory, Callable[[], None]]:
        """
        Return the trajectory of a message, and a function that starts it.

        It begins at the machine where that is further than the tolerance [rad] from the reference.
        """
        state = self._present()
        order = order_from_message(message, self._names)
        state = self.follower.follow(state, order, state.time, tolerance)
        assert state.trajectory is not None
        if (wait := state.trajectory.times[0] - state.time) > _LONG_WAIT:
            self.warn(
                f'the trajectory begins in {wait:.6g} s, at its header.stamp; does its sender have'
                f" the {self.machine}'s time (use_sim_time)? A stamp of 0 begins it at once"
            )
        elif order.start > 0.0 and (late := state.time - order.start) > _LATE:
            self.warn(
                f'the trajectory should have begun {late:.6g} s ago, at its header.stamp, and'
                f" begins now; does its sender have the {self.machine}'s time (use_sim_time)? A"
                ' stamp of 0 begins it at once'
            )
        return state.trajectory, functools.partial(setattr, self, '_state', state)

    def _stop(self) -> None:
        """Let all joints come to rest."""
        state = self._present()
        self._state = self.follower.stop(state, state.time)

    def _present(self) -> FollowerState:
        """Return the state; InputError before the first sample."""
        if self._state is None:
            raise InputError(
                f'no sample of the {self.machine} has come yet; start a plant, or send it again'
            )
        return self._state
