"""Clocks of nodes: one for timers, and one for time-outs."""

from __future__ import annotations

import time
from typing import Any

from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.time_source import TimeSource
from rosgraph_msgs.msg import Clock as ClockMessage

from longreach_node.qos import CLOCK
from longreach_node.stamps import nanoseconds_of


def steady_clock() -> Clock:
    """
    Return the clock for a timer.

    A timer with the node's clock follows ``use_sim_time``: it stops while /clock is not published;
    in the node that publishes /clock it would never start.
    """
    return Clock(clock_type=ClockType.STEADY_TIME)


def ignore_times_before_zero() -> None:
    """Let nodes ignore times before 0 on /clock, which end a node of rclpy, with a warning."""
    follow = TimeSource.clock_callback
    warned = False

    def clock_callback(source: TimeSource, message: ClockMessage) -> None:
        nonlocal warned
        if message.clock.sec >= 0:
            follow(source, message)
        elif not warned:
            warned = True
            get_logger('longreach').warning(
                f'time {message.clock.sec} s on /clock ignored, allowed: 0 s or later'
            )

    patched: Any = TimeSource
    patched.clock_callback = clock_callback


class LivingClock:
    """
    Time for time-outs [s], from any origin.

    With ``use_sim_time`` a pause must not cause a time-out: simulation time stops during a pause,
    and the simulation repeats it on /clock. When nothing has come on /clock for ``silence`` [s],
    no simulation is running, and time continues with the wall clock.
    """

    def __init__(self, node: Node, silence: float) -> None:
        self._silence = silence
        self._simulated = 0.0
        self._heard = time.monotonic()
        self._follows_clock = bool(node.get_parameter('use_sim_time').value)
        if self._follows_clock:
            node.create_subscription(ClockMessage, '/clock', self._on_clock, CLOCK)

    def _on_clock(self, message: ClockMessage) -> None:
        """Follow simulation time; it is not before 0."""
        if message.clock.sec < 0:
            return
        self._simulated = nanoseconds_of(message.clock) * 1e-9
        self._heard = time.monotonic()

    def now(self) -> float:
        """Return the time [s]."""
        if not self._follows_clock:
            return time.monotonic()
        return self._simulated + max(0.0, time.monotonic() - self._heard - self._silence)
