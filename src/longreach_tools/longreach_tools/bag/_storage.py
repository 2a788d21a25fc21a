"""Open and read rosbag2 recordings by rosbags, also unclosed ones; reading never changes them."""

from __future__ import annotations

import contextlib
import heapq
import re
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from operator import itemgetter
from pathlib import Path, PurePath
from typing import Any, Self

from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.parameters import load_yaml

from ._topics import Message, Topic, absolute_name

_MCAP_MAGIC = b'\x89MCAP0\r\n'
_SQLITE_MAGIC = b'SQLite format 3\x00'
# No message begins like this: the bytes of CDR begin with 0.
_ZSTD_MAGIC = b'(\xb5/\xfd'
_ROS1 = '; of ROS 1: rosbags-convert --src FILE.bag --dst DIRECTORY'
_NO_CHECKSUMS = 'no checksums: sqlite3 has none; its pages are checked, but not the messages'


class Bag:
    """
    An open recording, for use in a ``with`` statement or with :meth:`close`.

    ``problem`` says why only a part can be read, ``checksums``, after a check, which ones it has.
    Times of the first and last message are in ns, 0 without messages.
    """

    def __init__(self, path: Path, storage: str, readers: Sequence[Any]) -> None:
        self.path, self.storage = path, storage
        self.problem = self.checksums = ''
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
        from rosbags.rosbag2.reader import zstd  # type: ignore[attr-defined]

        wanted = self.select(names)
        read = 0
        with _readable(self.path):
            for connection, time, data in self._by_time(wanted, start):
                read += 1
                packed = data.startswith(_ZSTD_MAGIC)
                yield connection.topic, time, zstd.decompress(data) if packed else data
        count = sum(self.topics[name].count for name in wanted)
        if start <= self.start_time and read != count:
            raise InputError(
                f'{self.path}: damaged: {read} of {count} messages could be read;'
                f' {_remedy(self.path)}'
            )

    def _by_time(self, wanted: Sequence[str], start: int) -> Iterator[Any]:
        """Return the messages of all files in the order of time."""
        parts = []
        for reader in self._readers:
            chosen = [one for one in reader.connections if one.topic in wanted]
            if chosen:
                parts.append(reader.messages(chosen, start))
        return heapq.merge(*parts, key=itemgetter(1))

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
    from ._mcap import fault_at_end

    path = Path(path)
    if not path.exists():
        raise InputError(f'{path}: no such bag; give the directory of a recording')
    files = _storage_files(path)
    with ExitStack() as resources:
        unpacked = [_unpacked(file, resources) for file in files]
        storage = _storage_of(unpacked[0])
        problems = []
        if storage == 'mcap':
            faults = zip(files, map(fault_at_end, unpacked), strict=True)
            problems = [f'{file}: {fault}' for file, fault in faults if fault]
        counts = Counter[str]()
        if (path / 'metadata.yaml').is_file():
            try:
                counts = _metadata(path, files)
            except InputError as error:
                problems.insert(0, str(error))
            if problems and not check:
                raise InputError(f'{problems[0]}; {_remedy(path)}')
        elif path.is_dir() or problems:
            problems = ['not closed']
        readers = [_open_file(file, storage, resources, check) for file in unpacked]
        bag = Bag(path, storage, readers)
        damage = [one.damage for one in readers if getattr(one, 'damage', '')]
        if lost := _lost(counts, bag):
            damage.append(lost)
        if damage:
            problems.append(f'damaged: {"; ".join(damage)}')
        # One that was not closed has a problem before.
        if damage and not check and len(problems) == 1:
            raise InputError(f'{path}: {problems[0]}; {_remedy(path)}')
        if check:
            bag.checksums = '; '.join(dict.fromkeys(reader.checksums for reader in readers))
        bag.problem = '; '.join(problems)
        bag._resources = resources.pop_all()
        return bag


def _metadata(path: Path, files: Sequence[Path]) -> Counter[str]:
    """Return the number of messages by topic; InputError unless the files are those named."""
    file = path / 'metadata.yaml'
    content = load_yaml(file)
    counts = Counter[str]()
    try:
        known = content['rosbag2_bagfile_information']
        named = {PurePath(name).name for name in known['relative_file_paths']}
        for topic in known['topics_with_message_count']:
            counts[topic['topic_metadata']['name']] += int(topic['message_count'])
    except (LookupError, TypeError, ValueError) as error:
        raise InputError(f'{file}: not the metadata of a recording: {error!r}') from error
    present = {one.name for one in files}
    if named != present:
        raise InputError(
            f'{file}: names the files {", ".join(sorted(named))}, but there are'
            f' {", ".join(sorted(present))}; remove those that are not of this recording, or:'
            f' ros2 bag reindex {path}'
        )
    return counts


def _lost(counts: Mapping[str, int], bag: Bag) -> str:
    """Return how many messages are missing, empty if none is."""
    found = Counter({name: topic.count for name, topic in bag.topics.items()})
    missing = {name: n - found[name] for name, n in counts.items() if n > found[name]}
    topics = ', '.join(f'{name} {n}' for name, n in missing.items())
    text = f'{sum(missing.values())} of {sum(counts.values())} messages lost ({topics})'
    return text if missing else ''


def _unpacked(file: Path, resources: ExitStack) -> Path:
    """Return a storage file, which rosbag2 can compress as a whole; unpacked ones are copies."""
    from rosbags.rosbag2.reader import zstd  # type: ignore[attr-defined]

    if file.suffix != '.zstd':
        return file
    copy = Path(resources.enter_context(tempfile.TemporaryDirectory())) / file.stem
    with _readable(file), zstd.open(file, 'rb') as packed, copy.open('wb') as target:
        shutil.copyfileobj(packed, target)
    return copy


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
        raise InputError(
            f'{path}: damaged or not a bag of ROS 2: {reason}; {_remedy(path)}'
        ) from error


def _remedy(path: Path) -> str:
    """Return what to do with a damaged recording."""
    return f'to save what is left: longreach bag recover {path} --out NEW'


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
        raise InputError(
            f'{path}: not a bag: no .mcap and no .db3 file in it; give the directory of a '
            f'recording{_ROS1}'
        )
    return sorted(found, key=lambda file: [int(n) for n in re.findall(r'\d+', file.name)])


def _storage_of(file: Path) -> str:
    """Return the storage kind, from the content of a file."""
    with file.open('rb') as stream:
        begin = stream.read(16)
    if begin.startswith(_MCAP_MAGIC):
        return 'mcap'
    if begin == _SQLITE_MAGIC:
        return 'sqlite3'
    if not begin:
        raise InputError(f'{file}: an empty file, no message was written')
    raise InputError(
        f'{file}: not a bag: neither an MCAP nor an SQLite file; expected a recording by '
        f'longreach bag record or ros2 bag record{_ROS1}'
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


def _open_file(file: Path, storage: str, resources: ExitStack, check: bool) -> Any:
    """Open a storage file; of an MCAP file that was not closed only what is intact."""
    from rosbags.rosbag2.storage_sqlite3 import Sqlite3Reader

    from ._mcap import open_mcap

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
            reader.open()
        else:
            reader = open_mcap(file, check)
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
    """Return an SQLite file; a copy without the unfinished transaction if it has one."""
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
