"""A person at the keyboard drives a machine that runs as nodes."""

from __future__ import annotations

import functools
import sys
import time
from abc import abstractmethod
from typing import Any, ClassVar, TextIO

from longreach_msgs.msg import HydraulicState, ValveCommand
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from longreach_dynamics.errors import InputError
from longreach_machine import MachineSpec
from longreach_machine.teleoperation import OperatorState, Station
from longreach_node import qos
from longreach_node.conversions import ControlMessages
from longreach_node.keyboard import HELP, Keys, terminal_keys
from longreach_node.remote import remote
from longreach_node.samples import Pairs
from longreach_node.stamps import nanoseconds_of

# Between looks at the keyboard, at other senders, and lines on the screen [s].
_PERIOD, _LOOK, _SHOW = 0.02, 0.5, 0.2

Row = tuple[float, ...]


class Driver:
    """
    Samples of a machine, answered as the keys say; a machine provides what is abstract.

    ``machine`` are its parameters; ``stations`` are joint by joint, and by the tip.
    """

    spec: ClassVar[MachineSpec[Any, Any, Any]]

    def __init__(
        self, machine: Any, stations: tuple[Station[Any, Any], Station[Any, Any]], keys: Keys
    ) -> None:
        self.machine, self._stations, self._keys = machine, stations, keys
        self._messages = ControlMessages(self.spec, machine)
        self._pairs = Pairs()
        self._state, self._latest = OperatorState(), -1
        self._rows: list[Row] = []
        self._problem = ''

    # --- what a machine provides -------------------------------------------------------------

    @abstractmethod
    def row_of(self, joints: JointState, hydraulics: HydraulicState) -> Row:
        """Return the numbers that are kept of a sample; InputError for another machine."""

    @abstractmethod
    def show(self, row: Row) -> str:
        """Return a short text of a row for the screen."""

    # --- what it does ------------------------------------------------------------------------

    def drive(self, namespace: str, timeout: float, stream: TextIO | None = None) -> list[Row]:
        """
        Let a person drive until q, close the valves, and return the rows since time began.

        InputError without a terminal, or for samples of another machine; LongreachError when there
        is no plant, its time has stopped, another node commands the valves, or it has gone.
        """
        # Not a terminal: said at once, before any wait.
        with terminal_keys(stream):
            pass
        spec = self.spec
        with remote('drive', namespace, timeout, spec.launch) as far:
            self._publisher = far.sole_publisher(ValveCommand, spec.valves, spec.other_senders)
            far.moving_sample(HydraulicState, 'hydraulics', spec.name, spec.stands_still)
            for half, (kind, topic) in enumerate(
                ((JointState, 'joint_states'), (HydraulicState, 'hydraulics'))
            ):
                callback = functools.partial(self._on_half, half)
                far.node.create_subscription(kind, topic, callback, qos.STREAM)
            # Results alone go to stdout.
            print(HELP, file=sys.stderr)
            try:
                with terminal_keys(stream) as read:
                    self._loop(far, read)
            finally:
                print(file=sys.stderr)
                # A stamp of zero is now.
                closed = self._messages.command(self._stations[0].closed, Header())
                far.deliver(self._publisher, closed)
            return self._rows

    def _loop(self, far: Any, read: Any) -> None:
        """Read keys and answer samples until q."""
        keys, looked, shown = self._keys, time.monotonic(), time.monotonic()
        while not keys.quit:
            far.spin(_PERIOD)
            now = time.monotonic()
            keys.press(read(), now)
            station = self._stations[keys.by_tip]
            self._state = station.take(self._state, station.order_of(keys.asked(now)), now)
            if self._problem:
                raise InputError(self._problem)
            if now - looked > _LOOK:
                looked = now
                far.check_alone(self._publisher, self.spec.other_senders)
            if now - shown > _SHOW and self._rows:
                shown = now
                what = 'tip' if keys.by_tip else 'joints'
                text = f'{what}, speed {keys.speed:.1f}: {self.show(self._rows[-1])}'
                # The line is written again and again; \\x1b[K clears what was longer.
                print(f'\r{text}\x1b[K', end='', file=sys.stderr, flush=True)

    def _on_half(self, half: int, message: Any) -> None:
        """Take one half of a sample; answer the whole one, and keep its row."""
        sample = self._pairs.add(half, nanoseconds_of(message.header.stamp), message)
        if sample is None:
            return
        stamp, joints, hydraulics = sample
        if stamp < self._latest:
            # Time began anew.
            self._state, self._rows = OperatorState(), []
        self._latest = stamp
        try:
            values = self._messages.measured(joints, hydraulics)
            self._rows.append(self.row_of(joints, hydraulics))
        except InputError as error:
            self._problem = f'sample of {stamp * 1e-9:.6f} s is not used: {error}'
            return
        station = self._stations[self._keys.by_tip]
        measured = station.measurement(stamp * 1e-9, *values)
        self._state, command = station.cycle(self._state, measured, time.monotonic())
        if command is not None:
            self._publisher.publish(self._messages.command(command, joints.header))
