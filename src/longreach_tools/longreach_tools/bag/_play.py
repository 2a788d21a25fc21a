"""
Play a recording: publish its serialised messages in order, at their times.

The times are those of the bag, relative to the start and divided by the rate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from longreach_dynamics.errors import InputError, LongreachError

from ._qos import PLAYER_DEPTH, publisher_profile
from ._reading import store_of
from ._sources import Message, Topic
from ._storage import Bag, open_bag
from ._timeline import CLOCK, NANOSECONDS, PlayOptions, timeline
from ._types import MachineTypes, definition_in, message_class, need_ros

_CLOCK_TYPE = 'rosgraph_msgs/msg/Clock'

# Longest sleep between checks of the stop condition [s].
_NAP = 0.05

# A publisher detects a match before its subscriber does; time for the subscriber to do so [s].
_MATCH_PAUSE = 0.1

# As fast as possible: after this many messages of a topic, half the depth of its history, the
# player waits until its reliable subscribers have them; at most this long [s].
_BURST = PLAYER_DEPTH // 2
_BURST_LIMIT = 5.0

# Longest wait for subscribers to receive the last messages [s], and the same after a stop.
_LAST_LIMIT = 5.0
_STOPPED_LIMIT = 0.5

# Delay of the player that is reported [s].
_NOTABLE_LAG = 0.1


def play(
    path: str | Path,
    options: PlayOptions,
    stop: Callable[[], bool],
    say: Callable[[str], None],
) -> int:
    """Play a recording and return the number of messages published, clock ticks included."""
    need_ros()
    import rclpy
    from rclpy.context import Context
    from rclpy.signals import SignalHandlerOptions
    from rclpy.utilities import try_shutdown

    with ExitStack() as resources:
        bag = resources.enter_context(open_bag(path))
        if bag.problem:
            say(f'{path}: {bag.problem}; {bag.message_count} messages recovered')
        names = bag.select(options.topics)
        if options.clock_rate is not None:
            names = [name for name in names if name != CLOCK]
        classes = _classes(bag, names, options, say)
        # Check the options before creating publishers.
        next(timeline(bag, list(classes), options), None)
        context = Context()
        rclpy.init(args=[], context=context, signal_handler_options=SignalHandlerOptions.NO)
        resources.callback(try_shutdown, context=context)
        node: Any = rclpy.create_node(
            options.node_name, context=context, enable_rosout=False, start_parameter_services=False
        )
        resources.callback(node.destroy_node)
        player = _Player(node, options, stop, say)
        for name, message in classes.items():
            player.advertise(bag.topics[name], message)
        if options.clock_rate is not None:
            player.advertise_clock()
        player.await_subscribers()
        number = 0
        while not stop() and (options.passes == 0 or number < options.passes):
            player.play(timeline(bag, list(classes), options))
            number += 1
        player.finish()
        return player.published


def _classes(
    bag: Bag, names: list[str], options: PlayOptions, say: Callable[[str], None]
) -> dict[str, type]:
    """Return the Python class of each topic that can be published on this machine."""
    if unknown := [name for name in options.remap if name not in bag.topics]:
        there = ', '.join(bag.topics) or 'none'
        raise InputError(f'remap of {", ".join(unknown)}; topics of the bag: {there}')
    machine = MachineTypes()
    classes = {}
    for name in names:
        topic = bag.topics[name]
        try:
            classes[name] = message_class(topic.typename)
            _check_definition(bag, topic, machine)
        except InputError as error:
            if not options.keep_going:
                raise InputError(f'{name}: {error}; or leave it out: --keep-going') from error
            classes.pop(name, None)
            say(f'{name}: not played: {error}')
    return classes


def _check_definition(bag: Bag, topic: Topic, machine: MachineTypes) -> None:
    """Raise InputError for messages that subscribers on this machine would misread."""
    if not topic.definition.data:
        return
    _, recorded = definition_in(store_of(bag, [topic.name])[topic.name], topic.typename)
    _, here = machine.definition(topic.typename)
    if recorded != here:
        raise InputError(
            f'message type {topic.typename} is defined differently on this machine than in the'
            ' bag; source a workspace with the version it was recorded with'
        )


class _Player:
    """Publishers, and the times at which messages are due."""

    def __init__(
        self,
        node: Any,
        options: PlayOptions,
        stop: Callable[[], bool],
        say: Callable[[str], None],
    ) -> None:
        self._node = node
        self._options = options
        self._stop = stop
        self._say = say
        self._publishers: dict[str, Any] = {}
        self._unacknowledged: dict[str, int] = {}
        self._lag = 0.0
        self.published = 0

    def advertise(self, topic: Topic, message: type) -> None:
        """Create the publisher of a recorded topic."""
        name = self._options.remap.get(topic.name, topic.name)
        profile = publisher_profile(topic.qos, topic.count)
        self._publishers[topic.name] = self._node.create_publisher(message, name, profile)

    def advertise_clock(self) -> None:
        """Create the publisher of the clock."""
        message = message_class(_CLOCK_TYPE)
        profile = publisher_profile((), PLAYER_DEPTH)
        self._publishers[CLOCK] = self._node.create_publisher(message, CLOCK, profile)

    def await_subscribers(self) -> None:
        """Wait for the requested subscribers, then until all have discovered the player."""
        wanted = self._options.subscribers
        limit = time.monotonic() + self._options.wait_limit
        while not self._stop():
            missing = [
                publisher.topic_name
                for publisher in self._publishers.values()
                if publisher.get_subscription_count() < wanted
            ]
            if not missing:
                break
            if time.monotonic() > limit:
                raise LongreachError(
                    f'after {self._options.wait_limit:g} s fewer than {wanted} subscribers of '
                    f'{", ".join(missing)}; start them first, or allow more by --wait-limit'
                )
            time.sleep(0.02)
        self._sleep_until(time.monotonic() + (_MATCH_PAUSE if wanted else self._options.delay))
        unheard = [
            publisher.topic_name
            for publisher in self._publishers.values()
            if publisher.get_subscription_count() == 0
        ]
        if unheard and not self._stop():
            self._say(
                f'no subscribers of {", ".join(unheard)} yet; use --wait-for-subscribers to wait'
            )

    def play(self, messages: Iterator[Message]) -> None:
        """Publish the recording once, each message at its time."""
        rate = self._options.rate
        begin = time.monotonic()
        first: int | None = None
        for name, bag_time, data in messages:
            if first is None:
                first = bag_time
            if rate > 0.0:
                due = begin + (bag_time - first) / NANOSECONDS / rate
                self._sleep_until(due)
                self._lag = max(self._lag, time.monotonic() - due)
            if self._stop():
                return
            self._publishers[name].publish(data)
            self.published += 1
            if rate == 0.0:
                self._hold_back(name)
        if self._options.passes != 1:
            # A recording with a single time must not be repeated without a pause.
            self._sleep_until(max(time.monotonic(), begin + _NAP))

    def finish(self) -> None:
        """Wait until subscribers have received all messages; report deviations."""
        limit = time.monotonic() + (_STOPPED_LIMIT if self._stop() else _LAST_LIMIT)
        late = [
            publisher.topic_name
            for publisher in self._publishers.values()
            if not _acknowledged(publisher, max(limit - time.monotonic(), 0.0))
        ]
        if late:
            self._say(f'not all subscribers have received all of {", ".join(late)}')
        if self._lag > _NOTABLE_LAG:
            self._say(f'up to {self._lag:.2f} s late; use a lower rate')

    def _hold_back(self, name: str) -> None:
        """Let reliable subscribers keep up if messages are published as fast as possible."""
        count = self._unacknowledged[name] = self._unacknowledged.get(name, 0) + 1
        if count >= _BURST:
            _acknowledged(self._publishers[name], _BURST_LIMIT)
            self._unacknowledged[name] = 0

    def _sleep_until(self, due: float) -> None:
        """Sleep until a time of the monotonic clock [s], or until stopped."""
        while (left := due - time.monotonic()) > 0.0 and not self._stop():
            time.sleep(min(left, _NAP))


def _acknowledged(publisher: Any, limit: float) -> bool:
    """Wait at most this long [s] until a publisher's reliable subscribers have all messages."""
    from rclpy.duration import Duration

    duration: Any = Duration(nanoseconds=int(limit * NANOSECONDS))
    return bool(publisher.wait_for_all_acked(duration))
