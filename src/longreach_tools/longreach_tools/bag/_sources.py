"""
Sources of messages: an intact recording, or the readable part of a damaged one.

Reading never changes a recording. Times are integer nanoseconds.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import load_yaml

from ._mcap import read_broken

if TYPE_CHECKING:
    from rosbags.interfaces import MessageDefinition, MessageDefinitionFormat, Qos

# Topic, time [ns], CDR bytes.
Message = tuple[str, int, bytes]

_TYPE = re.compile(r'\w+/\w+/\w+')

NO_SQLITE_CHECKSUMS = 'no checksums: sqlite3 has none; its pages are checked, but not the messages'

# Size of a row besides its data: four values, and the header of a message [bytes].
_SMALLEST_ROW = 20


@dataclass(frozen=True)
class Topic:
    """A topic of a recording: its type and definition, message count and the offered QoS."""

    name: str
    typename: str
    count: int
    definition: MessageDefinition
    qos: tuple[Qos, ...]


class Source(Protocol):
    """Source of messages, implemented for each kind of file."""

    topics: list[Topic]
    start_time: int
    end_time: int
    damage: list[str]
    """Description of what cannot be read, for each file."""
    checksums: str
    """Which ones the files have; empty if this was not looked at."""

    def messages(self, names: Collection[str], start: int) -> Iterator[Message]:
        """Yield messages of some topics from a time [ns] on, in the order of time."""
        ...


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Convert errors of the readers for damaged files to InputError."""
    try:
        yield
    except (InputError, OSError):
        raise
    except Exception as error:
        # Readers that trust a damaged file can raise any exception.
        reason = ' '.join(str(error).split()) or type(error).__name__
        reason = reason.removesuffix('; please report issue.').rstrip('.')
        if reason.startswith('Storage plugin'):
            reason += '; allowed: mcap, sqlite3'
        raise InputError(f'{path}: damaged or not a bag of ROS 2: {reason}') from error


@dataclass(frozen=True)
class Expected:
    """
    Message counts and times according to the metadata of a recording.

    Attributes
    ----------
    counts : dict
        Number of messages by topic; empty if the metadata cannot be read.
    times : tuple of int
        Earliest and latest time [ns].
    """

    counts: dict[str, int] = field(default_factory=dict)
    times: tuple[int, int] = (-(2**63), 2**63 - 1)

    @classmethod
    def of(cls, path: Path) -> Self:
        """Read ``metadata.yaml`` of a recording as far as it is valid."""
        try:
            known = load_yaml(path / 'metadata.yaml')['rosbag2_bagfile_information']
            start = known['starting_time']['nanoseconds_since_epoch']
            counts = {
                topic['topic_metadata']['name']: int(topic['message_count'])
                for topic in known['topics_with_message_count']
            }
            return cls(counts, (start, start + known['duration']['nanoseconds']))
        except (InputError, LookupError, TypeError, ValueError):
            return cls()

    def missing(self, topics: Sequence[Topic]) -> dict[str, int]:
        """Return the number of missing messages of each incomplete topic."""
        found = Counter[str]()
        for topic in topics:
            found[topic.name] += topic.count
        return {name: n - found[name] for name, n in self.counts.items() if n > found[name]}


class RosbagsSource:
    """An intact recording, read by rosbags."""

    def __init__(self, path: Path, resources: ExitStack, checksums: str = '') -> None:
        from rosbags.interfaces import ConnectionExtRosbag2
        from rosbags.rosbag2 import Reader

        self._reader = resources.enter_context(Reader(path))
        self.damage: list[str] = []
        self.checksums = checksums
        self.start_time = self._reader.start_time if self._reader.message_count else 0
        self.end_time = self._reader.end_time - 1 if self._reader.message_count else 0
        self.file_count = 1
        if path.is_dir():
            directory: Any = self._reader.storage
            _match_by_name(directory)
            self.file_count = len(directory.storages)
        self.topics = [
            Topic(
                connection.topic,
                connection.msgtype,
                connection.msgcount,
                connection.msgdef,
                tuple(connection.ext.offered_qos_profiles),
            )
            for connection in self._reader.connections
            if isinstance(connection.ext, ConnectionExtRosbag2)
        ]

    def messages(self, names: Collection[str], start: int) -> Iterator[Message]:
        """Yield messages of some topics from a time [ns] on, in the order of time."""
        chosen = [known for known in self._reader.connections if known.topic in names]
        if chosen:
            for connection, time, data in self._reader.messages(chosen, start=start):
                yield connection.topic, time, data


def _match_by_name(reader: Any) -> None:
    """
    Let rosbags match the topics of metadata and files by name and type only.

    It compares their QoS and hashes too, but ``ros2 bag reindex`` changes the QoS in the metadata.
    """
    kept: dict[tuple[str, str], Any] = {}
    for storage in reader.storages:
        for connection in storage.connections:
            kept.setdefault((connection.topic, connection.msgtype), connection.ext)
    for owner in (reader, *reader.storages):
        owner.connections[:] = [
            one._replace(ext=kept.get((one.topic, one.msgtype), one.ext), digest='')
            for one in owner.connections
        ]


class McapSource:
    """The intact records of an MCAP file, which may be not closed, truncated, or damaged."""

    def __init__(self, path: Path) -> None:
        from rosbags.interfaces import MessageDefinition

        self._file = read_broken(path)
        self.start_time, self.end_time = self._file.start_time, self._file.end_time
        self.damage = [self._file.damage()] if self._file.damage() else []
        self.checksums = self._file.checksums()
        self.topics = [
            Topic(
                channel.topic,
                channel.typename,
                channel.count,
                MessageDefinition(_format(channel.definition_encoding), channel.definition),
                _qos(channel.offered_qos_profiles),
            )
            for channel in self._file.channels.values()
        ]

    def messages(self, names: Collection[str], start: int) -> Iterator[Message]:
        """Yield messages of some topics from a time [ns] on, in the order of time."""
        topics = {
            number: channel.topic
            for number, channel in self._file.channels.items()
            if channel.topic in names
        }
        for number, time, data in self._file.messages(topics):
            if time >= start:
                yield topics[number], time, data


class Files:
    """Several files, read one after the other."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources
        self.topics = [topic for source in sources for topic in source.topics]
        filled = [source for source in sources if any(topic.count for topic in source.topics)]
        self.start_time = min((source.start_time for source in filled), default=0)
        self.end_time = max((source.end_time for source in filled), default=0)
        self.damage = [text for source in sources for text in source.damage]
        self.checksums = '; '.join(dict.fromkeys(source.checksums for source in sources))

    def messages(self, names: Collection[str], start: int) -> Iterator[Message]:
        """Yield messages of some topics from a time [ns] on, file by file."""
        for source in self._sources:
            yield from source.messages(names, start)


class BrokenSqliteSource:
    """
    The rows of a damaged SQLite file that can be read individually.

    Parameters
    ----------
    file : path
        The storage file.
    expected : Expected
        Limits the search, and the times of the messages.
    resources : ExitStack
        Stack that closes the file.
    """

    def __init__(self, file: Path, expected: Expected, resources: ExitStack) -> None:
        from rosbags.interfaces import MessageDefinition

        uri = f'{file.resolve().as_uri()}?immutable=1'
        self._database = resources.enter_context(closing(sqlite3.connect(uri, uri=True)))
        # SQLite opens a truncated file only with it; nothing is written.
        self._database.execute('PRAGMA writable_schema = ON')
        with readable(file):
            rows = self._database.execute(
                'SELECT id, name, type, offered_qos_profiles FROM topics'
            )
            topics = [row for row in rows if _TYPE.fullmatch(str(row[2]))]
        definitions = {}
        # Without definitions in the file, those of this machine are used.
        with contextlib.suppress(sqlite3.Error, UnicodeDecodeError):
            query = 'SELECT topic_type, encoding, encoded_message_definition'
            for typename, *definition in self._database.execute(
                f'{query} FROM message_definitions'
            ):
                definitions[typename] = definition
        self._names = {number: name for number, name, *_ in topics}
        found = []
        for number in range(1, self._last_row(file, expected) + 1):
            row = self._row(number)
            if row is not None and expected.times[0] <= row[1] <= expected.times[1]:
                found.append((row[1], number, row[0]))
        # Row by row, because the index of times may be damaged.
        self._rows = sorted(found)
        self.start_time = self._rows[0][0] if found else 0
        self.end_time = self._rows[-1][0] if found else 0
        counts = Counter(topic for _, _, topic in found)
        self.topics = [
            Topic(
                name,
                typename,
                counts[number],
                MessageDefinition(_format(encoding), definition),
                _qos(qos),
            )
            for number, name, typename, qos in topics
            for encoding, definition in [definitions.get(typename, ('', ''))]
        ]
        self.damage = [f'pages of {file.name}']
        self.checksums = NO_SQLITE_CHECKSUMS

    def messages(self, names: Collection[str], start: int) -> Iterator[Message]:
        """Yield messages of some topics from a time [ns] on, in the order of time."""
        for time, number, topic in self._rows:
            if time >= start and self._names[topic] in names:
                row = self._row(number)
                if row is not None:
                    yield self._names[topic], time, row[2]

    def _row(self, number: int) -> tuple[int, int, bytes] | None:
        """Return topic, time [ns] and data of a row, None if it cannot be read."""
        query = 'SELECT topic_id, timestamp, data FROM messages WHERE id = ?'
        try:
            row = self._database.execute(query, (number,)).fetchone()
        except (sqlite3.Error, UnicodeDecodeError):
            return None
        if row is None or row[0] not in self._names:
            return None
        return row if isinstance(row[1], int) and isinstance(row[2], bytes) else None

    def _last_row(self, file: Path, expected: Expected) -> int:
        """Return the largest possible row number."""
        with contextlib.suppress(sqlite3.Error):
            last = self._database.execute('SELECT max(id) FROM messages').fetchone()[0]
            if isinstance(last, int) and last < file.stat().st_size:
                return max(last, sum(expected.counts.values()))
        return sum(expected.counts.values()) or file.stat().st_size // _SMALLEST_ROW


def is_whole_sqlite(file: Path) -> bool:
    """Return whether all pages of an SQLite file are intact."""
    uri = f'{file.resolve().as_uri()}?immutable=1'
    try:
        with closing(sqlite3.connect(uri, uri=True)) as database:
            (answer,) = database.execute('PRAGMA integrity_check(1)').fetchone()
            return bool(answer == 'ok')
    except sqlite3.Error:
        return False


def _qos(text: str) -> tuple[Qos, ...]:
    """Parse the offered QoS; empty if the text is damaged."""
    from rosbags.rosbag2 import ReaderError
    from rosbags.rosbag2.metadata import parse_qos

    try:
        return tuple(parse_qos(text))
    except (ReaderError, AttributeError, LookupError, TypeError, ValueError):
        return ()


def _format(encoding: str) -> MessageDefinitionFormat:
    """Return the format of a message definition."""
    from rosbags.interfaces import MessageDefinitionFormat

    formats = {'ros2msg': MessageDefinitionFormat.MSG, 'ros2idl': MessageDefinitionFormat.IDL}
    return formats.get(encoding, MessageDefinitionFormat.NONE)


def rolled_back(file: Path, resources: ExitStack) -> Path:
    """
    Return an SQLite file without an unfinished transaction, as a copy if it has one.

    SQLite would write to the recording to roll back a transaction of a killed recorder.
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
