"""
Open and read rosbag2 recordings, based on the library rosbags.

A recording is a directory with ``metadata.yaml`` and its storage files, or one storage file. A
killed recorder leaves no metadata; then the files are read as far as they are intact. Reading
never changes a recording. Times are integer nanoseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Self

from longreach_dynamics.errors import InputError, LongreachError

from ._mcap import MAGIC, fault_at_end
from ._names import absolute_name
from ._sources import (
    NO_SQLITE_CHECKSUMS,
    BrokenSqliteSource,
    Expected,
    Files,
    McapSource,
    Message,
    RosbagsSource,
    Source,
    Topic,
    is_whole_sqlite,
    readable,
    rolled_back,
)
from ._types import need_rosbags

_SQLITE_MAGIC = b'SQLite format 3\x00'
_ROS1_MAGIC = b'#ROSBAG V'


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
        self.path = path
        self.storage = storage
        self.problem = problem
        self.checksums = source.checksums
        self._source = source
        self._resources = resources
        self.topics = _merged(path, source.topics)
        self.start_time = source.start_time
        self.end_time = source.end_time

    @property
    def damaged(self) -> bool:
        """Whether parts of the files cannot be read, apart from an end that was never written."""
        return bool(self._source.damage)

    @property
    def message_count(self) -> int:
        """Number of messages of all topics."""
        return sum(topic.count for topic in self.topics.values())

    def select(self, names: Sequence[str] | None) -> list[str]:
        """
        Return the absolute names of the requested topics, all for None.

        Raises
        ------
        InputError
            If a topic is missing; the message lists the existing ones.
        """
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

        Parameters
        ----------
        names : sequence of str, optional
            Topics to be read; all by default.
        start : int
            First bag time [ns].

        Raises
        ------
        InputError
            If a topic is missing, or the recording is damaged.
        """
        wanted = self.select(names)
        remedy = f'to save what is left: longreach bag recover {self.path} --output NEW'
        read = 0
        try:
            with readable(self.path):
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
    expected = Expected.of(path)
    resources = ExitStack()
    problems: list[str] = []
    try:
        closed = (path / 'metadata.yaml').is_file()
        try:
            if closed:
                source = _open_closed(path, files, resources)
            else:
                source = _open_files(files, storage, expected, resources, check=False)
                if path.is_dir() or (storage == 'mcap' and fault_at_end(path)):
                    problems.append('not closed')
            if check and accept_damage and not packed:
                # By the files, whatever the metadata say.
                source = _open_files(files, storage, expected, resources, check=True)
        except InputError as error:
            if not accept_damage:
                if not closed:
                    raise
                raise InputError(
                    f'{error}; to save what is left: longreach bag recover {path} --output NEW'
                ) from error
            try:
                source = _open_files(files, storage, expected, resources, check=True)
            except InputError as worse:
                raise error from worse
            problems.append(str(error))
        if source.damage or (check and expected.missing(source.topics)):
            problems.append(_what_is_lost(source, expected))
        return Bag(path, storage, '; '.join(problems), source, resources)
    except BaseException:
        resources.close()
        raise


def _what_is_lost(source: Source, expected: Expected) -> str:
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


_ROS1_REMEDY = 'convert it first: rosbags-convert --src FILE.bag --dst DIRECTORY'


def _storage_of(files: Sequence[Path]) -> str:
    """Return the storage kind, from the name or the content of the first file."""
    name = files[0].name
    if files[0].suffix == '.zstd':
        return 'mcap' if '.mcap' in name else 'sqlite3'
    with files[0].open('rb') as file:
        begin = file.read(16)
    if begin.startswith(MAGIC):
        return 'mcap'
    if begin == _SQLITE_MAGIC:
        return 'sqlite3'
    if begin.startswith(_ROS1_MAGIC):
        raise InputError(f'{files[0]}: a bag of ROS 1; {_ROS1_REMEDY}')
    if not begin:
        raise InputError(f'{files[0]}: an empty file, no message was written')
    raise InputError(
        f'{files[0]}: not a bag: neither an MCAP nor an SQLite file; expected a recording by '
        'longreach bag record or ros2 bag record'
    )


def _open_closed(path: Path, files: Sequence[Path], resources: ExitStack) -> Source:
    """Open a recording with metadata; its MCAP files must be complete."""
    for file in files:
        if file.suffix == '.mcap' and (fault := fault_at_end(file)):
            raise InputError(f'{file}: {fault}')
    with readable(path):
        source = RosbagsSource(path, resources)
    present = {file.name.removesuffix('.zstd') for file in files}
    if len(present) > source.file_count:
        raise InputError(
            f'{path}: {len(present)} storage files, but metadata.yaml names {source.file_count};'
            f' remove those that are not of this recording, or: ros2 bag reindex {path}'
        )
    return source


def _open_files(
    files: Sequence[Path], storage: str, expected: Expected, resources: ExitStack, *, check: bool
) -> Source:
    """Open storage files without metadata; with ``check``, read them to find damage."""
    if packed := [file for file in files if file.suffix == '.zstd']:
        raise InputError(
            f'{packed[0]}: compressed as a whole; unpack it first: unzstd {packed[0]}'
        )
    return Files([_open_file(file, storage, expected, resources, check) for file in files])


def _open_file(
    file: Path, storage: str, expected: Expected, resources: ExitStack, check: bool
) -> Source:
    """Open a storage file; an MCAP file that was not closed is always checked."""
    with readable(file):
        if storage == 'mcap':
            whole = not check and not fault_at_end(file)
            return RosbagsSource(file, resources) if whole else McapSource(file)
        file = rolled_back(file, resources)
        if check and not is_whole_sqlite(file):
            return BrokenSqliteSource(file, expected, resources)
        return RosbagsSource(file, resources, NO_SQLITE_CHECKSUMS)


def _merged(path: Path, topics: Sequence[Topic]) -> dict[str, Topic]:
    """Return one entry for each name: a topic can occur in several files, or several times."""
    merged: dict[str, Topic] = {}
    for topic in topics:
        known = merged.get(topic.name)
        if known is None:
            merged[topic.name] = topic
        elif known.typename != topic.typename:
            raise LongreachError(
                f'{path}: topic {topic.name} has two types, {known.typename} and '
                f'{topic.typename}; one is allowed'
            )
        else:
            qos = known.qos + tuple(item for item in topic.qos if item not in known.qos)
            merged[topic.name] = replace(known, count=known.count + topic.count, qos=qos)
    return dict(sorted(merged.items()))
