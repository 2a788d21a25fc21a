"""Record topics as they appear, in the order of publication: a cause is before its effect."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from ._stamps import HeaderClock
from ._subscriptions import RecordedTopic, Subscriptions, Taken
from ._topics import quiet_node
from ._writer import BagWriter

if TYPE_CHECKING:
    from rosbags.interfaces import Connection

# Period of reading the queues and the graph [s]; the queues are deep enough.
_PERIOD = 0.02

# Period of checking publishers and losses, and delay of messages for sorting [s].
_SLOW_PERIOD = 0.1

# Longest time until received messages are written to the file [s].
_FLUSH_PERIOD = 0.4

# After a stop: time without messages that ends the recording, and its limit [s].
_QUIET = 0.25
_DRAIN_LIMIT = 2.0

# Topics that rosbag2 does not record either.
_NOT_BY_DEFAULT = ('/rosout', '/parameter_events')


@dataclass(frozen=True)
class RecordOptions:
    """Options of a recording."""

    output: Path
    # Absolute names; a part * stands for any part. Empty: all but hidden ones and those of ROS.
    topics: tuple[str, ...] = ()
    compress: bool = False
    stamps: str = 'receive'  # bag times: 'receive', of arrival, or 'header', the stamps
    duration: float | None = None  # [s]

    def wants(self, name: str) -> bool:
        """Return whether a topic is to be recorded."""
        if self.topics:
            return any(PurePosixPath(name).match(topic) for topic in self.topics)
        hidden = any(part.startswith('_') for part in name.split('/'))
        return not (hidden or name in _NOT_BY_DEFAULT)


class RecordSummary(NamedTuple):
    """A recording: what was skipped, with the reason, and requested topics that were not seen."""

    bag: Path
    topics: list[RecordedTopic]
    skipped: dict[str, str]
    unseen: list[str]


def record(
    options: RecordOptions, stop: Callable[[], bool], say: Callable[[str], None]
) -> RecordSummary:
    """Record until stopped, then read the remaining messages from the queues and close the bag."""
    with (
        BagWriter(options.output, compress=options.compress) as writer,
        quiet_node(f'longreach_bag_record_{os.getpid()}') as node,
    ):
        recorder = Recorder(writer, options.stamps, say)
        subscriptions = Subscriptions(node, options.wants, say)
        say(f'recording to {options.output}; press Ctrl-C to stop')
        _loop(subscriptions, recorder, options.duration, stop)
    topics = [topic for _, topic in sorted(subscriptions.topics.items())]
    unseen = subscriptions.unseen(options.topics)
    return RecordSummary(options.output, topics, subscriptions.skipped, unseen)


def _loop(
    subscriptions: Subscriptions,
    recorder: Recorder,
    duration: float | None,
    stop: Callable[[], bool],
) -> None:
    """Record until stopped, then read messages published before that."""
    now = time.monotonic()
    end = float('inf') if duration is None else now + duration
    slow_due = flush_due = now
    while not stop() and (now := time.monotonic()) < end:
        subscriptions.discover()
        # Read the queues first: renewing a subscription clears its queue.
        recorder.add(subscriptions.take())
        if now >= slow_due:
            subscriptions.follow_publishers()
            subscriptions.collect_losses()
            recorder.write_in_order()
            slow_due = now + _SLOW_PERIOD
        if now >= flush_due:
            recorder.flush()
            flush_due = now + _FLUSH_PERIOD
        time.sleep(min(_PERIOD, max(end - time.monotonic(), 0.0)))

    asked = time.time_ns()
    limit = time.monotonic() + _DRAIN_LIMIT
    recorder.add(subscriptions.take())
    subscriptions.follow_publishers()
    while time.monotonic() < limit:
        time.sleep(_QUIET)
        taken = subscriptions.take()
        recorder.add(taken)
        if not any(published <= asked for published, *_ in taken):
            break
    subscriptions.collect_losses()
    subscriptions.follow_publishers()
    recorder.add(subscriptions.take(last=True))
    recorder.finish(subscriptions.topics.values())


class Recorder:
    """Sorts messages, determines their bag times, and writes them; independent of ROS."""

    def __init__(self, writer: BagWriter, stamps: str, say: Callable[[str], None]) -> None:
        self._writer, self._say = writer, say
        self.flush = writer.flush
        self._clock = HeaderClock() if stamps == 'header' else None
        self._fresh: list[Taken] = []
        self._held: list[Taken] = []
        self._waiting: list[Taken] = []

    def add(self, taken: Sequence[Taken]) -> None:
        """Add messages in any order."""
        self._fresh.extend(taken)

    def write_in_order(self) -> None:
        """Write messages added before the last call; later ones may still change order."""
        latest = max((item[0] for item in self._held), default=0)
        items = sorted(self._held + self._fresh, key=itemgetter(0))
        self._fresh = []
        self._held = [item for item in items if item[0] > latest]
        for k in range(len(items) - len(self._held)):
            self._write(items, k)

    def finish(self, topics: Iterable[RecordedTopic]) -> None:
        """Write all remaining messages, and topics without messages."""
        self.write_in_order()
        self.write_in_order()
        if self._waiting and self._clock is not None:
            time_of_all = self._clock.waiting_time
            if time_of_all is None:
                self._say('no message has a stamp: the times of reception are written instead')
            for item in self._waiting:
                self._put(item, item[2] if time_of_all is None else time_of_all)
        for topic in topics:
            self._connection(topic)

    def _write(self, items: Sequence[Taken], k: int) -> None:
        """Write one of the messages with its bag time, once that is known."""
        item = items[k]
        _, topic, received, data = item
        stamp = topic.read_stamp(data) if topic.read_stamp else None
        if stamp is not None:
            topic.arrived.append(stamp)
        bag_time: int | None = received
        if self._clock is not None:
            following = None
            if stamp == 0 and topic.read_stamp and not topic.count:
                stamps = (topic.read_stamp(one[3]) for one in items[k + 1 :] if one[1] is topic)
                following = next(filter(None, stamps), None)
            earliest = 0 if topic.is_shared else topic.bag_time
            bag_time = self._clock.assign(stamp, earliest, following)
        if bag_time is None:
            self._waiting.append(item)
            return
        if self._waiting and self._clock is not None:
            for earlier in self._waiting:
                self._put(earlier, self._clock.waiting_time or 0)
            self._waiting.clear()
        self._put(item, bag_time)

    def _put(self, item: Taken, bag_time: int) -> None:
        """Write a message with its bag time [ns]."""
        topic = item[1]
        self._writer.write(self._connection(topic), bag_time, item[3])
        topic.count += 1
        topic.bag_time = bag_time

    def _connection(self, topic: RecordedTopic) -> Connection:
        """Return the topic in the bag; its QoS is that of the publishers known so far."""
        if topic.connection is None:
            topic.connection = self._writer.add_topic(
                topic.name, topic.typename, topic.definition, topic.type_hash, topic.offers
            )
        return topic.connection
