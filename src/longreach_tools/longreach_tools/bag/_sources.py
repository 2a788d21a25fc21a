"""
Where a recording's messages come from: a whole recording, or what is left of a broken one.

Reading never changes a recording. Times are integer nanoseconds.
"""

from __future__ import annotations

import shutil
import sqlite3
import struct
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from longreach_dynamics.errors import InputError

from ._mcap import read_broken

if TYPE_CHECKING:
    from rosbags.interfaces import MessageDefinition, Qos

__all__ = [
    'BrokenMcapSource',
    'Message',
    'RosbagsSource',
    'Source',
    'Topic',
    'readable',
    'rolled_back',
]

# Topic, time [ns], CDR bytes.
Message = tuple[str, int, bytes]


@dataclass(frozen=True)
class Topic:
    """A topic of a recording: its type and definition, message count and the offered QoS."""

    name: str
    typename: str
    count: int
    definition: MessageDefinition
    type_hash: str
    qos: tuple[Qos, ...]


class Source(Protocol):
    """Where the messages come from; made for one kind of file."""

    topics: list[Topic]
    start_time: int
    end_time: int

    def messages(self, names: Collection[str], start: int) -> Iterator[Message]:
        """Yield the messages of some topics from a time [ns] on, in the order of time."""
        ...


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn what the readers raise for damaged files into an InputError."""
    import apsw
    from rosbags.rosbag2 import ReaderError

    failures = (ReaderError, apsw.Error, sqlite3.Error, struct.error, OverflowError)
    # A reader that trusts a damaged file stumbles over its content in these ways.
    stumbles = (AssertionError, AttributeError, LookupError, TypeError, UnicodeDecodeError)
    try:
        yield
    except (*failures, *stumbles) as error:
        reason = ' '.join(str(error).split()) or type(error).__name__
        reason = reason.removesuffix('; please report issue.')
        if reason.startswith('Storage plugin'):
            reason += '; allowed: mcap, sqlite3'
        raise InputError(f'{path}: damaged or not a bag of ROS 2: {reason}') from error


class RosbagsSource:
    """A whole recording, read by rosbags."""

    def __init__(self, path: Path, resources: ExitStack) -> None:
        from rosbags.interfaces import ConnectionExtRosbag2
        from rosbags.rosbag2 import Reader

        self._reader = resources.enter_context(Reader(path))
        self.start_time = self._reader.start_time if self._reader.message_count else 0
        self.end_time = self._reader.end_time - 1 if self._reader.message_count else 0
        self.topics = [
            Topic(
                connection.topic,
                connection.msgtype,
                connection.msgcount,
                connection.msgdef,
                connection.digest,
                tuple(connection.ext.offered_qos_profiles),
            )
            for connection in self._reader.connections
            if isinstance(connection.ext, ConnectionExtRosbag2)
        ]

    def messages(self, names: Collection[str], start: int) -> Iterator[Message]:
        """Yield the messages of some topics from a time [ns] on, in the order of time."""
        chosen = [known for known in self._reader.connections if known.topic in names]
        if chosen:
            for connection, time, data in self._reader.messages(chosen, start=start):
                yield connection.topic, time, data


class BrokenMcapSource:
    """The whole records of MCAP files that were never closed, or cut off."""

    def __init__(self, files: Sequence[Path]) -> None:
        from rosbags.interfaces import MessageDefinition, MessageDefinitionFormat
        from rosbags.rosbag2.metadata import parse_qos

        formats = {'ros2msg': MessageDefinitionFormat.MSG, 'ros2idl': MessageDefinitionFormat.IDL}
        # A recording of several files was cut off in the last one; the others read the same way.
        self._files = [read_broken(file) for file in files]
        filled = [file for file in self._files if any(c.count for c in file.channels.values())]
        self.start_time = min((file.start_time for file in filled), default=0)
        self.end_time = max((file.end_time for file in filled), default=0)
        self.topics = [
            Topic(
                channel.topic,
                channel.typename,
                channel.count,
                MessageDefinition(
                    formats.get(channel.definition_encoding, MessageDefinitionFormat.NONE),
                    channel.definition,
                ),
                '',
                tuple(parse_qos(channel.offered_qos_profiles)),
            )
            for file in self._files
            for channel in file.channels.values()
        ]

    def messages(self, names: Collection[str], start: int) -> Iterator[Message]:
        """Yield the messages of some topics from a time [ns] on, file by file in that order."""
        for file in self._files:
            topics = {
                number: channel.topic
                for number, channel in file.channels.items()
                if channel.topic in names
            }
            for number, time, data in file.messages(topics):
                if time >= start:
                    yield topics[number], time, data


def rolled_back(file: Path, resources: ExitStack) -> Path:
    """
    Return an SQLite file without an unfinished transaction, a copy if it has one.

    SQLite would write into the recording to roll back what a killed recorder did not commit.
    """
    companions = [file.with_name(file.name + suffix) for suffix in ('-journal', '-wal')]
    unfinished = [companion for companion in companions if companion.is_file()]
    if not any(companion.stat().st_size for companion in unfinished):
        return file
    folder = Path(resources.enter_context(tempfile.TemporaryDirectory()))
    for source in (file, *unfinished):
        shutil.copy(source, folder)
    copy = folder / file.name
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute('SELECT count(*) FROM sqlite_master').fetchone()
        connection.execute('PRAGMA journal_mode=DELETE')
    return copy
