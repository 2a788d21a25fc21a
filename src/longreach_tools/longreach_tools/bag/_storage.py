"""
Open and read rosbag2 recordings, based on the library rosbags.

A recording is a directory with ``metadata.yaml`` and its storage files, or one storage file. A
killed recorder leaves no metadata; then the files are read as far as they are intact. Reading
never changes a recording. Times are integer nanoseconds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, Self

from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.parameters import load_yaml

from ._mcap import MAGIC, McapSource, fault_at_end
from ._sqlite import NO_CHECKSUMS, BrokenSqliteSource, is_whole, rolled_back
from ._topics import Message, Topic, absolute_name, need_rosbags

_SQLITE_MAGIC = b'SQLite format 3\x00'
_ROS1_MAGIC = b'#ROSBAG V'
_ROS1_REMEDY = 'convert it first: rosbags-convert --src FILE.bag --dst DIRECTORY'


class Source(Protocol):
    """
    Source of messages, for each kind of file.

    ``damage`` says what cannot be read, for each file, ``checksums`` which ones the files have;
    empty if this was not looked at.
    """

    topics: list[Topic]
    start_time: int
    end_time: int
    damage: list[str]
    checksums: str

    def messages(self, names: Collection[str], start: int) -> Iterator[Message]:
        """Yield messages of some topics from a time [ns] on, in the order of time."""
        ...


class Bag:
    """
    An open recording, for use in a ``with`` statement or with :meth:`close`.

    Attributes
    ----------
    path : Path
        Path that was opened.
    storage : str
        ``mcap`` or ``sqlite3``.
    problem : str
        Why only a part can be read; empty for an intact recording.
    checksums : str
        Which ones it has; empty unless it was opened with ``check``.
    topics : dict
        Name to :class:`Topic`, sorted by name.
    start_time, end_time : int
        Times of the first and last message [ns]; 0 without messages.
    """

    def __init__(
        self, path: Path, storage: str, problem: str, source: Source, resources: ExitStack
    ) -> None:
        self.path, self.storage, self.problem = path, storage, problem
        self._source, self._resources = source, resources
        self.checksums = source.checksums
        self.topics = _merged(path, source.topics)
        self.start_time, self.end_time = source.start_time, source.end_time

    @property
    def damaged(self) -> bool:
        """Whether parts of the files cannot be read, apart from an end that was never written."""
        return bool(self._source.damage)

    @property
    def message_count(self) -> int:
        """Number of messages of all topics."""
        return sum(topic.count for topic in self.topics.values())

    def select(self, names: Sequence[str] | None) -> list[str]:
        """Return the absolute names of topics, all for None; InputError if one is missing."""
        if names is None:
            return list(self.topics)
        wanted = [absolute_name(name) for name in names]
        if unknown := [name for name in wanted if name not in self.topics]:
            there = ', '.join(self.topics) or 'none'
            raise InputError(f'{self.path}: no topic {", ".join(unknown)}; topics here: {there}')
        return wanted

    def messages(self, names: Sequence[str] | None = None, start: int = 0) -> Iterator[Message]:
        """
        Yield (topic, time [ns], CDR bytes) in the order of time, then of recording.

        ``names`` are topics, all by default; ``start`` is the first bag time [ns]. InputError if
        a topic is missing, or the recording is damaged.
        """
        wanted = self.select(names)
        remedy = f'to save what is left: longreach bag recover {self.path} --out NEW'
        read = 0
        try:
            with _readable(self.path):
                for message in self._source.messages(wanted, start):
                    read += 1
                    yield message
        except InputError as error:
            raise InputError(f'{error}{self._places()}; {remedy}') from error
        count = sum(self.topics[name].count for name in wanted)
        if start <= self.start_time and read != count:
            raise InputError(
                f'{self.path}: damaged: {read} of {count} messages could be read{self._places()};'
                f' {remedy}'
            )

    def _places(self) -> str:
        """Return where the files are damaged, which rosbags does not say."""
        files = _storage_files(self.path)
        if self.storage != 'mcap' or any(file.suffix == '.zstd' for file in files):
            return ''
        return ''.join(f': {text}' for file in files for text in McapSource(file).damage)

    def close(self) -> None:
        """Close the files."""
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()


def open_bag(path: str | Path, *, accept_damage: bool = False, check: bool = False) -> Bag:
    """
    Open a recording of ROS 2: a directory or a storage file.

    Parameters
    ----------
    path : path
        The recording.
    accept_damage : bool
        Read the intact part of a recording that was damaged after it was closed. Without it, only
        a recording that was never closed is read in part.
    check : bool
        With ``accept_damage``: read the whole recording first to find damage within it.

    Raises
    ------
    InputError
        If it is missing, not a recording of ROS 2, damaged or empty.
    """
    need_rosbags()
    path = Path(path)
    if not path.exists():
        raise InputError(f'{path}: no such bag; give the directory of a recording')
    files = _storage_files(path)
    storage = _storage_of(files)
    packed = any(file.suffix == '.zstd' for file in files)
    expected = _Expected.of(path)
    resources = ExitStack()
    problems: list[str] = []
    try:
        closed = (path / 'metadata.yaml').is_file()
        try:
            if closed:
                source = _open_closed(path, files, resources)
            else:
                source = _Files(files, storage, expected, resources, check=False)
                if path.is_dir() or (storage == 'mcap' and fault_at_end(path)):
                    problems.append('not closed')
            if check and accept_damage and not packed:
                # By the files, whatever the metadata say.
                source = _Files(files, storage, expected, resources, check=True)
        except InputError as error:
            if not accept_damage:
                if not closed:
                    raise
                raise InputError(
                    f'{error}; to save what is left: longreach bag recover {path} --out NEW'
                ) from error
            try:
                source = _Files(files, storage, expected, resources, check=True)
            except InputError as worse:
                raise error from worse
            problems.append(str(error))
        if source.damage or (check and expected.missing(source.topics)):
            problems.append(_what_is_lost(source, expected))
        return Bag(path, storage, '; '.join(problems), source, resources)
    except BaseException:
        resources.close()
        raise


@contextmanager
def _readable(path: Path) -> Iterator[None]:
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
class _Expected:
    """Message counts by topic, and their limits of time [ns], according to the metadata."""

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


def _what_is_lost(source: Source, expected: _Expected) -> str:
    """Return the damaged parts of a recording and its missing messages."""
    text = f'damaged: {"; ".join(source.damage)}' if source.damage else 'damaged'
    if missing := expected.missing(source.topics):
        count = sum(missing.values())
        topics = ', '.join(f'{name} {n}' for name, n in missing.items())
        text += f'; {count} of {sum(expected.counts.values())} messages lost ({topics})'
    return text


def _storage_files(path: Path) -> list[Path]:
    """Return the storage files of a recording in the order of their numbers."""
    if path.is_file():
        return [path]
    found = [
        file
        for file in path.iterdir()
        if re.search(r'\.(mcap|db3)(\.zstd)?$', file.name) and file.is_file()
    ]
    if not found:
        if any(path.glob('*.bag')):
            raise InputError(f'{path}: bags of ROS 1; {_ROS1_REMEDY}')
        raise InputError(
            f'{path}: not a bag: no .mcap and no .db3 file in it; give the directory of a '
            'recording'
        )
    return sorted(found, key=lambda file: [int(n) for n in re.findall(r'\d+', file.name)])


def _storage_of(files: Sequence[Path]) -> str:
    """Return the storage kind, from the name or the content of the first file."""
    file = files[0]
    if file.suffix == '.zstd':
        return 'mcap' if '.mcap' in file.name else 'sqlite3'
    with file.open('rb') as stream:
        begin = stream.read(16)
    if begin.startswith(MAGIC):
        return 'mcap'
    if begin == _SQLITE_MAGIC:
        return 'sqlite3'
    if begin.startswith(_ROS1_MAGIC):
        raise InputError(f'{file}: a bag of ROS 1; {_ROS1_REMEDY}')
    if not begin:
        raise InputError(f'{file}: an empty file, no message was written')
    raise InputError(
        f'{file}: not a bag: neither an MCAP nor an SQLite file; expected a recording by '
        'longreach bag record or ros2 bag record'
    )


def _merged(path: Path, topics: Sequence[Topic]) -> dict[str, Topic]:
    """Return one entry for each name: a topic can occur in several files, or several times."""
    merged: dict[str, Topic] = {}
    for topic in topics:
        known = merged.setdefault(topic.name, topic)
        if known.typename != topic.typename:
            raise LongreachError(
                f'{path}: topic {topic.name} has two types, {known.typename} and '
                f'{topic.typename}; one is allowed'
            )
        if known is not topic:
            qos = known.qos + tuple(item for item in topic.qos if item not in known.qos)
            merged[topic.name] = replace(known, count=known.count + topic.count, qos=qos)
    return dict(sorted(merged.items()))


# --- sources --------------------------------------------------------------------------------


class _RosbagsSource:
    """An intact recording, read by rosbags."""

    def __init__(self, path: Path, resources: ExitStack, checksums: str = '') -> None:
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
        connections: list[Any] = self._reader.connections
        self.topics = [
            Topic(c.topic, c.msgtype, c.msgcount, c.msgdef, tuple(c.ext.offered_qos_profiles))
            for c in connections
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


def _open_closed(path: Path, files: Sequence[Path], resources: ExitStack) -> Source:
    """Open a recording with metadata; its MCAP files must be complete."""
    for file in files:
        if file.suffix == '.mcap' and (fault := fault_at_end(file)):
            raise InputError(f'{file}: {fault}')
    with _readable(path):
        source = _RosbagsSource(path, resources)
    present = {file.name.removesuffix('.zstd') for file in files}
    if len(present) > source.file_count:
        raise InputError(
            f'{path}: {len(present)} storage files, but metadata.yaml names {source.file_count};'
            f' remove those that are not of this recording, or: ros2 bag reindex {path}'
        )
    return source


class _Files:
    """Storage files without metadata, one after the other; ``check`` reads them for damage."""

    def __init__(
        self,
        files: Sequence[Path],
        storage: str,
        expected: _Expected,
        resources: ExitStack,
        *,
        check: bool,
    ) -> None:
        if packed := [file for file in files if file.suffix == '.zstd']:
            raise InputError(
                f'{packed[0]}: compressed as a whole; unpack it first: unzstd {packed[0]}'
            )
        sources = [_open_file(file, storage, expected, resources, check) for file in files]
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


def _open_file(
    file: Path, storage: str, expected: _Expected, resources: ExitStack, check: bool
) -> Source:
    """Open a storage file; an MCAP file that was not closed is always checked."""
    with _readable(file):
        if storage == 'mcap':
            whole = not check and not fault_at_end(file)
            return _RosbagsSource(file, resources) if whole else McapSource(file)
        file = rolled_back(file, resources)
        if check and not is_whole(file):
            rows = sum(expected.counts.values())
            return BrokenSqliteSource(file, rows, expected.times, resources)
        return _RosbagsSource(file, resources, NO_CHECKSUMS)
