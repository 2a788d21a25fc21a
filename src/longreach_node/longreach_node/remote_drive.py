"""A person at the keyboard drives a machine that runs as nodes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from longreach_msgs.msg import HydraulicState, ValveCommand
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from longreach_dynamics.errors import InputError
from longreach_dynamics.teleoperation import OperatorState, Station
from longreach_node import qos
from longreach_node.keyboard import HELP, Keys, terminal_keys
from longreach_node.remote import Remote, remote
from longreach_node.samples import Pairs
from longreach_node.stamps import nanoseconds_of

# Between looks at the keyboard, at other senders, and lines on the screen [s].
_PERIOD, _LOOK, _SHOW = 0.02, 0.5, 0.2

Row = tuple[float, ...]


class _Driver:
    """Samples of a machine, answered as the keys say; arguments as of :func:`drive`."""

    def __init__(
        self,
        far: Remote,
        publisher: Any,
        stations: tuple[Station[Any, Any], Station[Any, Any]],
        measurement_of: Callable[[JointState, HydraulicState], Any],
        message_of: Callable[[Any, Header], ValveCommand],
        row_of: Callable[[JointState, HydraulicState], Row],
    ) -> None:
        self._publisher, self._stations = publisher, stations
        self._measurement_of, self._message_of, self._row_of = measurement_of, message_of, row_of
        self._pairs = Pairs()
        self._state, self._by_tip, self._latest = OperatorState(), False, -1
        self.rows: list[Row] = []
        self.problem = ''
        far.node.create_subscription(JointState, 'joint_states', self._on_joints, qos.STREAM)
        far.node.create_subscription(HydraulicState, 'hydraulics', self._on_oil, qos.STREAM)

    def ask(self, keys: Keys) -> None:
        """Take what the keys ask for now."""
        now = time.monotonic()
        self._by_tip = keys.by_tip
        order = self._stations[self._by_tip].order_of(keys.asked(now))
        self._state = self._stations[self._by_tip].take(self._state, order, now)

    def _on_joints(self, message: JointState) -> None:
        """Take one half of a sample."""
        stamp = nanoseconds_of(message.header.stamp)
        self._on_pair(self._pairs.add(0, stamp, message))

    def _on_oil(self, message: HydraulicState) -> None:
        """Take the other half."""
        stamp = nanoseconds_of(message.header.stamp)
        self._on_pair(self._pairs.add(1, stamp, message))

    def _on_pair(self, pair: Any) -> None:
        """Answer a sample, and keep it for the training figures."""
        if pair is None:
            return
        if pair.stamp < self._latest:
            # Time began anew.
            self._state, self.rows = OperatorState(), []
        self._latest = pair.stamp
        try:
            measured = self._measurement_of(pair.first, pair.second)
            self.rows.append(self._row_of(pair.first, pair.second))
        except InputError as error:
            self.problem = f'sample of {pair.stamp * 1e-9:.6f} s is not used: {error}'
            return
        station = self._stations[self._by_tip]
        self._state, command = station.cycle(self._state, measured, time.monotonic())
        if command is not None:
            self._publisher.publish(self._message_of(command, pair.first.header))


def drive(
    stations: tuple[Station[Any, Any], Station[Any, Any]],
    keys: Keys,
    *,
    machine: str,
    namespace: str,
    timeout: float,
    topic: str,
    others: str,
    stands_still: str,
    measurement_of: Callable[[JointState, HydraulicState], Any],
    message_of: Callable[[Any, Header], ValveCommand],
    row_of: Callable[[JointState, HydraulicState], Row],
    show: Callable[[Row], str],
    stream: TextIO | None = None,
) -> list[Row]:
    """
    Let a person drive a running machine from a terminal, until q, and close the valves.

    The stations are joint by joint and by the tip. ``machine`` to ``stands_still`` are as of
    :func:`longreach_node.remote_valves.command_valves`. ``measurement_of`` and ``row_of`` take
    ``joint_states`` and ``hydraulics`` of one stamp, and return what the stations measure and the
    numbers that are kept; ``show`` returns a short text of these for the screen. Returns the rows
    of all samples, since time began anew if it did. InputError when stdin is no terminal or the
    samples are not of this machine; LongreachError when there is no plant, its time has stopped at
    the start, another node commands the valves, or the plant has gone.
    """
    # Not a terminal: said at once, before any wait.
    with terminal_keys(stream):
        pass
    with remote('drive', namespace, timeout, f'longreach launch {machine}') as far:
        publisher = far.sole_publisher(ValveCommand, topic, others)
        far.moving_sample(HydraulicState, 'hydraulics', machine, stands_still)
        callables = (measurement_of, message_of, row_of)
        driver = _Driver(far, publisher, stations, *callables)
        # Results alone go to stdout.
        print(HELP, file=sys.stderr)
        try:
            with terminal_keys(stream) as read:
                _loop(far, publisher, driver, keys, others, read, show)
        finally:
            print(file=sys.stderr)
            # A stamp of zero is now.
            far.deliver(publisher, message_of(stations[0].closed, Header()))
        return driver.rows


def _loop(
    far: Remote,
    publisher: Any,
    driver: _Driver,
    keys: Keys,
    others: str,
    read: Callable[[], str],
    show: Callable[[Row], str],
) -> None:
    """Read keys and answer samples until q."""
    looked = shown = time.monotonic()
    while not keys.quit:
        far.spin(_PERIOD)
        now = time.monotonic()
        keys.press(read(), now)
        driver.ask(keys)
        if driver.problem:
            raise InputError(driver.problem)
        if now - looked > _LOOK:
            looked = now
            far.check_alone(publisher, others)
        if now - shown > _SHOW and driver.rows:
            shown = now
            what = 'tip' if keys.by_tip else 'joints'
            text = f'{what}, speed {keys.speed:.1f}: {show(driver.rows[-1])}'
            # The line is written again and again; \\x1b[K clears what was longer.
            print(f'\r{text}\x1b[K', end='', file=sys.stderr, flush=True)
