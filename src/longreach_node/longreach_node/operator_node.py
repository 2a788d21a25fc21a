"""
Base of an operator's station as a node: sticks in, commands to the valves out.

A command is sent for each stamp for which both ``joint_states`` and ``hydraulics`` have arrived,
after the first order with motion: before, the machine follows its scenario. The age of orders is
measured in wall time.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any, ClassVar

from longreach_msgs.msg import HydraulicState, ValveCommand
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState, Joy

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import choice, quantity
from longreach_machine import MachineSpec
from longreach_machine.teleoperation import CONTROLS, OperatorState, Order, Station
from longreach_node import qos
from longreach_node.conversions import ControlMessages
from longreach_node.cycle_node import CycleNode
from longreach_node.frames import FrameParameters, frame_name, header_at
from longreach_node.parameters import declare


@dataclasses.dataclass(frozen=True)
class OperatorParameters(FrameParameters):
    """Parameters of an operator node; see :meth:`SticksParameters.controlling`."""

    file: str = quantity("the machine's file; empty: the installed one", '', default='')
    teleoperation: str = quantity('teleoperation file; empty: the installed one', '', default='')
    control: str = choice(
        "what sticks move; file: the teleoperation file's choice",
        ('file', *CONTROLS),
        default='file',
    )


class OperatorNode(CycleNode[ValveCommand]):
    """An operator's station; a subclass sets the class attributes."""

    spec: ClassVar[MachineSpec[Any, Any, Any]]
    station_type: ClassVar[type[Station[Any, Any]]]

    def __init__(self) -> None:
        super().__init__('operator')
        settings = declare(self, OperatorParameters)
        self._frame = frame_name(self, settings, self.spec.root_frame)
        machine = self.spec.load(settings.file or None, settings)
        file = settings.teleoperation or None
        self.station = self.station_type.of(machine, settings.control, file)
        self._messages = ControlMessages(self.spec, machine)
        self.forget()
        self._sources: list[Subscription] = []
        self._is_shared = False
        self.hear_orders(Joy, 'joy', self.on_joy)
        p = self.station.parameters
        what = (
            f'{settings.file or f"installed {self.spec.name}"}, {p.control}, pattern {p.pattern}'
        )
        self.listen(what, sample_time=0.0, lockstep=False)

    # --- what it does ------------------------------------------------------------------------

    def hear_orders(self, kind: type, topic: str, callback: Callable[[Any], None]) -> None:
        """Listen to a topic with orders; one sender of all such topics is expected."""
        self._sources.append(self.create_subscription(kind, topic, callback, qos.SET_POINT))

    def forget(self) -> None:
        """Reset the state: no order has been received."""
        self._state = OperatorState()

    def run_cycle(
        self, stamp: int, joints: JointState, hydraulics: HydraulicState
    ) -> ValveCommand | None:
        """Return the command for a sample; None before the first order with motion."""
        measured = self.station.measurement(
            stamp * 1e-9, *self._messages.measured(joints, hydraulics)
        )
        self._state, command = self.station.cycle(self._state, measured, time.monotonic())
        if command is None:
            return None
        return self._messages.command(command, header_at(stamp, self._frame))

    def state_text(self) -> str:
        """Return the state of the operator's station as text."""
        return 'operating' if self._state.engaged else 'waiting for an order'

    def on_joy(self, message: Joy) -> None:
        """Handle a message with stick deflections."""
        try:
            order = self.station.order_of_sticks(message.axes, message.buttons)
        except InputError as error:
            self.warn(f'ignored: {error}')
            return
        self.take(order)

    def take(self, order: Order) -> None:
        """Make an order the current one."""
        senders = sum(one.get_publisher_count() for one in self._sources)
        if senders > 1 and not self._is_shared:
            self._is_shared = True
            topics = ', '.join(one.topic_name for one in self._sources)
            text = f'{senders} senders of orders on {topics}: the latest order counts'
            self.get_logger().warning(text)
        self._state = self.station.take(self._state, order, time.monotonic())
