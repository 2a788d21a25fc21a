"""
A ROS node as a controller of the benchmark of damping, in lockstep.

The benchmark publishes each cycle's readings in the namespace ``benchmark`` and waits for the
``valve_command`` with the same stamp; docs/damping.md lists the topics.
"""

from __future__ import annotations

import functools
import math
import time

import numpy as np
from longreach_msgs.msg import HydraulicState, ValveCommand
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from longreach_control.controller import DampingController, Measured, Wanted
from longreach_control.plant import Situation
from longreach_dynamics.errors import LongreachError
from longreach_node import qos
from longreach_node.conversions import hydraulic_state, spools_from_message
from longreach_node.stamps import nanoseconds_of, seconds_to_nanoseconds, stamp_of

NAMESPACE = 'benchmark'
# Of wall time [s]: until no answer is an error, and until a sample is published once more.
_PATIENCE, _AGAIN = 10.0, 0.25


class _Link:
    """The benchmark's side of the topics; one for all cases of a process."""

    def __init__(self) -> None:
        context = Context()
        context.init(args=[])
        self._node = Node('benchmark', namespace=NAMESPACE, context=context)
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(self._node)
        self._joints = self._node.create_publisher(JointState, 'joint_states', qos.STREAM)
        self._hydraulics = self._node.create_publisher(HydraulicState, 'hydraulics', qos.STREAM)
        self._answers: dict[int, ValveCommand] = {}
        self._node.create_subscription(ValveCommand, 'valve_command', self._take, qos.STREAM)

    def _take(self, message: ValveCommand) -> None:
        """Keep a command by its stamp."""
        self._answers[nanoseconds_of(message.header.stamp)] = message

    def ask(self, joints: JointState, hydraulics: HydraulicState) -> ValveCommand:
        """Return the answer to a sample; LongreachError when there is none."""
        wanted, start = nanoseconds_of(joints.header.stamp), time.monotonic()
        due = start
        self._answers.clear()
        while (answer := self._answers.get(wanted)) is None:
            now = time.monotonic()
            if now - start > _PATIENCE:
                raise LongreachError(
                    f'no node answers on /{NAMESPACE}/valve_command to the sample of'
                    f' {1e-9 * wanted:g} s within {_PATIENCE:g} s; start one, see docs/damping.md'
                )
            if now >= due:
                self._joints.publish(joints)
                self._hydraulics.publish(hydraulics)
                due = now + _AGAIN
            self._executor.spin_once(timeout_sec=_AGAIN)
        return answer


_link = functools.cache(_Link)


class RosController(DampingController):
    """What the node commands."""

    def __init__(self, situation: Situation) -> None:
        super().__init__(situation)
        boom = situation.boom
        self._cylinders = [cylinder.name for cylinder in boom.cylinders]
        self._names = [
            *self._cylinders,
            *(f'wanted_{name}' for name in self._cylinders),
            *(beam.name for beam in boom.beams),
        ]
        weights = np.zeros(boom.size)
        for load in situation.loads:
            weights[load.beam] += load.mass * boom.gravity
        self._efforts = [math.nan] * (2 * boom.size) + weights.tolist()
        self._sample_time, self._cycle = situation.sample_time, 0

    def cycle(self, measured: Measured, wanted: Wanted) -> np.ndarray:
        """Return the spools (N,) that the node commands; InputError for a command of no use."""
        stamp = stamp_of(self._cycle * seconds_to_nanoseconds(self._sample_time))
        self._cycle += 1
        header, unknown = Header(stamp=stamp), [math.nan] * len(self._cylinders)
        joints = JointState(
            header=header,
            name=self._names,
            position=[*measured.pistons.tolist(), *wanted.pistons.tolist(), *unknown],
            velocity=[*unknown, *wanted.velocities.tolist(), *measured.rates.tolist()],
            effort=self._efforts,
        )
        hydraulics = hydraulic_state(
            self._cylinders, measured.head_pressures, measured.rod_pressures, header
        )
        answer = _link().ask(joints, hydraulics)
        return np.array(spools_from_message(answer, self._cylinders, 'valve_command'))
