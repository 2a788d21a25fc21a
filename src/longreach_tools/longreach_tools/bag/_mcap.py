"""
Read what a process that was killed, or a disk that was full, has left of an MCAP file.

An MCAP file ends with a summary, which such a file lacks. Its records are walked from the start
up to the first one that is not whole; of an uncompressed chunk that is cut off, the whole messages
are kept. The file is not changed. Only what rosbag2 writes is understood: the profile ``ros2``,
and chunks without compression, with lz4 or with zstd.

Layout of a record: one byte of type, eight of length, the content; numbers are little-endian.
"""

from __future__ import annotations

import heapq
import importlib
import struct
import sys
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import BinaryIO

from longreach_dynamics.errors import InputError

__all__ = ['MAGIC', 'BrokenMcap', 'Channel', 'is_whole', 'read_broken']

MAGIC = b'\x89MCAP0\r\n'

_HEADER, _FOOTER, _SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _DATA_END = 1, 2, 3, 4, 5, 6, 15
_RECORD = struct.Struct('<BQ')
_MESSAGE_HEAD = struct.Struct('<HIQQ')
_CHUNK_HEAD = struct.Struct('<QQQI')

# Messages outside of chunks are read back in blocks of about this many bytes.
_BLOCK_SIZE = 1 << 20


@dataclass
class Channel:
    """One topic of the file: type, definition, and how many whole messages there are."""

    number: int
    topic: str
    typename: str
    definition_encoding: str
    definition: str
    serialization: str
    offered_qos_profiles: str
    count: int = 0


@dataclass(frozen=True)
class _Block:
    """A stretch of the file with messages: a chunk's stored data, or plain records."""

    offset: int
    stored_size: int
    size: int
    compression: str
    start_time: int


@dataclass
class BrokenMcap:
    """
    The readable part of an MCAP file.

    Attributes
    ----------
    path : Path
        The file.
    channels : dict
        By the file's channel number.
    start_time, end_time : int
        Earliest and latest message [ns]; 0 without messages.
    """

    path: Path
    channels: dict[int, Channel] = field(default_factory=dict)
    start_time: int = 0
    end_time: int = 0
    _blocks: list[_Block] = field(default_factory=list)

    def messages(self, channels: Collection[int]) -> Iterator[tuple[int, int, bytes]]:
        """
        Yield (channel number, time [ns], CDR bytes) in the order of time, then of the file.

        Only as many blocks are in memory as overlap in time.
        """
        waiting: list[tuple[int, int, int, bytes]] = []
        order = 0
        with self.path.open('rb') as file:
            for block in sorted(self._blocks, key=lambda block: block.start_time):
                while waiting and waiting[0][0] < block.start_time:
                    time, _, channel, data = heapq.heappop(waiting)
                    yield channel, time, data
                for channel, time, data in _messages(_load(file, block)):
                    if channel in channels:
                        heapq.heappush(waiting, (time, order, channel, data))
                    order += 1
        for time, _, channel, data in sorted(waiting, key=itemgetter(0, 1)):
            yield channel, time, data


def is_whole(path: Path) -> bool:
    """Tell whether a file begins and ends as a closed MCAP file does."""
    with path.open('rb') as file:
        if file.read(len(MAGIC)) != MAGIC:
            return False
        size = file.seek(0, 2)
        if size < 3 * len(MAGIC):
            return False
        file.seek(-len(MAGIC), 2)
        return file.read() == MAGIC


def read_broken(path: Path) -> BrokenMcap:
    """
    Find the readable part of an MCAP file.

    Raises
    ------
    InputError
        If it is not an MCAP file of ROS 2 or ends before its first record is whole.
    """
    scan = _Scan(BrokenMcap(path))
    with path.open('rb') as file:
        size = file.seek(0, 2)
        file.seek(0)
        if file.read(len(MAGIC)) != MAGIC:
            raise InputError(
                f'{path}: {"an empty file" if size == 0 else "not an MCAP file"}; '
                'expected a file written by longreach bag record or ros2 bag record'
            )
        while (record := _read_head(file, size)) is not None:
            kind, length = record
            begin = file.tell()
            if kind in (_FOOTER, _DATA_END) or (kind != _CHUNK and begin + length > size):
                break
            try:
                if kind == _CHUNK:
                    scan.chunk(file, begin, min(length, size - begin))
                elif kind == _MESSAGE:
                    head = file.read(min(length, _MESSAGE_HEAD.size))
                    scan.message(begin - _RECORD.size, length, head)
                elif kind in (_HEADER, _SCHEMA, _CHANNEL):
                    scan.definition(kind, file.read(length))
            except _UnreadableError:
                # Damage within a record: what follows it may still be whole.
                scan.close_block()
            file.seek(min(begin + length, size))
    if not scan.is_ros2:
        raise InputError(f'{path}: cut off before its first record, or not a recording of ROS 2')
    scan.close_block()
    return scan.result


class _UnreadableError(Exception):
    """A record's content is not what its type announces."""


class _Scan:
    """What the walk through the records has met so far."""

    def __init__(self, result: BrokenMcap) -> None:
        self.result = result
        self.is_ros2 = False
        self._schemas: dict[int, tuple[str, str, str]] = {}
        self._counted = False
        self._open: tuple[int, int, int] | None = None  # plain messages: begin, end, start time

    def definition(self, kind: int, content: bytes) -> None:
        """Take a header, schema or channel record."""
        fields = _Fields(content)
        if kind == _HEADER:
            self.is_ros2 = fields.text() == 'ros2'
        elif kind == _SCHEMA:
            number = fields.number('<H')
            self._schemas[number] = (fields.text(), fields.text(), fields.text())
        else:
            number, schema = fields.number('<H'), fields.number('<H')
            typename, encoding, definition = self._schemas.get(schema, ('', '', ''))
            topic, serialization = fields.text(), fields.text()
            metadata = _Fields(fields.block())
            pairs = {}
            while metadata.left:
                key = metadata.text()
                pairs[key] = metadata.text()
            self.result.channels.setdefault(
                number,
                Channel(
                    number,
                    topic,
                    typename,
                    encoding,
                    definition,
                    serialization,
                    pairs.get('offered_qos_profiles', ''),
                ),
            )

    def message(self, begin: int, length: int, head: bytes) -> None:
        """Take a message outside of chunks, whose record begins at a place of the file."""
        channel, _, time, _ = _Fields(head).numbers(_MESSAGE_HEAD)
        self._count(channel, time)
        first, end, start_time = self._open or (begin, begin, time)
        if end != begin or end - first > _BLOCK_SIZE:
            self.close_block()
            first, start_time = begin, time
        self._open = (first, begin + _RECORD.size + length, min(start_time, time))

    def close_block(self) -> None:
        """End the current stretch of messages outside of chunks."""
        if self._open is not None:
            begin, end, start_time = self._open
            self.result._blocks.append(_Block(begin, end - begin, end - begin, '', start_time))
            self._open = None

    def chunk(self, file: BinaryIO, begin: int, available: int) -> None:
        """Take a chunk, of which so many bytes are there."""
        head = file.read(min(available, _CHUNK_HEAD.size + 4 + 16))
        fields = _Fields(head)
        _, _, size, checksum = fields.numbers(_CHUNK_HEAD)
        compression, stored_size = fields.text(), fields.number('<Q')
        offset = begin + fields.position
        stored = min(stored_size, begin + available - offset)
        cut_off = stored < stored_size
        if compression and cut_off:
            return
        block = _Block(offset, stored, stored if not compression else size, compression, 0)
        data = _load(file, block)
        if checksum and not cut_off and zlib.crc32(data) != checksum:
            return
        times = []
        for kind, content in _records(data):
            if kind in (_SCHEMA, _CHANNEL):
                self.definition(kind, content)
            elif kind == _MESSAGE and len(content) >= _MESSAGE_HEAD.size:
                channel, _, time, _ = _MESSAGE_HEAD.unpack_from(content)
                self._count(channel, time)
                times.append(time)
        if times:
            self.result._blocks.append(
                _Block(offset, block.stored_size, block.size, compression, min(times))
            )

    def _count(self, channel: int, time: int) -> None:
        """Count a message of a channel whose definition came before it."""
        result = self.result
        if channel in result.channels:
            result.start_time = min(result.start_time, time) if self._counted else time
            result.end_time = max(result.end_time, time)
            result.channels[channel].count += 1
            self._counted = True


class _Fields:
    """Reads the fields of one record in turn; too short a record is unreadable."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.position = 0

    @property
    def left(self) -> int:
        """Bytes not yet read."""
        return len(self._content) - self.position

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        if size > self.left:
            raise _UnreadableError
        self.position += size
        return self._content[self.position - size : self.position]

    def numbers(self, layout: struct.Struct) -> tuple[int, ...]:
        """Return numbers of a layout."""
        return layout.unpack(self.take(layout.size))

    def number(self, layout: str) -> int:
        """Return one number."""
        return self.numbers(struct.Struct(layout))[0]

    def block(self) -> bytes:
        """Return bytes that their length precedes."""
        return self.take(self.number('<I'))

    def text(self) -> str:
        """Return a string that its length precedes."""
        return self.block().decode('utf-8', errors='replace')


def _read_head(file: BinaryIO, size: int) -> tuple[int, int] | None:
    """Return type and length of the next record, None at the end of what is there."""
    if file.tell() + _RECORD.size > size:
        return None
    kind, length = _RECORD.unpack(file.read(_RECORD.size))
    # A hole that was never written reads as zeros.
    return None if kind == 0 else (kind, length)


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield type and content of each whole record."""
    position = 0
    while position + _RECORD.size <= len(data):
        kind, length = _RECORD.unpack_from(data, position)
        position += _RECORD.size
        if kind == 0 or position + length > len(data):
            return
        yield kind, data[position : position + length]
        position += length


def _messages(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield channel number, time and CDR bytes of each whole message."""
    for kind, content in _records(data):
        if kind == _MESSAGE and len(content) >= _MESSAGE_HEAD.size:
            channel, _, time, _ = _MESSAGE_HEAD.unpack_from(content)
            yield channel, time, content[_MESSAGE_HEAD.size :]


def _load(file: BinaryIO, block: _Block) -> bytes:
    """Return the records of a block."""
    file.seek(block.offset)
    stored = file.read(block.stored_size)
    if not block.compression:
        return stored
    # The libraries come with rosbags.
    if block.compression == 'zstd':
        modern = sys.version_info >= (3, 14)
        library = importlib.import_module('compression.zstd' if modern else 'backports.zstd')
        failure: type[Exception] = library.ZstdError
    elif block.compression == 'lz4':
        library, failure = importlib.import_module('lz4.frame'), RuntimeError
    else:
        raise InputError(
            f'chunks compressed by {block.compression!r}; allowed: no compression, lz4, zstd'
        )
    try:
        data = bytes(library.decompress(stored))
    except failure as error:
        raise _UnreadableError from error
    if len(data) != block.size:
        raise _UnreadableError
    return data
