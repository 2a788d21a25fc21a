"""
Base of joint controllers: a trajectory, a stream of joint positions, or the action is followed.

What is followed is decided in :mod:`longreach_machine.trajectory_following`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import numpy as np
from longreach_msgs.msg import HydraulicState
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory

from longreach_dynamics.errors import InputError
from longreach_machine import MachineSpec
from longreach_machine.trajectories import Trajectory
from longreach_machine.trajectory_following import (
    FAR,
    FARTHEST,
    FollowerState,
    TrajectoryFollower,
)
from longreach_machine.trajectory_goals import PATH
from longreach_node import qos
from longreach_node.conversions import (
    ControlMessages,
    check_size,
    joint_values,
    order_from_message,
)
from longreach_node.cycle_node import CycleNode
from longreach_node.follow_trajectory import TrajectoryAction, action_types
from longreach_node.frames import frame_name, header_at
from longreach_node.parameters import declare

_NOT_FOLLOWED = 'left behind'
# A start further ahead [s] is rather a stamp of another clock than a plan.
_LONG_WAIT = 10.0
# A stamp further in the past [s] is more than the way of a message.
_LATE = 1.0
# Shortest time between two lines about trajectories [s]: `longreach NAME move` waits for its line,
# and listens longer than this before it sends.
_SAID = 0.1

Command = TypeVar('Command')


class TrajectoryControllerNode(CycleNode[Command]):
    """
    The joint controller of a declared machine.

    A subclass sets the class attributes and those of :class:`CycleNode`, and provides
    :meth:`make_follower`. ``settings_type`` has ``lockstep``, ``measurement`` takes what the
    machine ``measures``; ``joint_suffix`` is what the follower's names of joints lack to those in
    joint_states.
    """

    spec: ClassVar[MachineSpec[Any, Any, Any]]
    settings_type: ClassVar[type[Any]]
    measurement: ClassVar[type[Any]]
    joint_suffix: ClassVar[str] = ''
    incident_kinds = (_NOT_FOLLOWED,)

    def __init__(self) -> None:
        super().__init__('controller')
        settings = declare(self, self.settings_type, self._on_settings)
        self._frame = frame_name(self, settings, self.spec.root_frame)
        self._machine, self._scenario = settings.read(self.spec)
        self.messages = ControlMessages(self.spec, self._machine)
        self._on_settings(settings)
        # Compile before a plant in real time waits for the first command.
        self.follower.warm_up()
        self._state: FollowerState | None = None
        self._names = [f'{joint}{self.joint_suffix}' for joint in self.follower.joints]
        self._action = TrajectoryAction(self, self._names, self._plan, self._stop, action_types())
        self.create_subscription(
            JointTrajectory, 'trajectory', self._on_trajectory, qos.SET_POINT, raw=True
        )
        self.create_subscription(
            JointState, 'joint_position', self._on_joint_position, qos.SET_POINT
        )
        what = f'{settings.file or f"installed {self.spec.name}"}'
        what += f', {settings.scenario or "no scenario"}, {1.0 / self.follower.sample_time:g} Hz'
        interval, topic = self.follower.sample_time, self.joints_topic(settings)
        self.listen(what, interval, settings.lockstep, topic)

    def _on_settings(self, settings: Any) -> None:
        """Follow with these settings from the next sample on."""
        self.follower = self.make_follower(self._machine, self._scenario, settings)

    # --- what a machine provides -------------------------------------------------------------

    def make_follower(
        self, machine: Any, scenario: Any, settings: Any
    ) -> TrajectoryFollower[Any, Any]:
        """Return the controller of a machine, and a scenario or None, with the settings."""
        raise NotImplementedError

    def joints_topic(self, settings: Any) -> str:  # noqa: ARG002
        """Return the topic of the joints, such as that of sensors."""
        return 'joint_states'

    def measurement_of(self, joints: JointState, hydraulics: HydraulicState) -> Any:
        """Return what the follower knows of the machine; InputError for no sample of it."""
        return self.measurement(*self.messages.measured(joints, hydraulics))

    def message_of(self, command: Any, header: Header) -> Any:
        """Return the follower's command as a message."""
        return self.messages.command(command, header)

    # --- what it does ------------------------------------------------------------------------

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
        if before is not None and self._state.resumptions > before.resumptions:
            self.count(
                _NOT_FOLLOWED,
                f'the {self.spec.name} did not follow the reference and was more than'
                f' {math.degrees(FAR):g} deg away from it for a while, or'
                f' {math.degrees(FARTHEST):g} deg, at t = {time:.6g} s: the reference goes on from'
                f' where the {self.spec.name} is; do the commands reach the plant, can it lift its'
                ' load?',
            )
        header = header_at(stamp, self._frame)
        reference = self._state.reference(time)
        behind = reference.angles - self.follower.expected(self._state, time)
        self._action.on_cycle(header, time, reference, self._state.angles, behind)
        message: Command = self.message_of(command, header)
        return message

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
            by_name = joint_values(
                'joint_position', 'rad', message.name, message.position, self._names
            )
            wanted = {self._names.index(name): position for name, position in by_name.items()}
            state = self.follower.stream(state, state.time, wanted)
        except InputError as error:
            self.warn(f'ignored: {error}')
            return
        self._action.replace('joint positions are streamed')
        self._state = state

    def _plan(
        self, message: JointTrajectory, tolerance: float | np.ndarray
    ) -> tuple[Trajectory, Callable[[], None]]:
        """Return the trajectory of a message, and a function that starts it, as ``follow``."""
        state = self._present()
        order = order_from_message(message, self._names)
        state = self.follower.follow(state, order, state.time, tolerance)
        assert state.trajectory is not None
        if (wait := state.trajectory.times[0] - state.time) > _LONG_WAIT:
            self.warn(
                f'the trajectory begins in {wait:.6g} s, at its header.stamp; does its sender have'
                f" the {self.spec.name}'s time (use_sim_time)? A stamp of 0 begins it at once"
            )
        elif order.start > 0.0 and (late := state.time - order.start) > _LATE:
            self.warn(
                f'the trajectory should have begun {late:.6g} s ago, at its header.stamp, and'
                f" begins now; does its sender have the {self.spec.name}'s time (use_sim_time)? A"
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
                f'no sample of the {self.spec.name} has come yet; start a plant, or send it again'
            )
        return self._state
