"""
Subscriptions of a recorder or a view: find topics, subscribe to them, read their queues.

Without an executor: deep queues that are read many times a second cost a few percent of a core.
"""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from longreach_dynamics.errors import InputError

from ._stamps import StampReader, StampReport, is_shared, stamp_reader, stamp_report
from ._topics import (
    MachineTypes,
    is_looser,
    message_class,
    recorded,
    subscription_profile,
)

if TYPE_CHECKING:
    from rosbags.interfaces import Connection, Qos


@dataclass
class RecordedTopic:
    """A topic being recorded: QoS of the publishers as far as known, stamps that arrived [ns]."""

    name: str
    typename: str
    definition: str
    type_hash: str
    message: type
    read_stamp: StampReader | None
    offers: tuple[Qos, ...] = ()
    connection: Connection | None = None
    count: int = 0
    bag_time: int = 0  # of the last message written [ns]
    arrived: array[int] = field(default_factory=lambda: array('q'))
    subscription: Any = None
    losses: Any = None  # the event of the middleware
    publishers: int = 0
    # Messages of publishers that were not looked at yet: a topic is known from its subscribers,
    # too, and a publisher that keeps messages should send all of them to a new subscription.
    held: list[Taken] = field(default_factory=list)
    _several_publishers: bool = False
    _last_number: int | None = None
    _lost_by_number: int = 0
    lost_by_event: int = 0

    def note_number(self, number: int | None) -> None:
        """Count losses by sequence numbers, which are unambiguous with one publisher only."""
        if number is None:
            return
        if self._last_number is not None and number > self._last_number:
            self._lost_by_number += number - self._last_number - 1
        self._last_number = number

    def note_publishers(self, offers: tuple[Qos, ...]) -> None:
        """Update the current publishers; the last ones stay known after they end."""
        self.publishers = len(offers)
        self._several_publishers |= len(offers) > 1
        self.offers = offers or self.offers

    @property
    def is_shared(self) -> bool:
        """Whether the stamps are those of several publishers."""
        return is_shared(self.typename, 1 + self._several_publishers)

    @property
    def stamps(self) -> StampReport:
        """Statistics of the stamps, empty where several publishers share the topic."""
        if self.is_shared:
            return StampReport()
        return stamp_report(self.arrived)

    @property
    def lost(self) -> int:
        """Number of messages lost, according to the middleware."""
        return max(self.lost_by_event, 0 if self._several_publishers else self._lost_by_number)


# Published [ns], topic, received [ns], CDR bytes.
Taken = tuple[int, RecordedTopic, int, bytes]


class Subscriptions:
    """
    All subscriptions of a node that is not spun.

    ``wants`` returns whether a topic of a name is to be recorded, ``say`` prints a line for the
    user. ``topics`` are by name, ``skipped`` has the reasons why a topic is not recorded, or only
    in part.
    """

    def __init__(
        self, node: Any, wants: Callable[[str], bool], say: Callable[[str], None]
    ) -> None:
        self._node, self._wants, self._say = node, wants, say
        self._types = MachineTypes()
        self.topics: dict[str, RecordedTopic] = {}
        self.skipped: dict[str, str] = {}
        self._released: list[Taken] = []

    def discover(self) -> None:
        """Subscribe to new topics that are to be recorded."""
        for name, typenames in self._node.get_topic_names_and_types():
            if not self._wants(name) or name in self.skipped:
                continue
            try:
                if len(typenames) > 1:
                    raise _several_types(typenames)
                if name not in self.topics:
                    self._subscribe(name, typenames[0])
            except InputError as error:
                self._skip(name, str(error))

    def follow_publishers(self) -> None:
        """Check for new and ended publishers, and change the QoS if a new one requires it."""
        for topic in self.topics.values():
            if self._node.count_publishers(topic.name) != topic.publishers:
                is_first = not topic.offers
                try:
                    self._look_at_publishers(topic)
                except InputError as error:
                    if topic.name not in self.skipped:
                        self._skip(topic.name, str(error))
                    continue
                wanted = subscription_profile(topic.offers, topic.typename)
                now = topic.subscription.qos_profile
                is_first = is_first and bool(topic.offers)
                if is_looser(wanted, now) or (is_first and wanted.durability != now.durability):
                    self._node.destroy_subscription(topic.subscription)
                    self._open(topic)
            if topic.subscription.qos_profile.durability.name == 'VOLATILE':
                # Of a publisher that keeps nothing, or that came and went.
                self._released += topic.held
                topic.held = []

    def _look_at_publishers(self, topic: RecordedTopic) -> None:
        """Update the QoS offered by the publishers; InputError for one with another type."""
        publishers = self._node.get_publishers_info_by_topic(topic.name)
        topic.note_publishers(tuple(recorded(publisher.qos_profile) for publisher in publishers))
        for publisher in publishers:
            if publisher.topic_type != topic.typename:
                # It appeared after the subscription.
                raise _several_types([topic.typename, publisher.topic_type])
            their_hash = str(publisher.topic_type_hash)
            if their_hash.startswith('RIHS01_') and their_hash != topic.type_hash:
                raise InputError(
                    f'its publisher {publisher.node_name} has another definition of '
                    f'{topic.typename} than this machine; build both from the same source'
                )

    def take(self, last: bool = False) -> list[Taken]:
        """Read all queues; ``last``: nothing is held back any longer."""
        taken, self._released = self._released, []
        for topic in self.topics.values():
            fresh: list[Taken] = []
            message, handle = topic.message, topic.subscription.handle
            with handle:
                while (item := handle.take_message(message, True)) is not None:
                    data, about = item
                    # Middlewares without these times return zero.
                    received = about['received_timestamp'] or time.time_ns()
                    topic.note_number(about['publication_sequence_number'])
                    fresh.append((about['source_timestamp'] or received, topic, received, data))
            if last or (topic.offers and fresh):
                # What the new subscription did not get again.
                begin = min((item[0] for item in fresh), default=math.inf)
                taken += [item for item in topic.held if item[0] < begin]
                taken += fresh
                topic.held = []
            else:
                topic.held += fresh
        return taken

    def collect_losses(self) -> None:
        """Query the middleware for lost messages."""
        for topic in self.topics.values():
            with topic.losses:
                event = topic.losses.take_event()
            if event is not None:
                topic.lost_by_event += event.total_count_change

    def unseen(self, names: Iterable[str]) -> list[str]:
        """Return the requested topics that have not appeared."""
        seen = [*self.topics, *self.skipped]
        return [n for n in names if not any(PurePosixPath(one).match(n) for one in seen)]

    def _skip(self, name: str, reason: str) -> None:
        """Stop recording a topic, and report the reason once."""
        self.skipped[name] = reason
        outcome = 'recorded in part' if name in self.topics else 'not recorded'
        self._say(f'{name}: {outcome}: {reason}')

    def _subscribe(self, name: str, typename: str) -> None:
        """Start recording a topic."""
        definition, type_hash = self._types.definition(typename)
        read_stamp = stamp_reader(typename, self._types.store)
        message = message_class(typename)
        topic = RecordedTopic(name, typename, definition, type_hash, message, read_stamp)
        self._look_at_publishers(topic)
        self._open(topic)
        self.topics[name] = topic
        self._say(f'recording {name} [{typename}]')

    def _open(self, topic: RecordedTopic) -> None:
        """Subscribe with a QoS that is compatible with all publishers."""
        from rclpy.event_handler import QoSSubscriptionEventType, SubscriptionEventCallbacks
        from rclpy.impl.implementation_singleton import rclpy_implementation

        topic.subscription = self._node.create_subscription(
            topic.message,
            topic.name,
            # Never called, because the node is not spun.
            lambda _: None,
            subscription_profile(topic.offers, topic.typename),
            raw=True,
            event_callbacks=SubscriptionEventCallbacks(use_default_callbacks=False),
        )
        lost = QoSSubscriptionEventType.RCL_SUBSCRIPTION_MESSAGE_LOST
        handle = topic.subscription.handle
        with handle:
            topic.losses = rclpy_implementation.EventHandle(handle, lost)


def _several_types(typenames: Sequence[str]) -> InputError:
    """Return the error for a topic with several types."""
    return InputError(f'has several types, {", ".join(typenames)}; one is allowed')
