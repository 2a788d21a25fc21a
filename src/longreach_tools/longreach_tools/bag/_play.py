"""Play a recording by its bag times; a tick of /clock is before the messages of its time."""

from __future__ import annotations

import heapq
import itertools
import os
import struct
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from longreach_dynamics.errors import InputError, LongreachError

from ._reading import store_of
from ._stamps import NANOSECONDS
from ._storage import Bag, open_bag
from ._topics import (
    PLAYER_DEPTH,
    MachineTypes,
    Message,
    definition_in,
    message_class,
    publisher_profile,
    quiet_node,
)

_CLOCK, _CLOCK_TYPE = '/clock', 'rosgraph_msgs/msg/Clock'
_CLOCK_CDR = struct.Struct('<4xiI')

# Longest sleep between checks of the stop condition [s].
_NAP = 0.05

# Longest wait for subscribers [s]; time for them to find the player without, and with waiting: a
# publisher detects a match before its subscriber does.
WAIT_LIMIT, _DELAY, _MATCH_PAUSE = 10.0, 0.5, 0.1

# As fast as possible: after this many messages, half the depth of a history, the player waits
# until reliable subscribers have them; at most this long [s].
_BURST = PLAYER_DEPTH // 2
_BURST_LIMIT = 5.0

# Longest wait for subscribers to receive the last messages [s], and the same after a stop.
_LAST_LIMIT = 5.0
_STOPPED_LIMIT = 0.5

# Delay of the player that is reported [s].
_NOTABLE_LAG = 0.1


class PlayOptions(NamedTuple):
    """Options of a playback."""

    rate: float = 1.0  # speed; 0: as fast as possible
    loop: bool = False  # until stopped
    clock_rate: float | None = None  # of /clock in bag time [Hz]; the recorded one is left out
    start_offset: float = 0.0  # [s of the bag]
    duration: float | None = None  # [s of the bag]
    topics: Sequence[str] | None = None
    subscribers: int = 0  # of each topic, which are waited for


def timeline(
    bag: Bag, names: Sequence[str], options: PlayOptions
) -> tuple[int, int, Iterator[Message]]:
    """Return begin and end [ns] and (topic, bag time [ns], CDR bytes) of one repetition."""
    begin = bag.start_time + round(options.start_offset * NANOSECONDS)
    end = bag.end_time
    if begin > end:
        length = (bag.end_time - bag.start_time) / NANOSECONDS
        raise InputError(
            f'start offset {options.start_offset:g} s; the bag has {length:g} s, allowed is less'
        )
    if options.duration is not None:
        end = min(end, begin + round(options.duration * NANOSECONDS))
    messages = itertools.takewhile(lambda one: one[1] <= end, bag.messages(names, begin))
    # A tick precedes a message of the same time.
    ticks = _ticks(begin, end, options.clock_rate)
    earlier = _kept(bag, names, begin)
    return begin, end, heapq.merge(ticks, itertools.chain(earlier, messages), key=itemgetter(1))


def _kept(bag: Bag, names: Sequence[str], begin: int) -> list[Message]:
    """Return what publishers that keep messages for late subscribers have at a time [ns]."""
    kept = {}
    for name in names:
        offers = [qos for qos in bag.topics[name].qos if qos.durability.name == 'TRANSIENT_LOCAL']
        if offers:
            kept[name] = deque[Message](maxlen=sum(max(1, qos.depth) for qos in offers))
    if kept and begin > bag.start_time:
        for name, bag_time, data in bag.messages([*kept]):
            if bag_time >= begin:
                break
            kept[name].append((name, bag_time, data))
    found = sorted(itertools.chain(*kept.values()), key=itemgetter(1))
    return [(name, begin, data) for name, _, data in found]


def _ticks(begin: int, end: int, rate: float | None) -> Iterator[Message]:
    """Yield the clock messages between two times [ns]."""
    number = 0
    while rate is not None and (now := begin + round(number * NANOSECONDS / rate)) <= end:
        data = bytearray(_CLOCK_CDR.pack(*divmod(now, NANOSECONDS)))
        data[1] = 1  # little-endian
        yield _CLOCK, now, bytes(data)
        number += 1


def play(
    path: str | Path,
    options: PlayOptions,
    stop: Callable[[], bool],
    say: Callable[[str], None],
) -> int:
    """Play a recording and return the number of messages published, clock ticks included."""
    with open_bag(path) as bag:
        if bag.problem:
            say(f'{path}: {bag.problem}; {bag.message_count} messages recovered')
        names = bag.select(options.topics)
        if options.clock_rate is not None:
            names = [name for name in names if name != _CLOCK]
        classes = _classes(bag, names)
        # Check the options before creating publishers.
        next(timeline(bag, list(classes), options)[2], None)
        with quiet_node(f'longreach_bag_play_{os.getpid()}') as node:
            publishers = {
                name: node.create_publisher(
                    kind,
                    name,
                    publisher_profile(bag.topics[name].qos, bag.topics[name].count),
                )
                for name, kind in classes.items()
            }
            if options.clock_rate is not None:
                kind, profile = message_class(_CLOCK_TYPE), publisher_profile((), PLAYER_DEPTH)
                publishers[_CLOCK] = node.create_publisher(kind, _CLOCK, profile)
            player = _Player(publishers, options, stop, say)
            player.await_subscribers()
            player.play(*timeline(bag, list(classes), options))
            while options.loop and not stop():
                player.play(*timeline(bag, list(classes), options))
            player.finish()
            return player.published


def _classes(bag: Bag, names: list[str]) -> dict[str, type]:
    """Return the Python class of each topic; InputError for what cannot be published here."""
    machine = MachineTypes()
    classes = {}
    for name in names:
        typename = bag.topics[name].typename
        try:
            classes[name] = message_class(typename)
            if bag.topics[name].definition.data:
                _, recorded = definition_in(store_of(bag, [name])[name], typename)
                if recorded != machine.definition(typename)[1]:
                    # Subscribers on this machine would misread them.
                    raise InputError(
                        f'message type {typename} is defined differently on this machine than in'
                        ' the bag; source a workspace with the version it was recorded with'
                    )
        except InputError as error:
            raise InputError(f'{name}: {error}; or leave it out: --topics') from error
    return classes


class _Player:
    """Publishers by recorded topic, and the times at which messages are due."""

    def __init__(
        self,
        publishers: Mapping[str, Any],
        options: PlayOptions,
        stop: Callable[[], bool],
        say: Callable[[str], None],
    ) -> None:
        self._publishers, self._options = publishers, options
        self._stop, self._say = stop, say
        self._lag = 0.0
        self.published = 0

    def _fewer(self, count: int) -> str:
        """Return the topics with fewer subscribers than this."""
        publishers = self._publishers.values()
        return ', '.join(p.topic_name for p in publishers if p.get_subscription_count() < count)

    def await_subscribers(self) -> None:
        """Wait for the requested subscribers, then until all have discovered the player."""
        wanted = self._options.subscribers
        limit = time.monotonic() + WAIT_LIMIT
        while not self._stop() and (missing := self._fewer(wanted)):
            if time.monotonic() > limit:
                raise LongreachError(
                    f'after {WAIT_LIMIT:g} s fewer than {wanted} subscribers of {missing}; start'
                    ' them first'
                )
            time.sleep(0.02)
        self._sleep_until(time.monotonic() + (_MATCH_PAUSE if wanted else _DELAY))
        if (unheard := self._fewer(1)) and not self._stop():
            self._say(f'no subscribers of {unheard} yet; use --wait-for-subscribers to wait')

    def play(self, begin: int, end: int, messages: Iterator[Message]) -> None:
        """Publish the recording once, each message at its time, from begin to end [ns]."""
        rate = self._options.rate
        start = time.monotonic()
        for name, bag_time, data in messages:
            if rate > 0.0:
                due = start + (bag_time - begin) / NANOSECONDS / rate
                self._sleep_until(due)
                self._lag = max(self._lag, time.monotonic() - due)
            if self._stop():
                return
            self._publishers[name].publish(data)
            self.published += 1
            if rate == 0.0 and self.published % _BURST == 0:
                # Reliable subscribers must keep up.
                self._late(_BURST_LIMIT)
        if self._options.loop:
            length = (end - begin) / NANOSECONDS / rate if rate > 0.0 else 0.0
            # A recording with a single time must not be repeated without a pause.
            self._sleep_until(start + max(length, _NAP))

    def finish(self) -> None:
        """Wait until subscribers have received all messages; report deviations."""
        if late := self._late(_STOPPED_LIMIT if self._stop() else _LAST_LIMIT):
            self._say(f'not all subscribers have received all of {", ".join(late)}')
        if self._lag > _NOTABLE_LAG:
            self._say(f'up to {self._lag:.2f} s late; use a lower rate')

    def _late(self, seconds: float) -> list[str]:
        """Wait for the reliable subscribers; return topics of which some have not all messages."""
        from rclpy.duration import Duration

        end, late = time.monotonic() + seconds, []
        for publisher in self._publishers.values():
            left: Any = Duration(seconds=max(end - time.monotonic(), 0.0))
            if not publisher.wait_for_all_acked(left):
                late.append(publisher.topic_name)
        return late

    def _sleep_until(self, due: float) -> None:
        """Sleep until a time of the monotonic clock [s], or until stopped."""
        while (left := due - time.monotonic()) > 0.0 and not self._stop():
            time.sleep(min(left, _NAP))
