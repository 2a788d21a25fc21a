"""
The joint position controller as a node: joints and hydraulics in, ``valve_command`` out.

A cycle runs for each stamp of which both ``joint_states`` and ``hydraulics`` have come. Time is
that of the stamps, so that in lockstep the commands are those of the library's own simulation.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable

from longreach_msgs.msg import HydraulicState, ValveCommand
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from longreach_boom import conversions
from longreach_boom.description import ROOT_FRAME
from longreach_boom.guidance import FAR, Guidance, GuidanceState, Measurement, reference_of
from longreach_boom.machine import SAMPLE_TIME
from longreach_boom.parameters import load_boom
from longreach_boom.scenario import load_scenario
from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import quantity
from longreach_dynamics.trajectories import Trajectory
from longreach_node import qos
from longreach_node.follow_trajectory import TrajectoryAction, action_types
from longreach_node.frames import FrameParameters, frame_name, header_at
from longreach_node.hydraulic_messages import valve_command
from longreach_node.paired_controller import PairedControllerNode
from longreach_node.parameters import declare

__all__ = ['ControllerNode', 'ControllerNodeParameters']


@dataclasses.dataclass(frozen=True)
class ControllerNodeParameters(FrameParameters):
    """Parameters of the controller node."""

    file: str = quantity('boom file; empty for the pump boom of 36 m', '', default='')
    scenario: str = quantity(
        'scenario file, for its trajectory; empty to hold the pose of the first sample',
        '',
        default='',
    )
    sample_rate: float = quantity(
        "samples per second of simulation, the plant's publish_rate",
        'Hz',
        at_least=10.0,
        at_most=1e5,
        default=1.0 / SAMPLE_TIME,
    )
    lockstep: bool = quantity('the plant waits for each command', default=False)
    proportional_gain: float = quantity(
        "piston velocity per error; -1: the boom file's",
        '1/s',
        at_least=-1.0,
        at_most=50.0,
        default=-1.0,
        read_only=False,
    )
    integral_gain: float = quantity(
        "growth of piston velocity per error; -1: the boom file's",
        '1/s^2',
        at_least=-1.0,
        at_most=500.0,
        default=-1.0,
        read_only=False,
    )

    def check(self) -> None:
        """Raise InputError for a negative gain other than -1."""
        super().check()
        for name in ('proportional_gain', 'integral_gain'):
            gain = getattr(self, name)
            if gain < 0.0 and gain != -1.0:
                raise InputError(f'{name} = {gain}, allowed: -1, or from 0 on')

    def gains(self) -> dict[str, float]:
        """Return the gains that take the place of the boom file's."""
        given = {name: getattr(self, name) for name in ('proportional_gain', 'integral_gain')}
        return {name: gain for name, gain in given.items() if gain >= 0.0}


class ControllerNode(PairedControllerNode[ValveCommand]):
    """Joint position control of the boom."""

    def __init__(self) -> None:
        super().__init__('controller')
        settings = declare(self, ControllerNodeParameters, self._on_settings)
        self._frame = frame_name(self, settings, ROOT_FRAME)
        self._boom = load_boom(settings.file or None)
        self._scenario = (
            load_scenario(settings.scenario, self._boom) if settings.scenario else None
        )
        self._on_settings(settings)
        # Before a plant in real time waits for the first command.
        self._guidance.warm_up()
        self._cylinders = [cylinder.name for cylinder in self._boom.cylinders]
        self._state: GuidanceState | None = None
        self._measured: Measurement | None = None
        self._time = 0.0
        joints = [f'{beam.name}_joint' for beam in self._boom.beams]
        self._action = TrajectoryAction(self, joints, self._plan, self._stop, action_types())
        self.create_subscription(
            JointTrajectory, 'trajectory', self._on_trajectory, qos.SET_POINT, raw=True
        )
        self.create_subscription(
            JointState, 'joint_position', self._on_joint_position, qos.SET_POINT
        )
        what = f'{settings.file or "pump boom of 36 m"}, {settings.scenario or "no scenario"}'
        self.listen(
            ValveCommand,
            'valve_command',
            f'{what}, {settings.sample_rate:g} Hz',
            1.0 / settings.sample_rate,
            settings.lockstep,
            ('left behind',),
        )

    def _on_settings(self, settings: ControllerNodeParameters) -> None:
        """Control with these gains from the next sample on."""
        controller = self._boom.controller.replace(**settings.gains())
        boom = self._boom.replace(controller=controller)
        self._guidance = Guidance(boom, self._scenario, 1.0 / settings.sample_rate)

    def forget(self) -> None:
        """Forget everything: the next sample is the first."""
        self._action.replace('time began anew')
        self._state = self._measured = None
        self._time = 0.0

    def run_cycle(
        self, stamp: int, joints: JointState, hydraulics: HydraulicState
    ) -> ValveCommand:
        """Return the command to a sample."""
        measured = conversions.measurement_from_messages(self._boom, joints, hydraulics)
        time = stamp / 1e9
        before = self._state
        self._state, command = self._guidance.answer(before, self._time, time, measured)
        if before is not None and self._state.left_behind > before.left_behind:
            self.count(
                'left behind',
                f'the boom did not follow the reference and was more than {math.degrees(FAR):g}'
                f' deg away from it at t = {time:.6g} s: the reference goes on from where the'
                ' boom is; do the commands reach the plant, can it lift its load?',
            )
        self._time, self._measured = time, measured
        header = header_at(stamp, self._frame)
        reference = reference_of(self._state, time, measured.angles)
        self._action.on_cycle(header, time, reference, measured.angles)
        return valve_command(self._cylinders, header, command.spools)

    def state_text(self) -> str:
        """Return what the controller does."""
        open_loop = self._state is None or self._state.trajectory is None
        return 'valves as the scenario says' if open_loop else 'controlling'

    def _on_trajectory(self, message: bytes) -> None:
        """Follow a trajectory that was sent by hand."""
        try:
            conversions.check_size(message)
            trajectory = deserialize_message(message, JointTrajectory)
            _, begin = self._plan(trajectory)
        except InputError as error:
            self.get_logger().warning(f'trajectory ignored: {error}')
            return
        self._action.replace('a trajectory was sent by hand')
        begin()
        self.get_logger().info(f'trajectory by hand: {len(trajectory.points)} points')

    def _on_joint_position(self, message: JointState) -> None:
        """Follow the latest of a stream of joint positions."""
        try:
            state, measured = self._present()
            wanted = conversions.positions_from_message(message, self._boom)
            state = self._guidance.stream(state, self._time, measured.angles, wanted)
        except InputError as error:
            self.warn(f'ignored: {error}')
            return
        self._action.replace('joint positions are streamed')
        self._state = state

    def _plan(self, message: JointTrajectory) -> tuple[Trajectory, Callable[[], None]]:
        """Return the trajectory that a message asks for, and a function that begins it."""
        state, measured = self._present()
        order = conversions.order_from_message(message, self._boom)
        state = self._guidance.follow(state, order, self._time, measured.angles)
        assert state.trajectory is not None
        return state.trajectory, functools.partial(self._set_state, state)

    def _stop(self) -> None:
        """Let all joints come to rest."""
        state, measured = self._present()
        self._set_state(self._guidance.stop(state, self._time, measured.angles))

    def _present(self) -> tuple[GuidanceState, Measurement]:
        """Return the state and the latest sample; InputError before the first one."""
        if self._state is None or self._measured is None:
            raise InputError('no sample of the boom has come yet; start a plant, or send it again')
        return self._state, self._measured

    def _set_state(self, state: GuidanceState) -> None:
        """Let the next cycle begin with a state."""
        self._state = state
