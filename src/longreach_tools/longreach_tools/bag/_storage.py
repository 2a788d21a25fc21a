"""
Open and read rosbag2 recordings, based on the library rosbags.

A recording is a directory with ``metadata.yaml`` and its storage files, or one storage file. A
killed recorder leaves no metadata; then the files are read as far as they are intact. Reading
never changes a recording. Times are integer nanoseconds.
"""

from __future__ import annotations

import contextlib
import copy
import heapq
import re
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any, Self

from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.parameters import load_yaml

from ._topics import Message, Topic, absolute_name, need

_MCAP_MAGIC = b'\x89MCAP0\r\n'
_SQLITE_MAGIC = b'SQLite format 3\x00'
_ROS1_MAGIC = b'#ROSBAG V'
# No message begins like this: the bytes of CDR begin with 0.
_ZSTD_MAGIC = b'(\xb5/\xfd'
_ROS1_REMEDY = 'convert it first: rosbags-convert --src FILE.bag --dst DIRECTORY'
_NO_CHECKSUMS = 'no checksums: sqlite3 has none; its pages are checked, but not the messages'


class Bag:
    """
    An open recording, for use in a ``with`` statement or with :meth:`close`.

    ``problem`` says why only a part can be read, ``checksums``, after a check, which ones it has;
    ``damaged``: more is lost than an end that was never written. Times of the first and last
    message are in ns, 0 without messages.
    """

    def __init__(self, path: Path, storage: str, readers: Sequence[Any]) -> None:
        self.path, self.storage = path, storage
        self.problem = self.checksums = ''
        self.damaged = False
        self._readers = readers
        self._resources = ExitStack()
        self.topics = _merged(path, readers)
        times = [r.metadata for r in readers if r.metadata.message_count]
        self.start_time = min((one.start_time for one in times), default=0)
        # That of rosbags is behind the last message.
        self.end_time = max((one.end_time - 1 for one in times), default=0)

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
        read = 0
        try:
            with _readable(self.path):
                for connection, time, data in self._by_time(wanted, start):
                    if data[:4] == _ZSTD_MAGIC:
                        raise LongreachError(
                            f'{self.path}: its messages are compressed; give the directory of'
                            ' the recording, with its metadata.yaml'
                        )
                    read += 1
                    yield connection.topic, time, data
        except InputError as error:
            raise InputError(f'{error}{self._places()}; {_remedy(self.path)}') from error
        count = sum(self.topics[name].count for name in wanted)
        if start <= self.start_time and read != count:
            raise InputError(
                f'{self.path}: damaged: {read} of {count} messages could be read{self._places()};'
                f' {_remedy(self.path)}'
            )

    def _by_time(self, wanted: Sequence[str], start: int) -> Iterator[Any]:
        """Yield messages in the order of time; files whose times overlap are read together."""
        files = []
        for reader in self._readers:
            for storage in getattr(reader, 'storages', [reader]):
                one = reader
                if storage is not reader:
                    # Of a directory, which rosbags reads file by file.
                    one = copy.copy(reader)
                    one.storages = [storage]
                files.append((storage.metadata.start_time, storage.metadata.end_time, one))
        groups: list[list[Any]] = []
        end = 0
        for first, behind, reader in sorted(files, key=itemgetter(0)):
            if not groups or first >= end:
                groups.append([])
            groups[-1].append(reader)
            end = max(end, behind)
        for group in groups:
            chosen = [
                (reader, [one for one in reader.connections if one.topic in wanted])
                for reader in group
            ]
            parts = [reader.messages(some, start) for reader, some in chosen if some]
            yield from heapq.merge(*parts, key=itemgetter(1))

    def _places(self) -> str:
        """Return where the files are damaged, which rosbags does not say."""
        files = _storage_files(self.path)
        if self.storage != 'mcap' or any(file.suffix == '.zstd' for file in files):
            return ''
        with ExitStack() as resources:
            readers = [_open_file(file, 'mcap', resources, check=True) for file in files]
            return ''.join(f': {reader.damage}' for reader in readers if reader.damage)

    def close(self) -> None:
        """Close the files."""
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()


def open_bag(path: str | Path, *, check: bool = False) -> Bag:
    """
    Open a recording of ROS 2: a directory or a storage file.

    Parameters
    ----------
    path : path
        The recording. What can be read of one that was never closed is read.
    check : bool
        Read the whole recording first to find damage within it, and give what is intact. Without
        it, a recording that was damaged after it was closed is refused, at the latest when it is
        read.

    Raises
    ------
    InputError
        If it is missing, not a recording of ROS 2, damaged or empty.
    """
    need('rosbags.rosbag2')
    from ._mcap import fault_at_end

    path = Path(path)
    if not path.exists():
        raise InputError(f'{path}: no such bag; give the directory of a recording')
    files = _storage_files(path)
    storage = _storage_of(files)
    check = check and not _is_compressed(path, files)
    problems: list[str] = []
    readers: list[Any] = []
    with ExitStack() as resources:
        if (path / 'metadata.yaml').is_file():
            try:
                readers = [_open_closed(path, files, resources)]
            except InputError as error:
                if not check:
                    raise InputError(f'{error}; {_remedy(path)}') from error
                problems.append(str(error))
        elif path.is_dir() or (storage == 'mcap' and fault_at_end(path)):
            problems.append('not closed')
        if check or not readers:
            # By the files, whatever the metadata say.
            readers = [_open_file(file, storage, resources, check) for file in files]
        bag = Bag(path, storage, readers)
        damage = [one.damage for one in readers if getattr(one, 'damage', '')]
        lost = ''
        if check:
            bag.checksums = '; '.join(dict.fromkeys(reader.checksums for reader in readers))
            lost = _lost(path, bag)
        if damage or lost:
            problems.append('; '.join(filter(None, [': '.join(['damaged', *damage]), lost])))
        bag.problem, bag.damaged = '; '.join(problems), bool(damage)
        bag._resources = resources.pop_all()
        return bag


def _is_compressed(path: Path, files: Sequence[Path]) -> bool:
    """Return whether files or messages are compressed, which rosbags unpacks by the metadata."""
    if any(file.suffix == '.zstd' for file in files):
        return True
    try:
        known = load_yaml(path / 'metadata.yaml')['rosbag2_bagfile_information']
        return str(known.get('compression_mode')).lower() == 'message'
    except (InputError, AttributeError, KeyError, TypeError):
        return False


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Convert errors of the readers for damaged files to InputError."""
    try:
        yield
    except (LongreachError, OSError):
        raise
    except Exception as error:
        # Readers that trust a damaged file can raise any exception.
        reason = ' '.join(str(error).split()) or type(error).__name__
        reason = reason.removesuffix('; please report issue.').rstrip('.')
        if reason.startswith('Storage plugin'):
            reason += '; allowed: mcap, sqlite3'
        raise InputError(f'{path}: damaged or not a bag of ROS 2: {reason}') from error


def _remedy(path: Path) -> str:
    """Return what to do with a damaged recording."""
    return f'to save what is left: longreach bag recover {path} --out NEW'


def _lost(path: Path, bag: Bag) -> str:
    """Return how many messages are missing according to the metadata, empty if none is."""
    try:
        known = load_yaml(path / 'metadata.yaml')['rosbag2_bagfile_information']
        counts = {
            topic['topic_metadata']['name']: int(topic['message_count'])
            for topic in known['topics_with_message_count']
        }
    except (InputError, LookupError, TypeError, ValueError):
        return ''
    found = Counter({name: topic.count for name, topic in bag.topics.items()})
    missing = {name: n - found[name] for name, n in counts.items() if n > found[name]}
    topics = ', '.join(f'{name} {n}' for name, n in missing.items())
    text = f'{sum(missing.values())} of {sum(counts.values())} messages lost ({topics})'
    return text if missing else ''


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
    if begin.startswith(_MCAP_MAGIC):
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


def _merged(path: Path, readers: Sequence[Any]) -> dict[str, Topic]:
    """Return one entry for each name: a topic can occur in several files, or several times."""
    merged: dict[str, Topic] = {}
    for c in (connection for reader in readers for connection in reader.connections):
        qos = tuple(c.ext.offered_qos_profiles)
        topic = Topic(c.topic, c.msgtype, c.msgcount, c.msgdef, qos)
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


# --- readers of rosbags ----------------------------------------------------------------------


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


def _open_closed(path: Path, files: Sequence[Path], resources: ExitStack) -> Any:
    """Open a recording with metadata; its MCAP files must be complete."""
    from rosbags.rosbag2.reader import DirectoryReader

    from ._mcap import fault_at_end

    for file in files:
        if file.suffix == '.mcap' and (fault := fault_at_end(file)):
            raise InputError(f'{file}: {fault}')
    with _readable(path):
        reader: Any = DirectoryReader(path)
        reader.open()
        resources.callback(reader.close)
        _match_by_name(reader)
    present = {file.name.removesuffix('.zstd') for file in files}
    named = len(reader.storages)
    if len(present) > named:
        raise InputError(
            f'{path}: {len(present)} storage files, but metadata.yaml names {named};'
            f' remove those that are not of this recording, or: ros2 bag reindex {path}'
        )
    return reader


def _open_file(file: Path, storage: str, resources: ExitStack, check: bool) -> Any:
    """Open a storage file; of an MCAP file that was not closed only what is intact."""
    from rosbags.rosbag2.storage_mcap import McapReader
    from rosbags.rosbag2.storage_sqlite3 import Sqlite3Reader

    from ._mcap import IntactMcap, fault_at_end

    if file.suffix == '.zstd':
        raise InputError(f'{file}: compressed as a whole; unpack it first: unzstd {file}')
    with _readable(file):
        reader: Any
        if storage == 'sqlite3':
            whole = _rolled_back(file, resources)
            if check and not _is_whole(whole):
                raise LongreachError(
                    f'{file}: damaged: pages of the database are not intact; to save what is left:'
                    f' sqlite3 {file} .recover | sqlite3 NEW.db3'
                )
            reader = Sqlite3Reader(whole)
            reader.checksums = _NO_CHECKSUMS
        else:
            reader = (IntactMcap if check or fault_at_end(file) else McapReader)(file)
        reader.open()
        resources.callback(reader.close)
        return reader


def _is_whole(file: Path) -> bool:
    """Return whether all pages of an SQLite file are intact."""
    try:
        with closing(sqlite3.connect(f'{file.resolve().as_uri()}?immutable=1', uri=True)) as data:
            return bool(data.execute('PRAGMA integrity_check(1)').fetchone() == ('ok',))
    except sqlite3.Error:
        return False


def _rolled_back(file: Path, resources: ExitStack) -> Path:
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
