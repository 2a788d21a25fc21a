"""
The joint position controller as a node: joints and hydraulics in, ``valve_command`` out.

A cycle runs for each stamp of which both ``joint_states`` and ``hydraulics`` have come. Time is
that of the stamps, so that in lockstep the commands are those of the library's own simulation.
"""

from __future__ import annotations

import dataclasses

from longreach_msgs.msg import HydraulicState, ValveCommand
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from longreach_boom import conversions
from longreach_boom.description import ROOT_FRAME
from longreach_boom.guidance import Guidance, GuidanceState, Measurement, Order
from longreach_boom.machine import SAMPLE_TIME
from longreach_boom.parameters import load_boom
from longreach_boom.scenario import load_scenario
from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import quantity
from longreach_node import qos
from longreach_node.frames import FrameParameters, frame_name, header_at
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


class ControllerNode(PairedControllerNode[ValveCommand]):
    """Joint position control of the boom."""

    def __init__(self) -> None:
        super().__init__('controller')
        settings = declare(self, ControllerNodeParameters)
        self._frame = frame_name(self, settings, ROOT_FRAME)
        self._boom = load_boom(settings.file or None)
        scenario = load_scenario(settings.scenario, self._boom) if settings.scenario else None
        self._guidance = Guidance(self._boom, scenario, 1.0 / settings.sample_rate)
        self._cylinders = [cylinder.name for cylinder in self._boom.cylinders]
        self.forget()
        self.create_subscription(
            JointTrajectory, 'trajectory', self._on_trajectory, qos.SET_POINT, raw=True
        )
        what = f'{settings.file or "pump boom of 36 m"}, {settings.scenario or "no scenario"}'
        self.listen(
            ValveCommand,
            'valve_command',
            f'{what}, {settings.sample_rate:g} Hz',
            1.0 / settings.sample_rate,
            settings.lockstep,
        )

    def forget(self) -> None:
        """Forget everything: the next sample is the first."""
        self._state: GuidanceState | None = None
        self._measured: Measurement | None = None
        self._time = 0.0

    def run_cycle(
        self, stamp: int, joints: JointState, hydraulics: HydraulicState
    ) -> ValveCommand:
        """Return the command to a sample."""
        measured = conversions.measurement_from_messages(self._boom, joints, hydraulics)
        time = stamp / 1e9
        self._state, command = self._guidance.answer(self._state, self._time, time, measured)
        self._time, self._measured = time, measured
        return conversions.command_to_message(
            self._cylinders, command, header_at(stamp, self._frame)
        )

    def state_text(self) -> str:
        """Return what the controller does."""
        open_loop = self._state is None or self._state.trajectory is None
        return 'valves as the scenario says' if open_loop else 'controlling'

    def _on_trajectory(self, message: bytes) -> None:
        """Follow a trajectory that was sent by hand."""
        try:
            conversions.check_size(message)
            trajectory = deserialize_message(message, JointTrajectory)
            self._follow(conversions.order_from_message(trajectory, self._boom))
        except InputError as error:
            self.get_logger().warning(f'trajectory ignored: {error}')
            return
        self.get_logger().info(f'trajectory by hand: {len(trajectory.points)} points')

    def _follow(self, order: Order) -> None:
        """Let an order take over."""
        if self._state is None or self._measured is None:
            raise InputError('no sample of the boom has come yet; start a plant, or send it again')
        self._state = self._guidance.follow(self._state, order, self._time, self._measured.angles)
