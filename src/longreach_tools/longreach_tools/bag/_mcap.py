"""
MCAP files by rosbags, with the checksums that it leaves out, also those that are damaged.

The reader of rosbags goes by the summary at the end of a file. :class:`IntactMcap` searches for
the heads of chunks instead. A chunk whose checksum or structure is damaged is left out as a whole,
because nothing says which of its messages are wrong. Times are in ns.

Layout of a record: one byte of type, eight of length, the content; values are little-endian.
Source: MCAP file format specification, version 0.
"""

from __future__ import annotations

import importlib
import io
import re
import struct
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from rosbags.rosbag2 import ReaderError
from rosbags.rosbag2.storage_mcap import ChunkInfo, McapReader, McapWriter, decompress

from longreach_dynamics.errors import InputError

if TYPE_CHECKING:
    from rosbags.interfaces import Connection
    from rosbags.rosbag2 import CompressionMode

_MAGIC = b'\x89MCAP0\r\n'
_FOOTER, _SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _INDEX, _DATA_END = 2, 3, 4, 5, 6, 7, 15
_RECORD = struct.Struct('<BQ')
_MESSAGE_HEAD = struct.Struct('<HIQQ')
_CHUNK_HEAD = struct.Struct('<QQQI')
_INDEX_HEAD = struct.Struct('<HI')
_INDEX_ENTRY = 16
_FOOTER_CONTENT = struct.Struct('<QQI')
# Bytes from the start of the footer to its checksum, and to the end of the file.
_FOOTER_CHECKED = _RECORD.size + 16
_FOOTER_TO_END = _RECORD.size + _FOOTER_CONTENT.size + len(_MAGIC)
_DATA_END_SIZE = 4
_PROFILE = b'\x04\x00\x00\x00ros2'
_COMPRESSIONS = (b'', b'lz4', b'zstd')
# The head of a chunk, of which the name of the compression has at most four letters.
_LONGEST_HEAD = _RECORD.size + _CHUNK_HEAD.size + 4 + 4 + 8
# Possible start of a chunk: its type, and a length below 2^40.
_CANDIDATE = re.compile(rb'\x06.{5}\x00\x00\x00', re.DOTALL)
# With which rosbags decompresses.
_zstd = importlib.import_module(
    'compression.zstd' if sys.version_info >= (3, 14) else 'backports.zstd'
)
# What is raised by content that is damaged.
_BROKEN = (
    *(LookupError, RuntimeError, TypeError, ValueError),
    *(ReaderError, struct.error, _zstd.ZstdError),
)
# Number of bytes that are read at a time, and of bad chunks that are described.
_WINDOW, _NAMED = 1 << 16, 3

# Size of a chunk that is written [bytes]: it is lost as a whole if its checksum does not match.
_CHUNK_SIZE = 1 << 16
# Bytes of a chunk's record before its checksum.
_TO_CHECKSUM = _RECORD.size + 24


class _Chunk(NamedTuple):
    """A chunk by its head: offsets in the file of its record, the record's end, and its data."""

    begin: int
    end: int
    data: int
    compression: str
    size: int
    checksum: int
    times: tuple[int, int]


class IntactMcap(McapReader):
    """Reads the intact chunks of any file; ``damage`` says what is left out, '' for nothing."""

    damage = checksums = ''

    def _open(self) -> None:
        assert self.bio is not None
        self._file = self.bio
        self._counts = Counter[int]()
        # Start and end of the parts without records, in bytes from the start of the file.
        self._lost: list[tuple[int, int]] = []
        # With the number of messages by channel.
        self._bad: list[tuple[_Chunk, dict[int, int]]] = []
        self._has_loose_messages = False
        # Up to which byte, and its checksum.
        self._data_section = (0, 0)
        ending = _ending(self._file)
        end = ending[1] if ending else self._file.seek(0, 2)
        offset, found, checked = len(_MAGIC), 0, 0
        for chunk in _chunks(self._file, offset, end):
            self._look_between(offset, chunk.begin)
            self._add(chunk)
            offset, found, checked = chunk.end, found + 1, checked + bool(chunk.checksum)
        self._look_between(offset, end)
        if not found and self._has_loose_messages:
            raise InputError(
                f'{self.path}: its messages are not in chunks: it can be read if it was closed,'
                ' but it cannot be checked; see: longreach bag info --no-scan'
            )
        profile = _read(self._file, len(_MAGIC) + _RECORD.size, len(_PROFILE))
        if profile != _PROFILE and not self.connections:
            raise InputError(
                f'{self.path}: truncated before its first record, or not a recording of ROS 2'
            )
        types = {schema.name for schema in self.schemas.values()}
        self.connections = [
            one._replace(msgcount=self._counts[one.id])
            for one in self.connections
            if one.msgtype in types
        ]
        self.metadata = self.metadata._replace(
            message_count=sum(one.msgcount for one in self.connections),
            start_time=min((one.message_start_time for one in self.chunks), default=0),
            end_time=max((one.message_end_time for one in self.chunks), default=-1) + 1,
        )
        sections = []
        data_is_bad = summary_is_bad = False
        offset, expected = self._data_section
        if expected:
            sections += ['data section']
            data_is_bad = expected != _checksum(self._file, 0, offset)
        if ending and ending[2]:
            sections += ['summary']
            summary_is_bad = _is_damaged(self._file, ending)
        self.damage = self._describe(data_is_bad, summary_is_bad)
        if checked:
            sections = [f'{checked} of {found} chunks', *sections]
        elif found:
            self.checksums = 'no checksums of messages' + ' but of ' * bool(sections)
        self.checksums = self.checksums or ('checksums of ' if sections else 'no checksums')
        self.checksums += ', '.join(sections)

    def _add(self, chunk: _Chunk) -> None:
        """Add a chunk, or note that it is damaged."""
        stored = _read(self._file, chunk.data, chunk.end - chunk.data)
        try:
            records = decompress(stored, chunk.compression, chunk.size, chunk.checksum)
            counts, times = _messages_in(records)
            first, last = chunk.times
            if times and not (chunk.checksum or first <= min(times) <= max(times) <= last):
                raise ReaderError('times outside of the range of the chunk')
            self._define(records)
        except _BROKEN:
            self._bad.append((chunk, {}))
            return
        if times:
            self._counts += counts
            self.chunks.append(
                ChunkInfo(
                    min(times), max(times), chunk.begin, chunk.end - chunk.begin, {}, 0,
                    chunk.compression, len(stored), chunk.size, dict(counts),
                )
            )  # fmt: skip

    def _look_between(self, begin: int, end: int) -> None:
        """Look at the records between chunks, whose heads are sound; others are damage."""
        offset = begin
        while offset < end:
            kind, length = _RECORD.unpack(_read(self._file, offset, _RECORD.size).ljust(9, b'\0'))
            behind = offset + _RECORD.size + length
            if not 0 < kind <= _DATA_END or kind in (_FOOTER, _MESSAGE, _CHUNK) or behind > end:
                self._has_loose_messages |= kind == _MESSAGE and bool(self.channels)
                break
            if kind == _INDEX and self._bad and begin == self._bad[-1][0].end:
                head = _read(self._file, offset + _RECORD.size, _INDEX_HEAD.size)
                channel, size = _INDEX_HEAD.unpack(head.ljust(_INDEX_HEAD.size, b'\0'))
                self._bad[-1][1][channel] = size // _INDEX_ENTRY
            elif kind in (_SCHEMA, _CHANNEL):
                try:
                    self._define(_read(self._file, offset, behind - offset))
                except _BROKEN:
                    break
            elif kind == _DATA_END and length == _DATA_END_SIZE:
                data = _read(self._file, offset + _RECORD.size, length)
                self._data_section = (offset, int.from_bytes(data, 'little'))
            offset = behind
        if offset < end:
            self._lost.append((offset, end))

    def _define(self, records: bytes) -> None:
        """Note the types and topics that are defined by records."""
        self.bio, self.data_end = io.BytesIO(records + bytes([_FOOTER])), 0
        try:
            self.read_index()
        finally:
            self.bio = self._file

    def _describe(self, data_is_bad: bool, summary_is_bad: bool) -> str:
        """Return what is damaged."""
        name, parts = Path(str(self.path)).name, []
        if self._lost:
            size = sum(end - begin for begin, end in self._lost)
            parts.append(f'{size} bytes of {name}, the first at byte {self._lost[0][0]}')
        topics = {one.id: one.topic for one in self.connections}
        for chunk, counts in self._bad[:_NAMED]:
            found = [f'{n} {topics[k]}' for k, n in counts.items() if k in topics]
            first, last = (time * 1e-9 for time in chunk.times)
            reason = 'its checksum does not match' if chunk.checksum else 'its content is damaged'
            parts.append(
                f'chunk at byte {chunk.begin} of {name} ({first:.13g} s to {last:.13g} s;'
                f' {", ".join(found) or "topics unknown"}): {reason}'
            )
        if len(self._bad) > _NAMED:
            parts.append(f'{len(self._bad) - _NAMED} more chunks')
        # The checksum of the data section covers the chunks and all bytes between them.
        if data_is_bad and not parts:
            parts.append(f'{name} outside its chunks: the checksum of its data does not match')
        if summary_is_bad:
            parts.append(f'summary of {name}: its checksum does not match')
        return '; '.join(parts)


def _chunks(file: BinaryIO, begin: int, end: int) -> Iterator[_Chunk]:
    """Yield the chunks with a sound head in a part of a file."""
    while len(window := _read(file, begin, min(_WINDOW, end - begin))) >= _RECORD.size:
        offsets = (begin + match.start() for match in _CANDIDATE.finditer(window))
        chunk = next(filter(None, (_chunk_at(file, offset, end) for offset in offsets)), None)
        if chunk is not None:
            yield chunk
        # A head may begin in this window and end in the next one.
        begin = chunk.end if chunk else begin + len(window) - _RECORD.size + 1


def _chunk_at(file: BinaryIO, offset: int, end: int) -> _Chunk | None:
    """Return the chunk at an offset of a file; None if there is none, or its head is damaged."""
    head = _read(file, offset, _LONGEST_HEAD).ljust(_LONGEST_HEAD, b'\0')
    _, length = _RECORD.unpack_from(head)
    first, last, size, checksum = _CHUNK_HEAD.unpack_from(head, _RECORD.size)
    fields = io.BytesIO(head[_RECORD.size + _CHUNK_HEAD.size :])
    compression = fields.read(int.from_bytes(fields.read(4), 'little'))
    stored = int.from_bytes(fields.read(8), 'little')
    data = offset + _RECORD.size + _CHUNK_HEAD.size + fields.tell()
    behind = offset + _RECORD.size + length
    if compression not in _COMPRESSIONS or data + stored != behind or behind > end:
        return None
    return _Chunk(offset, behind, data, compression.decode(), size, checksum, (first, last))


def _messages_in(records: bytes) -> tuple[Counter[int], list[int]]:
    """Return the number of messages by channel, and their times; raise for a damaged structure."""
    counts, times, offset = Counter[int](), [], 0
    while offset < len(records):
        kind, length = _RECORD.unpack_from(records, offset)
        offset += _RECORD.size
        least = _MESSAGE_HEAD.size if kind == _MESSAGE else 0
        if (
            kind not in (_SCHEMA, _CHANNEL, _MESSAGE)
            or not least <= length <= len(records) - offset
        ):
            raise ReaderError('no record')
        if kind == _MESSAGE:
            channel, _, time, _ = _MESSAGE_HEAD.unpack_from(records, offset)
            counts[channel] += 1
            times.append(time)
        offset += length
    return counts, times


# --- checksums ------------------------------------------------------------------------------


def fault_at_end(path: Path) -> str:
    """Return why the end of an MCAP file, by which it is read, cannot be used; empty if it can."""
    with path.open('rb') as file:
        ending = _ending(file)
        if ending is None:
            return 'truncated, its end is missing'
        return 'the checksum of its summary does not match' * _is_damaged(file, ending)


def _ending(file: BinaryIO) -> tuple[int, int, int] | None:
    """Return start of the summary, start of the footer, checksum (0: none); None if not closed."""
    footer = file.seek(0, 2) - _FOOTER_TO_END
    content = _read(file, footer, _FOOTER_TO_END) if footer > 0 else b''
    mark = _RECORD.pack(_FOOTER, _FOOTER_CONTENT.size)
    if not (content.startswith(mark) and content.endswith(_MAGIC)):
        return None
    start, _, checksum = _FOOTER_CONTENT.unpack_from(content, _RECORD.size)
    return min(start or footer, footer), footer, checksum


def _is_damaged(file: BinaryIO, ending: tuple[int, int, int]) -> bool:
    """Return whether a closed file's summary has a checksum that does not match."""
    start, footer, checksum = ending
    return bool(checksum) and checksum != _checksum(file, start, footer + _FOOTER_CHECKED)


def _checksum(file: BinaryIO, begin: int, end: int, checksum: int = 0) -> int:
    """Return the CRC-32 of a part of a file, continued from that of the bytes before."""
    file.seek(begin)
    while begin < end and (data := file.read(min(_WINDOW, end - begin))):
        checksum = zlib.crc32(data, checksum)
        begin += len(data)
    return checksum


def _read(file: BinaryIO, offset: int, size: int) -> bytes:
    """Return bytes of a file; fewer at its end."""
    file.seek(offset)
    return file.read(size)


class CheckedMcapWriter(McapWriter):
    """Writes the checksums of chunks, data section and summary."""

    # Of the bytes before the end of the last chunk.
    _checksum = 0
    _counted = 0

    def __init__(self, path: Path, compression: CompressionMode) -> None:
        super().__init__(path, compression)
        # As in rosbag2, which ``ros2 bag reindex`` requires.
        self.path = self.path.rename(path / f'{path.name}_0.mcap')

    def write(self, connection: Connection, timestamp: int, data: bytes | memoryview) -> None:
        """Write a message; close the chunk when it is large enough."""
        super().write(connection, timestamp, data)
        if self.chunk.bio.tell() > _CHUNK_SIZE:
            self.close_chunk()

    def close_chunk(self) -> None:
        """Write the chunk and its indexes, then its checksum."""
        begin, checksum = self.bio.tell(), zlib.crc32(self.chunk.bio.getbuffer())
        super().close_chunk()
        self.bio.flush()
        # A second time: the file is open for writing only.
        with self.path.open('r+b') as file:
            file.seek(begin + _TO_CHECKSUM)
            file.write(checksum.to_bytes(4, 'little'))
            file.seek(self._counted)
            self._checksum = zlib.crc32(file.read(), self._checksum)
            self._counted = file.tell()

    def close(self, version: int, metadata: str) -> None:
        """Write index and metadata, then the other checksums."""
        super().close(version, metadata)
        with self.path.open('r+b') as file:
            ending = _ending(file)
            assert ending is not None
            start, footer, _ = ending
            data_end = start - _RECORD.size - _DATA_END_SIZE
            checksum = _checksum(file, self._counted, data_end, self._checksum)
            file.seek(data_end + _RECORD.size)
            file.write(checksum.to_bytes(4, 'little'))
            checksum = _checksum(file, start, footer + _FOOTER_CHECKED)
            file.seek(footer + _FOOTER_CHECKED)
            file.write(checksum.to_bytes(4, 'little'))
